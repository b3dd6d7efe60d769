//! Statements, and the declarations of each: its operands, its nested lists and its effects.
//!
//! Walks over statements only have to ask for these three. Any other walk is a `match` that names every statement, so
//! that the compiler reports new ones.

use serde::{Deserialize, Serialize};
use smallvec::{SmallVec, smallvec};

use super::{ArrayId, AtomicOp, NodeId, VarId};

/// A statement of a kernel's body.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Stmt {
    /// Binds a variable for the rest of the list.
    Let(VarId, NodeId),
    /// Binds a variable, for the rest of the list, to a value in another lane of the warp.
    Shuffle {
        /// The variable to bind.
        var: VarId,
        /// The value that every lane offers.
        value: NodeId,
        /// The lane to read from, an `i32` below [`WARP`](super::WARP). Each lane may read from another one.
        lane: NodeId,
    },
    /// Writes an element.
    Store {
        /// The array to write.
        array: ArrayId,
        /// Index of the element.
        index: NodeId,
        /// The value to write.
        value: NodeId,
    },
    /// Starts to copy an element of a buffer to an element of a shared array.
    Copy {
        /// The array to write.
        array: ArrayId,
        /// Index of the element.
        index: NodeId,
        /// The element to copy: a load.
        value: NodeId,
    },
    /// Moves adjacent elements between a buffer and a per-thread array by one access of the buffer; or starts to copy
    /// them to a shared array.
    Vector {
        /// The array to write.
        to: ArrayId,
        /// Index of the first element to write.
        at: NodeId,
        /// The array to read.
        from: ArrayId,
        /// Index of the first element to read.
        index: NodeId,
        /// The number of elements.
        width: u32,
    },
    /// Makes a group of this thread's copies since its last group.
    Commit,
    /// Blocks this thread until at most this many of its latest groups are in flight.
    Wait(u32),
    /// Combines a value with an element atomically.
    Atomic {
        /// How the two are combined.
        op: AtomicOp,
        /// The array to update.
        array: ArrayId,
        /// Index of the element.
        index: NodeId,
        /// The value to combine with the element.
        value: NodeId,
    },
    /// Runs `body` with `var` from 0 to `count - 1`.
    For {
        /// The loop variable.
        var: VarId,
        /// The number of iterations, at least 1.
        count: u32,
        /// The [`Scalar`](super::Scalar) of the kernel that holds the number of iterations, which is at most `count`.
        limit: Option<u32>,
        /// Whether the loop is unrolled.
        unrolled: bool,
        /// The statements of one iteration.
        body: Vec<Stmt>,
    },
    /// Runs `body` where the condition holds, `otherwise` elsewhere.
    If {
        /// A node of type `bool`.
        condition: NodeId,
        /// Runs where the condition holds.
        body: Vec<Stmt>,
        /// Runs where it does not hold; empty if there is no `else`.
        otherwise: Vec<Stmt>,
    },
    /// All threads of the block wait for each other.
    Barrier,
}

/// The effects of a statement itself, without nested statements and without the loads of its operands.
#[derive(Clone, Copy, Default, Debug)]
pub struct Effects {
    /// The variable that it binds, and the source of its value.
    pub binds: Option<(VarId, Binding)>,
    /// The elements that it writes.
    pub writes: Option<Access>,
    /// The elements that it reads, other than by the loads of its operands.
    pub reads: Option<Access>,
    /// Which threads must run it together.
    pub reach: Reach,
}

/// The source of a variable's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binding {
    /// A value.
    Value(NodeId),
    /// A value of another thread.
    Exchanged,
    /// The number of an iteration.
    Iteration,
}

/// An access to elements of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// The array.
    pub array: ArrayId,
    /// The index of the first element.
    pub index: NodeId,
    /// The number of elements.
    pub width: u32,
    /// How the elements are accessed.
    pub kind: AccessKind,
}

impl Access {
    /// The access of a load.
    pub fn load(array: ArrayId, index: NodeId) -> Access {
        Access { array, index, width: 1, kind: AccessKind::Plain }
    }
}

/// How a statement accesses elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessKind {
    /// Reads or writes them.
    Plain,
    /// Updates them atomically.
    Atomic,
}

/// Which threads must run a statement together.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Reach {
    /// Each for itself.
    #[default]
    Thread,
    /// All threads of a warp.
    Warp,
    /// All threads of a block.
    Block,
}

/// The operands of a statement, as references with the mutability of the given one.
macro_rules! operands {
    ($stmt:expr) => {
        match $stmt {
            Stmt::Let(_, value) => smallvec![value],
            Stmt::Shuffle { value, lane, .. } => smallvec![value, lane],
            Stmt::Store { index, value, .. }
            | Stmt::Copy { index, value, .. }
            | Stmt::Atomic { index, value, .. } => smallvec![index, value],
            Stmt::Vector { at, index, .. } => smallvec![at, index],
            Stmt::If { condition, .. } => smallvec![condition],
            Stmt::For { .. } | Stmt::Commit | Stmt::Wait(_) | Stmt::Barrier => SmallVec::new(),
        }
    };
}

/// The nested lists of a statement, as references with the mutability of the given one.
macro_rules! lists {
    ($stmt:expr) => {
        match $stmt {
            Stmt::For { body, .. } => [Some(body), None],
            Stmt::If { body, otherwise, .. } => [Some(body), Some(otherwise)],
            Stmt::Let(..)
            | Stmt::Shuffle { .. }
            | Stmt::Store { .. }
            | Stmt::Copy { .. }
            | Stmt::Vector { .. }
            | Stmt::Commit
            | Stmt::Wait(_)
            | Stmt::Atomic { .. }
            | Stmt::Barrier => [None, None],
        }
    };
}

impl Stmt {
    /// An `if` without an `else`.
    pub fn when(condition: NodeId, body: Vec<Stmt>) -> Stmt {
        Stmt::If { condition, body, otherwise: Vec::new() }
    }

    /// The nested lists of statements: one for a loop, two for an `if`. Missing ones are empty.
    pub fn lists(&self) -> [&[Stmt]; 2] {
        lists!(self).map(|list| list.map_or(&[][..], Vec::as_slice))
    }

    /// The same lists, to be changed.
    pub fn lists_mut(&mut self) -> [Option<&mut Vec<Stmt>>; 2] {
        lists!(self)
    }

    /// The expressions that the statement itself evaluates, not those of nested statements. For statements that write:
    /// the target index first, then the value or its index.
    pub fn operands(&self) -> SmallVec<[NodeId; 2]> {
        let operands: SmallVec<[&NodeId; 2]> = operands!(self);
        operands.into_iter().copied().collect()
    }

    /// The same expressions, to be changed.
    pub fn operands_mut(&mut self) -> SmallVec<[&mut NodeId; 2]> {
        operands!(self)
    }

    /// The effects of the statement itself.
    pub fn effects(&self) -> Effects {
        let none = Effects::default();
        let access = |array, index, width, kind| Some(Access { array, index, width, kind });
        let (plain, atomic) = (AccessKind::Plain, AccessKind::Atomic);
        match *self {
            Stmt::Let(var, value) => Effects { binds: Some((var, Binding::Value(value))), ..none },
            Stmt::Shuffle { var, .. } => {
                Effects { binds: Some((var, Binding::Exchanged)), reach: Reach::Warp, ..none }
            }
            Stmt::Store { array, index, .. } | Stmt::Copy { array, index, .. } => {
                Effects { writes: access(array, index, 1, plain), ..none }
            }
            Stmt::Vector { to, at, from, index, width } => {
                let (writes, reads) = (access(to, at, width, plain), access(from, index, width, plain));
                Effects { writes, reads, ..none }
            }
            Stmt::Atomic { array, index, .. } => Effects { writes: access(array, index, 1, atomic), ..none },
            Stmt::For { var, .. } => Effects { binds: Some((var, Binding::Iteration)), ..none },
            Stmt::If { .. } => none,
            Stmt::Commit | Stmt::Wait(_) | Stmt::Barrier => Effects { reach: Reach::Block, ..none },
        }
    }

    /// The array that the statement itself writes to.
    pub fn written(&self) -> Option<ArrayId> {
        self.effects().writes.map(|access| access.array)
    }

    /// The array that the statement reads other than by a load.
    pub fn moved(&self) -> Option<ArrayId> {
        self.effects().reads.map(|access| access.array)
    }
}

/// Every statement of a list and its nested lists, in textual order.
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
