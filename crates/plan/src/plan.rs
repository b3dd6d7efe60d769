//! The plan: a schedule resolved against a problem.
//!
//! A plan holds everything that a schedule implies at the sizes of a [`Problem`](crate::Problem), computed once.
//! Legality checks it, lowering prints it, features count it, and `explain` shows it.

use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;
use warploom_lang::{FuncId, IdVec};
use warploom_schedule::{
    BlockItem, FuncSet, Item, Kernel, Loops, Nest, Path, ReductionTile, RootItem, StageRef, Tile,
};
use warploom_target::Device;

use crate::footprint::{Allocation, NestFootprint};
use crate::ids::{KernelId, LoopId, NestId};
use crate::reach::Reach;
use crate::reach::limit::Limits;

/// The kernel compiler needs at least this many registers per thread.
const LEAST_REGISTERS: u32 = 16;

/// A short list of loops, outermost first.
pub type LoopIds = SmallVec<[LoopId; 4]>;

/// A schedule resolved against a problem: every kernel, nest and loop with its sizes.
///
/// A plan can also cover only some kernels. Funcs that these kernels do not compute are read from
/// global memory.
///
/// ```
/// use warploom_lang::*;
/// use warploom_plan::Problem;
/// use warploom_schedule::ScheduleBuilder;
/// use warploom_target::Device;
/// let (x, y) = vars!(x, y);
/// let input = Input::f32("input", 2);
/// let gray = func("gray", (x, y), input.at((x, y)) * 0.5);
/// let blur = func("blur", (x, y), gray.at((x, y)) + gray.at((x + 2, y + 1)));
/// let pipeline = Pipeline::new("blur", [blur])?;
/// let request = Realisation::new(&pipeline)
///     .input("input", Region::of_extents(&[200, 200]))
///     .output("blur", Region::of_extents(&[190, 190]));
/// let problem = Problem::new(&pipeline, &request, &Device::preset("h200")?)?;
///
/// let schedule = ScheduleBuilder::new(&pipeline)
///     .kernel("blur", "x 64, y 16", |block| block.flat("gray").threads("blur", "x 64, y 4"))
///     .build()?;
/// let plan = problem.plan(&schedule);
/// let kernel = plan.kernels.values().next().unwrap();
/// assert_eq!(kernel.allocations[0].extents, [66, 17]);
/// assert_eq!((&kernel.blocks[..], kernel.threads), (&[3, 12][..], 256));
/// assert_eq!(kernel.shared_bytes(), 66 * 17 * 4 + 8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Funcs that are inlined into every use.
    pub inlined: FuncSet,
    /// All loops around kernels and over blocks.
    pub loops: IdVec<LoopId, LoopPlan>,
    /// All kernels, in launch order.
    pub kernels: IdVec<KernelId, KernelPlan>,
    /// Stages and staged inputs, in execution order.
    pub nests: IdVec<NestId, NestPlan>,
    /// The launch order of the kernels, and the loops around them.
    pub launches: Steps<KernelId>,
    /// The reaches whose smallest value each [`Symbol::Lowest`](crate::Symbol::Lowest) stands
    /// for.
    pub lowest: Vec<Vec<Reach>>,
    /// The formulas of limits and of [`Symbol::Size`](crate::Symbol::Size); `None` if the sizes
    /// are fixed.
    pub limits: Option<Box<Limits>>,
    /// The nests that compute each Func, in order.
    computing: Vec<(FuncId, NestId)>,
    /// The nests that hold each Func in registers, with its position there, in order.
    holding: Vec<(FuncId, NestId, usize)>,
    /// The own stages of the kernels, in order.
    own: Vec<StageRef>,
}

/// A loop around kernels or over a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoopPlan {
    /// The node of the schedule's tree that contains the loop.
    pub path: Path,
    /// The reduction variable that the loop divides, and the size per iteration.
    pub tile: ReductionTile,
    /// The number of iterations. A loop with one iteration is not emitted.
    pub count: i64,
    /// How many slices of what nests of the loop copy asynchronously are in shared memory at once; 1 without such nests.
    pub slices: i64,
}

/// A kernel with its grid and the body of its blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelPlan {
    /// The position of the kernel in the schedule's tree.
    pub path: Path,
    /// The kernel as written in the schedule.
    pub kernel: Arc<Kernel>,
    /// The loops around the kernel, outermost first.
    pub around: LoopIds,
    /// The nests that a block runs, in order, and the loops over the block.
    pub body: Steps<NestId>,
    /// The ids of the kernel's nests.
    pub nests: Range<NestId>,
    /// The ids of the loops over the block.
    pub over: Range<LoopId>,
    /// The number of blocks along each tile of the kernel, in tile order.
    pub blocks: Vec<i64>,
    /// Threads per block: as many as the largest nest needs.
    pub threads: u64,
    /// All arrays that live in a block or thread.
    pub allocations: Vec<Allocation>,
}

/// A stage or staged input in a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NestPlan {
    /// The position of the nest in the schedule's tree.
    pub path: Path,
    /// The kernel that contains the nest.
    pub kernel: KernelId,
    /// The enclosing loops, around kernels and over the block, outermost first.
    pub loops: LoopIds,
    /// The nest as written in the schedule.
    pub nest: Arc<Nest>,
    /// The sizes of the nest; `None` if nothing reads what it computes.
    pub footprint: Option<NestFootprint>,
}

/// A sequence of steps, some of them in loops. Stored in text order, each loop before its body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Steps<T>(SmallVec<[Step<T>; 4]>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step<T> {
    Run(T),
    /// A loop whose body is the given number of following steps.
    Loop(LoopId, usize),
}

/// One step of a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stepped<'a, T> {
    /// Runs a kernel or nest.
    Run(T),
    /// Runs a loop, with the body of one iteration.
    Loop(LoopId, Sequence<'a, T>),
}

/// The steps of one loop iteration, or of a whole block or program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sequence<'a, T>(&'a [Step<T>]);

impl Plan {
    /// The items that nests compute or copy in a body.
    pub fn items_in(&self, body: Sequence<'_, NestId>) -> Vec<Item> {
        let mut items = Vec::new();
        for step in body {
            match step {
                Stepped::Run(nest) => items.push(self.nests[nest].nest.item),
                Stepped::Loop(_, body) => items.extend(self.items_in(body)),
            }
        }
        items
    }

    /// Whether a loop of a kernel runs more than once, and all of its iterations alike.
    pub fn repeats(&self, id: LoopId) -> bool {
        self.loops[id].count > 1 && self.copied_ahead(id).is_empty()
    }
}

impl<T: Copy> Steps<T> {
    /// The whole sequence.
    pub fn body(&self) -> Sequence<'_, T> {
        Sequence(&self.0)
    }
}

impl<'a, T: Copy> Iterator for Sequence<'a, T> {
    type Item = Stepped<'a, T>;

    fn next(&mut self) -> Option<Stepped<'a, T>> {
        let (first, rest) = self.0.split_first()?;
        let (stepped, rest) = match *first {
            Step::Run(what) => (Stepped::Run(what), rest),
            Step::Loop(id, length) => {
                let (body, rest) = rest.split_at(length);
                (Stepped::Loop(id, Sequence(body)), rest)
            }
        };
        self.0 = rest;
        Some(stepped)
    }
}

impl NestPlan {
    /// The stage, or `None` for a staged input.
    pub fn stage(&self) -> Option<StageRef> {
        match self.nest.item {
            Item::Stage(stage) => Some(stage),
            Item::Input(_) => None,
        }
    }

    pub(crate) fn computes(&self, func: FuncId) -> bool {
        self.stage().is_some_and(|stage| stage.func == func)
    }
}

impl KernelPlan {
    /// The grid on a device: blocks along x, y and z.
    pub fn grid(&self, device: &Device) -> [u64; 3] {
        grid(&self.blocks, device.threads.grid_dims)
    }

    /// The tiles with more than one block, in order, one per grid axis; `None` if all of them share x.
    pub fn axes(&self, device: &Device) -> Option<SmallVec<[(Tile, i64); 3]>> {
        has_axes(&self.blocks, device.threads.grid_dims).then(|| self.split().collect())
    }

    /// The tiles with more than one block, and their block counts.
    pub fn split(&self) -> impl Iterator<Item = (Tile, i64)> {
        let tiles = self.kernel.block.iter().copied().zip(self.blocks.iter().copied());
        tiles.filter(|(_, blocks)| *blocks > 1)
    }

    /// The number of blocks that an SM must be able to hold at once, if the schedule sets it: no more than fit by
    /// their threads and shared memory.
    pub fn resident(&self, device: &Device) -> Option<NonZeroU32> {
        let blocks = self.kernel.numbers.blocks?;
        NonZeroU32::new(blocks.get().min(self.most_resident(device)))
    }

    /// The number of blocks that an SM can hold at once by their threads and shared memory.
    pub fn most_resident(&self, device: &Device) -> u32 {
        resident_blocks(device, self.threads, self.typical_shared_bytes())
    }

    /// Bytes of shared memory per block: the most at any sizes.
    pub fn shared_bytes(&self) -> u64 {
        shared_bytes(&self.allocations, |allocation| allocation.bytes)
    }

    /// Bytes of shared memory per block at the sizes that the schedule is made for.
    pub fn typical_shared_bytes(&self) -> u64 {
        shared_bytes(&self.allocations, |allocation| allocation.typical_bytes)
    }
}

/// The number of blocks that an SM can hold at once by their threads and shared memory.
pub(crate) fn resident_blocks(device: &Device, threads: u64, shared_bytes: u64) -> u32 {
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    device.occupancy(small(threads), LEAST_REGISTERS, small(shared_bytes)).blocks_per_sm
}

/// The bytes of the arrays in shared memory.
pub(crate) fn shared_bytes(allocations: &[Allocation], bytes: impl Fn(&Allocation) -> u64) -> u64 {
    let shared = allocations.iter().filter(|allocation| allocation.storage.is_shared());
    shared.fold(0, |sum: u64, allocation| sum.saturating_add(bytes(allocation)))
}

/// The grid of a kernel with these block counts along its tiles. Each tile with more than one block has
/// its own axis. If there are too many such tiles or one is too long for its axis, all of them share x.
pub(crate) fn grid(blocks: &[i64], limits: [u32; 3]) -> [u64; 3] {
    let mut grid = [1; 3];
    let split = several(blocks).map(|blocks| blocks as u64);
    match has_axes(blocks, limits) {
        true => grid.iter_mut().zip(split).for_each(|(axis, blocks)| *axis = blocks),
        false => grid[0] = split.fold(1, u64::saturating_mul),
    }
    grid
}

/// Whether each tile with more than one block has its own grid axis.
fn has_axes(blocks: &[i64], limits: [u32; 3]) -> bool {
    several(blocks).count() <= limits.len()
        && several(blocks).zip(limits).all(|(blocks, limit)| blocks <= i64::from(limit))
}

fn several(blocks: &[i64]) -> impl Iterator<Item = i64> {
    blocks.iter().copied().filter(|blocks| *blocks > 1)
}

impl Plan {
    /// The structure of some kernels and loops around kernels, without sizes.
    pub(crate) fn outlined<'s>(inlined: FuncSet, root: impl IntoIterator<Item = &'s RootItem>) -> Plan {
        let mut plan = Plan {
            inlined,
            loops: IdVec::new(),
            kernels: IdVec::new(),
            nests: IdVec::new(),
            launches: Steps(SmallVec::new()),
            lowest: Vec::new(),
            limits: None,
            computing: Vec::new(),
            holding: Vec::new(),
            own: Vec::new(),
        };
        let mut launches = SmallVec::new();
        for (i, item) in root.into_iter().enumerate() {
            plan.add_root(Path::ROOT.child(i), &[], item, &mut launches);
        }
        plan.launches = Steps(launches);
        plan.index();
        plan
    }

    fn index(&mut self) {
        for (id, info) in self.nests.iter() {
            self.computing.extend(info.stage().map(|stage| (stage.func, id)));
            let registers = info.nest.registers.iter().enumerate();
            self.holding.extend(registers.map(|(position, func)| (*func, id, position)));
        }
        self.own.extend(self.kernels.values().map(|info| info.kernel.stage));
        self.computing.sort_unstable();
        self.holding.sort_unstable();
        self.own.sort_unstable();
    }

    fn add_root(
        &mut self,
        path: Path,
        outer: &[LoopId],
        item: &RootItem,
        steps: &mut SmallVec<[Step<KernelId>; 4]>,
    ) {
        match item {
            RootItem::Around(around) => self.add_loops(&path, outer, around, steps, Plan::add_root),
            RootItem::Kernel(kernel) => {
                let (id, first, first_loop) =
                    (self.kernels.next_id(), self.nests.next_id(), self.loops.next_id());
                let mut body = SmallVec::new();
                for (i, item) in kernel.body.iter().enumerate() {
                    self.add_block(path.child(i), outer, item, &mut body);
                }
                steps.push(Step::Run(id));
                self.kernels.push(KernelPlan {
                    path,
                    kernel: kernel.clone(),
                    around: SmallVec::from_slice(outer),
                    body: Steps(body),
                    nests: first..self.nests.next_id(),
                    over: first_loop..self.loops.next_id(),
                    blocks: Vec::new(),
                    threads: 0,
                    allocations: Vec::new(),
                });
            }
        }
    }

    fn add_block(
        &mut self,
        path: Path,
        outer: &[LoopId],
        item: &BlockItem,
        steps: &mut SmallVec<[Step<NestId>; 4]>,
    ) {
        match item {
            BlockItem::Over(over) => self.add_loops(&path, outer, over, steps, Plan::add_block),
            BlockItem::Nest(nest) => {
                let (kernel, loops) = (self.kernels.next_id(), SmallVec::from_slice(outer));
                let id =
                    self.nests.push(NestPlan { path, kernel, loops, nest: nest.clone(), footprint: None });
                steps.push(Step::Run(id));
            }
        }
    }

    /// Adds nested loops and their body.
    fn add_loops<T, I>(
        &mut self,
        path: &Path,
        outer: &[LoopId],
        Loops { loops: tiles, body }: &Loops<T>,
        steps: &mut SmallVec<[Step<I>; 4]>,
        add: impl Fn(&mut Plan, Path, &[LoopId], &T, &mut SmallVec<[Step<I>; 4]>),
    ) {
        let (mut inside, first) = (LoopIds::from_slice(outer), steps.len());
        for tile in tiles {
            let id = self.loops.push(LoopPlan { path: path.clone(), tile: *tile, count: 1, slices: 1 });
            inside.push(id);
            steps.push(Step::Loop(id, 0));
        }
        for (i, item) in body.iter().enumerate() {
            add(self, path.child(i), &inside, item, steps);
        }
        let end = steps.len();
        for (position, step) in steps.iter_mut().enumerate().skip(first).take(tiles.len()) {
            if let Step::Loop(_, length) = step {
                *length = end - position - 1;
            }
        }
    }

    /// The nests that compute stages of a Func.
    pub(crate) fn computing(&self, func: FuncId) -> impl Iterator<Item = (NestId, &NestPlan)> {
        let first = self.computing.partition_point(|(known, _)| *known < func);
        let nests = self.computing[first..].iter().take_while(move |(known, _)| *known == func);
        nests.map(|(_, id)| (*id, &self.nests[*id]))
    }

    /// The nests that hold a Func in registers, with its position there.
    pub(crate) fn holding(&self, func: FuncId) -> impl Iterator<Item = (&NestPlan, usize)> {
        let first = self.holding.partition_point(|(known, ..)| *known < func);
        let nests = self.holding[first..].iter().take_while(move |(known, ..)| *known == func);
        nests.map(|(_, id, position)| (&self.nests[*id], *position))
    }

    /// Whether a stage has its own kernel.
    pub(crate) fn has_kernel(&self, stage: StageRef) -> bool {
        self.own.binary_search(&stage).is_ok()
    }

    /// The nests of a kernel, in execution order.
    pub fn nests_of(&self, kernel: KernelId) -> &[NestPlan] {
        self.nests.slice(self.kernels[kernel].nests.clone())
    }

    /// Whether a nest computes its kernel's own stage, which is in global memory.
    pub fn is_own(&self, nest: &NestPlan) -> bool {
        nest.stage() == Some(self.kernels[nest.kernel].kernel.stage)
    }

    /// The loops of a nest that run over variables of its own stage.
    pub(crate) fn own_loops(&self, nest: &NestPlan) -> LoopIds {
        let own = |id: &LoopId| Some(self.loops[*id].tile.stage) == nest.stage();
        nest.loops.iter().copied().filter(own).collect()
    }

    /// The loops of a nest that run over variables of other stages.
    pub(crate) fn foreign_loops(&self, nest: &NestPlan) -> LoopIds {
        let foreign = |id: &LoopId| Some(self.loops[*id].tile.stage) != nest.stage();
        nest.loops.iter().copied().filter(foreign).collect()
    }
}
