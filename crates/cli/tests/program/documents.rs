//! Every command of the README and of the pages in `docs`, run as it stands there: the lines of all blocks marked `sh`, in
//! order, in one folder a page.
//!
//! What is not run as it stands is here:
//! - `cargo run ... -- ARGS` is `warploom ARGS`; other lines of `cargo` would build for minutes and are left out.
//! - `tune` and `suite` measure with a device that is made up, which computes with the reference evaluator, so that they and
//!   some others get less to do ([`SMALLER`], [`MORE`]).
//! - What needs a real GPU must say so and exit with 4 where there is none.
//! - `dot`, CUDA's header and library, `my_program.c`, `my_program.cpp`, `photo.png`, `mine.json` and `mv.tc` are made here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use warploom::interp::buffer::Buffer;
use warploom::interp::picture;
use warploom::prelude::*;

use crate::place::{Place, Ran};
use crate::stubbed::write_stub;

/// Parts of commands that would take long, and what stands for them.
const SMALLER: [(&str, &str); 9] = [
    ("--iterations 20", "--iterations 2"),
    ("--trials 500", "--trials 10"),
    ("--seeds 5", "--seeds 2"),
    ("--time-limit 8h", "--time-limit 60s"),
    ("--pipelines 300", "--pipelines 30"),
    ("--pipelines 60", "--pipelines 4"),
    ("--search --pipelines 40", "--search --pipelines 3"),
    ("--mutate 20", "--mutate 1"),
    ("apps/golden --on sim", "apps/golden --on sim --app harris --app unsharp"),
];

/// What commands get besides, unless they say it themselves.
const MORE: [(&str, &str); 3] = [
    ("tune", "--fake fake --samples 10 --beam 4 --passes 2 --size 200x120"),
    ("suite", "--fake fake --samples 4 --sizes small --apps harris,unsharp"),
    (OPERATORS, "--fake fake --samples 4 --rows moments*128x2304"),
];

/// The flag of a suite that is not of apps.
const OPERATORS: &str = "--of operators";

/// Commands that the program has only if it can train.
const TRAINING: [&str; 3] = ["collect", "train", "evaluate"];

#[test]
fn the_readme_runs() {
    let page = Page::new("README.md");
    page.run_all(25);
}

#[test]
fn the_page_for_contributors_runs() {
    Page::new("CONTRIBUTING.md").run_all(5);
}

/// Outputs in a page, in blocks marked `console`: a line `$ COMMAND`, then all that it prints.
#[test]
fn outputs_in_the_readme_are_real() {
    let page = Page::new("README.md");
    let shown = shown(&fs::read_to_string(repository().join(page.name)).unwrap());
    assert!(!shown.is_empty());
    for (command, output) in shown {
        let ran = page.place.run(command.strip_prefix("warploom ").unwrap());
        assert_eq!(ran.code, 0, "{command}: {}", ran.err);
        assert_eq!(ran.out, output, "README.md does not show what `{command}` prints; copy its output there");
    }
}

/// The Rust of the README is a part of programs that are compiled with the tests.
#[test]
fn code_in_the_readme_compiles() {
    let words = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with("use "));
        let lines = lines.map(|line| line.split("//").next().unwrap_or_default());
        lines.flat_map(str::chars).filter(|c| !c.is_whitespace()).collect::<String>()
    };
    let programs = ["crates/warploom/examples/readme.rs", "crates/cli/examples/brighter.rs"];
    let programs = programs.map(|program| words(&fs::read_to_string(repository().join(program)).unwrap()));
    let text = fs::read_to_string(repository().join("README.md")).unwrap();
    let blocks: Vec<&str> =
        text.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 3);
    for block in blocks {
        assert!(programs.iter().any(|program| program.contains(&words(block))), "no program has\n{block}");
    }
}

#[test]
fn pictures_in_the_readme_are_real() {
    let page = Page::new("README.md");
    let text = fs::read_to_string(repository().join(page.name)).unwrap();
    for line in commands(&text).iter().filter(|line| line.contains("picture.png")) {
        page.run(line);
    }
    // What one command writes, the others take, grey as it is.
    page.run("warploom run unsharp --input picture.png -o sharp.png");
    for name in ["picture.png", "smooth.png"] {
        let kept = repository().join("docs/pictures").join(name);
        assert!(text.contains(&format!("(docs/pictures/{name})")), "the README does not show {name}");
        assert!(fs::metadata(&kept).unwrap().len() < 60_000, "{name} is large");
        let [kept, made] = [kept, page.place.path(name)].map(|file| samples(&file));
        let furthest = kept.iter().zip(&made).map(|(kept, made)| kept.abs_diff(*made)).max();
        assert!(
            kept.len() == made.len() && furthest <= Some(1),
            "docs/pictures/{name} is not what the commands of the README make; copy it from there"
        );
    }
}

/// The table of the README has the times and speedups of the results page, app by app.
#[test]
fn times_in_the_readme_were_measured() {
    let readme = rows("README.md");
    let results = [rows("docs/results/suite-h200.md"), rows("docs/results/manual-h200.md")].concat();
    let cell = |app: &str, time: &str, faster: &str| {
        let of_app = results.iter().filter(|row| row[0] == app);
        of_app.clone().any(|row| row.iter().any(|cell| cell == time) && row.iter().any(|cell| cell == faster))
    };
    for app in warploom_apps::APPS.iter().map(|app| app.name.as_str()) {
        let row =
            readme.iter().find(|row| row[0] == app).unwrap_or_else(|| panic!("{app} is not in the README"));
        for pair in row[1..].chunks(2) {
            assert!(cell(app, &pair[0], &pair[1]), "docs/results has no {pair:?} for {app}");
        }
    }
}

/// The rows of all tables of a page.
fn rows(page: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(repository().join(page)).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.map(|row| row.split(" | ").map(str::to_owned).collect()).collect()
}

/// The samples of an 8-bit picture.
fn samples(file: &Path) -> Vec<u8> {
    let picture = warploom::interp::files::read_any(file).unwrap();
    picture.as_slice::<u8>().unwrap().to_vec()
}

#[test]
fn the_number_of_apps_is_the_same_everywhere() {
    let (suite, basic) = (warploom_apps::APPS.len(), warploom_apps::BASICS.len());
    let listed = Place::new().json("apps --json");
    assert_eq!(listed["apps"].as_array().unwrap().len(), suite + basic);
    let pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/model.md"];
    let mut texts: Vec<(String, String)> = pages
        .iter()
        .map(|page| ((*page).to_owned(), fs::read_to_string(repository().join(page)).unwrap()))
        .collect();
    for help in ["--help", "help apps", "help suite", "help verify"] {
        texts.push((help.to_owned(), Place::new().run(help).out));
    }
    for (name, text) in &texts {
        let words: Vec<&str> = text.split_whitespace().collect();
        for pair in words.windows(2).filter(|pair| pair[1].starts_with("apps")) {
            let number: Option<usize> = pair[0].parse().ok();
            assert!(number.is_none_or(|number| number == suite), "{name} says {} apps", pair[0]);
        }
    }
    let stated = format!("the {suite} apps of the suite and {basic} basic ones");
    assert!(texts[0].1.contains(&stated), "the README does not say `{stated}`");
}

#[test]
fn the_page_on_tuning_runs() {
    let page = Page::new("docs/tuning.md");
    // A night's records, short as it was.
    page.run("warploom tune harris --iterations 3");
    page.run_all(11);
}

#[test]
fn the_page_on_schedules_runs() {
    Page::new("docs/schedules.md").run_all(14);
}

#[test]
fn the_page_on_traces_runs() {
    Page::new("docs/trace.md").run_all(3);
}

#[test]
fn the_page_on_tensors_runs() {
    Page::new("docs/tensor.md").run_all(5);
}

#[test]
fn the_page_on_strategies_runs() {
    Page::new("docs/strategies.md").run_all(3);
}

#[test]
fn the_page_on_operators_runs() {
    Page::new("docs/operators.md").run_all(3);
}

#[test]
fn the_page_on_checking_runs() {
    Page::new("docs/checking.md").run_all(1);
}

#[test]
fn the_page_on_exports_runs() {
    Page::new("docs/export.md").run_all(5);
}

#[test]
fn the_page_on_devices_runs() {
    Page::new("docs/devices.md").run_all(7);
}

/// A page, and a folder in which its commands run.
struct Page {
    name: &'static str,
    place: Place,
    gpu: bool,
}

impl Page {
    fn new(name: &'static str) -> Page {
        let page = Page { name, place: Place::new(), gpu: warploom::runtime::Gpu::new(0).is_ok() };
        for folder in ["apps", "docs", "crates"] {
            link(&repository().join(folder), &page.place.path(folder));
        }
        page.make_programs();
        page.make_files();
        page
    }

    /// Runs all commands of the page, of which there are at least so many.
    fn run_all(&self, at_least: usize) {
        let commands = commands(&fs::read_to_string(repository().join(self.name)).unwrap());
        assert!(commands.len() >= at_least, "{}: {commands:#?}", self.name);
        commands.iter().for_each(|command| self.run(command));
    }

    fn run(&self, line: &str) {
        let Some(command) = prepared(line) else { return };
        let path = std::env::join_paths(
            std::iter::once(self.place.path("bin"))
                .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
        );
        let mut shell = Command::new("bash");
        shell.args(["-c", &command]).current_dir(self.place.path("")).env("PATH", path.unwrap());
        shell.env("WARPLOOM_CACHE_DIR", "");
        let ran = Ran::from(shell.output().unwrap());
        let said = format!("{}: {line}\nran as: {command}\n{}{}", self.name, ran.out, ran.err);
        assert!(!ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}'), "{said}");
        if needs_gpu(&command) && !self.gpu {
            assert_eq!(ran.code, 4, "{said}");
            assert!(ran.err.starts_with("error: ") && ran.err.contains("driver"), "{said}");
        } else {
            assert_eq!(ran.code, 0, "{said}");
        }
    }

    /// The program itself, and what stands for others.
    fn make_programs(&self) {
        fs::create_dir(self.place.path("bin")).unwrap();
        link(Path::new(env!("CARGO_BIN_EXE_warploom")), &self.place.path("bin/warploom"));
        fs::create_dir(self.place.path("cuda")).unwrap();
        write_stub(&self.place.path("cuda"));
        self.script("dot", "cat");
        // Rust links with a C compiler, so there is one. The library is the stub's.
        for (name, compiler) in [("gcc", "${CC:-cc}"), ("g++", "${CXX:-c++}")] {
            let text = "stub=\"$(dirname \"$0\")/../cuda\"; arguments=(); for argument; do
               case \"$argument\" in -lcuda) arguments+=(-x none \"$stub/cuda.o\");; *) arguments+=(\"$argument\");; esac
             done; ${CC:-cc} -c \"$stub/cuda.c\" -o \"$stub/cuda.o\" &&
             exec COMPILER -I\"$stub\" -Wall -Wextra -Werror \"${arguments[@]}\"";
            self.script(name, &text.replace("COMPILER", compiler));
        }
    }

    fn script(&self, name: &str, text: &str) {
        let path = self.place.path("bin").join(name);
        fs::write(&path, format!("#!/usr/bin/env bash\n{text}\n")).unwrap();
        let made = Command::new("chmod").arg("+x").arg(&path).status().unwrap();
        assert!(made.success());
    }

    /// The files that commands read.
    fn make_files(&self) {
        let photo =
            Buffer::from_fn(Region::of_extents(&[60, 40, 3]), |at| (at[0] * at[1] % 251) as u8).unwrap();
        let photo = picture::write_to(&photo, picture::Format::Png).unwrap();
        fs::write(self.place.path("photo.png"), photo).unwrap();
        fs::write(self.place.path("mine.json"), blur().to_json()).unwrap();
        let mv = "def mv(float(M,K) A, float(K) x) -> (C) { C(i) +=! A(i,k) * x(k) }";
        fs::write(self.place.path("mv.tc"), mv).unwrap();
        for file in ["my_program.c", "my_program.cpp"] {
            fs::write(self.place.path(file), MY_PROGRAM).unwrap();
        }
    }
}

/// The pipeline of the README.
fn blur() -> Pipeline {
    let (x, y) = vars!(x, y);
    let edge = Input::f32("input", 2).repeat_edge();
    let blur_x = func("blur_x", (x, y), (edge.at((x - 1, y)) + edge.at((x, y)) + edge.at((x + 1, y))) / 3.0);
    let blur_y =
        func("blur_y", (x, y), (blur_x.at((x, y - 1)) + blur_x.at((x, y)) + blur_x.at((x, y + 1))) / 3.0);
    Pipeline::new("blur", [blur_y]).unwrap()
}

/// What a user might write.
const MY_PROGRAM: &str = "
#include \"unsharp.h\"
int main(void)
{
    unsharp_pipeline *pipeline;
    if (unsharp_create(&pipeline, NULL) != CUDA_SUCCESS) return 1;
    return unsharp_destroy(pipeline) != CUDA_SUCCESS;
}
";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn link(from: &Path, to: &Path) {
    std::os::unix::fs::symlink(from, to).unwrap();
}

/// The lines of all blocks marked `sh`, without comments.
fn commands(text: &str) -> Vec<String> {
    let mut inside = false;
    let mut commands = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```sh";
        } else if inside {
            let command = line.split("  #").next().unwrap_or_default();
            let command = command.split(" # ").next().unwrap_or_default().trim();
            commands.extend((!command.is_empty()).then(|| command.to_owned()));
        }
    }
    commands
}

/// The commands of all blocks marked `console`, each with its output.
fn shown(text: &str) -> Vec<(String, String)> {
    let mut shown: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match (line.starts_with("```"), inside, line.strip_prefix("$ ")) {
            (true, ..) => inside = line == "```console",
            (false, true, Some(command)) => shown.push((command.to_owned(), String::new())),
            (false, true, None) => {
                if let Some((_, output)) = shown.last_mut() {
                    *output += &format!("{line}\n");
                }
            }
            (false, false, _) => {}
        }
    }
    shown
}

/// The command as it is run here; `None` if it is not.
fn prepared(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (program, rest) = match words.as_slice() {
        ["cargo", "run", ..] => ("warploom", line.split_once(" -- ").unwrap().1),
        ["cargo", "test" | "install" | "doc", ..] => return None,
        [program @ ("warploom" | "gcc" | "g++" | "printf"), ..] => {
            (*program, line.split_once(' ').unwrap().1)
        }
        _ => panic!("`{line}` is in a document, and nothing here says how to run it"),
    };
    if program != "warploom" {
        return Some(line.to_owned());
    }
    let (command, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    if TRAINING.contains(&command) && !cfg!(feature = "train") {
        return None;
    }
    let mut rest = rest.to_owned();
    SMALLER.iter().for_each(|(long, short)| rest = rest.replace(long, short));
    Some(format!("warploom {command} {} {rest}", more(command, &rest)))
}

/// What a command gets besides, but for what it says itself.
fn more(command: &str, rest: &str) -> String {
    let command = if rest.contains(OPERATORS) { OPERATORS } else { command };
    let Some((_, more)) = MORE.iter().find(|(known, _)| *known == command) else { return String::new() };
    let flags = more.split("--").filter(|flag| !flag.is_empty());
    let said = |flag: &str| rest.contains(&format!("--{} ", flag.split(' ').next().unwrap_or_default()));
    let asked = flags.filter(|flag| !said(flag)).map(|flag| format!("--{}", flag.trim()));
    asked.collect::<Vec<_>>().join(" ")
}

fn needs_gpu(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let plain = |flag: &str| !words.contains(&flag);
    match words[..] {
        ["warploom", "bench" | "collect", ..] => true,
        ["warploom", "devices", ..] => plain("--presets") && plain("--describe"),
        _ => command.contains("--on cuda"),
    }
}

#[test]
fn commands_are_found_and_made_smaller() {
    let text =
        "words\n```sh\nwarploom apps   # all\n\nwarploom run x --param 'a#b'\n```\n```text\nnothing\n```\n";
    assert_eq!(commands(text), ["warploom apps", "warploom run x --param 'a#b'"]);
    let console = "```console\n$ warploom apps\none\n\ntwo\n$ warploom graph x\n```\nwords\n";
    let expected = [("warploom apps", "one\n\ntwo\n"), ("warploom graph x", "")];
    assert_eq!(shown(console), expected.map(|(command, output)| (command.to_owned(), output.to_owned())));
    assert_eq!(prepared("cargo test --workspace"), None);
    let tune = prepared("warploom tune harris --iterations 20 --samples 3").unwrap();
    assert!(
        tune.starts_with("warploom tune --fake fake --beam 4")
            && tune.ends_with("harris --iterations 2 --samples 3"),
        "{tune}"
    );
    let compile = prepared("cargo run --release -p warploom-cli -- compile unsharp -o out").unwrap();
    assert_eq!(compile, "warploom compile  unsharp -o out");
    assert!(std::panic::catch_unwind(|| prepared("make world")).is_err());
}
