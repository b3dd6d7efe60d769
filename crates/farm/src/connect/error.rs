//! Errors of connections. The library's own errors hide the cause behind `source`; these contain it.

use std::error::Error;
use std::io;

use postgres::error::SqlState;
use rustls::CertificateError;
use thiserror::Error;

use crate::address::Address;

/// Why there is no connection. No message contains the password.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Nobody answers, or not yet.
    #[error("cannot reach the server {server}: {message}; check the address, and that the server runs")]
    Unreachable {
        /// The server.
        server: String,
        /// The cause.
        message: String,
    },
    /// The server does not let the user in.
    #[error(
        "the server {server} refuses `{user}` in the database `{database}`: {message}; check the user's name and \
         password, and the server's pg_hba.conf"
    )]
    Refused {
        /// The server.
        server: String,
        /// The role.
        user: String,
        /// The database.
        database: String,
        /// The server's message.
        message: String,
    },
    /// The server wants a password.
    #[error(
        "the server {server} asks for the password of `{user}`, and there is none; set PGPASSWORD, or add a line to \
         ~/.pgpass"
    )]
    NoPassword {
        /// The server.
        server: String,
        /// The role.
        user: String,
    },
    /// The database does not exist.
    #[error(
        "the server {server} has no database `{database}`; create it with `createdb`, or correct the address"
    )]
    NoDatabase {
        /// The server.
        server: String,
        /// The database.
        database: String,
    },
    /// The server cannot encrypt.
    #[error(
        "the server {server} does not offer TLS; set `ssl = on` there, or write `sslmode=disable` if nobody can listen \
         in that network"
    )]
    NoTls {
        /// The server.
        server: String,
    },
    /// The server's certificate is not acceptable.
    #[error(
        "the certificate of the server {server} is not trusted: {message}; give the certificate of its authority as \
         `sslrootcert=FILE`"
    )]
    Untrusted {
        /// The server.
        server: String,
        /// The problem with the certificate.
        message: String,
    },
    /// The certificate belongs to another host.
    #[error(
        "the certificate of the server {server} is not one for this host: {message}; use a name from the certificate, \
         or write `sslmode=verify-ca`"
    )]
    WrongName {
        /// The server.
        server: String,
        /// The names in the certificate.
        message: String,
    },
    /// The root certificates cannot be used.
    #[error(
        "cannot use the root certificates in {place}: {message}; give a file of PEM certificates as `sslrootcert`"
    )]
    Roots {
        /// Their place.
        place: String,
        /// The problem with them.
        message: String,
    },
    /// Any other problem of encryption.
    #[error(
        "cannot encrypt the connection to {server}: {message}; check the server's certificate and its versions of TLS"
    )]
    Tls {
        /// The server.
        server: String,
        /// The cause.
        message: String,
    },
    /// All connections are taken.
    #[error(
        "the server {server} has too many connections; start fewer workers, or raise its max_connections"
    )]
    Full {
        /// The server.
        server: String,
    },
    /// The server is too old.
    #[error("the server {server} is PostgreSQL {version}, and 13 is the oldest that can be used; upgrade it")]
    Old {
        /// The server.
        server: String,
        /// Its major version.
        version: u32,
    },
    /// A connection pooler exchanges the session between transactions.
    #[error(
        "a connection pooler changes the session between transactions, which loses locks; connect to PostgreSQL \
         directly, or set the pooler to session pooling"
    )]
    Pooler,
    /// Another session holds the lock.
    #[error("another session keeps the lock of this one; end that session, or try again once it is over")]
    Locked,
    /// Anything else.
    #[error("the connection failed: {message}; see the server's log, and try again")]
    Other {
        /// The cause.
        message: String,
    },
}

impl ConnectError {
    /// Whether a retry may succeed: the server is starting, or a network is interrupted.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            ConnectError::Unreachable { .. } | ConnectError::Full { .. } | ConnectError::Other { .. }
        )
    }

    /// Classifies an error of connecting to an address.
    pub(super) fn of(address: &Address, error: &postgres::Error) -> ConnectError {
        let (server, user) = (address.server(), address.user().to_owned());
        let database = address.database().to_owned();
        let message = without_password(whole(error), address);
        if let Some(tls) = cause_in_tls(error) {
            return ConnectError::of_tls(server, tls);
        }
        match error.code() {
            Some(&SqlState::INVALID_CATALOG_NAME) => ConnectError::NoDatabase { server, database },
            Some(&SqlState::TOO_MANY_CONNECTIONS) => ConnectError::Full { server },
            Some(&SqlState::CANNOT_CONNECT_NOW) => ConnectError::Unreachable { server, message },
            Some(
                &SqlState::INVALID_PASSWORD
                | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION
                | &SqlState::INSUFFICIENT_PRIVILEGE,
            ) => ConnectError::Refused { server, user, database, message },
            Some(_) => ConnectError::Other { message: format!("{server} says: {message}") },
            None => match cause(error).as_str() {
                // The library's own words; its kinds are private.
                "password missing" => ConnectError::NoPassword { server, user },
                "server does not support TLS" => ConnectError::NoTls { server },
                _ if error.to_string().contains("authentication") => {
                    ConnectError::Refused { server, user, database, message }
                }
                _ => ConnectError::Unreachable { server, message },
            },
        }
    }

    /// Classifies an error of a statement in an open session.
    pub(super) fn of_query(error: &postgres::Error) -> ConnectError {
        match error.code() {
            Some(&SqlState::LOCK_NOT_AVAILABLE) => ConnectError::Locked,
            _ => ConnectError::Other { message: whole(error) },
        }
    }

    fn of_tls(server: String, error: &rustls::Error) -> ConnectError {
        let message = error.to_string();
        match error {
            rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            ) => ConnectError::WrongName { server, message },
            rustls::Error::InvalidCertificate(_) if message.contains("CaUsedAsEndEntity") => {
                let message =
                    "it is that of an authority itself, so the server needs one of its own".to_owned();
                ConnectError::Untrusted { server, message }
            }
            rustls::Error::InvalidCertificate(_) => ConnectError::Untrusted { server, message },
            _ => ConnectError::Tls { server, message },
        }
    }
}

/// The TLS error that caused an error.
fn cause_in_tls(error: &postgres::Error) -> Option<&rustls::Error> {
    // `source` of an I/O error skips the wrapped error.
    let io = error.source()?.downcast_ref::<io::Error>()?;
    io.get_ref()?.downcast_ref()
}

/// The direct cause of an error.
fn cause(error: &postgres::Error) -> String {
    error.source().map(ToString::to_string).unwrap_or_default()
}

/// An error with its causes, on one line; for the server's own errors, its message.
pub(crate) fn whole(error: &postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        return format!("{}{hint}", error.message()).replace(['\n', '\r'], " ");
    }
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        next = cause.source();
    }
    text
}

/// The message, unless it contains the password.
fn without_password(message: String, address: &Address) -> String {
    match address.password() {
        Some(password) if !password.reveal().is_empty() && message.contains(password.reveal()) => {
            "(the message contains the password and is not shown)".to_owned()
        }
        _ => message,
    }
}
