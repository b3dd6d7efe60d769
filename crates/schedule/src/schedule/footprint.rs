//! How large everything is at its place: constant extents, whatever block, iteration or thread it is.

use std::collections::BTreeMap;

use warploom_lang::{FuncId, Type};

use crate::dag::LoopKind;
use crate::ids::NodeId;
use crate::node_set::NodeSet;
use crate::schedule::reach::Reach;
use crate::schedule::tree::{Item, Storage};

/// Threads of a block in which every stage is spread by a flat loop.
pub const FLAT_THREADS: u64 = 256;

/// Arrays in shared memory start at multiples of this many bytes.
pub const SHARED_ALIGNMENT: u64 = 16;

/// The most bytes that a Func may take in registers of one thread: all registers there are, for one Func.
pub const MAX_REGISTER_BYTES: u64 = 1024;

/// The box of a Func or input at its place, dimension by dimension.
///
/// The [`Reach`] of a dimension has the constant extent, and where the box starts as a sum over blocks and
/// loops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Footprint {
    /// The dimensions, first one first.
    pub dims: Vec<Reach>,
}

impl Footprint {
    /// The extents, first dimension first.
    pub fn extents(&self) -> Vec<i64> {
        self.dims.iter().map(Reach::extent).collect()
    }

    /// Number of points.
    pub fn points(&self) -> u64 {
        points(self.dims.iter().map(Reach::extent))
    }
}

fn points(extents: impl Iterator<Item = i64>) -> u64 {
    extents.fold(1, |points: u64, extent| points.saturating_mul(extent as u64))
}

/// Threads and points of each thread along one loop of a nest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadLoop {
    /// The loop.
    pub dim: LoopKind,
    /// Threads along it.
    pub threads: i64,
    /// Neighbouring points of each thread.
    pub serial: i64,
    /// Points there are at the nest's place.
    pub extent: i64,
}

/// What runs along an axis of a nest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AxisKind {
    /// A digit of the thread's number; in a flat loop, of the point's number.
    Lane,
    /// Rounds of all threads, where they do not cover the box at once.
    Round,
    /// A reduction variable in each thread, in parts where its tile is named.
    Reduce,
    /// The points of a thread's tile.
    Serial,
}

/// A loop of a nest, or a digit of the thread's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Axis {
    /// Who takes its steps.
    pub kind: AxisKind,
    /// The loop of the stage that it runs along.
    pub dim: LoopKind,
    /// Number of steps, at least 1.
    pub count: i64,
    /// How many points one step moves along the loop.
    pub step: i64,
    /// Whether each step has code of its own.
    pub unrolled: bool,
}

/// A nest at its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NestFootprint {
    /// The points that it computes or copies.
    pub points: Footprint,
    /// What outer loops leave of the stage's reduction variables.
    pub domain: Vec<Reach>,
    /// Its loops as threads share them; `None` for a flat loop.
    pub threads: Option<Vec<ThreadLoop>>,
    /// What it runs through: the digits of the thread's number, the fastest first, then its loops, the outermost
    /// first.
    pub axes: Vec<Axis>,
    /// Its Funcs in registers.
    pub registers: BTreeMap<FuncId, RegisterFootprint>,
    /// Whether each thread keeps its points in registers while it adds to them, and touches memory once before and
    /// once after.
    pub accumulates: bool,
    /// The Funcs and staged inputs of the block that it reads.
    pub reads: NodeSet,
    /// What it writes, if threads exchange values through it: other threads read it, or add to the same points.
    pub exchanged: Option<NodeId>,
}

/// A Func in registers of a nest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegisterFootprint {
    /// What one thread needs for its points.
    pub thread: StagedFootprint,
    /// What all threads of a block need. A thread's points may reach further, where they don't divide the block.
    pub block: StagedFootprint,
}

/// A Func all of whose stages stand at one place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StagedFootprint {
    /// All that is touched.
    pub points: Footprint,
    /// The points that each stage computes.
    pub stages: Vec<Footprint>,
}

impl NestFootprint {
    /// Points of a loop at this place.
    pub fn extent(&self, dim: LoopKind) -> i64 {
        match dim {
            LoopKind::Pure(d) => self.points.dims[d].extent(),
            LoopKind::Reduction(r) => self.domain[r].extent(),
        }
    }

    /// Threads along a loop, and neighbouring points of each.
    pub fn share(&self, dim: LoopKind) -> (i64, i64) {
        let known = self.threads.iter().flatten().find(|known| known.dim == dim);
        known.map_or((1, 1), |known| (known.threads, known.serial))
    }

    /// The axes of one kind, in their order.
    pub fn axes_of(&self, kind: AxisKind) -> impl Iterator<Item = Axis> {
        self.axes.iter().copied().filter(move |axis| axis.kind == kind)
    }

    /// Number of threads that it needs; `None` for a flat loop, which takes any number.
    pub fn thread_count(&self) -> Option<u64> {
        let threads = self.threads.as_ref()?;
        Some(points(threads.iter().map(|dim| dim.threads)))
    }
}

/// What is allocated for a Func or staged input in a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// A stage of the Func, or the input.
    pub item: Item,
    /// In shared memory, or in each thread's own.
    pub storage: Storage,
    /// All points that its stages touch in a block.
    pub points: Footprint,
    /// The extents of the array: those of the points, or of one thread's share of them.
    pub extents: Vec<i64>,
    /// How threads share the points of a private array: the number of threads and the points of each, for every
    /// dimension that several threads share. All stages of the Func, and its readers, find their points by it.
    pub shares: Vec<Option<(i64, i64)>>,
    /// Bytes of all values together.
    pub bytes: u64,
}

/// Bytes of one array a value, each with room to be aligned.
pub(crate) fn array_bytes(types: &[Type], extents: &[i64]) -> u64 {
    let points = points(extents.iter().copied());
    let bytes = types.iter().map(|ty| {
        let bytes = points.saturating_mul(ty.bytes() as u64);
        bytes.checked_next_multiple_of(SHARED_ALIGNMENT).unwrap_or(u64::MAX)
    });
    bytes.fold(0, u64::saturating_add)
}
