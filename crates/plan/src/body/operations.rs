//! Counts operations by class.

use warploom_lang::Type;
use warploom_lang::op::{Class, Op};

/// The number of operations of each [`Class`].
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Operations(pub [f64; Class::COUNT]);

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
}
