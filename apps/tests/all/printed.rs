//! The CUDA text of hand-written schedules, pinned.

use warploom::codegen::build::build;
use warploom::codegen::printer::{Build, PRINTER};

use crate::common::{hand_written, problem};

fn printed(name: &str, width: f64, height: f64) -> String {
    let app = warploom_apps::find(name).expect("it is an app");
    let problem = problem(app, &[("W", width), ("H", height)]);
    let program = build(&problem, &hand_written(problem.pipeline()));
    PRINTER.print(&program.expect("the schedule is legal"), Build::Timing)
}

/// Sizes that the tiles divide: no guards.
#[test]
fn unsharp() {
    insta::assert_snapshot!(printed("unsharp", 1536.0, 2560.0));
}

/// Sizes that they do not: blocks inside the image still run without guards.
#[test]
fn blur() {
    insta::assert_snapshot!(printed("blur", 1000.0, 700.0));
}
