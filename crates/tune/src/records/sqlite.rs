//! Records in a SQLite file.

mod migrations;
mod owner;
mod path;

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, Type, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, ToSql, Transaction, TransactionBehavior};
use warploom_lang::files::FIELD;

use super::store::{Change, RecordsPlace, Row, Store, Value, Work};
use super::{RecordsError, SCHEMA};
use owner::Owner;
pub(super) use path::of_server;

/// How long to wait for another process's write transaction.
const BUSY: Duration = Duration::from_secs(20);

/// A SQLite database: a file, or one in memory.
#[derive(Debug)]
pub(super) struct Sqlite {
    connection: Connection,
    place: RecordsPlace,
    owner: Owner,
}

impl Sqlite {
    /// Opens a file to write, and creates it if it does not exist and `create` is set.
    pub fn to_write(path: &Path, create: bool) -> Result<Sqlite, RecordsError> {
        path::check(path)?;
        path::check_writable(path)?;
        let more = if create { OpenFlags::SQLITE_OPEN_CREATE } else { OpenFlags::empty() };
        let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | more)?;
        migrations::prepare(&mut connection, &path.into())?;
        Ok(Sqlite::over(connection, path))
    }

    /// Opens a file read-only; `None` if it cannot be read either.
    pub fn to_read(path: &Path) -> Option<Result<Sqlite, RecordsError>> {
        let alone = path::frozen(path).map(|address| {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            connect_to(&address, flags, path)
        });
        let shared = || connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
        let mut opened = alone.into_iter().chain(std::iter::once_with(shared)).map(|connection| {
            let connection = connection?;
            migrations::check(&connection, &path.into())?;
            Ok(Sqlite::over(connection, path))
        });
        opened.find(|opened| !matches!(opened, Err(RecordsError::Open { .. })))
    }

    /// An empty database without a file.
    pub fn in_memory() -> Result<Sqlite, RecordsError> {
        let path = Path::new("memory");
        let connection = Connection::open_in_memory_with_flags(OpenFlags::default());
        let connection = connection.map_err(|error| of(&path.into(), error))?;
        let mut connection = limited(connection, path)?;
        migrations::prepare(&mut connection, &path.into())?;
        Ok(Sqlite::over(connection, path))
    }

    fn over(connection: Connection, path: &Path) -> Sqlite {
        Sqlite { connection, place: path.into(), owner: Owner::this() }
    }
}

/// The error that opening a path for writing is certain to return, as far as that is known without opening or creating
/// anything.
pub(super) fn check(path: &Path) -> Result<(), RecordsError> {
    path::check(path)?;
    path::check_writable(path)
}

/// Connects to the file at a path.
fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, RecordsError> {
    connect_to(&path::plain(path), flags, path)
}

/// Connects to an address: a path, or with `SQLITE_OPEN_URI` a URI. `path` is for errors.
fn connect_to(address: &Path, flags: OpenFlags, path: &Path) -> Result<Connection, RecordsError> {
    let connection = Connection::open_with_flags(address, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX);
    limited(connection.map_err(|error| of(&path.into(), error))?, path)
}

/// Sets the limits of a new connection.
fn limited(connection: Connection, path: &Path) -> Result<Connection, RecordsError> {
    let limited = connection.busy_timeout(BUSY);
    let limited = limited.and_then(|()| connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, FIELD.most as i32));
    limited.map_err(|error| of(&path.into(), error))?;
    Ok(connection)
}

impl Store for Sqlite {
    fn place(&self) -> &RecordsPlace {
        &self.place
    }

    fn read(&self, statement: &str, values: &[Value]) -> Result<Vec<Row>, RecordsError> {
        query(&self.connection, statement, values).map_err(|error| of(&self.place, error))
    }

    /// In an immediate transaction, so that no other writer interleaves.
    fn change(&mut self, work: &mut Work<'_>) -> Result<(), RecordsError> {
        let Sqlite { connection, place, owner } = self;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = transaction.map_err(|error| of(place, error))?;
        let mut change = SqliteChange { transaction, place, owner };
        work(&mut change)?;
        change.transaction.commit().map_err(|error| of(place, error))
    }

    fn limit_growth(&mut self, pages: u32) -> Result<(), RecordsError> {
        let limit = |connection: &Connection| {
            let now: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
            connection.pragma_update_and_check(None, "max_page_count", now + i64::from(pages), |_| Ok(()))
        };
        limit(&self.connection).map_err(|error| of(&self.place, error))
    }
}

struct SqliteChange<'a> {
    transaction: Transaction<'a>,
    place: &'a RecordsPlace,
    owner: &'a Owner,
}

impl Change for SqliteChange<'_> {
    fn place(&self) -> &RecordsPlace {
        self.place
    }

    fn execute(&mut self, statement: &str, values: &[Value]) -> Result<u64, RecordsError> {
        let changed = self.transaction.prepare_cached(&numbered(statement));
        let changed = changed.and_then(|mut statement| statement.execute(rusqlite::params_from_iter(values)));
        changed.map(|rows| rows as u64).map_err(|error| of(self.place, error))
    }

    fn query(&mut self, statement: &str, values: &[Value]) -> Result<Vec<Row>, RecordsError> {
        query(&self.transaction, statement, values).map_err(|error| of(self.place, error))
    }

    /// An immediate transaction holds all problems.
    fn hold_problem(&mut self, _: i64) -> Result<(), RecordsError> {
        Ok(())
    }

    fn now(&mut self) -> Result<i64, RecordsError> {
        Ok(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64))
    }

    fn holder(&self) -> String {
        self.owner.to_string()
    }

    fn has_ended(&mut self, holder: &str) -> Result<bool, RecordsError> {
        Ok(Owner::parse(holder).is_some_and(|holder| holder.has_ended(self.owner)))
    }
}

fn query(connection: &Connection, statement: &str, values: &[Value]) -> rusqlite::Result<Vec<Row>> {
    let mut statement = connection.prepare_cached(&numbered(statement))?;
    let columns = statement.column_count();
    let read = |row: &rusqlite::Row<'_>| {
        let values = (0..columns).map(|column| value(row.get_ref(column)?, column));
        Ok(Row(values.collect::<Result<_, _>>()?))
    };
    statement.query_map(rusqlite::params_from_iter(values), read)?.collect()
}

/// A statement with SQLite's numbered values: SQLite takes `$1` for a name.
fn numbered(statement: &str) -> String {
    statement.replace('$', "?")
}

fn value(value: ValueRef<'_>, column: usize) -> rusqlite::Result<Value> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Integer(value),
        ValueRef::Real(value) => Value::Real(value),
        ValueRef::Text(value) => {
            Value::Text(String::from_utf8(value.to_vec()).map_err(|error| {
                rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
            })?)
        }
        ValueRef::Blob(value) => Value::Bytes(value.to_vec()),
    })
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Integer(value) => ValueRef::Integer(*value),
            Value::Real(value) => ValueRef::Real(*value),
            Value::Text(value) => ValueRef::Text(value.as_bytes()),
            Value::Bytes(value) => ValueRef::Blob(value),
        }))
    }
}

/// Classifies an error of SQLite.
fn of(place: &RecordsPlace, error: rusqlite::Error) -> RecordsError {
    let place = place.clone();
    let message = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => RecordsError::NotRecords { place },
        Some(ErrorCode::DatabaseCorrupt) => RecordsError::Damaged { place, message },
        Some(ErrorCode::TooBig) => RecordsError::Field { place },
        Some(ErrorCode::DiskFull) => RecordsError::Full { place },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => RecordsError::Locked { place },
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            RecordsError::Open { place, message }
        }
        _ => RecordsError::Store { place, error: Box::new(error) },
    }
}
