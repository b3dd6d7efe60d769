//! What is read of a farm at work, from tables that were filled by hand.

use postgres::Client;
use warploom_farm::address::Address;
use warploom_farm::connect::connect;
use warploom_farm::history::{self, History};
use warploom_farm::status::{self, Life, Queue, Status};
use warploom_farm::store::{self, Postgres};
use warploom_tune::records::{Records, RecordsError, RecordsPlace};
use warploom_tune::sample::Status as Outcome;

use crate::harness::Running;
use crate::harness::trials::{failed, problem, trial};

/// The server's time, so many seconds ago.
fn ago(seconds: u32) -> String {
    format!("extract(epoch FROM clock_timestamp())::double precision - {seconds}")
}

/// A schema with records, and connections to it.
struct Farm {
    address: Address,
    records: Records,
    client: Client,
    store: Postgres,
}

impl Farm {
    fn new(server: &Running) -> Farm {
        let address = server.address();
        let records = store::open(&address).unwrap();
        let client = connect(&address).unwrap();
        let store = Postgres::open_existing(&address).unwrap();
        Farm { address, records, client, store }
    }

    fn execute(&mut self, statement: &str) {
        self.client.batch_execute(statement).unwrap();
    }

    fn read(&self) -> Status {
        status::read(&self.store).unwrap()
    }

    /// Adds a worker that joined and was seen so many seconds ago.
    fn worker(&mut self, host: &str, holder: i32, joined: u32, seen: u32) {
        let device = r#"{"name": "H200", "sms": 132}"#;
        let (joined, seen) = (ago(joined), ago(seen));
        self.execute(&format!(
            "INSERT INTO workers (holder, host, process, roles, program, fingerprint, device, gpus, joined_at,
                 seen_at, compiled, ran, failed)
             VALUES ('{holder}', '{host}', 77, 'compile,run', 'p', 'f', '{device}', 2, {joined}, {seen}, 30, 20, 3)"
        ));
    }

    /// Adds a run of the problem with the number 1.
    fn run(&mut self, name: &str, state: &str, holder: i32, numbers: &str) {
        self.execute(&format!(
            "INSERT INTO runs (name, task, state, holder, problem, before, expected, gain, share, message, asked_at)
             VALUES ('{name}', '', '{state}', '{holder}', 1, {numbers}, 'so far', 0)"
        ));
    }

    /// Says that a worker has recorded a trial so many seconds ago.
    fn measured(&mut self, trial: u32, worker: u32, seconds: u32) {
        let at = ago(seconds);
        self.execute(&format!("INSERT INTO measured VALUES ({trial}, {worker}, {at}, 1)"));
    }
}

/// Connects as another process would; its number is that of the advisory lock.
fn process(address: &Address) -> (Postgres, i32) {
    let process = Postgres::open_existing(address).unwrap();
    let holder = process.holder();
    (process, holder)
}

#[test]
fn postgres_tells_who_is_alive() {
    let Some(server) = Running::start("postgres_tells_who_is_alive") else { return };
    let mut farm = Farm::new(&server);
    assert_eq!(
        farm.read(),
        Status { server: farm.read().server, seconds_left: Some(0.0), ..Status::default() }
    );
    let ((one, holder), (other, dead)) = (process(&farm.address), process(&farm.address));
    drop(other);
    farm.worker("alive", holder, 100, 4);
    farm.worker("dead", dead, 100, 50);
    farm.worker("gone", dead, 100, 60);
    farm.execute("UPDATE workers SET left_at = seen_at, device = NULL, gpus = 0 WHERE host = 'gone'");
    farm.worker("of last week", dead, 700_000, 600_000);
    // Other programs on the same server lock the same numbers.
    farm.execute(&format!("SELECT pg_advisory_lock(12345, {dead})"));

    // The server may need a moment to notice that a connection has ended.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while farm.read().count(Life::Alive) > 1 && std::time::Instant::now() < until {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let status = farm.read();
    let lives: Vec<(&str, Life)> =
        status.workers.iter().map(|worker| (worker.host.as_str(), worker.life)).collect();
    assert_eq!(lives, [("alive", Life::Alive), ("dead", Life::Lost), ("gone", Life::Left)]);
    let (alive, gone) = (&status.workers[0], &status.workers[2]);
    assert_eq!((alive.roles.join("+").as_str(), alive.device.as_deref()), ("compile+run", Some("H200")));
    assert!((4.0..10.0).contains(&alive.seen_seconds), "{alive:?}");
    assert_eq!((alive.process, alive.gpus, alive.compiled, alive.ran, alive.failed), (77, 2, 30, 20, 3));
    assert_eq!((alive.pace, gone.device.as_deref(), gone.gpus), (None, None, 0));
    drop(one);
    assert!(!status.server.is_empty(), "{status:?}");
}

#[test]
fn postgres_counts_trials_and_candidates() {
    let Some(server) = Running::start("postgres_counts_trials_and_candidates") else { return };
    let mut farm = Farm::new(&server);
    let id = problem(&mut farm.records);
    for (schedule, us) in [("a", 5.0), ("b", 40.0), ("c", 30.0), ("d", 20.0)] {
        farm.records.record(id, &trial(schedule, us)).unwrap();
    }
    farm.records.record(id, &failed("e", Outcome::Crashed("it hangs".to_owned()))).unwrap();
    let ((_one, holder), (other, dead)) = (process(&farm.address), process(&farm.address));
    drop(other);
    farm.worker("one", holder, 1000, 1);
    farm.worker("new", holder, 120, 1);
    for (trial, worker, seconds) in [(1, 1, 5000), (2, 1, 400), (3, 1, 200), (4, 1, 20), (5, 2, 10)] {
        farm.measured(trial, worker, seconds);
    }
    farm.run("old", "finished", dead, "0, 9, 0.5, 0.5");
    farm.execute("UPDATE runs SET ended_at = 1");
    farm.run("now", "active", holder, "2, 20, 0.001, 0.6");
    farm.run("orphan", "active", dead, "5, 17, 0.001, 0.4");
    for (state, count) in [("queued", 4), ("compiling", 3), ("compiled", 2), ("running", 1)] {
        farm.execute(&format!(
            "INSERT INTO candidates (run, problem, kind, schedule_hash, schedule, origin, options, fingerprint, state)
             SELECT 2, 1, 'trial', '{state}' || n, '', '', '', '', '{state}' FROM generate_series(1, {count}) n"
        ));
    }
    let status = farm.read();
    assert_eq!(status.queue, Queue { queued: 4, compiling: 3, compiled: 2, running: 1 });
    let [old, now, orphan] = &status.runs[..] else { panic!("{status:?}") };
    assert_eq!((old.trials, old.valid, old.best_us), (2, 2, Some(5.0)), "up to the next run: {old:?}");
    assert_eq!((now.trials, now.valid, now.best_us, now.expected), (3, 2, Some(5.0), 20));
    assert_eq!((now.proposed, orphan.proposed, orphan.trials), (true, false, 0));
    assert_eq!((old.why.as_str(), now.message.as_str()), ("", "so far"));
    assert!(now.why.starts_with("just begun"), "{now:?}");

    let rates: Vec<f64> = status.workers.iter().map(|worker| worker.trials_per_minute).collect();
    assert!((rates[0] - 0.4).abs() < 0.01 && (rates[1] - 0.5).abs() < 0.02, "{rates:?}");
    let lately = status.throughput;
    assert_eq!((lately.minute, lately.ten_minutes), (2, 4));
    assert!((lately.per_minute - 0.6).abs() < 0.01, "4 in 400 seconds: {lately:?}");
    let left = status.seconds_left.unwrap();
    assert!((left - 34.0 / 0.01).abs() < 60.0, "17 and 17 trials are left: {left}");
}

#[test]
fn postgres_compares_gpus_and_keeps_notes() {
    let Some(server) = Running::start("postgres_compares_gpus_and_keeps_notes") else { return };
    let mut farm = Farm::new(&server);
    problem(&mut farm.records);
    let (_process, holder) = process(&farm.address);
    (0..4).for_each(|_| farm.worker("host", holder, 10, 1));
    farm.execute(
        "INSERT INTO paces (problem, worker, gpu, default_us) VALUES (1, 1, 0, 100), (1, 1, 1, 100), (1, 2, 0, 80),
             (1, 3, 0, 125)",
    );
    let paces: Vec<Option<f64>> = farm.read().workers.iter().map(|worker| worker.pace).collect();
    let expected = [Some(1.0), Some(1.25), Some(0.8), None];
    for (pace, expected) in paces.iter().zip(expected) {
        assert_eq!(pace.is_some(), expected.is_some(), "{paces:?}");
        assert!((pace.unwrap_or(0.0) - expected.unwrap_or(0.0)).abs() < 1e-9, "{paces:?}");
    }
    let at = ago(90);
    for number in 1..=12 {
        farm.execute(&format!("INSERT INTO notes (at, worker, note) VALUES ({at}, 3, 'note {number}')"));
    }
    let notes = farm.read().notes;
    let texts: Vec<&str> = notes.iter().map(|note| note.note.as_str()).collect();
    assert_eq!((texts.len(), texts[0], texts[9]), (10, "note 3", "note 12"));
    assert_eq!((notes[0].worker, notes[0].run), (Some(3), None));
    assert!((89.0..120.0).contains(&notes[0].seconds), "{notes:?}");
}

#[test]
fn postgres_rows_of_later_programs_are_refused() {
    let Some(server) = Running::start("postgres_rows_of_later_programs_are_refused") else { return };
    let mut farm = Farm::new(&server);
    problem(&mut farm.records);
    farm.run("blur", "active", 0, "0, 9, 0, 1");
    farm.execute(
        "INSERT INTO candidates (run, problem, kind, schedule_hash, schedule, origin, options, fingerprint, state)
         VALUES (1, 1, 'trial', '', '', '', '', '', 'boxed')",
    );
    let error = status::read(&farm.store).unwrap_err();
    assert!(
        matches!(&error, RecordsError::Row { place: RecordsPlace::Server(_), message } if message.contains("`boxed`"))
    );
}

#[test]
fn postgres_remembers_what_was_measured() {
    let Some(server) = Running::start("postgres_remembers_what_was_measured") else { return };
    let mut farm = Farm::new(&server);
    assert_eq!(history::read(&farm.store).unwrap(), None);
    let id = problem(&mut farm.records);
    for (schedule, us) in [("a", 40.0), ("b", 50.0), ("c", 30.0), ("d", 30.0)] {
        farm.records.record(id, &trial(schedule, us)).unwrap();
    }
    farm.records.record(id, &failed("e", Outcome::Crashed("it hangs".to_owned()))).unwrap();
    farm.records.record(id, &failed("f", Outcome::Spilled("8 bytes".to_owned()))).unwrap();
    farm.records.record(id, &trial("not of the farm", 1.0)).unwrap();
    farm.worker("one", 1, 700, 1);
    farm.worker("idle", 1, 700, 1);
    farm.worker("two", 1, 700, 1);
    for (trial, worker, seconds) in
        [(1, 1, 0), (2, 3, 60), (3, 3, 120), (4, 1, 300), (5, 3, 599), (6, 3, 600)]
    {
        farm.execute(&format!("INSERT INTO measured VALUES ({trial}, {worker}, 1000.5 + {seconds}, 1)"));
    }
    let History { began_at, seconds, period, periods, workers, problems } =
        history::read(&farm.store).unwrap().unwrap();
    assert_eq!((began_at, seconds, period, periods.len()), (1000.5, 600.0, 10.0, 60));
    assert_eq!(periods.iter().flat_map(|period| period.values()).sum::<u64>(), 6);
    assert_eq!((periods[0].get(&1), periods[6].get(&3), periods[59].get(&3)), (Some(&1), Some(&1), Some(&2)));
    let [one, two] = &workers[..] else { panic!("{workers:?}") };
    assert_eq!((one.host.as_str(), one.count(), one.first, one.last), ("one", 2, 0.0, 300.0));
    assert_eq!((one.per_minute(), two.per_minute()), (Some(0.2), Some(3.0 * 60.0 / 540.0)));
    let outcomes: Vec<(&str, u64)> = two.trials.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
    assert_eq!(outcomes, [("crashed", 1), ("ok", 2), ("spilled", 1)]);
    let [tuned] = &problems[..] else { panic!("{problems:?}") };
    assert_eq!((tuned.problem, tuned.name.as_str()), (id.0, "twice"));
    assert_eq!(tuned.bests, [(0.0, 40.0), (120.0, 30.0)]);
}
