//! Signals that end a run: the interrupt key and, on Unix, SIGTERM and SIGHUP (a closed terminal).

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::voice;

/// The exit code of a process that was interrupted.
const INTERRUPTED: i32 = 130;

static STOP: AtomicBool = AtomicBool::new(false);

/// A flag that becomes true at the first signal. A second signal ends the process at once.
pub(crate) fn stop_on_interrupt() -> &'static AtomicBool {
    stop_and_say(Some(
        "\nfinishing the current trial; everything measured so far is kept. Run the same command to continue.",
    ))
}

/// The same for a worker of a farm, whose run goes on elsewhere.
#[cfg(all(feature = "farm", unix))]
pub(crate) fn stop_working() -> &'static AtomicBool {
    stop_and_say(Some("\nfinishing the current candidates; other workers go on with the rest"))
}

/// The same for a command that has nothing to finish.
pub(crate) fn stop_watching() -> &'static AtomicBool {
    stop_and_say(None)
}

fn stop_and_say(line: Option<&'static str>) -> &'static AtomicBool {
    static LISTENS: Once = Once::new();
    LISTENS.call_once(|| {
        listen(move || {
            if STOP.swap(true, Ordering::Relaxed) {
                std::process::exit(INTERRUPTED);
            }
            line.into_iter().for_each(voice::line);
        });
    });
    &STOP
}

/// Ends the run as the first signal would.
pub(crate) fn stop() {
    STOP.store(true, Ordering::Relaxed);
}

/// Calls a function at every signal. If handlers cannot be installed, signals end the process as
/// usual.
#[cfg(unix)]
fn listen(heard: impl Fn() + Send + 'static) {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    // With `nohup`, the program must keep running when the terminal is closed.
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

/// Whether the process ignores a signal; `false` if there is no `/proc`.
#[cfg(unix)]
fn ignores(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    ignored >> (signal - 1) & 1 == 1
}
