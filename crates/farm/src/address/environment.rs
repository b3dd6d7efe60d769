//! The part of the environment that affects an address.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use super::error::AddressError;

/// The environment in which an address is read. The default one is empty.
#[derive(Clone, Default)]
pub struct Environment {
    /// Variables by name. `PGHOST`, `PGPORT`, `PGUSER`, `PGPASSWORD`, `PGDATABASE`, `PGPASSFILE` and
    /// `PGSSLROOTCERT` are read; an empty one counts as missing.
    pub variables: BTreeMap<String, OsString>,
    /// The user's home folder, for `.pgpass` and `.postgresql/root.crt`.
    pub home: Option<PathBuf>,
    /// The user's name in the operating system.
    pub user: Option<String>,
}

impl Environment {
    /// The environment of this process.
    pub fn of_process() -> Environment {
        let of_postgres = |(name, value): (OsString, OsString)| {
            let name = name.into_string().ok().filter(|name| name.starts_with("PG"))?;
            Some((name, value))
        };
        let variables = env::vars_os().filter_map(of_postgres).collect();
        Environment { variables, home: env::home_dir(), user: user_name() }
    }

    /// The value of a variable as text.
    pub(super) fn text(&self, name: &'static str) -> Result<Option<&str>, AddressError> {
        let Some(value) = self.variables.get(name) else { return Ok(None) };
        let text = value.to_str().ok_or(AddressError::Variable { name })?;
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    /// The path in a variable, or else a path in the home folder.
    pub(super) fn path(&self, name: &str, at_home: &str) -> Option<PathBuf> {
        let path = self.variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        path.or_else(|| Some(self.home.as_ref()?.join(at_home)))
    }
}

impl fmt::Debug for Environment {
    /// Without the variables, one of which may be a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("home", &self.home)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// The name of the user as whom this process acts. For accounts that the file of accounts does not list, such as those
/// of a directory service, the name is taken from `USER`.
#[cfg(unix)]
fn user_name() -> Option<String> {
    let id = rustix::process::geteuid().as_raw().to_string();
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = |account: &str| {
        let mut fields = account.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then(|| name.to_owned())
    };
    accounts.lines().find_map(name).or_else(|| env::var("USER").ok())
}

#[cfg(not(unix))]
fn user_name() -> Option<String> {
    env::var("USERNAME").ok()
}
