//! Where a database may be stored. SQLite's write-ahead log needs memory shared by all its users,
//! so all of them must run on one machine.
//!
//! A path always names a file. SQLite itself would take `file:a.db?mode=memory` for a URI, whose options could discard
//! everything or ignore locks, and would bypass the checks here.

use std::borrow::Cow;
use std::fs;
use std::path::{self, Path, PathBuf};

use crate::records::RecordsError;

/// File systems that several machines can mount, by their Linux names.
const OF_NETWORKS: &[&str] = &[
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "davfs",
    "fuse.ceph",
    "fuse.ceph-fuse",
    "fuse.gcsfuse",
    "fuse.glusterfs",
    "fuse.juicefs",
    "fuse.mfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.sshfs",
    "gfs2",
    "glusterfs",
    "gpfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "ocfs2",
    "orangefs",
    "pvfs2",
    "smb2",
    "smb3",
    "smbfs",
];

/// The schemes of databases on servers. No path of a file begins like this by accident.
const OF_SERVERS: [&str; 2] = ["postgres://", "postgresql://"];

/// The scheme of a server's address; `None` for a path.
pub(in crate::records) fn of_server(path: &Path) -> Option<&'static str> {
    let text = path.to_string_lossy().to_lowercase();
    OF_SERVERS.into_iter().find(|scheme| text.starts_with(scheme))
}

/// Rejects the address of a server, and a path on a network file system, if the system tells.
pub(super) fn check(path: &Path) -> Result<(), RecordsError> {
    if let Some(scheme) = of_server(path) {
        return Err(RecordsError::OfServer { scheme });
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    // A file that does not exist yet will be on its folder's file system.
    let absolute = path.canonicalize().or_else(|_| folder_of(path).canonicalize());
    let Some(kind) = absolute.ok().and_then(|path| file_system(&mounts, &path)) else { return Ok(()) };
    match OF_NETWORKS.contains(&kind) {
        true => Err(RecordsError::Network { place: path.into(), kind: kind.to_owned() }),
        false => Ok(()),
    }
}

/// The path in a form that SQLite takes for nothing but a path. With a compiled-in option (`SQLITE_USE_URI`) it reads
/// `file:` as the start of a URI, whatever the flags say; `:memory:` and the empty path stand for temporary databases.
pub(super) fn plain(path: &Path) -> Cow<'_, Path> {
    match path.is_absolute() {
        true => Cow::Borrowed(path),
        false => Cow::Owned(Path::new(".").join(path)),
    }
}

/// A URI that makes SQLite read a file as immutable, without creating files next to it. In a
/// read-only folder it could not create them, and in a writable one they would interfere with
/// writers. `None` if the write-ahead log is not empty.
pub(super) fn frozen(path: &Path) -> Option<PathBuf> {
    let absolute = path::absolute(path).ok()?;
    let mut log = absolute.clone().into_os_string();
    log.push("-wal");
    if fs::metadata(log).is_ok_and(|log| log.len() > 0) {
        return None;
    }
    let escaped = absolute.to_str()?.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    // An empty host, because a path may begin with two slashes.
    let host = if escaped.starts_with('/') { "//" } else { "" };
    Some(PathBuf::from(format!("file:{host}{escaped}?immutable=1")))
}

/// The folder of a file.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Rejects an existing file that is not writable, because SQLite would open it for reading and leave
/// files of its own next to it; and a new file in a folder that is missing or not writable.
#[cfg(unix)]
pub(super) fn check_writable(path: &Path) -> Result<(), RecordsError> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    use rustix::io::Errno;
    // The file is not opened, because closing it would release the locks that SQLite holds on it in
    // this process.
    let refused = |error: Errno| RecordsError::Open { place: path.into(), message: error.to_string() };
    match accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS) {
        Err(error @ (Errno::ACCESS | Errno::PERM | Errno::ROFS)) => Err(refused(error)),
        Err(Errno::NOENT) => {
            accessat(CWD, folder_of(path), Access::WRITE_OK, AtFlags::EACCESS).map_err(refused)
        }
        Ok(()) if path.is_dir() => Err(refused(Errno::ISDIR)),
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
pub(super) fn check_writable(_: &Path) -> Result<(), RecordsError> {
    Ok(())
}

/// The file system type of an absolute path, from the text of `/proc/self/mountinfo`.
fn file_system<'a>(mounts: &'a str, path: &Path) -> Option<&'a str> {
    let mount = |line: &'a str| {
        let (mount, source) = line.split_once(" - ")?;
        Some((unescaped(mount.split(' ').nth(4)?), source.split(' ').next()?))
    };
    let around = mounts.lines().filter_map(mount).filter(|(point, _)| path.starts_with(point));
    // Of two mounts at the same point, the later one hides the earlier one.
    around.max_by_key(|(point, _)| point.components().count()).map(|(_, kind)| kind)
}

/// Decodes a path in which blanks, tabs, newlines and backslashes are octal escapes.
fn unescaped(text: &str) -> PathBuf {
    let mut pieces = text.split('\\');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let code = piece.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => plain.extend([&*char::from(code).to_string(), &piece[3..]]),
            None => plain.extend(["\\", piece]),
        }
    }
    PathBuf::from(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 27 0:50 / /home rw,relatime shared:5 master:2 - nfs4 server:/export/home rw,vers=4.2
41 40 0:51 / /home/me/scratch rw - xfs /dev/nvme0n1p1 rw
42 27 0:52 / /mnt/two\\040words rw - cifs //server/share rw
43 27 0:53 / /data rw - lustre 10.0.0.1@tcp:/lfs rw
44 27 0:54 / /data rw - ext4 /dev/sdb1 rw
45 27 0:55 / /remote rw - fuse.sshfs me@server: rw
46 27 0:56 / /encrypted rw - fuse.gocryptfs /plain rw
";

    #[test]
    fn the_innermost_and_last_mount_counts() {
        let kind = |path: &str| file_system(MOUNTS, Path::new(path)).unwrap_or("none");
        assert_eq!(kind("/tuning.db"), "ext4");
        assert_eq!(kind("/homes/tuning.db"), "ext4", "names are compared as a whole");
        assert_eq!(kind("/home/me/tuning.db"), "nfs4");
        assert_eq!(kind("/home/me/scratch/tuning.db"), "xfs");
        assert_eq!(kind("/mnt/two words/tuning.db"), "cifs");
        assert_eq!(kind("/data/tuning.db"), "ext4");
        assert_eq!(kind("/remote/tuning.db"), "fuse.sshfs");
        let refused =
            ["/tuning.db", "/home/x", "/home/me/scratch/x", "/mnt/two words/x", "/remote/x", "/encrypted/x"]
                .map(|path| OF_NETWORKS.contains(&kind(path)));
        assert_eq!(refused, [false, true, false, true, true, false]);
    }

    #[test]
    fn any_text_is_read() {
        for text in
            ["", "\n", " - ", "1 2 3 4 /\\ - nfs", "1 2 3 4 /\\77 - nfs a", "1 2 3 4 /a\\999b - x", "ä - ö"]
        {
            let _ = file_system(text, Path::new("/a/b"));
        }
        assert_eq!(unescaped("/a\\040b\\134c\\11"), Path::new("/a b\\c\\11"));
    }

    #[test]
    fn local_folders_are_taken() {
        check(Path::new("no/such/folder/tuning.db")).expect("others say what is wrong with it");
    }

    #[test]
    fn the_address_of_a_server_is_no_path() {
        for text in ["postgres://me:secret@host/trials", "PostgreSQL://host/trials"] {
            let error = check(Path::new(text)).expect_err("no path").to_string();
            assert!(error.contains("address of a server"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
        for text in ["postgres", "postgres:/a", "./postgres://a", "a/postgres://b"] {
            check(Path::new(text)).expect("a path");
        }
    }

    #[test]
    fn no_path_is_anything_else_to_sqlite() {
        for text in ["file:m.db?mode=memory", ":memory:", "", "m.db"] {
            assert!(plain(Path::new(text)).starts_with("."), "{text}");
            assert!(plain(Path::new(text)).as_os_str().as_encoded_bytes().starts_with(b"./"), "{text}");
        }
        assert_eq!(plain(Path::new("/a/file:m.db")), Path::new("/a/file:m.db"));
        for (path, uri) in
            [("/a%b?c#d", "file:///a%25b%3fc%23d?immutable=1"), ("//a/b", "file:////a/b?immutable=1")]
        {
            assert_eq!(frozen(Path::new(path)), Some(PathBuf::from(uri)));
        }
    }
}
