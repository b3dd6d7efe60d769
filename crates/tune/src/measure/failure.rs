//! Why a candidate could not be compiled or run.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::sample::Status;

/// Why a program could not be compiled or run, and what that means for the others.
#[derive(Clone, PartialEq, Eq, Debug, Error, Serialize, Deserialize)]
pub enum Failure {
    /// The compiler, the driver or the device refused it.
    #[error("{0}")]
    Refused(String),
    /// It took too long and was ended.
    #[error("{0}")]
    TimedOut(String),
    /// The process that compiled or ran it ended, or answered nonsense. Others go on in a new one.
    #[error("{0}")]
    Crashed(String),
    /// A kernel of it broke what this process has of the GPU.
    #[error("{0}")]
    Fault(String),
    /// Not its fault: nothing can be compiled or run any more.
    #[error("{0}")]
    Lost(String),
}

impl Failure {
    /// What is recorded of a candidate that failed when it was compiled.
    pub(crate) fn when_compiled(self) -> Status {
        match self {
            Failure::Refused(message) => Status::NotCompiled(message),
            other => other.when_run(),
        }
    }

    /// What is recorded of a candidate that failed when it ran.
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
