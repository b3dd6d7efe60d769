//! The folder of a farm, and that of its socket.
//!
//! | in the folder | what |
//! | --- | --- |
//! | `data`, `log` | PostgreSQL's own |
//! | `server.conf`, `pg_hba.conf` | its settings and access rules, written at every start |
//! | `server.json` | the state of the last start |
//! | `tls` | certificates, if it listens for other machines |
//! | `socket` | the socket, unless the path is too long |
//! | `owner.json`, `farm.json` | the farm files of the owner and of workers |
//! | `warploom.lock` | held by whoever starts or stops the server |

use std::env;
use std::fs::{self, File, Permissions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{self, Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::geteuid;

use super::account::Account;
use super::error::{At, ServerError};

const LOCK: &str = "warploom.lock";

/// The longest path of a socket's folder. The path of the socket may have 107 bytes on Linux and 103 elsewhere, of
/// which `/.s.PGSQL.65535` needs 15.
const LONGEST: usize = 88;

/// Mode of a folder that the server's user must be able to enter: root's server has another user.
pub(super) fn shared_mode() -> u32 {
    if geteuid().is_root() { 0o755 } else { 0o700 }
}

/// Creates a farm's folder if it is missing, and returns its absolute path.
pub(super) fn prepared(path: &Path) -> Result<PathBuf, ServerError> {
    let absolute = path::absolute(path).at(path)?;
    if absolute.as_os_str().as_encoded_bytes().iter().any(u8::is_ascii_control) {
        return Err(ServerError::Path { path: absolute });
    }
    fs::DirBuilder::new().recursive(true).mode(shared_mode()).create(&absolute).at(&absolute)?;
    let folder = own(&absolute)?;
    // A process that starts the server at the same moment creates the lock first.
    if fs::read_dir(&folder).at(&folder)?.next().is_some() && !folder.join(LOCK).exists() {
        return Err(ServerError::Foreign { folder });
    }
    fs::set_permissions(&folder, Permissions::from_mode(shared_mode())).at(&folder)?;
    Ok(folder)
}

/// The absolute path of an existing farm's folder.
pub(super) fn existing(path: &Path) -> Result<PathBuf, ServerError> {
    let folder = own(path)?;
    match folder.join(LOCK).exists() {
        true => Ok(folder),
        false => Err(ServerError::Foreign { folder }),
    }
}

/// The absolute path of a folder of this user, without symbolic links.
fn own(path: &Path) -> Result<PathBuf, ServerError> {
    let folder = path.canonicalize().at(path)?;
    match fs::metadata(&folder).at(&folder)?.uid() == geteuid().as_raw() {
        true => Ok(folder),
        false => Err(ServerError::Owner { folder }),
    }
}

/// Waits until no other process starts or stops the server. Holding the returned file keeps others from it.
pub(super) fn lock(folder: &Path, patience: Duration) -> Result<File, ServerError> {
    let path = folder.join(LOCK);
    let file = File::options().create(true).append(true).mode(0o600).open(&path).at(&path)?;
    let end = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(Duration::from_millis(20)),
            Err(TryLockError::WouldBlock) => {
                return Err(ServerError::Busy { folder: folder.to_path_buf() });
            }
            Err(TryLockError::Error(error)) => return Err(error).at(&path),
        }
    }
}

/// Makes a folder in the farm's folder, unless it exists, for the given user.
pub(super) fn make(folder: &Path, mode: u32, account: Option<&Account>) -> Result<(), ServerError> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error).at(folder),
        _ => {}
    }
    if let Some(account) = account {
        account.give(folder)?;
    }
    fs::set_permissions(folder, Permissions::from_mode(mode)).at(folder)
}

/// The folder of the socket: in the farm's folder or, for a long or unusual path, the one used before, or a new one
/// below `XDG_RUNTIME_DIR` or `/tmp`.
pub(super) fn socket(
    folder: &Path,
    before: Option<&str>,
    account: Option<&Account>,
) -> Result<String, ServerError> {
    let own = folder.join("socket");
    if let Some(path) = plain(&own) {
        make(&own, shared_mode(), account)?;
        return Ok(path.to_owned());
    }
    let user = account.map_or(geteuid().as_raw(), Account::uid);
    // Anyone may create a folder in `/tmp` once ours is gone.
    let is_ours =
        |path: &&str| fs::symlink_metadata(path).is_ok_and(|facts| facts.is_dir() && facts.uid() == user);
    if let Some(before) = before.filter(is_ours) {
        return Ok(before.to_owned());
    }
    // Root's own folder would be closed to the server's user.
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|_| account.is_none());
    let runtime = runtime.filter(|path| {
        path.is_absolute() && path.is_dir() && plain(path).is_some_and(|path| path.len() < LONGEST - 20)
    });
    let base = runtime.unwrap_or_else(|| PathBuf::from("/tmp"));
    let mut builder = tempfile::Builder::new();
    builder.prefix("warploom-").permissions(Permissions::from_mode(0o700));
    let new = builder.tempdir_in(&base).at(&base)?.keep();
    make(&new, shared_mode(), account)?;
    Ok(new.to_string_lossy().into_owned())
}

/// A path that can be written in PostgreSQL's settings unescaped, and leaves room for a socket's name.
fn plain(path: &Path) -> Option<&str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    path.to_str().filter(|path| path.len() <= LONGEST && path.bytes().all(is_plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_farms_folder_is_used() {
        let around = tempfile::tempdir().unwrap();
        let folder = around.path().join("a/b");
        assert_eq!(prepared(&folder.join("")).unwrap(), folder.canonicalize().unwrap());
        assert!(existing(&folder).unwrap_err().to_string().contains("not a farm's"));
        fs::write(folder.join("thesis.txt"), "").unwrap();
        assert!(prepared(&folder).unwrap_err().to_string().contains("files that are not a farm's"));
        fs::write(folder.join(LOCK), "").unwrap();
        prepared(&folder).unwrap();
        assert_eq!(existing(&folder).unwrap(), folder.canonicalize().unwrap());
        assert!(prepared(&folder.join("thesis.txt")).unwrap_err().to_string().starts_with("cannot use "));
        let error = prepared(&around.path().join("a\nb")).unwrap_err().to_string();
        assert!(error.contains("control character"), "{error}");
    }

    #[test]
    fn one_process_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let held = lock(folder.path(), Duration::ZERO).unwrap();
        let error = lock(folder.path(), Duration::from_millis(1)).unwrap_err().to_string();
        assert!(error.contains("another process is starting or stopping"), "{error}");
        drop(held);
        lock(folder.path(), Duration::ZERO).unwrap();
    }

    #[test]
    fn a_long_path_gets_a_socket_elsewhere() {
        let around = tempfile::tempdir().unwrap();
        if plain(&around.path().join("socket")).is_some() {
            let path = socket(around.path(), None, None).unwrap();
            assert_eq!(Path::new(&path), around.path().join("socket"));
        }
        let folder = around.path().join("x".repeat(LONGEST));
        fs::create_dir(&folder).unwrap();
        let path = socket(&folder, None, None).unwrap();
        assert!(path.len() <= LONGEST && !Path::new(&path).starts_with(around.path()), "{path}");
        assert_eq!(socket(&folder, Some(&path), None).unwrap(), path);
        fs::remove_dir(&path).unwrap();
        assert_ne!(
            socket(&folder, Some(&path), None).inspect(|new| fs::remove_dir(new).unwrap()).unwrap(),
            path
        );
        for odd in ["a b", "a'b", "a,b", "a\\b", "ä"] {
            assert_eq!(plain(Path::new(odd)), None);
        }
    }
}
