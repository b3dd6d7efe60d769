//! Why workers could not be started.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why workers could not be started. No message contains a password.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A URL in place of a farm file.
    #[error(
        "workers cannot be given a URL, because others can read arguments and the scripts of jobs; give a farm file \
         with the URL in it"
    )]
    Url,
    /// A path that cannot be written into a command.
    #[error(
        "the path {path:?} cannot stand in a command or a job script: it is empty, not UTF-8 or contains a control \
         character; give another path"
    )]
    Path {
        /// The path that was given.
        path: PathBuf,
    },
    /// A path that Slurm would read as something else.
    #[error(
        "the path {path:?} contains `%`, `\\` or `\"`, which have a meaning in the names of Slurm's logs; give another \
         folder"
    )]
    SlurmPath {
        /// The folder that was given.
        path: String,
    },
    /// A program that would be taken for an option.
    #[error("`{}` cannot be the workers' program, because it begins with `-`; give a path", program.escape_debug())]
    Program {
        /// The program that was given.
        program: String,
    },
    /// The text is not a list of roles.
    #[error(
        "`{}` is no list of roles; give `all`, or some of `propose`, `compile` and `run` with commas between them",
        text.escape_debug()
    )]
    Roles {
        /// The text that was given.
        text: String,
    },
    /// The text does not contain the numbers of tasks.
    #[error("cannot read the tasks `{}`: {reason}", text.escape_debug())]
    Tasks {
        /// The text that was given.
        text: String,
        /// The problem, and the remedy.
        reason: String,
    },
    /// The text is not an option of `sbatch`.
    #[error("cannot give `{}` to sbatch: {reason}", text.escape_debug())]
    SbatchOption {
        /// The text that was given.
        text: String,
        /// The problem, and the remedy.
        reason: &'static str,
    },
    /// The file of hosts cannot be read.
    #[error("cannot read the hosts in {}: {error}; check the path and its permissions", path.display())]
    Hosts {
        /// The file.
        path: PathBuf,
        /// The operating system's message.
        error: io::Error,
    },
    /// The file of hosts is empty.
    #[error("{} names no host; write one on each line", path.display())]
    NoHosts {
        /// The file.
        path: PathBuf,
    },
    /// A line of the file of hosts is wrong.
    #[error("{}:{line}: {reason}", path.display())]
    Host {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// The problem, and the remedy.
        reason: String,
    },
    /// A program that starts workers is not installed.
    #[error("cannot find the program `{}`; {advice}", program.display())]
    Missing {
        /// The program.
        program: PathBuf,
        /// The remedy.
        advice: &'static str,
    },
    /// A file, folder or program cannot be used.
    #[error("cannot use {}: {error}; check the path and its permissions", path.display())]
    Io {
        /// The file, folder or program.
        path: PathBuf,
        /// The operating system's message.
        error: io::Error,
    },
    /// The scheduler's list of GPUs is malformed.
    #[error("cannot read the list of GPUs in {variable}: {reason}")]
    Given {
        /// The environment variable.
        variable: &'static str,
        /// The problem, and the remedy.
        reason: String,
    },
    /// The driver shows fewer GPUs than were given.
    #[error("{variable} names {}, and the driver shows {visible}; {advice}", counted(*given))]
    Visible {
        /// The environment variable.
        variable: &'static str,
        /// Number of GPUs that it names.
        given: usize,
        /// Number of GPUs that the driver shows.
        visible: usize,
        /// The remedy.
        advice: &'static str,
    },
}

/// A number of GPUs.
fn counted(gpus: usize) -> String {
    if gpus == 1 { "1 GPU".to_owned() } else { format!("{gpus} GPUs") }
}

/// Adds the path of the file to an error of the operating system.
pub(super) trait At<T> {
    /// Adds the path.
    fn at(self, path: &Path) -> Result<T, LaunchError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T, LaunchError> {
        self.map_err(|error| match error.kind() {
            // An empty path has no absolute one.
            io::ErrorKind::InvalidInput => LaunchError::Path { path: path.to_path_buf() },
            _ => LaunchError::Io { path: path.to_path_buf(), error },
        })
    }
}
