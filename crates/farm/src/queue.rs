//! The queue of a farm: runs, their candidates, and the workers that process them.
//!
//! | module | subject |
//! | --- | --- |
//! | [`workers`] | processes that join and leave |
//! | [`runs`] | pipelines to tune; for each, one process at a time proposes candidates |
//! | [`candidates`] | schedules on their way from a proposal to a trial |
//! | [`code`] | machine code on its way from a compiler to a GPU |
//! | [`fence`] | records that only the current holder of a task can write |
//! | [`paces`] | how fast GPUs of one kind are |
//!
//! A process that takes an item writes its own number beside it, whose advisory lock it holds while it is connected,
//! and increments the item's counter. The claim is void once that lock is gone. Its writes for the item count only if
//! the counter has not changed.

pub mod candidates;
pub mod code;
pub mod fence;
pub mod paces;
pub mod runs;
pub mod workers;

use serde::Serialize;
use warploom_tune::records::{Change, RecordsError, RecordsPlace, Row, Store, Unreadable, Value};

use crate::address::Address;
use crate::store::Postgres;

/// Now, by the server's clock, in seconds since the Unix epoch.
pub(crate) const NOW: &str = "extract(epoch FROM clock_timestamp())::float8";

/// A connection to the queue.
#[derive(Debug)]
pub struct Queue {
    store: Postgres,
}

impl Queue {
    /// Connects to a server, and makes the tables if there are none.
    ///
    /// # Errors
    /// If the server cannot be reached, refuses the connection, or has other tables there.
    pub fn open(address: &Address) -> Result<Queue, RecordsError> {
        Ok(Queue { store: Postgres::open(address)? })
    }

    /// Its place.
    pub fn place(&self) -> &RecordsPlace {
        self.store.place()
    }

    /// The connection.
    pub fn store(&self) -> &Postgres {
        &self.store
    }

    /// Runs `work` in one transaction. It may run more than once.
    fn change<T>(
        &mut self,
        mut work: impl FnMut(&mut dyn Change) -> Result<T, RecordsError>,
    ) -> Result<T, RecordsError> {
        let mut done = None;
        self.store.change(&mut |change| {
            done = Some(work(change)?);
            Ok(())
        })?;
        done.ok_or_else(|| RecordsError::unreadable(self.place(), Unreadable("nothing was done".to_owned())))
    }

    /// The rows of a statement, each read by `read`.
    fn rows<T>(
        &self,
        statement: &str,
        values: &[Value],
        read: impl Fn(&Row) -> Result<T, Unreadable>,
    ) -> Result<Vec<T>, RecordsError> {
        readable(self.place(), &self.store.read(statement, values)?, read)
    }
}

/// The first row of a statement in a transaction, read by `read`.
fn one<T>(
    change: &mut dyn Change,
    statement: &str,
    values: &[Value],
    read: impl Fn(&Row) -> Result<T, Unreadable>,
) -> Result<Option<T>, RecordsError> {
    Ok(all(change, statement, values, read)?.into_iter().next())
}

/// The rows of a statement in a transaction, each read by `read`.
fn all<T>(
    change: &mut dyn Change,
    statement: &str,
    values: &[Value],
    read: impl Fn(&Row) -> Result<T, Unreadable>,
) -> Result<Vec<T>, RecordsError> {
    let rows = change.query(statement, values)?;
    readable(change.place(), &rows, read)
}

fn readable<T>(
    place: &RecordsPlace,
    rows: &[Row],
    read: impl Fn(&Row) -> Result<T, Unreadable>,
) -> Result<Vec<T>, RecordsError> {
    let read: Result<Vec<T>, Unreadable> = rows.iter().map(read).collect();
    read.map_err(|error| RecordsError::unreadable(place, error))
}

/// A value as JSON. All stored values have text keys.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
