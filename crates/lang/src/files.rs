//! How much is read of files from outside: every limit, and the one way to read within it.
//!
//! A file says itself how large its contents are, so every decoder has a limit that does not depend on the file. No small
//! file makes the program take more than a gigabyte. `docs/limits.md` lists the limits for users, and a test holds the list
//! against [`ALL`].

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The most that is read of one kind of thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// What it bounds, as messages and documents call it.
    pub what: &'static str,
    /// How many of its units.
    pub most: u64,
    /// What is counted.
    pub unit: Unit,
}

/// What a limit counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Samples of a picture: pixels times channels.
    Samples,
    /// JSON arrays and objects within each other.
    Levels,
}

/// Text: pipelines, cases, schedules, devices, `params.json`, results of the suite, anchors. 10,000 stages take a third of it.
pub const TEXT: Limit = bytes("a text file", 16 * MIB);
/// Nesting of JSON, which is `serde_json`'s own limit.
pub const NESTING: Limit = Limit { what: "nested JSON", most: 127, unit: Unit::Levels };
/// An array. Only as much memory is taken as the file has.
pub const ARRAY: Limit = bytes("a .npy file", 64 * GIB);
/// The file of a picture.
pub const PICTURE_FILE: Limit = bytes("a picture file", 512 * MIB);
/// A picture: 7680 x 4320 with four channels fit. As `f32`, with what it was made from, that is 800 MB.
pub const PICTURE: Limit = Limit { what: "a picture", most: 1 << 27, unit: Unit::Samples };
/// A file of weights.
pub const WEIGHTS: Limit = bytes("a file of weights", 16 * MIB);
/// One pipeline or sample in a file of samples, unpacked.
pub const SAMPLE: Limit = bytes("one sample", 16 * MIB);
/// All of a file of samples or of exported records, as text or in memory, whichever is more.
pub const SAMPLES: Limit = bytes("samples", 512 * MIB);
/// A line of exported records: a pipeline's text with escapes.
pub const LINE: Limit = bytes("a line of records", 32 * MIB);
/// A text or blob in a database of records; a pipeline may be a [`TEXT`] when unpacked.
pub const FIELD: Limit = bytes("a field of records", 16 * MIB);
/// An entry of the cache of compiled code.
pub const CACHE_ENTRY: Limit = bytes("a cache entry", 64 * MIB);
/// A message between this program and its workers, which carry whole arrays. Its length has 32 bits.
pub const MESSAGE: Limit = bytes("a message of a worker", u32::MAX as u64);

/// All limits.
pub const ALL: [Limit; 12] = [
    TEXT,
    NESTING,
    ARRAY,
    PICTURE_FILE,
    PICTURE,
    WEIGHTS,
    SAMPLE,
    SAMPLES,
    LINE,
    FIELD,
    CACHE_ENTRY,
    MESSAGE,
];

const fn bytes(what: &'static str, most: u64) -> Limit {
    Limit { what, most, unit: Unit::Bytes }
}

impl fmt::Display for Limit {
    /// `16 MiB`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unit {
            Unit::Bytes if self.most.is_multiple_of(GIB) => write!(f, "{} GiB", self.most / GIB),
            Unit::Bytes if self.most.is_multiple_of(MIB) => write!(f, "{} MiB", self.most / MIB),
            Unit::Bytes => write!(f, "{} bytes", self.most),
            Unit::Samples => write!(f, "{} samples", self.most),
            Unit::Levels => write!(f, "{} levels", self.most),
        }
    }
}

/// Why a file was not read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file system refused.
    #[error("cannot read {}: {error}; check the path and who may read it", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// What the file system said.
        error: io::Error,
    },
    /// A pipe, a device or a socket, which may have no end.
    #[error("{} is not a regular file; save what it gives in one first", path.display())]
    Special {
        /// The file.
        path: PathBuf,
    },
    /// More than the limit.
    #[error("{} is too large: {limit} are the most that is read of {}; give a smaller file", path.display(), limit.what)]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: Limit,
    },
    /// More than there is memory for.
    #[error("there is no memory for the {bytes} bytes of {}; give a smaller file", path.display())]
    Memory {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
}

/// The bytes of a regular file within a limit.
///
/// # Errors
/// If the file cannot be read, is not a regular one or is larger.
pub fn read(path: impl AsRef<Path>, limit: Limit) -> Result<Vec<u8>, ReadError> {
    let path = path.as_ref();
    let path_buf = || path.to_path_buf();
    let system = |error| ReadError::System { path: path_buf(), error };
    let file = open(path)?;
    let about = file.metadata().map_err(system)?;
    let length = if about.is_file() { about.len() } else { 0 };
    if length > limit.most {
        return Err(ReadError::TooLarge { path: path_buf(), limit });
    }
    let mut bytes = Vec::new();
    let room = usize::try_from(length).ok().and_then(|length| bytes.try_reserve_exact(length).ok());
    room.ok_or_else(|| ReadError::Memory { path: path_buf(), bytes: length })?;
    // It may grow while it is read.
    file.take(limit.most + 1).read_to_end(&mut bytes).map_err(system)?;
    match bytes.len() as u64 > limit.most {
        true => Err(ReadError::TooLarge { path: path_buf(), limit }),
        false => Ok(bytes),
    }
}

/// A text file, at most a [`TEXT`].
///
/// # Errors
/// As [`read`], or if it is not UTF-8.
pub fn read_text(path: impl AsRef<Path>) -> Result<String, ReadError> {
    let path = path.as_ref();
    let no_text = |error| ReadError::System {
        path: path.to_path_buf(),
        error: io::Error::new(io::ErrorKind::InvalidData, error),
    };
    String::from_utf8(read(path, TEXT)?).map_err(no_text)
}

/// Opens a regular file. A pipe would hold up whoever opens it, so that is found out before.
///
/// # Errors
/// If it cannot be opened or is not a regular one.
pub fn open(path: impl AsRef<Path>) -> Result<File, ReadError> {
    let path = path.as_ref();
    let system = |error| ReadError::System { path: path.to_path_buf(), error };
    let kind = fs::metadata(path).map_err(system)?.file_type();
    // To read a folder is refused by the system, with its own words.
    if !kind.is_file() && !kind.is_dir() {
        return Err(ReadError::Special { path: path.to_path_buf() });
    }
    File::open(path).map_err(system)
}

/// All that a stream gives, if that is within a limit; `None` if there is more. Memory grows with what comes.
///
/// # Errors
/// If the stream fails.
pub fn read_stream(stream: impl Read, limit: Limit) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    stream.take(limit.most + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= limit.most))
}
