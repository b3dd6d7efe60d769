//! Catches panics of the compiler and keeps their messages.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};

thread_local! {
    /// Whether a panic in this thread will be caught.
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    /// Message and location of the last panic in this thread.
    static NOTED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `work`; turns a panic into an error with its message, and its location if the panic hook calls
/// [`note_panic`].
///
/// # Errors
/// The message of a panic.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // Checks can nest: a thread that waits for others may run another check in the meantime.
    let outer = CATCHING.replace(true);
    NOTED.set(None);
    let result = catch_unwind(AssertUnwindSafe(work));
    CATCHING.set(outer);
    result.map_err(|payload| NOTED.take().unwrap_or_else(|| panic_message(&*payload).to_owned()))
}

/// The message of a panic.
pub fn panic_message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("something went wrong")
}

/// For a program's panic hook: returns whether a check will report the panic, so that the hook need
/// not print it.
///
/// A hook that calls this also provides [`Failure::Panic`](crate::Failure::Panic) with the location
/// of the panic, which is not available otherwise.
///
/// ```
/// std::panic::set_hook(Box::new(|panic| {
///     if !warploom_fuzz::note_panic(panic) {
///         eprintln!("{panic}");
///     }
/// }));
/// ```
pub fn note_panic(panic: &PanicHookInfo<'_>) -> bool {
    let catching = CATCHING.get();
    if catching {
        let message = panic_message(panic.payload());
        let place = panic.location().map(|place| format!(" ({}:{})", place.file(), place.line()));
        NOTED.set(Some(format!("{message}{}", place.unwrap_or_default())));
    }
    catching
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message() {
        assert_eq!(catch(|| 7), Ok(7));
        assert_eq!(catch(|| -> u32 { panic!("number {}", 3) }), Err("number 3".to_owned()));
        assert!(!CATCHING.get());
    }
}
