//! Tests of the runner itself.

use crate::args::Args;
use crate::file::{FileError, parse};
use crate::run::{self, Summary};

const TESTS: [(&str, fn()); 5] = [
    ("runner: a right file passes and blessing leaves it alone", right_file),
    ("runner: a wrong expectation fails until it is blessed", wrong_expectation),
    ("runner: sections that do not fit fail, blessed or not", sections_that_do_not_fit),
    ("runner: files that are no cases are refused", damaged_files),
    ("runner: options of other test programs are passed over", options),
];

/// Runs those that are wanted; one that fails ends the program.
pub fn run(args: &Args, summary: &mut Summary) {
    for (name, test) in TESTS.iter().filter(|(name, _)| args.wants(name)) {
        if args.list {
            println!("{name}: test");
        } else {
            test();
            summary.passed += 1;
        }
    }
}

/// A file whose expectations are still to be filled in.
const EMPTY: &str = "\
Grids of one tile.

==== line: a block of threads
line inline table
  kernel out  block x 256  threads x 256
---- plan


==== line: no size
line
  kernel out  block x
---- parse errors
";

/// The same with its expectations.
fn right() -> String {
    outcome(EMPTY, true).0.unwrap()
}

/// The new text, if there is one, and how many cases passed, were blessed and failed.
fn outcome(text: &str, bless: bool) -> (Option<String>, [usize; 3]) {
    let mut summary = Summary::default();
    let blessed = run::file("runner", text, &Args::new([], bless), &mut summary);
    (blessed, [summary.passed, summary.blessed, summary.failures.len()])
}

fn right_file() {
    assert_eq!(outcome(&right(), false), (None, [2, 0, 0]));
    assert_eq!(outcome(&right(), true), (None, [2, 0, 0]));
}

fn wrong_expectation() {
    let right = right();
    assert_eq!(outcome(EMPTY, false), (None, [0, 0, 2]));
    assert_eq!(outcome(EMPTY, true), (Some(right.clone()), [0, 2, 0]));
    let more = right.replace("\n\n\n====", "\n  barrier\n\n\n====");
    let other = right.replace("kernel out: ", "kernel in: ");
    for wrong in [more, other] {
        assert_eq!(outcome(&wrong, false), (None, [1, 0, 1]), "{wrong}");
        assert_eq!(outcome(&wrong, true), (Some(right.clone()), [1, 1, 0]), "{wrong}");
    }
}

/// Neither can be blessed: what the case is about has changed.
fn sections_that_do_not_fit() {
    let right = right();
    let stale = [
        right.replace("---- plan", "---- violations"),
        right.replace("---- plan", "---- parse errors"),
        right.replace("---- parse errors", "---- plan"),
        right.replace("  kernel out  block x 256", "  kernel out  block x 256, x 4"),
        right.replace("==== line: a", "==== lime: a"),
        right.replace("==== line: a", "==== program copy: a"),
    ];
    for text in stale {
        for bless in [false, true] {
            assert_eq!(outcome(&text, bless), (None, [1, 0, 1]), "{text}");
        }
    }
}

fn damaged_files() {
    let error = |text: &str| parse(text).unwrap_err();
    assert_eq!(error("Nothing.\n"), FileError::Empty);
    assert_eq!(error(&EMPTY.replace("==== line: no", "==== line, no")), FileError::Header(9));
    assert_eq!(error(&EMPTY.replace("==== line: no", "=== line: no")), FileError::Header(9));
    assert_eq!(error("---- plan\n"), FileError::Stray(1));
    assert_eq!(error(&EMPTY.replace("---- parse errors", "")), FileError::ExpectsNothing(9));
    assert_eq!(
        error(&format!("{EMPTY}---- parse errors\n")),
        FileError::Twice { line: 13, name: "parse errors" }
    );
    for name in ["plans", "----plan"] {
        let line = EMPTY.replace("---- plan", if name == "plans" { "---- plans" } else { name });
        assert_eq!(error(&line), FileError::Section { line: 6, name: name.to_owned() });
    }
    assert_eq!(outcome("Nothing.\n", true), (None, [0, 0, 1]));
}

fn options() {
    let wants = |args: &str, name: &str| Args::new(args.split(' ').map(str::to_owned), false).wants(name);
    assert!(wants("--nocapture --test-threads 1 --format=pretty -q", "plan/grid: a"));
    assert!(wants("--test-threads 1 grid", "plan/grid: a"));
    assert!(!wants("grid --color always", "plan/barriers: a"));
    assert!(!wants("--skip grid", "plan/grid: a"));
    assert!(!wants("--ignored", "plan/grid: a"));
    assert!(!wants("--exact plan/grid", "plan/grid: a"));
}
