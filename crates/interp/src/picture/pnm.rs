//! Portable pixmaps: PBM, PGM, PPM and PAM.

use warploom_lang::Type;

use super::decode::{Raw, Samples, check_possible, check_size, cut, damaged, unsupported};
use super::{PictureError, bytes_of};
use crate::buffer::Buffer;

/// A bitmap has one sample per bit.
const MOST_OF_ONE: u64 = 8;

/// The start of a file.
struct Header {
    width: u32,
    height: u32,
    channels: u8,
    /// The value of white.
    white: u32,
}

/// The rest of a file.
struct Rest<'a>(&'a [u8]);

pub(super) fn decode(bytes: &[u8]) -> Result<Raw, PictureError> {
    let (kind, mut rest) = (bytes[1], Rest(&bytes[2..]));
    let header = match kind {
        b'7' => rest.named_header()?,
        _ => rest.header(kind)?,
    };
    let Header { width, height, channels, white } = header;
    if !(1..=65535).contains(&white) {
        return Err(damaged(format!("its largest sample is {white}, not from 1 to 65535")));
    }
    let size = 1 + u32::from(white > 255);
    check_possible(bytes, (width, height), u32::from(channels) * size, MOST_OF_ONE)?;
    check_size(width, height, channels)?;
    let count = width as usize * height as usize * usize::from(channels);
    let samples = match kind {
        b'1' => rest.digits(count)?,
        b'2' | b'3' => rest.numbers(count, white)?,
        b'4' => rest.bits(width as usize, height as usize)?,
        _ if white > 255 => Samples::U16(rest.take(2 * count)?.chunks_exact(2).map(wide).collect()),
        _ => Samples::U8(rest.take(count)?.to_vec()),
    };
    Ok(Raw { width, height, channels, samples: scaled(samples, white)? })
}

fn wide(pair: &[u8]) -> u16 {
    u16::from_be_bytes([pair[0], pair[1]])
}

/// Scales samples from `0..=white` to the range of their type.
fn scaled(samples: Samples, white: u32) -> Result<Samples, PictureError> {
    let too_large = || damaged(format!("a sample is larger than {white}, which is white"));
    let scale = |sample: u32, most: u32| (sample * most + white / 2) / white;
    Ok(match samples {
        Samples::U8(samples) if white < 255 => {
            match samples.iter().any(|sample| u32::from(*sample) > white) {
                true => return Err(too_large()),
                false => {
                    Samples::U8(samples.into_iter().map(|sample| scale(sample.into(), 255) as u8).collect())
                }
            }
        }
        Samples::U16(samples) if white < 65535 => {
            match samples.iter().any(|sample| u32::from(*sample) > white) {
                true => return Err(too_large()),
                false => Samples::U16(
                    samples.into_iter().map(|sample| scale(sample.into(), 65535) as u16).collect(),
                ),
            }
        }
        samples => samples,
    })
}

impl<'a> Rest<'a> {
    /// The header of the first six kinds.
    fn header(&mut self, kind: u8) -> Result<Header, PictureError> {
        let (width, height) = (self.number()?, self.number()?);
        let white = if matches!(kind, b'1' | b'4') { 1 } else { self.number()? };
        // One blank ends the header.
        if !matches!(kind, b'1'..=b'3') {
            self.take(1)?;
        }
        let channels = if matches!(kind, b'3' | b'6') { 3 } else { 1 };
        // In a bitmap, 1 is black.
        Ok(Header { width, height, channels, white })
    }

    /// The header of PAM: lines of a name and a value.
    fn named_header(&mut self) -> Result<Header, PictureError> {
        let (mut width, mut height, mut depth, mut white) = (None, None, None, None);
        let mut kind = None;
        self.line()?;
        loop {
            let line = self.line()?;
            let (name, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let number = || value.trim().parse::<u32>().map_err(|_| damaged(format!("{name} is no number")));
            match name {
                "" => {}
                "WIDTH" => width = Some(number()?),
                "HEIGHT" => height = Some(number()?),
                "DEPTH" => depth = Some(number()?),
                "MAXVAL" => white = Some(number()?),
                "TUPLTYPE" => kind = Some(value.trim().to_owned()),
                "ENDHDR" => break,
                name if name.starts_with('#') => {}
                name => return Err(damaged(format!("`{name}` is not a line of a PAM header"))),
            }
        }
        let (Some(width), Some(height), Some(depth), Some(white)) = (width, height, depth, white) else {
            return Err(damaged("its header lacks a line"));
        };
        let expected = match kind.as_deref() {
            Some("BLACKANDWHITE" | "GRAYSCALE") => 1,
            Some("BLACKANDWHITE_ALPHA" | "GRAYSCALE_ALPHA") => 2,
            Some("RGB") => 3,
            Some("RGB_ALPHA") => 4,
            None => depth,
            Some(kind) => return Err(unsupported(format!("the kind of pixel {kind}"))),
        };
        match depth {
            1..=4 if depth == expected => Ok(Header { width, height, channels: depth as u8, white }),
            _ => Err(damaged(format!("pixels of {depth} channels are not what its header says"))),
        }
    }

    fn line(&mut self) -> Result<&'a str, PictureError> {
        let end = self.0.iter().position(|byte| *byte == b'\n').ok_or_else(cut)?;
        let line = std::str::from_utf8(&self.0[..end]).map_err(|_| damaged("its header is not text"))?;
        self.0 = &self.0[end + 1..];
        Ok(line.trim())
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], PictureError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(cut)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Skips blanks, and comments from `#` to the end of the line.
    fn skip_blanks(&mut self) {
        while let [first, rest @ ..] = self.0 {
            match first {
                b'#' => {
                    let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                    self.0 = end.map_or(&[], |end| &rest[end..]);
                }
                byte if byte.is_ascii_whitespace() => self.0 = rest,
                _ => break,
            }
        }
    }

    /// The next number in decimal.
    fn number(&mut self) -> Result<u32, PictureError> {
        self.skip_blanks();
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = self.take(digits)?;
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        number.ok_or_else(|| if self.0.is_empty() { cut() } else { damaged("a number is expected in it") })
    }

    fn numbers(&mut self, count: usize, white: u32) -> Result<Samples, PictureError> {
        let mut samples = Vec::with_capacity(count);
        for _ in 0..count {
            samples
                .push(u16::try_from(self.number()?).map_err(|_| damaged("a sample is larger than 65535"))?);
        }
        Ok(match white > 255 {
            true => Samples::U16(samples),
            false => {
                let narrow = samples.into_iter().map(u8::try_from).collect::<Result<_, _>>();
                Samples::U8(narrow.map_err(|_| damaged("a sample is larger than what is white"))?)
            }
        })
    }

    /// The pixels of a bitmap as digits, with or without blanks between them.
    fn digits(&mut self, count: usize) -> Result<Samples, PictureError> {
        let mut samples = Vec::with_capacity(count);
        for _ in 0..count {
            self.skip_blanks();
            samples.push(match self.take(1)? {
                b"0" => 1,
                b"1" => 0,
                _ => return Err(damaged("a pixel is neither 0 nor 1")),
            });
        }
        Ok(Samples::U8(samples))
    }

    /// The pixels of a bitmap as bits, in rows of whole bytes.
    fn bits(&mut self, width: usize, height: usize) -> Result<Samples, PictureError> {
        let row = width.div_ceil(8);
        let bytes = self.take(row.checked_mul(height).ok_or_else(cut)?)?;
        let pixels =
            |row: &[u8]| (0..width).map(|x| 1 - (row[x / 8] >> (7 - x % 8) & 1)).collect::<Vec<u8>>();
        Ok(Samples::U8(bytes.chunks_exact(row).flat_map(pixels).collect()))
    }
}

pub(super) fn encode(
    samples: &Buffer,
    magic: &str,
    width: u32,
    height: u32,
) -> Result<Vec<u8>, PictureError> {
    let white = if samples.ty() == Type::U8 { 255 } else { 65535 };
    let mut file = format!("{magic}\n{width} {height}\n{white}\n").into_bytes();
    file.extend(bytes_of(samples, u16::to_be_bytes)?);
    Ok(file)
}
