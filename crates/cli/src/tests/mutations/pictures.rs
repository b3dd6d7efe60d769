//! The formats of pictures.

use std::fs;

use warploom::interp::files::FileError;
use warploom::interp::picture::{self, Format as PictureFormat, PictureError};
use warploom::lang::Type;

use super::formats::{Bomb, Format, binary, ramp, repository};

fn read_picture(bytes: &[u8]) -> bool {
    picture::read_from(bytes, "a.png").is_ok_and(|read| picture::convert(&read, Type::F32).is_ok())
}

pub(super) fn png_files() -> Format {
    let file = |extents: &[i64], ty| picture::write_to(&ramp(extents, ty), PictureFormat::Png).unwrap();
    let whole = vec![
        file(&[9, 5], Type::U8),
        file(&[4, 3, 3], Type::U16),
        file(&[16, 2, 4], Type::U8),
        file(&[1, 1], Type::U16),
    ];
    Format { finish: with_png_checksums, ..binary("png", whole, read_picture) }
}

/// Corrects the checksums of all chunks of a PNG file, as far as they can be parsed.
fn with_png_checksums(mut file: Vec<u8>) -> Vec<u8> {
    let mut start = 8;
    while let Some(&length) = file.get(start..).and_then(<[u8]>::first_chunk::<4>) {
        let end = (u32::from_be_bytes(length) as usize).saturating_add(start + 8);
        let Some(content) = file.get(start + 4..end) else { break };
        let sum = !content.iter().fold(!0, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
        });
        let Some(place) = file.get_mut(end..end + 4) else { break };
        place.copy_from_slice(&sum.to_be_bytes());
        start = end + 4;
    }
    file
}

pub(super) fn pnm_files() -> Format {
    let file = |extents: &[i64], format| picture::write_to(&ramp(extents, Type::U16), format).unwrap();
    let mut whole = vec![file(&[9, 5], PictureFormat::Pgm), file(&[4, 3, 3], PictureFormat::Ppm)];
    let others = [
        "P1 2 2 0 1 1 0",
        "P2 2 1 255 7 255",
        "P3 1 2 255 7 255 3 4 5 6",
        "P4 8 2\nab",
        "P7\nWIDTH 1\nHEIGHT 1\nDEPTH 2\nMAXVAL 255\nTUPLTYPE GRAYSCALE_ALPHA\nENDHDR\nab",
    ];
    whole.extend(others.map(|text| text.as_bytes().to_vec()));
    binary("pnm", whole, read_picture)
}

/// Pictures that are not written. A program that was built without their format refuses them all.
pub(super) fn pictures(name: &'static str, files: &[&str]) -> Format {
    let folder = repository("crates/interp/tests/pictures");
    let whole = files.iter().map(|file| fs::read(folder.join(file)).unwrap()).collect();
    let read = |bytes: &[u8]| match picture::read_from(bytes, "a picture") {
        Err(FileError::ReadPicture { problem: PictureError::LeftOut { .. }, .. }) => true,
        _ => read_picture(bytes),
    };
    let bombs: Vec<Bomb> = if name == "webp" { vec![webp_of_one_colour] } else { Vec::new() };
    Format { bombs, ..binary(name, whole, read) }
}

/// A small file whose header claims almost as many pixels as are allowed. Nothing else bounds them, because pixels of one
/// colour take no space.
fn webp_of_one_colour() -> Vec<u8> {
    const SIDE: u32 = 6680;
    let mut file = fs::read(repository("crates/interp/tests/pictures/rgb.webp")).unwrap();
    let size = file.windows(4).position(|name| name == b"VP8L").unwrap() + 9;
    let extents = (SIDE - 1) | (SIDE - 1) << 14;
    file[size..size + 4].copy_from_slice(&extents.to_le_bytes());
    file
}
