//! Why a program could not be run to its end.

use std::fmt;

use thiserror::Error;
use warploom_interp::buffer::BufferError;
use warploom_lang::{Region, Type};

/// Why a program could not be run to its end.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SimError {
    /// An input was not given.
    #[error("no buffer was given for the input `{input}`")]
    MissingInput {
        /// The input.
        input: String,
    },
    /// An input of another type.
    #[error("the input `{input}` is {expected}, but a buffer of {found} was given")]
    InputType {
        /// The input.
        input: String,
        /// Its type.
        expected: Type,
        /// The buffer's type.
        found: Type,
    },
    /// An input of another size than the program was made for.
    #[error(
        "the program was built for an input `{input}` over {expected}, but a buffer over {found} was given"
    )]
    InputRegion {
        /// The input.
        input: String,
        /// The box the program was made for.
        expected: Region,
        /// The buffer's box.
        found: Region,
    },
    /// A Param was not given.
    #[error("no value was given for Param number {param}")]
    MissingParam {
        /// Its position in the pipeline.
        param: usize,
    },
    /// A Param of another type.
    #[error("Param number {param} is {expected}, but a value of type {found} was given")]
    ParamType {
        /// Its position in the pipeline.
        param: usize,
        /// Its type.
        expected: Type,
        /// The value's type.
        found: Type,
    },
    /// An output cannot be held.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// The program breaks the rules of the kernel IR.
    #[error("{of}{}: {fault}", statement.as_ref().map_or(String::new(), |statement| format!(", {statement}")))]
    Malformed {
        /// The kernel or buffer.
        of: String,
        /// The statement, where there is one.
        statement: Option<Box<Statement>>,
        /// What is wrong.
        fault: Fault,
    },
    /// An array with more elements than the simulator can tell apart.
    #[error(
        "`{buffer}` has {elements} elements; the simulator runs pipelines with up to 2^31 - 1 in an array, so use smaller sizes"
    )]
    TooLarge {
        /// The buffer.
        buffer: String,
        /// How many elements it has.
        elements: usize,
    },
    /// A kernel without blocks or threads.
    #[error("the kernel `{kernel}` is launched without any threads")]
    EmptyLaunch {
        /// The kernel.
        kernel: String,
    },
    /// More threads in a block than the device allows.
    #[error("the kernel `{kernel}` has {threads} threads per block; the device allows {limit}")]
    TooManyThreads {
        /// The kernel.
        kernel: String,
        /// Its threads in a block.
        threads: u32,
        /// The device's limit.
        limit: u32,
    },
    /// More blocks than the device allows.
    #[error(
        "the kernel `{kernel}` has {blocks} blocks along dimension {dimension} of its grid; the limit is {limit}"
    )]
    TooManyBlocks {
        /// The kernel.
        kernel: String,
        /// The dimension of the grid.
        dimension: usize,
        /// Blocks along it.
        blocks: u32,
        /// The limit.
        limit: u32,
    },
    /// More shared memory than the device can give a block.
    #[error("the kernel `{kernel}` needs {bytes} bytes of shared memory per block; the device has {limit}")]
    TooMuchShared {
        /// The kernel.
        kernel: String,
        /// Bytes a block needs.
        bytes: usize,
        /// The device's limit.
        limit: usize,
    },
    /// An access outside an array.
    #[error("out of bounds: {access}, which has {elements} elements")]
    OutOfBounds {
        /// The access.
        access: Box<Access>,
        /// How many elements the array has.
        elements: usize,
    },
    /// A read of an element that nothing wrote: in this block for shared and per-thread arrays, ever for
    /// those in global memory.
    #[error("not initialised: {access}, which was not written")]
    Uninitialised {
        /// The access.
        access: Box<Access>,
    },
    /// Two threads touch one element with nothing that orders them, and not both read or both are atomics.
    #[error("conflict: {access}, after {earlier}")]
    Conflict {
        /// The access that came second in this run.
        access: Box<Access>,
        /// The one that came first.
        earlier: Box<Earlier>,
    },
    /// A barrier that some threads of a block reach and others don't.
    #[error(
        "barrier not reached by all: in the kernel `{kernel}`, {statement}, {active} of {threads} threads of \
         block {block:?} arrive, thread {missing} does not"
    )]
    DivergentBarrier {
        /// The kernel.
        kernel: String,
        /// The barrier.
        statement: Box<Statement>,
        /// The block.
        block: [u32; 3],
        /// How many threads arrive.
        active: u32,
        /// How many there are.
        threads: u32,
        /// The first thread that does not arrive.
        missing: u32,
    },
    /// An output has an element that no kernel wrote.
    #[error(
        "nothing wrote the output `{output}` at {point:?}, element {element}; {unwritten} elements are missing"
    )]
    UnwrittenOutput {
        /// The buffer.
        output: String,
        /// The first such element.
        element: usize,
        /// Its point.
        point: Vec<i64>,
        /// How many there are.
        unwritten: usize,
    },
    /// More blocks and barriers than can be numbered.
    #[error("the program runs more than 2^32 blocks and barriers; use smaller sizes")]
    TooLong,
}

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AccessKind {
    /// Loads.
    Read,
    /// Stores.
    Write,
    /// Combines.
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
    /// The kernel.
    pub kernel: String,
    /// The statement.
    pub statement: Statement,
    /// The array.
    pub array: String,
    /// What it does.
    pub kind: AccessKind,
    /// The element; may lie outside the array.
    pub element: i64,
    /// The block.
    pub block: [u32; 3],
    /// The thread in the block.
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

/// The access that another one is in conflict with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Earlier {
    /// What it does.
    pub kind: AccessKind,
    /// The statement, where it is known.
    pub statement: Option<Statement>,
    /// The block.
    pub block: [u32; 3],
    /// The thread in the block; `None` where all that is known is that it is another one.
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

/// Where a statement stands in a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement {
    /// Its position in the kernel's body, then in the body of the statement there, and so on.
    pub path: Vec<usize>,
    /// What stands around it, outermost first: `for x`, `if`.
    pub around: Vec<String>,
    /// What it is: `store out`, `let x`, `if`, `barrier`.
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
    /// An expression says it has a type that its operation does not give.
    #[error("node {node}, `{operation}`, cannot be a {ty} with these operands")]
    Type {
        /// The node.
        node: usize,
        /// Its operation.
        operation: String,
        /// The type it claims.
        ty: Type,
    },
    /// An index, value or condition of the wrong type.
    #[error("the {role} is a {found} where a {expected} is needed")]
    Operand {
        /// `index`, `value` or `condition`.
        role: &'static str,
        /// The type needed.
        expected: Type,
        /// The type found.
        found: Type,
    },
    /// An operand that does not come before its user.
    #[error("node {node} has an operand that does not come before it")]
    Order {
        /// The node.
        node: usize,
    },
    /// An index of 64 bits where a value is needed.
    #[error("node {node} is an offset into an array, but is used as a value")]
    Offset {
        /// The node.
        node: usize,
    },
    /// A variable that nothing binds there.
    #[error("the variable `{var}` is not bound here")]
    Unbound {
        /// The variable.
        var: String,
    },
    /// Something that does not exist.
    #[error("there is no {what} number {number}")]
    Missing {
        /// What kind of thing.
        what: &'static str,
        /// Its number.
        number: usize,
    },
    /// A write to an input.
    #[error("`{array}` is an input, which kernels may only read")]
    WritesInput {
        /// The array.
        array: String,
    },
    /// An atomic on an array of the wrong type or in the wrong place.
    #[error(
        "`{array}` cannot be updated atomically: atomics are for 32-bit numbers in global or shared memory"
    )]
    Atomic {
        /// The array.
        array: String,
    },
    /// An array that is not as its buffer.
    #[error("`{array}` differs from its buffer in type or number of elements")]
    Array {
        /// The array.
        array: String,
    },
    /// A buffer whose strides are not those of a dense array.
    #[error("the strides {strides:?} are not those of a dense array over {region}")]
    Strides {
        /// The strides.
        strides: Vec<i64>,
        /// The box.
        region: Region,
    },
}
