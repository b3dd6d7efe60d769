//! Checks that results can be written before they are computed, without creating anything.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use warploom::lang::files::write_whole;
use warploom::records;

use crate::error::Error;

/// The most bytes in the name of a file or folder, on all common file systems.
const LONGEST_NAME: usize = 255;

/// A place that a command will write to.
pub(crate) enum Output<'a> {
    /// A folder, which is created if it is missing.
    Folder(&'a Path),
    /// A file in a folder that exists.
    File(&'a Path),
    /// A database of trials.
    Records(&'a Path),
}

impl Output<'_> {
    /// Returns the error that writing is sure to end in, as far as that is known now.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self {
            Output::Folder(folder) => check_folder(folder),
            Output::File(file) => check_file(file),
            Output::Records(place) => Ok(records::check(place)?),
        }
    }
}

/// The folder of `-o`, if it is given.
pub(crate) fn folder(folder: &Option<PathBuf>) -> Vec<Output<'_>> {
    folder.iter().map(|folder| Output::Folder(folder)).collect()
}

/// Writes a file, in a folder that exists. Returns its path.
pub(crate) fn write(file: &Path, content: &[u8]) -> Result<String, Error> {
    write_whole(file, content).map_err(unwritable(file))?;
    Ok(file.display().to_string())
}

/// Creates a folder if it is missing.
pub(crate) fn make_folder(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(unwritable(folder))
}

/// The error of a file or folder that cannot be written.
pub(crate) fn unwritable(path: &Path) -> impl Fn(io::Error) -> Error {
    move |error| Error::Write { path: path.display().to_string(), error }
}

fn check_folder(folder: &Path) -> Result<(), Error> {
    let failed = unwritable(folder);
    check_names(folder).map_err(&failed)?;
    let here = Path::new(".");
    let all = folder.ancestors().map(|part| if part.as_os_str().is_empty() { here } else { part });
    // A link that leads nowhere exists too: no folder can be created there.
    let Some(nearest) = all.into_iter().find(|part| part.symlink_metadata().is_ok()) else { return Ok(()) };
    match nearest.is_dir() {
        true => check_access(nearest).map_err(failed),
        false => Err(Error::NotAFolder {
            folder: folder.display().to_string(),
            file: nearest.display().to_string(),
        }),
    }
}

/// Returns an error if a file cannot be written.
pub(crate) fn check_file(file: &Path) -> Result<(), Error> {
    let failed = unwritable(file);
    if file.is_dir() {
        return Err(Error::IsAFolder { file: file.display().to_string() });
    }
    if file.exists() {
        return check_access(file).map_err(&failed);
    }
    check_names(file).map_err(&failed)?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match folder.is_dir() {
        true => check_access(folder).map_err(failed),
        false => Err(Error::NoOutputFolder {
            file: file.display().to_string(),
            folder: folder.display().to_string(),
        }),
    }
}

/// Refuses a path of which a part is too long for the name of a file or folder.
fn check_names(path: &Path) -> io::Result<()> {
    match path.components().map(|part| part.as_os_str().len()).max() {
        Some(bytes) if bytes > LONGEST_NAME => Err(io::Error::new(
            io::ErrorKind::InvalidFilename,
            format!("a name in it has {bytes} bytes, and names of files have at most {LONGEST_NAME}"),
        )),
        _ => Ok(()),
    }
}

/// Whether this process may write to a file, or create files in a folder.
#[cfg(unix)]
fn check_access(path: &Path) -> io::Result<()> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    if !path.is_dir() {
        return Ok(accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS)?);
    }
    accessat(CWD, path, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?;
    match is_of_the_system(path)? {
        true => Err(io::Error::other("only the operating system makes files there")),
        false => Ok(()),
    }
}

/// Whether a folder only looks like one: root may write there, but there are no files to create.
#[cfg(target_os = "linux")]
fn is_of_the_system(folder: &Path) -> io::Result<bool> {
    use rustix::fs::{PROC_SUPER_MAGIC, statfs};
    // The numbers of sysfs and of control groups.
    Ok([PROC_SUPER_MAGIC, 0x6265_6572, 0x6367_7270].contains(&statfs(folder)?.f_type))
}

#[cfg(all(unix, not(target_os = "linux")))]
fn is_of_the_system(_: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Elsewhere only files say it.
#[cfg(not(unix))]
fn check_access(path: &Path) -> io::Result<()> {
    let metadata = path.metadata()?;
    match metadata.is_file() && metadata.permissions().readonly() {
        true => Err(io::ErrorKind::PermissionDenied.into()),
        false => Ok(()),
    }
}
