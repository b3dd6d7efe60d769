//! The database schema.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use super::BUSY;
use super::error::RecordsError;

/// Version of the schema.
pub(super) const SCHEMA: i64 = 2;

/// SQLite application id of a records database: "WPLM".
const APPLICATION: i64 = 0x5750_4c4d;

const TABLES: &str = "
CREATE TABLE pipelines (
    hash TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    -- A version, one byte, and the pipeline's JSON, compressed by Brotli.
    content BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE problems (
    id INTEGER PRIMARY KEY,
    pipeline TEXT NOT NULL REFERENCES pipelines,
    -- Boxes of inputs and outputs, and Params, as JSON.
    sizes TEXT NOT NULL,
    device TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    -- Those that machine code depends on.
    versions TEXT NOT NULL,
    UNIQUE (pipeline, sizes, fingerprint, versions)
) STRICT;

CREATE TABLE trials (
    id INTEGER PRIMARY KEY,
    problem INTEGER NOT NULL REFERENCES problems,
    schedule_hash TEXT NOT NULL,
    schedule TEXT NOT NULL,
    origin TEXT NOT NULL,
    status TEXT NOT NULL,
    message TEXT NOT NULL,
    verified INTEGER NOT NULL,
    predicted_us REAL,
    min_us REAL,
    median_us REAL,
    spread REAL NOT NULL,
    runs INTEGER,
    retimed_us REAL,
    -- The most that any kernel takes.
    registers INTEGER,
    spilled_bytes INTEGER,
    shared_bytes INTEGER,
    -- Each kernel, as JSON.
    kernels TEXT NOT NULL,
    compile_ms REAL NOT NULL,
    -- All versions, the driver's too, as JSON.
    versions TEXT NOT NULL,
    measured_at INTEGER NOT NULL,
    UNIQUE (problem, schedule_hash)
) STRICT;

CREATE TABLE claims (
    problem INTEGER NOT NULL REFERENCES problems,
    schedule_hash TEXT NOT NULL,
    host TEXT NOT NULL,
    process INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    PRIMARY KEY (problem, schedule_hash)
) STRICT, WITHOUT ROWID;

CREATE TABLE iterations (
    problem INTEGER NOT NULL REFERENCES problems,
    -- What the iterations of one run have in common.
    run TEXT NOT NULL,
    -- How many are finished; 0 when the run begins.
    finished INTEGER NOT NULL,
    -- The weights after the last, if any were trained.
    weights BLOB,
    -- The problem's last trial then.
    last_trial INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    PRIMARY KEY (problem, run, finished)
) STRICT, WITHOUT ROWID;
";

/// What schema 2 adds.
const STEPS: &str = "
CREATE TABLE steps (
    problem INTEGER NOT NULL REFERENCES problems,
    -- The strategy with its settings and seed, the space and the number of trials.
    run TEXT NOT NULL,
    -- From 0.
    step INTEGER NOT NULL,
    point TEXT NOT NULL,
    -- Not if the point is refused.
    schedule_hash TEXT,
    outcome TEXT NOT NULL,
    trial INTEGER REFERENCES trials,
    -- What the strategy was told.
    time_us REAL,
    message TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (problem, run, step)
) STRICT, WITHOUT ROWID;
";

/// Creates the tables of a new file; rejects a file that is not a records database.
pub(super) fn prepare(connection: &mut Connection, path: &Path) -> Result<(), RecordsError> {
    let failed = |error| RecordsError::of(path, error);
    if is_empty(connection).map_err(failed)? {
        write_ahead(connection).map_err(failed)?;
        create(connection).map_err(failed)?;
    }
    check(connection, path)?;
    upgrade(connection).map_err(failed)?;
    // A committed trial survives a power loss.
    connection.pragma_update(None, "synchronous", "full").map_err(failed)
}

/// Rejects a file that is not a records database or contains foreign schema objects.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<(), RecordsError> {
    let failed = |error| RecordsError::of(path, error);
    let number = |name: &str| -> Result<i64, RecordsError> {
        connection.pragma_query_value(None, name, |row| row.get(0)).map_err(failed)
    };
    // Keeps the schema of the file from calling functions with side effects.
    connection.pragma_update(None, "trusted_schema", "off").map_err(failed)?;
    if number("application_id")? != APPLICATION {
        return Err(RecordsError::NotRecords { path: path.to_path_buf() });
    }
    let found = number("user_version")?;
    if found > SCHEMA {
        return Err(RecordsError::Newer { path: path.to_path_buf(), found });
    }
    match foreign(connection).map_err(failed)? {
        Some((kind, name)) => Err(RecordsError::Foreign { path: path.to_path_buf(), kind, name }),
        None => Ok(()),
    }
}

/// A schema object that belongs neither to our tables nor to SQLite itself: its kind and name.
fn foreign(connection: &Connection) -> rusqlite::Result<Option<(String, String)>> {
    let ours: Vec<&str> = [TABLES, STEPS]
        .into_iter()
        .flat_map(str::lines)
        .filter_map(|line| line.strip_prefix("CREATE TABLE ")?.strip_suffix(" ("))
        .chain(["sqlite_sequence", "sqlite_stat1", "sqlite_stat4"])
        .collect();
    // Views, triggers and virtual tables have no page of their own.
    let mut query = connection.prepare("SELECT type, name, coalesce(rootpage, 0) FROM sqlite_master")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (kind, name, page): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let known = match kind.as_str() {
            "table" => ours.contains(&name.as_str()),
            "index" => name.starts_with("sqlite_autoindex_"),
            _ => false,
        };
        if page == 0 || !known {
            return Ok(Some((kind, name)));
        }
    }
    Ok(None)
}

/// Enables the write-ahead log. This must happen before the tables are created, because the journal
/// mode cannot change inside a transaction.
///
/// SQLite does not wait for another process that does the same: it reports the lock at once. So
/// this function retries.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let until = Instant::now() + BUSY;
    loop {
        let changed = connection.pragma_update(None, "journal_mode", "wal");
        let code = changed.as_ref().err().and_then(rusqlite::Error::sqlite_error_code);
        let locked = matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked));
        if !locked || Instant::now() > until {
            return changed;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) = 0 FROM sqlite_master", [], |row| row.get(0))
}

/// Adds what databases of earlier versions lack.
fn upgrade(connection: &mut Connection) -> rusqlite::Result<()> {
    let version = |connection: &Connection| -> rusqlite::Result<i64> {
        connection.pragma_query_value(None, "user_version", |row| row.get(0))
    };
    if version(connection)? >= SCHEMA {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it first.
    if version(&transaction)? < SCHEMA {
        transaction.execute_batch(STEPS)?;
        transaction.pragma_update(None, "user_version", SCHEMA)?;
    }
    transaction.commit()
}

fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have created the tables first.
    if is_empty(&transaction)? {
        transaction.execute_batch(TABLES)?;
        transaction.execute_batch(STEPS)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", SCHEMA)?;
    }
    transaction.commit()
}
