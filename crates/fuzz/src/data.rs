//! Generates input samples: mostly small numbers, some extremes, occasionally NaN.
//!
//! The generator is our own hash, not a library's: a case file must give the same data in every
//! version.

use warploom_interp::buffer::{Buffer, BufferError};
use warploom_lang::ir::InputDecl;
use warploom_lang::{Region, Scalar, Type, Value, dispatch};

/// An input over a box; empty if `region` is `None`.
pub(crate) fn samples(seed: u64, decl: &InputDecl, region: Option<&Region>) -> Result<Buffer, BufferError> {
    let region = region.cloned().unwrap_or_else(|| Region::empty(decl.dimensions));
    let name = decl.name.bytes().fold(mixed(seed), |hash, byte| mixed(hash ^ u64::from(byte)));
    let style = Style::of(name);
    dispatch!(decl.ty, T => Buffer::from_fn::<T>(region, |at| {
        let point = at.iter().fold(name, |hash, coordinate| mixed(hash ^ *coordinate as u64));
        T::from_word(style.draw(decl.ty, &mut Draws(point)).bits())
    }))
}

/// A hash of a number (the finalizer of SplitMix64).
pub(crate) fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The distribution of an input's samples.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Style {
    /// Small integers around 0.
    Few,
    /// Values as in a picture.
    Natural,
    /// Values as in a picture, mixed with extremes.
    Mixed,
    /// Like `Mixed`, with NaN and infinities.
    Wild,
}

impl Style {
    fn of(hash: u64) -> Style {
        match hash % 16 {
            0..4 => Style::Few,
            4..10 => Style::Natural,
            10..15 => Style::Mixed,
            _ => Style::Wild,
        }
    }

    fn draw(self, ty: Type, draws: &mut Draws) -> Value {
        let extreme = matches!(self, Style::Mixed | Style::Wild) && draws.below(8) == 0;
        match (ty, ty.int_range()) {
            (Type::Bool, _) => Value::from(draws.below(2) == 1),
            (_, None) => {
                let float = match ty {
                    _ if extreme => self.extreme(ty, draws),
                    // More digits than an `f32` has, so that a conversion to `f32` is noticed.
                    Type::F64 if self != Style::Few => draws.fraction() * 2.0 - 0.5,
                    _ => self.float(draws).into(),
                };
                Value::rounded(ty, float).unwrap_or(Value::zero(ty))
            }
            (Type::U64, _) if extreme && draws.below(2) == 0 => {
                let above = [1 << 63, (1 << 63) + 1, u64::MAX - 1, u64::MAX];
                Value::from(*draws.one_of(&above))
            }
            (Type::I64 | Type::U64, _) if self == Style::Mixed && draws.below(8) == 0 => {
                // Numbers of every magnitude.
                let bits = draws.bits();
                Value::from_bits(ty, bits >> draws.below(64))
            }
            (_, Some(range)) => {
                let int = self.int(range, extreme, draws);
                Value::from_int(ty, int).unwrap_or(Value::zero(ty))
            }
        }
    }

    fn int(self, (low, high): (i64, i64), extreme: bool, draws: &mut Draws) -> i64 {
        let (from, to) = match self {
            _ if extreme => {
                let edges = [low, low + 1, -1, high / 2, high - 1, high];
                return edges[draws.below(6) as usize].clamp(low, high);
            }
            Style::Few => (-4, 4),
            // The full range of a byte, and the same range for wider types.
            _ => (-128, 255),
        };
        let (from, to) = (from.max(low), to.min(high));
        from + draws.below((to - from + 1) as u64) as i64
    }

    /// Ends of the type, numbers that it holds with fewer digits, and zeros.
    fn extreme(self, ty: Type, draws: &mut Draws) -> f64 {
        const F32: [f64; 8] =
            [0.0, -0.0, 1e-42, -1e-30, 1e9, -1e20, f32::MAX as f64, f32::MIN_POSITIVE as f64];
        const F16: [f64; 8] = [0.0, -0.0, 6e-8, -3.1e-5, 6.1035e-5, 1000.5, -65504.0, 2048.0];
        const F64: [f64; 8] = [0.0, -0.0, 5e-324, -1e-310, 1e300, -1e16, f64::MAX, f64::MIN_POSITIVE];
        if self == Style::Wild && draws.below(4) == 0 {
            return *draws.one_of(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
        }
        *draws.one_of(match ty {
            Type::F16 => &F16,
            Type::F64 => &F64,
            _ => &F32,
        })
    }

    fn float(self, draws: &mut Draws) -> f32 {
        match self {
            Style::Few => draws.below(9) as f32 - 4.0,
            // 24 bits convert to `f32` exactly.
            _ => (draws.below(1 << 24) as f32) / (1 << 23) as f32 - 0.5,
        }
    }
}

/// A pseudorandom generator, seeded with one number.
pub(crate) struct Draws(pub(crate) u64);

impl Draws {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = mixed(self.0);
        (self.0 >> 32) % limit
    }

    fn bits(&mut self) -> u64 {
        self.0 = mixed(self.0);
        self.0
    }

    /// A number from 0 to 1, of 53 bits.
    fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn one_of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use warploom_lang::f16;

    use super::*;

    fn input(name: &str, ty: Type) -> InputDecl {
        InputDecl { name: name.to_owned(), ty, dimensions: 1, storage_order: vec![0] }
    }

    fn values(seed: u64, decl: &InputDecl, region: &Region) -> Vec<Value> {
        let buffer = samples(seed, decl, Some(region)).unwrap();
        (0..buffer.len() as i64).filter_map(|x| buffer.get(&[region[0].min + x])).collect()
    }

    #[test]
    fn samples_stay_when_the_box_shrinks() {
        let decl = input("input", Type::F32);
        let whole = values(7, &decl, &Region::of_extents(&[64]));
        let part = values(7, &decl, &Region(vec![warploom_lang::Range::new(10, 20)]));
        assert_eq!(part, whole[10..30]);
        assert_ne!(whole, values(8, &decl, &Region::of_extents(&[64])));
        assert_ne!(whole, values(7, &input("other", Type::F32), &Region::of_extents(&[64])));
    }

    #[test]
    fn every_type_varies_and_reaches_its_ends() {
        for ty in Type::ALL {
            let inputs = (0..64).map(|i| input(&format!("input{i}"), ty));
            let found: Vec<Value> =
                inputs.flat_map(|decl| values(1, &decl, &Region::of_extents(&[256]))).collect();
            let mut bits: Vec<u64> = found.iter().map(|value| value.bits()).collect();
            bits.sort_unstable();
            bits.dedup();
            let least = match ty {
                Type::Bool => 2,
                Type::U8 | Type::I8 => 200,
                _ => 250,
            };
            assert!(bits.len() >= least, "{ty}: {} values", bits.len());
            if let Some((low, high)) = ty.int_range() {
                let ints: Vec<i64> = found.iter().filter_map(|value| value.as_int()).collect();
                assert!(ints.contains(&low) && ints.contains(&high), "{ty}");
            }
            let has = |value: Value| found.contains(&value);
            match ty {
                Type::U64 => assert!(has(Value::from(u64::MAX)) && has(Value::from(1_u64 << 63))),
                Type::I64 => assert!(found.iter().any(|value| value.as_f64().abs() > 1e12)),
                Type::F16 => assert!(has(f16::from_bits(1).into()) && has(f16::MIN.into())),
                Type::F64 => {
                    assert!(has(Value::from(5e-324_f64)));
                    let digits = found.iter().filter(|value| value.as_f64() != value.as_f64() as f32 as f64);
                    assert!(digits.count() * 3 > found.len());
                }
                _ => {}
            }
        }
    }

    #[test]
    fn floats_are_mostly_moderate_and_rarely_nan() {
        let inputs = (0..200).map(|i| input(&format!("input{i}"), Type::F32));
        let floats: Vec<f64> = inputs
            .flat_map(|decl| values(3, &decl, &Region::of_extents(&[100])))
            .map(|value| value.as_f64())
            .collect();
        let share = |test: &dyn Fn(f64) -> bool| {
            floats.iter().filter(|float| test(**float)).count() as f64 / floats.len() as f64
        };
        assert!(share(&|float| float.abs() <= 4.0) > 0.95);
        let nans = share(&|float| float.is_nan());
        assert!(nans > 0.0 && nans < 0.005, "{nans}");
        assert!(share(&|float| float == 0.0 && float.is_sign_negative()) > 0.0);
    }
}
