//! The `warploom` program over the apps of the suite and the small pipelines beside them.

use std::process::ExitCode;

fn main() -> ExitCode {
    let apps: Vec<_> = warploom_apps::APPS.iter().chain(&warploom_apps::BASICS).copied().collect();
    warploom_cli::main_with(&apps)
}
