//! Scalar types and typed constants.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::scalar::{Scalar, dispatch};

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
}

impl Type {
    /// All types, in declaration order.
    pub const ALL: [Type; 8] =
        [Type::Bool, Type::U8, Type::U16, Type::U32, Type::I8, Type::I16, Type::I32, Type::F32];

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
        }
    }

    /// The size of one value in memory, in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Type::Bool | Type::U8 | Type::I8 => 1,
            Type::U16 | Type::I16 => 2,
            Type::U32 | Type::I32 | Type::F32 => 4,
        }
    }

    /// Whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, Type::F32)
    }

    /// Whether this is an integer type (`bool` is not).
    pub const fn is_int(self) -> bool {
        !matches!(self, Type::F32 | Type::Bool)
    }

    /// Whether the type has negative values.
    pub const fn is_signed(self) -> bool {
        matches!(self, Type::I8 | Type::I16 | Type::I32 | Type::F32)
    }

    /// The unsigned type of the same width; the type itself if it is not a signed integer.
    pub const fn unsigned(self) -> Type {
        match self {
            Type::I8 => Type::U8,
            Type::I16 => Type::U16,
            Type::I32 => Type::U32,
            other => other,
        }
    }

    /// The smallest type that holds the values of both. A float with anything gives a float; a
    /// signed type with `u32` gives `i32`.
    pub fn common(self, other: Type) -> Type {
        let (Some(a), Some(b)) = (self.int_range(), other.int_range()) else { return Type::F32 };
        let holds =
            |ty: &Type| ty.int_range().is_some_and(|(low, high)| low <= a.0.min(b.0) && a.1.max(b.1) <= high);
        let integers = [Type::Bool, Type::U8, Type::I8, Type::U16, Type::I16, Type::U32, Type::I32];
        integers.into_iter().find(holds).unwrap_or(Type::I32)
    }

    /// The smallest and largest value of an integer type or `bool`; `None` for floats.
    pub const fn int_range(self) -> Option<(i64, i64)> {
        match self {
            Type::Bool => Some((0, 1)),
            Type::U8 => Some((0, 0xff)),
            Type::U16 => Some((0, 0xffff)),
            Type::U32 => Some((0, 0xffff_ffff)),
            Type::I8 => Some((-0x80, 0x7f)),
            Type::I16 => Some((-0x8000, 0x7fff)),
            Type::I32 => Some((-0x8000_0000, 0x7fff_ffff)),
            Type::F32 => None,
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
/// Integers are sign- or zero-extended to 32 bits; `bool` is 0 or 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value {
    ty: Type,
    bits: u32,
}

impl Value {
    /// A value from its (extended) 32-bit pattern.
    pub fn from_bits(ty: Type, bits: u32) -> Value {
        dispatch!(ty, T => Value::from(<T as Scalar>::from_bits(bits)))
    }

    /// The type of the constant.
    pub fn ty(self) -> Type {
        self.ty
    }

    /// The extended 32-bit pattern.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Zero (or `false`) of the given type.
    pub fn zero(ty: Type) -> Value {
        Value { ty, bits: 0 }
    }

    /// The integer as a value of type `ty`; `None` if `ty` cannot represent it exactly.
    pub fn from_int(ty: Type, int: i64) -> Option<Value> {
        match ty.int_range() {
            Some((min, max)) => (min..=max).contains(&int).then_some(Value { ty, bits: int as u32 }),
            None => (int as f32 as i64 == int).then(|| Value::from(int as f32)),
        }
    }

    /// A number from the user as a value of type `ty`: exact for integers, rounded for floats.
    pub fn from_number(ty: Type, number: f64) -> Option<Value> {
        match ty {
            Type::F32 => Some(Value::from(number as f32)),
            _ if number.fract() == 0.0 && number.abs() < 1e18 => Value::from_int(ty, number as i64),
            _ => None,
        }
    }

    /// The integer (0 or 1 for `bool`); `None` for floats.
    pub fn as_int(self) -> Option<i64> {
        match self.ty {
            Type::F32 => None,
            ty if ty.is_signed() => Some(i64::from(self.bits as i32)),
            _ => Some(i64::from(self.bits)),
        }
    }

    /// The value as an `f64`, which represents every type exactly.
    pub fn as_f64(self) -> f64 {
        match self.as_int() {
            Some(int) => int as f64,
            None => f64::from(f32::from_bits(self.bits)),
        }
    }

    /// The Rust value; `None` if `T` is not its type.
    pub fn get<T: Scalar>(self) -> Option<T> {
        (T::TYPE == self.ty).then(|| T::from_bits(self.bits))
    }
}

impl<T: Scalar> From<T> for Value {
    fn from(value: T) -> Value {
        Value { ty: T::TYPE, bits: value.to_bits() }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ty {
            Type::Bool => write!(f, "{}", self.bits != 0),
            Type::F32 => write!(f, "{:?}", f32::from_bits(self.bits)),
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
            Type::F32 => {
                let float = f32::from_bits(self.bits);
                serde_json::Number::from_f64(f64::from(float))
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
            (serde_json::Value::Number(n), Type::F32) => n.as_f64().map(|n| Value::from(n as f32)),
            (serde_json::Value::Number(n), ty) if ty.is_int() => {
                n.as_i64().and_then(|int| Value::from_int(ty, int))
            }
            (serde_json::Value::String(s), Type::F32) => match s.as_str() {
                "nan" => Some(Value::from(f32::NAN)),
                "inf" => Some(Value::from(f32::INFINITY)),
                "-inf" => Some(Value::from(f32::NEG_INFINITY)),
                _ => None,
            },
            _ => None,
        };
        value.ok_or_else(|| {
            serde::de::Error::custom(format!("{} is not a value of type {}", text.value, text.ty))
        })
    }
}
