//! The features of one kernel: the parts of its body in order, and the state that they share.

use warploom_plan::body::{Body, Memory, Part, What};
use warploom_plan::{KernelId, KernelPlan, Plan, Problem};
use warploom_schedule::{Item, NodeId, Size};

use crate::features::reads::{Reads, Scope};
use crate::features::row::{Computed, KernelShape};
use crate::features::transactions::Units;
use crate::kernel::{KernelFeatures, NewDecisions, RowSource, StageRow};

/// Registers of a thread that computes nothing: addresses of arrays, block and thread indices.
const BASE_REGISTERS: f64 = 12.0;

/// The largest per-thread array that can be in registers; larger ones are in memory.
const MAX_ARRAY_REGISTERS: f64 = 128.0;

/// An upper limit on the rows of most kernels.
const USUAL_ROWS: usize = 8;

/// The features of a kernel whose blocks do what a body says.
pub(crate) fn of_body(problem: &Problem, plan: &Plan, id: KernelId, body: &Body<'_>) -> KernelFeatures {
    let kernel = &plan.kernels[id];
    let features = Block::new(problem, plan, id, body).features(body);
    KernelFeatures { cut_blocks: cut_blocks(problem, plan, kernel), ..features }
}

/// The fraction of a kernel's blocks that the edge of its stage cuts along a dimension whose points
/// are unrolled.
fn cut_blocks(problem: &Problem, plan: &Plan, kernel: &KernelPlan) -> f64 {
    // The kernel's own stage is its last nest.
    let own = plan.nests.slice(kernel.nests.clone()).last();
    let serial = own.and_then(|own| own.nest.mapping.tiles()).map_or(&[][..], |tiles| &tiles.serial);
    let whole = kernel.kernel.block.iter().zip(&kernel.blocks).map(|(tile, blocks)| {
        let extent = problem.loop_range(Item::Stage(kernel.kernel.stage), tile.dim).extent;
        let several = serial.iter().any(|own| own.dim == tile.dim && own.size != Size::Of(1));
        if several { (extent / tile.size.of(extent)) as f64 / *blocks as f64 } else { 1.0 }
    });
    1.0 - whole.product::<f64>()
}

/// The state of one kernel while its parts are counted.
pub(crate) struct Block<'k> {
    pub problem: &'k Problem,
    plan: &'k Plan,
    id: KernelId,
    pub kernel: &'k KernelPlan,
    pub units: Units,
    pub shape: KernelShape,
    rows: Vec<StageRow>,
    /// The bytes that a launch reads of each node in global memory, and writes.
    read: Vec<(NodeId, f64)>,
    written: f64,
    nodes: f64,
    /// The most registers that a nest needs beyond those that live throughout the block.
    transient: f64,
    /// Nodes whose per-thread arrays are indexed by loop variables.
    pub indexed: Vec<NodeId>,
}

impl<'k> Block<'k> {
    pub fn new(problem: &'k Problem, plan: &'k Plan, id: KernelId, body: &Body<'_>) -> Block<'k> {
        let kernel = &plan.kernels[id];
        let blocks = kernel.blocks.iter().map(|blocks| *blocks as f64).product();
        let shape = KernelShape { blocks, launches: body.launches as f64, threads: kernel.threads as i64 };
        Block {
            problem,
            plan,
            id,
            kernel,
            units: Units::of(problem.device()),
            shape,
            rows: Vec::with_capacity(USUAL_ROWS),
            read: Vec::new(),
            written: 0.0,
            nodes: 0.0,
            transient: 0.0,
            indexed: Vec::new(),
        }
    }

    fn features(mut self, body: &Body<'_>) -> KernelFeatures {
        body.parts.iter().for_each(|part| self.compute(part));
        let device = self.problem.device();
        let (mut held, mut local) = (0.0, 0.0);
        for allocation in self.kernel.allocations.iter().filter(|own| own.storage.is_private()) {
            let registers = allocation.bytes as f64 / 4.0;
            if self.indexed.contains(&self.node_of(allocation.item)) || registers > MAX_ARRAY_REGISTERS {
                local += allocation.bytes as f64;
            } else {
                held += registers;
            }
        }
        let registers = BASE_REGISTERS + held + self.transient;
        let limit = self.register_limit();
        let mut numbers = self.kernel.kernel.numbers;
        if registers as u32 > limit {
            local += (registers - f64::from(limit)) * 4.0;
        } else {
            // So many blocks fit anyway, by this estimate: nothing that a model sees depends on the number.
            numbers.blocks = None;
        }
        let nests = self.plan.nests_of(self.id).iter().map(|nest| &*nest.nest);
        let mut features = KernelFeatures {
            launches: self.shape.launches,
            blocks: self.shape.blocks,
            cut_blocks: 0.0,
            threads: self.shape.threads as u32,
            shared_bytes: u32::try_from(self.kernel.shared_bytes()).unwrap_or(u32::MAX),
            registers: (registers as u32).min(limit),
            local_bytes: local,
            barriers: self.plan.barriers(self.id).passed,
            read_bytes: self.read.iter().map(|(_, bytes)| bytes).sum(),
            written_bytes: self.written,
            nodes: self.nodes,
            decisions: NewDecisions::of_kernel(numbers, nests),
            rows: self.rows,
        };
        crate::features::row::share(&mut features, device);
        features
    }

    /// The most registers per thread: the device's limit, or less if the schedule requires several
    /// blocks per SM.
    fn register_limit(&self) -> u32 {
        let device = self.problem.device();
        let most = device.registers.per_thread;
        let Some(blocks) = self.kernel.resident(device) else { return most };
        let fits = |registers: &u32| {
            device.occupancy(self.shape.threads as u32, *registers, 0).blocks_per_sm >= blocks.get()
        };
        (1..=most).rev().find(fits).unwrap_or(most)
    }

    /// Adds the rows of a stage and of the Funcs inlined into it.
    fn compute(&mut self, part: &Part<'_>) {
        let Computed { features, reads, registers, nodes, shares } = self.row(part);
        let held = part.registers.iter().map(|(func, own)| {
            let bytes = self.problem.pipeline().funcs()[*func].bytes_per_point() as f64;
            own.live_points() as f64 * bytes / 4.0
        });
        let held = held.fold(0.0, |all, own| all + own);
        self.transient = self.transient.max(registers + held);
        self.nodes += nodes;
        self.add_reads(&reads);
        if part.is_global() {
            let bytes = features.points_computed_minimum / self.shape.launches * self.point_bytes(part.node);
            self.written += bytes.min(features.bytes_at_root.max(0.0));
        }
        let source = match part.what {
            What::Stage(stage) => RowSource::Stage(stage),
            What::Copy(_) => RowSource::Staged(part.node),
        };
        let (first, nest) = (self.rows.len(), part.number);
        self.rows.push(StageRow { source, nest, features });
        for (inlined, share) in part.flat.inlined.iter().zip(shares) {
            let features = self.inlined(inlined, share, &self.rows[first].features);
            self.rows.push(StageRow { source: RowSource::Inlined(inlined.stage), nest, features });
        }
    }

    fn point_bytes(&self, node: NodeId) -> f64 {
        self.problem.dag().nodes()[node].bytes_per_point as f64
    }

    fn add_reads(&mut self, reads: &Reads) {
        for read in reads.0.iter().filter(|read| read.memory == Memory::Global) {
            let bytes = read.bytes_in(Scope::Launch);
            match self.read.iter_mut().find(|(node, _)| *node == read.node) {
                Some((_, known)) => *known = known.max(bytes),
                None => self.read.push((read.node, bytes)),
            }
        }
    }

    pub fn node_of(&self, item: Item) -> NodeId {
        match item {
            Item::Stage(stage) => self.problem.dag().func_node(stage.func),
            Item::Input(input) => self.problem.dag().input_node(input),
        }
    }
}
