//! What can be wrong with a database, as sentences.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use thiserror::Error;
use warploom_lang::PipelineError;
use warploom_lang::files::{FIELD, ReadError};

use super::schema::SCHEMA;
use crate::sample::ShardError;

/// Why records could not be read or written. What was committed before is kept in every case.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordsError {
    /// The file is not there, or may not be read or written.
    #[error("cannot open the records {}: {message}; check the path and who may write there", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        message: String,
    },
    /// The file is something else.
    #[error("{} is not a database of records; give another file", path.display())]
    NotRecords {
        /// The file.
        path: PathBuf,
    },
    /// The file holds something that this program did not put there and that might change what is read or written.
    #[error(
        "the records {} hold a {kind} `{name}` that is not Warploom's; remove it with `sqlite3`, or give another file",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// `table`, `index`, `view` or `trigger`.
        kind: String,
        /// Its name.
        name: String,
    },
    /// The file is on a file system that several machines may use, on which databases are damaged.
    #[error(
        "the records {} are on a file system of a network ({kind}), where a database can be damaged; keep one on a disk of \
         each machine, and exchange trials with `warploom records export` and `import`",
        path.display()
    )]
    Network {
        /// The file.
        path: PathBuf,
        /// The kind of file system.
        kind: String,
    },
    /// A later version of this program has written the file.
    #[error(
        "the records {} have schema {found}, and this program reads up to {SCHEMA}; use a newer one",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
    },
    /// The file is damaged.
    #[error(
        "the records {} are damaged ({message}); `sqlite3 {} .recover` saves what can be read",
        path.display(), path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// No space is left.
    #[error(
        "there is no space left for the records {}; everything measured so far is kept: make room and start again",
        path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Another process writes and does not end.
    #[error("another process keeps the records {} locked; end it and start again", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// Anything else that SQLite refuses.
    #[error("the records {} cannot be used: {error}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        error: rusqlite::Error,
    },
    /// A stored pipeline that this program does not read.
    #[error("the records {} hold a pipeline that cannot be read: {error}", path.display())]
    Pipeline {
        /// The file.
        path: PathBuf,
        /// Why.
        error: PipelineError,
    },
    /// A line that holds no trial.
    #[error("line {line} of {} is no record: {message}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
    /// A sample that no trial can be made of.
    #[error("sample {number} of {} is no record: {message}", path.display())]
    Sample {
        /// The file.
        path: PathBuf,
        /// The number of the sample, from 1.
        number: usize,
        /// What is wrong with it.
        message: String,
    },
    /// A file of exported trials that cannot be read or written.
    #[error("{}: {error}; check the path and the free space", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A text or blob that is too long.
    #[error(
        "the records {} have a field of more than {FIELD}, the most that is read or written; remove that row",
        path.display()
    )]
    Field {
        /// The file.
        path: PathBuf,
    },
    /// Exported trials that are more than what is read of them.
    #[error(transparent)]
    Refused(ReadError),
    /// A file of samples that cannot be read or written.
    #[error(transparent)]
    Shard(#[from] ShardError),
}

impl RecordsError {
    /// What an answer of SQLite means for a file.
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
