//! The features of one stage of a kernel.

use smallvec::SmallVec;
use warploom_plan::body::{
    Access, AccessKind, AxisKind, Flat, InlinedWork, Memory, Moves, Operations, Part, Place, Runs, Walk,
};
use warploom_schedule::{Item, NodeId, Source, StageRef, Storage};
use warploom_target::Device;

use crate::features::block::Block;
use crate::features::merged::{Merged, merged, shared_by_points};
use crate::features::reads::{Reads, Scope};
use crate::features::traffic::{Counter, vector_width};
use crate::kernel::{KernelFeatures, Traffic};
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

impl Block<'_> {
    /// Computes the features of a stage.
    pub fn row(&mut self, part: &Part<'_>) -> Computed {
        let mut features = StageFeatures::default();
        let mut reads = Reads::default();
        let loads = self.loads(part, &mut reads);
        self.atomics(part, &mut features);
        features.copied_slices = if part.copies_ahead() { part.slices as f64 } else { 0.0 };
        let stores = self.stores(part);
        self.volume(part, &mut features);
        self.parallelism(part, &mut features);
        write_traffic(&loads, &stores, self.units_of_bytes(), &mut features);
        write_reads(&reads, &part.flat, &mut features);
        let written_out = features.unrolled_loop_extent;
        write_operations(&part.flat.work.operations, features.points_computed_total, &mut features);
        features.index_operations = features.points_computed_total * index_operations(part);
        features.code_nodes = part.flat.work.nodes * written_out;
        if let Some(stage) = part.stage() {
            features.expr_branching = f64::from(self.problem.dag().stages()[stage].branching);
        }
        let inlined = part.flat.inlined.iter().map(|inlined| inlined.work.nodes).sum::<f64>();
        let nodes = features.code_nodes + inlined * written_out;
        let bytes = self.problem.dag().nodes()[part.node].bytes_per_point as f64;
        let results = features.innermost_pure_loop_extent.min(written_out) * bytes / 4.0;
        let held = if part.accumulates { results } else { results.min(MAX_RESULTS_IN_FLIGHT) };
        let addresses = (2.0 * part.flat.loads.len() as f64).min(MAX_ADDRESSES);
        let (shares, reused) = shared_by_points(&part.flat, &part.walk);
        let registers = held
            + (loads.in_flight / 2.0).min(MAX_LOADS_HELD)
            + addresses
            + features.expr_branching
            + reused.min(MAX_REUSED);
        Computed { features, reads, registers, nodes, shares }
    }

    fn units_of_bytes(&self) -> (f64, f64) {
        let device = self.problem.device();
        let wavefront = device.shared.banks * device.shared.bank_bytes;
        (f64::from(device.memory.sector_bytes), f64::from(wavefront))
    }

    fn loads(&mut self, part: &Part<'_>, reads: &mut Reads) -> Totals {
        let mut totals = Totals::default();
        for access in part.accesses.iter().filter(|access| access.kind != AccessKind::Begin) {
            match access.kind {
                AccessKind::Load => self.load(part, access, &mut totals, reads),
                AccessKind::Update => {
                    reads.add(part.group(access), &Moves::new(&part.walk, part.group(access)), part.own());
                }
                AccessKind::Begin | AccessKind::Store | AccessKind::Atomic => {}
            }
        }
        self.exchanged(part, &mut totals);
        for access in part.accesses.iter().filter(|access| access.kind == AccessKind::Begin) {
            let moves = Moves::new(&part.walk, part.group(access));
            let traffic = self.count(part, access, &moves).0;
            totals.add(&moves, part.own(), traffic, access.runs);
            reads.add(moves.group, &moves, part.own());
        }
        totals
    }

    fn load(&mut self, part: &Part<'_>, access: &Access, totals: &mut Totals, reads: &mut Reads) {
        let (group, place) = (part.group(access), &part.arrays[access.array]);
        if access.shuffled {
            let (moves, units) = (&Moves::new(&part.walk, group), self.units);
            let each = Counter { moves, place, units }.traffic(|kind| kind == AxisKind::Over, &[]).0;
            totals.add_shuffles(each);
        }
        let moves = Moves::new(part.walk_of(access), group);
        let traffic = self.count(part, access, &moves).0;
        totals.add(&moves, place, traffic, access.runs);
        self.count_indexed(&moves, place, traffic, totals);
        reads.add(group, &moves, place);
    }

    fn stores(&mut self, part: &Part<'_>) -> Totals {
        let mut totals = Totals::default();
        for access in part.accesses.iter().filter(|access| access.kind == AccessKind::Store) {
            let moves = Moves::new(&part.walk, part.group(access));
            let traffic = self.count(part, access, &moves).0;
            totals.add(&moves, part.own(), traffic, access.runs);
            self.count_indexed(&moves, part.own(), traffic, &mut totals);
        }
        totals
    }

    /// The traffic of an access. Also returns whether every warp was analysed.
    pub(super) fn count(&self, part: &Part<'_>, access: &Access, moves: &Moves<'_>) -> (Traffic, bool) {
        let (place, units) = (&part.arrays[access.array], self.units);
        Counter { moves, place, units }.traffic(|kind| access.runs.repeats(kind), &access.vectors)
    }

    /// Counts accesses to registers that are indexed by loop variables, and so are in memory.
    fn count_indexed(&mut self, moves: &Moves<'_>, place: &Place, traffic: Traffic, totals: &mut Totals) {
        if place.memory == Memory::Thread && is_indexed(moves, place) {
            totals.local += traffic.requests;
            self.note_indexed(moves.group.node);
        }
    }

    /// Counts what lanes get from each other beside computing it.
    fn exchanged(&self, part: &Part<'_>, totals: &mut Totals) {
        let Some(lanes) = &part.lanes else { return };
        for group in &part.flat.stores {
            let (moves, place, units) = (&Moves::new(part.everywhere(), group), part.own(), self.units);
            let each = Counter { moves, place, units }.traffic(|_| true, &[]).0;
            totals.add_shuffles(each.times(lanes.taken));
        }
    }

    fn note_indexed(&mut self, node: NodeId) {
        if !self.indexed.contains(&node) {
            self.indexed.push(node);
        }
    }

    /// Fills in the counts of realisations and points, the loop extents and the bytes.
    fn volume(&self, part: &Part<'_>, features: &mut StageFeatures) {
        let (walk, shape, own) = (&part.walk, self.shape, part.own());
        let dag = self.problem.dag();
        let bytes = dag.nodes()[part.node].bytes_per_point as f64;
        let is_root = part.is_global();
        let per_block: f64 = walk.cases.iter().map(|case| case.active * walk.turns(case, |_| true)).sum();
        let per_run = per_block / part.over;
        let root = self.root_points(part);
        features.num_realizations = if is_root { 1.0 } else { shape.launches * shape.blocks };
        features.num_productions = shape.launches * shape.blocks * part.over;
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
        let dense = dag.nodes()[part.node].storage_order.first().copied().unwrap_or(0);
        let line = |extents: &[i64]| extents.get(dense).map_or(1.0, |extent| *extent as f64) * bytes;
        let region = self.root_extents(part.node);
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
        self.working_sets(part, features);
    }

    /// Iterations of a flat loop.
    fn flat_rounds(&self, walk: &Walk) -> f64 {
        ((walk.total + walk.threads - 1) / walk.threads) as f64
    }

    fn working_sets(&self, part: &Part<'_>, features: &mut StageFeatures) {
        let allocations = &self.kernel.allocations;
        let threads = self.shape.threads as f64;
        let bytes = |is: fn(Storage) -> bool| -> f64 {
            allocations.iter().filter(|own| is(own.storage)).map(|own| own.bytes as f64).sum()
        };
        let (shared, private) = (bytes(Storage::is_shared), bytes(Storage::is_private));
        let nodes = self.problem.dag();
        let held: f64 = part
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
        features.working_set_at_realization = match part.own().memory {
            Memory::Global => features.bytes_at_realization,
            _ => features.working_set_at_task,
        };
        features.working_set_at_thread = private + held;
    }

    fn root_extents(&self, node: NodeId) -> SmallVec<[i64; 4]> {
        let problem = self.problem;
        let region = match problem.dag().nodes()[node].source {
            Source::Input(input) => &problem.regions().inputs[input],
            Source::Func(func) => problem.stored(func),
        };
        region.0.iter().map(|range| range.extent).collect()
    }

    /// Points that the stage would compute at root.
    fn root_points(&self, part: &Part<'_>) -> f64 {
        let problem = self.problem;
        let Some(stage) = part.stage() else {
            return self.root_extents(part.node).iter().map(|extent| *extent as f64).product();
        };
        let stage = &problem.dag().stages()[stage];
        let item = Item::Stage(StageRef { func: stage.func, stage: stage.number });
        stage.loops.iter().map(|of| problem.loop_range(item, of.kind).extent as f64).product()
    }

    fn parallelism(&self, part: &Part<'_>, features: &mut StageFeatures) {
        let (walk, shape) = (&part.walk, self.shape);
        let is_root = part.is_global();
        let device = self.problem.device();
        let (warp, most) = (f64::from(device.threads.warp), f64::from(device.threads.per_block));
        let used = walk.total.min(shape.threads) as f64;
        let (mut active, mut lanes) = (0.0, 0.0);
        for case in &walk.cases {
            let turns = walk.turns(case, |_| true);
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
        let problem = self.problem;
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
        write_operations(&work.operations, consumer.points_computed_total * share, &mut features);
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
fn index_operations(part: &Part<'_>) -> f64 {
    let is_flat = part.nest.is_some_and(|nest| nest.mapping.is_flat());
    let digits = part.walk.digits.len().saturating_sub(1) as f64;
    let guard = if is_flat || part.walk.guarded { GUARD_OPERATIONS } else { 0.0 };
    guard + if is_flat { digits * DIGIT_OPERATIONS } else { 0.0 }
}

impl Totals {
    /// Adds accesses, and what remains of them after equal ones are merged, loop-invariant ones
    /// hoisted and neighbouring ones combined into vector loads.
    fn add(&mut self, moves: &Moves<'_>, place: &Place, traffic: Traffic, runs: Runs) {
        let Merged { unique, share } = merged(moves, |kind| runs.repeats(kind));
        let share = share / vector_width(moves, place) as f64;
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

/// Writes the numbers of operations, multiplied by `times`.
fn write_operations(operations: &Operations, times: f64, features: &mut StageFeatures) {
    let slots = [
        &mut features.f32_add,
        &mut features.f32_mul,
        &mut features.f32_div,
        &mut features.f32_sqrt,
        &mut features.f32_special,
        &mut features.f32_compare,
        &mut features.convert,
        &mut features.select,
        &mut features.int_add,
        &mut features.int_mul,
        &mut features.int_div,
        &mut features.int_compare,
    ];
    for (slot, count) in slots.into_iter().zip(operations.0) {
        *slot = count * times;
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
