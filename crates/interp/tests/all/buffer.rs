//! Buffers: storage orders, bounds and errors.

use warploom_interp::buffer::{Buffer, BufferError};
use warploom_lang::{Range, Region, Type, Value};

fn box_of(ranges: &[(i64, i64)]) -> Region {
    Region(ranges.iter().map(|&(min, extent)| Range { min, extent }).collect())
}

#[test]
fn orders_decide_strides_and_nothing_else() {
    let region = box_of(&[(-1, 4), (5, 3), (0, 2)]);
    let planar = Buffer::from_fn(region, |at| (100 * at[2] + 10 * at[1] + at[0]) as i16).unwrap();
    let interleaved = planar.reordered(&[2, 0, 1]).unwrap();
    assert_eq!(planar.strides(), [1, 4, 12]);
    assert_eq!(interleaved.strides(), [2, 8, 1]);
    assert_eq!(interleaved.as_slice(), interleaved.reordered(&[2, 0, 1]).unwrap().as_slice::<i16>());
    assert_eq!(interleaved.as_slice::<i16>().unwrap()[..4], [49, 149, 50, 150]);
    assert_eq!(interleaved.get(&[2, 7, 1]), Some(Value::from(172_i16)));
    assert_eq!(interleaved.reordered(&[0, 1, 2]).unwrap(), planar);
    assert_eq!(planar.bytes(), 48);
}

#[test]
fn points_outside_have_no_sample() {
    let mut buffer = Buffer::zeros(Type::U8, box_of(&[(3, 2)])).unwrap();
    for at in [&[2_i64][..], &[5], &[i64::MIN], &[i64::MAX], &[], &[3, 3]] {
        assert_eq!(buffer.get(at), None);
        assert!(matches!(buffer.set(at, Value::from(1_u8)), Err(BufferError::Outside { .. })));
    }
    assert!(matches!(buffer.set(&[3], Value::from(1_i8)), Err(BufferError::WrongType { .. })));
    buffer.set(&[4], Value::from(7_u8)).unwrap();
    assert_eq!(buffer.as_slice::<u8>(), Some(&[0, 7][..]));
    assert_eq!(buffer.as_slice::<i8>(), None);
}

#[test]
fn no_dimensions_mean_one_sample() {
    let mut scalar = Buffer::zeros(Type::F32, Region::default()).unwrap();
    scalar.set(&[], Value::from(0.5_f32)).unwrap();
    assert_eq!(scalar.get(&[]), Some(Value::from(0.5_f32)));
    assert_eq!(scalar.reordered(&[]).unwrap(), scalar);
    assert_eq!(scalar.offsets().collect::<Vec<_>>(), [0]);
}

#[test]
fn impossible_buffers_are_refused() {
    let zeros = |ranges: &[(i64, i64)]| Buffer::zeros(Type::I32, box_of(ranges)).unwrap_err();
    assert!(matches!(zeros(&[(0, 1 << 61)]), BufferError::TooLarge { .. }));
    assert!(matches!(zeros(&[(0, i64::MAX), (0, i64::MAX)]), BufferError::TooLarge { .. }));
    assert!(matches!(zeros(&[(0, 0), (0, i64::MAX), (0, i64::MAX)]), BufferError::TooLarge { .. }));
    assert!(matches!(zeros(&[(0, 0), (0, -1)]), BufferError::BadRange { dimension: 1, .. }));
    assert!(matches!(zeros(&[(i64::MAX, 1)]), BufferError::BadRange { .. }));
    let region = box_of(&[(0, 2), (0, 2)]);
    for order in [&[0_usize][..], &[0, 0], &[1, 2], &[0, 1, 2]] {
        let refused = Buffer::zeros_in_order(Type::U8, region.clone(), order);
        assert!(matches!(refused, Err(BufferError::BadOrder { .. })));
    }
    let short = Buffer::from_vec(region, vec![1_u8, 2, 3]).unwrap_err();
    assert_eq!(short.to_string(), "a buffer with extents [2, 2] holds 4 samples, but 3 were given");
}

#[test]
fn equality_is_of_regions_and_samples() {
    let ramp =
        |factor: f32| Buffer::from_fn(box_of(&[(0, 3), (-1, 2)]), |at| (5 * at[0] + at[1]) as f32 * factor);
    let ramp = |factor: f32| ramp(factor).unwrap();
    assert_eq!(ramp(1.0).reordered(&[1, 0]).unwrap(), ramp(1.0));
    assert_ne!(ramp(1.0), ramp(2.0));
    assert_ne!(ramp(1.0), ramp(1.0).translated(&[0, 0]).unwrap());
    let whole = Buffer::from_fn(box_of(&[(0, 3), (-1, 2)]), |at| (5 * at[0] + at[1]) as i32).unwrap();
    assert_ne!(ramp(1.0), whole);
    // Along a dimension with a single point, strides do not matter.
    let column = Buffer::from_fn(box_of(&[(0, 1), (0, 4)]), |at| at[1] as u8).unwrap();
    assert_eq!(column.reordered(&[1, 0]).unwrap(), column);
    // Bits matter, but all NaNs are equal.
    let one = |sample: f32| Buffer::from_vec(Region::default(), vec![sample]).unwrap();
    assert_eq!(one(f32::NAN), one(-f32::NAN));
    assert_ne!(one(0.0), one(-0.0));
    assert_ne!(one(0.0), one(f32::NAN));
}

#[test]
fn translation_moves_the_region_only() {
    let ramp = Buffer::from_fn(box_of(&[(0, 3)]), |at| at[0] as f32).unwrap();
    let moved = ramp.clone().translated(&[-7]).unwrap();
    assert_eq!(moved.get(&[-5]), ramp.get(&[2]));
    assert!(matches!(ramp.clone().translated(&[]), Err(BufferError::WrongDimensions { .. })));
    assert!(matches!(ramp.translated(&[i64::MAX]), Err(BufferError::BadRange { .. })));
}
