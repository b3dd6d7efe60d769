//! The text form of addresses: `postgres://user:password@host:port/database?parameter=value`.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::error::AddressError;

/// The most bytes of a URL.
pub(super) const MOST: usize = 4096;

/// All parameters. The parts before the `?` have the names of parameters as well.
const KNOWN: [&str; 10] = [
    "host",
    "port",
    "user",
    "password",
    "dbname",
    "sslmode",
    "sslrootcert",
    "connect_timeout",
    "application_name",
    "schema",
];

/// Values by parameter, decoded. None is empty.
type Given = BTreeMap<&'static str, String>;

/// Splits a URL into its parts.
pub(super) fn split(text: &str) -> Result<Given, AddressError> {
    if text.len() > MOST {
        return Err(AddressError::Long);
    }
    let (scheme, rest) = text.split_once("://").ok_or(AddressError::Scheme)?;
    if !["postgres", "postgresql"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Err(AddressError::Scheme);
    }
    let (server, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (login, place) = server.split_once('@').unwrap_or(("", server));
    // With a `/` or `?` in the password, the `@` comes only after it.
    if place.contains('@') || rest.contains('@') {
        return Err(AddressError::At);
    }
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let (host, port) = host_and_port(place)?;
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut given = Given::new();
    let named = [("user", user), ("password", password), ("host", host), ("port", port)];
    for (name, value) in named.into_iter().chain([("dbname", path.strip_prefix('/').unwrap_or(path))]) {
        add(&mut given, name, value)?;
    }
    // After an `&` in a password, the rest of it looks like a parameter.
    let mut may_leak = false;
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').ok_or(AddressError::NoValue)?;
        let name = decoded(name)?;
        match KNOWN.into_iter().find(|known| *known == name) {
            Some(known) => add(&mut given, known, value)?,
            None if name == "hostaddr" => return Err(AddressError::HostAddr),
            None => return Err(unknown(&name, may_leak)),
        }
        may_leak |= name == "password";
    }
    Ok(given)
}

fn unknown(name: &str, may_leak: bool) -> AddressError {
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && name.len() <= 40;
    let name = match is_name && !may_leak {
        true => format!("`{name}`"),
        false => "something (not shown, it may be of a password)".to_owned(),
    };
    AddressError::Unknown { name, known: KNOWN.map(|known| format!("`{known}`")).join(", ") }
}

/// Splits `host:port`, `[::1]:port`, or either without a port.
fn host_and_port(place: &str) -> Result<(&str, &str), AddressError> {
    if place.contains(',') {
        return Err(AddressError::Hosts);
    }
    let wrong = AddressError::Host { name: "host" };
    match place.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, "")) => Ok((host, "")),
            Some((host, port)) => Ok((host, port.strip_prefix(':').ok_or(wrong)?)),
            None => Err(wrong),
        },
        None => match place.split_once(':') {
            Some((_, port)) if port.contains(':') => Err(wrong),
            Some(pieces) => Ok(pieces),
            None => Ok((place, "")),
        },
    }
}

/// Adds a value. As in libpq, an empty one is ignored.
fn add(given: &mut Given, name: &'static str, value: &str) -> Result<(), AddressError> {
    let value = decoded(value)?;
    match !value.is_empty() && given.insert(name, value).is_some() {
        true => Err(AddressError::Twice { name }),
        false => Ok(()),
    }
}

/// Resolves escapes: `%` and two hexadecimal digits.
fn decoded(text: &str) -> Result<String, AddressError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        bytes.push(match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                rest = after;
                let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(AddressError::Escape);
                u8::try_from(digit(*high)? * 16 + digit(*low)?).map_err(|_| AddressError::Escape)?
            }
            (b'%', _) => return Err(AddressError::Escape),
            (plain, _) => *plain,
        });
    }
    String::from_utf8(bytes).map_err(|_| AddressError::Escape)
}

/// A text that [`decoded`] resolves to this one, with all special characters of URLs escaped except for those in
/// `plain`.
pub(super) fn encoded(text: &str, plain: &str) -> String {
    let mut url = String::with_capacity(text.len());
    for byte in text.bytes() {
        match char::from(byte) {
            c if c.is_ascii_alphanumeric() || "-._~".contains(c) || plain.contains(c) => url.push(c),
            _ => write!(url, "%{byte:02X}").unwrap_or_default(),
        }
    }
    url
}
