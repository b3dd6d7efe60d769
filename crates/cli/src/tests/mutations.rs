//! Reads randomly corrupted files of every format: each is either read or rejected, without a
//! panic, an abort or excessive memory use.
//!
//! Each format runs in a separate process, so that an abort is detected and the peak memory can be
//! measured per format. The current input is in a file, which stays there if the process fails.

mod formats;
mod pictures;

use std::env;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tempfile::TempDir;
use warploom::fuzz::Mutator;

use formats::{Format, NAMES, format};

/// The number of inputs to try, over all formats.
const COUNT: &str = "WARPLOOM_MUTATIONS";
/// The seed of the mutations.
const SEED: &str = "WARPLOOM_MUTATION_SEED";
/// The format that a child process tests, and its folder.
const FORMAT: &str = "WARPLOOM_MUTATED_FORMAT";
const FOLDER: &str = "WARPLOOM_MUTATED_FOLDER";

const USUAL_COUNT: u64 = 6000;
const MOST_MEMORY: u64 = 1_000_000_000;

fn number(variable: &str, usual: u64) -> u64 {
    env::var(variable).map_or(usual, |text| text.parse().expect("a whole number"))
}

#[test]
fn mutated_files_are_read_or_refused() {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(name) = NAMES.get(next.fetch_add(1, Ordering::Relaxed)) {
            try_format(name);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
}

/// Tests a format in a child process.
fn try_format(name: &str) {
    let folder = memory_folder();
    let mut process = Command::new(env::current_exe().unwrap());
    process.args(["tests::mutations::one_format", "--exact", "--ignored", "--nocapture"]);
    let output = process.env(FORMAT, name).env(FOLDER, folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let kept = folder.keep().join(name);
        let errors = String::from_utf8_lossy(&output.stderr);
        panic!("{name}: {}; the input is {}\n{said}\n{errors}", output.status, kept.display());
    }
    let summary = said.lines().find(|line| line.contains(" inputs, ")).expect("it says what it did");
    println!("{}", summary.trim_start_matches("test tests::mutations::one_format ... "));
}

/// A folder in memory if the system has one, because a million files are written to it.
fn memory_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

#[test]
#[ignore = "mutated_files_are_read_or_refused starts it in a process for each format"]
fn one_format() {
    let names = env::var(FORMAT)
        .map_or(NAMES.to_vec(), |name| NAMES.into_iter().filter(|known| *known == name).collect());
    let own = env::var_os(FOLDER).is_none().then(memory_folder);
    let given = env::var_os(FOLDER).map(PathBuf::from).unwrap_or_default();
    let folder = own.as_ref().map_or(given.as_path(), TempDir::path);
    for name in names {
        let inputs = number(COUNT, USUAL_COUNT).div_ceil(NAMES.len() as u64);
        let seed = number(SEED, 1);
        let read = run(&format(name, folder), &folder.join(name), inputs, seed);
        let peak = peak_memory();
        println!("{name}: {inputs} inputs, {read} of them read, at most {} MB of memory", peak / 1_000_000);
        assert!(peak < MOST_MEMORY, "{name} took {peak} bytes");
    }
}

/// Reads mutated inputs of a format. Returns how many of them were accepted.
fn run(format: &Format, file: &Path, inputs: u64, seed: u64) -> u64 {
    for whole in &format.whole {
        let whole = (format.finish)(whole.clone());
        fs::write(file, &whole).unwrap();
        assert!((format.read)(file, &whole), "{} reads what is whole", format.name);
    }
    let mutator = Mutator::new(seed, format.whole.clone());
    let mut count = 0;
    let mut read = |input: &[u8]| {
        fs::write(file, input).unwrap();
        count += u64::from((format.read)(file, input));
    };
    format.bombs.iter().for_each(|bomb| read(&bomb()));
    for number in 0..inputs {
        let mut input = mutator.input(number);
        // One in eight keeps its wrong checksums.
        if !number.is_multiple_of(8) {
            input = (format.finish)(input);
        }
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| read(&input)));
        assert!(outcome.is_ok(), "{}: a panic at input {number} of seed {seed}", format.name);
    }
    count
}

/// The peak memory of this process in bytes; 0 if the system does not report it.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.map_or("0", |line| line.trim().trim_end_matches(" kB"));
    1024 * kilobytes.parse::<u64>().unwrap()
}
