//! The common part of all decoders: the format of a file, its limits, and the decoded form.

use warploom_lang::files::PICTURE;

use super::{PictureError, bmp, png, pnm};
#[cfg(feature = "pictures")]
use super::{jpeg, tiff, webp};

/// The memory that a decoder may use in addition to the image, in bytes.
pub(super) const DECODER_BYTES: u64 = 16 << 20;

/// A decoded file. The channels of a pixel are adjacent: grey, grey and alpha, colour, or colour and alpha.
pub(super) struct Raw {
    pub(super) width: u32,
    pub(super) height: u32,
    /// The number of channels, from 1 to 4.
    pub(super) channels: u8,
    pub(super) samples: Samples,
}

pub(super) enum Samples {
    U8(Vec<u8>),
    U16(Vec<u16>),
}

/// Decodes a file of any format.
pub(super) fn decode(bytes: &[u8]) -> Result<Raw, PictureError> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => png::decode(bytes),
        [b'P', b'1'..=b'7', ..] => pnm::decode(bytes),
        [b'B', b'M', ..] => bmp::decode(bytes),
        [0xff, 0xd8, 0xff, ..] => jpeg(bytes),
        [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => tiff(bytes),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => webp(bytes),
        _ => Err(PictureError::UnknownFormat),
    }
}

#[cfg(feature = "pictures")]
use {jpeg::decode as jpeg, tiff::decode as tiff, webp::decode as webp};

#[cfg(not(feature = "pictures"))]
fn jpeg(_: &[u8]) -> Result<Raw, PictureError> {
    Err(PictureError::LeftOut { format: "JPEG" })
}

#[cfg(not(feature = "pictures"))]
fn tiff(_: &[u8]) -> Result<Raw, PictureError> {
    Err(PictureError::LeftOut { format: "TIFF" })
}

#[cfg(not(feature = "pictures"))]
fn webp(_: &[u8]) -> Result<Raw, PictureError> {
    Err(PictureError::LeftOut { format: "WebP" })
}

/// Rejects an image without pixels, and one that needs too much memory, before any is allocated. Greyscale with alpha
/// counts as colour with alpha, because it is converted to that.
pub(super) fn check_size(width: u32, height: u32, channels: u8) -> Result<(), PictureError> {
    let channels = if channels == 2 { 4 } else { channels };
    let samples = u64::from(width).saturating_mul(u64::from(height)).saturating_mul(u64::from(channels));
    match samples {
        0 => Err(damaged("it has no pixels")),
        samples if samples > PICTURE.most => Err(PictureError::OverLimit { width, height, channels }),
        _ => Ok(()),
    }
}

/// Rejects an image that a file cannot contain, if its format expands a byte to at most `most` bytes of samples.
pub(super) fn check_possible(
    file: &[u8],
    (width, height): (u32, u32),
    bytes_per_pixel: u32,
    most_of_one: u64,
) -> Result<(), PictureError> {
    let possible = (file.len() as u64).saturating_mul(most_of_one).saturating_add(DECODER_BYTES);
    let needed = u64::from(width).saturating_mul(u64::from(height)).saturating_mul(bytes_per_pixel.into());
    match needed > possible {
        true => Err(PictureError::TooLarge { bytes: file.len() }),
        false => Ok(()),
    }
}

/// The error of a damaged file.
pub(super) fn damaged(what: impl ToString) -> PictureError {
    PictureError::Decode(what.to_string())
}

/// The error of a truncated file.
pub(super) fn cut() -> PictureError {
    damaged("it ends early")
}

pub(super) fn unsupported(what: impl Into<String>) -> PictureError {
    PictureError::Unsupported { what: what.into() }
}
