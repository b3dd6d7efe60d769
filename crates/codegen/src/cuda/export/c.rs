//! Fragments of C.

use warploom_lang::{Type, Value};

/// The C99 type of a scalar.
pub(super) const fn type_name(ty: Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::U8 => "uint8_t",
        Type::U16 => "uint16_t",
        Type::U32 => "uint32_t",
        Type::I8 => "int8_t",
        Type::I16 => "int16_t",
        Type::I32 => "int32_t",
        Type::F32 => "float",
        // Their bits: C has no such types.
        Type::F16 | Type::BF16 => "uint16_t",
        Type::F64 => "double",
        Type::I64 => "int64_t",
        Type::U64 => "uint64_t",
    }
}

/// A C literal, exact to the last bit except for the payload of a NaN.
pub(super) fn literal(value: Value) -> String {
    match (value.ty(), value.as_int().unwrap_or_default()) {
        (Type::F32, _) => float(value, "f"),
        (Type::F64, _) => float(value, ""),
        (Type::F16 | Type::BF16, _) => format!("0x{:04x}", value.bits()),
        (Type::Bool, truth) => (truth != 0).to_string(),
        (Type::U32, int) => format!("{int}u"),
        (Type::U64, _) => format!("UINT64_C({})", value.bits()),
        (Type::I64, i64::MIN) => "INT64_MIN".to_string(),
        (Type::I64, int) => format!("INT64_C({int})"),
        // 2147483648 does not fit in `int`, so its negation is not an `int` literal.
        (_, int) if int == i64::from(i32::MIN) => "(-2147483647 - 1)".to_string(),
        (_, int) if int < 0 => format!("({int})"),
        (_, int) => int.to_string(),
    }
}

fn float(value: Value, suffix: &str) -> String {
    let float = value.as_f64();
    match float {
        _ if float.is_nan() => format!("(0.0{suffix} / 0.0{suffix})"),
        f64::INFINITY => format!("(1.0{suffix} / 0.0{suffix})"),
        f64::NEG_INFINITY => format!("(-1.0{suffix} / 0.0{suffix})"),
        _ if float.is_sign_negative() => format!("({value}{suffix})"),
        _ => format!("{value}{suffix}"),
    }
}

/// The conditions under which `name` lies in a range. Conditions that hold for every value of the
/// type are left out.
pub(super) fn in_range(name: &str, (low, high): (Value, Value)) -> Vec<String> {
    // Patterns of 16 bits do not compare like the floats that they are.
    if low.ty().is_half() {
        return Vec::new();
    }
    let (least, most) = (Value::smallest(low.ty()), Value::largest(low.ty()));
    let above = (low != least).then(|| format!("{name} >= {}", literal(low)));
    let below = (high != most).then(|| format!("{name} <= {}", literal(high)));
    above.into_iter().chain(below).collect()
}

/// The enumerator for a kernel's position in the kernel table.
pub(super) fn kernel(entry: &str) -> String {
    format!("kernel_{entry}")
}

/// The variable of a launch loop. Level 0 is the outermost.
pub(super) fn iteration(level: usize) -> String {
    format!("iteration{level}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_written_in_their_type() {
        let texts = [
            Value::from(0.5_f32),
            Value::from(-1e-5_f32),
            Value::from(f32::INFINITY),
            Value::from(f32::NEG_INFINITY),
            Value::from(-0.0_f32),
            Value::from(true),
            Value::from(200_u8),
            Value::from(u32::MAX),
            Value::from(-7_i16),
            Value::from(i32::MIN),
        ];
        let expected = [
            "0.5f",
            "(-1e-5f)",
            "(1.0f / 0.0f)",
            "(-1.0f / 0.0f)",
            "(-0.0f)",
            "true",
            "200",
            "4294967295u",
            "(-7)",
            "(-2147483647 - 1)",
        ];
        assert_eq!(texts.map(literal), expected);
        assert_eq!(literal(Value::from(f32::NAN)), "(0.0f / 0.0f)");
    }

    #[test]
    fn only_conditions_that_can_fail_are_written() {
        let range = |low: i32, high: i32| in_range("n", (Value::from(low), Value::from(high)));
        assert_eq!(range(1, 64), ["n >= 1", "n <= 64"]);
        assert_eq!(range(i32::MIN, 64), ["n <= 64"]);
        assert_eq!(in_range("n", (Value::from(0_u8), Value::from(9_u8))), ["n <= 9"]);
        let floats = (Value::from(f32::NEG_INFINITY), Value::from(0.25_f32));
        assert_eq!(in_range("f", floats), ["f <= 0.25f"]);
    }
}
