//! A kernel as a flat list of instructions over registers.
//!
//! A register is a *row*, one 32-bit pattern a thread of the block, or a *scalar*, where all threads have the
//! same: constants, block indices, loop variables, Params, and whatever is computed from those alone.

use smallvec::SmallVec;
use warploom_codegen::ir::{AtomicOp, BufferId, Strides};
use warploom_lang::Type;
use warploom_lang::op::Op;

use crate::counters::Operations;
use crate::error::Statement;
use crate::traffic::Geometry;

/// Where a value is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    Scalar(usize),
    Row(usize),
}

/// The row that holds the threads' numbers.
pub const THREAD_ROW: usize = 0;

/// One step. Positions are those of other instructions.
#[derive(Debug)]
pub enum Instruction {
    Apply(Apply),
    Offset(Offset),
    Load {
        from: Touch,
        to: Slot,
    },
    Store {
        to: Touch,
        value: Slot,
    },
    Atomic {
        op: AtomicOp,
        to: Touch,
        value: Slot,
    },
    /// The threads run a statement of this cost.
    Count(usize),
    /// Starts a loop; goes to `end` if it never runs.
    Loop {
        counter: usize,
        count: u32,
        end: usize,
    },
    /// Goes back to `body` until the loop has run `count` times.
    Next {
        counter: usize,
        count: u32,
        body: usize,
    },
    /// Goes to `end` unless a scalar condition holds.
    Unless {
        condition: usize,
        end: usize,
    },
    /// Goes to `to`.
    Jump {
        to: usize,
    },
    /// Runs what follows up to [`Instruction::Widen`] where a row holds; goes to `end`, which is there or at
    /// [`Instruction::Otherwise`], if that is nowhere.
    Narrow {
        condition: usize,
        end: usize,
    },
    /// Within [`Instruction::Narrow`]: goes on where the row does not hold; goes to `end` if that is nowhere.
    Otherwise {
        end: usize,
    },
    /// The end of what [`Instruction::Narrow`] began.
    Widen,
    Barrier {
        site: usize,
    },
}

/// An operation on registers. The result's register is none of the operands'.
#[derive(Debug)]
pub struct Apply {
    pub op: Op,
    /// Type of the (last) operand.
    pub operand: Type,
    pub result: Type,
    pub to: Slot,
    pub args: SmallVec<[Slot; 3]>,
}

/// An index that is computed in 64 bits. What does not fit in 32 becomes the nearest number that does: no array
/// here has such elements.
#[derive(Debug)]
pub struct Offset {
    pub strides: Strides,
    pub to: Slot,
    pub terms: SmallVec<[Slot; 3]>,
}

/// An access to an array.
#[derive(Clone, Copy, Debug)]
pub struct Touch {
    pub array: usize,
    pub index: Slot,
    pub site: usize,
}

/// Where an array lives.
#[derive(Clone, Copy, Debug)]
pub enum Home {
    Global(BufferId),
    /// The number among the kernel's shared arrays.
    Shared(usize),
    /// The number among the kernel's per-thread arrays.
    Thread(usize),
}

/// An array of the kernel.
#[derive(Debug)]
pub struct ArrayCode {
    pub name: String,
    pub ty: Type,
    pub elements: usize,
    pub home: Home,
    /// Whether any statement of the kernel writes the memory: if not, reads cannot be in conflict.
    pub written: bool,
    pub geometry: Geometry,
}

/// What one thread that runs a statement does.
#[derive(Clone, Copy, Default, Debug)]
pub struct Cost {
    pub operations: Operations,
    pub lane_operations: u64,
}

/// A compiled kernel.
#[derive(Debug)]
pub struct Code {
    pub name: String,
    pub grid: [u32; 3],
    pub threads: usize,
    pub instructions: Vec<Instruction>,
    /// What scalars hold at first.
    pub scalars: Vec<u32>,
    /// The scalars of the block's indices.
    pub block: [usize; 3],
    /// Positions of Params, and their scalars.
    pub params: Vec<(usize, usize)>,
    /// Depths of loops around the kernel, and the scalars of their iterations.
    pub iterations: Vec<(usize, usize)>,
    /// How many rows there are.
    pub rows: usize,
    /// How many masks are ever open at a time, the full one included.
    pub masks: usize,
    pub arrays: Vec<ArrayCode>,
    pub costs: Vec<Cost>,
    /// The statements of accesses and barriers, for messages.
    pub sites: Vec<Statement>,
}
