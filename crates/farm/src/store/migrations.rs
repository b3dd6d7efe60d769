//! The tables of records on a server, and the migrations from earlier versions.

use postgres::error::SqlState;
use postgres::{Client, Transaction};
use warploom_tune::records::{RecordsError, RecordsPlace, SCHEMA};

use super::{Fault, class_of};

/// The migration to each version of the schema. The first makes all tables.
const MIGRATIONS: [(i64, &str); 1] = [(
    3,
    concat!(include_str!("../../migrations/003.sql"), "\n", include_str!("../../migrations/003-farm.sql")),
)];

/// Upgrades the tables in a schema, which must exist.
pub(super) fn upgrade(client: &mut Client, place: &RecordsPlace, schema: &str) -> Result<(), Fault> {
    let found = version(&mut client.transaction()?, place, schema)?;
    match found {
        Some(_) => prepare(client, place, schema),
        None => Err(Fault::Own(RecordsError::Open {
            place: place.clone(),
            message: format!("its schema `{schema}` has no tables"),
        })),
    }
}

/// Creates the tables in a schema if there are none, and upgrades those of an earlier version.
pub(super) fn prepare(client: &mut Client, place: &RecordsPlace, schema: &str) -> Result<(), Fault> {
    // Most often there is nothing to do, which roles without further rights can determine too.
    let found = version(&mut client.transaction()?, place, schema)?;
    if found == Some(SCHEMA) {
        return Ok(());
    }
    let mut transaction = client.transaction()?;
    transaction.execute("SELECT pg_advisory_xact_lock($1, 0)", &[&class_of(schema)])?;
    // Another process may have done it first.
    let found = version(&mut transaction, place, schema)?;
    if found.is_none() {
        let create = format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\"");
        transaction.batch_execute(&create)?;
    }
    for (number, migration) in MIGRATIONS {
        if found.is_none_or(|found| found < number) {
            transaction.batch_execute(migration)?;
        }
    }
    transaction.batch_execute("DELETE FROM version")?;
    transaction.execute("INSERT INTO version (number) VALUES ($1)", &[&SCHEMA])?;
    Ok(transaction.commit()?)
}

/// The version of the tables in a schema; `None` if it has none.
fn version(
    transaction: &mut Transaction<'_>,
    place: &RecordsPlace,
    schema: &str,
) -> Result<Option<i64>, Fault> {
    let tables = "SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f')";
    let tables = transaction.query(tables, &[&schema])?;
    if tables.is_empty() {
        return Ok(None);
    }
    let not_records = || Fault::Own(RecordsError::NotRecords { place: place.clone() });
    if !tables.iter().any(|row| row.get::<_, &str>(0) == "version") {
        return Err(not_records());
    }
    let row = match transaction.query_opt("SELECT number FROM version", &[]) {
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_COLUMN) => return Err(not_records()),
        row => row?.ok_or_else(not_records)?,
    };
    let found: i64 = row.try_get(0).map_err(|_| not_records())?;
    match found > SCHEMA {
        true => Err(Fault::Own(RecordsError::Newer { place: place.clone(), found })),
        false => Ok(Some(found)),
    }
}
