//! Operations on rows of values.
//!
//! A row holds one 32-bit pattern per lane for every type (see [`Scalar`]). An operand that is the
//! same in every lane is passed once.

use warploom_lang::op::{BinaryOp, Op, UnaryOp};
use warploom_lang::scalar::{Arithmetic, Bits, CastFrom, Integer, Scalar};
use warploom_lang::{Type, dispatch, math};

/// One operand of a row operation.
#[derive(Clone, Copy)]
pub enum Lanes<'a> {
    /// The same value in every lane.
    Uniform(u32),
    /// One value per lane.
    Varying(&'a [u32]),
}

/// Applies `op` to rows, lane by lane. `ty` is the type of the last operand, `to` the type of the
/// result.
pub fn apply(op: Op, ty: Type, to: Type, row: &mut [u32], args: &[Lanes<'_>]) {
    match (op, args) {
        (Op::Const(value), _) => row.fill(value.bits()),
        (Op::Unary(op), &[a]) => unary(op, ty, row, a),
        (Op::Binary(op), &[a, b]) => binary(op, ty, row, a, b),
        (Op::Cast(_), &[a]) => dispatch!(ty, S => dispatch!(to, T => {
            map1(row, a, |v: S| <T as CastFrom<S>>::cast_from(v));
        })),
        (Op::SaturatingCast(_), &[a]) => dispatch!(ty, S => dispatch!(to, T => {
            map1(row, a, |v: S| <T as CastFrom<S>>::saturate_from(v));
        })),
        (Op::Reinterpret(_), &[a]) => dispatch!(to, T => {
            map1(row, a, |bits: u32| <T as Scalar>::from_bits(bits));
        }),
        (Op::Select, &[condition, a, b]) => select(row, condition, a, b),
        _ => unreachable!("operands of {} were checked", op.name()),
    }
}

#[inline]
fn map1<A: Scalar, R: Scalar>(row: &mut [u32], a: Lanes<'_>, f: impl Fn(A) -> R) {
    match a {
        Lanes::Uniform(a) => row.fill(f(A::from_bits(a)).to_bits()),
        Lanes::Varying(a) => {
            for (to, a) in row.iter_mut().zip(a) {
                *to = f(A::from_bits(*a)).to_bits();
            }
        }
    }
}

#[inline]
fn map2<A: Scalar, R: Scalar>(row: &mut [u32], a: Lanes<'_>, b: Lanes<'_>, f: impl Fn(A, A) -> R) {
    match (a, b) {
        (Lanes::Varying(a), Lanes::Varying(b)) => {
            for ((to, a), b) in row.iter_mut().zip(a).zip(b) {
                *to = f(A::from_bits(*a), A::from_bits(*b)).to_bits();
            }
        }
        (Lanes::Varying(a), Lanes::Uniform(b)) => {
            let b = A::from_bits(b);
            for (to, a) in row.iter_mut().zip(a) {
                *to = f(A::from_bits(*a), b).to_bits();
            }
        }
        (Lanes::Uniform(a), Lanes::Varying(b)) => {
            let a = A::from_bits(a);
            for (to, b) in row.iter_mut().zip(b) {
                *to = f(a, A::from_bits(*b)).to_bits();
            }
        }
        (Lanes::Uniform(a), Lanes::Uniform(b)) => row.fill(f(A::from_bits(a), A::from_bits(b)).to_bits()),
    }
}

fn select(row: &mut [u32], condition: Lanes<'_>, a: Lanes<'_>, b: Lanes<'_>) {
    let pick = |from: Lanes<'_>, i: usize| match from {
        Lanes::Uniform(value) => value,
        Lanes::Varying(values) => values[i],
    };
    match (condition, a, b) {
        (Lanes::Uniform(condition), a, b) => {
            let chosen = if condition != 0 { a } else { b };
            row.iter_mut().enumerate().for_each(|(i, to)| *to = pick(chosen, i));
        }
        (Lanes::Varying(condition), Lanes::Varying(a), Lanes::Varying(b)) => {
            for (((to, c), a), b) in row.iter_mut().zip(condition).zip(a).zip(b) {
                *to = if *c != 0 { *a } else { *b };
            }
        }
        (Lanes::Varying(condition), a, b) => {
            for (i, (to, c)) in row.iter_mut().zip(condition).enumerate() {
                *to = if *c != 0 { pick(a, i) } else { pick(b, i) };
            }
        }
    }
}

fn unary(op: UnaryOp, ty: Type, row: &mut [u32], a: Lanes<'_>) {
    match ty {
        Type::F32 => float_unary(op, row, a),
        Type::Bool => map1(row, a, |v: bool| Bits::not(v)),
        Type::U8 => int_unary::<u8>(op, row, a),
        Type::U16 => int_unary::<u16>(op, row, a),
        Type::U32 => int_unary::<u32>(op, row, a),
        Type::I8 => int_unary::<i8>(op, row, a),
        Type::I16 => int_unary::<i16>(op, row, a),
        Type::I32 => int_unary::<i32>(op, row, a),
    }
}

fn int_unary<T: Integer>(op: UnaryOp, row: &mut [u32], a: Lanes<'_>) {
    match op {
        UnaryOp::Neg => map1(row, a, T::neg),
        UnaryOp::Abs => map1(row, a, T::abs),
        UnaryOp::Popcount => map1(row, a, T::popcount),
        UnaryOp::LeadingZeros => map1(row, a, T::leading_zeros),
        _ => map1(row, a, T::not),
    }
}

fn float_unary(op: UnaryOp, row: &mut [u32], a: Lanes<'_>) {
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

fn binary(op: BinaryOp, ty: Type, row: &mut [u32], a: Lanes<'_>, b: Lanes<'_>) {
    match ty {
        Type::F32 if op == BinaryOp::Pow => map2(row, a, b, math::pow),
        Type::F32 if op == BinaryOp::Atan2 => map2(row, a, b, math::atan2),
        Type::F32 => arithmetic::<f32>(op, row, a, b),
        Type::Bool => bool_binary(op, row, a, b),
        Type::U8 => int_binary::<u8>(op, row, a, b),
        Type::U16 => int_binary::<u16>(op, row, a, b),
        Type::U32 => int_binary::<u32>(op, row, a, b),
        Type::I8 => int_binary::<i8>(op, row, a, b),
        Type::I16 => int_binary::<i16>(op, row, a, b),
        Type::I32 => int_binary::<i32>(op, row, a, b),
    }
}

fn bool_binary(op: BinaryOp, row: &mut [u32], a: Lanes<'_>, b: Lanes<'_>) {
    match op {
        BinaryOp::And => map2(row, a, b, bool::and),
        BinaryOp::Or => map2(row, a, b, bool::or),
        BinaryOp::Eq => map2(row, a, b, |a: bool, b| a == b),
        _ => map2(row, a, b, bool::xor),
    }
}

fn int_binary<T: Integer>(op: BinaryOp, row: &mut [u32], a: Lanes<'_>, b: Lanes<'_>) {
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

fn arithmetic<T: Arithmetic>(op: BinaryOp, row: &mut [u32], a: Lanes<'_>, b: Lanes<'_>) {
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
