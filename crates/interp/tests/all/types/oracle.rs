//! Conversions by hand, with integers of 128 bits.

use warploom_lang::{Type, Value};

/// A value without its type.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    pub fn of(value: Value) -> Number {
        match value.ty() {
            ty if ty.is_float() => Number::Float(value.as_f64()),
            Type::U64 => Number::Int(value.bits().into()),
            _ => Number::Int(value.as_int().unwrap().into()),
        }
    }
}

/// The smallest and largest integer of a type.
fn ends(ty: Type) -> (i128, i128) {
    let bits = 8 * ty.bytes() as u32;
    match (ty, ty.is_signed()) {
        (Type::Bool, _) => (0, 1),
        (_, true) => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        (_, false) => (0, (1 << bits) - 1),
    }
}

/// The integer modulo the number of values of a type.
pub fn wrapped(ty: Type, int: i128) -> Value {
    let (low, high) = ends(ty);
    let inside = (int - low).rem_euclid(high - low + 1) + low;
    Value::from_bits(ty, inside as u64)
}

/// A conversion, clamped or not.
pub fn converted(from: Number, ty: Type, saturates: bool) -> Value {
    let (low, high) = ends(ty);
    match from {
        Number::Int(int) if ty == Type::Bool => Value::from(int != 0),
        Number::Float(float) if ty == Type::Bool => Value::from(float != 0.0),
        Number::Int(int) if ty.is_float() => rounded_int(ty, int),
        Number::Float(float) if ty.is_float() => rounded(ty, float),
        Number::Int(int) if saturates => wrapped(ty, int.clamp(low, high)),
        Number::Int(int) => wrapped(ty, int),
        Number::Float(float) if float.is_nan() => wrapped(ty, 0),
        // The conversion to 128 bits cuts off and saturates.
        Number::Float(float) => wrapped(ty, (float as i128).clamp(low, high)),
    }
}

/// The digits of a float type, and the exponents of its smallest digit and largest number.
fn format(ty: Type) -> (i32, i32, i32) {
    match ty {
        Type::F16 => (11, -24, 15),
        Type::BF16 => (8, -133, 127),
        Type::F32 => (24, -149, 127),
        _ => (53, -1074, 1023),
    }
}

fn rounded_int(ty: Type, int: i128) -> Value {
    exact(ty, int.is_negative(), int.unsigned_abs(), 0)
}

/// The float of a type that is nearest to a number, ties to even.
pub fn rounded(ty: Type, number: f64) -> Value {
    if !number.is_finite() {
        return Value::rounded(ty, number).unwrap();
    }
    let bits = number.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, u128::from(bits & ((1 << 52) - 1)));
    let (mantissa, exponent) =
        if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
    exact(ty, number.is_sign_negative(), mantissa, exponent)
}

/// `mantissa * 2^exponent`, rounded once.
fn exact(ty: Type, negative: bool, mantissa: u128, exponent: i32) -> Value {
    let (digits, smallest, largest) = format(ty);
    let highest = exponent + 127 - mantissa.leading_zeros() as i32;
    let last = (highest - (digits - 1)).max(smallest);
    let (kept, last) = match last - exponent {
        cut @ 1..128 => {
            let (kept, rest, half) = (mantissa >> cut, mantissa & ((1 << cut) - 1), 1_u128 << (cut - 1));
            let up = rest > half || (rest == half && kept & 1 == 1);
            (kept + u128::from(up), last)
        }
        cut if cut >= 128 => (0, last),
        _ => (mantissa, exponent),
    };
    let power = |exponent: i32| 2_f64.powi(exponent);
    let magnitude = kept as f64 * power(last / 2) * power(last - last / 2);
    let magnitude = if magnitude >= 2.0 * power(largest) { f64::INFINITY } else { magnitude };
    let value = Value::rounded(ty, if negative { -magnitude } else { magnitude }).unwrap();
    assert_eq!(value.as_f64().abs(), magnitude, "{ty} holds what was rounded to it");
    value
}
