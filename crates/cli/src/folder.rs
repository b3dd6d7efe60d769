//! Files in folders.

use std::fs;
use std::path::PathBuf;

use crate::error::Error;

/// Replaces folders among paths by their files with these extensions, sorted by name.
pub(crate) fn files_of(paths: &[PathBuf], extensions: &[&str]) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let unreadable = |error| Error::Read { path: path.display().to_string(), error };
        let mut found = Vec::new();
        for entry in fs::read_dir(path).map_err(unreadable)? {
            let file = entry.map_err(unreadable)?.path();
            let extension = file.extension().unwrap_or_default().to_string_lossy().into_owned();
            found.extend(extensions.contains(&extension.as_str()).then_some(file));
        }
        if found.is_empty() {
            let (folder, extensions) = (path.display().to_string(), extensions.join(" or ."));
            return Err(Error::NoFilesIn { folder, extensions });
        }
        found.sort();
        files.extend(found);
    }
    Ok(files)
}
