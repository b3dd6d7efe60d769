//! The `warploom` program over the apps of the suite.

use std::process::ExitCode;

fn main() -> ExitCode {
    warploom_cli::main_with(&warploom_apps::APPS)
}
