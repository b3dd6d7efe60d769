//! Operations in C++.
//!
//! Every emitted expression has exactly the value that the language defines. Its C++ type is that
//! of [`c_type`](super::text::c_type) or, for 8- and 16-bit integers, possibly `int`: C++ promotes
//! those to `int` anyway, so the printer emits a cast only where a result can overflow its type.

use warploom_lang::Type;
use warploom_lang::op::{BinaryOp, Op, UnaryOp};

use super::literal;
use super::operand::Operand;
use super::prelude::{Helper, Helpers};
use super::text::{Text, level};
use crate::elementary;
use crate::printer::Build;
use warploom_lang::affine::interval::{self, Interval};

/// Prints operations and records the helper functions that they need.
pub(super) struct Printer<'a> {
    /// Selects exact or fast functions.
    pub(super) build: Build,
    /// The helper functions needed so far.
    pub(super) helpers: &'a mut Helpers,
}

impl Printer<'_> {
    /// Prints an operation with a result of type `ty`.
    pub(super) fn op(&mut self, op: Op, ty: Type, operands: &[Operand<'_>]) -> Text {
        match (op, operands) {
            (Op::Const(value), _) => literal::literal(value),
            (Op::Unary(op), [a]) if ty.is_half() => {
                let text = self.float_function(op, a);
                if is_exact(op) { text } else { self.rounded(ty, &text) }
            }
            (Op::Unary(op), [a]) if ty == Type::F64 => self.double_function(op, a),
            (Op::Unary(op), [a]) if ty.is_float() => self.float_function(op, a),
            (Op::Unary(op), [a]) if ty.is_wide() => self.wide_unary(op, ty, a),
            (Op::Unary(op), [a]) => self.unary(op, ty, a),
            (Op::Binary(op), [a, b]) if op.is_comparison() => comparison(op, a, b),
            (Op::Binary(op @ (BinaryOp::Min | BinaryOp::Max)), [a, b]) if ty.is_half() => {
                self.float_binary(op, a, b)
            }
            (Op::Binary(op), [a, b]) if ty.is_half() => {
                let text = self.float_binary(op, a, b);
                self.rounded(ty, &text)
            }
            (Op::Binary(op), [a, b]) if ty == Type::F64 => self.double_binary(op, a, b),
            (Op::Binary(op), [a, b]) if ty.is_float() => self.float_binary(op, a, b),
            (Op::Binary(op), [a, b]) if ty == Type::Bool => logic(op, a, b),
            (Op::Binary(op), [a, b]) if ty.is_wide() => self.wide_binary(op, ty, a, b),
            (Op::Binary(op), [a, b]) => self.binary(op, ty, a, b),
            (Op::Cast(to), [a]) => self.cast(to, a),
            (Op::SaturatingCast(to), [a]) => self.saturating_cast(to, a),
            (Op::Reinterpret(to), [a]) => self.reinterpret(to, a),
            (Op::Select, [condition, a, b]) => Text::select(condition.text, a.text, b.text),
            _ => unreachable!("operands of {} were checked", op.name()),
        }
    }

    pub(super) fn helper<const N: usize>(&mut self, helper: Helper, operands: [&Operand<'_>; N]) -> Text {
        self.helpers.insert(helper);
        Text::call(helper.name(), operands.map(|operand| operand.text))
    }

    fn float_function(&mut self, op: UnaryOp, a: &Operand<'_>) -> Text {
        match op {
            UnaryOp::Neg => Text::prefix("-", a.text),
            UnaryOp::Abs => Text::call("fabsf", [a.text]),
            UnaryOp::Floor => Text::call("floorf", [a.text]),
            UnaryOp::Ceil => Text::call("ceilf", [a.text]),
            UnaryOp::Round => Text::call("rintf", [a.text]),
            // Correctly rounded, whatever the compiler options say about square roots.
            UnaryOp::Sqrt if self.build == Build::Checking => Text::call("__fsqrt_rn", [a.text]),
            UnaryOp::Sqrt => Text::call("sqrtf", [a.text]),
            op => self.elementary(op.name(), Type::F32, [a]),
        }
    }

    /// An elementary function: our own, or that of the hardware.
    fn elementary<const N: usize>(&mut self, name: &str, ty: Type, operands: [&Operand<'_>; N]) -> Text {
        if self.build == Build::Checking {
            let number = elementary::find(name, ty);
            let number = number.unwrap_or_else(|| unreachable!("{name} is not defined on {ty}"));
            return self.helper(Helper::Elementary(number), operands);
        }
        let function = match (name, ty) {
            ("fast_exp", _) => "__expf".to_owned(),
            (name, Type::F64) => name.to_owned(),
            (name, _) => format!("{name}f"),
        };
        Text::call(&function, operands.map(|operand| operand.text))
    }

    fn float_binary(&mut self, op: BinaryOp, a: &Operand<'_>, b: &Operand<'_>) -> Text {
        match op {
            BinaryOp::Add => Text::infix(level::SUM, a.text, "+", b.text),
            BinaryOp::Sub => Text::infix(level::SUM, a.text, "-", b.text),
            BinaryOp::Mul => Text::infix(level::PRODUCT, a.text, "*", b.text),
            BinaryOp::Div => Text::infix(level::PRODUCT, a.text, "/", b.text),
            BinaryOp::Min => Text::call("fminf", [a.text, b.text]),
            BinaryOp::Max => Text::call("fmaxf", [a.text, b.text]),
            BinaryOp::Absd => Text::call("fabsf", [&Text::infix(level::SUM, a.text, "-", b.text)]),
            BinaryOp::Mod => self.helper(Helper::ModFloat, [a, b]),
            BinaryOp::Pow | BinaryOp::Atan2 => self.elementary(op.name(), Type::F32, [a, b]),
            _ => unreachable!("{} is not defined on floats", op.name()),
        }
    }

    fn double_function(&mut self, op: UnaryOp, a: &Operand<'_>) -> Text {
        match op {
            UnaryOp::Neg => Text::prefix("-", a.text),
            UnaryOp::Abs => Text::call("fabs", [a.text]),
            UnaryOp::Floor => Text::call("floor", [a.text]),
            UnaryOp::Ceil => Text::call("ceil", [a.text]),
            UnaryOp::Round => Text::call("rint", [a.text]),
            UnaryOp::Sqrt => Text::call("sqrt", [a.text]),
            op => self.elementary(op.name(), Type::F64, [a]),
        }
    }

    fn double_binary(&mut self, op: BinaryOp, a: &Operand<'_>, b: &Operand<'_>) -> Text {
        match op {
            BinaryOp::Min => Text::call("fmin", [a.text, b.text]),
            BinaryOp::Max => Text::call("fmax", [a.text, b.text]),
            BinaryOp::Absd => Text::call("fabs", [&Text::infix(level::SUM, a.text, "-", b.text)]),
            BinaryOp::Mod => self.helper(Helper::ModDouble, [a, b]),
            BinaryOp::Pow => self.elementary(op.name(), Type::F64, [a, b]),
            _ => self.float_binary(op, a, b),
        }
    }

    fn unary(&mut self, op: UnaryOp, ty: Type, a: &Operand<'_>) -> Text {
        match (op, ty) {
            (UnaryOp::IsNan, _) if a.ty == Type::F64 => self.helper(Helper::IsNanDouble, [a]),
            (UnaryOp::IsNan, _) => self.helper(Helper::IsNan, [a]),
            (UnaryOp::Popcount | UnaryOp::LeadingZeros, _) => count_of_bits(op, ty, a),
            (UnaryOp::Not, Type::Bool) => Text::prefix("!", a.text),
            (UnaryOp::Not, Type::U8 | Type::U16) => Text::cast(ty, &Text::prefix("~", a.text)),
            (UnaryOp::Not, _) => Text::prefix("~", a.text),
            (UnaryOp::Abs, _) if a.range.is_non_negative() => a.text.clone(),
            (UnaryOp::Abs, _) if wraps(Op::Unary(op), ty, &[a]) && ty == Type::I32 => {
                self.helper(Helper::Abs, [a])
            }
            (UnaryOp::Abs, _) => narrowed(Op::Unary(op), ty, &[a], Text::call("abs", [a.text])),
            (_, Type::U32) => Text::prefix("-", a.text),
            (_, Type::I16) if wraps(Op::Unary(op), ty, &[a]) => self.helper(Helper::NegShort, [a]),
            (_, Type::I32) if wraps(Op::Unary(op), ty, &[a]) => {
                Text::wrapped_int(Text::prefix("-", &a.unsigned()))
            }
            _ => narrowed(Op::Unary(op), ty, &[a], Text::prefix("-", a.text)),
        }
    }

    fn binary(&mut self, op: BinaryOp, ty: Type, a: &Operand<'_>, b: &Operand<'_>) -> Text {
        match op {
            // Negations in other forms.
            BinaryOp::Sub if ty == Type::I16 && a.int() == Some(0) => self.unary(UnaryOp::Neg, ty, b),
            BinaryOp::Mul if ty == Type::I16 && b.int() == Some(-1) => self.unary(UnaryOp::Neg, ty, a),
            BinaryOp::Mul if ty == Type::I16 && a.int() == Some(-1) => self.unary(UnaryOp::Neg, ty, b),
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => arithmetic(op, ty, a, b),
            BinaryOp::Div => self.divide(ty, a, b),
            BinaryOp::Mod => self.modulo(ty, a, b),
            BinaryOp::Min => Text::call("min", [a.text, b.text]),
            BinaryOp::Max => Text::call("max", [a.text, b.text]),
            BinaryOp::Absd => self.distance(a, b),
            BinaryOp::Average => average(ty, a, b),
            BinaryOp::And => Text::infix(level::BIT_AND, a.text, "&", b.text),
            BinaryOp::Or => Text::infix(level::BIT_OR, a.text, "|", b.text),
            BinaryOp::Xor => Text::infix(level::BIT_XOR, a.text, "^", b.text),
            BinaryOp::Shl => shift_left(ty, a, b),
            BinaryOp::Shr => Text::infix(level::SHIFT, a.text, ">>", &amount(ty, b)),
            _ => unreachable!("{} is not defined on integers", op.name()),
        }
    }

    /// Euclidean division. Uses the C++ operator where the result is the same.
    fn divide(&mut self, ty: Type, a: &Operand<'_>, b: &Operand<'_>) -> Text {
        if let (Some(exponent), true) = (b.int().and_then(power_of_two), ty.is_signed()) {
            return Text::infix(level::SHIFT, a.text, ">>", &literal::int(exponent));
        }
        if a.range.is_non_negative() && b.range.min > 0 {
            return Text::infix(level::PRODUCT, a.text, "/", b.text);
        }
        let helper = if ty == Type::U32 { Helper::DivUnsigned } else { Helper::DivInt };
        let quotient = self.helper(helper, [a, b]);
        // Only the most negative number divided by -1 overflows; for `int`, the helper wraps it.
        let leaves = a.range.min == Interval::of_type(ty).min && b.range.min < 0;
        if leaves && ty.bytes() < 4 { Text::cast(ty, &quotient) } else { quotient }
    }

    /// Euclidean remainder. Uses the C++ operator where the result is the same.
    fn modulo(&mut self, ty: Type, a: &Operand<'_>, b: &Operand<'_>) -> Text {
        if let (Some(divisor), true) = (b.int(), ty.is_signed())
            && power_of_two(divisor).is_some()
        {
            return Text::infix(level::BIT_AND, a.text, "&", &literal::int(divisor - 1));
        }
        if a.range.is_non_negative() && b.range.min > 0 {
            return Text::infix(level::PRODUCT, a.text, "%", b.text);
        }
        self.helper(if ty == Type::U32 { Helper::ModUnsigned } else { Helper::ModInt }, [a, b])
    }

    fn distance(&mut self, a: &Operand<'_>, b: &Operand<'_>) -> Text {
        let difference = || Text::call("abs", [&Text::infix(level::SUM, a.text, "-", b.text)]);
        match a.ty {
            Type::U32 => self.helper(Helper::AbsdUnsigned, [a, b]),
            Type::I32 if !wraps(Op::Binary(BinaryOp::Sub), Type::I32, &[a, b]) => {
                Text::cast(Type::U32, &difference())
            }
            Type::I32 => self.helper(Helper::AbsdInt, [a, b]),
            _ => difference(),
        }
    }
}

/// Whether a float operation gives a value of 16 bits for one of 16 bits.
fn is_exact(op: UnaryOp) -> bool {
    matches!(op, UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round)
}

/// Whether the result of an operation can overflow the type.
fn wraps(op: Op, ty: Type, operands: &[&Operand<'_>]) -> bool {
    unlimited(op, operands).is_none_or(|range| !Interval::of_type(ty).covers(range))
}

fn unlimited(op: Op, operands: &[&Operand<'_>]) -> Option<Interval> {
    let operands: Vec<interval::Operand> =
        operands.iter().map(|operand| (operand.ty, operand.range)).collect();
    interval::unlimited(op, &operands)
}

/// Casts `text`, an `int`, back to an 8- or 16-bit type where the result of `op` can overflow that
/// type.
fn narrowed(op: Op, ty: Type, operands: &[&Operand<'_>], text: Text) -> Text {
    if wraps(op, ty, operands) { Text::cast(ty, &text) } else { text }
}

/// Sums, differences and products. Those that may wrap are computed in `unsigned`, where C++
/// defines wrapping.
fn arithmetic(op: BinaryOp, ty: Type, a: &Operand<'_>, b: &Operand<'_>) -> Text {
    let (level, symbol) = match op {
        BinaryOp::Add => (level::SUM, "+"),
        BinaryOp::Sub => (level::SUM, "-"),
        _ => (level::PRODUCT, "*"),
    };
    if ty == Type::U32 {
        return Text::infix(level, a.text, symbol, b.text);
    }
    let result = unlimited(Op::Binary(op), &[a, b]).unwrap_or(Interval::of_type(Type::U32));
    if !Interval::of_type(Type::I32).covers(result) {
        let unsigned = Text::infix(level, &a.unsigned(), symbol, &b.unsigned());
        return if ty == Type::I32 { Text::wrapped_int(unsigned) } else { Text::cast(ty, &unsigned) };
    }
    // `x + -1` reads better as `x - 1`. The most negative number cannot be negated.
    let negative = |int: i64| int < 0 && int > i64::from(i32::MIN);
    let text = match (op, b.int()) {
        (BinaryOp::Add, Some(int)) if negative(int) => Text::infix(level, a.text, "-", &literal::int(-int)),
        (BinaryOp::Sub, Some(int)) if negative(int) => Text::infix(level, a.text, "+", &literal::int(-int)),
        _ => Text::infix(level, a.text, symbol, b.text),
    };
    if Interval::of_type(ty).covers(result) { text } else { Text::cast(ty, &text) }
}

/// Set bits, or zeros above the highest of them, of the pattern of an integer in 32 bits.
fn count_of_bits(op: UnaryOp, ty: Type, a: &Operand<'_>) -> Text {
    let extended = ty.bytes() < 4 && !a.range.is_non_negative();
    let pattern = if extended { Text::cast(ty.unsigned(), a.text) } else { a.text.clone() };
    let function = if op == UnaryOp::Popcount { "__popc" } else { "__clz" };
    let count = Text::call(function, [&pattern]);
    let count = match interval::bits(ty) {
        width @ ..32 if op == UnaryOp::LeadingZeros => {
            Text::infix(level::SUM, &count, "-", &literal::int(32 - width))
        }
        _ => count,
    };
    if ty == Type::U32 { Text::cast(ty, &count) } else { count }
}

fn average(ty: Type, a: &Operand<'_>, b: &Operand<'_>) -> Text {
    match ty {
        Type::I32 => Text::call("__rhadd", [a.text, b.text]),
        Type::U32 => Text::call("__urhadd", [a.text, b.text]),
        _ => {
            let sum = Text::infix(level::SUM, a.text, "+", b.text);
            let sum = Text::infix(level::SUM, &sum, "+", &literal::int(1));
            Text::infix(level::SHIFT, &sum, ">>", &literal::int(1))
        }
    }
}

fn shift_left(ty: Type, a: &Operand<'_>, b: &Operand<'_>) -> Text {
    let amount = amount(ty, b);
    // Shifting a negative `int`, or shifting bits out of an `int`, is undefined.
    let plain = a.range.is_non_negative() && !wraps(Op::Binary(BinaryOp::Shl), ty, &[a, b]);
    if plain || ty == Type::U32 {
        return Text::infix(level::SHIFT, a.text, "<<", &amount);
    }
    let unsigned = Text::infix(level::SHIFT, &a.unsigned(), "<<", &amount);
    if ty == Type::I32 { Text::wrapped_int(unsigned) } else { Text::cast(ty, &unsigned) }
}

/// The shift amount, modulo the bit width.
pub(super) fn amount(ty: Type, b: &Operand<'_>) -> Text {
    let bits = interval::bits(ty);
    match b.int() {
        Some(int) => literal::int(int.rem_euclid(bits)),
        None if b.range.is_non_negative() && b.range.max < bits => b.text.clone(),
        None if ty == Type::U64 => Text::infix(level::BIT_AND, b.text, "&", &Text::atom("63ULL")),
        None => Text::infix(level::BIT_AND, b.text, "&", &literal::int(bits - 1)),
    }
}

fn comparison(op: BinaryOp, a: &Operand<'_>, b: &Operand<'_>) -> Text {
    match op {
        BinaryOp::Eq => Text::infix(level::EQUALITY, a.text, "==", b.text),
        BinaryOp::Ne => Text::infix(level::EQUALITY, a.text, "!=", b.text),
        BinaryOp::Lt => Text::infix(level::ORDER, a.text, "<", b.text),
        _ => Text::infix(level::ORDER, a.text, "<=", b.text),
    }
}

/// Boolean operations. Both operands are pure, so short-circuit evaluation changes nothing.
fn logic(op: BinaryOp, a: &Operand<'_>, b: &Operand<'_>) -> Text {
    match op {
        BinaryOp::And => Text::infix(level::AND, a.text, "&&", b.text),
        BinaryOp::Or => Text::infix(level::OR, a.text, "||", b.text),
        _ => Text::infix(level::EQUALITY, a.text, "!=", b.text),
    }
}

/// The exponent of a power of two; `None` for other numbers.
fn power_of_two(int: i64) -> Option<i64> {
    (int > 0 && int & (int - 1) == 0).then(|| i64::from(int.trailing_zeros()))
}
