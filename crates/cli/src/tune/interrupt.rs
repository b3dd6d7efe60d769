//! The interrupt key.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::voice;

/// What a process gives that was ended by the interrupt key.
const INTERRUPTED: i32 = 130;

static STOP: AtomicBool = AtomicBool::new(false);

/// Becomes true when the interrupt key is pressed; when it is pressed again, the process ends.
pub(crate) fn stop_on_interrupt() -> &'static AtomicBool {
    let handler = || {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
        voice::line(
            "\nfinishing the current trial; everything measured so far is kept. Run the same command to go on.",
        );
    };
    // There is one already if several commands run in one process, and it does the same.
    let _ = ctrlc::set_handler(handler);
    &STOP
}
