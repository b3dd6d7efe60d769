//! Pictures with another number of channels.

use std::fmt;

use warploom_lang::Region;

use super::PictureError;
use crate::buffer::{Buffer, Data, Element};

/// The permitted loss of a conversion of channels; each includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Loss {
    /// Nothing.
    Nothing,
    /// The alpha of pixels that are not opaque. Their colours are kept as stored.
    Alpha,
    /// The colours: only their luma is kept, 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601).
    Colours,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Loss::Nothing => "nothing",
            Loss::Alpha => "the alpha of pixels that are not opaque",
            Loss::Colours => "the colours",
        })
    }
}

/// Parts in a thousand of red, green and blue in luma.
const LUMA: [u64; 3] = [299, 587, 114];

/// Converts a picture of `u8` or `u16` samples to 1, 3 or 4 channels.
///
/// Grey is repeated for each colour, and a new alpha is opaque. Dropping an alpha that is opaque everywhere, or merging
/// colours that are grey everywhere, loses nothing. Any other loss is an error unless `may` allows it.
///
/// ```
/// use warploom_interp::{buffer::Buffer, picture};
/// use warploom_lang::Region;
///
/// let grey = Buffer::from_vec(Region::of_extents(&[2, 1]), vec![7_u8, 9])?;
/// let rgb = picture::with_channels(&grey, 3, picture::Loss::Nothing)?;
/// assert_eq!(rgb.as_slice(), Some(&[7_u8, 9, 7, 9, 7, 9][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn with_channels(picture: &Buffer, channels: usize, may: Loss) -> Result<Buffer, PictureError> {
    match picture.data() {
        Data::U8(samples) => converted(samples, picture, channels, may),
        Data::U16(samples) => converted(samples, picture, channels, may),
        _ => Err(PictureError::Type { ty: picture.ty() }),
    }
}

/// A sample of a picture in a file.
trait Sample: Element + Into<u64> + Eq {
    const WHITE: Self;
    /// From a number of at most [`Sample::WHITE`].
    fn of(number: u64) -> Self;
}

impl Sample for u8 {
    const WHITE: u8 = u8::MAX;

    fn of(number: u64) -> u8 {
        number as u8
    }
}

impl Sample for u16 {
    const WHITE: u16 = u16::MAX;

    fn of(number: u64) -> u16 {
        number as u16
    }
}

fn converted<T: Sample>(
    samples: &[T],
    picture: &Buffer,
    channels: usize,
    may: Loss,
) -> Result<Buffer, PictureError> {
    let (width, height, found) = super::size(&picture.region().extents())?;
    let refused = |lost: Loss| match lost <= may {
        true => Ok(()),
        false => Err(PictureError::Lossy {
            channels: if channels == 1 { "1 channel" } else { "3 channels" },
            lost,
        }),
    };
    // Plane by plane, whatever the order in memory.
    let planar;
    let order: &[usize] = if picture.region().dimensions() == 3 { &[0, 1, 2] } else { &[0, 1] };
    let samples = if picture.order() == order {
        samples
    } else {
        planar = picture.reordered(order)?;
        planar.as_slice::<T>().unwrap_or_default()
    };
    let points = width as usize * height as usize;
    let planes: Vec<&[T]> = samples.chunks_exact(points).collect();
    let (colours, alpha) = planes.split_at(found.min(3));
    if channels < 4 && alpha.iter().any(|plane| plane.iter().any(|sample| *sample != T::WHITE)) {
        refused(Loss::Alpha)?;
    }
    let mut result: Vec<T> = Vec::with_capacity(points * channels);
    match (colours, channels) {
        ([grey], 1) => result.extend(*grey),
        ([red, green, blue], 1) if red == green && green == blue => result.extend(*red),
        ([red, green, blue], 1) => {
            refused(Loss::Colours)?;
            let pixels = red.iter().zip(*green).zip(*blue);
            result.extend(pixels.map(|((red, green), blue)| luma([*red, *green, *blue])));
        }
        ([grey], _) => (0..3).for_each(|_| result.extend(*grey)),
        (colours, _) => colours.iter().for_each(|plane| result.extend(*plane)),
    }
    if channels == 4 {
        match alpha {
            [alpha, ..] => result.extend(*alpha),
            [] => result.extend(std::iter::repeat_n(T::WHITE, points)),
        }
    }
    let (width, height) = (i64::from(width), i64::from(height));
    let extents = [width, height, channels as i64];
    let extents = if channels == 1 { &extents[..2] } else { &extents };
    Ok(Buffer::from_vec(Region::of_extents(extents), result)?)
}

fn luma<T: Sample>(pixel: [T; 3]) -> T {
    let sum: u64 = pixel.into_iter().zip(LUMA).map(|(sample, parts)| sample.into() * parts).sum();
    T::of((sum + 500) / 1000)
}
