//! The server's settings, its saved state, and the SQL that sets up roles.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::account::Account;
use super::error::{At, ServerError};

/// The role that owns the tables, and the server.
pub const OWNER: &str = "warploom_owner";
/// The role of workers, which reads and writes the tables.
pub const WORKER: &str = "warploom_worker";
/// The database of a farm.
pub const DATABASE: &str = "warploom";

/// The state of the last start, in `server.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// The format of the file.
    pub(super) version: u32,
    /// Name of the machine.
    pub(super) machine: String,
    /// The folder of the socket.
    pub(super) socket: String,
    /// The port, which is also part of the socket's name.
    pub(super) port: u16,
    /// The host by which other machines reach the server, if any.
    pub(super) listen: Option<String>,
    /// The limit on connections.
    pub(super) max_connections: u32,
}

impl State {
    /// The state of a server that has been started before.
    pub(super) fn read(folder: &Path) -> Result<Option<State>, ServerError> {
        let path = folder.join("server.json");
        match fs::read(&path) {
            Ok(text) => match serde_json::from_slice(&text) {
                Ok(state @ State { version: 1, .. }) => Ok(Some(state)),
                _ => Err(ServerError::Damaged { path }),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).at(&path),
        }
    }

    /// Writes the settings, with the state last.
    pub(super) fn write(&self, folder: &Path, is_roots: bool) -> Result<(), ServerError> {
        replace(&folder.join("server.conf"), &self.settings(is_roots), 0o644, None)?;
        replace(&folder.join("pg_hba.conf"), &self.rules(), 0o644, None)?;
        let path = folder.join("server.json");
        let text = serde_json::to_string_pretty(self).map_err(io::Error::from).at(&path)?;
        replace(&path, &(text + "\n"), 0o644, None)
    }

    /// The settings in PostgreSQL's notation. None of them needs escaping: the path of the socket and the host consist
    /// of plain characters.
    fn settings(&self, is_roots: bool) -> String {
        let State { socket, port, max_connections, .. } = self;
        // A server started by root runs as another user, and possibly so do the workers. The password protects the
        // socket, as it does a port; other users who connect to it learn nothing.
        let permissions = if is_roots { "0777" } else { "0700" };
        let listen = self.listen.as_deref().unwrap_or_default();
        let ssl = match self.listen {
            Some(_) => "ssl = on\nssl_cert_file = '../tls/server.pem'\nssl_key_file = '../tls/server.key'\n",
            None => "ssl = off\n",
        };
        // A session that waits for longer than `deadlock_timeout` searches for deadlocks, which stalls all sessions if
        // hundreds of workers wait. A failing statement may contain a password, so statements are not logged. Paths are
        // relative to the data, except for the rules, which are relative to the folder of the start.
        format!(
            "# Written by `warploom farm start` at every start.\n\
             include 'data/postgresql.conf'\n\
             hba_file = 'pg_hba.conf'\n\
             listen_addresses = '{listen}'\n\
             port = {port}\n\
             unix_socket_directories = '{socket}'\n\
             unix_socket_permissions = {permissions}\n\
             max_connections = {max_connections}\n\
             password_encryption = 'scram-sha-256'\n\
             {ssl}\
             fsync = on\n\
             synchronous_commit = on\n\
             deadlock_timeout = '20s'\n\
             full_page_writes = on\n\
             logging_collector = on\n\
             log_destination = 'stderr'\n\
             log_directory = '../log'\n\
             log_filename = 'postgresql-%Y-%m-%d_%H%M%S.log'\n\
             log_rotation_age = 0\n\
             log_rotation_size = '10MB'\n\
             log_statement = 'none'\n\
             log_min_duration_statement = -1\n\
             log_min_error_statement = panic\n\
             lc_messages = 'C'\n"
        )
    }

    /// The access rules. All connections need a password, which is never sent unencrypted.
    fn rules(&self) -> String {
        let remote = if self.listen.is_some() { "hostssl all all all scram-sha-256\n" } else { "" };
        format!("# Written by `warploom farm start` at every start.\nlocal all all scram-sha-256\n{remote}")
    }
}

/// The SQL that lets workers use the tables and nothing else, one statement each, for the owner to execute in the
/// farm's database. It is idempotent, and may be executed before there are tables.
pub fn setup_statements(worker_password: &str) -> Vec<String> {
    let password = quoted(worker_password);
    vec![
        format!("CREATE SCHEMA IF NOT EXISTS warploom AUTHORIZATION {OWNER}"),
        format!(
            "DO $$ BEGIN CREATE ROLE {WORKER}; \
             EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        ),
        format!(
            "ALTER ROLE {WORKER} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS \
             PASSWORD {password}"
        ),
        format!("REVOKE ALL ON DATABASE {DATABASE}, postgres, template1 FROM PUBLIC"),
        "REVOKE ALL ON SCHEMA public FROM PUBLIC".to_owned(),
        format!("GRANT CONNECT ON DATABASE {DATABASE} TO {WORKER}"),
        format!("GRANT USAGE ON SCHEMA warploom TO {WORKER}"),
        format!("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA warploom TO {WORKER}"),
        format!("GRANT USAGE ON ALL SEQUENCES IN SCHEMA warploom TO {WORKER}"),
        format!(
            "ALTER DEFAULT PRIVILEGES FOR ROLE {OWNER} IN SCHEMA warploom \
             GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {WORKER}"
        ),
        format!(
            "ALTER DEFAULT PRIVILEGES FOR ROLE {OWNER} IN SCHEMA warploom GRANT USAGE ON SEQUENCES TO {WORKER}"
        ),
    ]
}

/// A text as an SQL constant, whatever the server's settings are.
fn quoted(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    match text.contains('\\') {
        true => format!("E'{}'", doubled.replace('\\', "\\\\")),
        false => format!("'{doubled}'"),
    }
}

/// A new password: 256 bits from the operating system, in hexadecimal.
pub(super) fn new_password() -> Result<String, ServerError> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0; 32];
    File::open(source).and_then(|mut source| source.read_exact(&mut bytes)).at(source)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Writes a file as a whole, with the given permissions and owner.
pub(super) fn replace(
    path: &Path,
    text: &str,
    mode: u32,
    owner: Option<&Account>,
) -> Result<(), ServerError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::NamedTempFile::new_in(folder).at(folder)?;
    file.write_all(text.as_bytes()).at(path)?;
    file.as_file().set_permissions(Permissions::from_mode(mode)).at(path)?;
    if let Some(owner) = owner {
        owner.give(file.path())?;
    }
    file.as_file().sync_all().at(path)?;
    file.persist(path).map_err(|error| error.error).at(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_quoted() {
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("a'; DROP"), "'a''; DROP'");
        assert_eq!(quoted("a\\'; DROP"), "E'a\\\\''; DROP'");
        let statements = setup_statements("it's");
        assert_eq!(statements.iter().filter(|text| text.contains("PASSWORD 'it''s'")).count(), 1);
    }
}
