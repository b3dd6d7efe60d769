//! What holds of any text that the printer prints; the texts themselves are in `filetests/cuda`.

use warploom_codegen::printer::{Build, PRINTER};

use crate::programs;

#[test]
fn long_expressions_are_cut() {
    let text = PRINTER.print(&programs::long(2000), Build::Timing);
    assert!(text.lines().all(|line| line.len() < 220), "{text}");
}

#[test]
fn the_same_program_gives_the_same_text() {
    assert_eq!(
        PRINTER.print(&programs::blur(), Build::Timing),
        PRINTER.print(&programs::blur(), Build::Timing)
    );
}

#[test]
fn shuffles_are_of_the_whole_warp() {
    let text = PRINTER.print(&programs::shuffles(), Build::Checking);
    let line =
        "const float next_3 = __shfl_sync(0xffffffffu, in_f32[block_x * 64 + thread], (thread + 1) & 31);";
    assert!(text.contains(line), "{text}");
    assert_eq!(text.matches("__shfl_sync").count(), 6, "{text}");
}
