//! Portable Network Graphics.

use std::io::Cursor;

use png::{BitDepth, ColorType, Decoder, DecodingError, Encoder, Limits, Transformations};
use warploom_lang::Type;
use warploom_lang::files::PICTURE;

use super::decode::{DECODER_BYTES, Raw, Samples, check_possible, check_size, damaged, unsupported};
use super::{PictureError, bytes_of};
use crate::buffer::Buffer;

/// Deflate expands a byte to at most 1032 bytes, and a palette expands each bit to four bytes.
const MOST_OF_ONE: u64 = 1032 * 8 * 4;

/// The memory of the largest image, at two bytes per sample.
const MOST_BYTES: u64 = 2 * PICTURE.most;

pub(super) fn decode(bytes: &[u8]) -> Result<Raw, PictureError> {
    let failed = |error| match error {
        DecodingError::LimitsExceeded => PictureError::TooLarge { bytes: bytes.len() },
        error => damaged(error),
    };
    let limits = Limits { bytes: (MOST_BYTES + DECODER_BYTES) as usize };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    // Palettes become colours, fewer than 8 bits 8 bits, and a transparent colour alpha.
    decoder.set_transformations(Transformations::EXPAND);
    let info = decoder.read_header_info().map_err(failed)?;
    let (width, height) = info.size();
    // Nothing is allocated for the pixels before this.
    let channels = if info.color_type == ColorType::Indexed { 3 } else { info.color_type.samples() as u8 };
    check_possible(bytes, (width, height), 1, MOST_OF_ONE)?;
    check_size(width, height, channels)?;
    let mut reader = decoder.read_info().map_err(failed)?;
    let (color, depth) = reader.output_color_type();
    let wide = match depth {
        BitDepth::Eight => false,
        BitDepth::Sixteen => true,
        depth => return Err(unsupported(format!("a depth of {} bits", depth as u8))),
    };
    let channels = color.samples() as u8;
    check_possible(bytes, (width, height), u32::from(channels) * (1 + u32::from(wide)), MOST_OF_ONE)?;
    check_size(width, height, channels)?;
    let size = reader.output_buffer_size().ok_or(PictureError::TooLarge { bytes: bytes.len() })?;
    let mut pixels = vec![0; size];
    let frame = reader.next_frame(&mut pixels).map_err(failed)?;
    pixels.truncate(frame.buffer_size());
    let samples = match wide {
        false => Samples::U8(pixels),
        true => {
            Samples::U16(pixels.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect())
        }
    };
    Ok(Raw { width, height, channels, samples })
}

pub(super) fn encode(
    samples: &Buffer,
    width: u32,
    height: u32,
    channels: usize,
) -> Result<Vec<u8>, PictureError> {
    let failed = |error: png::EncodingError| PictureError::Encode(error.to_string());
    let bytes = bytes_of(samples, u16::to_be_bytes)?;
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, width, height);
    encoder.set_depth(if samples.ty() == Type::U8 { BitDepth::Eight } else { BitDepth::Sixteen });
    encoder.set_color(match channels {
        1 => ColorType::Grayscale,
        3 => ColorType::Rgb,
        _ => ColorType::Rgba,
    });
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&bytes).and_then(|()| writer.finish()).map_err(failed)?;
    Ok(file)
}
