//! Counts operations by class.

use warploom_lang::Type;
use warploom_lang::op::{BinaryOp, Op, UnaryOp};

use crate::schema::StageFeatures;

/// Operation counts, in the order of the fields of [`StageFeatures`].
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Operations([f64; 12]);

/// The operation classes, in the same order.
#[derive(Clone, Copy)]
enum Class {
    F32Add,
    F32Mul,
    F32Div,
    F32Sqrt,
    F32Special,
    F32Compare,
    Convert,
    Select,
    IntAdd,
    IntMul,
    IntDiv,
    IntCompare,
}

impl Operations {
    /// Counts one operation. `operand` is the type of its last operand; `by_power` says that it
    /// divides by a constant power of two.
    pub fn count(&mut self, op: Op, operand: Type, result: Type, by_power: bool) {
        if let Some(class) = class(op, operand, result, by_power) {
            self.0[class as usize] += 1.0;
        }
    }

    /// Counts a read of a constant table. It stays in the L1 cache, so it costs a turn of the load unit, whose rate is
    /// that of conversions.
    pub fn count_table(&mut self) {
        self.0[Class::Convert as usize] += 1.0;
    }

    /// Writes all counts, multiplied by `times`.
    pub fn write(&self, times: f64, features: &mut StageFeatures) {
        let slots = [
            &mut features.f32_add,
            &mut features.f32_mul,
            &mut features.f32_div,
            &mut features.f32_sqrt,
            &mut features.f32_special,
            &mut features.f32_compare,
            &mut features.convert,
            &mut features.select,
            &mut features.int_add,
            &mut features.int_mul,
            &mut features.int_div,
            &mut features.int_compare,
        ];
        for (slot, count) in slots.into_iter().zip(self.0) {
            *slot = count * times;
        }
    }
}

fn class(op: Op, operand: Type, result: Type, by_power: bool) -> Option<Class> {
    let float = operand.is_float();
    Some(match op {
        Op::Const(_) | Op::Reinterpret(_) => return None,
        Op::Cast(_) | Op::SaturatingCast(_) if operand == result => return None,
        Op::Cast(_) | Op::SaturatingCast(_) if float || result.is_float() => Class::Convert,
        Op::Cast(_) | Op::SaturatingCast(_) => Class::IntAdd,
        Op::Select => Class::Select,
        Op::Unary(op) if float => match op {
            UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Not => Class::F32Add,
            UnaryOp::IsNan => Class::F32Compare,
            UnaryOp::Sqrt | UnaryOp::Rsqrt => Class::F32Sqrt,
            UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round => Class::Convert,
            _ => Class::F32Special,
        },
        Op::Unary(_) => Class::IntAdd,
        Op::Binary(op) => match (op, float) {
            (BinaryOp::Mul, true) => Class::F32Mul,
            (BinaryOp::Mul, false) => Class::IntMul,
            (BinaryOp::Div | BinaryOp::Mod, true) => Class::F32Div,
            (BinaryOp::Div | BinaryOp::Mod, false) if by_power => Class::IntAdd,
            (BinaryOp::Div | BinaryOp::Mod, false) => Class::IntDiv,
            (BinaryOp::Pow | BinaryOp::Atan2, true) => Class::F32Special,
            (op, true) if op.is_comparison() || matches!(op, BinaryOp::Min | BinaryOp::Max) => {
                Class::F32Compare
            }
            (op, false) if op.is_comparison() || matches!(op, BinaryOp::Min | BinaryOp::Max) => {
                Class::IntCompare
            }
            (_, true) => Class::F32Add,
            (_, false) => Class::IntAdd,
        },
    })
}
