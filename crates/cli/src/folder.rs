//! Finds and reads folders of reference data.

use std::fs;
use std::path::{Path, PathBuf};

use warploom::inputs::placed;
use warploom::interp::buffer::Buffer;
use warploom::interp::npy;
use warploom::lang::{Region, files};

use crate::error::Error;
use crate::golden::{Array, Golden};
use crate::show;

/// The file that marks a folder as reference data.
const PARAMS: &str = "params.json";

pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    /// The content of its `params.json`.
    pub(crate) golden: Golden,
}

/// All folders of reference data in `root`, sorted by name; only `root` if it is one itself.
pub(crate) fn find(root: &Path) -> Result<Vec<Folder>, Error> {
    if !root.is_dir() {
        return Err(Error::NoFolder { folder: root.display().to_string() });
    }
    let unreadable = |error| Error::Read { path: root.display().to_string(), error };
    let mut paths = Vec::new();
    for entry in fs::read_dir(root).map_err(unreadable)? {
        paths.push(entry.map_err(unreadable)?.path());
    }
    paths.sort();
    paths.insert(0, root.to_owned());
    let paths = paths.into_iter().filter(|path| path.join(PARAMS).is_file());
    let folders = paths.map(Folder::read).collect::<Result<Vec<_>, _>>()?;
    if folders.is_empty() {
        return Err(Error::NoGolden { folder: root.display().to_string() });
    }
    Ok(folders)
}

impl Folder {
    fn read(path: PathBuf) -> Result<Folder, Error> {
        let file = path.join(PARAMS);
        let name = || file.display().to_string();
        let golden = Golden::parse(&files::read_text(&file)?)
            .map_err(|problem| Error::Golden { file: name(), problem })?;
        Ok(Folder { path, golden })
    }

    /// Wraps an error about the content of its `params.json`.
    pub(crate) fn says(&self, error: Error) -> Error {
        Error::In { file: self.path.join(PARAMS).display().to_string(), error: Box::new(error) }
    }

    /// Reads an array and checks its type and extents against `params.json`.
    pub(crate) fn array(&self, name: &str, described: &Array) -> Result<Buffer, Error> {
        let file = self.path.join(format!("{name}.npy"));
        if !file.exists() {
            return Err(Error::NoFile { file: file.display().to_string() });
        }
        let buffer = npy::read(&file)?;
        if buffer.ty() != described.ty || buffer.region().extents() != described.region.extents() {
            let say = |ty, region: &Region| format!("{ty} {}", show::extents(region));
            return Err(Error::GoldenArray {
                file: file.display().to_string(),
                found: say(buffer.ty(), buffer.region()),
                expected: say(described.ty, &described.region),
            });
        }
        Ok(placed(buffer, &described.region)?)
    }
}

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
