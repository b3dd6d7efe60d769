//! Windows bitmaps without compression.

use super::PictureError;
use super::decode::{Raw, Samples, check_possible, check_size, cut, damaged, unsupported};

/// A palette expands each bit to three bytes.
const MOST_OF_ONE: u64 = 8 * 3;

/// The offset of the picture's header.
const HEADER: usize = 14;

/// The length of the oldest header, whose sizes have 16 bits.
const OLDEST: usize = 12;

/// The fields of the header.
struct Header {
    width: u32,
    height: u32,
    /// Whether the first row is the uppermost.
    downwards: bool,
    bits: u16,
    /// The offset of the pixels.
    start: usize,
    colours: Colours,
}

enum Colours {
    /// One byte for each channel: blue, green, red, and possibly an unused one.
    Bytes,
    /// Bit masks for red, green, blue and possibly alpha.
    Masks(Vec<u32>),
    /// Red, green and blue of each index; only one of them if all are grey.
    Palette(Vec<Vec<u8>>),
}

pub(super) fn decode(bytes: &[u8]) -> Result<Raw, PictureError> {
    let header = Header::read(bytes)?;
    let Header { width, height, bits, start, .. } = header;
    let channels = header.channels();
    check_possible(bytes, (width, height), channels.into(), MOST_OF_ONE)?;
    check_size(width, height, channels)?;
    // A row is a multiple of four bytes.
    let row = (width as usize * usize::from(bits)).div_ceil(32) * 4;
    let rows = bytes.get(start..).and_then(|pixels| pixels.get(..row * height as usize)).ok_or_else(cut)?;
    let mut samples = Vec::with_capacity(width as usize * height as usize * usize::from(channels));
    for y in 0..height as usize {
        let y = if header.downwards { y } else { height as usize - 1 - y };
        header.add_row(&rows[y * row..][..row], &mut samples)?;
    }
    Ok(Raw { width, height, channels, samples: Samples::U8(samples) })
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, PictureError> {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map(|pair| u16::from_le_bytes(*pair)).ok_or_else(cut)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, PictureError> {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map(|word| u32::from_le_bytes(*word)).ok_or_else(cut)
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Header, PictureError> {
        let start = u32_at(bytes, 10)? as usize;
        let length = u32_at(bytes, HEADER)? as usize;
        if length == OLDEST {
            let [width, height] = [18, 20].map(|at| u16_at(bytes, at));
            let bits = u16_at(bytes, 24)?;
            let colours = Colours::new(bytes, bits, 0, (HEADER + OLDEST, 3, 0))?;
            let (width, height) = (width?.into(), height?.into());
            return Ok(Header { width, height, downwards: false, bits, start, colours });
        }
        if !(40..=1024).contains(&length) {
            return Err(damaged(format!("a header of {length} bytes is not that of a bitmap")));
        }
        let [width, height] = [18, 22].map(|at| u32_at(bytes, at).map(u32::cast_signed));
        let (width, height) = (width?, height?);
        let (bits, compression) = (u16_at(bytes, 28)?, u32_at(bytes, 30)?);
        // In longer headers the masks are part of the header, at the same offset.
        let palette = (HEADER + length, 4, u32_at(bytes, 46)? as usize);
        let colours = Colours::new(bytes, bits, compression, palette)?;
        Ok(Header {
            width: u32::try_from(width).map_err(|_| damaged("its width is negative"))?,
            height: height.unsigned_abs(),
            downwards: height < 0,
            bits,
            start,
            colours: colours.with_alpha(bytes, length)?,
        })
    }

    fn channels(&self) -> u8 {
        match &self.colours {
            Colours::Bytes => 3,
            Colours::Masks(masks) => masks.len() as u8,
            Colours::Palette(palette) => palette.first().map_or(3, |colour| colour.len() as u8),
        }
    }

    fn add_row(&self, row: &[u8], samples: &mut Vec<u8>) -> Result<(), PictureError> {
        let (width, bits) = (self.width as usize, usize::from(self.bits));
        match &self.colours {
            Colours::Bytes => {
                let pixels = row.chunks_exact(bits / 8).take(width);
                samples.extend(pixels.flat_map(|pixel| [pixel[2], pixel[1], pixel[0]]));
            }
            Colours::Masks(masks) => {
                for pixel in row.chunks_exact(bits / 8).take(width) {
                    let pixel = pixel.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
                    samples.extend(masks.iter().map(|mask| masked(pixel, *mask)));
                }
            }
            Colours::Palette(palette) => {
                for x in 0..width {
                    let from_left = x * bits;
                    let index = row[from_left / 8] >> (8 - bits - from_left % 8) & (0xff >> (8 - bits));
                    let colour = palette.get(usize::from(index));
                    samples.extend(colour.ok_or_else(|| damaged("a pixel has a colour beyond the palette"))?);
                }
            }
        }
        Ok(())
    }
}

impl Colours {
    /// `palette` contains the offset of the palette, the bytes of a colour, and the number of colours; 0 stands for the
    /// maximum.
    fn new(
        bytes: &[u8],
        bits: u16,
        compression: u32,
        (start, size, count): (usize, usize, usize),
    ) -> Result<Colours, PictureError> {
        match (compression, bits) {
            (0, 24 | 32) => Ok(Colours::Bytes),
            (0, 16) => Ok(Colours::Masks(vec![0x7c00, 0x03e0, 0x001f])),
            (3 | 6, 16 | 32) => {
                let masks = [54, 58, 62].map(|at| u32_at(bytes, at));
                Ok(Colours::Masks(masks.into_iter().collect::<Result<_, _>>()?))
            }
            (0, 1 | 4 | 8) => {
                let most = 1 << bits;
                let count = if count == 0 { most } else { count.min(most) };
                let colours = bytes.get(start..).and_then(|rest| rest.get(..size * count)).ok_or_else(cut)?;
                let colours = || colours.chunks_exact(size);
                let is_grey = colours().all(|colour| colour[0] == colour[1] && colour[1] == colour[2]);
                let channels = if is_grey { 1 } else { 3 };
                let colour = |colour: &[u8]| colour[..3].iter().rev().take(channels).copied().collect();
                Ok(Colours::Palette(colours().map(colour).collect()))
            }
            (0, bits) => Err(damaged(format!("it has {bits} bits per pixel"))),
            (1 | 2, _) => Err(unsupported("a bitmap with run-length encoding")),
            (other, _) => Err(unsupported(format!("compression {other} of a bitmap"))),
        }
    }

    /// Checks the masks, and adds the alpha mask, which only longer headers have.
    fn with_alpha(mut self, bytes: &[u8], length: usize) -> Result<Colours, PictureError> {
        if let Colours::Masks(masks) = &mut self {
            let alpha = if length >= 56 { u32_at(bytes, 66)? } else { 0 };
            masks.extend((alpha != 0).then_some(alpha));
            for mask in masks {
                let value = *mask >> mask.trailing_zeros().min(31);
                if value == 0 || value > 0xff || value & (value + 1) != 0 {
                    return Err(unsupported(format!("the mask {mask:#x} of a bitmap")));
                }
            }
        }
        Ok(self)
    }
}

/// The bits of a mask, scaled to 8 bits.
fn masked(pixel: u32, mask: u32) -> u8 {
    let shift = mask.trailing_zeros();
    let (value, most) = ((pixel & mask) >> shift, mask >> shift);
    ((value * 255 + most / 2) / most) as u8
}
