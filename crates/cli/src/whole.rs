//! Atomic writes of files.

use std::fs;
use std::io;
use std::path::Path;

/// Writes a file atomically: readers see either the old or the new content, whatever happens in
/// between.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let unfinished = path.with_file_name(name);
    let written = fs::write(&unfinished, content).and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        // The partial file is useless. If it cannot be removed either, the first error is reported.
        fs::remove_file(&unfinished).unwrap_or_default();
    }
    written
}
