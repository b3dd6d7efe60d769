//! Panics of the compiler, caught and kept as text.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};

thread_local! {
    /// Whether a panic of this thread will be caught.
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    /// What the last panic of this thread said, and where.
    static NOTED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `work`; a panic in it becomes its message.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // Checks can nest: a thread that waits for others may run another check meanwhile.
    let outer = CATCHING.replace(true);
    NOTED.set(None);
    let result = catch_unwind(AssertUnwindSafe(work));
    CATCHING.set(outer);
    result.map_err(|payload| NOTED.take().unwrap_or_else(|| panic_message(&*payload).to_owned()))
}

/// What a panic says.
pub fn panic_message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("something went wrong")
}

/// For a program's panic hook: whether the panic is one that a check will report, so that it need not be printed.
///
/// A hook that calls this also gives [`Failure::Panic`](crate::Failure::Panic) the place of the panic, which is
/// known nowhere else.
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
