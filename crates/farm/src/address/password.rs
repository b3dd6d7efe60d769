//! Passwords, and libpq's file of passwords: lines `host:port:database:user:password`, where `*` matches anything and a
//! backslash escapes the next character.

use std::fmt;
use std::path::Path;

use warploom_lang::files::{self, Limit, Unit};

use super::environment::Environment;
use super::error::AddressError;
use super::{Address, Host, SOCKETS};

/// The size limit of a password file.
const FILE: Limit = Limit { what: "a password file", most: 1 << 20, unit: Unit::Bytes };

/// A password, which no format prints.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// The password itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Password {
    fn from(password: String) -> Password {
        Password(password)
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// Looks the password of an address up in the user's file. A missing file has none.
pub(super) fn from_file(
    address: &Address,
    environment: &Environment,
) -> Result<Option<Password>, AddressError> {
    let Some(path) = environment.path("PGPASSFILE", ".pgpass") else { return Ok(None) };
    if !path.exists() {
        return Ok(None);
    }
    check_private(&path)?;
    let text = String::from_utf8(files::read(&path, FILE).map_err(AddressError::File)?);
    let text = text.map_err(|_| AddressError::Text { path })?;
    Ok(text.lines().find_map(|line| password_in(line, address)).filter(|password| !password.0.is_empty()))
}

/// Rejects a file that its group or others can access. Files that are not regular are left to the reader to reject.
#[cfg(unix)]
fn check_private(path: &Path) -> Result<(), AddressError> {
    use std::{fs, os::unix::fs::PermissionsExt};
    let Some(about) = fs::metadata(path).ok().filter(fs::Metadata::is_file) else { return Ok(()) };
    let mode = about.permissions().mode() & 0o7777;
    match mode & 0o077 {
        0 => Ok(()),
        _ => Err(AddressError::Open { path: path.to_path_buf(), mode }),
    }
}

#[cfg(not(unix))]
fn check_private(_: &Path) -> Result<(), AddressError> {
    Ok(())
}

/// The password in a line of the file, if the line is about the address.
fn password_in(line: &str, address: &Address) -> Option<Password> {
    let host = match &address.host {
        Host::Socket(folder) if folder == SOCKETS => "localhost",
        Host::Socket(text) | Host::Name(text) => text,
    };
    let port = address.port.to_string();
    let mut rest = Some(line).filter(|line| !line.starts_with('#'))?;
    for wanted in [host, &port, address.database(), address.user()] {
        let (field, after) = field(rest);
        // Only a bare `*` stands for anything.
        let matches = rest.starts_with("*:") || field == wanted;
        rest = after.filter(|_| matches)?;
    }
    // The password extends to the end of the line, colons included.
    let mut password = String::new();
    let mut characters = rest.chars();
    while let Some(c) = characters.next() {
        password.extend(if c == '\\' { characters.next() } else { Some(c) });
    }
    Some(Password(password))
}

/// The first field, unescaped, and the text after its colon.
fn field(line: &str) -> (String, Option<&str>) {
    let mut field = String::new();
    let mut characters = line.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            ':' => return (field, Some(&line[at + 1..])),
            '\\' => field.extend(characters.next().map(|(_, c)| c)),
            c => field.push(c),
        }
    }
    (field, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        let environment = Environment { user: Some("me".to_owned()), ..Environment::default() };
        Address::parse(text, &environment).expect("an address")
    }

    #[test]
    fn lines_are_about_addresses() {
        let tcp = address("postgres://db/trials");
        for (line, password) in [
            ("db:5432:trials:me:secret", Some("secret")),
            ("*:*:*:*:secret", Some("secret")),
            (r"d\b:54\32:*:me:a\:b\\c:d e ", Some(r"a:b\c:d e ")),
            (r"\*:*:*:*:secret", None),
            ("d*:*:*:*:secret", None),
            ("db:5433:*:*:secret", None),
            ("db:5432:trials:you:secret", None),
            ("localhost:5432:trials:me:secret", None),
            ("#*:*:*:*:secret", None),
            ("db:5432:trials:me", None),
            ("*", None),
            ("", None),
            ("\\", None),
            ("*:*:*:*:", Some("")),
            ("*:*:*:*:a\\", Some("a")),
        ] {
            let found = password_in(line, &tcp);
            assert_eq!(found.as_ref().map(Password::reveal), password, "{line}");
        }
        let matches = |line: &str, text: &str| password_in(line, &address(text)).is_some();
        assert!(matches("localhost:*:*:*:p", "postgres://"), "the default socket is called localhost");
        assert!(matches("/run/x:*:*:*:p", "postgres:///?host=/run/x"));
        assert!(!matches("localhost:*:*:*:p", "postgres:///?host=/run/x"));
        assert!(matches(r"\:\:1:*:*:*:p", "postgres://[::1]"));
    }

    #[cfg(unix)]
    #[test]
    fn only_a_private_file_is_believed() {
        use std::{fs, os::unix::fs::PermissionsExt};
        let home = tempfile::tempdir().expect("a folder");
        let path = home.path().join(".pgpass");
        let mut environment = Environment {
            user: Some("me".to_owned()),
            home: Some(home.path().into()),
            ..Environment::default()
        };
        let read = |environment: &Environment| {
            let address = Address::parse("postgres://db", environment)?;
            Ok::<_, AddressError>(address.password().map(|password| password.reveal().to_owned()))
        };
        assert_eq!(read(&environment).expect("no file"), None);
        fs::write(&path, "# mine\n\nother:*:*:*:a\r\ndb:*:*:*:first\r\n*:*:*:*:second\n").expect("written");
        let allow = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
        for mode in [0o600, 0o400] {
            allow(mode);
            assert_eq!(read(&environment).expect("private").as_deref(), Some("first"));
        }
        for mode in [0o640, 0o604, 0o610, 0o602] {
            allow(mode);
            let error = read(&environment).expect_err("open to others").to_string();
            assert!(error.contains("chmod 600") && error.contains(&format!("{mode:04o}")), "{error}");
        }
        let given = Address::parse("postgres://u:p@db", &environment).expect("needs no file");
        assert_eq!(given.password().map(Password::reveal), Some("p"));
        allow(0o600);
        fs::write(&path, vec![b'#'; (1 << 20) + 1]).expect("written");
        assert!(read(&environment).expect_err("large").to_string().contains("1 MiB"));
        fs::write(&path, b"*:*:*:*:\xff").expect("written");
        assert!(read(&environment).expect_err("no text").to_string().contains("UTF-8"));
        environment.variables.insert("PGPASSFILE".to_owned(), "/dev/null".into());
        assert!(read(&environment).expect_err("a device").to_string().contains("not a regular file"));
        environment.variables.insert("PGPASSFILE".to_owned(), home.path().join("none").into());
        assert_eq!(read(&environment).expect("a missing file has no passwords"), None);
    }
}
