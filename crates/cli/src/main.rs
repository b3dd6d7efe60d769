//! The `warploom` program over the apps of the suite and the small pipelines beside them.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A search makes and drops many small trees, which this allocator does in less time than the system's.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let apps: Vec<_> = warploom_apps::APPS.iter().chain(&warploom_apps::BASICS).copied().collect();
    warploom_cli::main_with(&apps)
}
