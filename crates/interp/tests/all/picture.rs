//! Images in files.

use proptest::prelude::*;
use warploom_interp::buffer::Buffer;
use warploom_interp::files::{FileError, read_any, write_any};
use warploom_interp::picture::{self, Format, Loss, PictureError};
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

/// A file of `tests/pictures`.
fn file(name: &str) -> Vec<u8> {
    std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pictures/").to_owned() + name).unwrap()
}

/// The picture in all files of `tests/pictures`, with grey, red, green, blue and alpha in this order. Pixels of files without
/// colours have the first.
fn painted(channels: &[usize]) -> Buffer {
    let sample = |x: i64, y: i64, channel: usize| {
        [6 * x + 9 * y + 3, 10 * x + 5, 15 * y + 20, 4 * x + 8 * y, 255 - 5 * x - 3 * y][channel] as u8
    };
    let extents = [21, 13, channels.len() as i64];
    let region = Region::of_extents(if channels.len() == 1 { &extents[..2] } else { &extents });
    let channel = |at: &[i64]| at.get(2).map_or(0, |c| *c as usize);
    Buffer::from_fn(region, |at| sample(at[0], at[1], channels[channel(at)])).unwrap()
}

const RGB: &[usize] = &[1, 2, 3];
const RGBA: &[usize] = &[1, 2, 3, 4];
const GREY_AND_ALPHA: &[usize] = &[0, 0, 0, 4];

/// The largest difference of samples of two pictures of the same extents.
fn furthest(a: &Buffer, b: &Buffer) -> u8 {
    assert_eq!(a.region(), b.region());
    let samples = a.as_slice::<u8>().unwrap().iter().zip(b.as_slice::<u8>().unwrap());
    samples.map(|(a, b)| a.abs_diff(*b)).max().unwrap()
}

#[test]
fn bitmaps_are_read() {
    assert_eq!(read(&file("rgb.bmp")).unwrap(), painted(RGB));
    // Without masks, the fourth byte of a pixel has no meaning.
    assert_eq!(read(&file("rgba.bmp")).unwrap(), painted(RGB));
    assert_eq!(read(&file("grey.bmp")).unwrap(), painted(&[0]));
    let bits = read(&file("bits.bmp")).unwrap();
    let grey = painted(&[0]);
    let expected = grey.as_slice::<u8>().unwrap().iter().map(|sample| if *sample > 100 { 255 } else { 0 });
    assert!(bits.as_slice::<u8>().unwrap().iter().copied().eq(expected));
    assert_eq!(read(&file("palette.bmp")).unwrap(), read(&file("palette-rgb.bmp")).unwrap());
}

/// A bitmap with a header of 40 bytes, of 2 pixels in a row.
fn bitmap(height: i32, bits: u16, compression: u32, after_header: &[u8]) -> Vec<u8> {
    let start = 54 + if compression == 3 { 12 } else { 0 };
    let mut file = [&b"BM"[..], &[0; 8], &u32::to_le_bytes(start), &u32::to_le_bytes(40)].concat();
    file.extend([2_i32.to_le_bytes(), height.to_le_bytes()].concat());
    file.extend([1_u16.to_le_bytes(), bits.to_le_bytes()].concat());
    file.extend([compression.to_le_bytes(), [0; 4], [0; 4], [0; 4], [0; 4], [0; 4]].concat());
    file.extend(after_header);
    file
}

#[test]
fn bitmaps_of_all_kinds() {
    let rows = [0x1f_u16, 0x7c00, 0x3e0, 0x4210].map(u16::to_le_bytes).concat();
    let [upwards, downwards] = [2, -2].map(|height| read(&bitmap(height, 16, 0, &rows)).unwrap());
    let green = [[255_u8, 132, 0, 0], [0, 0, 255, 132]];
    assert_eq!(
        upwards.as_slice::<u8>().unwrap()[4..8],
        [255, 132, 0, 0],
        "the last row is the first of the file"
    );
    assert_eq!(downwards.as_slice::<u8>().unwrap()[4..8], green[1]);
    let masks = [0xf800_u32, 0x7e0, 0x1f].map(u32::to_le_bytes).concat();
    let row = [0xffff_u16, 0x07e0].map(u16::to_le_bytes).concat();
    let masked = read(&bitmap(1, 16, 3, &[masks, row].concat())).unwrap();
    assert_eq!(masked.as_slice::<u8>().unwrap(), [255, 0, 255, 255, 255, 0]);
    let mut with_alpha = bitmap(1, 32, 3, &[]);
    with_alpha[10..18].copy_from_slice(&[70_u32, 56].map(u32::to_le_bytes).concat());
    with_alpha.extend([0xff_u32, 0xff00, 0xff_0000, 0xff00_0000].map(u32::to_le_bytes).concat());
    with_alpha.extend([1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(read(&with_alpha).unwrap().as_slice::<u8>().unwrap(), [1, 5, 2, 6, 3, 7, 4, 8]);
    let fourth_byte = read(&bitmap(1, 32, 0, &[1, 2, 3, 9, 4, 5, 6, 9])).unwrap();
    assert_eq!(fourth_byte.as_slice::<u8>().unwrap(), [3, 6, 2, 5, 1, 4], "it has no meaning");
    for (file, said) in [
        (bitmap(1, 8, 1, &[0; 2000]), "run-length"),
        (bitmap(1, 24, 5, &[0; 2000]), "compression 5"),
        (bitmap(1, 13, 0, &[0; 2000]), "13 bits"),
        (bitmap(i32::MIN, 24, 0, &[0; 2000]), "larger picture"),
        (bitmap(0, 24, 0, &[0; 2000]), "no pixels"),
        (bitmap(1, 24, 0, &[0; 5]), "ends early"),
        (bitmap(1, 8, 0, &[0; 5]), "ends early"),
    ] {
        let error = read(&file).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[cfg(feature = "pictures")]
#[test]
fn common_pictures_are_read() {
    for (name, channels) in [
        ("rgb.tif", RGB),
        ("deflate.tif", RGB),
        ("rgba.tif", RGBA),
        ("grey.tif", &[0]),
        ("grey-alpha.tif", GREY_AND_ALPHA),
        ("rgb.webp", RGB),
        ("rgba.webp", RGBA),
    ] {
        assert_eq!(read(&file(name)).unwrap(), painted(channels), "{name}");
    }
    let wide = read(&file("grey16.tif")).unwrap();
    assert_eq!(wide.get(&[20, 12]).unwrap().as_f64(), 60807.0);
    for (name, channels, most) in [
        ("rgb.jpg", RGB, 4),
        ("grey.jpg", &[0], 4),
        ("progressive.jpg", RGB, 12),
        ("lossy.webp", RGB, 16),
        ("lossy-alpha.webp", RGBA, 60),
    ] {
        let far = furthest(&read(&file(name)).unwrap(), &painted(channels));
        assert!(far <= most, "{name}: {far}");
    }
}

#[cfg(feature = "pictures")]
#[test]
fn what_is_not_read_is_named() {
    for (name, said) in [("cmyk.jpg", "CMYK in a JPEG is not supported"), ("bits.tif", "is not supported")] {
        let error = read(&file(name)).unwrap_err();
        assert!(matches!(error, PictureError::Unsupported { .. }), "{name}: {error}");
        assert!(error.to_string().contains(said), "{name}: {error}");
    }
}

#[cfg(feature = "pictures")]
#[test]
fn files_that_end_early_are_refused() {
    for name in [
        "rgb.jpg",
        "progressive.jpg",
        "grey.jpg",
        "rgb.tif",
        "deflate.tif",
        "rgba.tif",
        "rgb.webp",
        "lossy.webp",
    ] {
        let whole = file(name);
        for length in (0..whole.len().saturating_sub(24)).step_by(7) {
            assert!(read(&whole[..length]).is_err(), "{name}: {length} of {}", whole.len());
        }
    }
}

#[cfg(feature = "pictures")]
#[test]
fn headers_of_huge_pictures_are_refused() {
    let mut jpeg = file("grey.jpg");
    let frame = jpeg.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    jpeg[frame + 5..frame + 9].copy_from_slice(&[0xff; 4]);
    assert!(matches!(read(&jpeg), Err(PictureError::TooLarge { .. })));
    // A lossless WebP has 14 bits each for its width and height, less one.
    let mut webp = file("rgb.webp");
    let start = webp.windows(4).position(|name| name == b"VP8L").unwrap() + 9;
    let extents = 0x3ffe | 0x3ffe << 14 | u32::from(webp[start + 3] >> 4) << 28;
    webp[start..start + 4].copy_from_slice(&extents.to_le_bytes());
    let refused = read(&webp).unwrap_err();
    assert!(matches!(refused, PictureError::OverLimit { width: 16383, height: 16383, .. }), "{refused}");
    let mut tiff = file("grey16.tif");
    for tag in [256_u16, 257] {
        let is_entry = |entry: &[u8]| entry[..2] == tag.to_le_bytes() && entry[3..] == [0, 1, 0, 0, 0];
        let at = tiff.windows(8).position(is_entry).unwrap() + 8;
        tiff[at..at + 2].copy_from_slice(&[0xff; 2]);
    }
    assert!(matches!(read(&tiff), Err(PictureError::TooLarge { .. } | PictureError::Decode(_))));
}

#[test]
fn channels_are_converted_without_loss() {
    let (grey, rgb, rgba) = (painted(&[0]), painted(RGB), painted(RGBA));
    let converted = |picture: &Buffer, channels| picture::with_channels(picture, channels, Loss::Nothing);
    assert_eq!(converted(&grey, 3).unwrap(), painted(&[0, 0, 0]));
    assert_eq!(converted(&converted(&grey, 4).unwrap(), 1).unwrap(), grey);
    assert_eq!(converted(&converted(&rgb, 4).unwrap(), 3).unwrap(), rgb);
    assert_eq!(converted(&rgba, 4).unwrap(), rgba);
    let interleaved = rgb.reordered(&[2, 0, 1]).unwrap();
    assert_eq!(converted(&converted(&interleaved, 4).unwrap(), 3).unwrap(), rgb);
    for (picture, channels, loss) in
        [(&rgb, 1, Loss::Colours), (&rgba, 3, Loss::Alpha), (&rgba, 1, Loss::Alpha)]
    {
        let refused = converted(picture, channels).unwrap_err();
        assert!(matches!(refused, PictureError::Lossy { lost, .. } if lost == loss), "{refused}");
    }
    assert_eq!(picture::with_channels(&rgba, 3, Loss::Alpha).unwrap(), rgb);
    assert!(picture::with_channels(&rgba, 1, Loss::Alpha).is_err());
    let luma = picture::with_channels(&rgb, 1, Loss::Colours).unwrap();
    let [red, green, blue] = [0, 1, 2].map(|c| rgb.get(&[7, 5, c]).unwrap().as_f64());
    let expected = (0.299 * red + 0.587 * green + 0.114 * blue).round();
    assert_eq!(luma.get(&[7, 5]).unwrap().as_f64(), expected);
    let white =
        Buffer::from_vec(Region::of_extents(&[1, 1, 3]), vec![u16::MAX, u16::MAX, u16::MAX - 9]).unwrap();
    let luma = picture::with_channels(&white, 1, Loss::Colours).unwrap();
    assert_eq!(luma.as_slice::<u16>(), Some(&[u16::MAX - 1][..]));
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
        let _ = read(&[&b"BM"[..], &bytes].concat());
        let _ = read(&[&b"\xff\xd8\xff"[..], &bytes].concat());
        let _ = read(&[&b"II*\0"[..], &bytes].concat());
        let _ = read(&[&b"RIFF\0\0\0\0WEBP"[..], &bytes].concat());
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
