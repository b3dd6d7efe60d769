//! Why a candidate could not be compiled or run.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::sample::Status;

/// Why a program could not be compiled or run. The variant decides how other candidates proceed.
#[derive(Clone, PartialEq, Eq, Debug, Error, Serialize, Deserialize)]
pub enum Failure {
    /// The compiler, the driver or the device rejected the program.
    #[error("{0}")]
    Refused(String),
    /// It exceeded its time limit and its process was killed.
    #[error("{0}")]
    TimedOut(String),
    /// The process that compiled or ran it exited or sent a corrupt answer. Other candidates
    /// continue in a new process.
    #[error("{0}")]
    Crashed(String),
    /// One of its kernels corrupted the GPU context of this process.
    #[error("{0}")]
    Fault(String),
    /// Unrelated to the program: no program can be compiled or run any more.
    #[error("{0}")]
    Lost(String),
}

impl Failure {
    /// The status recorded for a candidate that failed to compile.
    pub(crate) fn when_compiled(self) -> Status {
        match self {
            Failure::Refused(message) => Status::NotCompiled(message),
            other => other.when_run(),
        }
    }

    /// The status recorded for a candidate that failed to run.
    pub(crate) fn when_run(self) -> Status {
        match self {
            Failure::Refused(message) | Failure::Fault(message) | Failure::Lost(message) => {
                Status::Failed(message)
            }
            Failure::TimedOut(message) => Status::TimedOut(message),
            Failure::Crashed(message) => Status::Crashed(message),
        }
    }
}

impl From<warploom_runtime::Error> for Failure {
    fn from(error: warploom_runtime::Error) -> Failure {
        match error.is_fault() {
            true => Failure::Fault(error.to_string()),
            false => Failure::Refused(error.to_string()),
        }
    }
}
