//! Constants as C++ literals, exact to the last bit.

use warploom_lang::{Type, Value};

use super::text::Text;

/// A constant. 8- and 16-bit integers are printed as `int`, the type that C++ computes with.
pub(super) fn literal(value: Value) -> Text {
    match value.ty() {
        // Floats of 16 bits are `float`s in expressions, and their values are exact there.
        Type::F32 | Type::F16 | Type::BF16 => float(value.as_f64() as f32),
        Type::F64 => double(value.as_f64()),
        Type::I64 => wide(value.bits() as i64),
        Type::U64 => Text::atom(format!("{}ULL", value.bits())),
        Type::Bool => Text::atom(if value.bits() != 0 { "true" } else { "false" }),
        Type::U32 => Text::atom(format!("{}u", value.bits())),
        _ => int(value.as_int().unwrap_or_default()),
    }
}

/// An integer of type `int`.
pub(super) fn int(value: i64) -> Text {
    if value == i64::from(i32::MIN) {
        // 2147483648 does not fit in `int`, so its negation is not an `int` literal.
        return Text::atom("(-2147483647 - 1)");
    }
    if value < 0 { Text::negative(value.to_string()) } else { Text::atom(value.to_string()) }
}

/// A 64-bit integer.
pub(super) fn wide(value: i64) -> Text {
    if value == i64::MIN {
        return Text::atom("(-9223372036854775807LL - 1LL)");
    }
    if value < 0 { Text::negative(format!("{value}LL")) } else { Text::atom(format!("{value}LL")) }
}

/// A double in the fewest digits that read back exactly.
pub(super) fn double(value: f64) -> Text {
    if !value.is_finite() {
        return Text::atom(format!("__longlong_as_double(0x{:016x}LL)", value.to_bits()));
    }
    let digits = format!("{value:?}");
    if value.is_sign_negative() { Text::negative(digits) } else { Text::atom(digits) }
}

/// A float in the fewest digits that always read back exactly.
pub(super) fn float(value: f32) -> Text {
    if !value.is_finite() {
        return Text::atom(format!("__int_as_float(0x{:08x})", value.to_bits()));
    }
    let digits = decimal(value);
    if value.is_sign_negative() { Text::negative(digits) } else { Text::atom(digits) }
}

fn decimal(value: f32) -> String {
    let shortest = format!("{value:?}");
    // A compiler may parse a decimal as a double first; the double must still round to the same
    // float.
    let same = shortest.parse::<f64>().is_ok_and(|double| (double as f32).to_bits() == value.to_bits());
    if same { format!("{shortest}f") } else { format!("{value:.8e}f") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: impl Into<Value>) -> String {
        literal(value.into()).code
    }

    #[test]
    fn constants_are_written_as_people_write_them() {
        assert_eq!(text(0.5f32), "0.5f");
        assert_eq!(text(-1.0f32), "-1.0f");
        assert_eq!(text(0.1f32), "0.1f");
        assert_eq!(text(1e-7f32), "1e-7f");
        assert_eq!(text(-0.0f32), "-0.0f");
        assert_eq!(text(f32::INFINITY), "__int_as_float(0x7f800000)");
        assert_eq!(text(7u32), "7u");
        assert_eq!(text(200u8), "200");
        assert_eq!(text(-3i16), "-3");
        assert_eq!(text(i32::MIN), "(-2147483647 - 1)");
        assert_eq!(text(true), "true");
        assert_eq!(text(0.1f64), "0.1");
        assert_eq!(text(f64::INFINITY), "__longlong_as_double(0x7ff0000000000000LL)");
        assert_eq!(text(i64::MIN), "(-9223372036854775807LL - 1LL)");
        assert_eq!(text(u64::MAX), "18446744073709551615ULL");
        assert_eq!(text(warploom_lang::f16::from_f32(0.1)), "0.099975586f");
    }

    #[test]
    fn every_float_comes_back() {
        let mut bits = 12345u32;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = f32::from_bits(bits);
            if value.is_finite() {
                let digits = float(value).code;
                let number = digits.trim_end_matches('f');
                assert_eq!(number.parse::<f32>().unwrap().to_bits(), value.to_bits(), "{digits}");
                assert_eq!((number.parse::<f64>().unwrap() as f32).to_bits(), value.to_bits(), "{digits}");
            }
        }
    }
}
