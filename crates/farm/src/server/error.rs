//! Why a private server could not be started or stopped.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::programs::OLDEST;
use crate::farm_file::FarmFileError;

/// Why a private server could not be started or stopped. No message contains a password.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServerError {
    /// PostgreSQL's server is not installed, or too old.
    #[error(
        "cannot find `initdb`, `pg_ctl` and `postgres` of PostgreSQL {OLDEST} or newer (looked in {looked}); install the \
         server (Debian, Ubuntu: `apt install postgresql`), or add the folder of its programs to PATH"
    )]
    Programs {
        /// The searched places.
        looked: String,
    },
    /// The data was written by a PostgreSQL that is not installed.
    #[error(
        "the database in {} was made by PostgreSQL {data}, and only {installed} can be found; install PostgreSQL \
         {data}, or give another folder",
        folder.display()
    )]
    Version {
        /// The farm's folder.
        folder: PathBuf,
        /// Major version of the data.
        data: String,
        /// Major versions that are installed.
        installed: String,
    },
    /// Started by root, on a system without any user for servers.
    #[error(
        "PostgreSQL does not run as root, and there is no user `postgres` or `nobody`; start it as another user"
    )]
    NoUser,
    /// The server's user cannot enter the folder.
    #[error(
        "the server runs as the user `{user}`, who cannot enter {}; run `chmod o+x` on that folder, or give a folder \
         elsewhere, for example below /var/lib",
        folder.display()
    )]
    Untraversable {
        /// The server's user.
        user: String,
        /// The outermost folder that the user cannot enter.
        folder: PathBuf,
    },
    /// The path has a line break or similar character, which PostgreSQL's own files cannot contain.
    #[error("the path {path:?} contains a control character; give another folder")]
    Path {
        /// The folder that was given.
        path: PathBuf,
    },
    /// The folder contains something else.
    #[error("the folder {} contains files that are not a farm's; give a new or an empty folder", folder.display())]
    Foreign {
        /// The folder that was given.
        folder: PathBuf,
    },
    /// The folder is another user's.
    #[error("the folder {} belongs to another user; run this as that user, or give another folder", folder.display())]
    Owner {
        /// The folder that was given.
        folder: PathBuf,
    },
    /// The address to listen on is invalid.
    #[error("cannot listen on `{}`: {reason}", address.escape_debug())]
    Listen {
        /// The text that was given.
        address: String,
        /// The problem, and the remedy.
        reason: String,
    },
    /// Another machine may be using the data.
    #[error(
        "the server in {} was started on the machine `{}` and was not stopped; stop it there, and if it no longer runs, \
         remove {}",
        folder.display(),
        machine.escape_debug(),
        folder.join("data/postmaster.pid").display()
    )]
    OtherMachine {
        /// The farm's folder.
        folder: PathBuf,
        /// Name of that machine.
        machine: String,
    },
    /// The running server was started with other options.
    #[error(
        "the server in {} already runs with other options ({options}); stop it first with `warploom farm stop`, or \
         leave out `--listen` and the number of connections",
        folder.display()
    )]
    Running {
        /// The farm's folder.
        folder: PathBuf,
        /// The options that it runs with.
        options: String,
    },
    /// Another process starts or stops the server.
    #[error("another process is starting or stopping the server in {}; try again later", folder.display())]
    Busy {
        /// The farm's folder.
        folder: PathBuf,
    },
    /// A file next to the data is damaged or lost.
    #[error("{} is missing or damaged; restore it, or give a new folder", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// A program of PostgreSQL failed.
    #[error("`{program}` failed: {message}; see {}", log.display())]
    Failed {
        /// Name of the program.
        program: &'static str,
        /// The end of its output, or of the server's.
        message: String,
        /// The folder of the server's log.
        log: PathBuf,
    },
    /// The server did not accept connections in time.
    #[error(
        "the server in {} does not accept connections after {seconds} s; it may be recovering, so try again later \
         ({} says what it does), or if no such process exists, remove {}",
        folder.display(),
        folder.join("log").display(),
        folder.join("data/postmaster.pid").display()
    )]
    Late {
        /// The farm's folder.
        folder: PathBuf,
        /// The time limit.
        seconds: u64,
    },
    /// A certificate could not be made.
    #[error("cannot make a certificate for `{}`: {message}; give another address", host.escape_debug())]
    Certificate {
        /// The host that was given.
        host: String,
        /// The library's message.
        message: String,
    },
    /// A file or folder cannot be read or written.
    #[error("cannot use {}: {error}; check the path and its permissions", path.display())]
    Io {
        /// The file, folder or program.
        path: PathBuf,
        /// The operating system's message.
        error: io::Error,
    },
    /// A farm file cannot be read or written.
    #[error(transparent)]
    FarmFile(#[from] FarmFileError),
}

/// Adds the path of the file to an error of the operating system.
pub(super) trait At<T> {
    /// Adds the path.
    fn at(self, path: &Path) -> Result<T, ServerError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T, ServerError> {
        self.map_err(|error| ServerError::Io { path: path.to_path_buf(), error })
    }
}
