//! Writes the results of GPUs in the background.

use std::iter;
use std::sync::mpsc::Receiver;

use super::WorkError;
use super::agent::Agent;
use crate::queue::candidates::{BATCH, Done};

/// An entry to write.
pub(super) enum Entry {
    /// The work on a candidate has begun.
    Begun {
        /// The candidate.
        candidate: i64,
        /// The number of this claim.
        claim: i64,
    },
    /// It has a trial.
    Done(Box<Done>),
}

/// Writes entries until all senders are gone: all that have arrived since the last time at once.
pub(super) fn record(agent: &Agent<'_>, entries: &Receiver<Entry>) -> Result<(), WorkError> {
    while let Ok(first) = entries.recv() {
        let (mut begun, mut done) = (Vec::new(), Vec::new());
        for entry in iter::once(first).chain(entries.try_iter().take(BATCH - 1)) {
            match entry {
                Entry::Begun { candidate, claim } => begun.push((candidate, claim)),
                Entry::Done(trial) => done.push(*trial),
            }
        }
        if !done.is_empty() {
            agent.record(&done)?;
        }
        begun.retain(|(candidate, _)| done.iter().all(|done| done.taken.id != *candidate));
        for (candidate, claim) in begun {
            // If the claim is lost, its trial will not count.
            agent.queue().start(candidate, claim)?;
        }
    }
    Ok(())
}
