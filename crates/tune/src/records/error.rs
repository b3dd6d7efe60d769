//! Errors of the records database.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use thiserror::Error;
use warploom_lang::PipelineError;
use warploom_lang::files::{FIELD, ReadError};

use super::schema::SCHEMA;
use crate::sample::ShardError;

/// Why records could not be read or written. Trials committed earlier are never lost.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordsError {
    /// The file does not exist, or cannot be read or written.
    #[error("cannot open the records {}: {message}; check the path and its permissions", path.display())]
    Open {
        /// The database file.
        path: PathBuf,
        /// The message from SQLite or the operating system.
        message: String,
    },
    /// The file is not a records database.
    #[error("{} is not a database of records; give another file", path.display())]
    NotRecords {
        /// The file that was opened.
        path: PathBuf,
    },
    /// The file contains a schema object that Warploom did not create and that might change what is
    /// read or written.
    #[error(
        "the records {} contain a {kind} `{name}` that is not Warploom's; remove it with `sqlite3`, or give another file",
        path.display()
    )]
    Foreign {
        /// The database file.
        path: PathBuf,
        /// `table`, `index`, `view` or `trigger`.
        kind: String,
        /// Name of the schema object.
        name: String,
    },
    /// The file is on a file system that several machines can mount, where SQLite databases get
    /// corrupted.
    #[error(
        "the records {} are on a network file system ({kind}), where a database can be damaged; keep one on a local \
         disk of each machine, and exchange trials with `warploom records export` and `import`",
        path.display()
    )]
    Network {
        /// The database file.
        path: PathBuf,
        /// File system type as Linux names it.
        kind: String,
    },
    /// The address of a database server, which a later version may use.
    #[error(
        "records are kept in files, and `{scheme}` is reserved for a later version; give the path of a file \
         (./{scheme}... is one)"
    )]
    Reserved {
        /// How it begins. The rest may contain a password.
        scheme: &'static str,
    },
    /// A newer version of Warploom wrote the file.
    #[error(
        "the records {} have schema {found}, but this program reads up to {SCHEMA}; use a newer program",
        path.display()
    )]
    Newer {
        /// The database file.
        path: PathBuf,
        /// Schema version of the file.
        found: i64,
    },
    /// The file is corrupt.
    #[error(
        "the records {} are damaged ({message}); `sqlite3 {} .recover` recovers what can be read",
        path.display(), path.display()
    )]
    Damaged {
        /// The database file.
        path: PathBuf,
        /// What is corrupt.
        message: String,
    },
    /// The disk is full.
    #[error(
        "there is no space left for the records {}; everything measured so far is kept: free some space and start again",
        path.display()
    )]
    Full {
        /// The database file.
        path: PathBuf,
    },
    /// Another process holds the write lock for too long.
    #[error("another process keeps the records {} locked; end it and start again", path.display())]
    Locked {
        /// The database file.
        path: PathBuf,
    },
    /// Any other SQLite error.
    #[error("the records {} cannot be used: {error}", path.display())]
    Sqlite {
        /// The database file.
        path: PathBuf,
        /// The error from SQLite.
        error: rusqlite::Error,
    },
    /// A stored pipeline that this version cannot read.
    #[error("the records {} contain a pipeline that cannot be read: {error}", path.display())]
    Pipeline {
        /// The database file.
        path: PathBuf,
        /// Why the pipeline cannot be read.
        error: PipelineError,
    },
    /// An imported line that is not a valid record.
    #[error("line {line} of {} is not a record: {message}", path.display())]
    Line {
        /// The file being imported.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// Why the line is invalid.
        message: String,
    },
    /// An imported sample that is not a valid trial.
    #[error("sample {number} of {} is not a record: {message}", path.display())]
    Sample {
        /// The sample file being imported.
        path: PathBuf,
        /// Sample number, from 1.
        number: usize,
        /// Why the sample is invalid.
        message: String,
    },
    /// An exported file cannot be read or written.
    #[error("{}: {error}; check the path and the free space", path.display())]
    File {
        /// The file being imported or exported.
        path: PathBuf,
        /// The error from the operating system.
        error: io::Error,
    },
    /// A text or blob exceeds the size limit.
    #[error(
        "the records {} have a field of more than {FIELD}, which is the limit; remove that row",
        path.display()
    )]
    Field {
        /// The database file.
        path: PathBuf,
    },
    /// The file being imported exceeds the size limit.
    #[error(transparent)]
    Refused(ReadError),
    /// A sample file cannot be read or written.
    #[error(transparent)]
    Shard(#[from] ShardError),
}

impl RecordsError {
    /// Classifies an SQLite error for a file.
    pub(super) fn of(path: &Path, error: rusqlite::Error) -> RecordsError {
        let path = path.to_path_buf();
        let message = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => RecordsError::NotRecords { path },
            Some(ErrorCode::DatabaseCorrupt) => RecordsError::Damaged { path, message },
            Some(ErrorCode::TooBig) => RecordsError::Field { path },
            Some(ErrorCode::DiskFull) => RecordsError::Full { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => RecordsError::Locked { path },
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                RecordsError::Open { path, message }
            }
            _ => RecordsError::Sqlite { path, error },
        }
    }
}
