//! A private PostgreSQL server in a folder, for those who have none.
//!
//! The server runs as the user who starts it, or for root as a service user. It listens on a Unix socket, and for other
//! machines only on request and only encrypted. It has the role [`OWNER`], which owns everything, the role [`WORKER`],
//! which may use the tables, and the database [`DATABASE`]. Their passwords are random and are stored only in two farm
//! files.

#![cfg(unix)]

mod account;
mod certificate;
mod error;
mod folder;
mod listen;
mod programs;
mod settings;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

pub use error::ServerError;
pub use listen::Listen;
pub use settings::{DATABASE, OWNER, WORKER, setup_statements};

use crate::farm_file::{FarmFile, FarmFileError};
use account::Account;
use error::At;
use programs::{Programs, last_lines};
use settings::{State, new_password};

/// The default limit on connections.
const CONNECTIONS: u32 = 200;
/// Port of the socket of a server that other machines do not reach.
const PORT: u16 = 5432;
/// The number of log files kept at a start. Each has at most about 10 MB.
const LOGS: usize = 10;

/// A private server by its folder. The server keeps running when this value is dropped.
#[derive(Clone, Debug)]
pub struct Server {
    folder: PathBuf,
}

/// Options of a start.
#[derive(Clone, Debug)]
pub struct StartOptions {
    /// The address by which other machines reach it; `None` for processes of this machine only.
    pub listen: Option<Listen>,
    /// The limit on connections; `None` keeps the previous limit, initially 200.
    pub max_connections: Option<u32>,
    /// The time limit of the start.
    pub timeout: Duration,
}

impl Default for StartOptions {
    fn default() -> StartOptions {
        StartOptions { listen: None, max_connections: None, timeout: Duration::from_secs(60) }
    }
}

/// Whether PostgreSQL's programs are installed.
pub fn is_installed() -> bool {
    Programs::are_here()
}

/// A server that accepts connections.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Started {
    /// Whether it was running before.
    pub was_running: bool,
    /// The connection of the owner, by the socket.
    pub owner: FarmFile,
    /// The connection of workers: by the address for other machines, if there is one.
    pub worker: FarmFile,
    /// The file that contains the connection of the owner.
    pub owner_path: PathBuf,
    /// The file that contains the connection of workers.
    pub worker_path: PathBuf,
    /// The folder of the socket.
    pub socket: PathBuf,
    /// The port, which is also part of the socket's name.
    pub port: u16,
    /// The host by which other machines reach it.
    pub listen: Option<String>,
    /// A sentence for the user, if root has started it.
    pub note: Option<String>,
}

impl Started {
    /// The statements that the owner must execute after every start, see [`setup_statements`].
    pub fn setup(&self) -> Vec<String> {
        setup_statements(self.worker.password().unwrap_or_default())
    }
}

impl Server {
    /// The server of a folder, which need not exist yet.
    pub fn at(folder: &Path) -> Server {
        Server { folder: folder.to_path_buf() }
    }

    /// Starts the server, with new data in a new folder, and waits until it accepts connections. A running server is
    /// left unchanged.
    ///
    /// # Errors
    /// If PostgreSQL is not installed, the folder cannot be used, the server runs with other options than those given,
    /// or it does not start. The message then quotes its log.
    pub fn start(&self, options: &StartOptions) -> Result<Started, ServerError> {
        let folder = folder::prepared(&self.folder)?;
        let _lock = folder::lock(&folder, options.timeout)?;
        let start = Start::new(folder, options.timeout)?;
        let was_running = start.programs.alive()?;
        let state = match &start.before {
            Some(state) if was_running => start.reused(state, options)?,
            None if was_running => {
                return Err(ServerError::Damaged { path: start.folder.join("server.json") });
            }
            _ => start.planned(options)?,
        };
        let ca = match &state.listen {
            Some(_) if was_running => Some(certificate::current(&start.folder)?),
            Some(host) => Some(certificate::ensure(&start.folder, host, start.account.as_ref())?),
            None => None,
        };
        let owner = start.owner_file(&state)?;
        let worker = start.worker_file(&state, ca)?;
        let (owner_path, worker_path) = (start.folder.join("owner.json"), start.folder.join("farm.json"));
        owner.write(&owner_path)?;
        worker.write(&worker_path)?;
        if !was_running {
            start.initialise(&owner)?;
            state.write(&start.folder, start.account.is_some())?;
            start.launch()?;
        }
        start.wait(&state)?;
        Ok(Started {
            was_running,
            owner,
            worker,
            owner_path,
            worker_path,
            socket: PathBuf::from(state.socket),
            port: state.port,
            listen: state.listen,
            note: start.account.map(|account| account.note(&start.folder)),
        })
    }

    /// Stops the server, if it runs, and returns whether it did. Open transactions are rolled back.
    ///
    /// # Errors
    /// If the folder is not a farm's, or the server does not stop in time.
    pub fn stop(&self, timeout: Duration) -> Result<bool, ServerError> {
        let folder = folder::existing(&self.folder)?;
        let _lock = folder::lock(&folder, timeout)?;
        let programs = Start::new(folder, timeout)?.programs;
        if !programs.alive()? {
            return Ok(false);
        }
        let seconds = timeout.as_secs().max(1).to_string();
        programs.run("pg_ctl", &["stop", "-s", "-m", "fast", "-w", "-t", &seconds], "")?;
        Ok(true)
    }

    /// Whether the server runs. It may still be starting.
    ///
    /// # Errors
    /// If the folder cannot be read, or PostgreSQL is not installed.
    pub fn is_running(&self) -> Result<bool, ServerError> {
        match self.folder.join("data").exists() {
            true => Start::new(folder::existing(&self.folder)?, Duration::ZERO)?.programs.alive(),
            false => Ok(false),
        }
    }
}

/// The inputs of a start.
struct Start {
    folder: PathBuf,
    account: Option<Account>,
    programs: Programs,
    /// The state of the previous start.
    before: Option<State>,
    timeout: Duration,
}

impl Start {
    fn new(folder: PathBuf, timeout: Duration) -> Result<Start, ServerError> {
        let before = State::read(&folder)?;
        // Processes of another machine cannot be seen, and two servers would destroy the data.
        let other = before.as_ref().filter(|state| state.machine != machine());
        if let Some(state) = other.filter(|_| folder.join("data/postmaster.pid").exists()) {
            return Err(ServerError::OtherMachine { folder, machine: state.machine.clone() });
        }
        let account = Account::choose(&folder)?;
        if let Some(account) = &account {
            account.check_enters(&folder)?;
        }
        let programs = Programs::find(&folder, account.clone())?;
        Ok(Start { folder, account, programs, before, timeout })
    }

    /// The state of the running server, if it has the requested options.
    fn reused(&self, state: &State, options: &StartOptions) -> Result<State, ServerError> {
        let listens = options.listen.as_ref().is_none_or(|listen| {
            state.listen.as_deref() == Some(listen.host())
                && listen.port().is_none_or(|port| port == state.port)
        });
        if listens && options.max_connections.is_none_or(|most| most == state.max_connections) {
            return Ok(state.clone());
        }
        let place = match &state.listen {
            Some(host) => format!("for other machines at {host}, port {}", state.port),
            None => "for this machine only".to_owned(),
        };
        let options = format!("{place}, with up to {} connections", state.max_connections);
        Err(ServerError::Running { folder: self.folder.clone(), options })
    }

    /// The state of the server to be started.
    fn planned(&self, options: &StartOptions) -> Result<State, ServerError> {
        let before = self.before.as_ref();
        let port_before = before.filter(|state| state.listen.is_some()).map(|state| state.port);
        let port = match &options.listen {
            Some(listen) => listen.choose_port(port_before)?,
            None => port_before.unwrap_or(PORT),
        };
        let socket_before = before.map(|state| state.socket.as_str());
        Ok(State {
            version: 1,
            machine: machine(),
            socket: folder::socket(&self.folder, socket_before, self.account.as_ref())?,
            port,
            listen: options.listen.as_ref().map(|listen| listen.host().to_owned()),
            max_connections: options
                .max_connections
                .or(before.map(|state| state.max_connections))
                .unwrap_or(CONNECTIONS),
        })
    }

    fn has_data(&self) -> bool {
        self.folder.join("data").exists()
    }

    /// The owner's connection. Existing data keeps the password in the existing file.
    fn owner_file(&self, state: &State) -> Result<FarmFile, ServerError> {
        let path = self.folder.join("owner.json");
        let password = match self.has_data() {
            true => {
                let file = FarmFile::read(&path)?;
                file.password().ok_or(ServerError::Damaged { path })?.to_owned()
            }
            false => new_password()?,
        };
        Ok(FarmFile { url: url(OWNER, &password, &state.socket, state.port), ca: None })
    }

    /// The connection of workers. A missing file gets a new password.
    fn worker_file(&self, state: &State, ca: Option<String>) -> Result<FarmFile, ServerError> {
        let path = self.folder.join("farm.json");
        let password = match FarmFile::read(&path) {
            Ok(file) if self.has_data() => file.password().ok_or(ServerError::Damaged { path })?.to_owned(),
            Err(FarmFileError::Read { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                new_password()?
            }
            Ok(_) => new_password()?,
            Err(error) => return Err(error.into()),
        };
        let host = state.listen.as_ref().unwrap_or(&state.socket);
        Ok(FarmFile { url: url(WORKER, &password, host, state.port), ca })
    }

    /// Creates the data, unless it exists: as a whole or not at all.
    fn initialise(&self, owner: &FarmFile) -> Result<(), ServerError> {
        folder::make(&self.folder.join("log"), 0o700, self.account.as_ref())?;
        let (new, data) = (self.folder.join("data.new"), self.folder.join("data"));
        if data.exists() {
            return Ok(());
        }
        if new.exists() {
            fs::remove_dir_all(&new).at(&new)?;
        }
        folder::make(&new, 0o700, self.account.as_ref())?;
        let mut file = tempfile::Builder::new().prefix("new-").tempfile_in(&self.folder).at(&self.folder)?;
        file.write_all(owner.password().unwrap_or_default().as_bytes()).at(file.path())?;
        if let Some(account) = &self.account {
            account.give(file.path())?;
        }
        let name = file.path().file_name().unwrap_or_default().to_string_lossy();
        let password = format!("--pwfile={name}");
        let arguments = ["-D", "data.new", "-U", OWNER, "--auth=scram-sha-256", &password];
        let rest = ["--encoding=UTF8", "--locale=C", "--data-checksums"];
        // Most of the time is spent on making the data safe from power failures, which tests do not need.
        let sync: &[&str] = if cfg!(test) { &["--no-sync"] } else { &[] };
        self.programs.run("initdb", &[&arguments[..], &rest, sync].concat(), "")?;
        // One process on the data, without connections.
        let single = ["--single", "-D", "data.new", "-c", "exit_on_error=on", "postgres"];
        self.programs.run("postgres", &single, &format!("CREATE DATABASE {DATABASE}\n"))?;
        fs::rename(&new, &data).at(&data)?;
        File::open(&self.folder).and_then(|folder| folder.sync_all()).at(&self.folder)
    }

    /// Starts the process of the server.
    fn launch(&self) -> Result<(), ServerError> {
        let log = self.folder.join("log");
        prune(&log);
        let begin = SystemTime::now().checked_sub(Duration::from_secs(2)).unwrap_or(SystemTime::UNIX_EPOCH);
        let seconds = self.timeout.as_secs().max(1).to_string();
        let mut command = self.programs.command("pg_ctl");
        command.args(["start", "-s", "-w", "-t", &seconds, "-l", "log/start.log"]);
        command.args(["-o", "-c config_file=server.conf"]);
        if self.programs.output(command, "")?.status.success() || self.programs.alive()? {
            return Ok(());
        }
        Err(ServerError::Failed { program: "postgres", message: last_lines(&since(&log, begin)), log })
    }

    /// Waits until the server accepts connections.
    fn wait(&self, state: &State) -> Result<(), ServerError> {
        let socket = Path::new(&state.socket).join(format!(".s.PGSQL.{}", state.port));
        let pid = self.folder.join("data/postmaster.pid");
        let end = Instant::now() + self.timeout;
        loop {
            // The last line of the file contains the state of the server, another one the path of the data. After a
            // crash of the machine, the file is stale.
            let text = fs::read(&pid).unwrap_or_default();
            let is_ready =
                text.split(|byte| *byte == b'\n').nth(7).is_some_and(|line| line.starts_with(b"ready"));
            if is_ready && UnixStream::connect(&socket).is_ok() {
                return Ok(());
            }
            if Instant::now() >= end {
                let seconds = self.timeout.as_secs();
                return Err(ServerError::Late { folder: self.folder.clone(), seconds });
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The address of the farm's database for a role. The host is a name, an IP address, or the folder
/// of a socket; nothing in a password needs an escape.
fn url(role: &str, password: &str, host: &str, port: u16) -> String {
    let (host, options) = match (host.starts_with('/'), host.contains(':')) {
        (true, _) => (host.replace('/', "%2F"), ""),
        (false, true) => (format!("[{host}]"), "?sslmode=verify-full"),
        (false, false) => (host.to_owned(), "?sslmode=verify-full"),
    };
    format!("postgres://{role}:{password}@{host}:{port}/{DATABASE}{options}")
}

/// Name of this machine; empty where the system does not tell.
pub(crate) fn machine() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// Removes old files of the log, and that of the last start.
fn prune(log: &Path) {
    let mut files = logs(log);
    files.sort();
    let old = files.iter().rev().skip(LOGS - 1);
    for file in old.chain([&log.join("start.log")]) {
        // A remaining log is harmless.
        let _ = fs::remove_file(file);
    }
}

/// The log of a start: initially in a file of its own.
fn since(log: &Path, begin: SystemTime) -> String {
    let is_new = |path: &PathBuf| {
        fs::metadata(path).and_then(|facts| facts.modified()).is_ok_and(|modified| modified >= begin)
    };
    let mut files = logs(log);
    files.sort();
    let newest = files.into_iter().rev().find(is_new);
    let files = [log.join("start.log")].into_iter().chain(newest);
    let text = files.map(|path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned());
    let text: String = text.collect();
    let said = |line: &&str| !line.contains("log output");
    text.lines().filter(said).collect::<Vec<_>>().join("\n")
}

/// The log files, which are named by their times.
fn logs(log: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(log).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_log = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"postgresql-"))
    };
    entries.filter(is_log).collect()
}
