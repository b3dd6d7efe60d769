//! Type conversions in C++.
//!
//! In C++, converting a float outside the target's range is undefined. So `float`s go through the
//! hardware conversions to 32 bits, which truncate, saturate and turn NaN into 0; all other
//! conversions to integers are clamped first.

use warploom_lang::affine::Interval;
use warploom_lang::{Type, Value};

use super::expr::Printer;
use super::literal;
use super::operand::Operand;
use super::prelude::Helper;
use super::text::{Text, level};

impl Printer<'_> {
    /// Converts a value: integers wrap, floats truncate and saturate.
    pub(super) fn cast(&mut self, to: Type, a: &Operand<'_>) -> Text {
        match (a.ty, to) {
            (from, to) if from == to => a.text.clone(),
            (from, Type::Bool) => {
                Text::infix(level::EQUALITY, a.text, "!=", &literal::literal(Value::zero(from)))
            }
            (_, Type::F16 | Type::BF16) => self.half_of(to, a),
            // A float of 16 bits is a `float` already.
            (Type::F16 | Type::BF16, Type::F32) => a.text.clone(),
            (_, Type::F32 | Type::F64) => Text::cast(to, a.text),
            (Type::F32 | Type::F16 | Type::BF16, to) if !to.is_wide() => from_float(to, a.text),
            (from, to) if from.is_float() => self.clamped(to, a),
            (Type::I32, Type::U32) => a.text.as_unsigned(),
            (_, Type::U32) | (Type::U32 | Type::Bool, _) => Text::cast(to, a.text),
            (from, to) if from.is_wide() || to.is_wide() => Text::cast(to, a.text),
            // C++ promotes 8- and 16-bit integers to `int` in every computation.
            (_, to) if Interval::of_type(to).covers(a.range) => a.text.clone(),
            (_, to) => Text::cast(to, a.text),
        }
    }

    /// Rounds a value to a float of 16 bits, once.
    fn half_of(&mut self, to: Type, a: &Operand<'_>) -> Text {
        let odd = match a.ty {
            Type::F64 => self.helper(Helper::Odd, [a]),
            Type::I64 => self.helper(Helper::OddWide, [a]),
            Type::U64 => self.helper(Helper::OddWideUnsigned, [a]),
            Type::I32 | Type::U32 => {
                self.helpers.insert(Helper::Odd);
                Text::call(Helper::Odd.name(), [&Text::cast(Type::F64, a.text)])
            }
            // All their values are `float`s.
            _ => Text::cast(Type::F32, a.text),
        };
        self.rounded(to, &odd)
    }

    /// Converts a float to an integer where the hardware conversion differs from the language's.
    fn clamped(&mut self, to: Type, a: &Operand<'_>) -> Text {
        let double = if a.ty == Type::F64 { a.text.clone() } else { Text::cast(Type::F64, a.text) };
        if to.is_wide() {
            let helper = if to == Type::I64 { Helper::ToWide } else { Helper::ToWideUnsigned };
            self.helpers.insert(helper);
            return Text::call(helper.name(), [&double]);
        }
        self.helpers.insert(Helper::Clamped);
        let Interval { min, max } = Interval::of_type(to);
        let [low, high] = [min, max].map(|limit| literal::double(limit as f64));
        Text::cast(to, &Text::call(Helper::Clamped.name(), [&double, &low, &high]))
    }

    /// Converts a value after clamping it to the target's range.
    pub(super) fn saturating_cast(&mut self, to: Type, a: &Operand<'_>) -> Text {
        if !to.is_int() || !a.ty.is_int() {
            return self.cast(to, a);
        }
        let all = Interval::of_type(to);
        // For a `u64`, the largest `i64` stands for all larger limits.
        let beyond = a.ty == Type::U64 && to != Type::U64 && a.range.max == i64::MAX;
        let limit = |limit: i64| match a.ty {
            Type::U32 => Text::atom(format!("{limit}u")),
            Type::I64 | Type::U64 => {
                literal::literal(Value::from_int(a.ty, limit).unwrap_or(Value::zero(a.ty)))
            }
            _ => literal::int(limit),
        };
        let mut text = a.text.clone();
        if a.range.min < all.min {
            text = Text::call("max", [&text, &limit(all.min)]);
        }
        if a.range.max > all.max || beyond {
            text = Text::call("min", [&text, &limit(all.max)]);
        }
        let range = Interval::new(a.range.min.max(all.min), a.range.max.min(all.max));
        self.cast(to, &Operand { text: &text, range, constant: None, ty: a.ty })
    }

    /// Reinterprets the bits of a value as another type of the same width.
    pub(super) fn reinterpret(&mut self, to: Type, a: &Operand<'_>) -> Text {
        let signed = |signed: Type, text: &Text| match signed.is_signed() {
            true => Text::cast(signed, text),
            false => text.clone(),
        };
        match (a.ty, to) {
            (from, to) if from == to => a.text.clone(),
            (Type::F32, Type::U32) => Text::call("__float_as_uint", [a.text]),
            (Type::F32, Type::I32) => Text::call("__float_as_int", [a.text]),
            (Type::U32, Type::F32) => Text::call("__uint_as_float", [a.text]),
            (Type::I32, Type::F32) => Text::call("__int_as_float", [a.text]),
            (Type::F64, to) => {
                let bits = Text::call("__double_as_longlong", [a.text]);
                if to == Type::U64 { Text::cast(to, &bits) } else { bits }
            }
            (Type::U64, Type::F64) => Text::call("__longlong_as_double", [&Text::cast(Type::I64, a.text)]),
            (Type::I64, Type::F64) => Text::call("__longlong_as_double", [a.text]),
            (from, to) if from.is_half() => {
                let bits = self.half_bits(from, a.text);
                if to.is_half() { self.half_value(to, &bits) } else { signed(to, &bits) }
            }
            (_, to) if to.is_half() => self.half_value(to, &Text::cast(Type::U16, a.text)),
            // Between integers of equal width, a wrapping cast keeps the bits.
            _ => self.cast(to, a),
        }
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

pub(super) const CLAMPED: &str = "\
static __device__ __forceinline__ double wl_clamped(double x, double low, double high) {
    return x != x ? 0.0 : fmin(fmax(x, low), high);
}";

pub(super) const TO_WIDE: &str = "\
static __device__ __forceinline__ long long wl_to_wide(double x) {
    if (x != x) return 0LL;
    if (x >= 9223372036854775808.0) return 9223372036854775807LL;
    return x <= -9223372036854775808.0 ? -9223372036854775807LL - 1LL : (long long)x;
}";

pub(super) const TO_WIDE_UNSIGNED: &str = "\
static __device__ __forceinline__ unsigned long long wl_to_wide_unsigned(double x) {
    if (x >= 18446744073709551616.0) return 18446744073709551615ULL;
    return x > 0.0 ? (unsigned long long)x : 0ULL;
}";
