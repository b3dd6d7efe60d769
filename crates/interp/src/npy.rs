//! Arrays in numpy's `.npy` files.
//!
//! Axes are in reverse order of the indices: `f(x, y, c)` is `array[c][y][x]`. In numpy's default
//! (C) order, the file then holds the samples with the first index fastest, which is also the
//! default of [`Buffer`]. The format has no minima, so the regions of arrays that are read start at
//! the origin.

mod header;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use npyz::{AutoSerialize, DType, Deserialize, TypeChar, TypeRead, TypeStr, WriteOptions, WriterBuilder};
use thiserror::Error;
use warploom_lang::files::ARRAY;
use warploom_lang::{Range, Region, Type, dispatch, visible};

use crate::buffer::{Buffer, BufferError, Element};
use crate::files::{self, FileError};
use header::{Header, MAX_DIMENSIONS};

/// Why a `.npy` file cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NpyError {
    /// The file does not start with the `.npy` signature.
    #[error("it does not start with the header of one; save it with numpy.save")]
    NotNpy,
    /// The file ends within its header.
    #[error("it ends within its header; copy or save it again")]
    CutHeader,
    /// An unknown version of the format.
    #[error("its format version {major}.{minor} is unknown; save it as version 1.0, 2.0 or 3.0")]
    Version {
        /// The major version.
        major: u8,
        /// The minor version.
        minor: u8,
    },
    /// The header is not one that numpy writes.
    #[error("its header is damaged, expected {expected}; save it again with numpy.save")]
    Malformed {
        /// What the parser expected.
        expected: &'static str,
    },
    /// The header lacks an entry.
    #[error("its header lacks the entry '{key}'; save it again with numpy.save")]
    MissingKey {
        /// The name of the missing entry.
        key: &'static str,
    },
    /// The array is structured (its samples are records).
    #[error("it holds a structured array; save each of its fields to a separate file")]
    Structured,
    /// More dimensions than numpy allows.
    #[error("it has more than {MAX_DIMENSIONS} dimensions, which numpy does not allow; reshape the array")]
    TooManyDimensions,
    /// The samples have a type that buffers do not hold.
    #[error(
        "its samples have the type '{descr}'; convert them with astype to bool, uint8, uint16, uint32, int8, \
         int16, int32 or float32"
    )]
    Type {
        /// The type in numpy's notation.
        descr: String,
    },
    /// The file holds fewer samples than its header claims.
    #[error(
        "its shape {shape:?} needs more than the {found} bytes of samples in the file; copy or save it again"
    )]
    Truncated {
        /// The shape in the header.
        shape: Vec<i64>,
        /// The number of bytes after the header.
        found: usize,
    },
    /// The file holds more bytes than its header claims.
    #[error("{extra} bytes follow the samples of its shape {shape:?}; save one array per file")]
    Trailing {
        /// The shape in the header.
        shape: Vec<i64>,
        /// The number of excess bytes.
        extra: usize,
    },
    /// A sample that is not a valid value of its type.
    #[error("one of its samples is damaged ({0}); copy or save it again")]
    Sample(io::Error),
    /// A 64-bit sample that the 32-bit type cannot represent exactly.
    #[error(
        "its sample {value} is not exactly representable in {ty}; convert the array with astype before saving it"
    )]
    Inexact {
        /// The value of the sample.
        value: String,
        /// The type of the buffer.
        ty: Type,
    },
    /// The array does not fit in memory.
    #[error(transparent)]
    Buffer(#[from] BufferError),
}

/// Reads a `.npy` file.
///
/// Arrays of `float64`, `int64` and `uint64` become `f32`, `i32` and `u32` if every sample keeps
/// its value; otherwise reading fails.
pub fn read(path: impl AsRef<Path>) -> Result<Buffer, FileError> {
    let path = path.as_ref();
    read_from(&files::load(path, ARRAY)?, &path.display().to_string())
}

/// Reads the content of a `.npy` file. `name` identifies the file in errors.
pub fn read_from(bytes: &[u8], name: &str) -> Result<Buffer, FileError> {
    decode(bytes).map_err(|problem| FileError::Npy { name: name.to_owned(), problem })
}

/// Writes the samples of `buffer` to a `.npy` file in C order, regardless of the storage order.
///
/// ```no_run
/// use warploom_interp::{buffer::Buffer, npy};
/// use warploom_lang::{Region, Type};
///
/// let image = Buffer::zeros(Type::F32, Region::of_extents(&[640, 480, 3]))?;
/// npy::write("image.npy", &image)?; // numpy.load("image.npy").shape == (3, 480, 640)
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write(path: impl AsRef<Path>, buffer: &Buffer) -> Result<(), FileError> {
    let path = path.as_ref();
    let written = File::create(path).and_then(|file| write_to(BufWriter::new(file), buffer));
    written.map_err(|error| FileError::Write { name: path.display().to_string(), error })
}

/// Writes the content of a `.npy` file to `writer`.
pub fn write_to(writer: impl Write, buffer: &Buffer) -> io::Result<()> {
    if buffer.region().dimensions() > MAX_DIMENSIONS {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, NpyError::TooManyDimensions));
    }
    dispatch!(buffer.ty(), T => write_samples::<T>(writer, buffer))
}

fn write_samples<T: Element + AutoSerialize>(writer: impl Write, buffer: &Buffer) -> io::Result<()> {
    let shape: Vec<u64> = buffer.region().0.iter().rev().map(|range| range.extent as u64).collect();
    let mut writer = WriteOptions::<T>::new().default_dtype().shape(&shape).writer(writer).begin_nd()?;
    let samples = buffer.as_slice::<T>().unwrap_or_default();
    writer.extend(buffer.offsets().map(|offset| samples[offset]))?;
    writer.finish()
}

fn decode(file: &[u8]) -> Result<Buffer, NpyError> {
    let (header, data) = header::parse(file)?;
    let unsupported = || NpyError::Type { descr: visible(header.descr).into_owned() };
    let ty: TypeStr = header.descr.parse().map_err(|_| unsupported())?;
    let array = Array { header: &header, data, dtype: DType::new_scalar(ty.clone()) };
    match (ty.type_char(), ty.size_field()) {
        (TypeChar::Bool, 1) => array.buffer(Some::<bool>),
        (TypeChar::Uint, 1) => array.buffer(Some::<u8>),
        (TypeChar::Uint, 2) => array.buffer(Some::<u16>),
        (TypeChar::Uint, 4) => array.buffer(Some::<u32>),
        (TypeChar::Uint, 8) => array.buffer(|wide: u64| u32::try_from(wide).ok()),
        (TypeChar::Int, 1) => array.buffer(Some::<i8>),
        (TypeChar::Int, 2) => array.buffer(Some::<i16>),
        (TypeChar::Int, 4) => array.buffer(Some::<i32>),
        (TypeChar::Int, 8) => array.buffer(|wide: i64| i32::try_from(wide).ok()),
        (TypeChar::Float, 4) => array.buffer(Some::<f32>),
        (TypeChar::Float, 8) => array.buffer(|wide: f64| {
            let narrow = wide as f32;
            (f64::from(narrow) == wide || wide.is_nan()).then_some(narrow)
        }),
        _ => Err(unsupported()),
    }
}

struct Array<'a> {
    header: &'a Header<'a>,
    data: &'a [u8],
    dtype: DType,
}

impl Array<'_> {
    /// Reads samples stored as `S` in the file into a buffer of `T`.
    fn buffer<S: Deserialize + ToString + Copy, T: Element>(
        &self,
        narrow: impl Fn(S) -> Option<T>,
    ) -> Result<Buffer, NpyError> {
        let count = self.count(size_of::<S>())?;
        let reader = S::reader(&self.dtype)
            .map_err(|_| NpyError::Type { descr: visible(self.header.descr).into_owned() })?;
        let mut data = self.data;
        let mut samples = Vec::with_capacity(count);
        for _ in 0..count {
            let sample = reader.read_one(&mut data).map_err(NpyError::Sample)?;
            let inexact = || NpyError::Inexact { value: sample.to_string(), ty: T::TYPE };
            samples.push(narrow(sample).ok_or_else(inexact)?);
        }
        let extents = self.header.shape.iter().rev();
        let region = Region(extents.map(|&extent| Range::new(0, extent)).collect());
        let index_order: Vec<usize> = (0..region.dimensions()).collect();
        if self.header.fortran_order {
            let reversed: Vec<usize> = index_order.iter().rev().copied().collect();
            return Ok(Buffer::from_vec_in_order(region, &reversed, samples)?.reordered(&index_order)?);
        }
        Ok(Buffer::from_vec_in_order(region, &index_order, samples)?)
    }

    /// The number of samples, after checking that the file holds them.
    fn count(&self, sample_bytes: usize) -> Result<usize, NpyError> {
        let shape = &self.header.shape;
        let found = self.data.len();
        // A zero extent makes the array empty, even if the product of the other extents is too
        // large.
        let claimed = if shape.contains(&0) {
            Some(0)
        } else {
            shape.iter().try_fold(1_usize, |count, &extent| count.checked_mul(extent.try_into().ok()?))
        };
        let count = claimed.filter(|&count| count <= found / sample_bytes);
        let count = count.ok_or_else(|| NpyError::Truncated { shape: shape.clone(), found })?;
        match found - count * sample_bytes {
            0 => Ok(count),
            extra => Err(NpyError::Trailing { shape: shape.clone(), extra }),
        }
    }
}
