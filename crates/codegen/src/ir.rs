//! The kernel IR: what lowering makes, and all that simulator, printer and runtime read.
//!
//! # The model
//!
//! A [`Program`] is a list of launches over [buffers](BufferDecl) in global memory. A launch runs one
//! [`Kernel`]: `grid` blocks of `threads` threads each. Every thread runs the kernel's body; threads of a
//! block share its shared arrays and meet at barriers. The order of blocks is not defined.
//!
//! - **Threads** have one index, [`Leaf::Thread`], from 0; 32 consecutive ones form a warp. Blocks have up
//!   to three, [`Leaf::Block`]. There is at least one of each, and no more than an `i32` counts.
//! - **Expressions** are pure trees over leaves, [operations of the language](warploom_lang::op::Op) and loads.
//!   They are evaluated where the statement that holds them stands, in full: both sides of a `select` too.
//!   Nodes are shared ([`KernelExprs`]), operands before users; sharing never changes what a statement means.
//! - **Types** are those that the operations take and give; leaves and elements have the type of what they stand for.
//! - **Indices** are `i32` element offsets into an array, inside it wherever the access is made. Index arithmetic does
//!   not overflow.
//! - **Offsets** ([`NodeKind::Offset`]) are the indices of arrays with more than [`NARROW_ELEMENTS`] elements: `i32`
//!   terms times 64-bit strides, summed in 64 bits. Nothing else is ever computed in 64 bits.
//! - **Lets** bind a value for the rest of the list of statements they stand in. A variable that has a value is not
//!   bound again, and one that has none is not used.
//! - **Loops** run their variable from 0 up to a constant count, at least once. `unrolled` is part of the meaning only
//!   in so far as per-thread arrays indexed by unrolled variables can live in registers.
//! - **Ifs** run their body in the threads where the condition holds, and their `otherwise` in the others. The
//!   condition is evaluated once.
//! - **Barriers** make all threads of a block wait for each other. They stand where all threads of the block
//!   come by: under no `if` or loop that differs between threads.
//! - **Memory.** A read sees the last write of the same thread, and those of other threads of the block that
//!   a barrier separates. Two threads may touch one element without a barrier between only if both read, or
//!   both are atomics. Blocks of one launch never exchange anything, except through atomics. So up to the next barrier
//!   a shared array is accessed by atomics alone or by none, and so is a buffer in all of a kernel.
//! - **Atomics** are for 32-bit elements of shared and global memory.
//! - **Arrays** in global memory are as their buffers; inputs are not written. Shared and per-thread arrays hold nothing
//!   when a block starts.
//!
//! # Who checks it
//!
//! [`verify`](crate::verify) knows every rule and holds each program against it, as far as text and ranges decide. What
//! depends on values that only a run has is left to the simulator: whether an index that may be inside is, whether an
//! element was written before it is read, whether two threads meet at one element.

use std::collections::HashMap;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use smallvec::{SmallVec, smallvec};
use warploom_lang::op::Op;
use warploom_lang::{IdVec, InputId, ParamId, Region, Type};

warploom_lang::define_ids! {
    /// A buffer of a program.
    #[derive(Serialize, Deserialize)]
    BufferId;
    /// A kernel of a program.
    #[derive(Serialize, Deserialize)]
    KernelId;
    /// An array that a kernel reads or writes.
    #[derive(Serialize, Deserialize)]
    ArrayId;
    /// A variable of a kernel: bound by a loop or a let.
    #[derive(Serialize, Deserialize)]
    VarId;
    /// A node of a kernel's expressions.
    #[derive(Serialize, Deserialize)]
    NodeId;
    /// The strides of an offset.
    #[derive(Serialize, Deserialize)]
    StridesId;
}

/// The most elements that an array with `i32` indices can have.
pub const NARROW_ELEMENTS: u32 = 1 << 31;

/// A pipeline at fixed sizes under one schedule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Program {
    /// The pipeline's name.
    pub name: String,
    /// Everything in global memory.
    pub buffers: IdVec<BufferId, BufferDecl>,
    /// The scalars kernels may read, in the order of the one small buffer that holds them: 4 bytes each.
    pub params: Vec<(ParamId, Type)>,
    /// The kernels.
    pub kernels: IdVec<KernelId, Kernel>,
    /// What runs, in order.
    pub launches: Vec<Launch>,
}

impl Program {
    /// How often each loop around the launches of a kernel runs at most, outermost first; of loops that stand around
    /// some of its launches only, none.
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
                    Launch::Loop { count, body } => {
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

/// One step of a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Launch {
    /// Runs a kernel.
    Kernel(KernelId),
    /// Runs steps `count` times; kernels inside can read the iteration ([`Leaf::Iteration`]).
    Loop {
        /// How often.
        count: u32,
        /// What.
        body: Vec<Launch>,
    },
}

/// An array in global memory, dense.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BufferDecl {
    /// Its name: the Func's or input's; values of a tuple are numbered (`pair.1`).
    pub name: String,
    /// Type of its elements.
    pub ty: Type,
    /// The box it holds.
    pub region: Region,
    /// Elements between neighbours, one number a dimension.
    pub strides: Vec<i64>,
    /// Whose it is.
    pub role: Role,
}

impl BufferDecl {
    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.region.points().unwrap_or(0) as usize
    }
}

/// Whose a buffer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Role {
    /// Given by the user.
    Input(InputId),
    /// Given back to the user: value `value` of output number `output`.
    Output {
        /// Position among the pipeline's outputs.
        output: usize,
        /// Which value of a tuple.
        value: usize,
    },
    /// Between kernels.
    Temporary,
}

/// One kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads in a block.
    pub threads: u32,
    /// Blocks that an SM must be able to hold at once, if the schedule says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident: Option<NonZeroU32>,
    /// What it reads and writes.
    pub arrays: IdVec<ArrayId, Array>,
    /// The names of its variables.
    pub vars: IdVec<VarId, String>,
    /// Its expressions.
    pub exprs: KernelExprs,
    /// What every thread runs.
    pub body: Vec<Stmt>,
}

impl Kernel {
    /// Bytes of shared memory one block takes.
    pub fn shared_bytes(&self) -> usize {
        let shared = self.arrays.values().filter(|array| array.space == Space::Shared);
        shared.map(|array| (array.elements * array.ty.bytes()).next_multiple_of(16)).sum()
    }
}

/// An array of a kernel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Array {
    /// Its name.
    pub name: String,
    /// Type of its elements.
    pub ty: Type,
    /// Where it lives.
    pub space: Space,
    /// Number of elements.
    pub elements: usize,
}

/// Where an array lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Space {
    /// Global memory: one of the program's buffers.
    Global(BufferId),
    /// One copy a block.
    Shared,
    /// One copy a thread: registers where all indices are constant after unrolling.
    Thread,
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
    /// A scalar of the program, by its position.
    Param(u32),
    /// The iteration of the enclosing [`Launch::Loop`], counted from the outermost; `i32`.
    Iteration(u8),
}

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum NodeKind {
    /// Something given.
    Leaf(Leaf),
    /// An operation.
    Op(Op),
    /// An element of an array; the argument is its index.
    Load(ArrayId),
    /// The index of an element in 64 bits: the arguments, `i32` all of them, times strides. It stands only as the
    /// index of a load, store or atomic.
    Offset(StridesId),
}

/// What an offset adds up, besides its terms.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Strides {
    /// Elements between neighbours along each term.
    pub strides: SmallVec<[i64; 3]>,
    /// The offset where all terms are 0.
    pub constant: i64,
}

impl Strides {
    /// The offset at some values of its terms. That of terms which no access has may wrap.
    pub fn offset(&self, terms: impl IntoIterator<Item = i32>) -> i64 {
        self.strides
            .iter()
            .zip(terms)
            .fold(self.constant, |sum, (stride, term)| sum.wrapping_add(stride.wrapping_mul(i64::from(term))))
    }
}

/// A node of an expression.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct KernelNode {
    /// What it is.
    pub kind: NodeKind,
    /// Its type; `i32`, the type of its terms, for an offset.
    pub ty: Type,
    /// Operands, which come before it.
    pub args: SmallVec<[NodeId; 3]>,
}

/// The nodes of a kernel, each distinct one once.
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
    /// The node equal to `node`, added if there is none yet.
    pub fn intern(&mut self, node: KernelNode) -> NodeId {
        if let Some(&id) = self.known.get(&node) {
            return id;
        }
        let id = self.nodes.push(node.clone());
        self.known.insert(node, id);
        id
    }

    /// The offset with these terms and strides, added if there is none yet.
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

    /// What the offsets add up.
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

    /// Every node that `roots` are made of, operands first, each once.
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

/// A statement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Stmt {
    /// Binds a variable for the rest of the list.
    Let(VarId, NodeId),
    /// Writes an element.
    Store {
        /// Where.
        array: ArrayId,
        /// Which element.
        index: NodeId,
        /// What.
        value: NodeId,
    },
    /// Combines a value with an element in one indivisible step.
    Atomic {
        /// How.
        op: AtomicOp,
        /// Where.
        array: ArrayId,
        /// Which element.
        index: NodeId,
        /// With what.
        value: NodeId,
    },
    /// Runs `body` with `var` from 0 to `count - 1`.
    For {
        /// The loop's variable.
        var: VarId,
        /// How often.
        count: u32,
        /// Whether the loop is written out.
        unrolled: bool,
        /// What.
        body: Vec<Stmt>,
    },
    /// Runs `body` where the condition holds, `otherwise` elsewhere.
    If {
        /// A truth value.
        condition: NodeId,
        /// What runs where it holds.
        body: Vec<Stmt>,
        /// What runs where it does not; empty if there is no `else`.
        otherwise: Vec<Stmt>,
    },
    /// All threads of the block wait for each other.
    Barrier,
}

impl Stmt {
    /// An `if` without an `else`.
    pub fn when(condition: NodeId, body: Vec<Stmt>) -> Stmt {
        Stmt::If { condition, body, otherwise: Vec::new() }
    }

    /// The lists of statements inside: one for a loop, two for an `if`. Those that are not there are empty.
    pub fn lists(&self) -> [&[Stmt]; 2] {
        match self {
            Stmt::For { body, .. } => [body, &[]],
            Stmt::If { body, otherwise, .. } => [body, otherwise],
            Stmt::Let(..) | Stmt::Store { .. } | Stmt::Atomic { .. } | Stmt::Barrier => [&[], &[]],
        }
    }

    /// The expressions that the statement itself evaluates, not those of statements inside.
    pub fn operands(&self) -> SmallVec<[NodeId; 2]> {
        match *self {
            Stmt::Let(_, value) => smallvec![value],
            Stmt::Store { index, value, .. } | Stmt::Atomic { index, value, .. } => smallvec![index, value],
            Stmt::If { condition, .. } => smallvec![condition],
            Stmt::For { .. } | Stmt::Barrier => SmallVec::new(),
        }
    }

    /// The array that the statement itself writes to.
    pub fn written(&self) -> Option<ArrayId> {
        match *self {
            Stmt::Store { array, .. } | Stmt::Atomic { array, .. } => Some(array),
            _ => None,
        }
    }
}

/// Every statement of a list and of the lists inside, in the order of the text.
pub fn every_stmt(body: &[Stmt]) -> impl Iterator<Item = &Stmt> {
    let mut open = vec![body.iter()];
    std::iter::from_fn(move || {
        loop {
            let Some(stmt) = open.last_mut()?.next() else {
                open.pop();
                continue;
            };
            let [body, otherwise] = stmt.lists();
            open.extend([otherwise.iter(), body.iter()]);
            return Some(stmt);
        }
    })
}

/// How an atomic combines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum AtomicOp {
    /// Adds.
    Add,
    /// Keeps the smaller.
    Min,
    /// Keeps the larger.
    Max,
}
