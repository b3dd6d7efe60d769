//! Buffers in files, by the file's extension.

use std::io;
use std::path::Path;

use thiserror::Error;
use warploom_lang::files::{self, Limit, ReadError};

use crate::buffer::Buffer;
use crate::npy::{self, NpyError};
use crate::picture::{self, PictureError};

/// Why a file could not be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file system refused to read.
    #[error("cannot read {name}: {error}")]
    Read {
        /// The file.
        name: String,
        /// What the file system said.
        error: io::Error,
    },
    /// The file is too large, or none that ends.
    #[error(transparent)]
    Refused(ReadError),
    /// The file system refused to write, or the format cannot hold the buffer.
    #[error("cannot write {name}: {error}")]
    Write {
        /// The file.
        name: String,
        /// What the file system said.
        error: io::Error,
    },
    /// The file is not a `.npy` file that a buffer can be read from.
    #[error("{name} cannot be read as a .npy file: {problem}")]
    Npy {
        /// The file.
        name: String,
        /// What is wrong with it.
        problem: NpyError,
    },
    /// The file is not a picture that a buffer can be read from.
    #[error("{name} cannot be read as a picture: {problem}")]
    ReadPicture {
        /// The file.
        name: String,
        /// What is wrong with it.
        problem: PictureError,
    },
    /// The buffer is no picture that the file can hold.
    #[error("{name} cannot be written as a picture: {problem}")]
    WritePicture {
        /// The file.
        name: String,
        /// What is wrong with the buffer.
        problem: PictureError,
    },
    /// No format belongs to the file's extension.
    #[error("the extension of {name} names no known format; use .npy, .png, .ppm or .pgm")]
    Extension {
        /// The file.
        name: String,
    },
}

/// Reads a `.npy`, `.png`, `.ppm` or `.pgm` file.
pub fn read_any(path: impl AsRef<Path>) -> Result<Buffer, FileError> {
    let path = path.as_ref();
    match extension(path).as_str() {
        "npy" => npy::read(path),
        "png" | "ppm" | "pgm" => picture::read(path),
        _ => Err(unknown_extension(path)),
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
