//! The sizes of everything at its place: constant extents that hold for any block, iteration and
//! thread.

use std::collections::BTreeMap;
use std::ops::Range;

use smallvec::SmallVec;
use warploom_lang::affine::gcd;
use warploom_lang::dynamic::Formula;
use warploom_lang::{FuncId, Type};
use warploom_schedule::{Item, LoopKind, NodeId, NodeSet, Storage};

use crate::reach::Reach;

/// Threads per block, if all stages of the block have flat loops.
pub const FLAT_THREADS: u64 = 256;

/// The most values of a reduction variable that are unrolled for a Func in registers.
const MOST_UNROLLED: i64 = 32;

/// The most values of shared memory that a thread keeps in registers over the loops of a block.
pub const MOST_KEPT: u32 = 64;

/// The alignment of arrays in shared memory, in bytes.
pub const SHARED_ALIGNMENT: u64 = 16;

/// The maximum bytes of a Func in registers of one thread; as much as all registers of a thread.
pub const MAX_REGISTER_BYTES: u64 = 1024;

/// The box of a Func or input at its place, per dimension.
///
/// The [`Reach`] of a dimension gives the constant extent, and the start of the box as a sum over blocks and
/// loops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Footprint {
    /// One reach per dimension, in order.
    pub dims: Vec<Reach>,
}

impl Footprint {
    /// The extents, in dimension order.
    pub fn extents(&self) -> Vec<i64> {
        self.dims.iter().map(Reach::extent).collect()
    }

    /// The number of points in the box.
    pub fn points(&self) -> u64 {
        points(self.dims.iter().map(Reach::extent))
    }
}

fn points(extents: impl Iterator<Item = i64>) -> u64 {
    extents.fold(1, |points: u64, extent| points.saturating_mul(extent as u64))
}

/// How threads share one loop of a nest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadLoop {
    /// The loop of the stage.
    pub dim: LoopKind,
    /// The number of threads along the loop.
    pub threads: i64,
    /// The number of adjacent points per thread.
    pub serial: i64,
    /// The number of points at the nest's place.
    pub extent: i64,
}

/// What an axis of a nest iterates over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AxisKind {
    /// A digit of the thread number or, in a flat loop, of the point number.
    Lane,
    /// Rounds of all threads, if they do not cover the box at once.
    Round,
    /// A reduction variable in each thread, in parts if its tile is listed.
    Reduce,
    /// The points of a thread's tile.
    Serial,
}

/// A loop of a nest, or a digit of the thread number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Axis {
    /// What the axis iterates over.
    pub kind: AxisKind,
    /// The loop of the stage that the axis runs along.
    pub dim: LoopKind,
    /// The number of steps, at least 1.
    pub count: i64,
    /// The number of points per step along the loop.
    pub step: i64,
    /// Number of points along the loop at the nest's place.
    pub extent: i64,
    /// Whether the axis is unrolled.
    pub unrolled: bool,
}

impl Axis {
    /// Whether the axis has the groups of a thread's points that interleave with those of other threads.
    pub fn is_interleaved(&self) -> bool {
        self.kind == AxisKind::Round && self.unrolled && self.count > 1
    }
}

/// The sizes of a nest at its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NestFootprint {
    /// The points that the nest computes or copies.
    pub points: Footprint,
    /// The rest of the stage's reduction variables inside the outer loops.
    pub domain: Vec<Reach>,
    /// How threads share the loops; `None` for a flat loop.
    pub threads: Option<Vec<ThreadLoop>>,
    /// The digits of the thread number, fastest first, then the loops, outermost first.
    pub axes: Vec<Axis>,
    /// The Funcs that the nest holds in registers.
    pub registers: BTreeMap<FuncId, RegisterFootprint>,
    /// Whether each thread accumulates its points in registers, with one memory access before and one
    /// after.
    pub accumulates: bool,
    /// Whether each thread keeps what it wrote last in registers, because the next value follows from it: a scan, one
    /// line at a time.
    pub carries: bool,
    /// The Funcs and staged inputs of the block that the nest reads. An atomic update does not read its own
    /// Func.
    pub reads: NodeSet,
    /// The node that the nest writes, if threads exchange values through it: other threads read it, or
    /// add to the same points.
    pub exchanged: Option<NodeId>,
    /// The Funcs of which the nest reads points that other threads of the warp hold in registers.
    pub shuffled: NodeSet,
    /// The dimension along which each warp is a row of threads that share the Funcs in their registers.
    pub lanes: Option<LoopKind>,
    /// The dimension along which out-of-range lanes recompute the last point into dead registers instead of branching, so that
    /// the warp does not diverge.
    pub all_lanes: Option<LoopKind>,
    /// The dimension along which a thread computes its points one row at a time, with what it has in registers.
    pub slides: Option<LoopKind>,
}

/// The boxes of a Func in registers of a nest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegisterFootprint {
    /// What one thread needs for its points.
    pub thread: StagedFootprint,
    /// What all threads of a block need. A thread's points may extend further if they do not divide the
    /// block.
    pub block: StagedFootprint,
    /// How the lanes of a warp share the Func, if each computes only a part of what it needs.
    pub spread: Option<Spread>,
    /// How a nest that slides needs more points from row to row; `None` if all are computed before the first row.
    pub rows: Option<Rows>,
}

impl NestFootprint {
    /// Whether reductions over so many values are unrolled for the Funcs in registers. Where registers are shared or move on, all
    /// indices must be known to the CUDA compiler.
    pub fn unrolls_registers(&self, values: i64) -> bool {
        (self.lanes.is_some() || self.slides.is_some()) && values <= MOST_UNROLLED
    }
}

impl RegisterFootprint {
    /// The number of points that a thread has in registers at once: fewer than all if the nest slides.
    pub fn live_points(&self) -> u64 {
        let points = self.thread.points.points();
        let Some(Rows { dim, first, step }) = self.rows else { return points };
        let extent = self.thread.points.dims[dim].extent();
        points / extent as u64 * (first + step).min(extent) as u64
    }

    /// The number of points that a thread gets from other lanes, for each that it computes.
    pub fn points_from_lanes(&self) -> f64 {
        let Some(Spread { dim, step }) = self.spread else { return 0.0 };
        (self.thread.points.dims[dim].extent() - step) as f64 / step as f64
    }
}

/// The points of a Func in registers that the first row of a thread's points needs, and those that each row adds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rows {
    /// The dimension of the Func.
    pub dim: usize,
    /// The extent that the first row needs along the dimension.
    pub first: i64,
    /// How far the points move along the dimension from row to row.
    pub step: i64,
}

impl Rows {
    /// The points along the dimension that a row needs and no row before it, of `extent` points in all.
    pub fn of(self, row: i64, extent: i64) -> Range<i64> {
        let start = row * self.step;
        let known = if row > 0 { start - self.step + self.first } else { 0 };
        let end = (start + self.first).min(extent);
        start.max(known).min(end)..end
    }
}

/// A Func in registers that the lanes of a warp share: each computes the first `step` of its points along a dimension, and gets
/// the others from the lanes after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spread {
    /// The dimension of the Func.
    pub dim: usize,
    /// The distance between the points of neighbouring lanes.
    pub step: i64,
}

/// The boxes of a Func whose stages are all at one place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StagedFootprint {
    /// All points that the stages touch.
    pub points: Footprint,
    /// The points that each stage computes. A thread may get others from its neighbours ([`Spread`]).
    pub stages: Vec<Footprint>,
}

impl NestFootprint {
    /// The number of points of a loop at this place.
    pub fn extent(&self, dim: LoopKind) -> i64 {
        match dim {
            LoopKind::Pure(d) => self.points.dims[d].extent(),
            LoopKind::Reduction(r) => self.domain[r].extent(),
        }
    }

    /// The number of threads along a loop, and the adjacent points of each.
    pub fn share(&self, dim: LoopKind) -> (i64, i64) {
        let known = self.threads.iter().flatten().find(|known| known.dim == dim);
        known.map_or((1, 1), |known| (known.threads, known.serial))
    }

    /// The axes of one kind, in order.
    pub fn axes_of(&self, kind: AxisKind) -> impl Iterator<Item = Axis> {
        self.axes.iter().copied().filter(move |axis| axis.kind == kind)
    }

    /// The largest power of two, up to 16, of adjacent points that a thread has along its innermost loop, unrolled, and at whose
    /// multiples the tiles of all threads, loops and blocks are apart; 1 if there is none. Where the nest accumulates, its accesses
    /// to memory have the innermost loop over points for themselves.
    pub fn vector_points(&self) -> i64 {
        let inner = || self.axes_of(AxisKind::Serial).filter(|axis| axis.count > 1);
        let pure = inner().filter(|axis| matches!(axis.dim, LoopKind::Pure(_)));
        let candidates = inner().last().into_iter().chain(pure.last().filter(|_| self.accumulates));
        candidates.map(|axis| self.apart(axis)).max().unwrap_or(1)
    }

    /// The largest power of two, up to 16, that divides the points of an unrolled axis and the distances between its starts.
    fn apart(&self, axis: Axis) -> i64 {
        let reach = match axis.dim {
            LoopKind::Pure(d) => &self.points.dims[d],
            LoopKind::Reduction(r) => &self.domain[r],
        };
        let others = self.axes.iter().filter(|other| other.dim == axis.dim && **other != axis);
        let steps = others.filter(|other| other.count > 1).map(|other| other.step);
        let moves =
            reach.terms.iter().map(|(_, step)| if step.denominator() == 1 { step.numerator() } else { 1 });
        let points = if axis.unrolled { axis.count } else { 1 };
        steps.chain(moves).fold(gcd(16, points), gcd)
    }

    /// The number of threads that the nest needs; `None` for a flat loop, which works with any number.
    pub fn thread_count(&self) -> Option<u64> {
        let threads = self.threads.as_ref()?;
        Some(points(threads.iter().map(|dim| dim.threads)))
    }
}

/// The array of a Func or staged input in a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// A stage of the Func, or the staged input.
    pub item: Item,
    /// Shared memory, or private memory of each thread.
    pub storage: Storage,
    /// Whether each thread holds one point in a register, which the other threads of its warp read by
    /// shuffles.
    pub in_warps: bool,
    /// All points that the stages touch in a block.
    pub points: Footprint,
    /// The extents of the array: those of the points, or of one thread's share of them.
    pub extents: Vec<i64>,
    /// How threads share the points of a private array: the number of threads and the points of each,
    /// per dimension that several threads share. All stages of the Func and its readers locate their
    /// points by it.
    pub shares: Vec<Option<(i64, i64)>>,
    /// The distance in elements between neighbours along each dimension.
    pub strides: SmallVec<[i64; 4]>,
    /// The number of points of a row, along its [dimension](row_dimension).
    pub row: i64,
    /// The number of elements of the array of one value, in all slices.
    pub elements: i64,
    /// How many slices the array has, one after the other: one per iteration of the loop that copies ahead.
    pub slices: i64,
    /// The total bytes of all values.
    pub bytes: u64,
    /// The part that follows from the sizes of a launch, if the array is no longer than these ask. `extents`, `strides` and
    /// `elements` are the largest ones.
    pub at_launch: Option<LaunchExtent>,
    /// The total bytes at the sizes that the schedule is made for.
    pub typical_bytes: u64,
}

/// A dense array of which one dimension is as long as the sizes of a launch ask.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaunchExtent {
    /// The dimension.
    pub dim: usize,
    /// Its extent.
    pub extent: Formula,
    /// The number of elements of the array of one value.
    pub elements: Formula,
}

/// The strides of a dense array in elements, per dimension. `order` lists the dimensions by increasing
/// stride.
pub fn strides(extents: &[i64], order: impl IntoIterator<Item = usize>) -> SmallVec<[i64; 4]> {
    let mut strides: SmallVec<[i64; 4]> = SmallVec::from_elem(0, extents.len());
    let mut stride = 1_i64;
    for d in order {
        strides[d] = stride;
        stride = stride.saturating_mul(extents[d]);
    }
    strides
}

/// The dimension that the rows of an array run along: the first one, or the last one of a transposed array, that has more than
/// one element.
pub fn row_dimension(extents: &[i64], transpose: bool) -> Option<usize> {
    let is_long = |extent: &i64| *extent > 1;
    if transpose {
        extents.iter().rposition(is_long).or(extents.len().checked_sub(1))
    } else {
        extents.iter().position(is_long).or((!extents.is_empty()).then_some(0))
    }
}

/// The bytes of arrays with `elements` elements, one per type, including padding for alignment.
pub(crate) fn array_bytes(types: &[Type], elements: i64) -> u64 {
    let bytes = types.iter().map(|ty| {
        let bytes = (elements as u64).saturating_mul(ty.bytes() as u64);
        bytes.checked_next_multiple_of(SHARED_ALIGNMENT).unwrap_or(u64::MAX)
    });
    bytes.fold(0, u64::saturating_add)
}
