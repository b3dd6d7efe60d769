//! The kernel IR: the output of lowering, and the only input of the simulator, the printer and the
//! runtime.
//!
//! # The model
//!
//! A [`Program`] is a list of launches over [buffers](BufferDecl) in global memory. A launch runs
//! one [`Kernel`] with `grid` blocks of `threads` threads each. Every thread runs the kernel's
//! body. The threads of a block share its shared arrays and synchronise at barriers. The order of
//! blocks is undefined.
//!
//! - **Threads** have one index, [`Leaf::Thread`], from 0; 32 consecutive threads form a warp.
//!   Blocks have up to three indices, [`Leaf::Block`]. There is at least one thread and one block,
//!   and at most as many as an `i32` counts.
//! - **Expressions** are pure trees over leaves, [operations of the
//!   language](warploom_lang::op::Op) and loads. A statement evaluates its expressions at its own
//!   position and in full, including both sides of a `select`. Nodes are shared ([`KernelExprs`]),
//!   operands before users; sharing never changes the meaning of a statement.
//! - **Types** are those of the language's operations. Leaves and elements have the type of the variable, scalar or
//!   array that they read.
//! - **Indices** are `i32` element offsets into an array and are in bounds wherever the access is
//!   made. Index arithmetic does not overflow.
//! - **Offsets** ([`NodeKind::Offset`]) are the indices of arrays with more than
//!   [`NARROW_ELEMENTS`] elements: `i32` terms times 64-bit strides, summed in 64 bits. Nothing
//!   else is computed in 64 bits.
//! - **Lets** bind a value for the rest of their list of statements. A bound variable is not bound
//!   again, and an unbound variable is not used.
//! - **Loops** run their variable from 0 up to a constant count, at least once, or up to a scalar of the
//!   kernel that is at most that count. `unrolled` affects the meaning only in that per-thread arrays
//!   indexed by unrolled variables can live in registers.
//! - **Scalars** ([`Scalar`]) are numbers that follow from the sizes or strides of a launch. A program with scalars
//!   runs at some sizes as the program that [`Program::at`] returns.
//! - **Ifs** run their body in the threads where the condition holds, and their `otherwise` in the
//!   others. The condition is evaluated once.
//! - **Barriers** make all threads of a block wait for each other. All threads of the block must
//!   reach them: no barrier is inside an `if` or loop that differs between threads.
//! - **Shuffles** bind a variable, like a let, to the value of an expression in another thread of the same warp. They
//!   exchange values of 4 or 8 bytes. A shuffle is executed by all threads of a warp or by none: it is inside no `if`
//!   that diverges within a warp, while divergence between warps is allowed. The number of threads is a multiple of
//!   [`WARP`], so that every lane exists.
//! - **Memory.** A read sees the last write of the same thread, and the writes of other threads of
//!   the block that a barrier separates from it. Without a barrier in between, two threads may
//!   access the same element only if both read or both use atomics. Blocks of one launch
//!   communicate only through atomics. So between two barriers, either all accesses of a shared
//!   array are atomics or none are; for a buffer, the same holds for the whole kernel.
//! - **Copies** ([`Stmt::Copy`]) are asynchronous: they write an element of a shared array some time before a later
//!   [`Stmt::Wait`] of the same thread ends. Until then no thread accesses the element. A copy counts as a write by
//!   this thread at its wait, so other threads see it after a barrier that follows. [`Stmt::Commit`] makes a group of
//!   the thread's copies since the last commit, and a wait ends when all but the given number of the latest groups have
//!   arrived. Like barriers, both must be in uniform control flow. A copy moves 4, 8 or 16 bytes, from a buffer that
//!   the kernel does not write.
//! - **Vectors** ([`Stmt::Vector`]) move adjacent elements between a buffer and a per-thread array. Their number is a
//!   power of two, and they have at most [`VECTOR_BYTES`] in total. Their first index in the buffer is a multiple of
//!   their number, and the caller aligns such a buffer to [`VECTOR_BYTES`]. A vector from a buffer to a shared array is
//!   an asynchronous copy, with all rules of copies; its first index in the shared array is a multiple of its number
//!   too.
//! - **Atomics** work on 32-bit elements of shared and global memory; bitwise atomics only on integers.
//! - **Arrays** in global memory match their buffers, and inputs and constant tables are not written. Shared and
//!   per-thread arrays are uninitialised when a block starts.
//!
//! # Who checks it
//!
//! [`verify`](crate::verify) checks every rule, as far as the text and the ranges decide it. The
//! simulator checks what depends on run-time values: whether an index that may be in bounds is in
//! bounds, and a lane in its warp, whether an element was written before it is read, and whether
//! two threads race on an element.

mod array;
mod atomic;
mod origin;
mod stmt;

use std::collections::HashMap;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use warploom_lang::dynamic::{Condition, Formula, FormulaRange, Formulas};
use warploom_lang::ir::TableDecl;
use warploom_lang::op::Op;
use warploom_lang::{IdVec, InputId, ParamId, Region, TableId, Type};

pub use array::{Array, LaunchLength, SHARED_UNIT, SharedPlace, Space};
pub use atomic::AtomicOp;
pub use origin::{Origin, PlanPart};
pub use stmt::{Access, AccessKind, Binding, Effects, Reach, Stmt, every_stmt};
pub use warploom_target::{VECTOR_BYTES, WARP};

warploom_lang::define_ids! {
    /// Identifies a buffer of a program.
    #[derive(Serialize, Deserialize)]
    BufferId;
    /// Identifies a kernel of a program.
    #[derive(Serialize, Deserialize)]
    KernelId;
    /// Identifies an array that a kernel reads or writes.
    #[derive(Serialize, Deserialize)]
    ArrayId;
    /// Identifies a variable of a kernel, bound by a loop or a let.
    #[derive(Serialize, Deserialize)]
    VarId;
    /// Identifies a node of a kernel's expressions.
    #[derive(Serialize, Deserialize)]
    NodeId;
    /// Identifies the strides of an offset in the kernel's table.
    #[derive(Serialize, Deserialize)]
    StridesId;
}

/// The most elements of an array that `i32` indices can address.
pub const NARROW_ELEMENTS: u32 = 1 << 31;

/// The kernels and launches of a pipeline at fixed sizes under one schedule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Program {
    /// The pipeline's name.
    pub name: String,
    /// Every array in global memory: inputs, outputs and temporaries, then constant tables.
    pub buffers: IdVec<BufferId, BufferDecl>,
    /// The scalars that kernels may read, in the order of the small buffer that holds them: 4 bytes
    /// each.
    pub params: Vec<(ParamId, Type)>,
    /// The constant tables, which are part of the code.
    #[serde(default, skip_serializing_if = "IdVec::is_empty")]
    pub tables: IdVec<TableId, TableDecl>,
    /// The kernels that launches refer to.
    pub kernels: IdVec<KernelId, Kernel>,
    /// The launches in execution order.
    pub launches: Vec<Launch>,
    /// The formulas of the sizes and strides of a launch; `None` if all of them are fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Box<ProgramSizes>>,
}

/// The formulas of the sizes and strides of a launch. The program's own numbers are their largest values.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProgramSizes {
    /// The sizes, and the atoms of all formulas.
    pub formulas: Formulas,
    /// The conditions on the sizes of a launch, beyond their ranges.
    pub conditions: Vec<Condition>,
    /// The layout of each buffer.
    pub buffers: IdVec<BufferId, BufferLayout>,
}

/// The layout of a buffer at any sizes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BufferLayout {
    /// The box that it holds.
    pub region: Vec<FormulaRange>,
    /// The dimensions by increasing stride. The first one has stride 1.
    pub order: Vec<usize>,
    /// Whether the caller may choose the other strides; otherwise it is dense.
    pub pitched: bool,
}

/// An `i32` argument of a kernel that differs between launches.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Scalar {
    /// Its name in the kernel.
    pub name: String,
    /// How it follows from the sizes and strides.
    pub value: ScalarValue,
    /// The smallest value at any sizes.
    pub min: i64,
    /// The largest value at any sizes.
    pub max: i64,
    /// The value at the sizes that the kernels are scheduled for; `None` for strides.
    pub typical: Option<i64>,
}

/// How a scalar follows from the sizes and strides of a launch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ScalarValue {
    /// A formula of the sizes.
    Formula(Formula),
    /// The stride of a buffer's dimension, in elements.
    Stride(BufferId, usize),
}

impl Program {
    /// The largest count of each loop around the launches of a kernel, outermost first. Loops that
    /// enclose only some of its launches are left out.
    pub fn loops_around(&self, kernel: KernelId) -> Vec<u32> {
        fn visit(
            launches: &[Launch],
            kernel: KernelId,
            around: &mut Vec<u32>,
            counts: &mut Option<Vec<u32>>,
        ) {
            for launch in launches {
                match launch {
                    Launch::Kernel(launched) if *launched == kernel => {
                        let own = counts.take().unwrap_or_else(|| around.clone());
                        *counts = Some(own.iter().zip(&*around).map(|(a, b)| *a.max(b)).collect());
                    }
                    Launch::Kernel(_) => {}
                    Launch::Loop { count, body, .. } => {
                        around.push(*count);
                        visit(body, kernel, around, counts);
                        around.pop();
                    }
                }
            }
        }
        let mut counts = None;
        visit(&self.launches, kernel, &mut Vec::new(), &mut counts);
        counts.unwrap_or_default()
    }
}

/// One step of a program's execution.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Launch {
    /// Runs a kernel once.
    Kernel(KernelId),
    /// Runs steps `count` times. Kernels inside can read the iteration ([`Leaf::Iteration`]).
    Loop {
        /// The number of iterations.
        count: u32,
        /// The number of iterations at any sizes, if it follows from them; `count` is the largest one.
        limit: Option<Formula>,
        /// The steps of one iteration.
        body: Vec<Launch>,
    },
}

impl Role {
    /// Whether no kernel may write it.
    pub fn is_constant(self) -> bool {
        matches!(self, Role::Input(_) | Role::Table(_))
    }
}

/// An array in global memory: dense, unless the caller chose its strides.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BufferDecl {
    /// Its name: that of the Func or input. Values of a tuple are numbered (`pair.1`).
    pub name: String,
    /// Type of its elements.
    pub ty: Type,
    /// The box of coordinates that it holds.
    pub region: Region,
    /// The distance between neighbours in elements, one per dimension.
    pub strides: Vec<i64>,
    /// Whether it is an input, an output, a temporary or a constant table.
    pub role: Role,
}

impl BufferDecl {
    /// The dimensions by increasing stride; dimensions with equal strides keep their order.
    pub fn storage_order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.region.dimensions()).collect();
        order.sort_by_key(|&d| self.strides.get(d).copied().unwrap_or(i64::MAX));
        order
    }

    /// The number of elements from the first point to the last one, with those between rows.
    pub fn elements(&self) -> usize {
        if self.region.is_empty() {
            return 0;
        }
        let along = self.region.0.iter().zip(&self.strides);
        let last = along.fold(0_i64, |last, (range, stride)| {
            last.saturating_add((range.extent - 1).saturating_mul(*stride))
        });
        usize::try_from(last.saturating_add(1)).unwrap_or(0)
    }
}

/// How a buffer is used: input, output, temporary or constant table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Role {
    /// Supplied by the user; kernels only read it.
    Input(InputId),
    /// Returned to the user: value `value` of output number `output`.
    Output {
        /// Position among the pipeline's outputs.
        output: usize,
        /// Index of the value in the output's tuple.
        value: usize,
    },
    /// Written and read by kernels only.
    Temporary,
    /// A constant table: its values are part of the code, and kernels only read it.
    Table(TableId),
}

/// The code of one kernel and the size of its grid.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kernel {
    /// Its name: that of its stage, or of the output that it copies.
    pub name: String,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// The factors of the grid along x, y and z if it depends on the sizes; `grid` is the largest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Box<[Vec<Formula>; 3]>>,
    /// The scalars that the kernel takes with each launch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scalars: Vec<Scalar>,
    /// Threads per block.
    pub threads: u32,
    /// The number of blocks that must fit on an SM at once; `None` if the schedule does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident: Option<NonZeroU32>,
    /// The arrays that it reads and writes.
    pub arrays: IdVec<ArrayId, Array>,
    /// The names of its variables.
    pub vars: IdVec<VarId, String>,
    /// The nodes that its statements use.
    pub exprs: KernelExprs,
    /// The statements that every thread runs.
    pub body: Vec<Stmt>,
    /// Bytes of shared memory per block at any sizes, if they follow from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Formula>,
    /// The origins of its statements, in textual order. Empty if they are not known; not stored.
    #[serde(skip)]
    pub origins: Vec<Origin>,
}

/// An expression without operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Leaf {
    /// The thread's index in its block, `i32`.
    Thread,
    /// The block's index along a dimension of the grid, `i32`.
    Block(u8),
    /// A variable, `i32` for loops.
    Var(VarId),
    /// A scalar of the program, by position.
    Param(u32),
    /// A [`Scalar`] of the kernel, by position; `i32`.
    Size(u32),
    /// The iteration of the enclosing [`Launch::Loop`] at this level, 0 for the outermost; `i32`.
    Iteration(u8),
}

/// The kind of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum NodeKind {
    /// A value that needs no operands.
    Leaf(Leaf),
    /// An operation of the language.
    Op(Op),
    /// An element of an array; the argument is its index.
    Load(ArrayId),
    /// The 64-bit index of an element: the sum of `i32` arguments times strides. It occurs only as
    /// the index of a load, store or atomic.
    Offset(StridesId),
}

/// The constants of an offset.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Strides {
    /// The distance between neighbours along each term, in elements.
    pub strides: SmallVec<[i64; 3]>,
    /// The offset where all terms are 0.
    pub constant: i64,
}

impl Strides {
    /// The offset for given values of its terms. It may wrap for terms that no access has.
    pub fn offset(&self, terms: impl IntoIterator<Item = i32>) -> i64 {
        self.strides
            .iter()
            .zip(terms)
            .fold(self.constant, |sum, (stride, term)| sum.wrapping_add(stride.wrapping_mul(i64::from(term))))
    }
}

/// A node of an expression, with its type and operands.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct KernelNode {
    /// Its kind.
    pub kind: NodeKind,
    /// Its type. For an offset: `i32`, the type of its terms.
    pub ty: Type,
    /// Its operands, which precede it.
    pub args: SmallVec<[NodeId; 3]>,
}

/// The hash-consed nodes of a kernel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct KernelExprs {
    nodes: IdVec<NodeId, KernelNode>,
    strides: IdVec<StridesId, Strides>,
    #[serde(skip)]
    known: HashMap<KernelNode, NodeId, ahash::RandomState>,
    #[serde(skip)]
    known_strides: HashMap<Strides, StridesId, ahash::RandomState>,
}

impl KernelExprs {
    /// Returns the node equal to `node`, and adds it if it is new.
    pub fn intern(&mut self, node: KernelNode) -> NodeId {
        if let Some(&id) = self.known.get(&node) {
            return id;
        }
        let id = self.nodes.push(node.clone());
        self.known.insert(node, id);
        id
    }

    /// Returns the offset with these terms and strides, and adds it if it is new.
    pub fn intern_offset(&mut self, terms: SmallVec<[NodeId; 3]>, strides: Strides) -> NodeId {
        let strides = match self.known_strides.get(&strides) {
            Some(&id) => id,
            None => {
                let id = self.strides.push(strides.clone());
                self.known_strides.insert(strides, id);
                id
            }
        };
        self.intern(KernelNode { kind: NodeKind::Offset(strides), ty: Type::I32, args: terms })
    }

    /// The table of strides that offsets refer to.
    pub fn strides(&self) -> &IdVec<StridesId, Strides> {
        &self.strides
    }

    /// Whether a node is an offset.
    pub fn is_offset(&self, id: NodeId) -> bool {
        matches!(self.nodes[id].kind, NodeKind::Offset(_))
    }

    /// All nodes, operands first.
    pub fn nodes(&self) -> &IdVec<NodeId, KernelNode> {
        &self.nodes
    }

    /// Every node that `roots` depend on, including themselves: operands first, each once.
    pub fn reachable(&self, roots: impl IntoIterator<Item = NodeId>) -> Vec<NodeId> {
        let mut stack: Vec<NodeId> = roots.into_iter().collect();
        let mut seen = ahash::AHashSet::new();
        while let Some(id) = stack.pop() {
            if seen.insert(id) {
                stack.extend(&self.nodes[id].args);
            }
        }
        let mut order: Vec<NodeId> = seen.into_iter().collect();
        order.sort_unstable();
        order
    }
}

impl std::ops::Index<NodeId> for KernelExprs {
    type Output = KernelNode;

    fn index(&self, id: NodeId) -> &KernelNode {
        &self.nodes[id]
    }
}
