//! The user that runs the server. PostgreSQL refuses to run as root, so root runs it as a service user.
//!
//! Only the data and the log belong to that user. The rest of the folder stays root's, so that the
//! server cannot make root write or remove anything elsewhere.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::geteuid;

use super::error::{At, ServerError};

/// The users that may run a server for root, in order of preference.
const NAMES: [&str; 2] = ["postgres", "nobody"];

/// A user for the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Account {
    /// Name of the user.
    pub(super) name: String,
    uid: u32,
    gid: u32,
}

impl Account {
    /// The user for root's server in a folder; `None` if this process is not root, and runs the
    /// server itself. Data that exists keeps its owner.
    pub(super) fn choose(folder: &Path) -> Result<Option<Account>, ServerError> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let owner = fs::metadata(folder.join("data")).ok().map(|facts| (facts.uid(), facts.gid()));
        let owner = owner.filter(|(uid, _)| *uid != 0);
        let found = |wanted: &dyn Fn(&Account) -> bool| accounts(&users).find(|account| wanted(account));
        let account = match owner {
            // Users of a network directory are in no file here.
            Some((uid, gid)) => found(&|account| account.uid == uid)
                .or_else(|| Some(Account { name: uid.to_string(), uid, gid })),
            None => NAMES.iter().find_map(|name| found(&|account| account.name == *name)),
        };
        account.map(Some).ok_or(ServerError::NoUser)
    }

    /// Number of the user.
    pub(super) fn uid(&self) -> u32 {
        self.uid
    }

    /// Makes a command run as this user, without any of root's groups.
    pub(super) fn run(&self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }

    /// Makes a file or folder this user's.
    pub(super) fn give(&self, path: &Path) -> Result<(), ServerError> {
        chown(path, Some(self.uid), Some(self.gid)).at(path)
    }

    /// Checks that this user can enter a folder, which takes permission for all folders around it.
    pub(super) fn check_enters(&self, folder: &Path) -> Result<(), ServerError> {
        let mut around: Vec<&Path> = folder.ancestors().collect();
        around.reverse();
        for folder in around {
            let mut command = Command::new("/bin/true");
            self.run(command.current_dir(folder).stdin(Stdio::null()));
            // Only this kind of error is conclusive; other failures are reported by the programs themselves.
            if command.status().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
                return Err(ServerError::Untraversable {
                    user: self.name.clone(),
                    folder: folder.to_path_buf(),
                });
            }
        }
        Ok(())
    }

    /// A sentence for users.
    pub(super) fn note(&self, folder: &Path) -> String {
        format!(
            "PostgreSQL does not run as root, so the server runs as the user `{}`, to whom {} and {} belong.",
            self.name,
            folder.join("data").display(),
            folder.join("log").display()
        )
    }
}

/// The users in the text of `/etc/passwd`.
fn accounts(users: &str) -> impl Iterator<Item = Account> {
    users.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        (uid != 0).then_some(Account { name, uid, gid })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_read() {
        let users = "root:x:0:0:root:/root:/bin/sh\npostgres:x:101:104:,,,:/:/bin/sh\n\nbad\nx:y:z:1\nnobody:x:7:8::/:\n";
        let found: Vec<_> = accounts(users).map(|account| (account.name, account.uid, account.gid)).collect();
        assert_eq!(found, [("postgres".to_owned(), 101, 104), ("nobody".to_owned(), 7, 8)]);
    }
}
