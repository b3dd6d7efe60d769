//! The address on which a server listens for other machines.

use std::fmt;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::str::FromStr;

use super::error::ServerError;

/// Ports that are tried if none is given. They lie below the ephemeral range.
const PORTS: std::ops::Range<u16> = 5432..5532;

/// An address of this machine by which workers reach it: a host name or IP address, and a port.
///
/// It is read from `host`, `host:port`, `192.0.2.1`, `192.0.2.1:5432`, `::1` or `[::1]:5432`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The host name, or the IP address without brackets.
    host: String,
    /// The port, if one was given.
    port: Option<u16>,
}

impl Listen {
    /// The host name, or the IP address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, if one was given.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The port to listen on: the given one, the one used before, or a free one.
    pub(super) fn choose_port(&self, before: Option<u16>) -> Result<u16, ServerError> {
        let addresses = self.addresses()?;
        for address in &addresses {
            if let Err(error) = TcpListener::bind((*address, 0)) {
                return Err(self.wrong(match error.kind() {
                    ErrorKind::AddrNotAvailable => {
                        format!("{address} is not an address of this machine; give one that is")
                    }
                    _ => format!("{address} cannot be used ({error}); give another address"),
                }));
            }
        }
        if let Some(port) = self.port.or(before) {
            return Ok(port);
        }
        let is_free =
            |port: &u16| addresses.iter().all(|address| TcpListener::bind((*address, *port)).is_ok());
        PORTS.into_iter().find(is_free).ok_or_else(|| {
            self.wrong(format!("no port of {} to {} is free; give a port", PORTS.start, PORTS.end - 1))
        })
    }

    /// The addresses of the host.
    fn addresses(&self) -> Result<Vec<IpAddr>, ServerError> {
        if let Ok(address) = self.host.parse::<IpAddr>() {
            return Ok(vec![address]);
        }
        let found = (self.host.as_str(), 0).to_socket_addrs().map_err(|error| {
            self.wrong(format!("its addresses cannot be found ({error}); give an IP address of this machine"))
        })?;
        let mut found: Vec<IpAddr> = found.map(|address| address.ip()).collect();
        found.sort();
        found.dedup();
        // Debian maps a machine's own name to 127.0.1.1 in /etc/hosts.
        let is_here = self.host == "localhost";
        match found.iter().all(IpAddr::is_loopback) && !is_here {
            true => Err(self.wrong(
                "on this machine the name stands for an address that other machines cannot reach; give an IP address",
            )),
            false => Ok(found),
        }
    }

    fn wrong(&self, reason: impl Into<String>) -> ServerError {
        ServerError::Listen { address: self.to_string(), reason: reason.into() }
    }
}

/// Prints the form of a URL.
impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.host.contains(':'), self.port) {
            (false, None) => write!(f, "{}", self.host),
            (false, Some(port)) => write!(f, "{}:{port}", self.host),
            (true, None) => write!(f, "[{}]", self.host),
            (true, Some(port)) => write!(f, "[{}]:{port}", self.host),
        }
    }
}

impl FromStr for Listen {
    type Err = ServerError;

    fn from_str(text: &str) -> Result<Listen, ServerError> {
        let wrong =
            |reason: &str| ServerError::Listen { address: text.to_owned(), reason: reason.to_owned() };
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        let (host, port) = match (bare.parse::<IpAddr>(), text.parse::<SocketAddr>(), text.split_once(':')) {
            (Ok(address), _, _) => (address.to_string(), None),
            (_, Ok(both), _) => (both.ip().to_string(), Some(both.port())),
            (_, _, Some((host, port))) => {
                let port =
                    port.parse().map_err(|_| wrong("the port is not a number from 1 to 65535; give one"))?;
                (host.to_ascii_lowercase(), Some(port))
            }
            _ => (text.to_ascii_lowercase(), None),
        };
        if port == Some(0) {
            return Err(wrong("port 0 stands for none; leave it out to get a free one"));
        }
        match host.parse::<IpAddr>() {
            Ok(address) if address.is_unspecified() || address.is_multicast() => {
                Err(wrong("workers cannot reach a machine by this address; give its host name or IP address"))
            }
            Err(_) if !is_name(&host) => {
                Err(wrong("this is no host name or IP address; give one, with `:` and a port if you like"))
            }
            _ => Ok(Listen { host, port }),
        }
    }
}

/// Whether a text may be a host name: labels of letters, digits and inner hyphens. A name that ends
/// in a number would be taken for a malformed IPv4 address.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    text.len() <= 253 && text.split('.').all(is_label) && !last.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for (text, host, port, shown) in [
            ("gpu-1.Example.org", "gpu-1.example.org", None, "gpu-1.example.org"),
            ("gpu-1:5433", "gpu-1", Some(5433), "gpu-1:5433"),
            ("192.0.2.1", "192.0.2.1", None, "192.0.2.1"),
            ("192.0.2.1:5433", "192.0.2.1", Some(5433), "192.0.2.1:5433"),
            ("::1", "::1", None, "[::1]"),
            ("[::1]", "::1", None, "[::1]"),
            ("[::1]:5433", "::1", Some(5433), "[::1]:5433"),
        ] {
            let listen: Listen = text.parse().unwrap();
            assert_eq!((listen.host(), listen.port()), (host, port));
            assert_eq!(listen.to_string(), shown);
        }
        for text in [
            "",
            ":5432",
            "a b",
            "a'b",
            "a:b",
            "a:0",
            "a:65536",
            "a:1:2",
            "-a",
            "a..b",
            "0.0.0.0",
            "::",
            "*",
            "1.2.3",
            "300.1.1.1",
            "ff02::1",
            "a,b",
            "fe80::1%eth0",
            "[a]",
            "ä",
        ] {
            let error = text.parse::<Listen>().unwrap_err().to_string();
            assert!(error.starts_with("cannot listen on `") && error.contains("; "), "{text}: {error}");
        }
    }

    #[test]
    fn ports_are_free_or_as_before() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = |text: &str, before| text.parse::<Listen>().unwrap().choose_port(before);
        let free = port("127.0.0.1", None).unwrap();
        assert!(PORTS.contains(&free) && free != taken.local_addr().unwrap().port());
        assert_eq!(port("127.0.0.1", Some(7)).unwrap(), 7);
        assert_eq!(port("localhost:6", Some(7)).unwrap(), 6);
        let error = port("192.0.2.1", None).unwrap_err().to_string();
        assert!(error.contains("192.0.2.1 is not an address of this machine"), "{error}");
        let error = port("no-such-host.invalid", None).unwrap_err().to_string();
        assert!(error.contains("its addresses cannot be found"), "{error}");
    }
}
