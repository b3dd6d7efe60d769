//! A kernel as a flat list of instructions over registers.
//!
//! A register is a *row*, with one pattern of 32 or 64 bits per thread of the block, or a *scalar*, which is uniform.
//! Scalars are constants, block indices, loop variables, Params, and values computed only from these.

use smallvec::SmallVec;
use warploom_codegen::ir::{AtomicOp, BufferId, Strides};
use warploom_lang::Type;
use warploom_lang::op::Op;

use crate::counters::Operations;
use crate::error::{AccessKind, Statement};
use crate::traffic::Geometry;

/// The register of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    Scalar(usize),
    Row(usize),
    /// A row of 64-bit patterns.
    Wide(usize),
}

impl Slot {
    /// Whether the value may differ between threads.
    pub fn varies(self) -> bool {
        !matches!(self, Slot::Scalar(_))
    }
}

/// The row with the thread numbers.
pub const THREAD_ROW: usize = 0;

/// One instruction. `body`, `end` and `to` are positions of other instructions.
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
    /// Starts to copy a value that was loaded to a shared array.
    Copy {
        to: Touch,
        value: Slot,
    },
    /// Moves adjacent elements between a buffer and a per-thread array.
    Vector(Vector),
    /// Commits a group of the copies since the last commit.
    Commit {
        site: usize,
    },
    /// Waits until at most this many groups are in flight.
    Wait {
        groups: u32,
        site: usize,
    },
    Atomic {
        op: AtomicOp,
        to: Touch,
        value: Slot,
    },
    /// Copies a register of another lane of each thread's warp. `to` differs from all other registers.
    Shuffle(Shuffle),
    /// Counts the active threads of the statement with this cost.
    Count(usize),
    /// Starts a loop; jumps to `end` if it has no iterations.
    Loop {
        counter: usize,
        count: u32,
        end: usize,
    },
    /// Jumps back to `body` until the loop has run `count` times.
    Next {
        counter: usize,
        count: u32,
        body: usize,
    },
    /// Jumps to `end` unless a scalar condition holds.
    Unless {
        condition: usize,
        end: usize,
    },
    /// Jumps to `to`.
    Jump {
        to: usize,
    },
    /// Until [`Instruction::Widen`], narrows the active threads to those where a row holds. If there are none, jumps to
    /// `end`, which is at that instruction or at [`Instruction::Otherwise`].
    Narrow {
        condition: usize,
        end: usize,
    },
    /// Within [`Instruction::Narrow`]: switches to the threads where the row does not hold. Jumps to `end`
    /// if there are none.
    Otherwise {
        end: usize,
    },
    /// Ends an [`Instruction::Narrow`].
    Widen,
    Barrier {
        site: usize,
    },
    /// Reports an access to the observer; only in observed code.
    Watch(Box<Watch>),
}

/// An operation on registers. The result register differs from all operand registers.
#[derive(Debug)]
pub struct Apply {
    pub op: Op,
    /// The type of the (last) operand.
    pub operand: Type,
    pub result: Type,
    pub to: Slot,
    pub args: SmallVec<[Slot; 3]>,
}

/// An exchange between the lanes of a warp.
#[derive(Clone, Copy, Debug)]
pub struct Shuffle {
    pub value: Slot,
    pub lane: Slot,
    /// The row of the result.
    pub to: Slot,
    pub site: usize,
}

/// An index that is computed in 64 bits. It saturates to 32 bits, because no array here has more elements.
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

/// A move of `width` adjacent elements. Each thread's first element is a multiple of `width`, except in per-thread
/// arrays.
#[derive(Clone, Copy, Debug)]
pub struct Vector {
    pub to: Touch,
    pub from: Touch,
    pub width: u32,
    pub moves: Moves,
}

/// The two sides of a vector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moves {
    /// Elements of a buffer to an array of the thread.
    Loads,
    /// Elements of an array of the thread to a buffer.
    Stores,
    /// Elements of a buffer to a shared array, asynchronously.
    Copies,
}

/// An access to report.
#[derive(Debug)]
pub struct Watch {
    pub array: usize,
    pub kind: AccessKind,
    /// The element that was written, and how many elements after this one; `None` for a load.
    pub index: Option<(Slot, u32)>,
    /// The coordinates of the point.
    pub at: SmallVec<[Slot; 4]>,
    pub stage: usize,
}

/// The memory of an array.
#[derive(Clone, Copy, Debug)]
pub enum Home {
    Global(BufferId),
    /// The array's number among the kernel's shared arrays.
    Shared(usize),
    /// The array's number among the kernel's per-thread arrays.
    Thread(usize),
}

/// An array of the kernel.
#[derive(Debug)]
pub struct ArrayCode {
    pub name: String,
    pub ty: Type,
    pub elements: usize,
    pub home: Home,
    /// Whether any statement of the kernel writes the memory. If not, reads cannot conflict.
    pub written: bool,
    pub geometry: Geometry,
}

/// The operations of one thread that runs a statement.
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
    /// The initial values of the scalars.
    pub scalars: Vec<u64>,
    /// The scalars that hold the block's indices.
    pub block: [usize; 3],
    /// The positions of Params, with their scalars.
    pub params: Vec<(usize, usize)>,
    /// The depths of the loops around the kernel, with the scalars of their iterations.
    pub iterations: Vec<(usize, usize)>,
    /// The number of rows.
    pub rows: usize,
    /// The number of rows of 64-bit patterns.
    pub wide_rows: usize,
    /// The maximum number of nested masks, including the full one.
    pub masks: usize,
    pub arrays: Vec<ArrayCode>,
    pub costs: Vec<Cost>,
    /// The statements of accesses, shuffles, barriers and waits, for error messages.
    pub sites: Vec<Statement>,
}
