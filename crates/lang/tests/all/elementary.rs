//! The functions of `math::angles` and `math::powers` against double precision, over all floats.

use std::f32::consts::{FRAC_1_SQRT_2, FRAC_PI_4, SQRT_2};

use warploom_lang::math::{self, exact};

type Function = fn(f32) -> f32;
type Mathematics = fn(f64) -> f64;

/// A function, its mathematics, and its largest error in units in the last place, rounded up.
const FUNCTIONS: [(&str, Function, Mathematics, f64); 10] = [
    ("atan", math::atan, f64::atan, 1.7),
    ("asin", math::asin, f64::asin, 2.4),
    ("acos", math::acos, f64::acos, 1.2),
    ("tan", math::tan, f64::tan, 1.7),
    ("rsqrt", math::rsqrt, |x| 1.0 / x.sqrt(), 1.5),
    ("erf", math::erf, exact::erf, 1.4),
    ("log1p", math::log1p, f64::ln_1p, 0.9),
    ("expm1", math::expm1, f64::exp_m1, 1.6),
    ("exp2", math::exp2, f64::exp2, 1.1),
    ("log2", math::log2, f64::log2, 1.4),
];

/// Distance in units in the last place of the exact result; none where both count as the same.
fn error(got: f32, exact: f64) -> f64 {
    let rounded = exact as f32;
    if got.to_bits() == rounded.to_bits() || (got.is_nan() && rounded.is_nan()) {
        return 0.0;
    }
    if !got.is_finite() || !rounded.is_finite() || got.is_sign_negative() != rounded.is_sign_negative() {
        return f64::INFINITY;
    }
    let exponent = (exact.abs().log2().floor() as i32).max(-126);
    (f64::from(got) - exact).abs() / 2f64.powi(exponent - 23)
}

/// Every 1009th float, of all magnitudes and both signs, and the 2000 around each special place.
fn sweep() -> impl Iterator<Item = f32> {
    let all = (0..=u32::MAX).step_by(1009).map(f32::from_bits);
    let places = [0.5, 1.0, 4.0, FRAC_PI_4, 2.980_232_2e-8, 0.414_213_56, -0.292_893_2, 127.5, -126.0, 88.72];
    let near = places.into_iter().flat_map(|place: f32| {
        let bits = place.to_bits();
        (bits - 1000..bits + 1000).flat_map(|bits| [f32::from_bits(bits), -f32::from_bits(bits)])
    });
    all.chain(near)
}

#[test]
fn functions_are_accurate_over_all_floats() {
    for (name, function, truth, most) in FUNCTIONS {
        let errors = sweep().map(|x| (error(function(x), truth(f64::from(x))), x));
        let (worst, x) = errors.fold((0.0, 0.0), |a: (f64, f32), b| if b.0 > a.0 { b } else { a });
        println!("{name}: {worst:.3} at {x:e}");
        assert!(worst <= most, "{name}: an error of {worst} at {x:e}: {:e}", function(x));
    }
}

#[test]
fn angles_of_points_are_accurate() {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    for round in 0..2_000_000 {
        let (y, other) = (next(), next());
        // Every other point has two coordinates of similar magnitude.
        let x = if round % 2 == 0 { other } else { (y & 0x7f00_0000) | (other & 0x80ff_ffff) };
        let (y, x) = (f32::from_bits(y), f32::from_bits(x));
        let error = error(math::atan2(y, x), f64::from(y).atan2(f64::from(x)));
        assert!(error <= 1.8, "atan2({y:e}, {x:e}): an error of {error}");
    }
}

/// Where a definition changes, values go on rising: none after the join is less than one before it
/// by more than a unit in the last place.
#[test]
fn joins_are_monotone() {
    let rising: [(&str, Function, &[f32]); 8] = [
        ("atan", math::atan, &[1.0]),
        ("asin", math::asin, &[0.5]),
        ("acos", |x| -math::acos(x), &[0.5]),
        ("tan", math::tan, &[FRAC_PI_4.next_down()]),
        ("erf", math::erf, &[1.0, 4.0]),
        ("log1p", math::log1p, &[math::powers::TINY, 0.414_213_56, 1.0]),
        ("expm1", math::expm1, &[math::powers::TINY, 0.346_573_6, 1.039_720_8, 88.5]),
        ("log2", math::log2, &[FRAC_1_SQRT_2, SQRT_2, f32::MIN_POSITIVE]),
    ];
    for (name, function, joins) in rising {
        for join in joins {
            let bits = join.to_bits();
            let values = |from: u32, to: u32| (from..to).map(|bits| function(f32::from_bits(bits)));
            let before = values(bits - 200, bits).fold(f32::NEG_INFINITY, f32::max);
            let after = values(bits, bits + 200).fold(f32::INFINITY, f32::min);
            let step = before.abs().next_up() - before.abs();
            assert!(before - after <= step, "{name} at {join}: {before} is followed by {after}");
        }
    }
}

#[test]
fn powers_of_two_are_exact() {
    for k in -149..128 {
        let power = 2f64.powi(k) as f32;
        assert_eq!((math::exp2(k as f32), math::log2(power)), (power, k as f32));
    }
}

#[test]
fn the_series_of_erf_gives_its_known_values() {
    let known =
        [(0.5, 0.520_499_877_813_046_5), (1.0, 0.842_700_792_949_714_9), (2.0, 0.995_322_265_018_952_7)];
    for (x, value) in known {
        assert!((exact::erf(x) - value).abs() < 1e-14 && exact::erf(-x) == -exact::erf(x), "{x}");
    }
    assert!((1.0 - exact::erf(3.0) - 2.209_049_699_858_544e-5).abs() < 1e-15);
    assert!(exact::erf(f64::NAN).is_nan() && exact::erf(7.0) == 1.0);
}
