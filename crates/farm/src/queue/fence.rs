//! Records that only the current holder of a task can write.

use warploom_tune::records::{Change, RecordsError, RecordsPlace, Row, Store, Value, Work};
use warploom_tune::values;

use crate::address::Address;
use crate::store::Postgres;

/// A condition that must hold in the transaction of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fence {
    /// No other process has taken over a run.
    Run {
        /// The run.
        run: i64,
        /// The number of this process's turn.
        epoch: i64,
    },
    /// No other process has taken over a candidate.
    Candidate {
        /// The candidate.
        candidate: i64,
        /// The number of this process's claim.
        claim: i64,
    },
}

impl Fence {
    /// Holds the condition until the transaction ends.
    ///
    /// # Errors
    /// If another process has taken over.
    pub fn hold(self, change: &mut dyn Change) -> Result<(), RecordsError> {
        let (statement, id, turn) = match self {
            Fence::Run { run, epoch } => {
                ("SELECT 1 FROM runs WHERE id = $1 AND epoch = $2 FOR SHARE", run, epoch)
            }
            Fence::Candidate { candidate, claim } => {
                ("SELECT 1 FROM candidates WHERE id = $1 AND claim = $2 FOR SHARE", candidate, claim)
            }
        };
        match change.query_one(statement, values![id, turn])? {
            Some(_) => Ok(()),
            None => Err(RecordsError::Overtaken { place: change.place().clone() }),
        }
    }
}

/// A store whose every transaction holds a fence.
#[derive(Debug)]
pub struct Fenced {
    store: Postgres,
    fence: Fence,
}

impl Fenced {
    /// Connects to a server.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses the connection.
    pub fn open(address: &Address, fence: Fence) -> Result<Fenced, RecordsError> {
        Ok(Fenced { store: Postgres::open_existing(address)?, fence })
    }
}

impl Store for Fenced {
    fn place(&self) -> &RecordsPlace {
        self.store.place()
    }

    fn read(&self, statement: &str, values: &[Value]) -> Result<Vec<Row>, RecordsError> {
        self.store.read(statement, values)
    }

    fn change(&mut self, work: &mut Work<'_>) -> Result<(), RecordsError> {
        let fence = self.fence;
        self.store.change(&mut |change| {
            fence.hold(change)?;
            work(change)
        })
    }
}
