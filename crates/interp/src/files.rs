//! Reads and writes buffers as files. The extension selects the format.

use std::io;
use std::path::Path;

use thiserror::Error;
use warploom_lang::files::{self, Limit, ReadError};

use crate::buffer::Buffer;
use crate::npy::{self, NpyError};
use crate::picture::{self, EXTENSIONS, PictureError};

/// Why a file could not be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// Reading from the file system failed.
    #[error("cannot read {name}: {error}")]
    Read {
        /// The path of the file.
        name: String,
        /// The operating system's error.
        error: io::Error,
    },
    /// The file is too large or not a regular file.
    #[error(transparent)]
    Refused(ReadError),
    /// Writing to the file system failed, or the format cannot hold the buffer.
    #[error("cannot write {name}: {error}")]
    Write {
        /// The path of the file.
        name: String,
        /// The underlying error.
        error: io::Error,
    },
    /// The content is not a `.npy` array that a buffer can hold.
    #[error("{name} cannot be read as a .npy file: {problem}")]
    Npy {
        /// The path of the file.
        name: String,
        /// What is wrong with the content.
        problem: NpyError,
    },
    /// The content is not an image that a buffer can hold.
    #[error("{name} cannot be read as a picture: {problem}")]
    ReadPicture {
        /// The path of the file.
        name: String,
        /// What is wrong with the content.
        problem: PictureError,
    },
    /// The buffer is not an image that the format can hold.
    #[error("{name} cannot be written as a picture: {problem}")]
    WritePicture {
        /// The path of the file.
        name: String,
        /// What is wrong with the buffer.
        problem: PictureError,
    },
    /// The extension belongs to no known format.
    #[error("the extension of {name} is not a known format; use .npy, .png, .ppm or .pgm")]
    Extension {
        /// The path of the file.
        name: String,
    },
    /// The extension belongs to no format that is read.
    #[error(
        "the extension of {name} is not a format that is read; use .npy, or a picture: .{}", EXTENSIONS.join(", .")
    )]
    Unread {
        /// The path of the file.
        name: String,
    },
}

/// Reads a `.npy` file or a picture.
pub fn read_any(path: impl AsRef<Path>) -> Result<Buffer, FileError> {
    let path = path.as_ref();
    match extension(path).as_str() {
        "npy" => npy::read(path),
        known if EXTENSIONS.contains(&known) => picture::read(path),
        _ => Err(FileError::Unread { name: path.display().to_string() }),
    }
}

/// Writes a `.npy`, `.png`, `.ppm` or `.pgm` file.
pub fn write_any(path: impl AsRef<Path>, buffer: &Buffer) -> Result<(), FileError> {
    let path = path.as_ref();
    match extension(path).as_str() {
        "npy" => npy::write(path, buffer),
        _ => picture::write(path, buffer),
    }
}

pub(crate) fn load(path: &Path, limit: Limit) -> Result<Vec<u8>, FileError> {
    files::read(path, limit).map_err(|error| match error {
        ReadError::System { path, error } => FileError::Read { name: path.display().to_string(), error },
        refused => FileError::Refused(refused),
    })
}

/// The extension in lower case; empty if there is none.
pub(crate) fn extension(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().to_lowercase()
}

pub(crate) fn unknown_extension(path: &Path) -> FileError {
    FileError::Extension { name: path.display().to_string() }
}
