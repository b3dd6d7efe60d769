//! Sources of values: inputs, Params and functions of coordinates.

use warploom_lang::{
    Expr, Func, Input, Operand, Param, Range, Region, Type, Value, exp, random_f32, random_u32, select, sin,
};

use crate::grow::{Grower, SizedInput};
use crate::image::{Body, Extent, Image, VARS, here, scaled};
use crate::term::{Term, type_reach};

/// The lengths of long rows.
const LONG: (i64, i64) = (64, 300);

/// The approximate largest magnitude of an input's values.
fn input_reach(ty: Type) -> f32 {
    if ty.is_float() { 1.0 } else { type_reach(ty) }
}

impl Grower {
    /// The main input of a pipeline: large, with two or three dimensions.
    pub fn main_source(&mut self) -> Image {
        let mut extents = vec![self.extent(), self.extent()];
        if self.dice.chance(0.6) {
            extents.push(self.dice.pick(&[3, 3, 3, 1, 2, 4]));
        }
        use Type::*;
        let ty = self.type_of(&[F32, F32, U8, U16], &[F16, F16, BF16, F64, I64, U64, F32]);
        self.input(ty, extents)
    }

    /// An input of any type and rank.
    pub fn source(&mut self) -> Image {
        let ty = self.ty();
        let rank = self.dice.weighted(&[0.1, 0.2, 0.35, 0.25, 0.1]);
        let extents = self.extents(rank);
        self.input(ty, extents)
    }

    /// Extents of an image: large, or small along some dimensions. Where images are small, some have
    /// long rows.
    pub fn extents(&mut self, rank: usize) -> Vec<i64> {
        if (1..=2).contains(&rank) && self.limits.extents.1 <= LONG.0 && self.dice.chance(0.35) {
            return self.long_extents(rank);
        }
        let mut extents: Vec<i64> = (0..rank.min(2)).map(|_| self.extent()).collect();
        for _ in 2..rank {
            extents.push(self.dice.pick(&[3, 1, 2, 4, 5, 7]));
        }
        while extents.iter().product::<i64>() > self.limits.image {
            extents[0] = (extents[0] / 2).max(1);
            extents.rotate_left(1);
        }
        extents
    }

    /// Extents of a few long rows or columns.
    fn long_extents(&mut self, rank: usize) -> Vec<i64> {
        let mut extents = vec![self.dice.between(LONG.0..=LONG.1)];
        if rank == 2 {
            let rows = self.dice.between(1..=3);
            extents.insert(self.dice.below(2), rows);
        }
        extents
    }

    /// A width or height: odd, prime, a multiple of the warp size, or one off.
    fn extent(&mut self) -> i64 {
        let (least, most) = self.limits.extents;
        let any = self.dice.between(least..=most);
        let nearest = |step: i64| ((any + step / 2) / step * step).clamp(step, most.max(step));
        let extent = match self.dice.below(6) {
            0 => any | 1,
            1 => (any..).find(|n| is_prime(*n)).unwrap_or(any),
            2 if most >= 32 => nearest(32),
            3 if most >= 32 => nearest(32) + self.dice.pick(&[-1, 1]),
            4 if least <= 4 => self.dice.pick(&[1, 2, 8, 16]),
            2 | 3 => any | 1,
            _ => any,
        };
        extent.min(most + 1)
    }

    /// An input, plain or with a boundary condition.
    fn input(&mut self, ty: Type, extents: Vec<i64>) -> Image {
        let rank = extents.len();
        let input = self.new_input(ty, rank);
        let reach = vec![input_reach(ty)];
        // Without dimensions there is no outside.
        if rank == 0 || self.dice.chance(0.35) {
            self.inputs.push(SizedInput { input: input.clone(), region: None });
            let extents = extents.into_iter().map(Extent::fixed).collect();
            return Image { body: Body::Input(input), extents, reach, total: true };
        }
        let start = if self.dice.chance(0.2) { 5 } else { 0 };
        let ranges = extents.iter().map(|extent| Range::new(self.dice.between(-start..=start), *extent));
        let region = Region(ranges.collect());
        self.inputs.push(SizedInput { input: input.clone(), region: Some(region) });
        let bounded = self.bounded_input(&input);
        let extent = |(d, points): (usize, &i64)| Extent { points: *points, expr: input.extent(d) };
        let extents = extents.iter().enumerate().map(extent).collect();
        self.image(bounded, extents, reach)
    }

    /// An input with a random storage order, not sized yet.
    fn new_input(&mut self, ty: Type, rank: usize) -> Input {
        let input = Input::new(format!("in{}", self.inputs.len()), ty, rank);
        if rank >= 2 && self.dice.chance(0.25) {
            let order = self.dice.order(rank);
            return input.stored(order);
        }
        input
    }

    fn bounded_input(&mut self, input: &Input) -> Func {
        let bounded = match self.dice.below(6) {
            0 | 1 => input.repeat_edge(),
            2 => input.repeat_image(),
            3 => input.mirror_image(),
            4 => input.mirror_interior(),
            _ => {
                let outside = Term::constant(input.ty(), self.dice.factor());
                input.constant_exterior(outside.expr)
            }
        };
        let name = self.name("");
        bounded.named(name)
    }

    /// Coefficients with `rank` indices: an input that is sized to its reads.
    pub fn weights(&mut self, ty: Type, rank: usize) -> Image {
        let input = self.new_input(ty, rank);
        self.inputs.push(SizedInput { input: input.clone(), region: None });
        // The extents of coefficients are never used.
        let extents = vec![Extent::fixed(1); rank];
        Image { body: Body::Input(input), extents, reach: vec![input_reach(ty)], total: true }
    }

    /// A scalar: a constant, or a Param with or without a declared range.
    pub fn scalar(&mut self, ty: Type) -> Term {
        let number = if ty.is_int() { self.dice.between(1..=100) as f32 } else { self.dice.factor() };
        let constant = Term::constant(ty, number);
        let value = constant.expr.constant();
        let Some(value) = value.filter(|_| self.dice.chance(0.3)) else { return constant };
        let param = Param::new(format!("p{}", self.params.len()), ty);
        let ends = (Value::rounded(ty, -2.0), Value::rounded(ty, 2.0));
        let param = match ends {
            (Some(low), Some(high)) if self.dice.chance(0.5) => param.range(low, high),
            _ => param,
        };
        self.params.push((param.clone(), value));
        Term::new(Expr::from(&param), ty, constant.reach)
    }

    /// A function of coordinates only.
    pub fn pattern(&mut self) -> Image {
        let rank = 1 + self.dice.below(3);
        let extents: Vec<Extent> = self.extents(rank).into_iter().map(Extent::fixed).collect();
        let at = here(rank);
        let seed = self.dice.between(1..=999) as u32;
        let mut ramp = Expr::from(seed as i32);
        for x in &at {
            ramp = ramp + scaled(x.clone(), self.dice.between(1..=5));
        }
        let value = match self.dice.below(5) {
            0 => Term::new(random_f32(seed, at), Type::F32, 1.0),
            1 => Term::new(random_u32(seed, at), Type::U32, type_reach(Type::U32)),
            2 => Term::index(ramp % 256, 256),
            3 => Term::new(sin(ramp.f32() * 0.125), Type::F32, 1.0),
            _ => {
                let x = (VARS[0] % 32).f32() / 16.0 - 1.0;
                let bump = exp(-(&x * &x));
                Term::new(select((ramp / 2 % 2).eq(0), 1.0 - &bump, bump), Type::F32, 1.0)
            }
        };
        let value = self.settled(value);
        self.define(extents, value)
    }
}

fn is_prime(n: i64) -> bool {
    n >= 2 && (2..).take_while(|d| d * d <= n).all(|d| n % d != 0)
}
