//! The interface to the tables of records: a SQLite file here, a PostgreSQL server in `warploom-farm`.
//!
//! Statements are written once, in the common subset of both SQL dialects, with `$1`, `$2` and so on for values. The
//! differences are methods of these traits: locks, clocks, and whether a process is alive. Tables are made by each
//! store's own migrations.

use std::fmt::{self, Debug, Display, Formatter};
use std::path::{Path, PathBuf};

use super::RecordsError;

/// The place of records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecordsPlace {
    /// In a file.
    File(PathBuf),
    /// On a server: its URL, without the password.
    Server(String),
}

impl Display for RecordsPlace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            RecordsPlace::File(path) => write!(f, "{}", path.display()),
            RecordsPlace::Server(url) => f.write_str(url),
        }
    }
}

impl From<&Path> for RecordsPlace {
    fn from(path: &Path) -> RecordsPlace {
        RecordsPlace::File(path.to_path_buf())
    }
}

/// A database that keeps records.
pub trait Store: Debug + Send {
    /// Its place, for messages.
    fn place(&self) -> &RecordsPlace;

    /// Runs a statement that changes nothing.
    ///
    /// # Errors
    /// If it cannot be run.
    fn read(&self, statement: &str, values: &[Value]) -> Result<Vec<Row>, RecordsError>;

    /// Runs `work` in one transaction, and commits it unless `work` fails. It may run more than
    /// once: a transaction that could not be committed is run again from its start.
    ///
    /// # Errors
    /// If `work` fails, or the transaction cannot be committed.
    fn change(&mut self, work: &mut Work<'_>) -> Result<(), RecordsError>;

    /// Lets the store grow by at most `pages` pages of 4 KB, and then fail as if the disk were full. For tests; a store
    /// that cannot do this does nothing.
    ///
    /// # Errors
    /// If the limit cannot be set.
    fn limit_growth(&mut self, pages: u32) -> Result<(), RecordsError> {
        let _ = pages;
        Ok(())
    }
}

/// The work of a transaction.
pub type Work<'a> = dyn FnMut(&mut dyn Change) -> Result<(), RecordsError> + 'a;

/// A transaction.
pub trait Change {
    /// The place of the store, for messages.
    fn place(&self) -> &RecordsPlace;

    /// Runs a statement; returns the number of rows that it changed.
    ///
    /// # Errors
    /// If it cannot be run.
    fn execute(&mut self, statement: &str, values: &[Value]) -> Result<u64, RecordsError>;

    /// Runs a statement that returns rows.
    ///
    /// # Errors
    /// If it cannot be run.
    fn query(&mut self, statement: &str, values: &[Value]) -> Result<Vec<Row>, RecordsError>;

    /// Waits until no other transaction holds the problem, and holds it until this one ends. The
    /// trials of a problem get their numbers in the order in which they are committed.
    ///
    /// # Errors
    /// If another transaction holds it for too long.
    fn hold_problem(&mut self, problem: i64) -> Result<(), RecordsError>;

    /// Seconds since the Unix epoch, by the clock that all users of the store share.
    ///
    /// # Errors
    /// If the store cannot be asked.
    fn now(&mut self) -> Result<i64, RecordsError>;

    /// The name by which this process holds claims.
    fn holder(&self) -> String;

    /// Whether a process is known to have ended. `false` if that is unknown.
    ///
    /// # Errors
    /// If the store cannot be asked.
    fn has_ended(&mut self, holder: &str) -> Result<bool, RecordsError>;

    /// The one row of a statement, if there is one.
    ///
    /// # Errors
    /// If it cannot be run.
    fn query_one(&mut self, statement: &str, values: &[Value]) -> Result<Option<Row>, RecordsError> {
        Ok(self.query(statement, values)?.into_iter().next())
    }
}

/// A value in a table.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// No value.
    Null,
    /// A whole number; 0 and 1 stand for false and true.
    Integer(i64),
    /// A number.
    Real(f64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

macro_rules! from {
    ($($from:ty: $value:ident => $to:expr;)*) => {
        $(impl From<$from> for Value {
            fn from($value: $from) -> Value {
                $to
            }
        })*
    };
}

from! {
    i64: value => Value::Integer(value);
    u32: value => Value::Integer(value.into());
    bool: value => Value::Integer(value.into());
    f64: value => Value::Real(value);
    &str: value => Value::Text(value.to_owned());
    &String: value => Value::Text(value.clone());
    String: value => Value::Text(value);
    Vec<u8>: value => Value::Bytes(value);
    // Numbers of rows, steps and seconds stay far below the limit.
    u64: value => Value::Integer(i64::try_from(value).unwrap_or(i64::MAX));
    usize: value => Value::Integer(i64::try_from(value).unwrap_or(i64::MAX));
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

impl<T: Clone + Into<Value>> From<&Option<T>> for Value {
    fn from(value: &Option<T>) -> Value {
        value.clone().into()
    }
}

/// The values of a statement, in the order of their numbers.
#[macro_export]
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        &[$($crate::records::Value::from($value)),*]
    };
}

/// A row that a statement returned.
#[derive(Clone, PartialEq, Debug)]
pub struct Row(pub Vec<Value>);

/// A column with a value of an unexpected type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unreadable(pub String);

/// A type that can be read from a column.
pub trait FromValue: Sized {
    /// The value as this type; `None` if it has another type.
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! into {
    ($($to:ty: $pattern:pat => $value:expr;)*) => {
        $(impl FromValue for $to {
            fn from_value(value: &Value) -> Option<$to> {
                match value {
                    $pattern => $value,
                    _ => None,
                }
            }
        })*
    };
}

into! {
    i64: Value::Integer(value) => Some(*value);
    u32: Value::Integer(value) => u32::try_from(*value).ok();
    u64: Value::Integer(value) => u64::try_from(*value).ok();
    usize: Value::Integer(value) => usize::try_from(*value).ok();
    bool: Value::Integer(value @ (0 | 1)) => Some(*value == 1);
    f64: Value::Real(value) => Some(*value);
    String: Value::Text(value) => Some(value.clone());
    Vec<u8>: Value::Bytes(value) => Some(value.clone());
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Option<Option<T>> {
        match value {
            Value::Null => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

impl Row {
    /// The value of a column, from 0.
    ///
    /// # Errors
    /// If the column is missing, or has another type.
    pub fn get<T: FromValue>(&self, column: usize) -> Result<T, Unreadable> {
        let value = self.0.get(column);
        value.and_then(T::from_value).ok_or_else(|| {
            let kind = match value {
                None => "missing",
                Some(Value::Null) => "empty",
                Some(Value::Integer(_)) => "a whole number",
                Some(Value::Real(_)) => "a number",
                Some(Value::Text(_)) => "a text",
                Some(Value::Bytes(_)) => "bytes",
            };
            Unreadable(format!("column {column} of a row is {kind}, or out of range"))
        })
    }
}
