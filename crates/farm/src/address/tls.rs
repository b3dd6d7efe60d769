//! Whether a connection is encrypted, and which servers it trusts.

use std::path::PathBuf;

use super::Host;
use super::environment::Environment;
use super::error::AddressError;

/// The protection of a connection. Without `sslmode` it is [`Tls::Full`], and [`Tls::Off`] on this machine if no
/// `sslrootcert` is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tls {
    /// No protection.
    Off,
    /// The server's certificate must come from a known authority. Its names do not matter.
    Chain(Roots),
    /// The server's certificate must come from a known authority and be valid for the host.
    Full(Roots),
}

/// Which authorities are known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Roots {
    /// Those of the operating system.
    System,
    /// Those in a file of PEM certificates.
    File(PathBuf),
    /// Those in a text of PEM certificates.
    Pem(String),
}

impl Tls {
    /// The parameters that express this protection.
    pub(super) fn parameters(&self, host: &Host) -> Vec<(&'static str, String)> {
        let mode = |mode: &str| ("sslmode", mode.to_owned());
        let root = |roots: &Roots| match roots {
            Roots::System => Some(("sslrootcert", "system".to_owned())),
            Roots::File(path) => Some(("sslrootcert", path.display().to_string())),
            Roots::Pem(_) => None,
        };
        match self {
            Tls::Off if matches!(host, Host::Socket(_)) => Vec::new(),
            Tls::Off => vec![mode("disable")],
            Tls::Chain(roots) => [mode("verify-ca")].into_iter().chain(root(roots)).collect(),
            Tls::Full(roots) => [mode("verify-full")].into_iter().chain(root(roots)).collect(),
        }
    }
}

/// Decides from `sslmode` and `sslrootcert`.
pub(super) fn decide(
    host: &Host,
    mode: Option<String>,
    root: Option<String>,
    environment: &Environment,
) -> Result<Tls, AddressError> {
    let is_socket = matches!(host, Host::Socket(_));
    let own = |mode| match roots(root.as_deref(), environment)? {
        Some(Roots::System) | None => Err(AddressError::Strangers { mode }),
        Some(own) => Ok(Tls::Chain(own)),
    };
    match mode.as_deref() {
        Some("allow") => Err(AddressError::Fallback { mode: "allow" }),
        Some("prefer") => Err(AddressError::Fallback { mode: "prefer" }),
        Some("disable") => Ok(Tls::Off),
        None if root.is_none() && host.is_here() => Ok(Tls::Off),
        None | Some("require" | "verify-ca" | "verify-full") if is_socket => Err(AddressError::SocketTls),
        Some("require") => own("require"),
        Some("verify-ca") => own("verify-ca"),
        None | Some("verify-full") => {
            Ok(Tls::Full(roots(root.as_deref(), environment)?.unwrap_or(Roots::System)))
        }
        Some(_) => {
            let must = "`disable`, `require`, `verify-ca` or `verify-full`";
            Err(AddressError::Value { name: "sslmode", must })
        }
    }
}

/// The authorities that libpq would use, if any are configured: the given ones, or the user's.
fn roots(given: Option<&str>, environment: &Environment) -> Result<Option<Roots>, AddressError> {
    let given = match given {
        Some(given) => Some(given),
        None => environment.text("PGSSLROOTCERT")?,
    };
    let at_home = || environment.home.as_ref().map(|home| home.join(".postgresql/root.crt"));
    Ok(match given {
        Some("system") => Some(Roots::System),
        Some(path) => Some(Roots::File(PathBuf::from(path))),
        None => at_home().filter(|path| path.exists()).map(Roots::File),
    })
}
