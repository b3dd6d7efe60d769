//! What one block of a kernel does, as data without expressions.
//!
//! A [`Body`] lists the stages that a block computes in order. Each has the axes of its loops, its variables as sums over
//! them, the arrays that it accesses and every access: which elements, in which of the loops, how many at a time. Whoever
//! counts or shows what a kernel does reads it from here.
//!
//! | file | contents |
//! | --- | --- |
//! | `builder` | the parts of a block, from the nests of a plan |
//! | `accesses` | the accesses of a part, as its decisions change them |
//! | `keep` | loop-invariant loads that move before the loops of a block |
//! | `registers` | the Funcs that a nest holds in registers |
//! | `vectors` | accesses of several adjacent elements |
//! | `moves` | how the index of an access moves with the axes |
//! | `walk` | the axes of a nest, its variables, and which threads are active |
//! | `warps` | simultaneous accesses of the threads of a warp |
//! | `flatten` | what a stage reads, writes and computes at a point, after inlining |
//! | `live` | the expressions of a stage that are evaluated |
//! | `value` | expressions as linear forms, away from the edges |
//! | `form` | linear forms of a stage's variables |
//! | `operations` | arithmetic operations by class |

mod accesses;
mod builder;
mod flatten;
mod form;
mod keep;
mod live;
mod moves;
mod operations;
mod registers;
mod value;
mod vectors;
mod walk;
mod warps;

use std::sync::Arc;

use ahash::RandomState;
use dashmap::DashMap;
use smallvec::SmallVec;
use warploom_lang::{FuncId, InputId};
use warploom_schedule::{FuncSet, Nest, NodeId, NodeSet, Source, StageId};

use crate::body::builder::FEWEST_BLOCKS;
use crate::body::flatten::Flattening;
use crate::footprint::RegisterFootprint;
use crate::ids::KernelId;
use crate::plan::{KernelPlan, Plan};
use crate::problem::Problem;

pub(crate) use builder::Builder;
pub use builder::{EDGE_BLOCKS, inner_axes};
pub use flatten::{Flat, Group, InlinedWork, Motion, OwnWork};
pub use moves::{Elements, Memory, Moves, Place};
pub use operations::Operations;
pub use vectors::{VECTOR_BYTES, Vector};
pub use walk::{Around, Axis, AxisId, AxisKind, Case, Cases, Linear, Walk};
pub use warps::{Alike, Digit, Lanes, Run, WARP, quotient};

/// The Funcs that are inlined into a stage, directly or through each other, in order.
type Inlined = SmallVec<[FuncId; 8]>;

/// Makes the bodies of the kernels of one problem. Threads can share it.
pub struct Bodies {
    problem: Problem,
    /// Flattened stages, by stage, the Funcs inlined into it, and whether all points are away from the edges.
    flats: DashMap<(StageId, Inlined, bool), Arc<Flat>, RandomState>,
}

impl Bodies {
    /// Starts with an empty cache of flattened stages.
    pub fn new(problem: &Problem) -> Bodies {
        Bodies { problem: problem.clone(), flats: DashMap::default() }
    }

    /// The problem whose kernels they are.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The body of the blocks of a kernel, as those away from the edges of the grid run it.
    pub fn body<'p>(&self, plan: &'p Plan, kernel: KernelId) -> Body<'p> {
        Builder::new(self, plan, kernel).body()
    }

    /// A stage flattened with the Funcs that are inlined into it, at points `inside` the edges that decide choices between
    /// reads or at all points.
    fn flat(&self, stage: StageId, inlined: &FuncSet, inside: bool) -> Arc<Flat> {
        let key = (stage, self.inlined_into(stage, inlined), inside);
        if let Some(flat) = self.flats.get(&key) {
            return flat.clone();
        }
        let (pipeline, regions) = (self.problem.pipeline(), self.problem.regions());
        let dag = self.problem.dag();
        let flattening = Flattening { pipeline, regions, dag, inlined: &key.1, stage, inside };
        let flat = Arc::new(flattening.flat());
        self.flats.insert(key, flat.clone());
        flat
    }

    fn inlined_into(&self, stage: StageId, inlined: &FuncSet) -> Inlined {
        let dag = self.problem.dag();
        let (mut found, mut seen) = (Inlined::new(), NodeSet::default());
        let mut pending: SmallVec<[StageId; 16]> = SmallVec::from_slice(&[stage]);
        while let Some(stage) = pending.pop() {
            for edge in &dag.stages()[stage].producers {
                let producer = dag.edges()[*edge].producer;
                let node = &dag.nodes()[producer];
                if let Source::Func(func) = node.source
                    && inlined.contains(func)
                    && !seen.contains(producer)
                {
                    seen.insert(producer);
                    found.push(func);
                    pending.extend(node.stages.iter().copied());
                }
            }
        }
        found.sort_unstable();
        found
    }
}

/// What one block of a kernel does.
#[derive(Debug)]
pub struct Body<'p> {
    /// The stages and copies that the block computes, in order.
    pub parts: Vec<Part<'p>>,
    /// The number of times that the kernel is launched.
    pub launches: i64,
}

/// A stage or a copy of an input in a block.
#[derive(Debug)]
pub struct Part<'p> {
    /// What it computes.
    pub what: What,
    /// The Func that it computes or the input that it copies.
    pub node: NodeId,
    /// The number of the nest that computes it, or whose registers hold it.
    pub number: usize,
    /// Its own nest; `None` for a Func in registers.
    pub nest: Option<&'p Nest>,
    /// The nest that computes it, or whose registers hold it.
    pub around: &'p Nest,
    /// The iterations of the loops over the block around it.
    pub over: f64,
    /// Its axes and variables, and which threads are active.
    pub walk: Box<Walk>,
    /// The same without the loops over the block, for what moves before them.
    pub before: Option<Box<Walk>>,
    /// What it reads, writes and computes at a point.
    pub flat: Arc<Flat>,
    /// Whether it keeps its points in registers while it updates them.
    pub accumulates: bool,
    /// Whether it keeps what it wrote last in a register.
    pub carries: bool,
    /// How many slices of what it copies asynchronously exist at once; 1 for everything else.
    pub slices: i64,
    /// Funcs in registers that it can read.
    pub registers: Registers<'p>,
    /// How lanes share it, if they do.
    pub lanes: Option<SharedByLanes>,
    /// The arrays that it accesses. The first is its own.
    pub arrays: Vec<Place>,
    /// Its accesses to memory: loads, then what it writes.
    pub accesses: Vec<Access>,
}

/// Funcs in registers, in order.
pub type Registers<'p> = SmallVec<[(FuncId, &'p RegisterFootprint); 4]>;

/// What a part computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// A stage.
    Stage(StageId),
    /// A copy of an input in shared memory.
    Copy(InputId),
}

/// How the lanes of a warp share a stage in registers.
#[derive(Debug)]
pub struct SharedByLanes {
    /// The walk of all lanes, if those that compute their points are fewer.
    everywhere: Option<Box<Walk>>,
    /// Whether it reads only registers, so that lanes compute it also at points that the block does not need.
    pub harmless: bool,
    /// Whether all lanes set their points to zero first, because some do not compute them.
    pub zeros: bool,
    /// The points that a lane gets from others, for each that it computes.
    pub taken: f64,
}

impl SharedByLanes {
    /// Whether some lanes do not compute their points.
    pub fn is_guarded(&self) -> bool {
        self.everywhere.is_some()
    }
}

/// Accesses of a part to one array that differ only by constants.
#[derive(Clone, Debug)]
pub struct Access {
    /// What they do.
    pub kind: AccessKind,
    /// Which elements they access.
    pub elements: Accessed,
    /// The number of the array in the part.
    pub array: usize,
    /// The loops inside a thread that repeat them.
    pub runs: Runs,
    /// Whether they move before the loops over the block.
    pub before: bool,
    /// Whether threads of a warp exchange what they load, instead of reading it from memory.
    pub shuffled: bool,
    /// The vectors of each access of the group, as far as it is made by vectors; empty if none is.
    pub vectors: SmallVec<[Option<Vector>; 4]>,
}

/// What accesses do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessKind {
    /// They load elements.
    Load,
    /// They load the points that a thread accumulates.
    Begin,
    /// They store elements.
    Store,
    /// They update elements atomically.
    Atomic,
    /// They stand for the reads of an atomic in the same part. No instruction loads these elements.
    Update,
}

/// The elements of accesses, at one point of a part.
#[derive(Clone, Debug)]
pub enum Accessed {
    /// Those of the group of loads with this number.
    Load(usize),
    /// Those of the group of stores with this number.
    Store(usize),
    /// These.
    Only(Box<Group>),
}

/// The loops inside a thread that repeat an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runs {
    /// All loops.
    All,
    /// Loops over points, not those over reductions.
    Points,
}

impl Runs {
    /// Whether an axis of this kind repeats the access.
    pub fn repeats(self, kind: AxisKind) -> bool {
        self == Runs::All || !kind.reduces()
    }
}

impl<'p> Part<'p> {
    /// The stage, if it is one.
    pub fn stage(&self) -> Option<StageId> {
        match self.what {
            What::Stage(stage) => Some(stage),
            What::Copy(_) => None,
        }
    }

    /// Whether it computes its points for global memory.
    pub fn is_global(&self) -> bool {
        self.nest.is_some_and(|nest| nest.storage.is_global())
    }

    /// Whether it copies asynchronously, ahead of the iteration that reads the copy.
    pub fn copies_ahead(&self) -> bool {
        self.slices > 1
    }

    /// The array that it writes.
    pub fn own(&self) -> &Place {
        &self.arrays[0]
    }

    /// The elements of an access.
    pub fn group<'s>(&'s self, access: &'s Access) -> &'s Group {
        match &access.elements {
            Accessed::Load(number) => &self.flat.loads[*number],
            Accessed::Store(number) => &self.flat.stores[*number],
            Accessed::Only(group) => group,
        }
    }

    /// The accesses to registers that stand for the part's own array while a thread accumulates its points or scans them, with
    /// the loops that repeat them.
    pub fn register_accesses(&self) -> Vec<(&Group, Runs, AccessKind)> {
        let mut accesses = Vec::new();
        if self.accumulates {
            let own = self.flat.loads.iter().filter(|group| group.own);
            accesses.extend(own.map(|group| (group, Runs::All, AccessKind::Load)));
            let each = [
                (Runs::All, AccessKind::Store),
                (Runs::Points, AccessKind::Store),
                (Runs::Points, AccessKind::Load),
            ];
            for group in &self.flat.stores {
                accesses.extend(each.map(|(runs, kind)| (group, runs, kind)));
            }
        } else if self.carries {
            let each = [
                (Runs::All, AccessKind::Load),
                (Runs::All, AccessKind::Store),
                (Runs::Points, AccessKind::Store),
            ];
            let is_first = |access: &&Access| access.kind == AccessKind::Load && access.runs == Runs::Points;
            for access in self.accesses.iter().filter(is_first) {
                accesses.extend(each.map(|(runs, kind)| (self.group(access), runs, kind)));
            }
        }
        accesses
    }

    /// The walk in which an access is made.
    pub fn walk_of(&self, access: &Access) -> &Walk {
        self.before.as_deref().filter(|_| access.before).unwrap_or(&self.walk)
    }

    /// The walk of all lanes of a stage that lanes share.
    pub fn everywhere(&self) -> &Walk {
        self.lanes.as_ref().and_then(|lanes| lanes.everywhere.as_deref()).unwrap_or(&self.walk)
    }
}

impl Body<'_> {
    /// The same for the block with these numbers along the tiles of its kernel.
    #[must_use]
    pub fn of_block(mut self, block: &[i64], blocks: &[i64]) -> Self {
        let chosen: SmallVec<[i64; 4]> =
            block.iter().zip(blocks).filter(|(_, all)| **all > 1).map(|(at, _)| *at).collect();
        for part in &mut self.parts {
            let everywhere = part.lanes.as_mut().and_then(|lanes| lanes.everywhere.as_deref_mut());
            let walks = [Some(&mut *part.walk), part.before.as_deref_mut(), everywhere];
            for walk in walks.into_iter().flatten() {
                let along = walk.around.axes.iter_mut().filter(|axis| axis.kind == AxisKind::Block);
                along.zip(&chosen).for_each(|(axis, at)| (axis.start, axis.count) = (*at, 1));
            }
        }
        self
    }
}

/// Whether some blocks of a kernel are away from the edges of the grid along every dimension with several blocks.
pub fn has_inner_blocks(kernel: &KernelPlan) -> bool {
    kernel.blocks.iter().all(|blocks| *blocks <= 1 || *blocks >= FEWEST_BLOCKS)
}
