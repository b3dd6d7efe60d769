//! Filetests: a schedule beside what it must give, in the `.test` files of the folders here.
//!
//! ```text
//! What stands before the first case is a comment.
//!
//! ==== stencils: a Func in shared memory
//! stencils inline input.repeat_edge, gray, by
//!   kernel out  block x 32, y 8
//!     bx   flat  shared
//!     out  threads x 32, y 8
//! ---- plan
//! kernel out: grid 13 x 38 x 1 over x, y; 256 threads; 1280 bytes shared; 1 barrier
//!   array bx: shared 32 x 10, 1280 bytes
//!   nest bx: flat; lane x 32, lane y 10
//!   barrier
//!   nest out: lane x 32, lane y 8
//! ```
//!
//! A case names a pipeline or a hand-made program of `subjects.rs` and has a title; the schedule
//! follows as users write it (a hand-made program has none), then what is expected. No line of
//! these starts with `===` or `---`.
//!
//! | section | holds |
//! | --- | --- |
//! | `parse errors` | why the schedule cannot be read |
//! | `violations` | every rule that it breaks |
//! | `plan` | kernels, allocations, nests with their axes, loops and barriers (`print.rs`) |
//! | `features` | what the cost model is told: per kernel, and for each stage what a block counts (`predicted.rs`) |
//! | `neighbours` | the lines of each schedule that the search tries next from this one |
//! | `cuda` | the CUDA text of the kernels in both builds; `cuda timing` and `cuda checking` where they differ |
//! | `helpers` | the functions that the kernels of the checking build call |
//! | `description` | what a runtime is told of the program |
//!
//! To write a case, leave the expectation empty and bless it:
//! `cargo test -p warploom-codegen --test filetests -- --bless [FILTER]`, or `WARPLOOM_BLESS=1`. A
//! filter is a part of `FOLDER/FILE: TITLE`. Blessing never turns a legal schedule into an illegal
//! one or back: that takes another section.

#![allow(clippy::print_stdout, reason = "a test program says what failed")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answer;
mod args;
mod file;
mod predicted;
mod print;
mod run;
mod selftests;
mod subjects;

#[path = "../../../plan/tests/all/pipelines/at_size.rs"]
mod at_size;
#[path = "../../../plan/tests/all/pipelines/names.rs"]
mod names;
#[allow(dead_code, reason = "some programs are only compiled and run, by the tests in `cuda`")]
#[path = "../cuda/programs.rs"]
mod programs;
#[allow(dead_code, reason = "shared with the tests in `cuda`")]
#[path = "../cuda/raw.rs"]
mod raw;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use args::Args;
use run::Summary;

fn main() -> ExitCode {
    let args = Args::new(std::env::args().skip(1), std::env::var_os("WARPLOOM_BLESS").is_some());
    let started = Instant::now();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let mut summary = Summary::default();
    selftests::run(&args, &mut summary);
    for path in files(&folder) {
        let name = path.strip_prefix(&folder).unwrap().with_extension("").display().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        if let Some(blessed) = run::file(&name, &text, &args, &mut summary) {
            std::fs::write(&path, blessed).unwrap();
        }
    }
    if args.list {
        return ExitCode::SUCCESS;
    }
    for failure in &summary.failures {
        println!("FAILED {failure}\n");
    }
    let Summary { passed, blessed, failures } = summary;
    let (result, code) = match failures.is_empty() {
        true => ("ok", ExitCode::SUCCESS),
        false => ("FAILED", ExitCode::FAILURE),
    };
    let (failed, seconds) = (failures.len(), started.elapsed().as_secs_f64());
    println!(
        "test result: {result}. {passed} passed; {failed} failed; {blessed} blessed; finished in {seconds:.2}s"
    );
    code
}

/// The `.test` files below the folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let folders = entries(folder).filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| entries(&folder));
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|e| e == "test")).collect();
    files.sort();
    files
}
