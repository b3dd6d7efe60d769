//! How a program can break the rules of the kernel IR.

use std::fmt;

use thiserror::Error;
use warploom_lang::op::Op;
use warploom_lang::{Id, Type};

use crate::ir::{ArrayId, BufferId, KernelId, Leaf, NodeId, Space, StridesId, VarId};

/// A program that breaks the rules of the IR: always a mistake of the compiler.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// A launch of a kernel that the program does not have.
    #[error("the program launches {0}, which it does not have; this is a bug in Warploom")]
    Launch(Missing),
    /// A kernel that is malformed before any statement is looked at.
    #[error("the kernel `{kernel}` is malformed: {fault}; this is a bug in Warploom")]
    Kernel {
        /// Its name.
        kernel: String,
        /// The rule it breaks.
        fault: Fault,
    },
    /// A statement of a kernel.
    #[error("the kernel `{kernel}` is malformed at statement {at}: {fault}; this is a bug in Warploom")]
    Statement {
        /// The kernel's name.
        kernel: String,
        /// Where the statement stands.
        at: StmtPath,
        /// The rule it breaks.
        fault: Fault,
    },
}

/// Where a statement stands in a kernel's body: `2.else.0` is the first one of the `else` of the third.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StmtPath(pub Vec<Step>);

/// A position in a list of statements, by the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
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
                Step::Body(position) => write!(f, "{dot}{position}")?,
                Step::Otherwise(position) => write!(f, "{dot}else.{position}")?,
            }
        }
        Ok(())
    }
}

/// Something that is named but does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// A kernel of the program.
    Kernel(KernelId),
    /// A buffer of the program.
    Buffer(BufferId),
    /// A scalar of the program, by its position.
    Param(u32),
    /// A dimension of the grid.
    BlockDimension(u8),
    /// A loop around all launches of the kernel, counted from the outermost.
    Iteration(u8),
    /// An array of the kernel.
    Array(ArrayId),
    /// A variable of the kernel.
    Var(VarId),
    /// A node of the kernel.
    Node(NodeId),
    /// The strides of an offset.
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
            Missing::Array(id) => ("array", id.index()),
            Missing::Var(id) => ("variable", id.index()),
            Missing::Node(id) => ("node", id.index()),
            Missing::Strides(id) => ("list of strides", id.index()),
        };
        write!(f, "{what} {number}")
    }
}

/// The rule of the [IR](crate::ir) that a kernel breaks. Arrays and variables go by their names.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// A name of something that does not exist.
    #[error("there is no {0}")]
    Missing(Missing),
    /// A grid or a block of no size, or with more blocks or threads than an index can count.
    #[error("{threads} threads in each of {grid:?} blocks cannot be launched")]
    Launch {
        /// Blocks along each dimension.
        grid: [u32; 3],
        /// Threads of a block.
        threads: u32,
    },
    /// An array in global memory that is not as its buffer.
    #[error("`{array}` differs from its buffer in type or number of elements")]
    Buffer {
        /// The array.
        array: String,
    },
    /// A node that does not come after its operands.
    #[error("{node:?} comes before its operand {operand:?}")]
    Order {
        /// The node.
        node: NodeId,
        /// Its operand.
        operand: NodeId,
    },
    /// An operation that does not take such operands, or gives another type.
    #[error("{node:?} cannot be `{}` of {operands:?} giving {ty}", op.name())]
    Operation {
        /// The node.
        node: NodeId,
        /// What it does.
        op: Op,
        /// Types of the operands.
        operands: Vec<Type>,
        /// The type that it says it has.
        ty: Type,
    },
    /// A load with no index, or several.
    #[error("{node:?} is a load with {indices} indices")]
    Indices {
        /// The load.
        node: NodeId,
        /// How many there are.
        indices: usize,
    },
    /// An offset whose terms are not `i32`, or not as many as its strides.
    #[error("the offset {node:?} with {strides} strides has terms of types {terms:?}")]
    Terms {
        /// The offset.
        node: NodeId,
        /// How many strides it has.
        strides: usize,
        /// Types of its terms.
        terms: Vec<Type>,
    },
    /// An offset that stands anywhere but as an index.
    #[error("the offset {node:?} is used as a value")]
    OffsetValue {
        /// The offset.
        node: NodeId,
    },
    /// A leaf that says it has another type than what it stands for.
    #[error("{leaf:?} is a {expected}, not a {found}")]
    LeafType {
        /// The leaf.
        leaf: Leaf,
        /// What it stands for.
        expected: Type,
        /// What its node says.
        found: Type,
    },
    /// A load or write of another type than the array's elements.
    #[error("`{array}` holds {expected}, not {found}")]
    ElementType {
        /// The array.
        array: String,
        /// The type of its elements.
        expected: Type,
        /// The type of the value.
        found: Type,
    },
    /// An index that is no `i32`.
    #[error("an index of `{array}` is a {found}")]
    IndexType {
        /// The array.
        array: String,
        /// The type of the index.
        found: Type,
    },
    /// An `i32` index of an array that needs offsets.
    #[error("an index of `{array}` cannot count its {elements} elements")]
    NarrowIndex {
        /// The array.
        array: String,
        /// How many elements it has.
        elements: usize,
    },
    /// A condition that is no truth value.
    #[error("a condition is a {found}")]
    Condition {
        /// Its type.
        found: Type,
    },
    /// A loop that never runs, or more often than an index can count.
    #[error("the loop over `{var}` runs {count} times")]
    LoopCount {
        /// Its variable.
        var: String,
        /// How often it is said to run.
        count: u32,
    },
    /// A variable where it has no value.
    #[error("`{var}` has no value here")]
    Unbound {
        /// The variable.
        var: String,
    },
    /// A variable that has a value already.
    #[error("`{var}` is bound twice")]
    BoundTwice {
        /// The variable.
        var: String,
    },
    /// A barrier that not all threads of a block may come by.
    #[error("a barrier stands where threads may differ")]
    DivergentBarrier,
    /// An access all of whose possible indices lie outside the array.
    #[error("an index of `{array}` lies in {min}..={max}, and the array has {elements} elements")]
    OutOfBounds {
        /// The array.
        array: String,
        /// The smallest index.
        min: i64,
        /// The largest.
        max: i64,
        /// How many elements the array has.
        elements: usize,
    },
    /// A write to an input.
    #[error("`{array}` is an input, which kernels only read")]
    WritesInput {
        /// The array.
        array: String,
    },
    /// A read of a block's or thread's array that nothing writes.
    #[error("`{array}` is read, and nothing writes it")]
    NeverWritten {
        /// The array.
        array: String,
    },
    /// An atomic on elements that have none.
    #[error(
        "`{array}` is updated by atomics, which are for 32-bit elements that threads share; it holds {ty} ({space:?})"
    )]
    Atomic {
        /// The array.
        array: String,
        /// The type of its elements.
        ty: Type,
        /// Where it lives.
        space: Space,
    },
    /// Atomics and other accesses of one array that no barrier separates.
    #[error("`{array}` is accessed by atomics and without, and no barrier stands between")]
    AtomicAndPlain {
        /// The array.
        array: String,
    },
}
