//! The farm file: how to reach a farm's database, with the password. Workers are given the file's path, so that no
//! password is in arguments, job scripts or logs.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::address::{Address, AddressError, Environment};

/// The format that this version writes and reads.
const VERSION: u64 = 1;

/// The largest file that is read, in bytes. A real one has about 1 KB.
const MOST: u64 = 1 << 20;

/// The address of a farm's database, and the certificate that authenticates its server.
#[derive(Clone, PartialEq, Eq)]
pub struct FarmFile {
    /// `postgres://ROLE:PASSWORD@HOST:PORT/DATABASE`.
    pub url: String,
    /// The authority that signed the server's certificate, as PEM; `None` for a socket, or if the
    /// system's authorities are meant.
    pub ca: Option<String>,
}

/// The file as it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    version: u64,
    url: String,
    #[serde(default)]
    ca: Option<String>,
}

/// The only field that all versions have.
#[derive(Deserialize)]
struct Version {
    version: u64,
}

/// Why a farm file could not be read or written. No message contains any of its text.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FarmFileError {
    /// The file does not exist, or cannot be read.
    #[error("cannot read the farm file {}: {error}; check the path and its permissions", path.display())]
    Read {
        /// The farm file.
        path: PathBuf,
        /// The operating system's message.
        error: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write the farm file {}: {error}; check the folder and its permissions", path.display())]
    Write {
        /// The farm file.
        path: PathBuf,
        /// The operating system's message.
        error: io::Error,
    },
    /// A folder, a device or a pipe.
    #[error("{} is not a file; give the path of a farm file", path.display())]
    NotAFile {
        /// The path that was given.
        path: PathBuf,
    },
    /// The file belongs to another user, who may have written anything into it.
    #[error("the farm file {} belongs to another user; give a copy of your own", path.display())]
    Owner {
        /// The farm file.
        path: PathBuf,
    },
    /// Others may read or change the file.
    #[error(
        "other users can open the farm file {}, which contains a password (mode {mode:03o}); run `chmod 600` on it, \
         and if others may have read it, replace the password",
        path.display()
    )]
    Mode {
        /// The farm file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file is larger than any farm file.
    #[error("{} is larger than {} KiB, so it is no farm file; give another file", path.display(), MOST >> 10)]
    Large {
        /// The path that was given.
        path: PathBuf,
    },
    /// The text is not a farm file.
    #[error(
        "{} is not a farm file (line {line}, column {column}); give the file that `warploom farm start` has written",
        path.display()
    )]
    Content {
        /// The path that was given.
        path: PathBuf,
        /// Where reading stopped; 0 if the text is not UTF-8.
        line: usize,
        /// Where reading stopped.
        column: usize,
    },
    /// Another version of Warploom wrote the file.
    #[error(
        "the farm file {} has format {version}, and this version of Warploom reads format {VERSION}; use the version \
         that wrote it",
        path.display()
    )]
    Version {
        /// The farm file.
        path: PathBuf,
        /// Its format.
        version: u64,
    },
}

impl FarmFile {
    /// Reads a file that nobody else can read or have written.
    ///
    /// # Errors
    ///
    /// If the file is missing, too large, not a farm file, or open to others.
    pub fn read(path: &Path) -> Result<FarmFile, FarmFileError> {
        let read = |error| FarmFileError::Read { path: path.to_path_buf(), error };
        let file = open(path).map_err(read)?;
        check(&file, path)?;
        let mut text = Vec::new();
        file.take(MOST + 1).read_to_end(&mut text).map_err(read)?;
        if text.len() as u64 > MOST {
            return Err(FarmFileError::Large { path: path.to_path_buf() });
        }
        // Messages of serde may quote the text.
        let content = |error: serde_json::Error| FarmFileError::Content {
            path: path.to_path_buf(),
            line: error.line(),
            column: error.column(),
        };
        match serde_json::from_slice(&text).map_err(content)? {
            Version { version: VERSION } => {}
            Version { version } => return Err(FarmFileError::Version { path: path.to_path_buf(), version }),
        }
        let Stored { url, ca, .. } = serde_json::from_slice(&text).map_err(content)?;
        Ok(FarmFile { url, ca })
    }

    /// Writes the file for its owner alone. Readers see either the old file or the new one.
    ///
    /// # Errors
    ///
    /// If the folder cannot be written to.
    pub fn write(&self, path: &Path) -> Result<(), FarmFileError> {
        let stored = Stored { version: VERSION, url: self.url.clone(), ca: self.ca.clone() };
        let write = || -> io::Result<()> {
            let folder =
                path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            // A temporary file has mode 0600.
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            serde_json::to_writer_pretty(&mut file, &stored)?;
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            Ok(())
        };
        write().map_err(|error| FarmFileError::Write { path: path.to_path_buf(), error })
    }

    /// The address of the server. The environment has no effect on it.
    ///
    /// # Errors
    ///
    /// If the URL in the file is invalid.
    pub fn address(&self) -> Result<Address, AddressError> {
        let address = Address::parse(&self.url, &Environment::default())?;
        Ok(match &self.ca {
            Some(authority) => address.with_authority(authority.clone()),
            None => address,
        })
    }

    /// The password as written in the address.
    pub(crate) fn password(&self) -> Option<&str> {
        let (_, rest) = self.url.split_once("://")?;
        let authority = rest.split(['/', '?']).next()?;
        let (account, _) = authority.rsplit_once('@')?;
        account.split_once(':').map(|(_, password)| password)
    }
}

/// Prints the file without the password.
impl fmt::Debug for FarmFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Options may contain a password too, so everything after a `?` is left out.
        let host = self.url.rsplit_once('@').map_or("", |(_, host)| host);
        let host = host.split('?').next().unwrap_or_default();
        f.debug_struct("FarmFile")
            .field("host", &host)
            .field("ca", &self.ca.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    // A pipe that nobody writes to would keep a blocking open waiting.
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    File::options().read(true).custom_flags(flags).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Rejects anything but a regular file of this user. Checks only the opened file, because the path may soon name
/// another one.
fn check(file: &File, path: &Path) -> Result<(), FarmFileError> {
    let path = path.to_path_buf();
    let facts = match file.metadata() {
        Ok(facts) if facts.is_file() => facts,
        Ok(_) => return Err(FarmFileError::NotAFile { path }),
        Err(error) => return Err(FarmFileError::Read { path, error }),
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if ![0, rustix::process::geteuid().as_raw()].contains(&facts.uid()) {
            return Err(FarmFileError::Owner { path });
        }
        let mode = facts.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(FarmFileError::Mode { path, mode });
        }
    }
    match facts.len() > MOST {
        true => Err(FarmFileError::Large { path }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn file() -> FarmFile {
        let url = "postgres://warploom_worker:secret@10.0.0.1:5432/warploom?a=secret".to_owned();
        FarmFile { url, ca: Some("-----BEGIN".to_owned()) }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a 'farm\".json");
        for ca in [None, file().ca] {
            let written = FarmFile { ca, ..file() };
            written.write(&path).unwrap();
            assert_eq!(FarmFile::read(&path).unwrap(), written);
        }
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("{\n  \"version\": 1,\n  \"url\": \"postgres://"), "{text}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
        let error = file().write(&folder.path().join("none/farm.json")).unwrap_err().to_string();
        assert!(error.starts_with("cannot write the farm file "), "{error}");
    }

    #[test]
    fn no_password_is_shown() {
        let shown = format!("{:?}", file());
        assert_eq!(shown, "FarmFile { host: \"10.0.0.1:5432/warploom\", ca: true, .. }");
        let odd = FarmFile { url: "secret".to_owned(), ca: None };
        assert_eq!(format!("{odd:?}"), "FarmFile { host: \"\", ca: false, .. }");
        assert_eq!((file().password(), odd.password()), (Some("secret"), None));
    }

    #[test]
    fn other_texts_are_refused_and_not_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("farm.json");
        let refusal = |text: &[u8]| {
            file().write(&path).unwrap();
            fs::write(&path, text).unwrap();
            FarmFile::read(&path).unwrap_err().to_string()
        };
        for text in [
            "",
            "secret",
            "\"secret\"",
            "{\"version\": \"secret\"}",
            "{\"version\": 1}",
            "{\"version\": 1, \"url\": 7}",
            "{\"version\": 1, \"url\": \"a\", \"ca\": [\"secret\"]}",
            "{\"version\": 1, \"url\": \"a\", \"ca\": null} secret",
        ] {
            let error = refusal(text.as_bytes());
            assert!(error.contains("is not a farm file (line ") && !error.contains("secret"), "{error}");
        }
        assert!(refusal(b"{\"version\": 1, \"url\": \"\xff\"}").contains("is not a farm file"));
        assert!(refusal(b"{\"version\": 2}").contains("has format 2, and this version of Warploom reads"));
        assert!(refusal(&vec![b' '; (MOST + 1) as usize]).contains("is larger than 1024 KiB"));
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let none = folder.path().join("none");
        for (path, reason) in [(folder.path().to_path_buf(), "is not a file"), (none, "cannot read")] {
            let error = FarmFile::read(&path).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_others_can_open_is_refused() {
        use std::os::unix::fs::{PermissionsExt, chown};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("farm.json");
        file().write(&path).unwrap();
        for mode in [0o640, 0o602, 0o610, 0o666] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = FarmFile::read(&path).unwrap_err().to_string();
            assert!(error.contains(&format!("(mode {mode:o})")) && error.contains("chmod 600"), "{error}");
        }
        file().write(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        // Only root can give a file away.
        if chown(&path, Some(1), None).is_ok() {
            let error = FarmFile::read(&path).unwrap_err().to_string();
            assert!(error.contains("belongs to another user"), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_that_nobody_writes_to_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
        assert!(FarmFile::read(&path).unwrap_err().to_string().contains("is not a file"));
    }
}
