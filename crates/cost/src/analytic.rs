//! A cost model without weights: the time of a kernel if every part of the device reaches the rates
//! of its data sheet.
//!
//! A kernel takes as long as the busiest part, and a little longer if several parts are busy:
//!
//! | part | time for |
//! | --- | --- |
//! | DRAM | the distinct bytes of a launch that are not in the L2 cache |
//! | L2 | the bytes that blocks read beyond their L1 cache, all bytes that they write, and atomics |
//! | SMs | arithmetic by pipe, issue slots, L1 and shared memory, on the SM with the most blocks; the nests of a block run one after another and overlap with those of other resident blocks |
//! | latency | one block alone, times the number of waves |
//!
//! Every launch adds a constant. All figures of the device come from [`Device`]. Figures that are not
//! in data sheets are in [`Constants`], except for the number of instructions per operation, which is
//! in the code that adds up the operations.

use warploom_schedule::Dag;
use warploom_target::Device;

use crate::kernel::{KernelFeatures, StageRow};
use crate::model::{CostModel, Term, Terms};
use crate::schema::StageFeatures;

/// The analytic model of one device.
#[derive(Clone, Debug)]
pub struct Analytic {
    device: Device,
    constants: Constants,
}

/// Figures that are not in data sheets: latencies in clocks, overhead instructions per operation, and
/// how well parts overlap.
///
/// They were fitted once to the times of a few hundred schedules on one device (an H200). They depend
/// on the architecture more than on the device.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Constants {
    /// Time from a dependent launch to its first block, in addition to the device's launch cost, in
    /// microseconds.
    pub ramp_us: f64,
    /// Latency of a load that misses the L1 cache, in clocks.
    pub global_latency: f64,
    /// Latency of a load from shared memory or the L1 cache, in clocks.
    pub shared_latency: f64,
    /// Latency from an operation to the next one that needs its result, in clocks.
    pub dependent_issue: f64,
    /// The cost of a barrier, in clocks.
    pub barrier: f64,
    /// Overhead instructions per access: its address, and its share of loops and guards.
    pub access_overhead: f64,
    /// Overhead instructions per point of a loop that is not unrolled.
    pub point_overhead: f64,
    /// Iterations of a loop that NVIDIA's compiler overlaps where possible.
    pub overlapped_iterations: f64,
    /// Loads of one thread that can be in flight at once.
    pub loads_in_flight: f64,
    /// The exponent with which the times of busy parts add up: 1 means no overlap, large values mean
    /// full overlap.
    pub overlap: f64,
    /// The fraction of the L2 cache that still holds useful data of earlier kernels.
    pub l2_share: f64,
}

impl Default for Constants {
    fn default() -> Constants {
        Constants {
            ramp_us: 0.5,
            global_latency: 200.0,
            shared_latency: 25.0,
            dependent_issue: 2.0,
            barrier: 15.0,
            access_overhead: 0.1,
            point_overhead: 0.5,
            overlapped_iterations: 8.0,
            loads_in_flight: 9.0,
            overlap: 2.1,
            l2_share: 0.05,
        }
    }
}

impl Analytic {
    /// The model of a device, with the default constants.
    pub fn new(device: &Device) -> Analytic {
        Analytic::with(device, Constants::default())
    }

    /// The model of a device with other constants.
    pub fn with(device: &Device, constants: Constants) -> Analytic {
        Analytic { device: device.clone(), constants }
    }

    fn microseconds(&self, clocks: f64) -> f64 {
        clocks / (self.device.clock_ghz * 1000.0)
    }

    /// The time of each part of the device for one launch of a kernel.
    pub fn parts(&self, kernel: &KernelFeatures) -> Parts {
        self.profile(kernel).parts
    }

    /// How long all launches of a kernel take, microseconds.
    pub(crate) fn cost(&self, kernel: &KernelFeatures) -> f64 {
        // A kernel that computes nothing is not launched.
        kernel.launches * self.parts(kernel).together(self.constants.overlap)
    }

    /// The modelled device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The fitted constants of the model.
    pub fn constants(&self) -> &Constants {
        &self.constants
    }

    /// The times of a kernel's parts, with the intermediate results.
    pub(crate) fn profile(&self, kernel: &KernelFeatures) -> Profile {
        let device = &self.device;
        let occupancy = device.occupancy(kernel.threads, kernel.registers, kernel.shared_bytes);
        let resident = f64::from(occupancy.blocks_per_sm.max(1));
        let sms = f64::from(device.sms);
        let whole = self.block(kernel, resident, |row| *row);
        let turns = (kernel.blocks / (sms * resident)).ceil();
        let (mut busy, mut latency) = (whole.busy, whole.alone * turns);
        if kernel.cut_blocks > 0.0 {
            let cut = self.block(kernel, resident, guarded);
            busy += kernel.cut_blocks * (cut.busy - busy);
            // The slowest blocks start last.
            latency += cut.alone - whole.alone;
        }
        let parts = Parts {
            launch: self.launch(),
            dram: self.dram(kernel),
            l2: self.l2(kernel, resident),
            sm: self.microseconds(busy * (kernel.blocks / sms).ceil()),
            latency: self.microseconds(latency),
        };
        Profile { parts, resident, whole }
    }

    /// The time that a row keeps an SM from other work, in clocks per block, with `resident` blocks on
    /// the SM.
    pub(crate) fn row_clocks(&self, kernel: &KernelFeatures, row: &StageFeatures, resident: f64) -> f64 {
        let runs = (kernel.blocks * kernel.launches).max(1.0);
        let busy = self.busy(row, runs, row.warp_lane_utilization.clamp(LEAST_UTILIZATION, 1.0));
        busy.longest() + self.alone(row, runs, busy.issue) / resident
    }

    /// The time of one block of a kernel, after `seen` is applied to each row.
    fn block(
        &self,
        kernel: &KernelFeatures,
        resident: f64,
        seen: impl Fn(&StageFeatures) -> StageFeatures,
    ) -> BlockTime {
        let runs = (kernel.blocks * kernel.launches).max(1.0);
        let (mut total, mut apart) = (Busy::default(), 0.0);
        let mut alone = kernel.barriers * self.constants.barrier;
        let mut ahead = Ahead::default();
        for rows in kernel.rows.chunk_by(|one, next| one.nest == next.nest) {
            let nest = self.nest(rows, runs, &seen);
            total = total.plus(&nest.busy);
            alone += nest.alone;
            match rows.iter().find(|row| row.features.copied_slices > 0.0) {
                None => apart += nest.busy.longest(),
                Some(row) => ahead.add(&row.features, self.global_wait(&row.features, runs), runs),
            }
        }
        if ahead.wait > 0.0 {
            // Copies go on while the other nests run.
            alone += ahead.left_of(alone);
            apart = apart.max(total.longest());
        }
        // The nests of one block run one after another; other resident blocks fill the gaps.
        let busy = total.longest() + (apart - total.longest()) / resident;
        BlockTime { total, apart, busy, alone }
    }

    fn launch(&self) -> f64 {
        self.device.launch.graph_node_us + self.constants.ramp_us
    }

    /// The DRAM time of the distinct bytes that are not in the L2 cache from earlier kernels.
    fn dram(&self, kernel: &KernelFeatures) -> f64 {
        let memory = &self.device.memory;
        let bytes = kernel.read_bytes + kernel.written_bytes;
        let kept = memory.l2_bytes as f64 * self.constants.l2_share;
        let missing = (bytes - kept).clamp(0.0, bytes) / bytes.max(1.0);
        // Even data that fits is written back eventually.
        bytes * missing.max(0.1) / (memory.dram_achieved_gbps * 1000.0)
    }

    /// The L2 time of the bytes that blocks read beyond their L1 cache, and of those that they write.
    fn l2(&self, kernel: &KernelFeatures, resident: f64) -> f64 {
        let memory = &self.device.memory;
        let shared = resident * f64::from(kernel.shared_bytes);
        let cache = ((f64::from(memory.l1_shared_bytes) - shared) / resident).max(0.0);
        let sector = f64::from(memory.sector_bytes);
        let bytes: f64 = kernel.rows.iter().map(|row| l2_bytes(&row.features, cache, sector)).sum();
        let slices = memory.l2_gbps / (sector * self.device.clock_ghz);
        let atomics = kernel.rows.iter().map(|row| l2_atomics(&row.features, slices));
        let bytes = bytes + atomics.sum::<f64>() * sector;
        bytes * kernel.blocks / (memory.l2_gbps * 1000.0)
    }

    /// The time of one nest of a block, in clocks of one SM.
    fn nest(&self, rows: &[StageRow], runs: f64, seen: impl Fn(&StageFeatures) -> StageFeatures) -> NestTime {
        let utilizations = rows.iter().map(|row| row.features.warp_lane_utilization);
        let utilization = utilizations.fold(0.0, f64::max).clamp(LEAST_UTILIZATION, 1.0);
        let mut busy = Busy::default();
        let mut alone = 0.0;
        for row in rows {
            let row = seen(&row.features);
            let part = self.busy(&row, runs, utilization);
            alone += self.alone(&row, runs, part.issue);
            busy = busy.plus(&part);
        }
        NestTime { busy, alone }
    }

    /// How long one block of a stage keeps the pipes of an SM busy, in clocks.
    fn busy(&self, row: &StageFeatures, runs: f64, utilization: f64) -> Busy {
        let rates = &self.device.rates;
        let slots = |operations: f64| operations / (runs * utilization);
        // An addition and a multiplication are usually fused into one instruction.
        let float =
            row.f32_add.max(row.f32_mul) + 3.0 * row.f32_div + 3.0 * row.f32_sqrt + 4.0 * row.f32_special;
        let special = row.f32_div + row.f32_sqrt + 1.5 * row.f32_special;
        // One instruction can add three integers.
        let integer = 0.5 * row.int_add + 4.0 * row.int_div + row.index_operations;
        let compare = row.f32_compare + row.int_compare + row.select;
        let operations = float + special + integer + row.int_mul + compare + row.convert;
        let requests = row.merged_global_load_requests_per_block
            + row.merged_shared_load_requests_per_block
            + row.global_store_requests_per_block
            + if row.copied_slices > 0.0 { 0.0 } else { row.shared_store_requests_per_block }
            + row.local_requests_per_block
            + row.atomic_requests_per_block;
        let warp = f64::from(self.device.threads.warp);
        let points = points_per_block(row, runs) / utilization / row.unrolled_loop_extent.max(1.0);
        let accesses = requests * warp * (1.0 + self.constants.access_overhead);
        let overhead = points * self.constants.point_overhead;
        let sectors_per_clock =
            self.device.memory.l1_bytes_per_clock / f64::from(self.device.memory.sector_bytes);
        let global = row.merged_global_loads_per_block + row.num_global_mem_stores_per_block;
        let global_requests = row.merged_global_load_requests_per_block + row.global_store_requests_per_block;
        let wavefronts = row.merged_shared_loads_per_block + row.num_shared_mem_stores_per_block;
        Busy {
            issue: (slots(operations) + accesses + overhead) / rates.fp32,
            float: slots(float) / rates.fp32,
            integer: (slots(integer) + accesses / 2.0 + overhead) / rates.int_add
                + slots(row.int_mul) / rates.int_mul
                + slots(compare) / rates.compare,
            special: slots(special) / rates.special + slots(row.convert) / rates.convert,
            // An atomic on shared memory is a load and a store.
            memory: (global / sectors_per_clock).max(global_requests)
                + wavefronts
                + row.local_requests_per_block * 4.0
                + row.shared_atomics_per_block * 2.0
                + row.global_atomics_per_block / sectors_per_clock,
        }
    }

    /// The time of one block of a stage if nothing else runs on the SM, in clocks.
    fn alone(&self, row: &StageFeatures, runs: f64, issue: f64) -> f64 {
        let constants = &self.constants;
        let global = if row.copied_slices > 0.0 { 0.0 } else { self.global_wait(row, runs) };
        let shared = row.merged_shared_load_requests_per_block;
        let wait = global + self.waits(row, runs, shared) * constants.shared_latency;
        let warps = row.num_active_warps_per_block.max(1.0);
        let partitions = f64::from(self.device.registers.partitions);
        // The warps of one scheduler take turns. A single warp waits for each result, unless its points
        // are independent.
        let turns = (warps / partitions).max(1.0);
        let independent = row.unrolled_loop_extent.clamp(1.0, constants.overlapped_iterations);
        let stall = (constants.dependent_issue / (turns * independent)).max(1.0);
        let dependent = issue * (partitions / warps).max(1.0) * stall;
        wait + dependent
    }

    /// How long a thread waits for what it loads from global memory, in clocks per block.
    fn global_wait(&self, row: &StageFeatures, runs: f64) -> f64 {
        self.waits(row, runs, row.merged_global_load_requests_per_block) * self.constants.global_latency
    }

    /// How often a thread waits for loads: once per batch that can be in flight together, and at least once per group of
    /// iterations that the compiler can overlap.
    fn waits(&self, row: &StageFeatures, runs: f64, requests: f64) -> f64 {
        let constants = &self.constants;
        let productions = row.num_productions / runs;
        let written_out = row.unrolled_loop_extent.max(1.0);
        let iterations = productions * (row.points_computed_per_thread / written_out).max(1.0);
        let loads = requests / row.num_active_warps_per_block.max(1.0);
        let least = (iterations / constants.overlapped_iterations).max(productions);
        if requests > 0.0 { (loads / constants.loads_in_flight).max(least) } else { 0.0 }
    }
}

/// The features of a stage in a block that extends beyond the edge: every point has a guard, so no
/// loads are merged and nothing overlaps.
fn guarded(row: &StageFeatures) -> StageFeatures {
    StageFeatures {
        merged_global_load_requests_per_block: row.global_load_requests_per_block,
        merged_global_loads_per_block: row.num_global_mem_loads_per_block,
        merged_shared_load_requests_per_block: row.shared_load_requests_per_block,
        merged_shared_loads_per_block: row.num_shared_mem_loads_per_block,
        unrolled_loop_extent: 1.0,
        ..*row
    }
}

/// The utilization of a warp with one active lane.
const LEAST_UTILIZATION: f64 = 1.0 / 32.0;

/// How often a sector is reused if indices come from data.
const SCATTERED_REUSE: f64 = 4.0;

/// Points of a stage that one block computes.
fn points_per_block(row: &StageFeatures, runs: f64) -> f64 {
    row.points_computed_total / runs
}

/// Bytes that one block of a stage moves to and from the L2 cache, with `cache` bytes of L1 cache per
/// block.
fn l2_bytes(row: &StageFeatures, cache: f64, sector: f64) -> f64 {
    let issued = row.merged_global_loads_per_block * sector;
    let boxes = row.unique_bytes_read_per_task + row.unique_lines_read_per_task * sector;
    // A box much larger than the issued loads means that indices come from data; neighbouring threads
    // then have similar indices.
    let distinct = if boxes > 2.0 * issued { issued / SCATTERED_REUSE } else { boxes.min(issued) };
    // Concurrent threads reuse what other threads just read, not what earlier iterations read.
    let iterations = (row.points_computed_per_thread / row.unrolled_loop_extent.max(1.0)).max(1.0);
    let hit = (cache * iterations / distinct.max(1.0)).min(1.0);
    let stored = row.num_global_mem_stores_per_block * sector;
    distinct + (issued - distinct) * (1.0 - hit) + stored
}

/// Sectors that a slice of the L2 cache could move in the time that the atomics of one block take there.
/// A slice makes one update per clock, and different elements are spread over `slices`.
fn l2_atomics(row: &StageFeatures, slices: f64) -> f64 {
    row.global_atomics_per_block * (slices / row.global_atomic_targets.max(1.0)).max(1.0)
}

/// The time of each part of the device for one launch of a kernel, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Parts {
    /// The launch itself, before any block runs.
    pub launch: f64,
    /// DRAM traffic.
    pub dram: f64,
    /// L2 traffic.
    pub l2: f64,
    /// The busiest pipe of the SMs.
    pub sm: f64,
    /// Waiting for results that too few warps hide.
    pub latency: f64,
}

impl Parts {
    /// The time of the launch, with parts that overlap according to [`Constants::overlap`].
    pub fn together(&self, overlap: f64) -> f64 {
        let parts = [self.dram, self.l2, self.sm, self.latency];
        let largest = parts.into_iter().fold(0.0, f64::max).max(1e-9);
        let sum: f64 = parts.iter().map(|part| (part / largest).powf(overlap)).sum();
        self.launch + largest * sum.powf(overlap.recip())
    }
}

/// The times of a kernel's parts, with the intermediate results.
pub(crate) struct Profile {
    pub parts: Parts,
    /// Resident blocks per SM.
    pub resident: f64,
    /// The time of a block that lies within the edges.
    pub whole: BlockTime,
}

/// The time of one block of a kernel, in clocks of an SM.
pub(crate) struct BlockTime {
    /// The busy times of its nests, added up per pipe.
    pub total: Busy,
    /// The sum of the busiest pipe of each nest, without overlap between nests.
    pub apart: f64,
    /// How long the block keeps an SM busy.
    pub busy: f64,
    /// How long the block takes if nothing else runs on the SM.
    pub alone: f64,
}

/// How long the copies of a block that go on behind other work take, in clocks.
#[derive(Default)]
struct Ahead {
    wait: f64,
    /// The part of the first slice, which no work precedes.
    first: f64,
    /// How many slices ahead copies are.
    distance: f64,
}

impl Ahead {
    fn add(&mut self, row: &StageFeatures, wait: f64, runs: f64) {
        self.wait += wait;
        self.first += wait / (row.num_productions / runs).max(1.0);
        self.distance = row.copied_slices - 1.0;
    }

    /// What is left to wait for, if the rest of the block takes this long.
    fn left_of(&self, alone: f64) -> f64 {
        self.first + (self.wait - self.first - self.distance * alone).max(0.0)
    }
}

/// The time of one nest of a block, in clocks of an SM.
struct NestTime {
    busy: Busy,
    alone: f64,
}

/// How long the pipes of an SM are busy, in clocks.
#[derive(Clone, Copy, Default)]
pub(crate) struct Busy {
    pub issue: f64,
    pub float: f64,
    pub integer: f64,
    pub special: f64,
    pub memory: f64,
}

impl Busy {
    fn plus(&self, other: &Busy) -> Busy {
        Busy {
            issue: self.issue + other.issue,
            float: self.float + other.float,
            integer: self.integer + other.integer,
            special: self.special + other.special,
            memory: self.memory + other.memory,
        }
    }

    pub fn longest(&self) -> f64 {
        [self.issue, self.float, self.integer, self.special, self.memory].into_iter().fold(0.0, f64::max)
    }
}

impl CostModel for Analytic {
    fn costs(&self, _: &Dag, kernels: &[&KernelFeatures], costs: &mut Vec<f64>) {
        costs.extend(kernels.iter().map(|kernel| self.cost(kernel)));
    }

    fn explain(&self, _: &Dag, kernel: &KernelFeatures) -> Terms {
        let parts = self.parts(kernel);
        let launches = kernel.launches;
        let term = |name, microseconds: f64| Term { name, microseconds: microseconds * launches };
        let runs = (kernel.blocks * launches).max(1.0);
        let turns = (kernel.blocks / f64::from(self.device.sms)).ceil();
        let row = |row: &StageFeatures| {
            let busy = self.busy(row, runs, row.warp_lane_utilization.clamp(LEAST_UTILIZATION, 1.0));
            let clocks = |name, clocks: f64| term(name, self.microseconds(clocks * turns));
            vec![
                clocks("issue", busy.issue),
                clocks("float", busy.float),
                clocks("integer", busy.integer),
                clocks("special", busy.special),
                clocks("L1 and shared", busy.memory),
            ]
        };
        Terms {
            total: self.cost(kernel),
            kernel: vec![
                term("launch", parts.launch),
                term("DRAM", parts.dram),
                term("L2", parts.l2),
                term("SMs", parts.sm),
                term("latency", parts.latency),
            ],
            rows: kernel.rows.iter().map(|of| row(&of.features)).collect(),
        }
    }

    fn name(&self) -> &str {
        "analytic"
    }
}
