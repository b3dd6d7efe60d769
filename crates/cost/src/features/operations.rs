//! Counts operations by class.

use warploom_lang::Type;
use warploom_lang::op::{Class, Op};

use crate::schema::StageFeatures;

/// The number of operations of each [`Class`].
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Operations([f64; Class::COUNT]);

impl Operations {
    /// Counts one operation. `operand` is the type of its last operand; `by_power` says that it
    /// divides by a constant power of two.
    pub fn count(&mut self, op: Op, operand: Type, result: Type, by_power: bool) {
        if let Some(class) = op.class(operand, result) {
            let class = if class == Class::IntDiv && by_power { Class::IntAdd } else { class };
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
