//! The tables of a file, and the migrations from earlier versions.

use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use super::{BUSY, RecordsError, RecordsPlace, SCHEMA, of};

/// SQLite application id of a records database: "WPLM".
const APPLICATION: i64 = 0x5750_4c4d;

/// The migrations between versions of the schema; the first one makes the tables of version 1.
const MIGRATIONS: [&str; SCHEMA as usize] =
    [include_str!("001.sql"), include_str!("002.sql"), include_str!("003.sql")];

/// Creates the tables of a new file; rejects a file that is not a records database.
pub(super) fn prepare(connection: &mut Connection, place: &RecordsPlace) -> Result<(), RecordsError> {
    let failed = |error| of(place, error);
    if is_empty(connection).map_err(failed)? {
        write_ahead(connection).map_err(failed)?;
        create(connection).map_err(failed)?;
    }
    check(connection, place)?;
    upgrade(connection).map_err(failed)?;
    // A committed trial survives a power loss.
    connection.pragma_update(None, "synchronous", "full").map_err(failed)
}

/// Rejects a file that is not a records database or contains foreign schema objects.
pub(super) fn check(connection: &Connection, place: &RecordsPlace) -> Result<(), RecordsError> {
    let failed = |error| of(place, error);
    let number = |name: &str| -> Result<i64, RecordsError> {
        connection.pragma_query_value(None, name, |row| row.get(0)).map_err(failed)
    };
    // Keeps the schema of the file from calling functions with side effects.
    connection.pragma_update(None, "trusted_schema", "off").map_err(failed)?;
    if number("application_id")? != APPLICATION {
        return Err(RecordsError::NotRecords { place: place.clone() });
    }
    let found = number("user_version")?;
    if found > SCHEMA {
        return Err(RecordsError::Newer { place: place.clone(), found });
    }
    match foreign(connection).map_err(failed)? {
        Some((kind, name)) => Err(RecordsError::Foreign { place: place.clone(), kind, name }),
        None => Ok(()),
    }
}

/// A schema object that belongs neither to our tables nor to SQLite itself: its kind and name.
fn foreign(connection: &Connection) -> rusqlite::Result<Option<(String, String)>> {
    let ours: Vec<&str> = MIGRATIONS
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

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Migrates databases of earlier versions.
fn upgrade(connection: &mut Connection) -> rusqlite::Result<()> {
    if version(connection)? >= SCHEMA {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it first.
    migrate(&transaction)?;
    transaction.commit()
}

fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have created the tables first.
    if is_empty(&transaction)? {
        migrate(&transaction)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
    }
    transaction.commit()
}

/// Runs the migrations that a file has not seen.
fn migrate(connection: &Connection) -> rusqlite::Result<()> {
    let seen = version(connection)?.clamp(0, SCHEMA) as usize;
    MIGRATIONS[seen..].iter().try_for_each(|migration| connection.execute_batch(migration))?;
    connection.pragma_update(None, "user_version", SCHEMA)
}
