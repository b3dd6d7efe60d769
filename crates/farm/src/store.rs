//! Records on a PostgreSQL server.
//!
//! A process holds a session advisory lock while it is connected. The lock's number is the name under which it holds
//! claims, so a claim is void once its process, its connection or the server has ended. A broken connection is opened
//! again, and its transaction runs again from the start: all changes of records may run twice.

mod migrations;
mod values;

use std::cell::{RefCell, RefMut};
use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use postgres::error::SqlState;
use postgres::types::ToSql;
use postgres::{Client, GenericClient, Statement};
use warploom_tune::records::{Change, Records, RecordsError, RecordsPlace, Row, Store, Value, Work};
use xxhash_rust::xxh3::xxh3_64;

use crate::address::Address;
use crate::connect::{self, ConnectError};
use values::{Parameter, row};

/// The time limit for reaching an unavailable server.
const PATIENCE: Duration = Duration::from_secs(60);

/// The first pause between two attempts to reach it, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// After this silence, a worker counts as gone, even if it is connected.
const SILENCE: Duration = Duration::from_secs(60);

/// Opens the records on a server, and makes their tables if there are none.
///
/// # Errors
/// If the server cannot be reached, refuses the connection, or has other tables there.
pub fn open(address: &Address) -> Result<Records, RecordsError> {
    Ok(Records::over(Postgres::open(address)?))
}

/// Opens existing records on a server.
///
/// # Errors
/// If there are none, or the server cannot be reached or refuses the connection.
pub fn open_existing(address: &Address) -> Result<Records, RecordsError> {
    Ok(Records::over(Postgres::open_existing(address)?))
}

/// Records on a server.
#[derive(Debug)]
pub struct Postgres {
    address: Address,
    place: RecordsPlace,
    session: RefCell<Session>,
}

impl Postgres {
    /// Connects to a server, and makes the tables if there are none.
    ///
    /// # Errors
    /// If the server cannot be reached, refuses the connection, or has other tables there.
    pub fn open(address: &Address) -> Result<Postgres, RecordsError> {
        Postgres::connect(address, migrations::prepare)
    }

    /// Connects to a server that has the tables.
    ///
    /// # Errors
    /// If it has none, cannot be reached, or refuses the connection.
    pub fn open_existing(address: &Address) -> Result<Postgres, RecordsError> {
        Postgres::connect(address, migrations::upgrade)
    }

    /// The number under which this process currently holds claims. It changes when the connection breaks.
    pub fn holder(&self) -> i32 {
        self.session.borrow().holder
    }

    /// The schema of the tables.
    pub fn schema(&self) -> &str {
        self.address.schema()
    }

    /// A query for the numbers of all living processes, as texts: those that are connected, except workers that have
    /// been silent for too long. A suspended process stays connected.
    pub(crate) fn alive(&self) -> String {
        let class = class_of(self.address.schema()) as u32;
        format!(
            "SELECT objid::bigint::text COLLATE \"C\" FROM pg_locks
             WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid = {class}
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
             EXCEPT SELECT holder FROM workers WHERE left_at IS NULL
                 AND seen_at < extract(epoch FROM clock_timestamp())::float8 - {}",
            SILENCE.as_secs()
        )
    }

    fn connect(address: &Address, prepare: Prepare) -> Result<Postgres, RecordsError> {
        let place = RecordsPlace::Server(address.to_string());
        let until = Instant::now() + PATIENCE;
        // An unreachable server may be a mistake in the address, so the first attempt does not wait.
        let mut client = connect::connect(address).map_err(|error| refused(&place, &error))?;
        let session = loop {
            match Session::over(client, &place, address, prepare) {
                Ok(session) => break session,
                Err(fault) if fault.may_pass() && Instant::now() < until => thread::sleep(PAUSES.0),
                Err(fault) => return Err(fault.into_error(&place)),
            }
            client = connected(address, until).map_err(|fault| fault.into_error(&place))?;
        };
        Ok(Postgres { address: address.clone(), place, session: RefCell::new(session) })
    }

    /// Runs `work` in the session; whenever the connection breaks, runs it again in a new one.
    fn persist<T>(&self, work: &mut dyn FnMut(&mut Session) -> Result<T, Fault>) -> Result<T, RecordsError> {
        let until = Instant::now() + PATIENCE;
        let mut pause = PAUSES.0;
        loop {
            let mut session = self.session.borrow_mut();
            let fault = match work(&mut session) {
                Ok(done) => return Ok(done),
                Err(fault) => fault,
            };
            if !(fault.may_pass() || session.client.is_closed()) || Instant::now() > until {
                return Err(fault.into_error(&self.place));
            }
            tracing::debug!("a transaction runs again: {}", fault.into_error(&self.place));
            thread::sleep(pause);
            pause = (pause * 2).min(PAUSES.1);
            if session.client.is_closed() {
                self.reconnect(&mut session, until)?;
            }
        }
    }

    fn reconnect(&self, session: &mut RefMut<'_, Session>, until: Instant) -> Result<(), RecordsError> {
        loop {
            let opened = connected(&self.address, until)
                .and_then(|client| Session::over(client, &self.place, &self.address, migrations::upgrade));
            match opened {
                Ok(opened) => {
                    **session = opened;
                    return Ok(());
                }
                Err(fault) if fault.may_pass() && Instant::now() < until => thread::sleep(PAUSES.0),
                Err(fault) => return Err(fault.into_error(&self.place)),
            }
        }
    }
}

/// Connects; waits for an unavailable server.
fn connected(address: &Address, until: Instant) -> Result<Client, Fault> {
    let mut pause = PAUSES.0;
    loop {
        match connect::connect(address) {
            Err(error) if error.may_pass() && Instant::now() < until => thread::sleep(pause),
            client => return client.map_err(Fault::Connect),
        }
        pause = (pause * 2).min(PAUSES.1);
    }
}

impl Store for Postgres {
    fn place(&self) -> &RecordsPlace {
        &self.place
    }

    fn read(&self, statement: &str, values: &[Value]) -> Result<Vec<Row>, RecordsError> {
        self.persist(&mut |session| {
            let Session { client, statements, .. } = session;
            query(client, statements, statement, values)
        })
    }

    fn change(&mut self, work: &mut Work<'_>) -> Result<(), RecordsError> {
        self.persist(&mut |session| {
            let Session { client, statements, holder, class } = session;
            let transaction = client.transaction()?;
            let mut change = PostgresChange {
                transaction,
                statements,
                place: &self.place,
                holder: *holder,
                class: *class,
                fault: None,
            };
            let done = work(&mut change);
            let PostgresChange { transaction, fault, .. } = change;
            match (done, fault) {
                (Ok(()), _) => Ok(transaction.commit()?),
                // A message of the server that is not a sentence yet.
                (Err(_), Some(fault)) => Err(fault),
                (Err(error), None) => Err(Fault::Own(error)),
            }
        })
    }
}

/// A connection, and the claims that it holds.
struct Session {
    client: Client,
    /// Prepared statements by their texts.
    statements: HashMap<String, Statement>,
    /// The number whose advisory lock is held.
    holder: i32,
    /// The common part of these records' lock numbers.
    class: i32,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("holder", &self.holder).finish_non_exhaustive()
    }
}

/// Makes or upgrades tables.
type Prepare = fn(&mut Client, &RecordsPlace, &str) -> Result<(), Fault>;

impl Session {
    fn over(
        mut client: Client,
        place: &RecordsPlace,
        address: &Address,
        prepare: Prepare,
    ) -> Result<Session, Fault> {
        prepare(&mut client, place, address.schema())?;
        let class = class_of(address.schema());
        // The sequence has as many numbers as an `i32` without its sign.
        let holder: i64 = client.query_one("SELECT nextval('holders')", &[])?.try_get(0)?;
        let holder = holder as i32;
        connect::check_no_pooler(&mut client, class, holder).map_err(Fault::Connect)?;
        Ok(Session { client, statements: HashMap::new(), holder, class })
    }
}

/// The class of the advisory locks of a schema.
pub(crate) fn class_of(schema: &str) -> i32 {
    xxh3_64(schema.as_bytes()) as i32
}

/// The cause of a failure in a session.
enum Fault {
    /// A statement or the connection.
    Server(postgres::Error),
    /// A connection that could not be made.
    Connect(ConnectError),
    /// Anything else.
    Own(RecordsError),
}

impl From<postgres::Error> for Fault {
    fn from(error: postgres::Error) -> Fault {
        Fault::Server(error)
    }
}

impl Fault {
    /// Whether a retry may succeed.
    fn may_pass(&self) -> bool {
        let error = match self {
            Fault::Server(error) => error,
            Fault::Connect(error) => return error.may_pass(),
            Fault::Own(_) => return false,
        };
        let passing = [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            // An overloaded server.
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
        ];
        error.is_closed() || error.code().is_some_and(|code| passing.contains(code))
    }

    fn into_error(self, place: &RecordsPlace) -> RecordsError {
        let error = match self {
            Fault::Own(error) => return error,
            Fault::Connect(error) => return refused(place, &error),
            Fault::Server(error) => error,
        };
        let place = place.clone();
        match error.code() {
            Some(&SqlState::DISK_FULL) => RecordsError::Full { place },
            Some(&SqlState::LOCK_NOT_AVAILABLE) => RecordsError::Locked { place },
            _ => RecordsError::Server { place, message: connect::cause(&error) },
        }
    }
}

fn refused(place: &RecordsPlace, error: &ConnectError) -> RecordsError {
    RecordsError::Server { place: place.clone(), message: error.to_string() }
}

struct PostgresChange<'a> {
    transaction: postgres::Transaction<'a>,
    statements: &'a mut HashMap<String, Statement>,
    place: &'a RecordsPlace,
    holder: i32,
    class: i32,
    /// The first failure; the transaction cannot continue after it.
    fault: Option<Fault>,
}

impl PostgresChange<'_> {
    /// Records a failure, and converts it to a sentence.
    fn noted<T>(&mut self, done: Result<T, Fault>) -> Result<T, RecordsError> {
        done.map_err(|fault| {
            let sentence = match &fault {
                Fault::Server(error) => connect::cause(error),
                Fault::Connect(error) => error.to_string(),
                Fault::Own(error) => error.to_string(),
            };
            self.fault.get_or_insert(fault);
            RecordsError::Server { place: self.place.clone(), message: sentence }
        })
    }
}

impl Change for PostgresChange<'_> {
    fn place(&self) -> &RecordsPlace {
        self.place
    }

    fn execute(&mut self, statement: &str, values: &[Value]) -> Result<u64, RecordsError> {
        let prepared = prepared(&mut self.transaction, self.statements, statement);
        let done = prepared.and_then(|prepared| {
            let parameters: Vec<Parameter<'_>> = values.iter().map(Parameter).collect();
            Ok(self.transaction.execute(&prepared, &borrowed(&parameters))?)
        });
        self.noted(done)
    }

    fn query(&mut self, statement: &str, values: &[Value]) -> Result<Vec<Row>, RecordsError> {
        let rows = query(&mut self.transaction, self.statements, statement, values);
        self.noted(rows)
    }

    fn hold_problem(&mut self, problem: i64) -> Result<(), RecordsError> {
        self.query("SELECT 1 FROM problems WHERE id = $1 FOR NO KEY UPDATE", &[problem.into()]).map(drop)
    }

    fn now(&mut self) -> Result<i64, RecordsError> {
        let now = self.query_one("SELECT extract(epoch FROM clock_timestamp())::bigint", &[])?;
        let now = now.and_then(|row| row.get(0).ok());
        now.ok_or_else(|| RecordsError::Server {
            place: self.place.clone(),
            message: "the server does not know the time".to_owned(),
        })
    }

    fn holder(&self) -> String {
        self.holder.to_string()
    }

    fn has_ended(&mut self, holder: &str) -> Result<bool, RecordsError> {
        let Ok(holder) = holder.parse::<i32>() else { return Ok(false) };
        let locks = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2
             AND classid = $1 AND objid = $2
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        // Object ids are unsigned.
        let (class, holder) = (i64::from(self.class as u32), i64::from(holder as u32));
        Ok(self.query(locks, &[class.into(), holder.into()])?.is_empty())
    }
}

fn query(
    client: &mut impl GenericClient,
    statements: &mut HashMap<String, Statement>,
    statement: &str,
    values: &[Value],
) -> Result<Vec<Row>, Fault> {
    let prepared = prepared(client, statements, statement)?;
    let parameters: Vec<Parameter<'_>> = values.iter().map(Parameter).collect();
    let rows = client.query(&prepared, &borrowed(&parameters))?;
    rows.iter().map(|found| row(found).map_err(Fault::Server)).collect()
}

fn borrowed<'a>(parameters: &'a [Parameter<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    parameters.iter().map(|parameter| parameter as _).collect()
}

/// The prepared form of a statement, which a session prepares once.
fn prepared(
    client: &mut impl GenericClient,
    statements: &mut HashMap<String, Statement>,
    statement: &str,
) -> Result<Statement, Fault> {
    if let Some(prepared) = statements.get(statement) {
        return Ok(prepared.clone());
    }
    let prepared = client.prepare(statement)?;
    statements.insert(statement.to_owned(), prepared.clone());
    Ok(prepared)
}
