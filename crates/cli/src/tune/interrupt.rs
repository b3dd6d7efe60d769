//! Signals that ask a run to end: the interrupt key, and, on Unix, SIGTERM and a terminal that is closed.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::voice;

/// What a process gives that was ended by the interrupt key.
const INTERRUPTED: i32 = 130;

static STOP: AtomicBool = AtomicBool::new(false);

/// Becomes true when the run is to end; when that is asked for again by a signal, the process ends.
pub(crate) fn stop_on_interrupt() -> &'static AtomicBool {
    static LISTENS: Once = Once::new();
    LISTENS.call_once(|| {
        listen(|| {
            if STOP.swap(true, Ordering::Relaxed) {
                std::process::exit(INTERRUPTED);
            }
            voice::line(
                "\nfinishing the current trial; everything measured so far is kept. Run the same command to go on.",
            );
        });
    });
    &STOP
}

/// Ends the run as a signal does.
pub(crate) fn stop() {
    STOP.store(true, Ordering::Relaxed);
}

/// Calls a function at every signal. Where that cannot be done, signals end the process as they always do.
#[cfg(unix)]
fn listen(heard: impl Fn() + Send + 'static) {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    // Who starts the program with `nohup` wants it to go on when the terminal is closed.
    let hangup = (!ignores(SIGHUP)).then_some(SIGHUP);
    if let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup))
    {
        std::thread::spawn(move || signals.forever().for_each(|_| heard()));
    }
}

#[cfg(not(unix))]
fn listen(heard: impl Fn() + Send + 'static) {
    let _ = ctrlc::set_handler(heard);
}

/// Whether the process was told to ignore a signal; not known where there is no `/proc`.
#[cfg(unix)]
fn ignores(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    ignored >> (signal - 1) & 1 == 1
}
