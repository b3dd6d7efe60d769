//! Size limits for all files that the program reads, the functions that read within them, and
//! [`write_whole`].
//!
//! A file declares the size of its own contents, so every decoder has a limit that does not depend
//! on the file. No small file makes the program allocate more than a gigabyte. `docs/limits.md`
//! lists the limits for users; a test compares that list with [`ALL`].

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use thiserror::Error;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The maximum amount that is read of one kind of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// The kind of data, as messages and documents name it.
    pub what: &'static str,
    /// The maximum number of units.
    pub most: u64,
    /// The unit that is counted.
    pub unit: Unit,
}

/// The unit of a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Bytes of the file or stream.
    Bytes,
    /// Samples of a picture: pixels times channels.
    Samples,
    /// Nesting depth of JSON arrays and objects.
    Levels,
}

/// Text files: pipelines, cases, schedules, devices, `params.json`, results of the suite, anchors.
/// 10,000 stages use a third of it.
pub const TEXT: Limit = bytes("a text file", 16 * MIB);
/// The constant tables of a pipeline. They are printed into its kernels.
pub const TABLES: Limit = bytes("the tables of a pipeline", 64 * KIB);
/// A name of anything in a pipeline, or of the pipeline itself.
pub const NAME: Limit = bytes("a name", KIB);
/// Nesting depth of JSON. This is `serde_json`'s own limit.
pub const NESTING: Limit = Limit { what: "nested JSON", most: 127, unit: Unit::Levels };
/// An array. Reading it allocates only as much memory as the file has bytes.
pub const ARRAY: Limit = bytes("a .npy file", 64 * GIB);
/// An image file, still encoded.
pub const PICTURE_FILE: Limit = bytes("a picture file", 512 * MIB);
/// A decoded image. 7680 x 4320 with four channels fits. As `f32`, together with its source, that
/// is 800 MB.
pub const PICTURE: Limit = Limit { what: "a picture", most: 1 << 27, unit: Unit::Samples };
/// A file of model weights.
pub const WEIGHTS: Limit = bytes("a weights file", 16 * MIB);
/// One pipeline or sample in a sample file, decompressed.
pub const SAMPLE: Limit = bytes("one sample", 16 * MIB);
/// A whole file of samples or exported records: its text or its size in memory, whichever is
/// larger.
pub const SAMPLES: Limit = bytes("samples", 512 * MIB);
/// A file of a recorded landscape, and its decompressed contents.
pub const LANDSCAPE: Limit = bytes("a landscape", 16 * MIB);
/// One line of exported records: a pipeline's text with escapes.
pub const LINE: Limit = bytes("a line of records", 32 * MIB);
/// One text or blob field in a database of records. A decompressed pipeline may be as large as
/// [`TEXT`].
pub const FIELD: Limit = bytes("a field of records", 16 * MIB);
/// One entry of the cache of compiled code.
pub const CACHE_ENTRY: Limit = bytes("a cache entry", 64 * MIB);
/// One message between the program and a worker, which may carry whole arrays. Its length field has
/// 32 bits.
pub const MESSAGE: Limit = bytes("a message of a worker", u32::MAX as u64);

/// Every limit of this module.
pub const ALL: [Limit; 15] = [
    TEXT,
    TABLES,
    NAME,
    NESTING,
    ARRAY,
    PICTURE_FILE,
    PICTURE,
    WEIGHTS,
    SAMPLE,
    SAMPLES,
    LANDSCAPE,
    LINE,
    FIELD,
    CACHE_ENTRY,
    MESSAGE,
];

const fn bytes(what: &'static str, most: u64) -> Limit {
    Limit { what, most, unit: Unit::Bytes }
}

impl fmt::Display for Limit {
    /// Example: `16 MiB`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unit {
            Unit::Bytes if self.most.is_multiple_of(GIB) => write!(f, "{} GiB", self.most / GIB),
            Unit::Bytes if self.most.is_multiple_of(MIB) => write!(f, "{} MiB", self.most / MIB),
            Unit::Bytes if self.most.is_multiple_of(KIB) => write!(f, "{} KiB", self.most / KIB),
            Unit::Bytes => write!(f, "{} bytes", self.most),
            Unit::Samples => write!(f, "{} samples", self.most),
            Unit::Levels => write!(f, "{} levels", self.most),
        }
    }
}

/// Why a file could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system returned an error.
    #[error("cannot read {}: {error}; check the path and its permissions", path.display())]
    System {
        /// The path that was opened or read.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// A folder in place of a file.
    #[error("{} is a folder; give a file", path.display())]
    Folder {
        /// The path of the folder.
        path: PathBuf,
    },
    /// A pipe, a device or a socket, which may never end.
    #[error("{} is not a regular file; save its contents to a regular file first", path.display())]
    Special {
        /// The path of the special file.
        path: PathBuf,
    },
    /// The file exceeds its limit.
    #[error("{} is too large: {limit} is the limit for {}; give a smaller file", path.display(), limit.what)]
    TooLarge {
        /// The path of the oversized file.
        path: PathBuf,
        /// The limit it exceeds.
        limit: Limit,
    },
    /// The allocation for the contents failed.
    #[error("cannot allocate the {bytes} bytes of {}; give a smaller file", path.display())]
    Memory {
        /// The path of the file.
        path: PathBuf,
        /// The size of the file in bytes.
        bytes: u64,
    },
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// If the file cannot be read, is not a regular file or exceeds the limit.
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
    // The file may grow while it is read.
    file.take(limit.most + 1).read_to_end(&mut bytes).map_err(system)?;
    match bytes.len() as u64 > limit.most {
        true => Err(ReadError::TooLarge { path: path_buf(), limit }),
        false => Ok(bytes),
    }
}

/// Reads a text file of at most [`TEXT`].
///
/// # Errors
/// As [`read`], or if the file is not UTF-8.
pub fn read_text(path: impl AsRef<Path>) -> Result<String, ReadError> {
    let path = path.as_ref();
    let no_text = |error| ReadError::System {
        path: path.to_path_buf(),
        error: io::Error::new(io::ErrorKind::InvalidData, error),
    };
    String::from_utf8(read(path, TEXT)?).map_err(no_text)
}

/// Opens a regular file. Opening a pipe could block, so the type is checked first.
///
/// # Errors
/// If the file cannot be opened or is not a regular file.
pub fn open(path: impl AsRef<Path>) -> Result<File, ReadError> {
    let path = path.as_ref();
    let system = |error| ReadError::System { path: path.to_path_buf(), error };
    let kind = fs::metadata(path).map_err(system)?.file_type();
    if kind.is_dir() {
        return Err(ReadError::Folder { path: path.to_path_buf() });
    }
    if !kind.is_file() {
        return Err(ReadError::Special { path: path.to_path_buf() });
    }
    File::open(path).map_err(system)
}

/// Reads a whole stream; `None` if it exceeds the limit. Memory grows with the data received.
///
/// # Errors
/// If reading from the stream fails.
pub fn read_stream(stream: impl Read, limit: Limit) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    stream.take(limit.most + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= limit.most))
}

/// Writes a file atomically: readers see either the old or the new content, whatever happens in
/// between.
///
/// # Errors
/// If the file cannot be written. Then the old content stays.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    // It has a name of its own, because the name of the file may be as long as names can be.
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let unfinished = path.with_file_name(format!(".{}-{count}.tmp", std::process::id()));
    let written = fs::write(&unfinished, content).and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        // The partial file is useless. If it cannot be removed either, the first error is reported.
        fs::remove_file(&unfinished).unwrap_or_default();
    }
    written
}
