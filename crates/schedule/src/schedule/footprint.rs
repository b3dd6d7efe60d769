//! How large everything is at its place: constant extents, whatever block, iteration or thread it is.

use std::collections::BTreeMap;
use std::ops::Range;

use warploom_lang::{FuncId, Pipeline, Regions, Type};

use crate::dag::LoopKind;
use crate::ids::NodeId;
use crate::node_set::NodeSet;
use crate::schedule::geometry::Geometry;
use crate::schedule::outline::Path;
use crate::schedule::reach::Reach;
use crate::schedule::tree::{Item, Schedule, Storage};

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

/// A nest at its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NestFootprint {
    /// Where it stands.
    pub path: Path,
    /// The points that it computes or copies.
    pub points: Footprint,
    /// What outer loops leave of the stage's reduction variables.
    pub domain: Vec<Reach>,
    /// Its loops as threads share them; `None` for a flat loop.
    pub threads: Option<Vec<ThreadLoop>>,
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

/// A loop around kernels or over a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoopFootprint {
    /// Where it stands.
    pub path: Path,
    /// How often it runs.
    pub count: i64,
}

impl NestFootprint {
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

/// One kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelFootprint {
    /// Where it stands.
    pub path: Path,
    /// Blocks along each tile of the kernel, in their order.
    pub blocks: Vec<i64>,
    /// Threads of a block: as many as its largest nest needs.
    pub threads: u64,
    /// Everything that lives in a block.
    pub allocations: Vec<Allocation>,
    /// The positions of its nests in [`Footprints::nests`].
    pub nests: Range<usize>,
    /// The positions of its loops over the block in [`Footprints::loops`].
    pub loops: Range<usize>,
}

impl KernelFootprint {
    /// Blocks along x, y and z on a device with these limits. Tiles that are more than one block have an axis each; if they
    /// are too many or too long for that, all are on x.
    pub fn grid(&self, limits: [u32; 3]) -> [u64; 3] {
        let mut grid = [1; 3];
        let several = self.several().map(|blocks| blocks as u64);
        match self.has_axes(limits) {
            true => grid.iter_mut().zip(several).for_each(|(axis, blocks)| *axis = blocks),
            false => grid[0] = several.fold(1, u64::saturating_mul),
        }
        grid
    }

    /// Whether each tile of more than one block has an axis of the grid for itself.
    pub fn has_axes(&self, limits: [u32; 3]) -> bool {
        self.several().count() <= limits.len()
            && self.several().zip(limits).all(|(blocks, limit)| blocks <= i64::from(limit))
    }

    fn several(&self) -> impl Iterator<Item = i64> {
        self.blocks.iter().copied().filter(|blocks| *blocks > 1)
    }

    /// Bytes of shared memory that a block takes.
    pub fn shared_bytes(&self) -> u64 {
        let shared = self.allocations.iter().filter(|allocation| allocation.storage == Storage::Shared);
        shared.fold(0, |sum: u64, allocation| sum.saturating_add(allocation.bytes))
    }
}

/// The footprints of a schedule at the sizes of one realisation.
///
/// ```
/// use warploom_lang::*;
/// use warploom_schedule::schedule::{Footprints, ScheduleBuilder};
/// let (x, y) = vars!(x, y);
/// let input = Input::f32("input", 2);
/// let gray = func("gray", (x, y), input.at((x, y)) * 0.5);
/// let blur = func("blur", (x, y), gray.at((x, y)) + gray.at((x + 2, y + 1)));
/// let pipeline = Pipeline::new("blur", [blur])?;
/// let request = Realisation::new(&pipeline)
///     .input("input", Region::of_extents(&[200, 200]))
///     .output("blur", Region::of_extents(&[190, 190]));
/// let regions = infer(&pipeline, &request)?;
///
/// let schedule = ScheduleBuilder::new(&pipeline)
///     .kernel("blur", "x 64, y 16", |block| block.flat("gray").threads("blur", "x 64, y 4"))
///     .build()?;
/// let footprints = Footprints::new(&schedule, &pipeline, &regions);
/// let kernel = &footprints.kernels[0];
/// assert_eq!(kernel.allocations[0].extents, [66, 17]);
/// assert_eq!((&kernel.blocks[..], kernel.threads), (&[3, 12][..], 256));
/// assert_eq!(kernel.shared_bytes(), 66 * 17 * 4 + 8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Footprints {
    /// Every kernel, in the order they run.
    pub kernels: Vec<KernelFootprint>,
    /// Every nest, in the order of the text; `None` where nothing reads what it computes.
    pub nests: Vec<Option<NestFootprint>>,
    /// Every loop around kernels and over blocks, in the order of the text: what [`Symbol::Loop`] numbers.
    ///
    /// [`Symbol::Loop`]: crate::schedule::Symbol::Loop
    pub loops: Vec<LoopFootprint>,
    /// What [`Symbol::Lowest`] numbers: the reaches whose smallest value it is.
    ///
    /// [`Symbol::Lowest`]: crate::schedule::Symbol::Lowest
    pub lowest: Vec<Vec<Reach>>,
}

impl Footprints {
    /// The footprints of a schedule, which need not be legal. A [`Geometry`] gives those of many.
    pub fn new(schedule: &Schedule, pipeline: &Pipeline, regions: &Regions) -> Footprints {
        Geometry::new(pipeline, regions).footprints(&schedule.inlined, &schedule.root)
    }

    /// The nest at a path.
    pub fn nest(&self, path: &Path) -> Option<&NestFootprint> {
        let kernel = self.kernels.partition_point(|kernel| kernel.path <= *path).checked_sub(1)?;
        let nests = self.nests[self.kernels[kernel].nests.clone()].iter();
        nests.flatten().find(|nest| nest.path == *path)
    }

    /// The kernel at a path.
    pub fn kernel(&self, path: &Path) -> Option<&KernelFootprint> {
        let position = self.kernels.binary_search_by(|kernel| kernel.path.cmp(path)).ok()?;
        Some(&self.kernels[position])
    }
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
