//! The names of variables, which live as long as the program, so that variables can be copied.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The stored copy of a name; each distinct name is stored once.
pub(crate) fn kept(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let stored: &'static str = Box::leak(name.into());
    names.insert(stored);
    stored
}
