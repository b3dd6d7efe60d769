//! `.npy` files: round-trips, and rejection of malformed files.

use proptest::prelude::*;
use warploom_interp::buffer::{Buffer, Element};
use warploom_interp::files::{FileError, read_any, write_any};
use warploom_interp::npy::{self, NpyError};
use warploom_lang::{Region, Scalar, Type, Value, bf16, dispatch, f16};

/// A version 1.0 file, as numpy writes it.
fn file(descr: &str, fortran_order: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let order = if fortran_order { "True" } else { "False" };
    let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((text.len() as u16).to_le_bytes());
    file.extend(text.as_bytes());
    file.extend(data);
    file
}

fn read(bytes: &[u8]) -> Result<Buffer, NpyError> {
    npy::read_from(bytes, "test.npy").map_err(|error| {
        let text = error.to_string();
        assert!(text.contains("test.npy") && !text.contains('\n'), "{text}");
        match error {
            FileError::Npy { problem, .. } => problem,
            other => panic!("{other}"),
        }
    })
}

fn written(buffer: &Buffer) -> Vec<u8> {
    let mut bytes = Vec::new();
    npy::write_to(&mut bytes, buffer).unwrap();
    bytes
}

fn bits(buffer: &Buffer) -> Vec<u64> {
    dispatch!(buffer.ty(), T => {
        let samples = buffer.as_slice::<T>().unwrap();
        buffer.offsets().map(|offset| samples[offset].to_word()).collect()
    })
}

#[test]
fn axes_are_reversed() {
    let region = Region::of_extents(&[3, 2]);
    let buffer = Buffer::from_fn(region, |at| (10 * at[1] + at[0]) as u8).unwrap();
    let bytes = written(&buffer.reordered(&[1, 0]).unwrap());
    assert_eq!(bytes.len() % 64, 6);
    assert!(bytes.ends_with(&[0, 1, 2, 10, 11, 12]));
    assert!(String::from_utf8_lossy(&bytes).contains("'shape': (2, 3, )"));
    assert_eq!(read(&bytes).unwrap(), buffer);
    assert_eq!(read(&bytes).unwrap().order(), [0, 1]);
}

#[test]
fn reads_fortran_order_and_big_endian() {
    let data: Vec<u8> = [0_u16, 10, 1, 11, 2, 12].into_iter().flat_map(u16::to_be_bytes).collect();
    let buffer = read(&file(">u2", true, "(2, 3)", &data)).unwrap();
    assert_eq!(buffer.region().extents(), [3, 2]);
    assert_eq!(buffer.as_slice::<u16>().unwrap(), [0, 1, 2, 10, 11, 12]);
    let big = read(&file(">f4", false, "()", &1.5_f32.to_be_bytes())).unwrap();
    assert_eq!(big.as_slice::<f32>().unwrap(), [1.5]);
}

#[test]
fn wide_types_are_read_as_they_are() {
    let f64s = |values: &[f64]| {
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        read(&file("<f8", false, &format!("({},)", values.len()), &data))
    };
    let wide = f64s(&[0.5, -0.0, f64::INFINITY, f64::NAN]).unwrap();
    let narrow = wide.exactly(Type::F32).unwrap();
    assert!(narrow.as_slice::<f32>().unwrap()[3].is_nan());
    assert_eq!(narrow.as_slice::<f32>().unwrap()[1].to_bits(), (-0.0_f32).to_bits());
    assert_eq!(f64s(&[0.5, 0.1]).unwrap().exactly(Type::F32).unwrap_err(), Value::from(0.1_f64));
    assert_eq!(f64s(&[1e300]).unwrap().exactly(Type::F32).unwrap_err(), Value::from(1e300_f64));

    let i64s = |value: i64| read(&file("<i8", false, "(1,)", &value.to_le_bytes())).unwrap();
    assert_eq!(i64s(-5).as_slice::<i64>().unwrap(), [-5]);
    assert_eq!(i64s(-5).exactly(Type::I32).unwrap().as_slice::<i32>().unwrap(), [-5]);
    assert!(i64s(1 << 31).exactly(Type::I32).is_err());
    let u64s = |value: u64| read(&file(">u8", false, "(1,)", &value.to_be_bytes())).unwrap();
    assert_eq!(u64s(u64::MAX).as_slice::<u64>().unwrap(), [u64::MAX]);
    assert_eq!(u64s(1 << 31).exactly(Type::U32).unwrap().as_slice::<u32>().unwrap(), [1 << 31]);
    assert!(u64s(1 << 32).exactly(Type::U32).is_err());
}

/// Conversions that a second conversion undoes, although the number between is another one.
#[test]
fn exact_conversions_keep_the_number() {
    let one = |value: Value| {
        let region = Region::of_extents(&[1]);
        dispatch!(value.ty(), T => Buffer::from_vec(region, vec![value.get::<T>().unwrap()])).unwrap()
    };
    let refused = |value: Value, ty: Type| assert_eq!(one(value).exactly(ty).unwrap_err(), value, "{ty}");
    refused(Value::from(-1_i64), Type::U64);
    refused(Value::from(255_u8), Type::I8);
    refused(Value::from(i64::MAX), Type::F64);
    refused(Value::from(u64::MAX), Type::F64);
    refused(Value::from(u64::MAX), Type::F32);
    refused(Value::from(i32::MAX), Type::F32);
    refused(Value::from(u64::MAX), Type::I64);
    refused(Value::from(65_505_u16), Type::F16);
    refused(Value::from(f64::INFINITY), Type::I64);
    refused(Value::from(f64::NAN), Type::U8);
    refused(Value::from(9.3e18_f64), Type::I64);
    refused(Value::from(2_u8), Type::Bool);
    assert_eq!(one(Value::from(1_u64 << 63)).exactly(Type::BF16).unwrap().ty(), Type::BF16);
    assert_eq!(one(Value::from(-0.0_f32)).exactly(Type::I64).unwrap().get(&[0]), Some(Value::from(0_i64)));
    assert_eq!(one(Value::from(1.0_f64)).exactly(Type::Bool).unwrap().get(&[0]), Some(Value::from(true)));
}

#[test]
fn floats_of_16_bits_are_numpys() {
    let halves = read(&file("<f2", false, "(2,)", &[0x00, 0x3c, 0x01, 0x80])).unwrap();
    assert_eq!(halves.as_slice::<f16>().unwrap(), [f16::ONE, f16::from_bits(0x8001)]);
    let big = read(&file(">f2", false, "(1,)", &[0x3c, 0x00])).unwrap();
    assert_eq!(big.as_slice::<f16>().unwrap(), [f16::ONE]);
    for descr in ["<V2", "|V2"] {
        let brains = read(&file(descr, false, "(1,)", &[0x80, 0x3f])).unwrap();
        assert_eq!(brains.as_slice::<bf16>().unwrap(), [bf16::ONE]);
    }
    let text = |buffer: &Buffer| {
        let bytes = written(buffer);
        assert_eq!((bytes.len() - 2) % 64, 0);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let single = Buffer::zeros(Type::F16, Region::of_extents(&[])).unwrap();
    assert!(text(&single).contains("'descr': '<f2', 'fortran_order': False, 'shape': ()"));
    let row = Buffer::zeros(Type::BF16, Region::of_extents(&[1])).unwrap();
    assert!(text(&row).contains("'descr': '<V2', 'fortran_order': False, 'shape': (1, )"));
}

#[test]
fn refuses_types_without_samples() {
    for descr in ["|O", "<f1", "<c8", "<U3", "|S1", "<M8[s]", "<m8[s]", "|V4", "|u2", "f4", "", "é", "<f99"]
    {
        let error = read(&file(descr, false, "(1,)", &[0; 8])).unwrap_err();
        assert!(matches!(error, NpyError::Type { .. }), "{descr}: {error}");
    }
    assert!(matches!(read(&file("|b1", false, "(2,)", &[1, 2])), Err(NpyError::Sample(_))));
}

#[test]
fn refuses_more_or_less_data_than_claimed() {
    let huge = i64::MAX;
    for shape in [
        "(4,)",
        "(2, 2)",
        "(1000000000000,)",
        &format!("({huge}, {huge}, {huge})"),
        "(4294967296, 4294967296)",
    ] {
        let error = read(&file("<f4", false, shape, &[0; 12])).unwrap_err();
        assert!(matches!(error, NpyError::Truncated { found: 12, .. }), "{shape}: {error}");
    }
    let empty = format!("(0, {huge}, {huge})");
    assert!(matches!(read(&file("<f4", false, &empty, &[])), Err(NpyError::Buffer(_))));
    assert!(matches!(read(&file("<f4", false, "(2,)", &[0; 12])), Err(NpyError::Trailing { extra: 4, .. })));
    assert!(matches!(read(&file("<f4", false, "()", &[0; 5])), Err(NpyError::Trailing { extra: 1, .. })));
    let mut claims_long_header = b"\x93NUMPY\x02\x00".to_vec();
    claims_long_header.extend(u32::MAX.to_le_bytes());
    assert!(matches!(read(&claims_long_header), Err(NpyError::CutHeader)));
}

#[test]
fn every_cut_is_refused() {
    let buffer = Buffer::from_fn(Region::of_extents(&[3, 2]), |at| at[0] as f32).unwrap();
    let bytes = written(&buffer);
    for length in 0..bytes.len() {
        assert!(read(&bytes[..length]).is_err(), "{length}");
    }
}

#[test]
fn files_by_extension() {
    let folder = tempfile::tempdir().unwrap();
    let buffer = Buffer::from_fn(Region::of_extents(&[3, 2]), |at| at[1] as i32 - 1).unwrap();
    let path = folder.path().join("ramp.NPY");
    write_any(&path, &buffer).unwrap();
    assert_eq!(read_any(&path).unwrap(), buffer);
    assert_eq!(npy::read(&path).unwrap(), buffer);
    for name in ["ramp.gif", "ramp", ".npy"] {
        assert!(matches!(read_any(folder.path().join(name)), Err(FileError::Unread { .. })));
        assert!(matches!(write_any(folder.path().join(name), &buffer), Err(FileError::Extension { .. })));
    }
    assert!(matches!(npy::read(folder.path()), Err(FileError::Refused(_))));
    assert!(matches!(npy::read(folder.path().join("none.npy")), Err(FileError::Read { .. })));
    assert!(matches!(npy::write(folder.path().join("none/x.npy"), &buffer), Err(FileError::Write { .. })));
}

#[test]
fn numpy_has_at_most_64_dimensions() {
    let cube = |dimensions| Buffer::zeros(Type::U8, Region::of_extents(&vec![1; dimensions])).unwrap();
    assert_eq!(read(&written(&cube(64))).unwrap(), cube(64));
    assert!(npy::write_to(Vec::new(), &cube(65)).is_err());
}

/// Buffers of every type, with any storage order and minima.
fn buffers() -> impl Strategy<Value = Buffer> {
    let shape = prop::collection::vec((0_i64..5, -9_i64..9), 0..5);
    (prop::sample::select(&Type::ALL[..]), shape).prop_flat_map(|(ty, shape)| {
        let (extents, min): (Vec<i64>, Vec<i64>) = shape.into_iter().unzip();
        let samples = prop::collection::vec(any::<u64>(), extents.iter().product::<i64>() as usize);
        let order = Just((0..extents.len()).collect::<Vec<_>>()).prop_shuffle();
        (Just(ty), Just(extents), Just(min), samples, order).prop_map(|(ty, extents, min, samples, order)| {
            dispatch!(ty, T => buffer::<T>(&extents, &order, &samples)).translated(&min).unwrap()
        })
    })
}

fn buffer<T: Element>(extents: &[i64], order: &[usize], samples: &[u64]) -> Buffer {
    let samples = samples.iter().map(|&bits| T::from_word(bits)).collect();
    Buffer::from_vec_in_order(Region::of_extents(extents), order, samples).unwrap()
}

/// One byte replaced, removed or inserted.
fn mutate(bytes: &mut Vec<u8>, (kind, place, byte): (u8, prop::sample::Index, u8)) {
    if bytes.is_empty() {
        return;
    }
    let place = place.index(bytes.len());
    match kind {
        0 => bytes[place] = byte,
        1 => drop(bytes.remove(place)),
        2 => bytes.insert(place, byte),
        _ => bytes.truncate(place),
    }
}

proptest! {
    #[test]
    fn round_trip(buffer in buffers()) {
        let back = read(&written(&buffer)).unwrap();
        prop_assert_eq!(back.ty(), buffer.ty());
        prop_assert_eq!(back.region().extents(), buffer.region().extents());
        prop_assert!(back.order().is_sorted());
        prop_assert_eq!(bits(&back), bits(&buffer));
    }

    #[test]
    fn reordering_keeps_samples(buffer in buffers()) {
        let planar: Vec<usize> = (0..buffer.order().len()).collect();
        let back = buffer.reordered(&planar).unwrap().reordered(buffer.order()).unwrap();
        prop_assert_eq!(back.strides(), buffer.strides());
        prop_assert_eq!(bits(&back), bits(&buffer));
    }

    #[test]
    fn random_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300), version in 1_u8..4) {
        let _ = read(&bytes);
        let mut header = b"\x93NUMPY".to_vec();
        header.extend([version, 0]);
        header.extend(bytes);
        let _ = read(&header);
    }

    #[test]
    fn random_headers_are_survived(
        text in "\\{('(descr|shape|fortran_order)': ?([(\\[]?[0-9]{0,22},? ?[0-9]{0,3}[)\\]]?|True|False|'[<>|][a-zO][0-9]'),? ?){0,4}\\}?",
        data in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes.extend(data);
        let _ = read(&bytes);
    }

    #[test]
    fn mutated_files_are_survived(
        buffer in buffers(),
        mutations in prop::collection::vec((0_u8..4, any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = written(&buffer);
        for mutation in mutations {
            mutate(&mut bytes, mutation);
        }
        if let Ok(buffer) = read(&bytes) {
            prop_assert!(buffer.bytes() <= bytes.len());
        }
    }
}
