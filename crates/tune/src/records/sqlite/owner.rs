//! Processes that hold claims in a file, which all run on this machine.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::path::Path;

/// A process that holds claims.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Owner {
    /// The boot of the machine, and the namespace of process ids; empty if they are unknown.
    host: String,
    process: u32,
}

impl Owner {
    pub fn this() -> Owner {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        // Containers have their own process ids, so the namespace is part of the host.
        let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let host = match boot.trim() {
            "" => String::new(),
            boot => format!("{boot} {}", space.display()),
        };
        Owner { host, process: std::process::id() }
    }

    /// Parses the text of `Display`.
    pub fn parse(text: &str) -> Option<Owner> {
        let (process, host) = text.split_once(' ')?;
        Some(Owner { host: host.to_owned(), process: process.parse().ok()? })
    }

    /// Whether the process is known to have ended. For processes on other hosts, or without
    /// `/proc`, this is unknown and the answer is `false`.
    pub fn has_ended(&self, this: &Owner) -> bool {
        let here = !self.host.is_empty() && self.host == this.host;
        here && Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{}", self.process)).exists()
    }
}

impl Display for Owner {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.process, self.host)
    }
}
