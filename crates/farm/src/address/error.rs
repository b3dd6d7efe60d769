//! Errors of addresses. None quotes a URL: if its author forgot to escape a character, any part may be a piece of the
//! password.

use std::path::PathBuf;

use thiserror::Error;
use warploom_lang::files::ReadError;

use super::url::MOST;

/// Why an address cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The URL exceeds the limit.
    #[error("the address of a server has at most {MOST} bytes; give a shorter one")]
    Long,
    /// The text is not a URL of PostgreSQL.
    #[error("the address of a server begins with `postgres://`; write postgres://USER@HOST/DATABASE")]
    Scheme,
    /// A malformed escape.
    #[error(
        "the address has a `%` without two hexadecimal digits after it, or escapes that are not UTF-8; write `%` \
         itself as `%25`"
    )]
    Escape,
    /// An `@` that does not separate a login from a host.
    #[error(
        "the address has an `@` too many; where names, passwords and parameters contain `@`, `/` or `?`, write `%40`, \
         `%2F` or `%3F`"
    )]
    At,
    /// A list of hosts or ports.
    #[error("the address names several servers; give the one that takes writes")]
    Hosts,
    /// The host is invalid.
    #[error(
        "`{name}` of the server's address must be a host name, an IP address (as [::1] before a port) or the folder of a \
         socket; correct it, and write special characters of a password as `%` and two hexadecimal digits"
    )]
    Host {
        /// The parameter or variable.
        name: &'static str,
    },
    /// A value that the parameter or variable cannot have.
    #[error("`{name}` of the server's address must be {must}; correct it")]
    Value {
        /// The parameter or variable.
        name: &'static str,
        /// The accepted values.
        must: &'static str,
    },
    /// A schema that is not allowed.
    #[error(
        "`schema` of the server's address must be at most 40 lowercase letters, digits and `_`, and must not begin with a \
         digit or `pg_`; choose another name"
    )]
    Schema,
    /// A parameter without a value.
    #[error("a parameter in the server's address has no `=`; write `?name=value&name=value`")]
    NoValue,
    /// A parameter that is not known here.
    #[error(
        "the server's address has {name}, which is not a parameter here; remove it, or take one of {known}"
    )]
    Unknown {
        /// The parameter in quotes, or a remark that it is not shown.
        name: String,
        /// The known parameters.
        known: String,
    },
    /// `hostaddr`, which would allow different hosts for the certificate and for the connection.
    #[error("`hostaddr` cannot be used in the server's address; give the IP address as the host")]
    HostAddr,
    /// The same fact in two places.
    #[error("the server's address gives its `{name}` twice; remove one")]
    Twice {
        /// The parameter.
        name: &'static str,
    },
    /// A mode of libpq that accepts connections without encryption.
    #[error(
        "`sslmode={mode}` can silently fall back to no encryption; write `verify-full`, or `disable` if nobody can \
         listen in that network"
    )]
    Fallback {
        /// `allow` or `prefer`.
        mode: &'static str,
    },
    /// A mode that would accept any server.
    #[error(
        "`sslmode={mode}` without a root certificate of your own would trust strangers' servers; give one with \
         `sslrootcert=FILE`, or write `sslmode=verify-full`"
    )]
    Strangers {
        /// `require` or `verify-ca`.
        mode: &'static str,
    },
    /// Encryption of a Unix socket.
    #[error(
        "a Unix socket is never encrypted; remove `sslmode` and `sslrootcert` from the address, or give a host"
    )]
    SocketTls,
    /// A missing role.
    #[error(
        "the address names no user, and the system does not tell yours; write postgres://USER@HOST/DATABASE"
    )]
    NoUser,
    /// A variable that is not Unicode.
    #[error("the environment variable {name} is not UTF-8; correct or remove it")]
    Variable {
        /// The variable.
        name: &'static str,
    },
    /// Others can read the password file.
    #[error(
        "the password file {} can be used by others than you (its mode is {mode:04o}); run `chmod 600` on it",
        path.display()
    )]
    Open {
        /// The password file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The password file cannot be read.
    #[error("no password can be looked up: {0}")]
    File(ReadError),
    /// The password file is not text.
    #[error("the password file {} is not UTF-8; correct it", path.display())]
    Text {
        /// The password file.
        path: PathBuf,
    },
}
