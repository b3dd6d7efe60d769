//! What holds of any text that the printer prints; the texts themselves are in `filetests/cuda`.

use warploom_codegen::cuda::{Build, print};

use crate::programs;

#[test]
fn long_expressions_are_cut() {
    let text = print(&programs::long(2000), Build::Timing);
    assert!(text.lines().all(|line| line.len() < 220), "{text}");
}

#[test]
fn the_same_program_gives_the_same_text() {
    assert_eq!(print(&programs::blur(), Build::Timing), print(&programs::blur(), Build::Timing));
}
