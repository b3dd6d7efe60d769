//! Where a database may be stored. SQLite's write-ahead log needs memory shared by all its users,
//! so all of them must run on one machine.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::RecordsError;

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

/// SQLite's name for a database without a file.
const IN_MEMORY: &str = ":memory:";

/// Rejects a path on a network file system, if the system tells.
pub(super) fn check(path: &Path) -> Result<(), RecordsError> {
    if path == Path::new(IN_MEMORY) {
        return Ok(());
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    // A file that does not exist yet will be on its folder's file system.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let absolute = path.canonicalize().or_else(|_| folder.canonicalize());
    let Some(kind) = absolute.ok().and_then(|path| file_system(&mounts, &path)) else { return Ok(()) };
    match OF_NETWORKS.contains(&kind) {
        true => Err(RecordsError::Network { path: path.to_path_buf(), kind: kind.to_owned() }),
        false => Ok(()),
    }
}

/// Rejects an existing file that is not writable. SQLite would open it for reading and leave files
/// of its own next to it.
#[cfg(unix)]
pub(super) fn check_writable(path: &Path) -> Result<(), RecordsError> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    use rustix::io::Errno;
    // The file is not opened, because closing it would release the locks that SQLite holds on it in
    // this process.
    match accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS) {
        Err(error @ (Errno::ACCESS | Errno::PERM | Errno::ROFS)) => {
            Err(RecordsError::Open { path: path.to_path_buf(), message: error.to_string() })
        }
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
    fn memory_and_local_folders_are_taken() {
        check(Path::new(":memory:")).expect("it is no file");
        check(Path::new("no/such/folder/tuning.db")).expect("others say what is wrong with it");
    }
}
