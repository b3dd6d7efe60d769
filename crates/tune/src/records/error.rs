//! Errors of the records database.

use std::error::Error as StdError;
use std::io;
use std::path::PathBuf;

use thiserror::Error;
use warploom_lang::PipelineError;
use warploom_lang::files::{FIELD, ReadError};

use super::store::Unreadable;
use super::{RecordsPlace, SCHEMA};
use crate::sample::ShardError;

/// Why records could not be read or written. Trials committed earlier are never lost.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordsError {
    /// The file does not exist, or cannot be read or written.
    #[error("cannot open the records {place}: {message}; check the path and its permissions")]
    Open {
        /// The database.
        place: RecordsPlace,
        /// The message from SQLite or the operating system.
        message: String,
    },
    /// The file is not a records database.
    #[error("{place} is not a database of records; give another one")]
    NotRecords {
        /// The place that was opened.
        place: RecordsPlace,
    },
    /// The file contains a schema object that Warploom did not create and that might change what is
    /// read or written.
    #[error(
        "the records {place} contain a {kind} `{name}` that is not Warploom's; remove it, or give another database"
    )]
    Foreign {
        /// The database.
        place: RecordsPlace,
        /// `table`, `index`, `view` or `trigger`.
        kind: String,
        /// Name of the schema object.
        name: String,
    },
    /// The file is on a file system that several machines can mount, where SQLite databases get
    /// corrupted.
    #[error(
        "the records {place} are on a network file system ({kind}), where a database can be damaged; keep them on a \
         local disk, or on a PostgreSQL server that all machines use"
    )]
    Network {
        /// The database.
        place: RecordsPlace,
        /// File system type as Linux names it.
        kind: String,
    },
    /// The address of a server where a file is required.
    #[error(
        "`{scheme}` begins the address of a server, and this takes the path of a file (./{scheme}... is one)"
    )]
    OfServer {
        /// Its scheme. The rest may contain a password.
        scheme: &'static str,
    },
    /// A newer version of Warploom wrote the file.
    #[error(
        "the records {place} have schema {found}, but this program reads up to {SCHEMA}; use a newer program"
    )]
    Newer {
        /// The database.
        place: RecordsPlace,
        /// Schema version of the file.
        found: i64,
    },
    /// The file is corrupt.
    #[error(
        "the records {place} are damaged ({message}); `sqlite3 {place} .recover` recovers what can be read"
    )]
    Damaged {
        /// The database.
        place: RecordsPlace,
        /// The corrupt part.
        message: String,
    },
    /// The disk is full.
    #[error(
        "there is no space left for the records {place}; everything measured so far is kept: free some space and start \
         again"
    )]
    Full {
        /// The database.
        place: RecordsPlace,
    },
    /// Another process holds the write lock for too long.
    #[error("another process keeps the records {place} locked; end it and start again")]
    Locked {
        /// The database.
        place: RecordsPlace,
    },
    /// Any other error of the database.
    #[error("the records {place} cannot be used: {error}")]
    Store {
        /// The database.
        place: RecordsPlace,
        /// The error of SQLite or PostgreSQL.
        error: Box<dyn StdError + Send + Sync>,
    },
    /// The server cannot be reached, or refuses the connection.
    #[error("cannot use the records {place}: {message}")]
    Server {
        /// The server.
        place: RecordsPlace,
        /// The reason, and the remedy.
        message: String,
    },
    /// Another process has taken over the work of this one, so its writes no longer count.
    #[error("another process has taken over what this one did for {place}")]
    Overtaken {
        /// The server.
        place: RecordsPlace,
    },
    /// A row that this version cannot read.
    #[error(
        "the records {place} have a row that cannot be read: {message}; remove it, or give another database"
    )]
    Row {
        /// The database.
        place: RecordsPlace,
        /// The problem with it.
        message: String,
    },
    /// A stored pipeline that this version cannot read.
    #[error("the records {place} contain a pipeline that cannot be read: {error}")]
    Pipeline {
        /// The database.
        place: RecordsPlace,
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
    #[error("the records {place} have a field of more than {FIELD}, which is the limit; remove that row")]
    Field {
        /// The database.
        place: RecordsPlace,
    },
    /// The file being imported exceeds the size limit.
    #[error(transparent)]
    Refused(ReadError),
    /// A sample file cannot be read or written.
    #[error(transparent)]
    Shard(#[from] ShardError),
}

impl RecordsError {
    /// The error for a row that cannot be read.
    pub fn unreadable(place: &RecordsPlace, Unreadable(message): Unreadable) -> RecordsError {
        RecordsError::Row { place: place.clone(), message }
    }
}
