//! Terms: expressions with a type and an approximate magnitude.

use warploom_lang::{
    Expr, Operand, Type, Value, abs, absd, acos, asin, atan, atan2, average, ceil, clamp, cos, erf, exp,
    exp2, expm1, fast_exp, floor, is_nan, leading_zeros, lerp, log, log1p, log2, max, min, popcount, pow,
    round, rsqrt, select, sin, sqrt, tan, tanh,
};

use crate::dice::Dice;

/// Floats above this magnitude are scaled down, so that chains of stages neither overflow nor
/// saturate.
const CALM: f32 = 64.0;

/// An expression with its type and magnitude.
///
/// Constants are computed from `reach` with exact operations only (no platform-dependent
/// logarithm), so that a seed gives the same pipeline on every machine.
#[derive(Clone)]
pub struct Term {
    pub expr: Expr,
    pub ty: Type,
    /// The approximate largest magnitude of its values: an estimate that keeps conversions from
    /// losing all information.
    pub reach: f32,
}

/// The largest integers and floats that are converted to `f16` unscaled.
const HALF: f32 = 1024.0;

/// The largest magnitude of a type's values.
pub fn type_reach(ty: Type) -> f32 {
    match ty {
        Type::F16 => 65504.0,
        _ => ty.int_range().map_or(f32::MAX, |(_, high)| high as f32),
    }
}

/// The float of a type that is nearest to a number.
pub fn float(ty: Type, number: f32) -> Expr {
    Value::rounded(ty, number.into()).unwrap_or(Value::zero(ty)).into()
}

impl Term {
    /// A term. The magnitude is limited to the range of its type.
    pub fn new(expr: Expr, ty: Type, reach: f32) -> Term {
        Term { expr, ty, reach: reach.min(type_reach(ty)) }
    }

    /// A constant of about this magnitude. Integers are positive, or 0 if the type cannot hold the
    /// number.
    pub fn constant(ty: Type, number: f32) -> Term {
        let whole = number.abs().max(1.0) as i64;
        let value = match ty {
            _ if ty.is_float() => Value::rounded(ty, number.into()).unwrap_or(Value::zero(ty)),
            Type::Bool => Value::from(number > 0.5),
            _ => Value::from_int(ty, whole).unwrap_or(Value::zero(ty)),
        };
        Term::new(value.into(), ty, number.abs().max(1.0))
    }

    /// A coordinate or count of at most `points`.
    pub fn index(expr: Expr, points: i64) -> Term {
        Term::new(expr, Type::I32, points.max(1) as f32)
    }

    /// The same values, scaled down if they are large floats.
    pub fn calm(self) -> Term {
        if !self.ty.is_float() || self.reach <= CALM {
            return self;
        }
        let mut factor = 0.5;
        while self.reach * factor > CALM {
            factor *= 0.5;
        }
        Term::new(self.expr * factor, self.ty, self.reach * factor)
    }

    /// Converts so that values stay distinct: floats are stretched over an integer's range, and
    /// integers wrap.
    pub fn to(self, ty: Type) -> Term {
        if ty == self.ty {
            return self;
        }
        if ty == Type::F16 && self.reach > HALF {
            return self.float().to(ty);
        }
        let Term { expr, ty: from, reach } = self;
        match (from, ty) {
            (_, Type::Bool) if from.is_float() => Term::new(expr.gt(float(from, reach * 0.25)), ty, 1.0),
            _ if from.is_float() && ty.is_float() => Term::new(expr.cast(ty), ty, reach),
            _ if from.is_float() => {
                let reach = reach.max(if from.is_half() { 1e-2 } else { 1e-6 });
                let target = type_reach(ty).min(1000.0);
                let scaled = if reach < 100.0 { expr * float(from, target / reach) } else { expr };
                let whole = if ty.is_wide() { scaled.i64() } else { scaled.i32() };
                Term::new(if whole.ty() == Some(ty) { whole } else { whole.cast(ty) }, ty, target.max(reach))
            }
            (Type::Bool, _) => Term::new(expr.cast(ty), ty, 1.0),
            (_, Type::Bool) => Term::new((expr & 1).ne(0), ty, 1.0),
            _ if ty.is_float() => Term::new(expr.cast(ty), ty, reach).calm(),
            _ => Term::new(expr.cast(ty), ty, reach),
        }
    }

    /// Converts with a random conversion of the language.
    pub fn converted(self, dice: &mut Dice, ty: Type) -> Term {
        let whole = self.ty.is_int() && ty.is_int() && self.ty != ty;
        match dice.below(3) {
            0 if whole => Term::new(self.expr.saturating_cast(ty), ty, self.reach),
            1 if whole && self.ty.bytes() == ty.bytes() => {
                Term::new(self.expr.reinterpret(ty), ty, type_reach(ty))
            }
            _ => self.to(ty),
        }
    }

    /// Converts to a type that is ordered and can be summed: booleans become 0 and 1.
    pub fn number(self) -> Term {
        if self.ty == Type::Bool { self.to(Type::U8) } else { self }
    }

    /// Converts to an `f32` of moderate magnitude.
    pub fn float(self) -> Term {
        self.to(Type::F32).calm()
    }

    /// The same term if it is a float of any type, otherwise an `f32`; of moderate magnitude.
    pub fn floating(self) -> Term {
        if self.ty.is_float() { self.calm() } else { self.float() }
    }

    /// Converts to a number from 0 to `count - 1`.
    pub fn bin(self, binning: Binning, count: i64) -> Expr {
        let index = self.index_of(binning, count);
        if index.ty() == Some(Type::I32) { index } else { index.i32() }
    }

    /// Converts to an index from 0 to `count - 1`; integers of 64 bits keep their type.
    pub fn index_of(self, binning: Binning, count: i64) -> Expr {
        let count = count as i32;
        let indexed = |whole: Expr, ty: Type| if ty.is_wide() { whole } else { whole.i32() };
        let whole = match self.ty {
            ty if ty.is_float() => {
                let reach = self.reach.max(if ty.is_half() { 1e-2 } else { 1e-6 });
                (self.expr * float(ty, count as f32 / reach)).i32()
            }
            // Without the shift, large integers would all fall outside the table.
            ty if ty.is_int() && self.reach > 2.0 * count as f32 => {
                indexed(self.expr >> (self.reach as u64 / count as u64).ilog2() as i32, ty)
            }
            ty => indexed(self.expr, ty),
        };
        match binning {
            Binning::Clamp => clamp(whole, 0, count - 1),
            Binning::Wrap => whole % count,
            Binning::Fold => clamp(abs(whole), 0, count - 1),
        }
    }
}

/// How values are mapped to table indices.
#[derive(Clone, Copy)]
pub enum Binning {
    /// Values outside the table use its first or last entry.
    Clamp,
    /// Values wrap around modulo the table size.
    Wrap,
    /// Negative values are mapped to their absolute value.
    Fold,
}

impl Binning {
    pub const ALL: [Binning; 3] = [Binning::Clamp, Binning::Wrap, Binning::Fold];
}

/// A random expression in which every term appears.
pub fn combine(dice: &mut Dice, functions: f64, mut terms: Vec<Term>) -> Term {
    while terms.len() > 1 {
        // Pick any two, so that the tree is neither balanced nor a chain.
        let at = dice.below(terms.len());
        let a = terms.swap_remove(at);
        let at = dice.below(terms.len());
        let b = terms.swap_remove(at);
        terms.push(pair(dice, a, b));
    }
    let Some(term) = terms.pop() else { return Term::constant(Type::F32, dice.factor()) };
    if dice.chance(0.15 * functions) { function(dice, term) } else { term }
}

/// One of the two types, or a wider one.
fn common_type(dice: &mut Dice, a: Type, b: Type) -> Type {
    match (a, b) {
        (Type::Bool, other) | (other, Type::Bool) => other,
        _ if a == b => a,
        _ if a.is_float() && b.is_float() => dice.pick(&[a, b]),
        _ if a.is_float() => a,
        _ if b.is_float() => b,
        _ => dice.pick(&[a, b, Type::I32]),
    }
}

/// A random operation on two terms.
pub fn pair(dice: &mut Dice, a: Term, b: Term) -> Term {
    let ty = common_type(dice, a.ty, b.ty);
    let (a, b) = (a.to(ty), b.to(ty));
    match ty {
        Type::Bool => pair_of_bools(dice, a, b),
        // Products of large numbers overflow.
        _ if ty.is_half() => pair_of_floats(dice, a.calm(), b.calm()),
        _ if ty.is_float() => pair_of_floats(dice, a, b),
        _ => pair_of_ints(dice, a, b),
    }
}

fn pair_of_bools(dice: &mut Dice, a: Term, b: Term) -> Term {
    let expr = match dice.below(4) {
        0 => a.expr & b.expr,
        1 => a.expr | b.expr,
        2 => !(a.expr & b.expr),
        _ => a.expr ^ b.expr,
    };
    Term::new(expr, Type::Bool, 1.0)
}

fn pair_of_floats(dice: &mut Dice, a: Term, b: Term) -> Term {
    let (Term { expr: a, ty, reach: ra }, Term { expr: b, reach: rb, .. }) = (a, b);
    let (larger, sum) = (ra.max(rb), ra + rb);
    let (expr, reach) = match dice.below(13) {
        0 | 1 => (a + b, sum),
        2 => (a - b, sum),
        3 => (a * dice.factor() + b * dice.factor(), 1.5 * sum),
        4 => (a * b * float(ty, 1.0 / rb.max(1e-3)), ra),
        5 => (min(a, b), larger),
        6 => (max(a, b), larger),
        // Occasionally the divisor may be zero.
        7 if dice.chance(0.05) => (a / b, ra),
        7 => (a / (abs(b) + 1.0), ra),
        8 => (a % (abs(b) + 0.5), rb + 0.5),
        9 => (absd(a, b), sum),
        10 => (lerp(a, b, float(ty, dice.between(1..=15) as f32 / 16.0)), larger),
        // Away from the half line on which the angle jumps.
        11 if ty != Type::F64 => (atan2(a, abs(b) + 0.125), 1.5),
        _ => (select(a.lt(&b), &a * 2.0, b - 0.5 * a), 2.0 * larger),
    };
    Term::new(expr, ty, reach).calm()
}

fn pair_of_ints(dice: &mut Dice, a: Term, b: Term) -> Term {
    let (ty, larger, sum) = (a.ty, a.reach.max(b.reach), a.reach + b.reach);
    let product = a.reach * b.reach;
    let (a, b) = (a.expr, b.expr);
    let (expr, reach) = match dice.below(15) {
        0 | 1 => (a + b, sum),
        2 => (a - b, sum),
        3 | 4 => (a * b, product),
        5 => (min(a, b), larger),
        6 => (max(a, b), larger),
        7 => (a / ((b & 7) + 1), larger),
        8 => (a % ((b & 31) + 3), 34.0),
        9 => (absd(a, b).cast(ty), sum),
        10 => (average(a, b), larger),
        11 => (dice.pick(&[&a & &b, &a | &b, &a ^ &b]), larger),
        12 => ((a << dice.between(1..=3) as i32) + (b >> dice.between(1..=3) as i32), 9.0 * larger),
        13 => (popcount(a) + leading_zeros(b), 32.0),
        _ => (select(a.lt(&b), &a + 1, b - a), sum),
    };
    Term::new(expr, ty, reach)
}

/// An elementary function of a term, which is first mapped into the function's domain.
pub fn function(dice: &mut Dice, term: Term) -> Term {
    let Term { expr, ty, reach } = term.floating();
    // Most functions are flat far from 0.
    let (v, reach) = if reach > 4.0 { (expr * float(ty, 4.0 / reach), 4.0) } else { (expr, reach) };
    let inside = |v: Expr| clamp(v * 0.25, -1.0, 1.0);
    let kind = match dice.below(24) {
        // `f64` has fewer functions.
        kind @ (6 | 11..=20 | 23) if ty == Type::F64 => kind % 6,
        kind => kind,
    };
    let (expr, reach) = match kind {
        0 => (sqrt(abs(v)), reach.sqrt()),
        1 => (exp(min(v, 8.0) * 0.25), 8.0),
        2 => (log(abs(v) + 1.0), reach.min(2.0)),
        3 => (sin(v), 1.0),
        4 => (cos(v * 0.5), 1.0),
        5 => (tanh(v), 1.0),
        6 => (fast_exp(min(-abs(v), 0.0)), 1.0),
        7 => (pow(abs(v) + 0.125, float(ty, dice.pick(&[0.5, 1.5, 2.2]))), (reach + 0.125) * (reach + 0.125)),
        8 => (floor(v * 8.0) * 0.125, reach),
        9 => (round(v * 4.0), 4.0 * reach),
        10 => (ceil(v * 2.0), 2.0 * reach),
        11 => (atan(v), 1.5),
        12 => (asin(inside(v)), 1.5),
        13 => (acos(inside(v)), 3.0),
        14 => (tan(v * 0.25), 1.5),
        15 => (rsqrt(abs(v) + 0.125), 3.0),
        16 => (erf(v), 1.0),
        17 => (log1p(abs(v)), reach.min(2.0)),
        18 => (expm1(min(v, 2.0)), 6.0),
        19 => (exp2(min(v, 4.0) * 0.5), 4.0),
        20 => (log2(abs(v) + 0.5), 3.0),
        21 => (select(is_nan(&v), float(ty, 0.5), v), reach),
        22 => (popcount((v * 16.0).i32()).cast(ty), 8.0),
        _ => (1.0 / (1.0 + fast_exp(-v)), 1.0),
    };
    Term::new(expr, ty, reach.max(1e-3)).calm()
}
