//! Files that are never seen half written.

use std::fs;
use std::io;
use std::path::Path;

/// A file is there as it was or as it shall be, whatever happens in between.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let unfinished = path.with_file_name(name);
    let written = fs::write(&unfinished, content).and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        // What is left of it is of no use; if it cannot be removed either, the first error says why.
        fs::remove_file(&unfinished).unwrap_or_default();
    }
    written
}
