//! Images in files. PNG and portable pixmaps are read and written; BMP, and with the feature
//! `pictures` JPEG, TIFF and WebP, are read.
//!
//! A greyscale image is a buffer `(x, y)`; a colour image is `(x, y, c)` with three or four
//! channels (the fourth is alpha). Samples range from 0 to 255 in `u8`, to 65535 in `u16` and to 1
//! in `f32`; `bool` is black or white. Samples are those of the file: colour profiles and the
//! orientation of cameras are ignored.

mod bmp;
mod channels;
mod decode;
#[cfg(feature = "pictures")]
mod jpeg;
mod png;
mod pnm;
#[cfg(feature = "pictures")]
mod tiff;
#[cfg(feature = "pictures")]
mod webp;

use std::fs;
use std::path::Path;

use thiserror::Error;
use warploom_lang::files::{PICTURE, PICTURE_FILE};
use warploom_lang::scalar::CastFrom;
use warploom_lang::{Region, Type, bf16, f16};

use crate::buffer::{Buffer, BufferError, Data, Element};
use crate::files::{self, FileError};
use decode::{Raw, Samples, decode};

pub use channels::{Loss, with_channels};

/// The extensions of files that [`read`] may understand; the content determines the format.
pub(crate) const EXTENSIONS: [&str; 12] =
    ["png", "ppm", "pgm", "pbm", "pnm", "pam", "bmp", "jpg", "jpeg", "tif", "tiff", "webp"];

/// The file formats that an image can be written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Portable Network Graphics: greyscale, colour, or colour with alpha.
    Png,
    /// Portable pixmap: colour only.
    Ppm,
    /// Portable graymap: greyscale only.
    Pgm,
}

impl Format {
    /// The format for a file's extension; `None` if the extension is unknown.
    pub fn of(path: &Path) -> Option<Format> {
        match files::extension(path).as_str() {
            "png" => Some(Format::Png),
            "ppm" => Some(Format::Ppm),
            "pgm" => Some(Format::Pgm),
            _ => None,
        }
    }
}

/// Why a file or buffer is not a usable image.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PictureError {
    /// The file has no known image signature.
    #[error("it is none of PNG, PNM, BMP, JPEG, TIFF and WebP; convert it to one of them")]
    UnknownFormat,
    /// The file has a format that this program was built without.
    #[error(
        "it is {format}, which this program was built without (the feature `pictures`); convert it to PNG or BMP"
    )]
    LeftOut {
        /// The name of the format.
        format: &'static str,
    },
    /// A variant of the format that is not read.
    #[error("{what} is not supported; save it as grey or RGB with 8 or 16 bits per channel")]
    Unsupported {
        /// The name of the variant.
        what: String,
    },
    /// The file is corrupt.
    #[error("{0}; copy or save it again")]
    Decode(String),
    /// A conversion of channels would lose something.
    #[error("a conversion to {channels} would lose {lost}")]
    Lossy {
        /// The number of channels asked for, as in `1 channel`.
        channels: &'static str,
        /// The part that would be lost.
        lost: Loss,
    },
    /// The image exceeds the size limit.
    #[error(
        "its {width} x {height} pixels with {channels} channels exceed {PICTURE}, the limit for a picture; \
         make it smaller, or save it as a .npy file"
    )]
    OverLimit {
        /// The width in pixels.
        width: u32,
        /// The height in pixels.
        height: u32,
        /// The number of channels after decoding.
        channels: u8,
    },
    /// The header claims a larger image than the file can contain.
    #[error("its header claims a larger picture than its {bytes} bytes can hold; copy or save it again")]
    TooLarge {
        /// The size of the file in bytes.
        bytes: usize,
    },
    /// The image could not be encoded.
    #[error("{0}")]
    Encode(String),
    /// The buffer's extents are not those of an image.
    #[error(
        "a picture has extents (x, y), or (x, y, c) with 1, 3 or 4 channels, and at least one pixel, but the \
         buffer has {extents:?}"
    )]
    Extents {
        /// The extents of the buffer.
        extents: Vec<i64>,
    },
    /// The format cannot hold this number of channels.
    #[error("a .ppm file holds 3 channels and a .pgm file 1, not {channels}; write a .png file")]
    Channels {
        /// The number of channels of the buffer.
        channels: usize,
    },
    /// The sample type has no defined black and white level.
    #[error("samples of type {ty} are not a picture; cast them to bool, u8, u16 or f32")]
    Type {
        /// The type of the samples.
        ty: Type,
    },
    /// The image does not fit in memory.
    #[error(transparent)]
    Buffer(#[from] BufferError),
}

/// Reads an image. The content determines the format; of a file with several pictures, the first
/// is read.
///
/// Samples are `u8` or `u16`, as in the file. Greyscale with alpha becomes four channels.
pub fn read(path: impl AsRef<Path>) -> Result<Buffer, FileError> {
    let path = path.as_ref();
    read_from(&files::load(path, PICTURE_FILE)?, &path.display().to_string())
}

/// Reads the content of an image file. `name` identifies the file in errors.
pub fn read_from(bytes: &[u8], name: &str) -> Result<Buffer, FileError> {
    let buffer = decode(bytes).and_then(to_buffer);
    buffer.map_err(|problem| FileError::ReadPicture { name: name.to_owned(), problem })
}

/// Writes a PNG, PPM or PGM file. The extension determines the format.
///
/// `f32` and `bool` samples are written with 8 bits; [`convert`] them to `u16` first for 16 bits.
pub fn write(path: impl AsRef<Path>, buffer: &Buffer) -> Result<(), FileError> {
    let path = path.as_ref();
    let name = || path.display().to_string();
    let format = Format::of(path).ok_or_else(|| files::unknown_extension(path))?;
    let bytes =
        write_to(buffer, format).map_err(|problem| FileError::WritePicture { name: name(), problem })?;
    fs::write(path, bytes).map_err(|error| FileError::Write { name: name(), error })
}

/// Encodes an image as the content of a file.
pub fn write_to(buffer: &Buffer, format: Format) -> Result<Vec<u8>, PictureError> {
    let (width, height, channels) = size(&buffer.region().extents())?;
    // In a file, the channel is the fastest dimension.
    let order: &[usize] = if buffer.region().dimensions() == 3 { &[2, 0, 1] } else { &[0, 1] };
    let samples = match buffer.ty() {
        ty if ty == Type::Bool || ty.is_float() => convert(buffer, Type::U8)?.reordered(order)?,
        _ => buffer.reordered(order)?,
    };
    match (format, channels) {
        (Format::Png, _) => png::encode(&samples, width, height, channels),
        (Format::Ppm, 3) => pnm::encode(&samples, "P6", width, height),
        (Format::Pgm, 1) => pnm::encode(&samples, "P5", width, height),
        _ => Err(PictureError::Channels { channels }),
    }
}

/// Converts samples to another type, so that they show the same image: 0 to 255 in `u8`, to 65535
/// in `u16`, to 1 in `f32`.
///
/// Integers are clamped to the scale and rounded to the nearest step; `bool` is true from the
/// middle of the scale on.
///
/// ```
/// use warploom_interp::{buffer::Buffer, picture};
/// use warploom_lang::{Region, Type};
///
/// let bytes = Buffer::from_vec(Region::of_extents(&[3]), vec![0_u8, 51, 255])?;
/// let floats = picture::convert(&bytes, Type::F32)?;
/// assert_eq!(floats.as_slice(), Some(&[0.0_f32, 0.2, 1.0][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn convert(buffer: &Buffer, ty: Type) -> Result<Buffer, PictureError> {
    match buffer.data() {
        Data::Bool(samples) => rescale(samples, ty, buffer),
        Data::U8(samples) => rescale(samples, ty, buffer),
        Data::U16(samples) => rescale(samples, ty, buffer),
        Data::F32(samples) => rescale(samples, ty, buffer),
        Data::F16(samples) => rescale(samples, ty, buffer),
        Data::BF16(samples) => rescale(samples, ty, buffer),
        Data::F64(samples) => rescale(samples, ty, buffer),
        _ => Err(PictureError::Type { ty: buffer.ty() }),
    }
}

fn rescale<S: Level>(samples: &[S], ty: Type, like: &Buffer) -> Result<Buffer, PictureError> {
    match ty {
        Type::Bool => rescale_to::<S, bool>(samples, like),
        Type::U8 => rescale_to::<S, u8>(samples, like),
        Type::U16 => rescale_to::<S, u16>(samples, like),
        Type::F32 => rescale_to::<S, f32>(samples, like),
        Type::F16 => rescale_to::<S, f16>(samples, like),
        Type::BF16 => rescale_to::<S, bf16>(samples, like),
        Type::F64 => rescale_to::<S, f64>(samples, like),
        _ => Err(PictureError::Type { ty }),
    }
}

fn rescale_to<S: Level, T: Level>(samples: &[S], like: &Buffer) -> Result<Buffer, PictureError> {
    let samples: Vec<T> = samples.iter().map(|sample| T::of_level(sample.level())).collect();
    Ok(Buffer::from_vec_in_order(like.region().clone(), like.order(), samples)?)
}

/// A sample of a picture: 0 is black, 1 is white.
trait Level: Element {
    fn level(self) -> f64;
    fn of_level(level: f64) -> Self;
}

impl Level for bool {
    fn level(self) -> f64 {
        f64::from(u8::from(self))
    }

    fn of_level(level: f64) -> bool {
        level >= 0.5
    }
}

macro_rules! float_levels {
    ($($t:ident)*) => {$(
        impl Level for $t {
            fn level(self) -> f64 {
                f64::cast_from(self)
            }

            fn of_level(level: f64) -> $t {
                $t::cast_from(level)
            }
        }
    )*};
}
float_levels! { f32 f64 f16 bf16 }

macro_rules! integer_levels {
    ($($t:ident)*) => {$(
        impl Level for $t {
            fn level(self) -> f64 {
                f64::from(self) / f64::from($t::MAX)
            }

            fn of_level(level: f64) -> $t {
                // The cast clamps, and maps NaN to 0.
                (level * f64::from($t::MAX)).round() as $t
            }
        }
    )*};
}
integer_levels! { u8 u16 }

/// Width, height and number of channels of an image with these extents.
fn size(extents: &[i64]) -> Result<(u32, u32, usize), PictureError> {
    let no_picture = || PictureError::Extents { extents: extents.to_vec() };
    let (width, height, channels) = match *extents {
        [width, height] => (width, height, 1),
        [width, height, channels @ (1 | 3 | 4)] => (width, height, channels as usize),
        _ => return Err(no_picture()),
    };
    match (u32::try_from(width), u32::try_from(height)) {
        (Ok(width @ 1..), Ok(height @ 1..)) => Ok((width, height, channels)),
        _ => Err(no_picture()),
    }
}

/// The samples of a decoded file as a buffer. Greyscale with alpha becomes colour with alpha.
fn to_buffer(raw: Raw) -> Result<Buffer, PictureError> {
    let (width, height) = (i64::from(raw.width), i64::from(raw.height));
    match raw.samples {
        Samples::U8(samples) => from_pixels(width, height, raw.channels, samples),
        Samples::U16(samples) => from_pixels(width, height, raw.channels, samples),
    }
}

fn from_pixels<T: Element>(
    width: i64,
    height: i64,
    channels: u8,
    samples: Vec<T>,
) -> Result<Buffer, PictureError> {
    let (channels, samples) = match channels {
        1 => return Ok(Buffer::from_vec(Region::of_extents(&[width, height]), samples)?),
        2 => {
            (4, samples.chunks_exact(2).flat_map(|pixel| [pixel[0], pixel[0], pixel[0], pixel[1]]).collect())
        }
        channels => (i64::from(channels), samples),
    };
    let region = Region::of_extents(&[width, height, channels]);
    Ok(Buffer::from_vec_in_order(region, &[2, 0, 1], samples)?.reordered(&[0, 1, 2])?)
}

fn bytes_of(samples: &Buffer, of_u16: fn(u16) -> [u8; 2]) -> Result<Vec<u8>, PictureError> {
    match samples.data() {
        Data::U8(samples) => Ok(samples.clone()),
        Data::U16(samples) => Ok(samples.iter().flat_map(|&sample| of_u16(sample)).collect()),
        _ => Err(PictureError::Type { ty: samples.ty() }),
    }
}
