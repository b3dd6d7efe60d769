//! The operations of expressions: typing rules and evaluation on single values.

mod facts;

use serde::{Deserialize, Serialize};

use crate::math;
use crate::scalar::{Arithmetic, CastFrom, Float, Integer, Scalar, dispatch, dispatch_kind};
use crate::types::{Type, Value};

pub use facts::{BinaryOp, Class, Facts, Rounds, Takes, UnaryOp, Unit};

/// An operation on values: everything in an expression that is not a variable, a parameter or an access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// A typed constant, without operands.
    Const(Value),
    /// An operation on one operand.
    Unary(UnaryOp),
    /// An operation on two operands.
    Binary(BinaryOp),
    /// Conversion: integers wrap, floats truncate toward zero and saturate.
    Cast(Type),
    /// Conversion, clamped to the target's range.
    SaturatingCast(Type),
    /// The operand's bits, reinterpreted as another type of the same width.
    Reinterpret(Type),
    /// `condition ? a : b`; both sides are evaluated.
    Select,
}

/// Why operands do not fit an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TypeFault {
    /// Two operands that must have the same type have different types.
    Differ(Type, Type),
    /// The operation is not defined for this type.
    Unsupported(Type),
    /// The number of operands is wrong; holds the number given.
    Count(usize),
}

impl Op {
    /// The number of operands that the operation takes.
    pub fn operands(self) -> usize {
        match self {
            Op::Const(_) => 0,
            Op::Unary(_) | Op::Cast(_) | Op::SaturatingCast(_) | Op::Reinterpret(_) => 1,
            Op::Binary(_) => 2,
            Op::Select => 3,
        }
    }

    /// The name used in messages and listings.
    pub fn name(self) -> &'static str {
        match self {
            Op::Const(_) => "constant",
            Op::Unary(op) => op.name(),
            Op::Binary(op) => op.name(),
            Op::Cast(_) => "cast",
            Op::SaturatingCast(_) => "saturating_cast",
            Op::Reinterpret(_) => "reinterpret",
            Op::Select => "select",
        }
    }

    /// The type of the result, from the types of the operands.
    pub fn result_type(self, operands: &[Type]) -> Result<Type, TypeFault> {
        match (self, operands) {
            (Op::Const(value), []) => Ok(value.ty()),
            (Op::Unary(op), &[a]) => op.facts().result_type(a),
            (Op::Binary(_), &[a, b]) if a != b => Err(TypeFault::Differ(a, b)),
            (Op::Binary(op), &[a, _]) => op.facts().result_type(a),
            (Op::Cast(to) | Op::SaturatingCast(to), &[_]) => Ok(to),
            (Op::Reinterpret(to), &[from]) if to.bytes() != from.bytes() => Err(TypeFault::Differ(from, to)),
            (Op::Reinterpret(to), &[from]) if to == Type::Bool || from == Type::Bool => {
                Err(TypeFault::Unsupported(Type::Bool))
            }
            (Op::Reinterpret(to), &[_]) => Ok(to),
            (Op::Select, &[condition, _, _]) if condition != Type::Bool => {
                Err(TypeFault::Unsupported(condition))
            }
            (Op::Select, &[_, a, b]) if a != b => Err(TypeFault::Differ(a, b)),
            (Op::Select, &[_, a, _]) => Ok(a),
            _ => Err(TypeFault::Count(operands.len())),
        }
    }

    /// The functional unit that computes the operation and so determines its cost; `None` if it is free. `operand` is
    /// the type of its last operand.
    pub fn class(self, operand: Type, result: Type) -> Option<Class> {
        let float = operand.is_float();
        match self {
            Op::Const(_) | Op::Reinterpret(_) => None,
            Op::Cast(_) | Op::SaturatingCast(_) if operand == result => None,
            Op::Cast(_) | Op::SaturatingCast(_) if float || result.is_float() => Some(Class::Convert),
            Op::Cast(_) | Op::SaturatingCast(_) => Some(Class::IntAdd),
            Op::Select => Some(Class::Select),
            Op::Unary(op) => Some(op.facts().unit.class(float)),
            Op::Binary(op) => Some(op.facts().unit.class(float)),
        }
    }

    /// How the timing build rounds the operation on floats of at most 32 bits.
    pub fn rounds(self) -> Rounds {
        match self {
            Op::Unary(op) => op.facts().rounds,
            Op::Binary(op) => op.facts().rounds,
            Op::Const(_) | Op::Cast(_) | Op::SaturatingCast(_) | Op::Reinterpret(_) | Op::Select => {
                Rounds::Alike
            }
        }
    }

    /// Computes the operation. The operands must have types that [`Op::result_type`] accepts.
    pub fn eval(self, operands: &[Value]) -> Value {
        match (self, operands) {
            (Op::Const(value), _) => value,
            (Op::Unary(op), &[a]) => op.eval(a),
            (Op::Binary(op), &[a, b]) => op.eval(a, b),
            (Op::Cast(to), &[a]) => dispatch!(a.ty(), S => {
                let source = <S as Scalar>::from_word(a.bits());
                dispatch!(to, T => Value::from(<T as CastFrom<S>>::cast_from(source)))
            }),
            (Op::SaturatingCast(to), &[a]) => dispatch!(a.ty(), S => {
                let source = <S as Scalar>::from_word(a.bits());
                dispatch!(to, T => Value::from(<T as CastFrom<S>>::saturate_from(source)))
            }),
            (Op::Reinterpret(to), &[a]) => dispatch!(a.ty(), S => {
                Value::from_bits(to, <S as Scalar>::from_word(a.bits()).seen())
            }),
            (Op::Select, &[condition, a, b]) => {
                if condition.bits() != 0 {
                    a
                } else {
                    b
                }
            }
            _ => unreachable!("operands of {} were checked", self.name()),
        }
    }
}

impl UnaryOp {
    /// The operation on an `f32`, if its result is one.
    #[inline]
    pub fn float(self, a: f32) -> f32 {
        match self {
            UnaryOp::Neg => Arithmetic::neg(a),
            UnaryOp::Abs => Arithmetic::abs(a),
            UnaryOp::Sqrt => a.sqrt(),
            UnaryOp::Exp => math::exp(a),
            UnaryOp::Log => math::log(a),
            UnaryOp::Sin => math::sin(a),
            UnaryOp::Cos => math::cos(a),
            UnaryOp::Tanh => math::tanh(a),
            UnaryOp::Floor => a.floor(),
            UnaryOp::Ceil => a.ceil(),
            UnaryOp::Round => a.round_ties_even(),
            UnaryOp::FastExp => math::fast_exp(a),
            UnaryOp::Atan => math::atan(a),
            UnaryOp::Asin => math::asin(a),
            UnaryOp::Acos => math::acos(a),
            UnaryOp::Tan => math::tan(a),
            UnaryOp::Rsqrt => math::rsqrt(a),
            UnaryOp::Erf => math::erf(a),
            UnaryOp::Log1p => math::log1p(a),
            UnaryOp::Expm1 => math::expm1(a),
            UnaryOp::Exp2 => math::exp2(a),
            UnaryOp::Log2 => math::log2(a),
            UnaryOp::Not | UnaryOp::IsNan | UnaryOp::Popcount | UnaryOp::LeadingZeros => {
                unreachable!("{} gives no float", self.name())
            }
        }
    }

    /// The operation on an `f64`.
    #[inline]
    pub fn double(self, a: f64) -> f64 {
        match self {
            UnaryOp::Neg => Arithmetic::neg(a),
            UnaryOp::Abs => Arithmetic::abs(a),
            UnaryOp::Sqrt => a.sqrt(),
            UnaryOp::Exp => math::double::exp(a),
            UnaryOp::Log => math::double::log(a),
            UnaryOp::Sin => math::double::sin(a),
            UnaryOp::Cos => math::double::cos(a),
            UnaryOp::Tanh => math::double::tanh(a),
            UnaryOp::Floor => a.floor(),
            UnaryOp::Ceil => a.ceil(),
            UnaryOp::Round => a.round_ties_even(),
            _ => unreachable!("{} is not defined on f64", self.name()),
        }
    }

    fn eval(self, a: Value) -> Value {
        let word = a.bits();
        dispatch_kind!(a.ty(),
            bool => Value::from(word == 0),
            F => self.eval_float(<F as Scalar>::from_word(word)),
            I => self.eval_int(<I as Scalar>::from_word(word)))
    }

    fn eval_float<T: Float>(self, a: T) -> Value {
        match self {
            UnaryOp::IsNan => Value::from(a.is_nan()),
            _ => Value::from(a.function(self)),
        }
    }

    fn eval_int<T: Integer>(self, a: T) -> Value {
        match self {
            UnaryOp::Neg => Value::from(a.neg()),
            UnaryOp::Abs => Value::from(a.abs()),
            UnaryOp::Popcount => Value::from(a.popcount()),
            UnaryOp::LeadingZeros => Value::from(a.leading_zeros()),
            _ => Value::from(a.not()),
        }
    }
}

impl BinaryOp {
    fn eval(self, a: Value, b: Value) -> Value {
        let (left, right) = (a.bits(), b.bits());
        dispatch_kind!(a.ty(),
            bool => self.eval_bool(left != 0, right != 0),
            F => self.eval_float(<F as Scalar>::from_word(left), <F as Scalar>::from_word(right)),
            I => self.eval_int(<I as Scalar>::from_word(left), <I as Scalar>::from_word(right)))
    }

    fn eval_float<T: Float>(self, a: T, b: T) -> Value {
        match self {
            BinaryOp::Pow => Value::from(a.power(b)),
            BinaryOp::Atan2 => Value::from(a.angle(b)),
            _ => self.eval_arithmetic(a, b),
        }
    }

    fn eval_bool(self, a: bool, b: bool) -> Value {
        Value::from(match self {
            BinaryOp::And => a & b,
            BinaryOp::Or => a | b,
            BinaryOp::Eq => a == b,
            BinaryOp::Xor | BinaryOp::Ne => a ^ b,
            _ => unreachable!("{} is not defined on bool", self.name()),
        })
    }

    fn eval_int<T: Integer>(self, a: T, b: T) -> Value {
        match self {
            BinaryOp::Average => Value::from(a.average(b)),
            BinaryOp::And => Value::from(a.and(b)),
            BinaryOp::Or => Value::from(a.or(b)),
            BinaryOp::Xor => Value::from(a.xor(b)),
            BinaryOp::Shl => Value::from(a.shl(b)),
            BinaryOp::Shr => Value::from(a.shr(b)),
            _ => self.eval_arithmetic(a, b),
        }
    }

    fn eval_arithmetic<T: Arithmetic>(self, a: T, b: T) -> Value {
        match self {
            BinaryOp::Add => Value::from(a.add(b)),
            BinaryOp::Sub => Value::from(a.sub(b)),
            BinaryOp::Mul => Value::from(a.mul(b)),
            BinaryOp::Div => Value::from(a.div(b)),
            BinaryOp::Mod => Value::from(a.rem(b)),
            BinaryOp::Min => Value::from(a.min(b)),
            BinaryOp::Max => Value::from(a.max(b)),
            BinaryOp::Absd => Value::from(a.absd(b)),
            BinaryOp::Eq => Value::from(a == b),
            BinaryOp::Ne => Value::from(a != b),
            BinaryOp::Lt => Value::from(a < b),
            BinaryOp::Le => Value::from(a <= b),
            _ => unreachable!("{} is not arithmetic", self.name()),
        }
    }
}
