//! Tests with real servers, where PostgreSQL is installed.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use postgres::{Client, Config, NoTls};
use tempfile::TempDir;

use super::*;

/// The time limit of a stop.
const MOST: Duration = Duration::from_secs(30);

/// A server in a new folder, stopped at the end.
struct Farm {
    around: TempDir,
    server: Server,
    folder: PathBuf,
}

impl Farm {
    /// `None` where PostgreSQL is not installed.
    fn new(name: impl AsRef<OsStr>) -> Option<Farm> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("warploom-farm-").permissions(Permissions::from_mode(0o755));
        let around = builder.tempdir_in("/tmp").unwrap();
        if Programs::find(around.path(), None).is_err() {
            println!("skipped: PostgreSQL's server is not installed");
            return None;
        }
        let folder = around.path().join(name.as_ref());
        Some(Farm { server: Server::at(&folder), around, folder })
    }

    fn fails(&self, options: &StartOptions) -> String {
        self.server.start(options).unwrap_err().to_string()
    }

    /// The whole log of PostgreSQL.
    fn log(&self) -> String {
        let mut text = String::new();
        for entry in fs::read_dir(self.folder.join("log")).unwrap() {
            File::open(entry.unwrap().path()).unwrap().read_to_string(&mut text).unwrap();
        }
        text
    }
}

impl Drop for Farm {
    fn drop(&mut self) {
        if self.folder.exists() {
            let _ = self.server.stop(MOST);
        }
        if let Ok(Some(state)) = State::read(&self.folder) {
            let _ = fs::remove_dir(state.socket);
        }
    }
}

fn connect(file: &FarmFile) -> Result<Client, String> {
    let config: Config = file.url.replace("verify-full", "disable").parse().unwrap();
    config.connect(NoTls).map_err(|error| format!("{error} {:?}", error.as_db_error()))
}

fn no_connection(file: &FarmFile) -> String {
    connect(file).err().expect("refused")
}

fn answer(client: &mut Client, question: &str) -> String {
    client.query_one(question, &[]).unwrap().get(0)
}

fn refusal(client: &mut Client, statement: &str) -> String {
    let error = client.batch_execute(statement).unwrap_err();
    error.as_db_error().map(|error| error.message().to_owned()).unwrap_or_default()
}

fn listening(text: &str) -> StartOptions {
    StartOptions { listen: Some(text.parse().unwrap()), ..StartOptions::default() }
}

/// Sets up roles, then checks the rights of workers.
fn try_roles(started: &Started) {
    let mut owner = connect(&started.owner).unwrap();
    assert!(connect(&started.worker).is_err(), "there is no such role yet");
    let table = "CREATE TABLE warploom.early (n bigserial, t text)";
    owner.batch_execute(&format!("CREATE SCHEMA warploom; {table}")).unwrap();
    for statement in [started.setup(), started.setup()].concat() {
        owner.batch_execute(&statement).unwrap();
    }
    owner.batch_execute("CREATE TABLE warploom.late (n bigserial, t text)").unwrap();
    let mut worker = connect(&started.worker).unwrap();
    for table in ["early", "late"] {
        let insert = format!("INSERT INTO warploom.{table} (t) VALUES ('a'), ('b')");
        let change = format!("UPDATE warploom.{table} SET t = 'c'; DELETE FROM warploom.{table} WHERE n = 1");
        worker.batch_execute(&format!("{insert}; {change}")).unwrap();
        assert_eq!(answer(&mut worker, &format!("SELECT string_agg(t, ',') FROM warploom.{table}")), "c");
        for statement in ["TRUNCATE", "DROP TABLE", "ALTER TABLE"] {
            let rest = if statement == "ALTER TABLE" { "ADD COLUMN x int" } else { "" };
            let message = refusal(&mut worker, &format!("{statement} warploom.{table} {rest}"));
            assert!(message.contains("denied") || message.contains("must be owner"), "{message}");
        }
    }
    for statement in [
        "CREATE TABLE warploom.mine ()",
        "CREATE TABLE public.mine ()",
        "CREATE SCHEMA mine",
        "CREATE DATABASE mine",
        "CREATE ROLE mine",
        "COPY warploom.early TO PROGRAM 'true'",
    ] {
        let message = refusal(&mut worker, statement);
        assert!(message.contains("permission denied") || message.contains("must be"), "{message}");
    }
    let role = "SELECT (rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls)::text
                FROM pg_roles WHERE rolname = current_user";
    assert_eq!(answer(&mut worker, role), "false");
    let other = FarmFile { url: started.worker.url.replace("2/warploom", "2/postgres"), ca: None };
    assert!(no_connection(&other).contains("permission denied"));
    assert!(!refusal(&mut owner, "ALTER ROLE nobody PASSWORD 'told-to-nobody'").is_empty());
}

/// Checks that a password is in no log and in no process's arguments.
fn is_secret(farm: &Farm, file: &FarmFile) {
    let password = file.password().unwrap();
    assert_eq!(password.len(), 64);
    assert!(!farm.log().contains(password) && !farm.log().contains("told-to-nobody"));
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        for name in ["cmdline", "environ"] {
            let text = fs::read(process.path().join(name)).unwrap_or_default();
            assert!(!String::from_utf8_lossy(&text).contains(password), "{:?}", process.path());
        }
    }
}

/// One test, because making the data of a server takes seconds.
#[test]
fn a_postgres_server_starts_stops_and_starts_again() {
    // A shell would expand this, and one byte is not UTF-8.
    let name = OsStr::from_bytes(b"it's \"a\" $(touch x) `touch y` \\ farm,\xff/");
    let Some(farm) = Farm::new(name) else { return };
    assert!(!farm.server.is_running().unwrap());
    let error = farm.fails(&StartOptions { max_connections: Some(1), ..StartOptions::default() });
    assert!(error.starts_with("`postgres` failed: ") && error.contains("max_connections"), "{error}");

    let most = StartOptions { max_connections: Some(30), ..StartOptions::default() };
    let start = || farm.server.start(&most).unwrap();
    let (one, two) = thread::scope(|scope| {
        let other = scope.spawn(start);
        (start(), other.join().unwrap())
    });
    assert_ne!(one.was_running, two.was_running, "one of them starts it");
    assert_eq!((&one.owner, &one.worker), (&two.owner, &two.worker));
    assert!(farm.server.is_running().unwrap());
    try_files(&farm, &one);
    try_settings(&one);
    try_roles(&one);
    for file in [&one.owner, &one.worker] {
        is_secret(&farm, file);
        let wrong = file.url.replace(file.password().unwrap(), "0000");
        let wrong = FarmFile { url: wrong, ca: None };
        assert!(no_connection(&wrong).contains("password authentication failed"));
    }
    let error = farm.fails(&listening("127.0.0.1"));
    assert!(error.contains("(for this machine only, with up to 30 connections)"), "{error}");
    assert!(farm.server.stop(MOST).unwrap());
    assert!(!farm.server.stop(MOST).unwrap() && !farm.server.is_running().unwrap());
    try_listening(&farm, &one);
    try_damage(&farm);
}

/// Checks the files in the folder, and that no shell has expanded its name.
fn try_files(farm: &Farm, started: &Started) {
    assert_eq!(FarmFile::read(&started.owner_path).unwrap(), started.owner);
    assert_eq!(FarmFile::read(&started.worker_path).unwrap(), started.worker);
    assert_eq!(started.note.is_some(), rustix::process::geteuid().is_root());
    assert_eq!(fs::read_dir(farm.around.path()).unwrap().count(), 1, "nothing is next to the folder");
    let left = fs::read_dir(&farm.folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut left: Vec<_> = left.filter_map(|name| name.into_string().ok()).collect();
    left.sort();
    let names = [
        "data",
        "farm.json",
        "log",
        "owner.json",
        "pg_hba.conf",
        "server.conf",
        "server.json",
        "warploom.lock",
    ];
    assert_eq!(left, names);
}

fn try_settings(started: &Started) {
    let mut owner = connect(&started.owner).unwrap();
    for (setting, value) in [
        ("max_connections", "30"),
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("deadlock_timeout", "20s"),
        ("data_checksums", "on"),
        ("server_encoding", "UTF8"),
        ("lc_messages", "C"),
        ("password_encryption", "scram-sha-256"),
        ("listen_addresses", ""),
    ] {
        assert_eq!(answer(&mut owner, &format!("SHOW {setting}")), value, "{setting}");
    }
}

/// Starts the server again for other machines. Passwords and data are as before, no connection is
/// without encryption, and certificates are kept as long as they can be.
fn try_listening(farm: &Farm, before: &Started) {
    let started = farm.server.start(&listening("127.0.0.1")).unwrap();
    assert!(!started.was_running);
    assert_eq!(started.owner.password(), before.owner.password());
    assert_eq!(started.worker.password(), before.worker.password());
    let mut owner = connect(&started.owner).unwrap();
    assert_eq!(answer(&mut owner, "SELECT t FROM warploom.early"), "c");
    assert_eq!(answer(&mut owner, "SHOW ssl"), "on");
    assert_eq!(answer(&mut owner, "SHOW max_connections"), "30", "as before");
    let url = &started.worker.url;
    assert!(url.ends_with(&format!("@127.0.0.1:{}/warploom?sslmode=verify-full", started.port)), "{url}");
    let refused = no_connection(&started.worker);
    assert!(refused.contains("pg_hba.conf") && refused.contains("no encryption"), "{refused}");
    let ca = started.worker.ca.clone().unwrap();
    let key = fs::metadata(farm.folder.join("tls/server.key")).unwrap();
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
    let error = farm.fails(&listening("localhost"));
    assert!(error.contains(&format!("at 127.0.0.1, port {}, with up to 30", started.port)), "{error}");
    let again = farm.server.start(&listening("127.0.0.1")).unwrap();
    assert_eq!((again.was_running, again.worker), (true, started.worker));

    // The same certificate for the same host, another one by the same authority for another.
    let certificate = || fs::read_to_string(farm.folder.join("tls/server.pem")).unwrap();
    let first = certificate();
    for (host, is_first) in [("127.0.0.1", true), ("localhost", false)] {
        farm.server.stop(MOST).unwrap();
        let again = farm.server.start(&listening(host)).unwrap();
        assert_eq!((again.worker.ca.as_ref(), again.port), (Some(&ca), started.port));
        assert_eq!(certificate() == first, is_first);
    }
    farm.server.stop(MOST).unwrap();
}

/// A damaged folder gives a sentence.
fn try_damage(farm: &Farm) {
    let usual = StartOptions::default();
    let changed = |name: &str, text: &str| {
        let path = farm.folder.join(name);
        let before = fs::read(&path).unwrap();
        fs::write(&path, text).unwrap();
        let error = farm.fails(&usual);
        fs::write(&path, before).unwrap();
        error
    };
    let error = changed("data/PG_VERSION", "9.6\n");
    assert!(error.contains("was made by PostgreSQL 9.6, and only "), "{error}");
    assert!(changed("owner.json", "{}").contains("is not a farm file"));
    assert!(changed("server.json", "{}").contains("server.json is missing or damaged"));
    let state = fs::read_to_string(farm.folder.join("server.json")).unwrap();
    fs::write(farm.folder.join("data/postmaster.pid"), "1\n").unwrap();
    let error = changed("server.json", &state.replace(&machine(), "else.where"));
    assert!(error.contains("was started on the machine `else.where` and was not stopped"), "{error}");
    fs::remove_file(farm.folder.join("data/postmaster.pid")).unwrap();
    fs::remove_file(farm.folder.join("owner.json")).unwrap();
    assert!(farm.fails(&usual).contains("cannot read the farm file "));
}

#[test]
fn postgres_that_root_starts_needs_a_folder_that_it_can_enter() {
    let Some(farm) = Farm::new("farm") else { return };
    fs::set_permissions(farm.around.path(), Permissions::from_mode(0o700)).unwrap();
    if rustix::process::geteuid().is_root() {
        let error = farm.fails(&StartOptions::default());
        let expected = format!("who cannot enter {}; run `chmod o+x`", farm.around.path().display());
        assert!(error.contains(&expected), "{error}");
    }
}
