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
use warploom_lang::{Range, Region, bf16, f16, visible};

use crate::buffer::{Buffer, BufferError, Data, Element};
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
         int16, int32, int64, uint64, float16, float32 or float64"
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
    /// The array does not fit in memory.
    #[error(transparent)]
    Buffer(#[from] BufferError),
}

/// Reads a `.npy` file.
///
/// NumPy itself has no `bf16`; the package ml_dtypes saves such arrays with the type `V2`, two raw bytes. Such an array
/// is read as `bf16`, and `bf16` is written like this.
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
    match buffer.data() {
        Data::Bool(samples) => write_samples(writer, buffer, |at| samples[at]),
        Data::U8(samples) => write_samples(writer, buffer, |at| samples[at]),
        Data::U16(samples) => write_samples(writer, buffer, |at| samples[at]),
        Data::U32(samples) => write_samples(writer, buffer, |at| samples[at]),
        Data::U64(samples) => write_samples(writer, buffer, |at| samples[at]),
        Data::I8(samples) => write_samples(writer, buffer, |at| samples[at]),
        Data::I16(samples) => write_samples(writer, buffer, |at| samples[at]),
        Data::I32(samples) => write_samples(writer, buffer, |at| samples[at]),
        Data::I64(samples) => write_samples(writer, buffer, |at| samples[at]),
        Data::F32(samples) => write_samples(writer, buffer, |at| samples[at]),
        Data::F64(samples) => write_samples(writer, buffer, |at| samples[at]),
        Data::F16(samples) => write_halves(writer, buffer, "<f2", |at| samples[at].to_bits()),
        Data::BF16(samples) => write_halves(writer, buffer, "<V2", |at| samples[at].to_bits()),
    }
}

/// The extents of a buffer in the order of a file.
fn shape(buffer: &Buffer) -> Vec<u64> {
    buffer.region().0.iter().rev().map(|range| range.extent as u64).collect()
}

fn write_samples<T: AutoSerialize>(
    writer: impl Write,
    buffer: &Buffer,
    sample: impl Fn(usize) -> T,
) -> io::Result<()> {
    let options = WriteOptions::<T>::new().default_dtype().shape(&shape(buffer));
    let mut writer = options.writer(writer).begin_nd()?;
    writer.extend(buffer.offsets().map(sample))?;
    writer.finish()
}

/// Writes floats of 16 bits, which npyz does not know: version 1.0, the header padded to 64 bytes.
fn write_halves(
    mut writer: impl Write,
    buffer: &Buffer,
    descr: &str,
    bits: impl Fn(usize) -> u16,
) -> io::Result<()> {
    let extents: String = shape(buffer).iter().map(|extent| format!("{extent}, ")).collect();
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({extents}), }}");
    let before = header::MAGIC.len() + 4;
    let width = (before + text.len() + 1).next_multiple_of(64) - before - 1;
    let text = format!("{text:<width$}\n");
    writer.write_all(header::MAGIC)?;
    writer.write_all(&[1, 0])?;
    writer.write_all(&(text.len() as u16).to_le_bytes())?;
    writer.write_all(text.as_bytes())?;
    for offset in buffer.offsets() {
        writer.write_all(&bits(offset).to_le_bytes())?;
    }
    writer.flush()
}

fn decode(file: &[u8]) -> Result<Buffer, NpyError> {
    let (header, data) = header::parse(file)?;
    let unsupported = || NpyError::Type { descr: visible(header.descr).into_owned() };
    let ty: TypeStr = header.descr.parse().map_err(|_| unsupported())?;
    let array = Array { header: &header, data, dtype: DType::new_scalar(ty.clone()) };
    match (ty.type_char(), ty.size_field()) {
        (TypeChar::Bool, 1) => array.buffer(|sample: bool| sample),
        (TypeChar::Uint, 1) => array.buffer(|sample: u8| sample),
        (TypeChar::Uint, 2) => array.buffer(|sample: u16| sample),
        (TypeChar::Uint, 4) => array.buffer(|sample: u32| sample),
        (TypeChar::Uint, 8) => array.buffer(|sample: u64| sample),
        (TypeChar::Int, 1) => array.buffer(|sample: i8| sample),
        (TypeChar::Int, 2) => array.buffer(|sample: i16| sample),
        (TypeChar::Int, 4) => array.buffer(|sample: i32| sample),
        (TypeChar::Int, 8) => array.buffer(|sample: i64| sample),
        // Their bits: the reader has no such type.
        (TypeChar::Float, 2) => array.bits("u2").buffer(f16::from_bits),
        (TypeChar::RawData, 2) => array.bits("u2").buffer(bf16::from_bits),
        (TypeChar::Float, 4) => array.buffer(|sample: f32| sample),
        (TypeChar::Float, 8) => array.buffer(|sample: f64| sample),
        _ => Err(unsupported()),
    }
}

struct Array<'a> {
    header: &'a Header<'a>,
    data: &'a [u8],
    dtype: DType,
}

impl Array<'_> {
    /// The same array with its samples as unsigned integers of as many bytes.
    fn bits(&self, descr: &str) -> Array<'_> {
        let order = if self.header.descr.starts_with('>') { '>' } else { '<' };
        let ty: Option<TypeStr> = format!("{order}{descr}").parse().ok();
        let dtype = ty.map_or_else(|| self.dtype.clone(), DType::new_scalar);
        Array { header: self.header, data: self.data, dtype }
    }

    /// Reads samples stored as `S` in the file into a buffer of `T`.
    fn buffer<S: Deserialize, T: Element>(&self, sample_of: impl Fn(S) -> T) -> Result<Buffer, NpyError> {
        let count = self.count(size_of::<S>())?;
        let reader = S::reader(&self.dtype)
            .map_err(|_| NpyError::Type { descr: visible(self.header.descr).into_owned() })?;
        let mut data = self.data;
        let mut samples = Vec::with_capacity(count);
        for _ in 0..count {
            let sample = reader.read_one(&mut data).map_err(NpyError::Sample)?;
            samples.push(sample_of(sample));
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
