//! Folders of reference data.

use std::path::{Path, PathBuf};
use std::{fs, io};

use thiserror::Error;
use warploom::inputs::placed;
use warploom::interp::buffer::{Buffer, BufferError};
use warploom::interp::files::FileError;
use warploom::interp::npy;
use warploom::lang::files::ReadError;
use warploom::lang::{Region, files};
use warploom::show;

use super::{Array, Golden, GoldenError};

/// Why a folder holds no reference data.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are the words of the sentences")]
pub enum FolderError {
    /// There is no folder.
    #[error("there is no folder {folder}; check its path")]
    NoFolder { folder: String },
    /// An array is missing.
    #[error("there is no file {file}; check its path")]
    NoFile { file: String },
    /// The folder cannot be read.
    #[error("cannot read {path}: {error}; check its permissions")]
    Read { path: String, error: io::Error },
    /// A file that cannot be opened.
    #[error(transparent)]
    Refused(#[from] ReadError),
    /// An array that cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// An array that cannot be stored.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// A wrong `params.json`.
    #[error("{file} does not describe reference data: {problem}")]
    Golden { file: String, problem: GoldenError },
    /// Another array than `params.json` says.
    #[error("{file} contains {found}, but params.json says {expected}; make them agree")]
    Array { file: String, found: String, expected: String },
    /// No `params.json`.
    #[error(
        "{folder} contains no reference data: neither it nor a folder in it has a params.json; give another folder"
    )]
    NoGolden { folder: String },
}

/// The file that marks a folder as reference data.
const PARAMS: &str = "params.json";

/// A folder of reference data.
pub struct Folder {
    /// Where it is.
    pub path: PathBuf,
    /// The content of its `params.json`.
    pub golden: Golden,
}

impl Folder {
    /// All folders of reference data in `root`, sorted by name; only `root` if it is one itself.
    ///
    /// # Errors
    /// If there are none, or one cannot be read.
    pub fn find(root: &Path) -> Result<Vec<Folder>, FolderError> {
        if !root.is_dir() {
            return Err(FolderError::NoFolder { folder: root.display().to_string() });
        }
        let unreadable = |error| FolderError::Read { path: root.display().to_string(), error };
        let mut paths = Vec::new();
        for entry in fs::read_dir(root).map_err(unreadable)? {
            paths.push(entry.map_err(unreadable)?.path());
        }
        paths.sort();
        paths.insert(0, root.to_owned());
        let paths = paths.into_iter().filter(|path| path.join(PARAMS).is_file());
        let folders = paths.map(Folder::read).collect::<Result<Vec<_>, _>>()?;
        if folders.is_empty() {
            return Err(FolderError::NoGolden { folder: root.display().to_string() });
        }
        Ok(folders)
    }

    /// Its `params.json`.
    pub fn params(&self) -> PathBuf {
        self.path.join(PARAMS)
    }

    /// The boxes of its inputs.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, &Region)> {
        self.golden.inputs.iter().map(|(name, array)| (name.as_str(), &array.region))
    }

    fn read(path: PathBuf) -> Result<Folder, FolderError> {
        let file = path.join(PARAMS);
        let name = || file.display().to_string();
        let golden = Golden::parse(&files::read_text(&file)?)
            .map_err(|problem| FolderError::Golden { file: name(), problem })?;
        Ok(Folder { path, golden })
    }

    /// Reads an array and checks its type and extents against `params.json`.
    ///
    /// # Errors
    /// If it cannot be read, or is another one.
    pub fn array(&self, name: &str, described: &Array) -> Result<Buffer, FolderError> {
        let file = self.path.join(format!("{name}.npy"));
        if !file.exists() {
            return Err(FolderError::NoFile { file: file.display().to_string() });
        }
        let buffer = npy::read(&file)?;
        if buffer.ty() != described.ty || buffer.region().extents() != described.region.extents() {
            let say = |ty, region: &Region| format!("{ty} {}", show::extents(region));
            return Err(FolderError::Array {
                file: file.display().to_string(),
                found: say(buffer.ty(), buffer.region()),
                expected: say(described.ty, &described.region),
            });
        }
        Ok(placed(buffer, &described.region)?)
    }
}
