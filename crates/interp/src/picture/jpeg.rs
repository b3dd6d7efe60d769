//! JPEG.

use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::PictureError;
use super::decode::{Raw, Samples, check_possible, check_size, damaged, unsupported};

/// The first scan has at least a bit for each block of 64 samples, and chroma has down to a sixteenth of the resolution
/// of luma.
const MOST_OF_ONE: u64 = 8 * 64 * 3;

pub(super) fn decode(bytes: &[u8]) -> Result<Raw, PictureError> {
    let failed = |error: DecodeErrors| damaged(format!("{error:?}").trim_matches('"').trim());
    // A file that ends early is refused instead of being filled with grey.
    let options = DecoderOptions::default().set_strict_mode(true);
    let options = options.set_max_width(u16::MAX.into()).set_max_height(u16::MAX.into());
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(failed)?;
    let info = decoder.info().ok_or_else(|| damaged("it has no header"))?;
    let (channels, space) = match decoder.input_colorspace() {
        Some(ColorSpace::Luma) => (1, ColorSpace::Luma),
        Some(ColorSpace::YCbCr | ColorSpace::RGB) => (3, ColorSpace::RGB),
        other => {
            return Err(unsupported(format!("{other:?} in a JPEG").replace("Some(", "").replace(')', "")));
        }
    };
    let (width, height) = (u32::from(info.width), u32::from(info.height));
    check_possible(bytes, (width, height), channels.into(), MOST_OF_ONE)?;
    check_size(width, height, channels)?;
    decoder.set_options(options.jpeg_set_out_colorspace(space));
    let mut pixels = vec![0; width as usize * height as usize * usize::from(channels)];
    decoder.decode_into(&mut pixels).map_err(failed)?;
    Ok(Raw { width, height, channels, samples: Samples::U8(pixels) })
}
