//! The `warploom` program with the apps of the suite and a few small pipelines.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A search allocates and frees many small trees, which is faster with this allocator than with the
/// system's.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let apps: Vec<_> = warploom_apps::APPS.iter().chain(warploom_apps::BASICS.iter()).cloned().collect();
    warploom_cli::main_with(&apps)
}
