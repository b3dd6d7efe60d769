//! Checks that the inputs and outputs of a pipeline fit in memory, before they are allocated.

use warploom::interp::available_memory;

use crate::error::Error;
use crate::pipeline::Subject;

/// Assumed free memory if the system does not report it, in bytes.
const UNKNOWN: u64 = 64 << 30;

/// Returns an error if the inputs and outputs need more memory than is free.
pub(crate) fn check(subject: &Subject) -> Result<(), Error> {
    let needed = subject.app.compulsory_bytes(&subject.pipeline, &subject.shapes());
    let free = available_memory().unwrap_or(UNKNOWN);
    if needed <= free {
        return Ok(());
    }
    Err(Error::Memory { app: subject.name.clone(), sizes: subject.sizes.to_string(), needed, free })
}
