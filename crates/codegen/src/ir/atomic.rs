//! The operations of atomics.

use serde::{Deserialize, Serialize};
use warploom_lang::Type;
use warploom_lang::op::BinaryOp;

/// How an atomic combines a value with an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum AtomicOp {
    /// Stores the sum.
    Add,
    /// Stores the smaller one.
    Min,
    /// Stores the larger one.
    Max,
    /// Stores the bits that both have.
    And,
    /// Stores the bits that one or both have.
    Or,
    /// Stores the bits that one has and the other has not.
    Xor,
}

impl AtomicOp {
    /// All of them, in order.
    pub const ALL: [AtomicOp; 6] =
        [AtomicOp::Add, AtomicOp::Min, AtomicOp::Max, AtomicOp::And, AtomicOp::Or, AtomicOp::Xor];

    /// The operation of the language that it computes.
    pub fn operation(self) -> BinaryOp {
        match self {
            AtomicOp::Add => BinaryOp::Add,
            AtomicOp::Min => BinaryOp::Min,
            AtomicOp::Max => BinaryOp::Max,
            AtomicOp::And => BinaryOp::And,
            AtomicOp::Or => BinaryOp::Or,
            AtomicOp::Xor => BinaryOp::Xor,
        }
    }

    /// Whether it is defined for elements of a type.
    pub fn works_on(self, ty: Type) -> bool {
        let arithmetic = matches!(self, AtomicOp::Add | AtomicOp::Min | AtomicOp::Max);
        ty.bytes() == 4 && (arithmetic || !ty.is_float())
    }
}
