//! The features of one stage of a kernel.

use smallvec::SmallVec;
use warploom_lang::InputId;
use warploom_schedule::{Item, Nest, NodeId, StageRef, Storage};
use warploom_target::Device;

use crate::features::arrays::Access;
use crate::features::block::Block;
use crate::features::flatten::{Flat, Group, InlinedWork};
use crate::features::merged::{Merged, merged, shared_by_points};
use crate::features::reads::{Reads, Scope};
use crate::features::registers::{Registers, Shared};
use crate::features::traffic::{Moves, Place};
use crate::features::walk::{AxisKind, Walk};
use crate::kernel::{KernelFeatures, Memory, RowSource, Traffic};
use crate::schema::StageFeatures;

/// The most loaded values that are live at once. Beyond that, the compiler consumes the first ones
/// early.
const MAX_LOADS_HELD: f64 = 12.0;

/// The most values of unrolled points that wait to be stored.
const MAX_RESULTS_IN_FLIGHT: f64 = 16.0;

/// The most values of inlined Funcs that are live at once. The others are recomputed.
const MAX_REUSED: f64 = 24.0;

/// The most addresses that are live at once.
const MAX_ADDRESSES: f64 = 6.0;

/// Operations per digit of a flat loop's index: a quotient and a remainder by a constant.
const DIGIT_OPERATIONS: f64 = 6.0;

/// Operations per guard.
const GUARD_OPERATIONS: f64 = 2.0;

/// Properties that all stages of a kernel share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelShape {
    pub blocks: f64,
    pub launches: f64,
    pub threads: i64,
}

/// A stage at its position in the kernel.
#[derive(Clone, Copy)]
pub(crate) struct Work<'w> {
    pub source: RowSource,
    pub node: NodeId,
    pub walk: &'w Walk,
    pub flat: &'w Flat,
    /// Its nest; `None` for a Func in registers.
    pub nest: Option<&'w Nest>,
    /// Whether it accumulates its points in registers.
    pub accumulates: bool,
    /// Whether it keeps what it wrote last in a register.
    pub carries: bool,
    /// Whether the accesses of its unrolled points are vectors, where that is possible.
    pub vector: bool,
    /// Funcs in registers that can be read.
    pub registers: &'w Registers<'w>,
    /// How lanes share it, if they do.
    pub lanes: Option<Shared<'w>>,
    /// The input that is being copied, if the row is a copy.
    pub input: Option<InputId>,
}

impl Work<'_> {
    /// Whether it updates its points by atomics.
    pub(super) fn is_atomic(&self) -> bool {
        self.nest.is_some_and(|nest| nest.numbers.atomic)
    }

    /// Whether it copies asynchronously, if there is more than one slice to copy.
    fn is_async(&self) -> bool {
        self.nest.is_some_and(|nest| nest.numbers.depth.is_some())
    }
}

/// The features of a stage and its register demand.
pub(crate) struct Computed {
    pub features: StageFeatures,
    pub reads: Reads,
    /// Registers that are live while it runs.
    pub registers: f64,
    /// Expression nodes of its code.
    pub nodes: f64,
    /// For each inlined Func, the fraction of its work that remains after unrolled points share
    /// common values.
    pub shares: SmallVec<[f64; 8]>,
}

/// Accesses of a stage, totalled by memory.
#[derive(Default)]
pub(super) struct Totals {
    global: Traffic,
    shared: Traffic,
    merged_global: Traffic,
    merged_shared: Traffic,
    local: f64,
    /// Distinct loads of one tile of unrolled points.
    in_flight: f64,
}

/// Selects the axes inside a thread that run.
pub(super) type Keep = fn(AxisKind) -> bool;

/// Selects every axis.
pub(super) fn all(_: AxisKind) -> bool {
    true
}

/// Selects the axes over points, not over reductions.
fn points(kind: AxisKind) -> bool {
    !kind.reduces()
}

impl Block<'_, '_> {
    /// Computes the features of a stage.
    pub fn row(&mut self, work: &Work<'_>) -> Computed {
        let mut features = StageFeatures::default();
        let mut reads = Reads::default();
        let own = self.own_place(work);
        let loads = self.loads(work, &own, &mut reads);
        self.atomics(work, &own, &mut features);
        features.copied_slices = if self.copies_ahead(work) { self.slices(work) as f64 } else { 0.0 };
        let stores = self.stores(work, &own);
        self.volume(work, &own, &mut features);
        self.parallelism(work, &mut features);
        write_traffic(&loads, &stores, self.units_of_bytes(), &mut features);
        write_reads(&reads, work.flat, &mut features);
        let written_out = features.unrolled_loop_extent;
        work.flat.work.operations.write(features.points_computed_total, &mut features);
        features.index_operations = features.points_computed_total * index_operations(work);
        features.code_nodes = work.flat.work.nodes * written_out;
        if let RowSource::Stage(stage) = work.source {
            features.expr_branching = f64::from(self.items.problem.dag().stages()[stage].branching);
        }
        let inlined = work.flat.inlined.iter().map(|inlined| inlined.work.nodes).sum::<f64>();
        let nodes = features.code_nodes + inlined * written_out;
        let bytes = self.items.problem.dag().nodes()[work.node].bytes_per_point as f64;
        let results = features.innermost_pure_loop_extent.min(written_out) * bytes / 4.0;
        let held = if work.accumulates { results } else { results.min(MAX_RESULTS_IN_FLIGHT) };
        let addresses = (2.0 * work.flat.loads.len() as f64).min(MAX_ADDRESSES);
        let (shares, reused) = shared_by_points(work.flat, work.walk);
        let registers = held
            + (loads.in_flight / 2.0).min(MAX_LOADS_HELD)
            + addresses
            + features.expr_branching
            + reused.min(MAX_REUSED);
        Computed { features, reads, registers, nodes, shares }
    }

    /// How many slices of what it computes exist at once.
    fn slices(&self, work: &Work<'_>) -> i64 {
        self.allocation(work.node).map_or(1, |(_, array)| array.slices)
    }

    /// Whether it copies asynchronously.
    pub(super) fn copies_ahead(&self, work: &Work<'_>) -> bool {
        work.is_async() && self.slices(work) > 1
    }

    /// The array that receives the stage's results.
    pub(super) fn own_place(&self, work: &Work<'_>) -> Place {
        match (work.input, self.allocation(work.node)) {
            (Some(_), Some((_, allocation))) => self.in_block(allocation, work),
            _ => self.place(work.node, work),
        }
    }

    fn units_of_bytes(&self) -> (f64, f64) {
        let device = self.items.problem.device();
        let wavefront = device.shared.banks * device.shared.bank_bytes;
        (f64::from(device.memory.sector_bytes), f64::from(wavefront))
    }

    fn loads(&mut self, work: &Work<'_>, own: &Place, reads: &mut Reads) -> Totals {
        let mut totals = Totals::default();
        for group in &work.flat.loads {
            let moves = Moves::new(work.walk, group);
            if group.own && work.accumulates {
                self.count_tile(work, group, &moves, own, &[(all, Access::Load)]);
                continue;
            }
            if group.own && work.is_atomic() {
                reads.add(group, &moves, own);
                continue;
            }
            if group.own && work.carries {
                self.scanned_loads(work, group, own, &mut totals, reads);
                continue;
            }
            let place =
                if group.own && work.input.is_none() { own.clone() } else { self.place(group.node, work) };
            if !group.own && self.is_in_warps(group.node) {
                totals.add_shuffles(moves.traffic(&place, self.units, |kind| kind == AxisKind::Over, 1).0);
            }
            if self.keeps(work, group, &moves, &place) {
                let once = work.walk.before_loops();
                self.load(&Work { walk: &once, ..*work }, group, &place, all, &mut totals, reads);
                continue;
            }
            self.load(work, group, &place, all, &mut totals, reads);
        }
        self.exchanged(work, own, &mut totals);
        if work.accumulates {
            for group in &work.flat.stores {
                let moves = Moves::new(work.walk, group);
                let traffic = self.count(work, group, &moves, own, points, Access::Load);
                totals.add(&moves, own, traffic, points);
                reads.add(group, &moves, own);
            }
        }
        totals
    }

    fn load(
        &mut self,
        work: &Work<'_>,
        group: &Group,
        place: &Place,
        keep: Keep,
        totals: &mut Totals,
        reads: &mut Reads,
    ) {
        let moves = Moves::new(work.walk, group);
        let traffic = self.count(work, group, &moves, place, keep, Access::Load);
        totals.add(&moves, place, traffic, keep);
        if place.memory == Memory::Thread && is_indexed(&moves, place) {
            totals.local += traffic.requests;
            self.note_indexed(group.node);
        }
        reads.add(group, &moves, place);
    }

    /// The loads of a scan from its own Func. What it wrote last is in a register, and is loaded once per line.
    fn scanned_loads(
        &mut self,
        work: &Work<'_>,
        group: &Group,
        own: &Place,
        totals: &mut Totals,
        reads: &mut Reads,
    ) {
        let variable = work.walk.vars.len() - 1;
        let store = work.flat.stores.iter().find(|store| store.value == group.value);
        let (previous, others) = store.map_or((None, None), |store| group.split_previous(store, variable));
        if let Some(previous) = previous {
            self.load(work, &previous, own, points, totals, reads);
            let moves = Moves::new(work.walk, &previous);
            let each: [(Keep, Access); 3] =
                [(all, Access::Load), (all, Access::Store), (points, Access::Store)];
            self.count_tile(work, &previous, &moves, own, &each);
        }
        if let Some(others) = others {
            self.load(work, &others, own, all, totals, reads);
        }
    }

    fn stores(&mut self, work: &Work<'_>, own: &Place) -> Totals {
        let mut totals = Totals::default();
        for group in work.flat.stores.iter().filter(|_| !work.is_atomic()) {
            let moves = Moves::new(work.walk, group);
            let keep: Keep = if work.accumulates { points } else { all };
            if work.accumulates {
                let each: [(Keep, Access); 3] =
                    [(all, Access::Store), (points, Access::Store), (points, Access::Load)];
                self.count_tile(work, group, &moves, own, &each);
            }
            let traffic = self.count(work, group, &moves, own, keep, Access::Store);
            totals.add(&moves, own, traffic, keep);
            if own.memory == Memory::Thread && is_indexed(&moves, own) {
                totals.local += traffic.requests;
                self.note_indexed(group.node);
            }
        }
        totals
    }

    fn note_indexed(&mut self, node: NodeId) {
        if !self.indexed.contains(&node) {
            self.indexed.push(node);
        }
    }

    /// Fills in the counts of realisations and points, the loop extents and the bytes.
    fn volume(&self, work: &Work<'_>, own: &Place, features: &mut StageFeatures) {
        let (walk, shape) = (work.walk, self.shape);
        let dag = self.items.problem.dag();
        let bytes = dag.nodes()[work.node].bytes_per_point as f64;
        let is_root = work.nest.is_some_and(|nest| nest.storage.is_global());
        let per_block: f64 = walk.cases.iter().map(|case| case.active * walk.turns(case, all)).sum();
        let per_run = per_block / self.over;
        let root = self.root_points(work);
        features.num_realizations = if is_root { 1.0 } else { shape.launches * shape.blocks };
        features.num_productions = shape.launches * shape.blocks * self.over;
        features.points_computed_per_production = per_run;
        let total = per_run * features.num_productions;
        // A kernel's own stage computes every point once, even if the edge cuts off blocks.
        features.points_computed_total = if is_root { root.min(total) } else { total };
        features.points_computed_per_realization = features.points_computed_total / features.num_realizations;
        features.points_computed_minimum = root;
        let along = |keep: &dyn Fn(AxisKind) -> bool| -> f64 {
            let axes = walk.around.axes[walk.own_axes..].iter().filter(|axis| keep(axis.kind));
            axes.map(|axis| axis.count as f64).product()
        };
        let serial = |kind: AxisKind| matches!(kind, AxisKind::Group | AxisKind::Serial { .. });
        features.points_computed_per_thread = along(&|kind| kind != AxisKind::Lane) * self.flat_rounds(walk);
        features.innermost_loop_extent = along(&|kind| serial(kind));
        features.innermost_pure_loop_extent = along(&|kind| serial(kind) && !kind.reduces());
        features.unrolled_loop_extent = along(&AxisKind::is_unrolled);
        let dims = own.extents.len();
        let box_of = |extents: &[i64]| extents.iter().map(|extent| *extent as f64).product::<f64>() * bytes;
        let computed = &walk.extents[..dims.min(walk.extents.len())];
        let dense = dag.nodes()[work.node].storage_order.first().copied().unwrap_or(0);
        let line = |extents: &[i64]| extents.get(dense).map_or(1.0, |extent| *extent as f64) * bytes;
        let region = self.root_extents(work.node);
        features.bytes_at_realization = box_of(&own.extents);
        features.innermost_bytes_at_realization = line(&own.extents);
        features.bytes_at_production = box_of(computed);
        features.innermost_bytes_at_production = line(computed);
        features.bytes_at_root = box_of(&region);
        features.innermost_bytes_at_root = line(&region);
        match own.memory {
            Memory::Global => {
                features.global_bytes_at_task = box_of(computed);
                features.global_innermost_bytes_at_task = line(computed);
            }
            Memory::Shared => {
                features.shared_bytes_at_task = box_of(&own.extents);
                features.shared_innermost_bytes_at_task = line(&own.extents);
            }
            Memory::Thread => {
                features.register_bytes_at_task = box_of(&own.extents);
                features.register_innermost_bytes_at_task = line(&own.extents);
            }
        }
        self.working_sets(work, own, features);
    }

    /// Iterations of a flat loop.
    fn flat_rounds(&self, walk: &Walk) -> f64 {
        ((walk.total + walk.threads - 1) / walk.threads) as f64
    }

    fn working_sets(&self, work: &Work<'_>, own: &Place, features: &mut StageFeatures) {
        let allocations = &self.plan.allocations;
        let threads = self.shape.threads as f64;
        let bytes = |is: fn(Storage) -> bool| -> f64 {
            allocations.iter().filter(|own| is(own.storage)).map(|own| own.bytes as f64).sum()
        };
        let (shared, private) = (bytes(Storage::is_shared), bytes(Storage::is_private));
        let nodes = self.items.problem.dag();
        let held: f64 = work
            .registers
            .iter()
            .map(|(func, own)| {
                let node = &nodes.nodes()[nodes.func_node(*func)];
                own.thread.points.points() as f64 * node.bytes_per_point as f64
            })
            .sum();
        features.working_set = held * threads;
        features.working_set_at_task = shared + private * threads;
        features.working_set_at_production = shared + (private + held) * threads;
        features.working_set_at_realization = match own.memory {
            Memory::Global => features.bytes_at_realization,
            _ => features.working_set_at_task,
        };
        features.working_set_at_thread = private + held;
    }

    fn root_extents(&self, node: NodeId) -> SmallVec<[i64; 4]> {
        use warploom_schedule::Source;
        let problem = self.items.problem;
        let region = match problem.dag().nodes()[node].source {
            Source::Input(input) => &problem.regions().inputs[input],
            Source::Func(func) => problem.stored(func),
        };
        region.0.iter().map(|range| range.extent).collect()
    }

    /// Points that the stage would compute at root.
    fn root_points(&self, work: &Work<'_>) -> f64 {
        let problem = self.items.problem;
        let RowSource::Stage(stage) = work.source else {
            return self.root_extents(work.node).iter().map(|extent| *extent as f64).product();
        };
        let stage = &problem.dag().stages()[stage];
        let item = Item::Stage(StageRef { func: stage.func, stage: stage.number });
        stage.loops.iter().map(|of| problem.loop_range(item, of.kind).extent as f64).product()
    }

    fn parallelism(&self, work: &Work<'_>, features: &mut StageFeatures) {
        let (walk, shape) = (work.walk, self.shape);
        let is_root = work.nest.is_some_and(|nest| nest.storage.is_global());
        let device = self.items.problem.device();
        let (warp, most) = (f64::from(device.threads.warp), f64::from(device.threads.per_block));
        let used = walk.total.min(shape.threads) as f64;
        let (mut active, mut lanes) = (0.0, 0.0);
        for case in &walk.cases {
            let turns = walk.turns(case, all);
            active += case.active * turns;
            lanes += case.warps * turns * warp;
        }
        features.inner_parallelism = if is_root { shape.blocks } else { 1.0 };
        features.outer_parallelism = if is_root { 1.0 } else { shape.blocks };
        features.num_blocks = shape.blocks;
        features.num_warps_per_block = (shape.threads as f64 / warp).ceil();
        features.num_threads_per_block = used;
        features.block_occupancy = used / most;
        features.num_active_warps_per_block = (used / warp).ceil();
        features.warp_lane_utilization = if lanes > 0.0 { active / lanes } else { 0.0 };
        features.idle_lane_wastage =
            features.num_active_warps_per_block * warp * (1.0 - features.warp_lane_utilization) / most;
    }

    /// The features of a Func inlined into `consumer`, where `share` of its work remains after
    /// points share values.
    pub fn inlined(&self, inlined: &InlinedWork, share: f64, consumer: &StageFeatures) -> StageFeatures {
        let (stage, work, times) = (inlined.stage, &inlined.work, inlined.times());
        let problem = self.items.problem;
        let mut features = StageFeatures {
            inlined_calls: times * consumer.points_computed_total,
            points_computed_per_thread: times * consumer.points_computed_per_thread,
            innermost_pure_loop_extent: consumer.innermost_pure_loop_extent,
            unrolled_loop_extent: consumer.unrolled_loop_extent,
            inner_parallelism: 1.0,
            outer_parallelism: consumer.num_blocks,
            num_blocks: consumer.num_blocks,
            num_warps_per_block: consumer.num_warps_per_block,
            num_threads_per_block: consumer.num_threads_per_block,
            block_occupancy: consumer.block_occupancy,
            num_active_warps_per_block: consumer.num_active_warps_per_block,
            warp_lane_utilization: consumer.warp_lane_utilization,
            code_nodes: work.nodes * consumer.unrolled_loop_extent,
            expr_branching: f64::from(problem.dag().stages()[stage].branching),
            global_load_efficiency: 1.0,
            global_store_efficiency: 1.0,
            shared_load_efficiency: 1.0,
            shared_store_efficiency: 1.0,
            ..StageFeatures::default()
        };
        let stored = problem.stored(problem.dag().stages()[stage].func);
        let points: f64 = stored.0.iter().map(|range| range.extent as f64).product();
        features.points_computed_minimum = points;
        features.bytes_at_root =
            points * problem.dag().nodes()[problem.dag().stages()[stage].node].bytes_per_point as f64;
        work.operations.write(consumer.points_computed_total * share, &mut features);
        features
    }
}

/// Whether a per-thread array is indexed by loop variables, so that it cannot be in registers.
fn is_indexed(moves: &Moves<'_>, place: &Place) -> bool {
    let walk = moves.walk;
    let own = walk.around.axes.iter().enumerate();
    let loops =
        own.filter(|(_, axis)| axis.count > 1 && !axis.kind.is_unrolled() && axis.kind != AxisKind::Lane);
    let mut loops = loops.filter(|(_, axis)| !axis.kind.is_outside());
    loops.any(|(axis, _)| {
        moves.is_unknown(axis)
            || (0..moves.group.rows.len()).any(|row| {
                let base = place.base.get(row).map_or(0, |base| {
                    base.steps.iter().filter(|(own, _)| *own as usize == axis).map(|(_, step)| step).sum()
                });
                moves.step(row, axis) != base * moves.group.rows[row].den
            })
    })
}

/// Operations that compute which point a thread is at.
fn index_operations(work: &Work<'_>) -> f64 {
    let is_flat = work.nest.is_some_and(|nest| nest.mapping.is_flat());
    let digits = work.walk.digits.len().saturating_sub(1) as f64;
    let guard = if is_flat || work.walk.guarded { GUARD_OPERATIONS } else { 0.0 };
    guard + if is_flat { digits * DIGIT_OPERATIONS } else { 0.0 }
}

impl Totals {
    /// Adds accesses, and what remains of them after equal ones are merged, loop-invariant ones
    /// hoisted and neighbouring ones combined into vector loads.
    fn add(&mut self, moves: &Moves<'_>, place: &Place, traffic: Traffic, keep: fn(AxisKind) -> bool) {
        let Merged { unique, share } = merged(moves, keep);
        let share = share / moves.vector_width(place) as f64;
        let merged = traffic.times(share);
        match place.memory {
            Memory::Global => {
                self.global += traffic;
                self.merged_global += merged;
            }
            Memory::Shared => {
                self.shared += traffic;
                self.merged_shared += merged;
            }
            Memory::Thread => return,
        }
        self.in_flight += unique;
    }

    /// Adds shuffles. They take the way of shared memory, where each is one wavefront per warp.
    pub(super) fn add_shuffles(&mut self, traffic: Traffic) {
        let traffic = Traffic { wavefronts: traffic.requests, ..traffic };
        self.shared += traffic;
        self.merged_shared += traffic;
    }
}

fn write_traffic(
    loads: &Totals,
    stores: &Totals,
    (sector, wavefront): (f64, f64),
    features: &mut StageFeatures,
) {
    let used = |bytes: f64, moved: f64| if moved > 0.0 { (bytes / moved).min(1.0) } else { 1.0 };
    features.global_load_requests_per_block = loads.global.requests;
    features.num_global_mem_loads_per_block = loads.global.sectors;
    features.global_store_requests_per_block = stores.global.requests;
    features.num_global_mem_stores_per_block = stores.global.sectors;
    features.shared_load_requests_per_block = loads.shared.requests;
    features.num_shared_mem_loads_per_block = loads.shared.wavefronts;
    features.shared_store_requests_per_block = stores.shared.requests;
    features.num_shared_mem_stores_per_block = stores.shared.wavefronts;
    features.global_load_efficiency = used(loads.global.bytes, loads.global.sectors * sector);
    features.global_store_efficiency = used(stores.global.bytes, stores.global.sectors * sector);
    features.shared_load_efficiency = used(loads.shared.bytes, loads.shared.wavefronts * wavefront);
    features.shared_store_efficiency = used(stores.shared.bytes, stores.shared.wavefronts * wavefront);
    features.merged_global_load_requests_per_block = loads.merged_global.requests;
    features.merged_global_loads_per_block = loads.merged_global.sectors;
    features.merged_shared_load_requests_per_block = loads.merged_shared.requests;
    features.merged_shared_loads_per_block = loads.merged_shared.wavefronts;
    features.local_requests_per_block = loads.local + stores.local;
}

fn write_reads(reads: &Reads, flat: &Flat, features: &mut StageFeatures) {
    let bytes = |memory: Memory, scope: Scope| reads.sum(memory, |read| read.bytes_in(scope));
    let lines = |memory: Memory, scope: Scope| reads.sum(memory, |read| read.lines_in(scope));
    features.unique_global_bytes_read_per_realization = bytes(Memory::Global, Scope::Run);
    features.unique_shared_bytes_read_per_realization = bytes(Memory::Shared, Scope::Run);
    features.unique_register_bytes_read_per_realization = bytes(Memory::Thread, Scope::Run);
    features.unique_global_lines_read_per_realization = lines(Memory::Global, Scope::Run);
    features.unique_shared_lines_read_per_realization = lines(Memory::Shared, Scope::Run);
    features.unique_register_lines_read_per_realization = lines(Memory::Thread, Scope::Run);
    features.unique_global_bytes_read_per_thread = bytes(Memory::Global, Scope::Thread);
    features.unique_shared_bytes_read_per_thread = bytes(Memory::Shared, Scope::Thread);
    features.unique_register_bytes_read_per_thread = bytes(Memory::Thread, Scope::Thread);
    features.unique_global_lines_read_per_thread = lines(Memory::Global, Scope::Thread);
    features.unique_shared_lines_read_per_thread = lines(Memory::Shared, Scope::Thread);
    features.unique_register_lines_read_per_thread = lines(Memory::Thread, Scope::Thread);
    let arrays = |memory: Memory| reads.sum(memory, |read| read.array_bytes());
    features.global_allocation_bytes_read_per_realization = arrays(Memory::Global);
    features.shared_allocation_bytes_read_per_realization = arrays(Memory::Shared);
    features.register_allocation_bytes_read_per_realization = arrays(Memory::Thread);
    features.unique_bytes_read_per_point =
        flat.loads.iter().map(|group| group.count * group.bytes as f64).sum();
    features.unique_lines_read_per_point = flat.loads.iter().map(|group| group.count).sum();
    features.unique_bytes_read_per_task = bytes(Memory::Global, Scope::Task);
    features.unique_lines_read_per_task = lines(Memory::Global, Scope::Task);
}

/// Fills in the features that the whole kernel determines: occupancy, waves, launches.
pub(crate) fn share(kernel: &mut KernelFeatures, device: &Device) {
    let occupancy = device.occupancy(kernel.threads, kernel.registers, kernel.shared_bytes);
    let shared = f64::from(kernel.shared_bytes);
    let most_blocks = f64::from(device.threads.blocks_per_sm);
    let by_shared = device.occupancy(1, 0, kernel.shared_bytes).blocks_per_sm;
    let at_once = f64::from(occupancy.blocks_per_sm * device.sms);
    let waves = if at_once > 0.0 { kernel.blocks / at_once } else { kernel.blocks };
    let turns = waves.ceil().max(1.0);
    for row in &mut kernel.rows {
        let features = &mut row.features;
        features.shared_mem_occupancy = shared / f64::from(device.shared.per_block_opt_in);
        features.shared_mem_block_limit_factor = f64::from(by_shared) / most_blocks;
        features.max_warp_occupancy = f64::from(occupancy.warps) / f64::from(device.threads.warps_per_sm);
        features.max_block_occupancy = f64::from(occupancy.blocks_per_sm) / most_blocks;
        features.registers_per_thread = f64::from(kernel.registers);
        features.num_waves = waves;
        features.tail_wastage = (turns - waves) / turns;
        features.num_launches = kernel.launches;
        features.l2_footprint = kernel.read_bytes + kernel.written_bytes;
        features.num_barriers_per_block = kernel.barriers;
    }
}
