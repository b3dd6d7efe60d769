//! TIFF: grey and RGB, with or without alpha, with 8 or 16 bits.

use std::io::Cursor;

use tiff::decoder::{Decoder, DecodingResult, Limits};
use tiff::tags::Tag;
use tiff::{ColorType, TiffError};
use warploom_lang::files::PICTURE;

use super::PictureError;
use super::decode::{Raw, Samples, check_possible, check_size, damaged, unsupported};

/// LZW expands a code of at least 9 bits to at most 4096 bytes.
const MOST_OF_ONE: u64 = 4096;

/// Extra samples that are alpha, in the two ways of storing it.
const ALPHA: [u32; 2] = [1, 2];

pub(super) fn decode(bytes: &[u8]) -> Result<Raw, PictureError> {
    let failed = |error| match error {
        TiffError::LimitsExceeded => PictureError::TooLarge { bytes: bytes.len() },
        TiffError::UnsupportedError(what) => unsupported(lacking(&what.to_string())),
        error => damaged(error),
    };
    let mut limits = Limits::default();
    limits.decoding_buffer_size = 2 * PICTURE.most as usize;
    let mut decoder = Decoder::new(Cursor::new(bytes)).map_err(failed)?.with_limits(limits);
    let (width, height) = decoder.dimensions().map_err(failed)?;
    let color = decoder.colortype().map_err(failed)?;
    let extra = decoder.find_tag(Tag::ExtraSamples).map_err(failed)?;
    let extra = extra.map(|extra| extra.into_u32_vec()).transpose().map_err(failed)?.unwrap_or_default();
    let (channels, bits) = match color {
        ColorType::Gray(bits) => (1, bits),
        ColorType::GrayA(bits) => (2, bits),
        ColorType::Multiband { bit_depth, num_samples: 2 } if matches!(*extra, [kind] if ALPHA.contains(&kind)) => {
            (2, bit_depth)
        }
        ColorType::RGB(bits) => (3, bits),
        ColorType::RGBA(bits) => (4, bits),
        other => return Err(unsupported(format!("{other:?} in a TIFF"))),
    };
    check_possible(bytes, (width, height), u32::from(channels) * u32::from(bits.div_ceil(8)), MOST_OF_ONE)?;
    check_size(width, height, channels)?;
    let samples = match (decoder.read_image().map_err(failed)?, bits) {
        (DecodingResult::U8(samples), 8) => Samples::U8(samples),
        (DecodingResult::U16(samples), 16) => Samples::U16(samples),
        _ => {
            return Err(unsupported(format!(
                "a TIFF with {bits} bits per channel, or of numbers that are no integers"
            )));
        }
    };
    let found = match &samples {
        Samples::U8(samples) => samples.len(),
        Samples::U16(samples) => samples.len(),
    };
    match found == width as usize * height as usize * usize::from(channels) {
        true => Ok(Raw { width, height, channels, samples }),
        false => Err(unsupported("a TIFF with a plane for each channel")),
    }
}

/// The unsupported part of a TIFF. The decoder reports both, and so does the error.
fn lacking(said: &str) -> String {
    let said = said.trim_end_matches('.');
    let ends = [" is unsupported", " not supported"];
    let what = ends.iter().find_map(|end| said.strip_suffix(end)).unwrap_or(said);
    format!("{} in a TIFF", what.strip_prefix("unsupported ").unwrap_or(what))
}

#[cfg(test)]
mod tests {
    use tiff::TiffUnsupportedError::{
        UnknownCompressionMethod, UnsupportedBitsPerChannel, UnsupportedDataType, UnsupportedSampleDepth,
    };

    use super::*;

    #[test]
    fn what_is_not_supported_is_said_once() {
        let sentences = [
            UnsupportedSampleDepth(7),
            UnsupportedBitsPerChannel(3),
            UnsupportedDataType,
            UnknownCompressionMethod,
        ]
        .map(|error| unsupported(lacking(&error.to_string())).to_string());
        let what = ["7 samples per pixel", "3 bits per channel", "data type", "unknown compression method"];
        for (sentence, what) in sentences.iter().zip(what) {
            let start = format!("{what} in a TIFF is not supported; ");
            assert!(sentence.starts_with(&start), "{sentence}");
        }
    }
}
