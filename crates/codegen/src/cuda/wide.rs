//! Operations on integers of 64 bits in C++.

use warploom_lang::Type;
use warploom_lang::op::{BinaryOp, UnaryOp};

use super::expr::{Printer, amount};
use super::literal;
use super::operand::Operand;
use super::prelude::Helper;
use super::text::{Text, level};

impl Printer<'_> {
    pub(super) fn wide_unary(&mut self, op: UnaryOp, ty: Type, a: &Operand<'_>) -> Text {
        let counted = |function| Text::cast(ty, &Text::call(function, [a.text]));
        match op {
            UnaryOp::Not => Text::prefix("~", a.text),
            UnaryOp::Popcount => counted("__popcll"),
            UnaryOp::LeadingZeros => counted("__clzll"),
            UnaryOp::Abs if ty == Type::U64 => a.text.clone(),
            UnaryOp::Abs => self.helper(Helper::AbsWide, [a]),
            _ if ty == Type::U64 => Text::prefix("-", a.text),
            _ => Text::cast(ty, &Text::prefix("-", &unsigned(a))),
        }
    }

    pub(super) fn wide_binary(&mut self, op: BinaryOp, ty: Type, a: &Operand<'_>, b: &Operand<'_>) -> Text {
        let signed = ty == Type::I64;
        match op {
            BinaryOp::Add => wrapping(ty, level::SUM, "+", a, b),
            BinaryOp::Sub => wrapping(ty, level::SUM, "-", a, b),
            BinaryOp::Mul => wrapping(ty, level::PRODUCT, "*", a, b),
            BinaryOp::Div => {
                self.helper(if signed { Helper::DivWide } else { Helper::DivWideUnsigned }, [a, b])
            }
            BinaryOp::Mod => {
                self.helper(if signed { Helper::ModWide } else { Helper::ModWideUnsigned }, [a, b])
            }
            BinaryOp::Min => Text::call("min", [a.text, b.text]),
            BinaryOp::Max => Text::call("max", [a.text, b.text]),
            BinaryOp::Absd if a.ty == Type::I64 => self.helper(Helper::AbsdWide, [a, b]),
            BinaryOp::Absd => self.helper(Helper::AbsdWideUnsigned, [a, b]),
            BinaryOp::Average => {
                self.helper(if signed { Helper::AverageWide } else { Helper::AverageWideUnsigned }, [a, b])
            }
            BinaryOp::And => Text::infix(level::BIT_AND, a.text, "&", b.text),
            BinaryOp::Or => Text::infix(level::BIT_OR, a.text, "|", b.text),
            BinaryOp::Xor => Text::infix(level::BIT_XOR, a.text, "^", b.text),
            BinaryOp::Shl if signed => {
                Text::cast(ty, &Text::infix(level::SHIFT, &unsigned(a), "<<", &amount(ty, b)))
            }
            BinaryOp::Shl => Text::infix(level::SHIFT, a.text, "<<", &amount(ty, b)),
            BinaryOp::Shr => Text::infix(level::SHIFT, a.text, ">>", &amount(ty, b)),
            _ => unreachable!("{} is not defined on integers", op.name()),
        }
    }
}

/// A wrapping operation. C++ defines it only for unsigned integers.
fn wrapping(ty: Type, level: u8, symbol: &str, a: &Operand<'_>, b: &Operand<'_>) -> Text {
    match ty {
        Type::I64 => Text::cast(ty, &Text::infix(level, &unsigned(a), symbol, &unsigned(b))),
        _ => Text::infix(level, a.text, symbol, b.text),
    }
}

/// The operand's bits as `unsigned long long`.
fn unsigned(a: &Operand<'_>) -> Text {
    match a.int() {
        Some(int) if int >= 0 => literal::literal((int as u64).into()),
        _ => Text::cast(Type::U64, a.text),
    }
}

pub(super) const DIV: &str = "\
// Quotient whose remainder is never negative; 0 for b = 0.
static __device__ __forceinline__ long long wl_div(long long a, long long b) {
    if (b == 0LL) return 0LL;
    if (b == -1LL) return (long long)-(unsigned long long)a;
    const long long q = a / b;
    return a - q * b >= 0LL ? q : b > 0LL ? q - 1LL : q + 1LL;
}";

pub(super) const DIV_UNSIGNED: &str = "\
static __device__ __forceinline__ unsigned long long wl_div(unsigned long long a, unsigned long long b) {
    return b == 0ULL ? 0ULL : a / b;
}";

pub(super) const MOD: &str = "\
// Remainder that is never negative; 0 for b = 0.
static __device__ __forceinline__ long long wl_mod(long long a, long long b) {
    if (b == 0LL || b == -1LL) return 0LL;
    const long long r = a % b;
    const unsigned long long size = b > 0LL ? (unsigned long long)b : -(unsigned long long)b;
    return r >= 0LL ? r : (long long)((unsigned long long)r + size);
}";

pub(super) const MOD_UNSIGNED: &str = "\
static __device__ __forceinline__ unsigned long long wl_mod(unsigned long long a, unsigned long long b) {
    return b == 0ULL ? 0ULL : a % b;
}";

pub(super) const ABS: &str = "\
static __device__ __forceinline__ long long wl_abs(long long a) {
    return a < 0LL ? (long long)-(unsigned long long)a : a;
}";

pub(super) const ABSD: &str = "\
static __device__ __forceinline__ unsigned long long wl_absd(long long a, long long b) {
    const unsigned long long x = (unsigned long long)a, y = (unsigned long long)b;
    return a > b ? x - y : y - x;
}";

pub(super) const ABSD_UNSIGNED: &str = "\
static __device__ __forceinline__ unsigned long long wl_absd(unsigned long long a, unsigned long long b) {
    return a > b ? a - b : b - a;
}";

pub(super) const AVERAGE: &str = "\
static __device__ __forceinline__ long long wl_average(long long a, long long b) {
    return (long long)((unsigned long long)(a | b) - (unsigned long long)((a ^ b) >> 1));
}";

pub(super) const AVERAGE_UNSIGNED: &str = "\
static __device__ __forceinline__ unsigned long long wl_average(unsigned long long a, unsigned long long b) {
    return (a | b) - ((a ^ b) >> 1);
}";
