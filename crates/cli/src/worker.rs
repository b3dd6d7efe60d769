//! `warploom worker`: the processes in which tuning compiles and runs kernels.

use warploom::tune::worker::Assignment;

use crate::error::Error;

/// Compile or run kernels for another process; internal
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What to do
    #[arg(required = true)]
    assignment: Vec<String>,
}

/// Works until the parent process closes the pipe.
pub(crate) fn worker(arguments: &Arguments) -> Result<(), Error> {
    let assignment = Assignment::parse(&arguments.assignment).map_err(Error::Assignment)?;
    Ok(assignment.serve()?)
}
