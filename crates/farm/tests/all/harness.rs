//! Stores for tests: files, and schemas of one PostgreSQL server that lives as long as the tests.

pub mod trials;

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use warploom_farm::address::Address;
use warploom_farm::server::{self, Server, StartOptions};
use warploom_farm::store;
use warploom_tune::records::Records;

/// A store that can be opened more than once, also by several threads.
pub trait Open: Sync {
    fn open(&self) -> Records;
}

/// Makes an empty store.
pub type Make<'a> = &'a dyn Fn() -> Box<dyn Open>;

pub struct InFile {
    _folder: TempDir,
    path: PathBuf,
}

pub fn in_a_file() -> InFile {
    let folder = tempfile::tempdir().unwrap();
    InFile { path: folder.path().join("tuning.db"), _folder: folder }
}

pub fn file() -> Box<dyn Open> {
    Box::new(in_a_file())
}

impl Open for InFile {
    fn open(&self) -> Records {
        Records::open(&self.path).unwrap()
    }
}

/// A schema of a server.
pub struct OnServer {
    pub address: Address,
}

impl Open for OnServer {
    fn open(&self) -> Records {
        store::open(&self.address).unwrap()
    }
}

/// A server of a test's own.
pub struct Running {
    folder: TempDir,
    url: String,
    next: AtomicUsize,
}

impl Running {
    /// Starts a server; `None` where PostgreSQL is not installed, unless it is required.
    pub fn start(test: &str) -> Option<Running> {
        assert!(test.contains("postgres"), "CI finds the tests that need PostgreSQL by their names");
        if !server::is_installed() {
            let required = std::env::var("WARPLOOM_REQUIRE_POSTGRES").is_ok_and(|value| value == "1");
            assert!(!required, "{test}: PostgreSQL is not installed");
            let mut err = std::io::stderr();
            writeln!(err, "SKIPPED {test}: PostgreSQL was not found").unwrap();
            return None;
        }
        // The server's user is not root.
        let folder = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir_in("/tmp");
        let folder = folder.unwrap();
        let started = Server::at(&folder.path().join("farm")).start(&StartOptions::default()).unwrap();
        Some(Running { folder, url: started.owner.url, next: AtomicUsize::new(0) })
    }

    /// An address with a schema of its own.
    pub fn address(&self) -> Address {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let joined = if self.url.contains('?') { '&' } else { '?' };
        format!("{}{joined}schema=test_{number}", self.url).parse().unwrap()
    }

    pub fn store(&self) -> Box<dyn Open> {
        Box::new(OnServer { address: self.address() })
    }

    pub fn server(&self) -> Server {
        Server::at(&self.folder.path().join("farm"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.server().stop(Duration::from_secs(30));
    }
}
