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
    }
}

/// A C literal, exact to the last bit except for the payload of a NaN.
pub(super) fn literal(value: Value) -> String {
    match value.get::<f32>() {
        Some(float) if float.is_nan() => "(0.0f / 0.0f)".to_string(),
        Some(float) if float.is_infinite() => format!("({}1.0f / 0.0f)", if float > 0.0 { "" } else { "-" }),
        Some(float) if float.is_sign_negative() => format!("({float:?}f)"),
        Some(float) => format!("{float:?}f"),
        None => match (value.ty(), value.as_int().unwrap_or_default()) {
            (Type::Bool, truth) => (truth != 0).to_string(),
            (Type::U32, int) => format!("{int}u"),
            // 2147483648 does not fit in `int`, so its negation is not an `int` literal.
            (_, int) if int == i64::from(i32::MIN) => "(-2147483647 - 1)".to_string(),
            (_, int) if int < 0 => format!("({int})"),
            (_, int) => int.to_string(),
        },
    }
}

/// The conditions under which `name` lies in a range. Conditions that hold for every value of the
/// type are left out.
pub(super) fn in_range(name: &str, (low, high): (Value, Value)) -> Vec<String> {
    let limits = low.ty().int_range().map(|(least, most)| (least as f64, most as f64));
    let (least, most) = limits.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
    let above = (low.as_f64() > least).then(|| format!("{name} >= {}", literal(low)));
    let below = (high.as_f64() < most).then(|| format!("{name} <= {}", literal(high)));
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
