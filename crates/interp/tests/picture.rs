//! Images in PNG, PPM and PGM files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use warploom_interp::buffer::Buffer;
use warploom_interp::files::{FileError, read_any, write_any};
use warploom_interp::picture::{self, Format, PictureError};
use warploom_lang::{Region, Type};

fn read(bytes: &[u8]) -> Result<Buffer, PictureError> {
    picture::read_from(bytes, "test.png").map_err(|error| {
        assert!(error.to_string().contains("test.png"), "{error}");
        match error {
            FileError::ReadPicture { problem, .. } => problem,
            other => panic!("{other}"),
        }
    })
}

fn colours(channels: i64) -> Buffer {
    let region = Region::of_extents(&[4, 3, channels]);
    Buffer::from_fn(region, |at| (100 * at[2] + 10 * at[1] + at[0]) as u8).unwrap()
}

#[test]
fn a_ppm_file_is_interleaved_and_a_buffer_planar() {
    let region = Region::of_extents(&[2, 1, 3]);
    let planar = Buffer::from_vec(region, vec![1_u8, 2, 11, 12, 21, 22]).unwrap();
    let file = b"P6\n2 1\n255\n\x01\x0b\x15\x02\x0c\x16";
    assert_eq!(read(file).unwrap(), planar);
    assert_eq!(picture::write_to(&planar, Format::Ppm).unwrap(), file);
    let interleaved = planar.reordered(&[2, 0, 1]).unwrap();
    assert_eq!(picture::write_to(&interleaved, Format::Ppm).unwrap(), file);
}

#[test]
fn reads_other_portable_maps() {
    assert_eq!(read(b"P2 2 1 255 7 255").unwrap().as_slice::<u8>().unwrap(), [7, 255]);
    assert_eq!(read(b"P5 1 1 65535 \x01\x02").unwrap().as_slice::<u16>().unwrap(), [0x0102]);
    assert_eq!(read(b"P1 2 1 0 1").unwrap().as_slice::<u8>().unwrap(), [255, 0]);
    assert_eq!(read(b"P5 1 1 15 \x03").unwrap().as_slice::<u8>().unwrap(), [51]);
    let grey_and_opacity =
        b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 2\nMAXVAL 255\nTUPLTYPE GRAYSCALE_ALPHA\nENDHDR\n\x07\x09";
    assert_eq!(read(grey_and_opacity).unwrap().as_slice::<u8>().unwrap(), [7, 7, 7, 9]);
}

#[test]
fn floats_and_truth_values_are_written_with_8_bits() {
    let region = Region::of_extents(&[7, 1]);
    let samples = vec![-1.0_f32, 0.0, 0.499 / 255.0, 0.501 / 255.0, 1.0, 7.0, f32::NAN];
    let floats = Buffer::from_vec(region, samples).unwrap();
    let back = read(&picture::write_to(&floats, Format::Pgm).unwrap()).unwrap();
    assert_eq!(back.as_slice::<u8>().unwrap(), [0, 0, 0, 1, 255, 255, 0]);
    let bits = Buffer::from_vec(Region::of_extents(&[2, 1]), vec![true, false]).unwrap();
    let back = read(&picture::write_to(&bits, Format::Png).unwrap()).unwrap();
    assert_eq!(back.as_slice::<u8>().unwrap(), [255, 0]);
}

#[test]
fn one_channel_is_grey() {
    let back = read(&picture::write_to(&colours(1), Format::Png).unwrap()).unwrap();
    assert_eq!(back.region().extents(), [4, 3]);
    assert_eq!(back.as_slice::<u8>(), colours(1).as_slice::<u8>());
}

#[test]
fn refuses_what_is_no_picture() {
    let zeros = |ty, extents: &[i64]| Buffer::zeros(ty, Region::of_extents(extents)).unwrap();
    for extents in [&[4_i64][..], &[], &[4, 4, 2], &[4, 4, 3, 1], &[0, 4], &[4, 0, 3], &[4, 4, 0]] {
        let refused = picture::write_to(&zeros(Type::U8, extents), Format::Png);
        assert!(matches!(refused, Err(PictureError::Extents { .. })), "{extents:?}");
    }
    for ty in [Type::U32, Type::I8, Type::I16, Type::I32] {
        for format in [Format::Png, Format::Ppm] {
            let refused = picture::write_to(&zeros(ty, &[2, 2, 3]), format);
            assert!(matches!(refused, Err(PictureError::Type { .. })), "{ty}");
        }
        assert!(matches!(picture::convert(&zeros(ty, &[2]), Type::U8), Err(PictureError::Type { .. })));
        assert!(matches!(picture::convert(&colours(3), ty), Err(PictureError::Type { .. })));
    }
    for (channels, format) in [(1, Format::Ppm), (4, Format::Ppm), (3, Format::Pgm), (4, Format::Pgm)] {
        let refused = picture::write_to(&colours(channels), format);
        assert!(matches!(refused, Err(PictureError::Channels { .. })));
    }
}

#[test]
fn refuses_files_that_are_no_picture() {
    assert!(matches!(read(b""), Err(PictureError::UnknownFormat)));
    assert!(matches!(read(b"GIF89a, say"), Err(PictureError::UnknownFormat)));
    assert!(matches!(read(b"P6 99999 99999 255 x"), Err(PictureError::TooLarge { bytes: 20 })));
    assert!(matches!(
        read(b"P6 4294967295 4294967295 65535 x"),
        Err(PictureError::Decode(_) | PictureError::TooLarge { .. })
    ));
    let mut png = picture::write_to(&colours(3), Format::Png).unwrap();
    let whole = png.clone();
    for length in 0..whole.len() - 12 {
        assert!(read(&whole[..length]).is_err(), "{length}");
    }
    png[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0, 0, 0xff, 0xff]);
    assert!(read(&png).is_err());
}

#[test]
fn files_by_extension() {
    let folder = tempfile::tempdir().unwrap();
    let grey = Buffer::from_fn(Region::of_extents(&[5, 4]), |at| (1000 * at[0] + at[1]) as u16).unwrap();
    for (name, buffer) in [("a.png", &colours(4)), ("b.PPM", &colours(3)), ("c.pgm", &grey), ("d.png", &grey)]
    {
        let path = folder.path().join(name);
        write_any(&path, buffer).unwrap();
        assert_eq!(&read_any(&path).unwrap(), buffer);
    }
    let refused = write_any(folder.path().join("d.pgm"), &colours(3)).unwrap_err().to_string();
    assert!(refused.contains("d.pgm") && refused.contains("write a .png"), "{refused}");
    assert!(!folder.path().join("d.pgm").exists());
}

#[test]
fn conversion_is_exact_where_it_can_be() {
    let ramp = Buffer::from_fn(Region::of_extents(&[256]), |at| at[0] as u8).unwrap();
    let wide = picture::convert(&ramp, Type::U16).unwrap();
    assert!(wide.as_slice::<u16>().unwrap().iter().enumerate().all(|(at, &s)| usize::from(s) == 257 * at));
    let floats = picture::convert(&ramp, Type::F32).unwrap();
    assert!(floats.as_slice::<f32>().unwrap().iter().enumerate().all(|(at, &s)| s == at as f32 / 255.0));
    assert_eq!(picture::convert(&wide, Type::U8).unwrap(), ramp);
    assert_eq!(picture::convert(&floats, Type::U8).unwrap(), ramp);
    let every = Buffer::from_fn(Region::of_extents(&[65536]), |at| at[0] as u16).unwrap();
    let floats = picture::convert(&every, Type::F32).unwrap();
    assert_eq!(picture::convert(&floats, Type::U16).unwrap(), every);
}

fn pictures() -> impl Strategy<Value = (Buffer, Format)> {
    let channels = prop::sample::select(&[0_i64, 3, 4][..]);
    (1_i64..6, 1_i64..6, channels, any::<bool>(), any::<bool>(), any::<u64>()).prop_map(
        |(width, height, channels, wide, png, seed)| {
            let extents = if channels == 0 { vec![width, height] } else { vec![width, height, channels] };
            let region = Region::of_extents(&extents);
            let mut state = seed;
            let mut sample = move |_: &[i64]| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 48) as u16
            };
            let buffer = if wide {
                Buffer::from_fn(region, sample)
            } else {
                Buffer::from_fn(region, |at| sample(at) as u8)
            };
            let format = match (png, channels) {
                (false, 0) => Format::Pgm,
                (false, 3) => Format::Ppm,
                _ => Format::Png,
            };
            (buffer.unwrap(), format)
        },
    )
}

proptest! {
    #[test]
    fn round_trip((buffer, format) in pictures(), planar in any::<bool>()) {
        let mut order = buffer.order().to_vec();
        if !planar {
            order.reverse();
        }
        let bytes = picture::write_to(&buffer.reordered(&order).unwrap(), format).unwrap();
        prop_assert_eq!(read(&bytes).unwrap(), buffer);
    }

    #[test]
    fn damaged_files_are_survived(
        (buffer, format) in pictures(),
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = picture::write_to(&buffer, format).unwrap();
        for (place, byte) in places {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let _ = read(&bytes);
    }

    #[test]
    fn random_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..100), kind in b'1'..=b'7') {
        let _ = read(&bytes);
        let _ = read(&[&[b'P', kind, b'\n'], &bytes[..]].concat());
        let _ = read(&[&b"\x89PNG\r\n\x1a\n"[..], &bytes].concat());
    }
}

/// A PNG of black pixels with a one-bit palette. Rows of zeros compress to a small fraction of
/// their size.
fn black_palette_png(width: u32, height: u32) -> Vec<u8> {
    let row = 1 + width.div_ceil(8);
    let zeros = u64::from(row) * u64::from(height);
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[1, 3, 0, 0, 0]].concat();
    let chunks: [(&[u8; 4], Vec<u8>); 4] =
        [(b"IHDR", header), (b"PLTE", vec![0; 6]), (b"IDAT", deflated_zeros(zeros)), (b"IEND", Vec::new())];
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    for (name, data) in chunks {
        let content = [name.as_slice(), &data].concat();
        file.extend((data.len() as u32).to_be_bytes());
        file.extend(&content);
        file.extend(crc32(&content).to_be_bytes());
    }
    file
}

/// A zlib stream of zeros: one literal zero, then repeats of 258 bytes, with the fixed Huffman
/// code.
fn deflated_zeros(count: u64) -> Vec<u8> {
    let mut bits: Vec<u8> = vec![1, 1, 0];
    let code = |bits: &mut Vec<u8>, value: u32, length: u32| {
        bits.extend((0..length).rev().map(|bit| (value >> bit & 1) as u8));
    };
    let (repeated, alone) = ((count - 1) / 258, 1 + (count - 1) % 258);
    (0..alone).for_each(|_| code(&mut bits, 0b0011_0000, 8));
    (0..repeated).for_each(|_| code(&mut bits, 0b1100_0101 << 5, 13));
    code(&mut bits, 0, 7);
    let bytes = bits.chunks(8).map(|byte| byte.iter().rev().fold(0, |value, bit| value << 1 | bit));
    let adler = ((count % 65521) as u32) << 16 | 1;
    [0x78, 1].into_iter().chain(bytes).chain(adler.to_be_bytes()).collect()
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[test]
fn a_small_file_of_a_huge_picture_is_refused() {
    let small = read(&black_palette_png(300, 200)).unwrap();
    assert_eq!(small.region().extents(), [300, 200, 3]);
    assert!(small.as_slice::<u8>().unwrap().iter().all(|sample| *sample == 0));
    let file = black_palette_png(30000, 30000);
    assert!(file.len() < 1 << 20, "{} bytes", file.len());
    assert_eq!(
        read(&file).unwrap_err().to_string(),
        "its 30000 x 30000 pixels with 3 channels exceed 134217728 samples, the limit for a picture; \
         make it smaller, or save it as a .npy file"
    );
    let bitmap = [b"P4 12000 12000\n".to_vec(), vec![0; 18_000_000]].concat();
    assert!(matches!(read(&bitmap), Err(PictureError::OverLimit { channels: 1, .. })));
}
