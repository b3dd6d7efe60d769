//! The table of operations: one row per operation with its name, the types of its operands and result, its functional
//! unit, and its rounding in the timing build.
//!
//! The table holds every one-word property of an operation. Its value is a function ([`Op::eval`](super::Op::eval)),
//! and so is each analysis of it.

use serde::{Deserialize, Serialize};

use super::TypeFault;
use crate::types::Type;

/// The properties of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// The name used in messages and listings.
    pub name: &'static str,
    /// The type of its operands, which is the same for all.
    pub takes: Takes,
    /// The type of its result.
    gives: Gives,
    /// The functional unit that computes it.
    pub unit: Unit,
    /// How the timing build rounds it on floats of at most 32 bits.
    pub rounds: Rounds,
}

/// Sets of types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// All types.
    Any,
    /// All but `bool`.
    Numbers,
    /// Floats.
    Floats,
    /// Floats of at most 32 bits: functions that are defined in binary32 alone.
    Singles,
    /// Integers.
    Ints,
    /// Integers and `bool`.
    Bits,
}

/// The type of a result as a function of the operands' type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Gives {
    Same,
    Unsigned,
    Bool,
}

/// A kind of functional unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Sums, signs, logic, shifts.
    Add,
    /// Products.
    Mul,
    /// Quotients and remainders.
    Div,
    /// Square roots.
    Root,
    /// Elementary functions.
    Special,
    /// Comparisons, minima and maxima.
    Compare,
    /// Rounding to integers.
    Convert,
}

/// Operations with the same cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Floats of any width: addition, subtraction, absolute difference, negation, absolute value.
    FloatAdd,
    /// Floats of any width: multiplication.
    FloatMul,
    /// Floats of any width: division, remainder.
    FloatDiv,
    /// Floats of any width: square root.
    FloatRoot,
    /// Floats of any width: exponential, sine and all other functions.
    FloatSpecial,
    /// Floats of any width: comparison, minimum, maximum.
    FloatCompare,
    /// Conversion between float and integer or Boolean; rounding to an integral float.
    Convert,
    /// Selection by a condition, of any type.
    Select,
    /// Integers and Booleans: addition, subtraction, sign, average, logic, shift, change of width.
    IntAdd,
    /// Integers: multiplication.
    IntMul,
    /// Integers: division, remainder.
    IntDiv,
    /// Integers and Booleans: comparison, minimum, maximum.
    IntCompare,
}

impl Class {
    /// The number of classes.
    pub const COUNT: usize = Class::IntCompare as usize + 1;
}

/// How the timing build rounds an operation. The errors come from the CUDA programming guide; where its versions differ, the
/// larger value is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounds {
    /// As in the checking build.
    Alike,
    /// It may be fused with an operand that is a product.
    Fused,
    /// With an error of up to this many units in the last place.
    Ulps(u32),
    /// As [`Rounds::Ulps`], but exact for divisors that are powers of two.
    Quotient(u32),
    /// `a - b * floor(a / b)`, from an inexact quotient and a product that may be fused.
    Remainder,
    /// The hardware's exponential.
    FastExp,
}

macro_rules! operations {
    // The columns: name, text, operands, result, unit, rounding.
    ($($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $op:ident
        $text:literal $takes:ident $gives:ident $unit:ident $rounds:ident $(($ulps:literal))?;)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name {
            $($(#[$about])* $op,)*
        }

        impl $name {
            /// All operations of this kind.
            pub const ALL: &[$name] = &[$($name::$op),*];

            const FACTS: &[Facts] = &[$(Facts {
                name: $text,
                takes: Takes::$takes,
                gives: Gives::$gives,
                unit: Unit::$unit,
                rounds: Rounds::$rounds $(($ulps))?,
            }),*];

            /// Its row of the table.
            #[inline]
            pub fn facts(self) -> &'static Facts {
                &Self::FACTS[self as usize]
            }

            /// The name used in messages and listings.
            pub fn name(self) -> &'static str {
                self.facts().name
            }
        }
    )*};
}

operations! {
/// An operation with one operand.
UnaryOp {
    /// Negation.
    Neg          "-"              Numbers  Same      Add      Alike;
    /// Bitwise complement of integers; logical complement of booleans.
    Not          "!"              Bits     Same      Add      Alike;
    /// Absolute value.
    Abs          "abs"            Numbers  Same      Add      Alike;
    /// Square root.
    Sqrt         "sqrt"           Floats   Same      Root     Ulps(1);
    /// Exponential.
    Exp          "exp"            Floats   Same      Special  Ulps(2);
    /// Natural logarithm.
    Log          "log"            Floats   Same      Special  Ulps(1);
    /// Sine.
    Sin          "sin"            Floats   Same      Special  Ulps(2);
    /// Cosine.
    Cos          "cos"            Floats   Same      Special  Ulps(2);
    /// Hyperbolic tangent.
    Tanh         "tanh"           Floats   Same      Special  Ulps(2);
    /// Largest integer that is not above the operand.
    Floor        "floor"          Floats   Same      Convert  Alike;
    /// Smallest integer that is not below the operand.
    Ceil         "ceil"           Floats   Same      Convert  Alike;
    /// Nearest integer, ties to even.
    Round        "round"          Floats   Same      Convert  Alike;
    /// Exponential, cheaper and less accurate.
    FastExp      "fast_exp"       Singles  Same      Special  FastExp;
    /// Arc tangent.
    Atan         "atan"           Singles  Same      Special  Ulps(2);
    /// Arc sine.
    Asin         "asin"           Singles  Same      Special  Ulps(4);
    /// Arc cosine.
    Acos         "acos"           Singles  Same      Special  Ulps(3);
    /// Tangent.
    Tan          "tan"            Singles  Same      Special  Ulps(4);
    /// Reciprocal of the square root.
    Rsqrt        "rsqrt"          Singles  Same      Root     Ulps(2);
    /// Error function.
    Erf          "erf"            Singles  Same      Special  Ulps(2);
    /// Natural logarithm of 1 plus the operand.
    Log1p        "log1p"          Singles  Same      Special  Ulps(1);
    /// Exponential minus 1.
    Expm1        "expm1"          Singles  Same      Special  Ulps(1);
    /// Power of 2.
    Exp2         "exp2"           Singles  Same      Special  Ulps(2);
    /// Logarithm to base 2.
    Log2         "log2"           Singles  Same      Special  Ulps(1);
    /// Whether a float is NaN.
    IsNan        "is_nan"         Floats   Bool      Compare  Alike;
    /// Number of set bits of an integer.
    Popcount     "popcount"       Ints     Same      Add      Alike;
    /// Number of zeros above the highest set bit of an integer; its width for 0.
    LeadingZeros "leading_zeros"  Ints     Same      Add      Alike;
}
/// An operation with two operands.
BinaryOp {
    /// Sum; integers wrap.
    Add          "+"              Numbers  Same      Add      Fused;
    /// Difference; integers wrap.
    Sub          "-"              Numbers  Same      Add      Fused;
    /// Product; integers wrap.
    Mul          "*"              Numbers  Same      Mul      Alike;
    /// Quotient; Euclidean for integers, 0 for a zero integer divisor.
    Div          "/"              Numbers  Same      Div      Quotient(2);
    /// Euclidean remainder of integers; `a - b * floor(a / b)` for floats.
    Mod          "%"              Numbers  Same      Div      Remainder;
    /// The smaller value; NaN gives the other operand.
    Min          "min"            Numbers  Same      Compare  Alike;
    /// The larger value; NaN gives the other operand.
    Max          "max"            Numbers  Same      Compare  Alike;
    /// Power of floats.
    Pow          "pow"            Floats   Same      Special  Ulps(9);
    /// Absolute difference; unsigned for integers.
    Absd         "absd"           Numbers  Unsigned  Add      Fused;
    /// Average of two integers, rounded up.
    Average      "average"        Ints     Same      Add      Alike;
    /// Bitwise and of integers; logical and of booleans.
    And          "&"              Bits     Same      Add      Alike;
    /// Bitwise or of integers; logical or of booleans.
    Or           "|"              Bits     Same      Add      Alike;
    /// Bitwise exclusive or of integers; logical exclusive or of booleans.
    Xor          "^"              Bits     Same      Add      Alike;
    /// Left shift by the amount modulo the width.
    Shl          "<<"             Ints     Same      Add      Alike;
    /// Right shift by the amount modulo the width; arithmetic for signed types.
    Shr          ">>"             Ints     Same      Add      Alike;
    /// Comparison: equal.
    Eq           "=="             Any      Bool      Compare  Alike;
    /// Comparison: not equal.
    Ne           "!="             Any      Bool      Compare  Alike;
    /// Comparison: less.
    Lt           "<"              Numbers  Bool      Compare  Alike;
    /// Comparison: less or equal.
    Le           "<="             Numbers  Bool      Compare  Alike;
    /// The angle of the point `(second, first)`.
    Atan2        "atan2"          Singles  Same      Special  Ulps(3);
}
}

impl BinaryOp {
    /// Whether the result is `bool` for operands of any type.
    pub fn is_comparison(self) -> bool {
        self.facts().gives == Gives::Bool
    }
}

impl Facts {
    /// The type of the result for operands of a type.
    pub(super) fn result_type(&self, operand: Type) -> Result<Type, TypeFault> {
        match self.gives {
            _ if !self.takes.includes(operand) => Err(TypeFault::Unsupported(operand)),
            Gives::Same => Ok(operand),
            Gives::Unsigned => Ok(operand.unsigned()),
            Gives::Bool => Ok(Type::Bool),
        }
    }
}

impl Takes {
    /// Whether a type is in the set.
    pub fn includes(self, ty: Type) -> bool {
        match self {
            Takes::Any => true,
            Takes::Numbers => ty != Type::Bool,
            Takes::Floats => ty.is_float(),
            Takes::Singles => ty.is_float() && ty != Type::F64,
            Takes::Ints => ty.is_int(),
            Takes::Bits => !ty.is_float(),
        }
    }
}

impl Unit {
    /// The class of an operation of this unit on floats, or on integers and Booleans.
    #[inline]
    pub fn class(self, float: bool) -> Class {
        match (self, float) {
            (Unit::Add, true) => Class::FloatAdd,
            (Unit::Mul, true) => Class::FloatMul,
            (Unit::Div, true) => Class::FloatDiv,
            (Unit::Root, _) => Class::FloatRoot,
            (Unit::Special, _) => Class::FloatSpecial,
            (Unit::Compare, true) => Class::FloatCompare,
            (Unit::Convert, _) => Class::Convert,
            (Unit::Add, false) => Class::IntAdd,
            (Unit::Mul, false) => Class::IntMul,
            (Unit::Div, false) => Class::IntDiv,
            (Unit::Compare, false) => Class::IntCompare,
        }
    }
}
