//! The ways a program can break the rules of the kernel IR.

use std::fmt;

use thiserror::Error;
use warploom_lang::op::Op;
use warploom_lang::{Id, Type};

use crate::ir::{ArrayId, BufferId, KernelId, Leaf, NodeId, Space, StridesId, VarId};

/// A program breaks the rules of the IR. This is always a bug in the compiler.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// A launch refers to a kernel that the program does not have.
    #[error("the program launches {0}, which it does not have; this is a bug in Warploom")]
    Launch(Missing),
    /// A kernel is malformed independently of its statements.
    #[error("the kernel `{kernel}` is malformed: {fault}; this is a bug in Warploom")]
    Kernel {
        /// Name of the malformed kernel.
        kernel: String,
        /// The rule that it breaks.
        fault: Fault,
    },
    /// A statement of a kernel is malformed.
    #[error("the kernel `{kernel}` is malformed at statement {at}: {fault}; this is a bug in Warploom")]
    Statement {
        /// Name of the kernel that contains the statement.
        kernel: String,
        /// Path to the statement.
        at: StmtPath,
        /// The rule that it breaks.
        fault: Fault,
    },
}

/// The path to a statement in a kernel's body: `2.else.0` is the first statement in the `else` of
/// the third.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StmtPath(pub Vec<StmtIndex>);

/// An index into one of the lists of statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StmtIndex {
    /// In the body of a kernel, loop or `if`.
    Body(usize),
    /// In the `else` of an `if`.
    Otherwise(usize),
}

impl fmt::Display for StmtPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, step) in self.0.iter().enumerate() {
            let dot = if depth == 0 { "" } else { "." };
            match step {
                StmtIndex::Body(position) => write!(f, "{dot}{position}")?,
                StmtIndex::Otherwise(position) => write!(f, "{dot}else.{position}")?,
            }
        }
        Ok(())
    }
}

/// A reference to something that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// A kernel of the program.
    Kernel(KernelId),
    /// A buffer of the program.
    Buffer(BufferId),
    /// A scalar of the program, by position.
    Param(u32),
    /// A dimension of the grid.
    BlockDimension(u8),
    /// A loop around all launches of the kernel; 0 is the outermost.
    Iteration(u8),
    /// A scalar of the kernel.
    Scalar(u32),
    /// An array of the kernel.
    Array(ArrayId),
    /// A variable of the kernel.
    Var(VarId),
    /// A node of the kernel.
    Node(NodeId),
    /// An entry in the kernel's table of offset strides.
    Strides(StridesId),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, number) = match *self {
            Missing::Kernel(id) => ("kernel", id.index()),
            Missing::Buffer(id) => ("buffer", id.index()),
            Missing::Param(position) => ("Param", position as usize),
            Missing::BlockDimension(dimension) => ("grid dimension", dimension.into()),
            Missing::Iteration(level) => ("launch loop", level.into()),
            Missing::Scalar(position) => ("scalar", position as usize),
            Missing::Array(id) => ("array", id.index()),
            Missing::Var(id) => ("variable", id.index()),
            Missing::Node(id) => ("node", id.index()),
            Missing::Strides(id) => ("list of strides", id.index()),
        };
        write!(f, "{what} {number}")
    }
}

/// The rule of the [IR](crate::ir) that a kernel breaks. Arrays and variables are identified by
/// name.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// Something that does not exist is referred to.
    #[error("there is no {0}")]
    Missing(Missing),
    /// The grid or the block is empty, or has more blocks or threads than an index can count.
    #[error("{threads} threads in each of {grid:?} blocks cannot be launched")]
    Launch {
        /// Blocks along each dimension.
        grid: [u32; 3],
        /// Threads per block.
        threads: u32,
    },
    /// An array in global memory does not match its buffer.
    #[error("`{array}` differs from its buffer in type or number of elements")]
    Buffer {
        /// Name of the array.
        array: String,
    },
    /// A node precedes one of its operands.
    #[error("{node:?} comes before its operand {operand:?}")]
    Order {
        /// The node that comes too early.
        node: NodeId,
        /// The operand that comes after it.
        operand: NodeId,
    },
    /// An operation does not accept its operands, or has another result type.
    #[error("{node:?} cannot be `{}` of {operands:?} giving {ty}", op.name())]
    Operation {
        /// The node with the operation.
        node: NodeId,
        /// The operation that it claims to be.
        op: Op,
        /// Types of its operands.
        operands: Vec<Type>,
        /// The type that the node declares.
        ty: Type,
    },
    /// A load does not have exactly one index.
    #[error("{node:?} is a load with {indices} indices")]
    Indices {
        /// The load node.
        node: NodeId,
        /// The number of indices found.
        indices: usize,
    },
    /// The terms of an offset are not `i32`, or their number differs from that of its strides.
    #[error("the offset {node:?} with {strides} strides has terms of types {terms:?}")]
    Terms {
        /// The offset node.
        node: NodeId,
        /// The number of strides.
        strides: usize,
        /// Types of the terms.
        terms: Vec<Type>,
    },
    /// An offset is used as a value instead of an index.
    #[error("the offset {node:?} is used as a value")]
    OffsetValue {
        /// The offset node.
        node: NodeId,
    },
    /// A leaf declares the wrong type.
    #[error("{leaf:?} is a {expected}, not a {found}")]
    LeafType {
        /// The mistyped leaf.
        leaf: Leaf,
        /// The type of the variable or value behind the leaf.
        expected: Type,
        /// The type that the node declares.
        found: Type,
    },
    /// The type of a load or write differs from that of the array's elements.
    #[error("`{array}` holds {expected}, not {found}")]
    ElementType {
        /// Name of the array.
        array: String,
        /// The type of the array's elements.
        expected: Type,
        /// The type of the value.
        found: Type,
    },
    /// An index is not an `i32`.
    #[error("an index of `{array}` is a {found}")]
    IndexType {
        /// Name of the indexed array.
        array: String,
        /// The type of the index.
        found: Type,
    },
    /// An array that needs 64-bit offsets has an `i32` index.
    #[error("an index of `{array}` is too narrow for its {elements} elements")]
    NarrowIndex {
        /// Name of the indexed array.
        array: String,
        /// The number of elements of the array.
        elements: usize,
    },
    /// A condition is not a `bool`.
    #[error("a condition is a {found}")]
    Condition {
        /// The type of the condition.
        found: Type,
    },
    /// A loop count is 0 or too large for an index.
    #[error("the loop over `{var}` runs {count} times")]
    LoopCount {
        /// Name of the loop variable.
        var: String,
        /// The declared count.
        count: u32,
    },
    /// A variable is used where it has no value.
    #[error("`{var}` has no value here")]
    Unbound {
        /// Name of the unbound variable.
        var: String,
    },
    /// A variable is bound again while it has a value.
    #[error("`{var}` is bound twice")]
    BoundTwice {
        /// Name of the variable.
        var: String,
    },
    /// Not all threads of a block may reach a barrier.
    #[error("a barrier is in divergent control flow")]
    DivergentBarrier,
    /// Not all threads of a warp may reach a shuffle.
    #[error("a shuffle is in divergent control flow")]
    DivergentShuffle,
    /// Not all threads of a block may reach the end of a group of copies, or a wait for them.
    #[error("a commit or wait is in divergent control flow")]
    DivergentWait,
    /// A copy is not from a buffer to a shared array.
    #[error(
        "`{array}` is copied to, which is for shared arrays of 4 or 8 bytes an element ({ty} here) and sources in buffers that the kernel does not write"
    )]
    Copy {
        /// Name of the target array.
        array: String,
        /// The type of its elements.
        ty: Type,
    },
    /// A vector moves between the wrong arrays, or has an impossible length.
    #[error(
        "a vector of {width} moves elements of `{array}`; vectors are 2, 4, 8 or 16 elements of at most 16 bytes between a buffer and a per-thread array, or to a shared array"
    )]
    Vector {
        /// Name of the buffer, or of the array that is written.
        array: String,
        /// The number of elements.
        width: u32,
    },
    /// A vector is not known to be aligned to its length.
    #[error("a vector of {width} elements of `{array}` may start elsewhere than at a multiple of {width}")]
    Misaligned {
        /// Name of the buffer.
        array: String,
        /// The number of elements.
        width: u32,
    },
    /// A kernel with shuffles has an incomplete warp.
    #[error("a shuffle is among {threads} threads, and the last warp is not full")]
    PartialWarp {
        /// Threads per block.
        threads: u32,
    },
    /// A shuffled value does not have 4 bytes.
    #[error("a shuffle exchanges a {found}, which does not have 4 bytes")]
    ShuffledType {
        /// The type of the value.
        found: Type,
    },
    /// The lane of a shuffle is not an `i32`, or no warp has it.
    #[error("the lane of a shuffle is a {found} in {min}..={max}")]
    Lane {
        /// The type of the lane.
        found: Type,
        /// The smallest possible lane.
        min: i64,
        /// The largest possible lane.
        max: i64,
    },
    /// All possible indices of an access are out of bounds.
    #[error("an index of `{array}` lies in {min}..={max}, and the array has {elements} elements")]
    OutOfBounds {
        /// Name of the accessed array.
        array: String,
        /// The smallest possible index.
        min: i64,
        /// The largest possible index.
        max: i64,
        /// The number of elements of the array.
        elements: usize,
    },
    /// A kernel writes to an input.
    #[error("`{array}` is an input, which kernels only read")]
    WritesInput {
        /// Name of the input array.
        array: String,
    },
    /// A shared or per-thread array is read but never written.
    #[error("`{array}` is read, and nothing writes it")]
    NeverWritten {
        /// Name of the array.
        array: String,
    },
    /// An atomic targets elements that do not support it.
    #[error(
        "`{array}` is updated by atomics, which are for 32-bit elements that threads share, and for integers if they combine bits; it holds {ty} ({space:?})"
    )]
    Atomic {
        /// Name of the target array.
        array: String,
        /// The type of its elements.
        ty: Type,
        /// The memory space of the array.
        space: Space,
    },
    /// No barrier separates atomics from plain accesses of the same array.
    #[error("`{array}` is accessed by atomics and without, and no barrier stands between")]
    AtomicAndPlain {
        /// Name of the array.
        array: String,
    },
}
