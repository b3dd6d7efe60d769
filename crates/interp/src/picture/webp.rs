//! WebP, lossy and lossless.

use std::io::Cursor;

use image_webp::{DecodingError, WebPDecoder};

use super::PictureError;
use super::decode::{DECODER_BYTES, Raw, Samples, check_size, damaged};

pub(super) fn decode(bytes: &[u8]) -> Result<Raw, PictureError> {
    let failed = |error: DecodingError| damaged(error);
    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(failed)?;
    decoder.set_memory_limit(DECODER_BYTES as usize);
    let ((width, height), channels) = (decoder.dimensions(), if decoder.has_alpha() { 4 } else { 3 });
    // A picture of one colour takes no bytes for its pixels, so only the limit of all pictures applies.
    check_size(width, height, channels)?;
    let mut pixels = vec![0; width as usize * height as usize * usize::from(channels)];
    decoder.read_image(&mut pixels).map_err(failed)?;
    Ok(Raw { width, height, channels, samples: Samples::U8(pixels) })
}
