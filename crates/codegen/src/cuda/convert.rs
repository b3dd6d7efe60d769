//! Type conversions in C++.
//!
//! In C++, converting a float outside the target's range is undefined. So floats go through the
//! hardware conversions to 32 bits, which truncate, saturate and turn NaN into 0.

use warploom_lang::Type;

use super::literal;
use super::operand::Operand;
use super::text::{Text, level};
use warploom_lang::affine::Interval;

/// Converts a value: integers wrap, floats truncate and saturate.
pub(super) fn cast(to: Type, a: &Operand<'_>) -> Text {
    match (a.ty, to) {
        (from, to) if from == to => a.text.clone(),
        (Type::F32, Type::Bool) => Text::infix(level::EQUALITY, a.text, "!=", &literal::float(0.0)),
        (Type::U32, Type::Bool) => Text::infix(level::EQUALITY, a.text, "!=", &Text::atom("0u")),
        (_, Type::Bool) => Text::infix(level::EQUALITY, a.text, "!=", &literal::int(0)),
        (Type::F32, to) => from_float(to, a.text),
        (_, Type::F32) => Text::cast(Type::F32, a.text),
        (Type::I32, Type::U32) => a.text.as_unsigned(),
        (_, Type::U32) | (Type::U32 | Type::Bool, _) => Text::cast(to, a.text),
        // C++ promotes 8- and 16-bit integers to `int` in every computation.
        (_, to) if Interval::of_type(to).covers(a.range) => a.text.clone(),
        (_, to) => Text::cast(to, a.text),
    }
}

/// Converts a value after clamping it to the target's range.
pub(super) fn saturating_cast(to: Type, a: &Operand<'_>) -> Text {
    if !to.is_int() || !a.ty.is_int() {
        return cast(to, a);
    }
    let all = Interval::of_type(to);
    let mut text = a.text.clone();
    if a.range.min < all.min {
        text = Text::call("max", [&text, &literal::int(all.min)]);
    }
    if a.range.max > all.max {
        let limit =
            if a.ty == Type::U32 { Text::atom(format!("{}u", all.max)) } else { literal::int(all.max) };
        text = Text::call("min", [&text, &limit]);
    }
    let range = Interval::new(a.range.min.max(all.min), a.range.max.min(all.max));
    cast(to, &Operand { text: &text, range, constant: None, ty: a.ty })
}

/// Reinterprets the bits of a value as another type of the same width.
pub(super) fn reinterpret(to: Type, a: &Operand<'_>) -> Text {
    match (a.ty, to) {
        (Type::F32, Type::U32) => Text::call("__float_as_uint", [a.text]),
        (Type::F32, Type::I32) => Text::call("__float_as_int", [a.text]),
        (Type::U32, Type::F32) => Text::call("__uint_as_float", [a.text]),
        (Type::I32, Type::F32) => Text::call("__int_as_float", [a.text]),
        // Between integers of equal width, a wrapping cast keeps the bits.
        _ => cast(to, a),
    }
}

fn from_float(to: Type, text: &Text) -> Text {
    let signed = Text::call("__float2int_rz", [text]);
    let unsigned = Text::call("__float2uint_rz", [text]);
    let all = Interval::of_type(to);
    match to {
        Type::I32 => signed,
        Type::U32 => unsigned,
        Type::I8 | Type::I16 => {
            let low = Text::call("max", [&signed, &literal::int(all.min)]);
            Text::call("min", [&low, &literal::int(all.max)])
        }
        _ => {
            let limit = Text::atom(format!("{}u", all.max));
            Text::cast(to, &Text::call("min", [&unsigned, &limit]))
        }
    }
}
