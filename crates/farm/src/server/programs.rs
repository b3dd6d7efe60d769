//! PostgreSQL's programs: their places, and how they are run.
//!
//! Every program runs in the farm's folder with paths relative to it: `pg_ctl` passes paths through a shell, which must
//! not see special characters of a folder's name.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::account::Account;
use super::error::{At, ServerError};

/// The oldest supported version of PostgreSQL.
pub(super) const OLDEST: u32 = 13;

/// The variable with the only folder to search.
const ONLY: &str = "WARPLOOM_POSTGRES";

/// The folder of PostgreSQL's versions on Debian and Ubuntu.
const DEBIAN: &str = "/usr/lib/postgresql";

/// The programs of one version, for the server in one folder.
pub(super) struct Programs {
    /// The folder of the programs.
    bin: PathBuf,
    /// The farm's folder.
    folder: PathBuf,
    /// The user that runs them, if not this process's user.
    account: Option<Account>,
}

impl Programs {
    /// Finds the programs that can use the data in a folder; any version if there is no data.
    pub(super) fn find(folder: &Path, account: Option<Account>) -> Result<Programs, ServerError> {
        let data = fs::read_to_string(folder.join("data/PG_VERSION")).ok().map(|text| text.trim().to_owned());
        let mut installed = BTreeSet::new();
        for bin in places() {
            let Some(major) = version(&bin).filter(|major| *major >= OLDEST) else { continue };
            if data.as_ref().is_none_or(|data| *data == major.to_string()) {
                return Ok(Programs { bin, folder: folder.to_path_buf(), account });
            }
            installed.insert(major);
        }
        match data {
            Some(data) if !installed.is_empty() => {
                let installed = installed.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
                Err(ServerError::Version { folder: folder.to_path_buf(), data, installed })
            }
            _ => Err(ServerError::Programs {
                looked: match env::var_os(ONLY) {
                    Some(_) => format!("the folder in {ONLY}"),
                    None => format!("the folder that `pg_config` names, {DEBIAN}/*/bin and PATH"),
                },
            }),
        }
    }

    /// Whether programs of a supported version are installed.
    pub(super) fn are_here() -> bool {
        places().iter().any(|bin| version(bin).is_some_and(|major| major >= OLDEST))
    }

    /// One of the programs, as the server's user, in the farm's folder.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        // The user's own settings of PostgreSQL must not affect this server.
        for (name, _) in env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PG")) {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C").env("PGDATA", "data").current_dir(&self.folder);
        if let Some(account) = &self.account {
            account.run(&mut command);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a program to its end, with a text as its input.
    pub(super) fn output(&self, mut command: Command, input: &str) -> Result<Output, ServerError> {
        let mut run = || -> io::Result<Output> {
            if input.is_empty() {
                return command.output();
            }
            let mut child = command.stdin(Stdio::piped()).spawn()?;
            // If the program ends before it has read this, its output tells why.
            let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
            child.wait_with_output()
        };
        run().at(&self.bin)
    }

    /// Runs a program that must succeed.
    pub(super) fn run(
        &self,
        program: &'static str,
        arguments: &[&str],
        input: &str,
    ) -> Result<(), ServerError> {
        let mut command = self.command(program);
        command.args(arguments);
        let output = self.output(command, input)?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(ServerError::Failed { program, message: last_lines(&said), log: self.folder.join("log") })
    }

    /// Whether a process of the server exists; it may still be starting.
    pub(super) fn alive(&self) -> Result<bool, ServerError> {
        if !self.folder.join("data/postmaster.pid").exists() {
            return Ok(false);
        }
        let mut command = self.command("pg_ctl");
        command.arg("status");
        Ok(self.output(command, "")?.status.success())
    }
}

/// The end of a text, on one line.
pub(super) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(6)..].join("; ");
    last.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Folders that may have the programs, in order of preference.
fn places() -> Vec<PathBuf> {
    if let Some(only) = env::var_os(ONLY) {
        // Programs run in the farm's folder.
        return std::path::absolute(only).into_iter().collect();
    }
    let named = Command::new("pg_config").arg("--bindir").stderr(Stdio::null()).output().ok();
    let named = named.filter(|output| output.status.success());
    let named = named.and_then(|output| String::from_utf8(output.stdout).ok());
    let named = named.map(|text| PathBuf::from(text.trim_end_matches('\n')));
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir(DEBIAN)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    versions.sort_by_key(|(major, _)| std::cmp::Reverse(*major));
    let path = env::var_os("PATH").unwrap_or_default();
    // A relative entry would mean another folder for a program that runs in the farm's folder.
    let path = env::split_paths(&path).filter(|folder| folder.is_absolute());
    named.into_iter().chain(versions.into_iter().map(|(_, bin)| bin)).chain(path).collect()
}

/// The major version of the programs in a folder, if all of them are there.
fn version(bin: &Path) -> Option<u32> {
    if !["initdb", "pg_ctl", "postgres"].iter().all(|program| bin.join(program).is_file()) {
        return None;
    }
    let output = Command::new(bin.join("postgres")).arg("--version").output().ok()?;
    major(&String::from_utf8(output.stdout).ok()?)
}

/// The major version in a line such as `postgres (PostgreSQL) 15.13 (Debian 15.13-1)` or
/// `postgres (PostgreSQL) 18beta1`.
fn major(line: &str) -> Option<u32> {
    let (_, rest) = line.split_once("(PostgreSQL) ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(major("postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)\n"), Some(15));
        assert_eq!(major("postgres (PostgreSQL) 18beta1"), Some(18));
        for text in ["", "postgres (PostgreSQL) ", "postgres (PostgreSQL) devel", "16.1"] {
            assert_eq!(major(text), None, "{text}");
        }
    }

    #[test]
    fn messages_are_one_line() {
        assert_eq!(last_lines("1\n2\n\n3\n4\n5\n 6\n7 \u{1b}[m\n"), "2; 3; 4; 5; 6; 7  [m");
        assert_eq!(last_lines(""), "");
    }
}
