//! Operations on rows of values.
//!
//! A row holds one pattern per lane: of 64 bits for types of that width, of 32 bits for all others
//! (see [`Scalar`]). An operand that is the same in every lane is passed once.

use warploom_lang::op::{BinaryOp, Op, UnaryOp};
use warploom_lang::scalar::{Arithmetic, Bits, CastFrom, Float, Integer, Scalar, Word};
use warploom_lang::{Type, dispatch, dispatch_kind, math};

/// One operand of a row operation.
#[derive(Clone, Copy)]
pub enum Lanes<'a> {
    /// The same value in every lane.
    Uniform(u64),
    /// One value per lane.
    Varying(&'a [u32]),
    /// One value of 64 bits per lane.
    Wide(&'a [u64]),
}

impl Lanes<'_> {
    /// The pattern in one lane.
    #[inline]
    pub fn get(self, lane: usize) -> u64 {
        match self {
            Lanes::Uniform(value) => value,
            Lanes::Varying(values) => values[lane].wide(),
            Lanes::Wide(values) => values[lane],
        }
    }
}

/// The result of a row operation.
#[derive(Debug)]
pub enum Row<'a> {
    /// Patterns of 32 bits.
    Narrow(&'a mut [u32]),
    /// Patterns of 64 bits.
    Wide(&'a mut [u64]),
}

/// An operand with patterns of one width.
enum Operand<'a, W> {
    Uniform(W),
    Varying(&'a [W]),
}

/// A pattern that rows hold.
pub trait Lane: Word {
    /// The lanes of a result, which has this width.
    fn row<'a>(row: Row<'a>) -> &'a mut [Self];
    /// The lanes of an operand that varies, if it has this width.
    fn varying(lanes: Lanes<'_>) -> Option<&[Self]>;
}

impl Lane for u32 {
    #[inline]
    fn row<'a>(row: Row<'a>) -> &'a mut [u32] {
        match row {
            Row::Narrow(row) => row,
            Row::Wide(_) => unreachable!("a row has the width of its type"),
        }
    }

    #[inline]
    fn varying(lanes: Lanes<'_>) -> Option<&[u32]> {
        if let Lanes::Varying(lanes) = lanes { Some(lanes) } else { None }
    }
}

impl Lane for u64 {
    #[inline]
    fn row<'a>(row: Row<'a>) -> &'a mut [u64] {
        match row {
            Row::Wide(row) => row,
            Row::Narrow(_) => unreachable!("a row has the width of its type"),
        }
    }

    #[inline]
    fn varying(lanes: Lanes<'_>) -> Option<&[u64]> {
        if let Lanes::Wide(lanes) = lanes { Some(lanes) } else { None }
    }
}

#[inline]
fn source<W: Lane>(lanes: Lanes<'_>) -> Operand<'_, W> {
    match (lanes, W::varying(lanes)) {
        (_, Some(lanes)) => Operand::Varying(lanes),
        (Lanes::Uniform(bits), None) => Operand::Uniform(W::narrow(bits)),
        _ => unreachable!("an operand has the width of its type"),
    }
}

/// Applies `op` to rows, lane by lane. `ty` is the type of the last operand, `to` the type of the
/// result.
pub fn apply(op: Op, ty: Type, to: Type, row: Row<'_>, args: &[Lanes<'_>]) {
    match (op, args) {
        (Op::Const(value), _) => match row {
            Row::Narrow(row) => row.fill(value.bits() as u32),
            Row::Wide(row) => row.fill(value.bits()),
        },
        (Op::Unary(op), &[a]) => unary(op, ty, row, a),
        (Op::Binary(op), &[a, b]) => binary(op, ty, row, a, b),
        (Op::Cast(_), &[a]) => dispatch!(ty, S => dispatch!(to, T => {
            map1(row, a, |v: S| <T as CastFrom<S>>::cast_from(v));
        })),
        (Op::SaturatingCast(_), &[a]) => dispatch!(ty, S => dispatch!(to, T => {
            map1(row, a, |v: S| <T as CastFrom<S>>::saturate_from(v));
        })),
        (Op::Reinterpret(_), &[a]) => dispatch!(ty, S => dispatch!(to, T => {
            map1(row, a, |v: S| <T as Scalar>::from_word(v.seen()));
        })),
        (Op::Select, &[condition, a, b]) => match row {
            Row::Narrow(row) => select(row, condition, a, b),
            Row::Wide(row) => select(row, condition, a, b),
        },
        _ => unreachable!("operands of {} were checked", op.name()),
    }
}

#[inline]
fn map1<A, R>(row: Row<'_>, a: Lanes<'_>, f: impl Fn(A) -> R)
where
    A: Scalar<Bits: Lane>,
    R: Scalar<Bits: Lane>,
{
    let row = R::Bits::row(row);
    match source::<A::Bits>(a) {
        Operand::Uniform(a) => row.fill(f(A::from_bits(a)).to_bits()),
        Operand::Varying(a) => {
            for (to, a) in row.iter_mut().zip(a) {
                *to = f(A::from_bits(*a)).to_bits();
            }
        }
    }
}

#[inline]
fn map2<A, R>(row: Row<'_>, a: Lanes<'_>, b: Lanes<'_>, f: impl Fn(A, A) -> R)
where
    A: Scalar<Bits: Lane>,
    R: Scalar<Bits: Lane>,
{
    let row = R::Bits::row(row);
    match (source::<A::Bits>(a), source::<A::Bits>(b)) {
        (Operand::Varying(a), Operand::Varying(b)) => {
            for ((to, a), b) in row.iter_mut().zip(a).zip(b) {
                *to = f(A::from_bits(*a), A::from_bits(*b)).to_bits();
            }
        }
        (Operand::Varying(a), Operand::Uniform(b)) => {
            let b = A::from_bits(b);
            for (to, a) in row.iter_mut().zip(a) {
                *to = f(A::from_bits(*a), b).to_bits();
            }
        }
        (Operand::Uniform(a), Operand::Varying(b)) => {
            let a = A::from_bits(a);
            for (to, b) in row.iter_mut().zip(b) {
                *to = f(a, A::from_bits(*b)).to_bits();
            }
        }
        (Operand::Uniform(a), Operand::Uniform(b)) => row.fill(f(A::from_bits(a), A::from_bits(b)).to_bits()),
    }
}

fn select<W: Lane>(row: &mut [W], condition: Lanes<'_>, a: Lanes<'_>, b: Lanes<'_>) {
    let pick = |from: &Operand<'_, W>, i: usize| match from {
        Operand::Uniform(value) => *value,
        Operand::Varying(values) => values[i],
    };
    match (source::<u32>(condition), source::<W>(a), source::<W>(b)) {
        (Operand::Uniform(condition), a, b) => {
            let chosen = if condition != 0 { a } else { b };
            row.iter_mut().enumerate().for_each(|(i, to)| *to = pick(&chosen, i));
        }
        (Operand::Varying(condition), Operand::Varying(a), Operand::Varying(b)) => {
            for (((to, c), a), b) in row.iter_mut().zip(condition).zip(a).zip(b) {
                *to = if *c != 0 { *a } else { *b };
            }
        }
        (Operand::Varying(condition), a, b) => {
            for (i, (to, c)) in row.iter_mut().zip(condition).enumerate() {
                *to = if *c != 0 { pick(&a, i) } else { pick(&b, i) };
            }
        }
    }
}

fn unary(op: UnaryOp, ty: Type, row: Row<'_>, a: Lanes<'_>) {
    if ty == Type::F32 {
        return single_unary(op, row, a);
    }
    dispatch_kind!(ty,
        bool => map1(row, a, |v: bool| Bits::not(v)),
        F => match op {
            UnaryOp::IsNan => map1(row, a, |v: F| Float::is_nan(v)),
            _ => map1(row, a, |v: F| v.function(op)),
        },
        I => int_unary::<I>(op, row, a))
}

fn int_unary<T: Integer<Bits: Lane>>(op: UnaryOp, row: Row<'_>, a: Lanes<'_>) {
    match op {
        UnaryOp::Neg => map1(row, a, T::neg),
        UnaryOp::Abs => map1(row, a, T::abs),
        UnaryOp::Popcount => map1(row, a, T::popcount),
        UnaryOp::LeadingZeros => map1(row, a, T::leading_zeros),
        _ => map1(row, a, T::not),
    }
}

fn single_unary(op: UnaryOp, row: Row<'_>, a: Lanes<'_>) {
    // One loop per operation, so that the cheap ones are vectorised.
    match op {
        UnaryOp::Neg => map1(row, a, |v: f32| Arithmetic::neg(v)),
        UnaryOp::Abs => map1(row, a, |v: f32| Arithmetic::abs(v)),
        UnaryOp::Sqrt => map1(row, a, f32::sqrt),
        UnaryOp::Exp => map1(row, a, math::exp),
        UnaryOp::FastExp => map1(row, a, math::fast_exp),
        UnaryOp::Floor => map1(row, a, f32::floor),
        UnaryOp::IsNan => map1(row, a, f32::is_nan),
        other => map1(row, a, |v: f32| other.float(v)),
    }
}

fn binary(op: BinaryOp, ty: Type, row: Row<'_>, a: Lanes<'_>, b: Lanes<'_>) {
    dispatch_kind!(ty,
        bool => bool_binary(op, row, a, b),
        F => float_binary::<F>(op, row, a, b),
        I => int_binary::<I>(op, row, a, b))
}

fn float_binary<T: Float<Bits: Lane, Distance: Scalar<Bits: Lane>>>(
    op: BinaryOp,
    row: Row<'_>,
    a: Lanes<'_>,
    b: Lanes<'_>,
) {
    match op {
        BinaryOp::Pow => map2(row, a, b, T::power),
        BinaryOp::Atan2 => map2(row, a, b, T::angle),
        _ => arithmetic::<T>(op, row, a, b),
    }
}

fn bool_binary(op: BinaryOp, row: Row<'_>, a: Lanes<'_>, b: Lanes<'_>) {
    match op {
        BinaryOp::And => map2(row, a, b, bool::and),
        BinaryOp::Or => map2(row, a, b, bool::or),
        BinaryOp::Eq => map2(row, a, b, |a: bool, b| a == b),
        _ => map2(row, a, b, bool::xor),
    }
}

fn int_binary<T: Integer<Bits: Lane, Distance: Scalar<Bits: Lane>>>(
    op: BinaryOp,
    row: Row<'_>,
    a: Lanes<'_>,
    b: Lanes<'_>,
) {
    match op {
        BinaryOp::Average => map2(row, a, b, T::average),
        BinaryOp::And => map2(row, a, b, T::and),
        BinaryOp::Or => map2(row, a, b, T::or),
        BinaryOp::Xor => map2(row, a, b, T::xor),
        BinaryOp::Shl => map2(row, a, b, T::shl),
        BinaryOp::Shr => map2(row, a, b, T::shr),
        _ => arithmetic::<T>(op, row, a, b),
    }
}

fn arithmetic<T: Arithmetic<Bits: Lane, Distance: Scalar<Bits: Lane>>>(
    op: BinaryOp,
    row: Row<'_>,
    a: Lanes<'_>,
    b: Lanes<'_>,
) {
    match op {
        BinaryOp::Add => map2(row, a, b, T::add),
        BinaryOp::Sub => map2(row, a, b, T::sub),
        BinaryOp::Mul => map2(row, a, b, T::mul),
        BinaryOp::Div => map2(row, a, b, T::div),
        BinaryOp::Mod => map2(row, a, b, T::rem),
        BinaryOp::Min => map2(row, a, b, T::min),
        BinaryOp::Max => map2(row, a, b, T::max),
        BinaryOp::Absd => map2(row, a, b, T::absd),
        BinaryOp::Eq => map2(row, a, b, |a: T, b| a == b),
        BinaryOp::Ne => map2(row, a, b, |a: T, b| a != b),
        BinaryOp::Lt => map2(row, a, b, |a: T, b| a < b),
        BinaryOp::Le => map2(row, a, b, |a: T, b| a <= b),
        _ => unreachable!("{} is not arithmetic", op.name()),
    }
}
