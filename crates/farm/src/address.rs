//! Addresses of PostgreSQL servers: URLs in the form of libpq, resolved completely.
//!
//! Everything that PostgreSQL's own programs read from the environment is resolved when an address is read, so an
//! [`Address`] is complete. Encryption is decided there too, see [`Tls`].
//!
//! Messages show no part of a URL that could contain a password, whatever its author forgot to escape.

mod environment;
mod error;
mod password;
mod tls;
mod url;

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use rustls::pki_types::ServerName;

pub use environment::Environment;
pub use error::AddressError;
pub use password::Password;
pub use tls::{Roots, Tls};

/// The schema of the tables, unless the address names one.
pub const SCHEMA: &str = "warploom";
/// The folder of the server's socket, as most distributions build libpq.
const SOCKETS: &str = "/var/run/postgresql";
const PORT: u16 = 5432;
const PORTS: &str = "a number from 1 to 65535";
const APPLICATION: &str = "warploom";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The place of a PostgreSQL server, the role that logs in, and the protection of the connection.
///
/// It is read from `postgres://user@host:port/database?parameter=value`. The parameters are `host`, `port`, `user`,
/// `password`, `dbname`, `sslmode`, `sslrootcert`, `connect_timeout` and `application_name` as in libpq, and `schema`,
/// the schema of the tables. Missing values come from the environment and libpq's files, then from libpq's defaults.
///
/// `Display` prints a complete URL without the password, which means the same everywhere. Only root certificates in
/// memory ([`Roots::Pem`]) are also left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    host: Host,
    port: u16,
    login: Login,
    tls: Tls,
    connect_timeout: Duration,
    application_name: String,
}

/// The place of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Host {
    /// The folder of a Unix socket.
    Socket(String),
    /// A host name or an IP address, without brackets.
    Name(String),
}

/// The role that logs in, and its tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Login {
    /// The role.
    pub user: String,
    /// The database.
    pub database: String,
    /// The schema of the tables, see [`Address::schema`].
    pub schema: String,
    /// The password of the role. Some servers ask for none.
    pub password: Option<Password>,
}

impl Address {
    /// Reads a URL. Values that it leaves open come from the environment.
    ///
    /// # Errors
    /// If the URL is malformed or contradicts itself, if it would leave a connection to another machine unprotected
    /// without saying so, or if the password file must not be used.
    pub fn parse(text: &str, environment: &Environment) -> Result<Address, AddressError> {
        let mut given = url::split(text)?;
        let mut pick = |name, variable| match given.remove(name) {
            Some(value) => Ok(Some((name, value))),
            None => Ok(environment.text(variable)?.map(|value| (variable, value.to_owned()))),
        };
        let host = match pick("host", "PGHOST")? {
            Some((name, value)) => Host::of(name, value)?,
            None if cfg!(unix) => Host::Socket(SOCKETS.to_owned()),
            None => Host::Name("localhost".to_owned()),
        };
        let port = match pick("port", "PGPORT")? {
            Some((name, value)) => port(name, &value)?,
            None => PORT,
        };
        let user = pick("user", "PGUSER")?.map(|(_, user)| user).or_else(|| environment.user.clone());
        let user = user.ok_or(AddressError::NoUser)?;
        let database = pick("dbname", "PGDATABASE")?.map_or_else(|| user.clone(), |(_, database)| database);
        let password = pick("password", "PGPASSWORD")?.map(|(_, password)| Password::from(password));
        let tls = tls::decide(&host, given.remove("sslmode"), given.remove("sslrootcert"), environment)?;
        let connect_timeout =
            given.remove("connect_timeout").map_or(Ok(CONNECT_TIMEOUT), |text| seconds(&text))?;
        let application_name = given.remove("application_name").unwrap_or_else(|| APPLICATION.to_owned());
        let schema = given.remove("schema").unwrap_or_else(|| SCHEMA.to_owned());
        let login = Login { user, database, schema, password };
        let address = Address { host, port, login, tls, connect_timeout, application_name };
        let mut address = address.checked()?;
        if address.login.password.is_none() {
            address.login.password = password::from_file(&address, environment)?;
        }
        Ok(address)
    }

    /// The address of a server on this machine, by the folder of its socket.
    ///
    /// # Errors
    /// If the folder is not an absolute path, or the port, a name or the schema is not valid.
    pub fn of_socket(folder: &str, port: u16, login: Login) -> Result<Address, AddressError> {
        match folder.starts_with('/') {
            true => Address::of_parts(folder, port, login, Tls::Off),
            false => Err(AddressError::Value { name: "host", must: "an absolute path of a folder" }),
        }
    }

    /// The address of a server whose certificate must be valid for its host and come from the
    /// given authority, a certificate as PEM text.
    ///
    /// # Errors
    /// If the host, the port, a name or the schema is not valid.
    pub fn of_host(host: &str, port: u16, login: Login, authority: String) -> Result<Address, AddressError> {
        match host.starts_with('/') {
            true => Err(AddressError::Host { name: "host" }),
            false => Address::of_parts(host, port, login, Tls::Full(Roots::Pem(authority))),
        }
    }

    fn of_parts(host: &str, port: u16, login: Login, tls: Tls) -> Result<Address, AddressError> {
        let host = Host::of("host", host.to_owned())?;
        let (connect_timeout, application_name) = (CONNECT_TIMEOUT, APPLICATION.to_owned());
        Address { host, port, login, tls, connect_timeout, application_name }.checked()
    }

    /// The address, if its port, its names and its schema are valid.
    fn checked(self) -> Result<Address, AddressError> {
        if self.port == 0 {
            return Err(AddressError::Value { name: "port", must: PORTS });
        }
        let Login { user, database, schema, password } = &self.login;
        let names = [("user", user), ("dbname", database), ("application_name", &self.application_name)];
        let wrong = |text: &str| text.is_empty() || text.chars().any(char::is_control);
        if let Some((name, _)) = names.into_iter().find(|(_, text)| wrong(text)) {
            return Err(AddressError::Value { name, must: "a text without control characters" });
        }
        if password.as_ref().is_some_and(|password| password.reveal().contains('\0')) {
            return Err(AddressError::Value { name: "password", must: "a text without NUL" });
        }
        let begins = schema.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
        let rest = schema.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        match begins && rest && schema.len() <= 40 && !schema.starts_with("pg_") {
            true => Ok(self),
            false => Err(AddressError::Schema),
        }
    }

    /// The same address with another password.
    #[must_use]
    pub fn with_password(mut self, password: Option<Password>) -> Address {
        self.login.password = password;
        self
    }

    /// The same address, whose server must have a certificate that is valid for its host and comes
    /// from the given authority, a certificate as PEM text.
    #[must_use]
    pub fn with_authority(mut self, authority: String) -> Address {
        self.tls = Tls::Full(Roots::Pem(authority));
        self
    }

    /// The place of the server.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The port of the server, from 1. A socket has one too: it is part of its file name.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The role that logs in.
    pub fn user(&self) -> &str {
        &self.login.user
    }

    /// The database.
    pub fn database(&self) -> &str {
        &self.login.database
    }

    /// The schema of the tables: at most 40 lowercase letters, digits and `_`, not beginning with a digit or `pg_`.
    pub fn schema(&self) -> &str {
        &self.login.schema
    }

    /// The password, if one was found.
    pub fn password(&self) -> Option<&Password> {
        self.login.password.as_ref()
    }

    /// The protection of the connection.
    pub fn tls(&self) -> &Tls {
        &self.tls
    }

    /// The time limit of one attempt to reach the server.
    pub fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    /// The name by which the server's administrator recognises the connection.
    pub fn application_name(&self) -> &str {
        &self.application_name
    }

    /// The server alone, for messages. Example: `db.example.com:5432`
    pub fn server(&self) -> String {
        match &self.host {
            Host::Socket(folder) => format!("{}/.s.PGSQL.{}", folder.trim_end_matches('/'), self.port),
            Host::Name(host) if host.contains(':') => format!("[{host}]:{}", self.port),
            Host::Name(host) => format!("{host}:{}", self.port),
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    /// Reads a URL in the environment of this process.
    fn from_str(text: &str) -> Result<Address, AddressError> {
        Address::parse(text, &Environment::of_process())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (user, database) = (url::encoded(self.user(), ""), url::encoded(self.database(), ""));
        let mut parameters = Vec::new();
        match &self.host {
            Host::Socket(folder) => {
                parameters.push(("host", folder.clone()));
                parameters.push(("port", self.port.to_string()));
                write!(f, "postgres://{user}@/{database}")?;
            }
            Host::Name(_) => write!(f, "postgres://{user}@{}/{database}", self.server())?,
        }
        parameters.extend(self.tls.parameters(&self.host));
        let seconds = self.connect_timeout.as_secs().to_string();
        let rest = [
            ("connect_timeout", seconds, self.connect_timeout != CONNECT_TIMEOUT),
            ("application_name", self.application_name.clone(), self.application_name != APPLICATION),
            ("schema", self.schema().to_owned(), self.schema() != SCHEMA),
        ];
        parameters.extend(rest.into_iter().filter(|rest| rest.2).map(|(name, value, _)| (name, value)));
        for (at, (name, value)) in parameters.into_iter().enumerate() {
            let before = if at == 0 { '?' } else { '&' };
            write!(f, "{before}{name}={}", url::encoded(&value, "/"))?;
        }
        Ok(())
    }
}

impl Host {
    /// Reads a host that is given under a name: of a parameter or of a variable.
    fn of(name: &'static str, text: String) -> Result<Host, AddressError> {
        if text.contains(',') {
            return Err(AddressError::Hosts);
        }
        let is_path = text.starts_with('/') && !text.chars().any(char::is_control);
        match ServerName::try_from(text.as_str()) {
            _ if is_path => Ok(Host::Socket(text)),
            Ok(_) => Ok(Host::Name(text)),
            Err(_) => Err(AddressError::Host { name }),
        }
    }

    /// Whether the server is on this machine, so that nobody can listen on the way there.
    pub fn is_here(&self) -> bool {
        match self {
            Host::Socket(_) => true,
            Host::Name(name) => match name.parse::<IpAddr>() {
                Ok(ip) => ip.to_canonical().is_loopback(),
                Err(_) => name.eq_ignore_ascii_case("localhost"),
            },
        }
    }
}

fn port(name: &'static str, text: &str) -> Result<u16, AddressError> {
    let port = text.parse().ok().filter(|port| *port > 0);
    match port {
        _ if text.contains(',') => Err(AddressError::Hosts),
        Some(port) => Ok(port),
        None => Err(AddressError::Value { name, must: PORTS }),
    }
}

fn seconds(text: &str) -> Result<Duration, AddressError> {
    let seconds = text.parse().ok().filter(|seconds| (1..=3600).contains(seconds));
    let must = "a number of seconds from 1 to 3600";
    seconds.map(Duration::from_secs).ok_or(AddressError::Value { name: "connect_timeout", must })
}

#[cfg(test)]
mod tests;
