//! Connections to a PostgreSQL server, with limits on everything that could wait for ever.

mod error;
mod tls;

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use postgres::config::SslMode;
use postgres::{Client, Config, NoTls, SimpleQueryMessage, Transaction};
use tokio_postgres_rustls::MakeRustlsConnect;

pub use error::ConnectError;
pub(crate) use error::whole as cause;

use crate::address::{Address, Host};

/// The oldest supported version of the server, as `server_version_num` reports it.
const OLDEST: u32 = 13_00_00;
/// The silence after which the connection is probed, the interval of probes, and the number of probes that may be lost.
const IDLE: Duration = Duration::from_secs(30);
const INTERVAL: Duration = Duration::from_secs(10);
const PROBES: u32 = 3;
/// The time after which unacknowledged data ends the connection.
const UNACKNOWLEDGED: Duration = Duration::from_secs(60);

/// The settings of every session. The first two make statements mean the same everywhere.
const SETTINGS: &str = "\
SET client_encoding TO 'UTF8';
SET standard_conforming_strings TO on;
SET lock_timeout TO '20s';
SET idle_in_transaction_session_timeout TO '60s';
SET statement_timeout TO '120s';
";

/// The settings of a session over a network. They make the server give up a client that is gone, and the locks that it
/// holds.
const NETWORK_SETTINGS: &str = "\
SET tcp_keepalives_idle TO 30;
SET tcp_keepalives_interval TO 10;
SET tcp_keepalives_count TO 3;
SET tcp_user_timeout TO 60000;
";

/// Connects to a server and applies the settings of sessions: timeouts, and the schema as the only one in the search
/// path. The schema need not exist.
///
/// One attempt to reach an address of the host takes at most [`Address::connect_timeout`]; all of them,
/// with encryption and login, three times as long.
///
/// # Errors
/// If there is no such connection, or the server is older than PostgreSQL 13.
pub fn connect(address: &Address) -> Result<Client, ConnectError> {
    // Nothing limits the time in which a server that accepted the connection must answer. If it never does, the thread
    // waits on, and a connection that comes too late is closed.
    let limit = address.connect_timeout() * 3;
    let (sender, receiver) = mpsc::channel();
    let own = address.clone();
    let open = move || drop(sender.send(open(&own)));
    let started = thread::Builder::new().name("connect".to_owned()).spawn(open);
    started
        .map_err(|error| ConnectError::Other { message: format!("no thread can be started ({error})") })?;
    receiver.recv_timeout(limit).unwrap_or_else(|reason| match reason {
        RecvTimeoutError::Timeout => {
            let message = format!("no answer within {} seconds", limit.as_secs());
            Err(ConnectError::Unreachable { server: address.server(), message })
        }
        // The library panics if the system gives it no more files.
        RecvTimeoutError::Disconnected => {
            Err(ConnectError::Other { message: "the system has no files left to open".to_owned() })
        }
    })
}

/// Connects without a limit on the total time.
fn open(address: &Address) -> Result<Client, ConnectError> {
    let mut config = config(address);
    let client = match tls::client(address.tls())? {
        None => config.ssl_mode(SslMode::Disable).connect(NoTls),
        Some(tls) => config.ssl_mode(SslMode::Require).connect(MakeRustlsConnect::new(tls)),
    };
    let mut client = client.map_err(|error| ConnectError::of(address, &error))?;
    prepare(&mut client, address)?;
    Ok(client)
}

fn config(address: &Address) -> Config {
    let mut config = Config::new();
    // Here too, a path is the folder of a socket.
    let (Host::Socket(host) | Host::Name(host)) = address.host();
    config.host(host).port(address.port()).user(address.user()).dbname(address.database());
    if let Some(password) = address.password() {
        config.password(password.reveal());
    }
    config.application_name(address.application_name()).connect_timeout(address.connect_timeout());
    config.keepalives(true).keepalives_idle(IDLE).keepalives_interval(INTERVAL).keepalives_retries(PROBES);
    config.tcp_user_timeout(UNACKNOWLEDGED);
    config
}

/// Checks the version and applies the settings of sessions.
fn prepare(client: &mut Client, address: &Address) -> Result<(), ConnectError> {
    let failed = |error: postgres::Error| ConnectError::of(address, &error);
    let version = client.simple_query("SHOW server_version_num").map_err(failed)?;
    check_version(cell(&version, 0).unwrap_or_default(), address)?;
    // The schema's name has no character that would need an escape.
    let mut settings = format!("{SETTINGS}SET search_path TO \"{}\";\n", address.schema());
    if matches!(address.host(), Host::Name(_)) {
        settings += NETWORK_SETTINGS;
    }
    client.batch_execute(&settings).map_err(failed)
}

fn check_version(number: &str, address: &Address) -> Result<(), ConnectError> {
    let server = address.server();
    match number.parse::<u32>() {
        Ok(number) if number >= OLDEST => Ok(()),
        // Before version 10, the second number counted as well.
        Ok(number) => Err(ConnectError::Old { server, version: number / 10_000 }),
        Err(_) => {
            Err(ConnectError::Other { message: format!("{server} does not tell PostgreSQL's version") })
        }
    }
}

/// Checks that the session is a single one, by an advisory lock: takes it in one transaction and looks for it in two
/// more. A pooler in transaction mode may run these in different sessions of the server, which would lose locks and
/// settings.
///
/// On success, the session holds the lock. A pooler with only one client may pass.
///
/// # Errors
/// If the lock is lost or another session holds it, or the connection breaks.
pub fn check_no_pooler(client: &mut Client, class: i32, number: i32) -> Result<(), ConnectError> {
    let id = "pg_catalog.pg_backend_pid()";
    let take = format!("SELECT {id} FROM (SELECT pg_catalog.pg_advisory_lock({class}, {number})) AS taken");
    let first = in_transaction(client, |transaction| {
        let rows = transaction.simple_query(&take)?;
        Ok(cell(&rows, 0).map(str::to_owned))
    })?;
    // The lock's numbers are unsigned there.
    let (class, number) = (class.cast_unsigned(), number.cast_unsigned());
    let look = format!(
        "SELECT {id}, count(*) FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND granted AND pid = {id} \
         AND classid = {class} AND objid = {number} AND objsubid = 2 AND database = \
         (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())"
    );
    for _ in 0..2 {
        let same = in_transaction(client, |transaction| {
            let rows = transaction.simple_query(&look)?;
            Ok(first.is_some() && cell(&rows, 0) == first.as_deref() && cell(&rows, 1) == Some("1"))
        })?;
        if !same {
            return Err(ConnectError::Pooler);
        }
    }
    Ok(())
}

fn in_transaction<T>(
    client: &mut Client,
    work: impl FnOnce(&mut Transaction<'_>) -> Result<T, postgres::Error>,
) -> Result<T, ConnectError> {
    let run = || {
        let mut transaction = client.transaction()?;
        let done = work(&mut transaction)?;
        transaction.commit()?;
        Ok(done)
    };
    run().map_err(|error: postgres::Error| ConnectError::of_query(&error))
}

/// A value in the first row of an answer.
fn cell(answer: &[SimpleQueryMessage], column: usize) -> Option<&str> {
    answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(column),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
