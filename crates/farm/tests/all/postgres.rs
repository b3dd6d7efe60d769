//! Records on a server whose connections break, whose disk fills up, and whose schema is another's.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use postgres::Client;
use warploom_farm::address::Address;
use warploom_farm::connect::connect;
use warploom_farm::server::StartOptions;
use warploom_farm::store;
use warploom_tune::records::{Claim, RecordsError};

use crate::harness::Running;
use crate::harness::trials::{problem, trial};

/// Ends all connections to records, as a server's administrator or a network may.
fn cut(client: &mut Client) -> u64 {
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE application_name = 'warploom' AND pid <> pg_backend_pid()";
    client.execute(cut, &[]).unwrap()
}

#[test]
fn postgres_claims_end_with_their_connection() {
    let Some(server) = Running::start("postgres_claims_end_with_their_connection") else { return };
    let address = server.address();
    let (mut one, mut other) = (store::open(&address).unwrap(), store::open(&address).unwrap());
    let id = problem(&mut one);
    assert_eq!(one.claim(id, "a").unwrap(), Claim::Granted);
    assert_eq!(other.claim(id, "a").unwrap(), Claim::Taken);
    drop(one);
    granted_soon(&mut other, id, "a");

    // The same when the server ends the connection of a process that does not know it yet.
    let mut third = store::open(&address).unwrap();
    assert_eq!(third.claim(id, "b").unwrap(), Claim::Granted);
    let mut administrator = connect(&address).unwrap();
    assert_eq!(cut(&mut administrator), 2);
    granted_soon(&mut other, id, "b");
    assert_eq!(third.claim(id, "b").unwrap(), Claim::Taken, "its claim went with its connection");
    assert_eq!(third.claim(id, "c").unwrap(), Claim::Granted);
    assert_eq!(other.claim(id, "c").unwrap(), Claim::Taken);
}

/// A server may need a moment to notice that a client has gone.
fn granted_soon(
    records: &mut warploom_tune::records::Records,
    id: warploom_tune::records::ProblemId,
    schedule: &str,
) {
    let until = Instant::now() + Duration::from_secs(60);
    while records.claim(id, schedule).unwrap() != Claim::Granted {
        assert!(Instant::now() < until, "the claim outlives its holder");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Cut connections and a restart cost nothing that was recorded.
#[test]
fn postgres_may_end_while_trials_are_recorded() {
    let Some(server) = Running::start("postgres_may_end_while_trials_are_recorded") else { return };
    let address = server.address();
    let mut records = store::open(&address).unwrap();
    let id = problem(&mut records);
    const TRIALS: usize = 300;
    thread::scope(|scope| {
        let writers = [0, 1].map(|writer| {
            let address = &address;
            scope.spawn(move || {
                let mut records = store::open(address).unwrap();
                for number in 0..TRIALS {
                    let schedule = format!("{writer} {number}");
                    records.claim(id, &schedule).unwrap();
                    records.record(id, &trial(&schedule, 1.0)).unwrap();
                    thread::sleep(Duration::from_millis(5));
                }
            })
        });
        let mut cuts = 0;
        while !writers.iter().all(thread::ScopedJoinHandle::is_finished) {
            thread::sleep(Duration::from_millis(300));
            cuts += connect(&address).map_or(0, |mut client| cut(&mut client));
            if cuts == 4 {
                server.server().stop(Duration::from_secs(30)).unwrap();
                server.server().start(&StartOptions::default()).unwrap();
                cuts += 1;
            }
        }
        assert!(cuts > 4, "{cuts} cuts");
    });
    let mut schedules: Vec<String> =
        records.trials(Some(id)).unwrap().into_iter().map(|trial| trial.sample.schedule).collect();
    assert_eq!(schedules.len(), 2 * TRIALS);
    schedules.sort();
    schedules.dedup();
    assert_eq!(schedules.len(), 2 * TRIALS, "nothing is recorded twice");
}

#[test]
fn postgres_with_a_full_disk_keeps_what_was_committed() {
    let Some(server) = Running::start("postgres_with_a_full_disk_keeps_what_was_committed") else { return };
    let address = server.address();
    let mut records = store::open(&address).unwrap();
    let id = problem(&mut records);
    records.record(id, &trial("before", 1.0)).unwrap();
    let mut administrator = connect(&address).unwrap();
    let full = "CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
         CREATE TRIGGER no_space BEFORE INSERT ON trials FOR EACH ROW EXECUTE FUNCTION no_space()";
    administrator.batch_execute(full).unwrap();
    let error = records.record(id, &trial("while it is full", 1.0)).unwrap_err();
    assert!(matches!(error, RecordsError::Full { .. }), "{error}");
    assert!(error.to_string().contains("free some space"), "{error}");
    administrator.batch_execute("DROP TRIGGER no_space ON trials").unwrap();
    assert!(records.record(id, &trial("after", 1.0)).unwrap());
    assert_eq!(records.trials(None).unwrap().len(), 2);
}

#[test]
fn postgres_schemas_of_others_are_refused() {
    let Some(server) = Running::start("postgres_schemas_of_others_are_refused") else { return };
    let refused = |address: &Address| store::open(address).unwrap_err();
    let make = |address: &Address, tables: &str| {
        let schema = address.schema();
        let make = format!("CREATE SCHEMA {schema}; {}", tables.replace("SCHEMA", schema));
        connect(address).unwrap().batch_execute(&make).unwrap();
    };
    let other = server.address();
    make(&other, "CREATE TABLE SCHEMA.addresses (name TEXT)");
    assert!(matches!(refused(&other), RecordsError::NotRecords { .. }));
    let similar = server.address();
    make(&similar, "CREATE TABLE SCHEMA.version (name TEXT)");
    assert!(matches!(refused(&similar), RecordsError::NotRecords { .. }));

    let later = server.address();
    drop(store::open(&later).unwrap());
    connect(&later).unwrap().batch_execute("UPDATE version SET number = 99").unwrap();
    assert!(matches!(refused(&later), RecordsError::Newer { found: 99, .. }));

    let none = server.address();
    let error = store::open_existing(&none).unwrap_err();
    assert!(matches!(error, RecordsError::Open { .. }), "{error}");
    drop(store::open(&none).unwrap());
    drop(store::open_existing(&none).unwrap());
}

#[test]
fn postgres_tables_are_made_once() {
    let Some(server) = Running::start("postgres_tables_are_made_once") else { return };
    for _ in 0..5 {
        let (address, start) = (server.address(), Barrier::new(6));
        thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    start.wait();
                    store::open(&address).unwrap();
                });
            }
        });
    }
}
