//! What a farm survives, at length: each of these takes minutes. The faults of a queue alone are in the tests of `warploom-farm`.
//!
//! ```sh
//! cargo test -p warploom-cli --test program farm::faults -- --ignored --test-threads 1 --nocapture
//! ```

use std::io;
use std::net::Shutdown;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use warploom::farm::address::{Address, Host};
use warploom::farm::queue::Queue;
use warploom::tune::records::Store;

use super::*;

/// For how long a run may last.
const LONG: Duration = Duration::from_secs(1200);

const ROLES: [&str; 3] = ["propose", "compile", "run"];

fn said(line: &str) {
    let mut err = io::stderr();
    writeln!(err, "{line}").unwrap();
}

/// A farm with one run of so many trials beside that of the default schedule.
struct Tried {
    farm: Farm,
    trials: usize,
    begin: Instant,
}

impl Tried {
    fn new(test: &str, trials: usize) -> Option<Tried> {
        let farm = Farm::new(test)?;
        let started = farm.json(&format!(
            "farm start blur --database farm --json -- --size 96x64 --strategy random --trials {trials} --templates 4 \
             --beam 4 --passes 2 --samples 2"
        ));
        assert_eq!(started["runs"][0]["name"], "blur", "{started}");
        Some(Tried { farm, trials, begin: Instant::now() })
    }

    fn run(&self) -> Json {
        self.farm.status()["runs"][0].clone()
    }

    fn recorded(&self) -> u64 {
        self.run()["trials"].as_u64().unwrap()
    }

    /// Waits for so many more trials.
    fn proceeds(&self, more: u64) {
        let before = self.recorded();
        while self.recorded() < before + more {
            assert!(self.begin.elapsed() < LONG, "{:#}", self.farm.status());
            thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(self.run()["state"], "active", "a fault after the end would show nothing");
    }

    /// Every trial is there once, none failed, and the best schedule can be printed.
    fn ends(self) {
        self.farm.finished();
        let listed = self.farm.json("records list blur --records farm/farm.json --json");
        let listed = listed["trials"].as_array().unwrap();
        assert_eq!(listed.len(), self.trials + 1);
        let failed: Vec<&Json> = listed.iter().filter(|trial| trial["status"] != "ok").collect();
        assert!(failed.is_empty(), "{failed:?}");
        let best = self.farm.run("records best blur --records farm/farm.json");
        assert!(best.code == 0 && best.out.contains("kernel output"), "{}{}", best.out, best.err);
        said(&format!(
            "{} of {} trials, {:.0} s",
            listed.len(),
            self.trials + 1,
            self.begin.elapsed().as_secs_f64()
        ));
    }

    /// Runs a statement on the farm's server.
    fn sql(&self, statement: &str) {
        let secret = fs::read_to_string(self.farm.path("farm/owner.json")).unwrap();
        let secret: Json = serde_json::from_str(&secret).unwrap();
        let address: Address = secret["url"].as_str().unwrap().parse().unwrap();
        Queue::open(&address).unwrap().store().read(statement, &[]).unwrap();
    }
}

fn signal(worker: &Worker, signal: &str) {
    let process = worker.0.id().to_string();
    assert!(Command::new("kill").args([signal, &process]).status().unwrap().success());
}

#[test]
#[ignore = "takes minutes"]
fn a_hundred_kills_of_each_role_on_postgres() {
    let Some(tried) = Tried::new("a_hundred_kills_of_each_role_on_postgres", 3000) else { return };
    let mut workers = [0, 1, 1, 2, 2].map(|role| (ROLES[role], tried.farm.worker(ROLES[role])));
    for kill in 0..300 {
        thread::sleep(Duration::from_millis(500));
        assert_eq!(tried.run()["state"], "active", "at kill {kill}");
        let role = ROLES[kill % 3];
        let (_, worker) = workers.iter_mut().find(|(of, _)| *of == role).unwrap();
        worker.kill();
        *worker = tried.farm.worker(role);
        workers.rotate_left(1);
    }
    said(&format!("300 kills, {} trials so far", tried.recorded()));
    tried.ends();
}

#[test]
#[ignore = "takes minutes"]
fn the_server_crashes_three_times_on_postgres() {
    let Some(tried) = Tried::new("the_server_crashes_three_times_on_postgres", 300) else { return };
    let _workers = [0, 1, 1, 2, 2].map(|role| tried.farm.worker(ROLES[role]));
    for _ in 0..3 {
        tried.proceeds(30);
        let processes = fs::read_to_string(tried.farm.path("farm/data/postmaster.pid")).unwrap();
        // What `pg_ctl stop -m immediate` sends.
        let crash = Command::new("kill").args(["-QUIT", processes.lines().next().unwrap()]).status();
        assert!(crash.unwrap().success());
        thread::sleep(Duration::from_secs(2));
        let again = tried.farm.json("farm start --database farm --json");
        assert_eq!(again["was_running"], false, "{again}");
    }
    tried.ends();
}

/// Passes connections on to a server's socket, and can cut them.
struct Proxy {
    folder: TempDir,
    open: Arc<Mutex<Vec<UnixStream>>>,
    ended: Arc<AtomicBool>,
}

impl Proxy {
    fn to(server: PathBuf) -> Proxy {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
        let (open, ended) = (Arc::<Mutex<Vec<UnixStream>>>::default(), Arc::<AtomicBool>::default());
        let (known, over) = (open.clone(), ended.clone());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(there) = UnixStream::connect(&server) else { continue };
                if over.load(Ordering::Relaxed) {
                    return;
                }
                for (from, to) in [(&client, &there), (&there, &client)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    thread::spawn(move || {
                        let _ = io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                known.lock().unwrap().push(client);
            }
        });
        Proxy { folder, open, ended }
    }

    /// Cuts all connections; returns how many there were.
    fn cut(&self) -> usize {
        let open = std::mem::take(&mut *self.open.lock().unwrap());
        open.iter().filter(|stream| stream.shutdown(Shutdown::Both).is_ok()).count()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

#[test]
#[ignore = "takes minutes"]
fn connections_are_cut_on_postgres() {
    let Some(tried) = Tried::new("connections_are_cut_on_postgres", 400) else { return };
    let secret = fs::read_to_string(tried.farm.path("farm/farm.json")).unwrap();
    let mut secret: Json = serde_json::from_str(&secret).unwrap();
    let address: Address = secret["url"].as_str().unwrap().parse().unwrap();
    let Host::Socket(server) = address.host() else { panic!("{address:?}") };
    let proxy = Proxy::to(Path::new(server).join(format!(".s.PGSQL.{}", address.port())));
    // The same address, but for the folder of the socket.
    let (user, password) = (address.user(), address.password().unwrap().reveal());
    let (database, folder) = (address.database(), proxy.folder.path().display());
    secret["url"] = format!("postgres://{user}:{password}@/{database}?host={folder}&port=5432").into();
    let path = tried.farm.path("farm/farm-proxy.json");
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).unwrap();
    write!(file, "{secret}").unwrap();
    let _workers = [0, 1, 1, 2, 2].map(|role| tried.farm.worker_of("farm/farm-proxy.json", ROLES[role]));
    let (mut cuts, mut connections) = (0, 0);
    while tried.run()["state"] != "finished" && cuts < 20 {
        tried.proceeds(10);
        connections += proxy.cut();
        cuts += 1;
    }
    assert!(connections > 60, "{connections} connections in {cuts} cuts");
    said(&format!("{cuts} cuts of {connections} connections"));
    tried.ends();
}

#[test]
#[ignore = "takes minutes"]
fn the_disk_is_full_on_postgres() {
    let Some(tried) = Tried::new("the_disk_is_full_on_postgres", 300) else { return };
    let mut workers = [0, 1, 2].map(|role| tried.farm.worker(ROLES[role]));
    tried.proceeds(30);
    tried.sql(
        "CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$",
    );
    tried.sql("CREATE TRIGGER no_space BEFORE INSERT ON trials FOR EACH ROW EXECUTE FUNCTION no_space()");
    let ended = workers[2].0.wait().unwrap();
    let log = fs::read_to_string(tried.farm.path("run.log")).unwrap();
    assert!(!ended.success() && log.contains("free some space"), "{log}");
    tried.sql("DROP TRIGGER no_space ON trials");
    workers[2] = tried.farm.worker(ROLES[2]);
    tried.ends();
}

#[test]
#[ignore = "takes minutes"]
fn a_suspended_proposer_wakes_up_beside_another_on_postgres() {
    let test = "a_suspended_proposer_wakes_up_beside_another_on_postgres";
    let Some(tried) = Tried::new(test, 1500) else { return };
    let first = tried.farm.worker("propose");
    let _workers = [1, 1, 2, 2].map(|role| tried.farm.worker(ROLES[role]));
    tried.proceeds(30);
    let _second = tried.farm.worker("propose");
    for _ in 0..3 {
        signal(&first, "-STOP");
        // Its connection stays open; it counts as gone when nothing was heard of it for a minute.
        let silent = Instant::now();
        let process = u64::from(first.0.id());
        let is_first = |worker: &&Json| worker["process"] == process;
        let life = || {
            tried.farm.status()["workers"].as_array().unwrap().iter().find(is_first).unwrap()["life"].clone()
        };
        while life() == "alive" {
            assert!(silent.elapsed() < Duration::from_secs(90), "{:#}", tried.farm.status());
            thread::sleep(Duration::from_millis(500));
        }
        said(&format!("the proposer counts as lost after {:.0} s", silent.elapsed().as_secs_f64()));
        tried.proceeds(20);
        signal(&first, "-CONT");
        tried.proceeds(20);
    }
    tried.ends();
}

/// Needs Debian's package `libfaketime`.
#[test]
#[ignore = "takes minutes"]
fn the_clock_of_a_worker_jumps_on_postgres() {
    let Some(tried) = Tried::new("the_clock_of_a_worker_jumps_on_postgres", 400) else { return };
    let library = PathBuf::from("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1");
    assert!(library.exists(), "install libfaketime");
    let clock = tried.farm.path("clock");
    fs::write(&clock, "+0").unwrap();
    let jumping = |roles: &str| {
        let mut command = tried.farm.worker_command("farm/farm.json", roles);
        command.env("LD_PRELOAD", &library).env("FAKETIME_TIMESTAMP_FILE", &clock);
        command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        Worker(command.spawn().unwrap())
    };
    let _workers = [jumping("propose"), jumping("compile"), jumping("run"), tried.farm.worker("compile,run")];
    for jump in ["+1d", "-30d", "+400d", "-1h", "+0"] {
        tried.proceeds(20);
        fs::write(&clock, jump).unwrap();
    }
    tried.ends();
}
