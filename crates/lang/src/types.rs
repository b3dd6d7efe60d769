//! Scalar types and typed constants.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::scalar::{CastFrom, Scalar, bf16, dispatch, f16};

/// The type of one scalar value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Type {
    /// `true` or `false`, stored in one byte.
    Bool,
    /// Unsigned 8-bit integer.
    U8,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 32-bit integer.
    U32,
    /// Signed 8-bit integer.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer; the type of every index.
    I32,
    /// IEEE binary32 float.
    F32,
    /// IEEE binary16 float. Operations are computed in `f32` and rounded once.
    F16,
    /// The upper half of an `f32`. Operations are computed in `f32` and rounded once.
    BF16,
    /// IEEE binary64 float.
    F64,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 64-bit integer.
    U64,
}

impl Type {
    /// All types, in declaration order.
    pub const ALL: [Type; 13] = [
        Type::Bool,
        Type::U8,
        Type::U16,
        Type::U32,
        Type::I8,
        Type::I16,
        Type::I32,
        Type::F32,
        Type::F16,
        Type::BF16,
        Type::F64,
        Type::I64,
        Type::U64,
    ];

    /// The name used in source, listings and files: `u8`, `f32`, ...
    pub const fn name(self) -> &'static str {
        match self {
            Type::Bool => "bool",
            Type::U8 => "u8",
            Type::U16 => "u16",
            Type::U32 => "u32",
            Type::I8 => "i8",
            Type::I16 => "i16",
            Type::I32 => "i32",
            Type::F32 => "f32",
            Type::F16 => "f16",
            Type::BF16 => "bf16",
            Type::F64 => "f64",
            Type::I64 => "i64",
            Type::U64 => "u64",
        }
    }

    /// The size of one value in memory, in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Type::Bool | Type::U8 | Type::I8 => 1,
            Type::U16 | Type::I16 | Type::F16 | Type::BF16 => 2,
            Type::U32 | Type::I32 | Type::F32 => 4,
            Type::F64 | Type::I64 | Type::U64 => 8,
        }
    }

    /// Whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, Type::F32 | Type::F16 | Type::BF16 | Type::F64)
    }

    /// Whether this is a float of 16 bits.
    pub const fn is_half(self) -> bool {
        matches!(self, Type::F16 | Type::BF16)
    }

    /// Whether one value takes 64 bits.
    pub const fn is_wide(self) -> bool {
        self.bytes() == 8
    }

    /// The type in which sums and products of many values of this type are accumulated: `f32` for
    /// the floats of 16 bits, otherwise the type itself.
    pub const fn accumulator(self) -> Type {
        if self.is_half() { Type::F32 } else { self }
    }

    /// Whether this is an integer type (`bool` is not).
    pub const fn is_int(self) -> bool {
        !self.is_float() && !matches!(self, Type::Bool)
    }

    /// Whether the type has negative values.
    pub const fn is_signed(self) -> bool {
        self.is_float() || matches!(self, Type::I8 | Type::I16 | Type::I32 | Type::I64)
    }

    /// The unsigned type of the same width; the type itself if it is not a signed integer.
    pub const fn unsigned(self) -> Type {
        match self {
            Type::I8 => Type::U8,
            Type::I16 => Type::U16,
            Type::I32 => Type::U32,
            Type::I64 => Type::U64,
            other => other,
        }
    }

    /// The smallest type that holds the values of both. A float with anything gives a float, the
    /// wider of two; a signed type with `u32` gives `i32`, with `u64` `i64`.
    pub fn common(self, other: Type) -> Type {
        let (Some(a), Some(b)) = (self.int_range(), other.int_range()) else {
            return match (self.is_float(), other.is_float()) {
                _ if self == other => self,
                (true, true) if self.is_wide() || other.is_wide() => Type::F64,
                (true, true) => Type::F32,
                (true, false) => self,
                (false, _) => other,
            };
        };
        if self.is_wide() || other.is_wide() {
            return if self.is_signed() || other.is_signed() { Type::I64 } else { Type::U64 };
        }
        let holds =
            |ty: &Type| ty.int_range().is_some_and(|(low, high)| low <= a.0.min(b.0) && a.1.max(b.1) <= high);
        let integers = [Type::Bool, Type::U8, Type::I8, Type::U16, Type::I16, Type::U32, Type::I32];
        integers.into_iter().find(holds).unwrap_or(Type::I32)
    }

    /// The smallest and largest value of an integer type or `bool`; `None` for floats. For `u64`, the largest `i64`
    /// stands for all larger values.
    pub const fn int_range(self) -> Option<(i64, i64)> {
        match self {
            Type::Bool => Some((0, 1)),
            Type::U8 => Some((0, 0xff)),
            Type::U16 => Some((0, 0xffff)),
            Type::U32 => Some((0, 0xffff_ffff)),
            Type::I8 => Some((-0x80, 0x7f)),
            Type::I16 => Some((-0x8000, 0x7fff)),
            Type::I32 => Some((-0x8000_0000, 0x7fff_ffff)),
            Type::I64 => Some((i64::MIN, i64::MAX)),
            Type::U64 => Some((0, i64::MAX)),
            Type::F32 | Type::F16 | Type::BF16 | Type::F64 => None,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Type {
    type Err = ();

    fn from_str(text: &str) -> Result<Type, ()> {
        Type::ALL.into_iter().find(|ty| ty.name() == text).ok_or(())
    }
}

/// A typed constant, stored as its bit pattern so that it can be compared and hashed.
///
/// Integers of less than 32 bits are sign- or zero-extended to 32 bits; `bool` is 0 or 1. The upper
/// half is 0 unless the type has 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value {
    ty: Type,
    bits: u64,
}

impl Value {
    /// A value from its (extended) pattern.
    pub fn from_bits(ty: Type, bits: u64) -> Value {
        dispatch!(ty, T => Value::from(<T as Scalar>::from_word(bits)))
    }

    /// The type of the constant.
    pub fn ty(self) -> Type {
        self.ty
    }

    /// The extended pattern.
    pub fn bits(self) -> u64 {
        self.bits
    }

    /// Zero (or `false`) of the given type.
    pub fn zero(ty: Type) -> Value {
        Value { ty, bits: 0 }
    }

    /// The integer as a value of type `ty`; `None` if `ty` cannot represent it exactly.
    pub fn from_int(ty: Type, int: i64) -> Option<Value> {
        match ty.int_range() {
            Some((min, max)) => (min..=max)
                .contains(&int)
                .then_some(Value { ty, bits: if ty.is_wide() { int as u64 } else { u64::from(int as u32) } }),
            None => Value::exact_float(ty, int as f64).filter(|_| int as f64 as i128 == i128::from(int)),
        }
    }

    /// The number as a float of type `ty`; `None` if `ty` cannot represent it exactly.
    pub fn exact_float(ty: Type, number: f64) -> Option<Value> {
        let value = Value::rounded(ty, number)?;
        (value.as_f64() == number).then_some(value)
    }

    /// The float of type `ty` that is nearest to a number; `None` if `ty` is no float.
    pub fn rounded(ty: Type, number: f64) -> Option<Value> {
        match ty {
            Type::F32 => Some(Value::from(number as f32)),
            Type::F16 => Some(Value::from(f16::cast_from(number))),
            Type::BF16 => Some(Value::from(bf16::cast_from(number))),
            Type::F64 => Some(Value::from(number)),
            _ => None,
        }
    }

    /// The value for a Param of type `ty`: a literal without a suffix is an `f64`, which is rounded to another float
    /// type. Other values are unchanged.
    pub(crate) fn fitted(self, ty: Type) -> Value {
        match self.ty {
            Type::F64 => Value::rounded(ty, self.as_f64()).unwrap_or(self),
            _ => self,
        }
    }

    /// The largest value of a type; infinity for floats.
    pub fn largest(ty: Type) -> Value {
        match (ty, ty.int_range()) {
            (Type::U64, _) => Value::from(u64::MAX),
            (_, Some((_, max))) => Value::from_int(ty, max).unwrap_or(Value::zero(ty)),
            (_, None) => Value::rounded(ty, f64::INFINITY).unwrap_or(Value::zero(ty)),
        }
    }

    /// The smallest value of a type; negative infinity for floats.
    pub fn smallest(ty: Type) -> Value {
        match ty.int_range() {
            Some((min, _)) => Value::from_int(ty, min).unwrap_or(Value::zero(ty)),
            None => Value::rounded(ty, f64::NEG_INFINITY).unwrap_or(Value::zero(ty)),
        }
    }

    /// One (or `true`) of the given type.
    pub fn one(ty: Type) -> Value {
        Value::from_int(ty, 1).unwrap_or(Value::zero(ty))
    }

    /// A number from the user as a value of type `ty`: exact for integers, rounded for floats.
    pub fn from_number(ty: Type, number: f64) -> Option<Value> {
        match ty {
            _ if ty.is_float() => Value::rounded(ty, number),
            Type::U64 if number.fract() == 0.0 && (0.0..1.8e19).contains(&number) => {
                Some(Value::from(number as u64))
            }
            _ if number.fract() == 0.0 && number.abs() < 1e18 => Value::from_int(ty, number as i64),
            _ => None,
        }
    }

    /// The integer (0 or 1 for `bool`); `None` for floats, and for a `u64` beyond the largest `i64`.
    pub fn as_int(self) -> Option<i64> {
        match self.ty {
            ty if ty.is_float() => None,
            Type::I64 => Some(self.bits as i64),
            Type::U64 => i64::try_from(self.bits).ok(),
            ty if ty.is_signed() => Some(i64::from(self.bits as i32)),
            _ => Some(i64::from(self.bits as u32)),
        }
    }

    /// The value as an `f64`, exact for every type except integers beyond 2^53.
    pub fn as_f64(self) -> f64 {
        dispatch!(self.ty, T => f64::cast_from(<T as Scalar>::from_word(self.bits)))
    }

    /// Values as words of 32 bits: the lower half of each, then the upper halves of those that have 64 bits.
    pub fn words(values: &[Value]) -> Vec<u32> {
        let lower = values.iter().map(|value| value.bits as u32);
        let upper = values.iter().filter(|value| value.ty.is_wide()).map(|value| (value.bits >> 32) as u32);
        lower.chain(upper).collect()
    }

    /// How many words values of these types take in [`Value::words`].
    pub fn words_of(types: impl Iterator<Item = Type>) -> usize {
        types.map(|ty| if ty.is_wide() { 2 } else { 1 }).sum()
    }

    /// The position in [`Value::words`] of the upper half of one of the values, which has 64 bits.
    pub fn upper_word(types: &[Type], position: usize) -> usize {
        types.len() + types[..position].iter().filter(|ty| ty.is_wide()).count()
    }

    /// The values of [`Value::words`].
    pub fn from_words(types: &[Type], words: &[u32]) -> Vec<Value> {
        let word = |at: usize| u64::from(words.get(at).copied().unwrap_or_default());
        let value = |(at, ty): (usize, &Type)| {
            let upper = if ty.is_wide() { word(Value::upper_word(types, at)) << 32 } else { 0 };
            Value::from_bits(*ty, word(at) | upper)
        };
        types.iter().enumerate().map(value).collect()
    }

    /// The Rust value; `None` if `T` is not its type.
    pub fn get<T: Scalar>(self) -> Option<T> {
        (T::TYPE == self.ty).then(|| T::from_word(self.bits))
    }
}

impl<T: Scalar> From<T> for Value {
    fn from(value: T) -> Value {
        Value { ty: T::TYPE, bits: value.to_word() }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ty {
            Type::Bool => write!(f, "{}", self.bits != 0),
            Type::U64 => write!(f, "{}", self.bits),
            Type::F64 => write!(f, "{:?}", self.as_f64()),
            ty if ty.is_float() => write!(f, "{:?}", self.as_f64() as f32),
            _ => write!(f, "{}", self.as_int().unwrap_or_default()),
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}{}", self.ty)
    }
}

/// The file format: `{"type": "f32", "value": 0.5}`. Floats without a JSON number are the strings
/// `nan`, `inf` and `-inf`.
#[derive(Serialize, Deserialize)]
struct ValueText {
    #[serde(rename = "type")]
    ty: Type,
    value: serde_json::Value,
}

impl Serialize for Value {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = match self.ty {
            Type::Bool => serde_json::Value::Bool(self.bits != 0),
            Type::U64 => self.bits.into(),
            ty if ty.is_float() => {
                let float = self.as_f64();
                serde_json::Number::from_f64(float)
                    .map_or_else(|| format!("{float}").to_lowercase().into(), serde_json::Value::Number)
            }
            _ => self.as_int().unwrap_or_default().into(),
        };
        ValueText { ty: self.ty, value }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        let text = ValueText::deserialize(deserializer)?;
        let value = match (&text.value, text.ty) {
            (serde_json::Value::Bool(b), Type::Bool) => Some(Value::from(*b)),
            (serde_json::Value::Number(n), Type::U64) => n.as_u64().map(Value::from),
            (serde_json::Value::Number(n), ty) if ty.is_float() => {
                n.as_f64().and_then(|number| Value::rounded(ty, number))
            }
            (serde_json::Value::Number(n), ty) if ty.is_int() => {
                n.as_i64().and_then(|int| Value::from_int(ty, int))
            }
            (serde_json::Value::String(s), ty) => match s.as_str() {
                "nan" => Value::rounded(ty, f64::NAN),
                "inf" => Value::rounded(ty, f64::INFINITY),
                "-inf" => Value::rounded(ty, f64::NEG_INFINITY),
                _ => None,
            },
            _ => None,
        };
        value.ok_or_else(|| {
            serde::de::Error::custom(format!("{} is not a value of type {}", text.value, text.ty))
        })
    }
}
