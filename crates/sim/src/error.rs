//! Errors of the simulator.

use std::fmt;

use thiserror::Error;
use warploom_interp::buffer::BufferError;
use warploom_lang::{Region, Type};

/// Why a program could not be run to completion.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SimError {
    /// No buffer was given for an input.
    #[error("no buffer was given for the input `{input}`")]
    MissingInput {
        /// The name of the input.
        input: String,
    },
    /// The buffer of an input has the wrong element type.
    #[error("the input `{input}` is {expected}, but a buffer of {found} was given")]
    InputType {
        /// The name of the input.
        input: String,
        /// The declared element type.
        expected: Type,
        /// The element type of the buffer.
        found: Type,
    },
    /// The buffer of an input has another box than the program was built for.
    #[error(
        "the program was built for an input `{input}` over {expected}, but a buffer over {found} was given"
    )]
    InputRegion {
        /// The name of the input.
        input: String,
        /// The box that the program was built for.
        expected: Region,
        /// The box of the buffer.
        found: Region,
    },
    /// No value was given for a Param.
    #[error("no value was given for Param number {param}")]
    MissingParam {
        /// The position of the Param in the pipeline, from 0.
        param: usize,
    },
    /// The value of a Param has the wrong type.
    #[error("Param number {param} is {expected}, but a value of type {found} was given")]
    ParamType {
        /// The position of the Param in the pipeline, from 0.
        param: usize,
        /// The declared type.
        expected: Type,
        /// The type of the value.
        found: Type,
    },
    /// The buffer of an output cannot be created.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// The program breaks the rules of the kernel IR.
    #[error("{of}{}: {fault}", statement.as_ref().map_or(String::new(), |statement| format!(", {statement}")))]
    Malformed {
        /// The name of the kernel or buffer.
        of: String,
        /// The statement at fault; `None` if the fault is not in a statement.
        statement: Option<Box<Statement>>,
        /// The rule that the program breaks.
        fault: Fault,
    },
    /// An array has more elements than the simulator can index.
    #[error(
        "`{buffer}` has {elements} elements; the simulator runs pipelines with up to 2^31 - 1 in an array, so use smaller sizes"
    )]
    TooLarge {
        /// The name of the buffer.
        buffer: String,
        /// The number of elements of the buffer.
        elements: usize,
    },
    /// A kernel has no blocks or no threads.
    #[error("the kernel `{kernel}` is launched without any threads")]
    EmptyLaunch {
        /// The name of the kernel.
        kernel: String,
    },
    /// A kernel has more threads per block than the device allows.
    #[error("the kernel `{kernel}` has {threads} threads per block; the device allows {limit}")]
    TooManyThreads {
        /// The name of the kernel.
        kernel: String,
        /// The threads per block of the kernel.
        threads: u32,
        /// The maximum number of threads per block of the device.
        limit: u32,
    },
    /// A kernel has more blocks than the device allows.
    #[error(
        "the kernel `{kernel}` has {blocks} blocks along dimension {dimension} of its grid; the limit is {limit}"
    )]
    TooManyBlocks {
        /// The name of the kernel.
        kernel: String,
        /// The dimension of the grid: 0, 1 or 2.
        dimension: usize,
        /// The number of blocks along this dimension.
        blocks: u32,
        /// The maximum number of blocks along this dimension.
        limit: u32,
    },
    /// A kernel needs more shared memory per block than the device has.
    #[error("the kernel `{kernel}` needs {bytes} bytes of shared memory per block; the device has {limit}")]
    TooMuchShared {
        /// The name of the kernel.
        kernel: String,
        /// Shared memory per block of the kernel, in bytes.
        bytes: usize,
        /// The maximum shared memory per block of the device, in bytes.
        limit: usize,
    },
    /// A thread accesses an element outside an array.
    #[error("out of bounds: {access}, which has {elements} elements")]
    OutOfBounds {
        /// The access at fault.
        access: Box<Access>,
        /// The number of elements of the array.
        elements: usize,
    },
    /// A vector is not aligned to its length.
    #[error("misaligned: {access}, where a vector of {width} elements starts")]
    Misaligned {
        /// The access at fault.
        access: Box<Access>,
        /// The number of elements of the vector.
        width: u32,
    },
    /// A thread reads an uninitialised element. Outputs and temporaries are uninitialised when the
    /// program starts, shared and per-thread arrays when a block starts.
    #[error("not initialised: {access}, which was not written")]
    Uninitialised {
        /// The access at fault.
        access: Box<Access>,
    },
    /// Two threads access one element without synchronisation, unless both accesses are reads or both
    /// are atomics.
    #[error("conflict: {access}, after {earlier}")]
    Conflict {
        /// The access that came later in this run.
        access: Box<Access>,
        /// The access that came first.
        earlier: Box<Earlier>,
    },
    /// A thread accesses an element while an asynchronous copy to it is in flight, before the wait.
    #[error("copy under way: {access}, before the copy has arrived: {copy}")]
    UnderWay {
        /// The access at fault.
        access: Box<Access>,
        /// The copy, a write.
        copy: Box<Earlier>,
    },
    /// Some threads of a block reach a barrier, commit or wait, but others do not.
    #[error(
        "{} not reached by all: in the kernel `{kernel}`, {statement}, {active} of {threads} threads of \
         block {block:?} arrive, thread {missing} does not", statement.what
    )]
    DivergentBarrier {
        /// The name of the kernel.
        kernel: String,
        /// The barrier's statement.
        statement: Box<Statement>,
        /// The index of the block in the grid.
        block: [u32; 3],
        /// The number of threads that reach the barrier.
        active: u32,
        /// The number of threads of the block.
        threads: u32,
        /// The first thread that does not reach the barrier.
        missing: u32,
    },
    /// A thread reads a lane of its warp that does not run the shuffle with it.
    #[error(
        "shuffle from an inactive lane: in the kernel `{kernel}`, {statement}, thread {thread} of block {block:?} \
         reads lane {lane} of its warp, where the active lanes are {active:#010x}"
    )]
    InactiveLane {
        /// The name of the kernel.
        kernel: String,
        /// The shuffle's statement.
        statement: Box<Statement>,
        /// The index of the block in the grid.
        block: [u32; 3],
        /// The number of the thread in the block.
        thread: u32,
        /// The lane that it reads from; can be none of a warp's lanes.
        lane: i32,
        /// The active lanes of the warp, one bit each.
        active: u32,
    },
    /// An element of an output is not written by any kernel.
    #[error(
        "the output `{output}` was not written at {point:?}, element {element}; {unwritten} elements are missing"
    )]
    UnwrittenOutput {
        /// The name of the output.
        output: String,
        /// The position in memory of the first unwritten element.
        element: usize,
        /// The coordinates of this element.
        point: Vec<i64>,
        /// The number of unwritten elements.
        unwritten: usize,
    },
    /// A kernel writes memory that lies between the rows of an output.
    #[error("a kernel wrote between the rows of the output `{output}`")]
    WrittenBetweenRows {
        /// The name of the output.
        output: String,
    },
    /// The program runs more blocks and barriers than the simulator can number.
    #[error("the program runs more than 2^32 blocks and barriers; use smaller sizes")]
    TooLong,
}

/// The kind of an access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AccessKind {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An atomic update.
    Atomic,
}

impl AccessKind {
    fn verb(self) -> &'static str {
        match self {
            AccessKind::Read => "reads",
            AccessKind::Write => "writes",
            AccessKind::Atomic => "updates",
        }
    }

    fn done(self) -> &'static str {
        match self {
            AccessKind::Read => "read",
            AccessKind::Write => "wrote",
            AccessKind::Atomic => "updated",
        }
    }
}

/// An access that was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// The name of the kernel.
    pub kernel: String,
    /// The statement that contains the access.
    pub statement: Statement,
    /// The name of the array.
    pub array: String,
    /// Whether it is a read, a write or an atomic.
    pub kind: AccessKind,
    /// The position of the element; can be outside the array.
    pub element: i64,
    /// The index of the block in the grid.
    pub block: [u32; 3],
    /// The number of the thread in the block.
    pub thread: u32,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Access { kernel, statement, array, kind, element, block, thread } = self;
        let verb = kind.verb();
        write!(f, "in the kernel `{kernel}`, {statement}, ")?;
        write!(f, "thread {thread} of block {block:?} {verb} element {element} of `{array}`")
    }
}

/// The earlier one of two conflicting accesses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Earlier {
    /// Whether it is a read, a write or an atomic.
    pub kind: AccessKind,
    /// The statement that contains the access; `None` if it is unknown.
    pub statement: Option<Statement>,
    /// The index of the block in the grid.
    pub block: [u32; 3],
    /// The number of the thread in the block; `None` if it is only known to be a different thread.
    pub thread: Option<u32>,
}

impl fmt::Display for Earlier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.thread {
            Some(thread) => write!(f, "thread {thread} of block {:?}", self.block)?,
            None => write!(f, "another thread of block {:?}", self.block)?,
        }
        write!(f, " {} it", self.kind.done())?;
        match &self.statement {
            Some(statement) => write!(f, " in {statement}"),
            None => Ok(()),
        }
    }
}

/// The location of a statement in a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement {
    /// The position in the kernel's body, then in the body of the statement at that position, and so
    /// on.
    pub path: Vec<usize>,
    /// The enclosing statements, outermost first: `for x`, `if`.
    pub around: Vec<String>,
    /// A short description: `store out`, `let x`, `if`, `barrier`.
    pub what: String,
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path: Vec<String> = self.path.iter().map(usize::to_string).collect();
        write!(f, "statement {} (", path.join("."))?;
        for around in &self.around {
            write!(f, "{around} / ")?;
        }
        write!(f, "{})", self.what)
    }
}

/// How a program breaks the rules of the kernel IR.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Fault {
    /// The declared type of an expression differs from the result type of its operation.
    #[error("node {node}, `{operation}`, cannot be a {ty} with these operands")]
    Type {
        /// The number of the node.
        node: usize,
        /// The operation of the node.
        operation: String,
        /// The declared type of the node.
        ty: Type,
    },
    /// An index, value or condition has the wrong type.
    #[error("the {role} is a {found} where a {expected} is needed")]
    Operand {
        /// `index`, `value` or `condition`.
        role: &'static str,
        /// The required type.
        expected: Type,
        /// The actual type.
        found: Type,
    },
    /// An operand does not come before the node that uses it.
    #[error("node {node} has an operand that does not come before it")]
    Order {
        /// The number of the node.
        node: usize,
    },
    /// A 64-bit index is used where a value is required.
    #[error("node {node} is an offset into an array, but is used as a value")]
    Offset {
        /// The number of the node.
        node: usize,
    },
    /// A variable is used where it is not bound.
    #[error("the variable `{var}` is not bound here")]
    Unbound {
        /// The name of the variable.
        var: String,
    },
    /// A number refers to an object that does not exist.
    #[error("there is no {what} number {number}")]
    Missing {
        /// The kind of object, such as `array` or `buffer`.
        what: &'static str,
        /// The number that does not exist.
        number: usize,
    },
    /// A kernel writes to an input.
    #[error("`{array}` is an input, which kernels may only read")]
    WritesInput {
        /// The name of the array.
        array: String,
    },
    /// An atomic updates an array of an unsupported type or memory.
    #[error(
        "`{array}` cannot be updated atomically: atomics are for 32-bit numbers in global or shared memory"
    )]
    Atomic {
        /// The name of the array.
        array: String,
    },
    /// A copy is not from a buffer to a shared array.
    #[error("`{array}` cannot be copied to: copies move 4 or 8 bytes from global to shared memory")]
    Copy {
        /// The name of the array.
        array: String,
    },
    /// A vector is not between a buffer and a per-thread array of the same type.
    #[error(
        "`{array}` cannot be written by vectors: they move elements between global memory and per-thread arrays"
    )]
    Vector {
        /// The name of the array.
        array: String,
    },
    /// An array differs from its buffer.
    #[error("`{array}` differs from its buffer in type or number of elements")]
    Array {
        /// The name of the array.
        array: String,
    },
    /// The strides of a buffer let points overlap, or none of them is 1.
    #[error("the strides {strides:?} do not keep the points apart of an array over {region}")]
    Strides {
        /// The strides of the buffer, in elements.
        strides: Vec<i64>,
        /// The box of the buffer.
        region: Region,
    },
}
