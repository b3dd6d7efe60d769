//! Computes what the nests of a kernel read, from the last nest to the first.

use std::collections::BTreeMap;

use warploom_lang::{FuncId, Id, Range, Region, ids_in};
use warploom_schedule::{
    FuncSet, Item, LoopKind, Nest, NodeSet, RootItem, Schedule, Size, Source, StageRef, ThreadTiles,
};

use crate::axes::{NestLoops, is_pure, thread_loops};
use crate::footprint::{
    Allocation, Axis, FLAT_THREADS, Footprint, MAX_REGISTER_BYTES, NestFootprint, RegisterFootprint, Spread,
    StagedFootprint, ThreadLoop,
};
use crate::ids::{KernelId, LoopId, NestId};
use crate::lanes::lane_loop;
use crate::plan::{NestPlan, Plan};
use crate::problem::Problem;
use crate::problem::flow::VariableReaches;
use crate::problem::program::{Columns, Evaluation};
use crate::reach::limit::Limits;
use crate::reach::symbol::Symbol;
use crate::reach::{Reach, Symbols, blocks};
use crate::rows::row_loop;

/// Propagates required regions from the last nest to the first.
pub(crate) struct Tracer<'a> {
    pub(super) problem: &'a Problem,
    pub(super) plan: &'a Plan,
    pub(super) symbols: Symbols,
}

/// The regions of Funcs and inputs that are read.
#[derive(Default)]
pub(super) struct Required {
    reads: Vec<(Source, Columns)>,
    /// The reads of idle nests, which never run: they matter only for what nothing else reads.
    idle: Vec<(Source, Columns)>,
}

impl Required {
    pub fn get(&self, read: Source) -> Option<&Columns> {
        let mut known = self.reads.iter().chain(&self.idle);
        known.find(|(known, _)| *known == read).map(|(_, columns)| columns)
    }

    fn columns(&mut self, read: Source) -> &mut Columns {
        let known = self.reads.iter().position(|(known, _)| *known == read);
        let position = known.unwrap_or_else(|| {
            self.reads.push((read, Columns::new()));
            self.reads.len() - 1
        });
        &mut self.reads[position].1
    }

    /// Removes and returns the last Func.
    fn take_last(&mut self) -> Option<(Source, Columns)> {
        let last = self.reads.iter().enumerate().max_by_key(|(_, (read, _))| *read)?.0;
        Some(self.reads.swap_remove(last))
    }
}

/// Collects the reads of a nest. Reads of inlined Funcs and of Funcs in registers are followed further.
struct Reader<'t> {
    nest: &'t Nest,
    stage: StageRef,
    /// The nodes that count. Reads that lead to none of them are not followed.
    wanted: &'t NodeSet,
    outside: &'t mut Required,
    pending: Required,
    /// The nodes that count and are read outside the nest.
    found: NodeSet,
}

/// The reads of a nest.
#[derive(Default)]
struct Reads {
    /// The boxes of the nest's Funcs in registers.
    registers: BTreeMap<FuncId, StagedFootprint>,
    /// How lanes share some of them.
    spreads: BTreeMap<FuncId, Spread>,
    /// The nodes that count and are read outside the nest.
    outside: NodeSet,
}

impl Reader<'_> {
    /// Where to collect the reads of a Func or input, if they count.
    fn columns(&mut self, tracer: &Tracer<'_>, read: Source) -> Option<&mut Columns> {
        let inside = |func: FuncId| tracer.plan.inlined.contains(func) || self.nest.registers.contains(&func);
        match read {
            Source::Func(func) if func != self.stage.func && inside(func) => {
                let counts = tracer.problem.func(func).leads_to(self.wanted);
                counts.then(|| self.pending.columns(read))
            }
            read => {
                let node = tracer.problem.node(read);
                self.wanted.contains(node).then(|| {
                    self.found.insert(node);
                    self.outside.columns(read)
                })
            }
        }
    }
}

impl Problem {
    /// Computes the plan of a schedule, which does not have to be legal.
    pub fn plan(&self, schedule: &Schedule) -> Plan {
        self.plan_of(&schedule.inlined_set(), &schedule.root)
    }

    /// Computes the plan of some kernels and loops around kernels, in execution order. They do not have
    /// to be legal.
    pub fn plan_of<'s>(&self, inlined: &FuncSet, root: impl IntoIterator<Item = &'s RootItem>) -> Plan {
        let mut plan = Plan::outlined(inlined.clone(), root);
        let Sizes { kernels, nests, loops, lowest, limits } = Tracer::new(self, &plan).sizes();
        for (id, (blocks, threads, allocations)) in plan.kernels.keys().zip(kernels) {
            let kernel = &mut plan.kernels[id];
            (kernel.blocks, kernel.threads, kernel.allocations) = (blocks, threads, allocations);
        }
        for (id, footprint) in plan.nests.keys().zip(nests) {
            plan.nests[id].footprint = footprint;
        }
        for (id, (count, slices)) in plan.loops.keys().zip(loops) {
            (plan.loops[id].count, plan.loops[id].slices) = (count, slices);
        }
        plan.lowest = lowest;
        plan.limits = self.sizes().map(|_| Box::new(limits));
        plan
    }

    /// The inlined Funcs that are actually computed by a kernel, or by the kernels inside some loops,
    /// in order. The plan of the kernel depends only on these and on the kernel itself.
    pub fn inlined_in(&self, inlined: &FuncSet, item: &RootItem) -> Vec<FuncId> {
        let plan = Plan::outlined(inlined.clone(), [item]);
        let own = plan.nests.values().filter_map(NestPlan::stage);
        let registers = plan.nests.values().flat_map(|nest| &nest.nest.registers);
        let stages = own.chain(registers.flat_map(|func| self.stages_of(*func)));
        self.reads_through(stages, |func| inlined.contains(func)).inside.to_vec()
    }
}

/// The results of the traversal.
struct Sizes {
    /// Blocks, threads and allocations of each kernel.
    kernels: Vec<(Vec<i64>, u64, Vec<Allocation>)>,
    nests: Vec<Option<NestFootprint>>,
    /// The iterations of each loop, and the slices that it has at once.
    loops: Vec<(i64, i64)>,
    lowest: Vec<Vec<Reach>>,
    limits: Limits,
}

impl<'a> Tracer<'a> {
    /// The sizes of the plan do not have to be known yet.
    pub fn new(problem: &'a Problem, plan: &'a Plan) -> Tracer<'a> {
        let mut symbols = Symbols::default();
        if let Some(sizes) = problem.sizes() {
            symbols.limits = Limits::new(sizes.request.formulas.clone());
        }
        for (id, info) in plan.loops.iter() {
            let extent = problem.domain(info.tile.stage, info.tile.var).extent;
            symbols.add(Symbol::Loop(id), blocks(extent, info.tile.size.of(extent)));
        }
        Tracer { problem, plan, symbols }
    }

    fn sizes(mut self) -> Sizes {
        let mut nests = vec![None; self.plan.nests.len()];
        let kernels = self.plan.kernels.keys().map(|id| self.kernel(id, &mut nests)).collect();
        let loops = self.plan.loops.keys().map(|id| (self.count(id), self.slices(id))).collect();
        Sizes { kernels, nests, loops, lowest: self.symbols.lowest, limits: self.symbols.limits }
    }

    fn kernel(
        &mut self,
        id: KernelId,
        nests: &mut [Option<NestFootprint>],
    ) -> (Vec<i64>, u64, Vec<Allocation>) {
        let info = &self.plan.kernels[id];
        let mut counts = Vec::new();
        for tile in &info.kernel.block {
            let extent = self.problem.loop_range(Item::Stage(info.kernel.stage), tile.dim).extent;
            let count = blocks(extent, tile.size.of(extent));
            self.symbols.add(Symbol::Block(tile.dim), count);
            counts.push(count);
        }
        let mut required = Required::default();
        for nest in ids_in(&info.nests).rev() {
            nests[nest.index()] = self.nest(nest, &mut required);
        }
        let nests = &mut nests[info.nests.start.index()..info.nests.end.index()];
        let threads = nests.iter().flatten().filter_map(NestFootprint::thread_count).max();
        let threads = threads.unwrap_or(FLAT_THREADS);
        self.compute_in_all_lanes(id, nests);
        let in_warps = self.exchange_in_warps(id, nests, threads);
        (counts, threads, self.allocations(id, nests, &required, &in_warps, threads))
    }

    /// Processes a nest whose readers in the kernel are all done, and adds its own reads.
    fn nest(&mut self, id: NestId, required: &mut Required) -> Option<NestFootprint> {
        let plan = self.plan;
        let info = &plan.nests[id];
        let read = read_of(info.nest.item);
        let dims = if plan.is_own(info) {
            self.own_box(info)
        } else {
            self.union(required.get(read)?, self.problem.root(read), &info.loops)
        };
        let idle = info.stage().is_some_and(|stage| self.problem.is_idle(stage));
        let rvars = info.stage().map_or_else(Vec::new, |stage| self.domain(info, stage));
        let scope = VariableReaches { vars: dims, rvars };
        let threads = info.nest.mapping.tiles().map(|tiles| thread_loops(tiles, &scope.vars, &scope.rvars));
        let lanes = threads.as_ref().and_then(|threads| lane_loop(&info.nest, threads));
        let slides = threads.as_ref().and_then(|threads| row_loop(&info.nest, threads, &scope.rvars));
        let (mut registers, mut reads) = (BTreeMap::new(), NodeSet::default());
        if let Item::Stage(stage) = info.nest.item {
            let mut unused = Required::default();
            let outside = if idle { &mut unused } else { &mut *required };
            let at_block = self.reads(info, stage, &scope, &self.wanted(id), outside, None);
            required.idle.append(&mut unused.reads);
            reads = at_block.outside;
            if !info.nest.registers.is_empty() {
                let wanted = self.nodes(&info.nest.registers);
                let at = |tracer: &mut Self, row: Option<LoopKind>| {
                    let scope = tracer.thread_scope(info, &scope, row);
                    tracer.reads(info, stage, &scope, &wanted, &mut Required::default(), lanes)
                };
                // The rows first: the tiles of threads are what the symbols of threads count in the end.
                let at_row = slides.map(|row| at(self, Some(row)).registers);
                let at_thread = at(self, None);
                registers = register_footprints(&info.nest.registers, at_thread, at_block.registers);
                if let (Some(row), Some(at_row)) = (slides, at_row) {
                    self.rows(info, row, &mut registers, &at_row);
                }
            }
        }
        let VariableReaches { vars: dims, rvars: domain } = scope;
        let loops = self.problem.loops(info.nest.item);
        let loops = NestLoops {
            nest: &info.nest,
            loops: &loops,
            threads: threads.as_deref(),
            dims: &dims,
            domain: &domain,
        };
        let axes = loops.axes();
        // The registers of an accumulator are for adjacent points.
        let adjacent = !axes.iter().any(Axis::is_interleaved);
        let shared = threads.as_deref().unwrap_or_default();
        let accumulates = adjacent && self.accumulates(&info.nest, &domain, shared);
        let carries = adjacent && self.carries(&info.nest, &domain, shared);
        let exchanges = !idle && (info.nest.storage.is_shared() || shares_reductions(shared));
        if info.nest.numbers.atomic {
            reads.remove(self.problem.node(read));
        }
        Some(NestFootprint {
            points: Footprint { dims },
            domain,
            threads,
            axes,
            registers,
            accumulates,
            carries,
            reads: if idle { NodeSet::default() } else { reads },
            exchanged: exchanges.then(|| self.problem.node(read)),
            shuffled: NodeSet::default(),
            lanes,
            all_lanes: None,
            slides,
        })
    }

    /// Whether a nest updates its own points repeatedly, and a thread's share of them fits in
    /// registers.
    fn accumulates(&self, nest: &Nest, domain: &[Reach], loops: &[ThreadLoop]) -> bool {
        let Item::Stage(stage) = nest.item else { return false };
        let func = &self.problem.pipeline().funcs()[stage.func];
        let pure = self.problem.stage(stage).loops.iter().filter(|kind| is_pure(**kind)).count();
        let own_points = stage.stage > 0 && pure == func.dims.len();
        let again = domain.iter().any(|reach| reach.extent() > 1);
        let serial = loops.iter().filter(|dim| is_pure(dim.dim)).map(|dim| dim.serial);
        let points = serial.fold(1, i64::saturating_mul);
        let unrolled = nest.mapping.unrolls();
        let bytes = (points as u64).saturating_mul(func.bytes_per_point() as u64);
        let fits = (points == 1 || unrolled) && bytes <= MAX_REGISTER_BYTES;
        let alone = !nest.numbers.atomic && !shares_reductions(loops);
        own_points && again && fits && alone && !nest.storage.is_private()
    }

    /// Whether each thread of a nest scans one line at a time.
    fn carries(&self, nest: &Nest, domain: &[Reach], loops: &[ThreadLoop]) -> bool {
        let Item::Stage(stage) = nest.item else { return false };
        let one_line = loops.iter().all(|dim| dim.serial == 1 || !is_pure(dim.dim));
        let goes_on = domain.iter().any(|reach| reach.extent() > 1);
        let alone = !nest.numbers.atomic && !shares_reductions(loops) && !nest.storage.is_private();
        !self.problem.previous_reads(stage).is_empty() && one_line && goes_on && alone
    }

    /// The part of a kernel's own stage that one block computes.
    fn own_box(&self, info: &NestPlan) -> Vec<Reach> {
        let kernel = &self.plan.kernels[info.kernel].kernel;
        let reach = |d: usize| {
            let dim = LoopKind::Pure(d);
            let range = self.problem.loop_range(Item::Stage(kernel.stage), dim);
            let tile = kernel.block.iter().find(|tile| tile.dim == dim);
            let size = tile.map_or(Size::All, |tile| tile.size).of(range.extent);
            Reach::tile(Symbol::Block(dim), range.min, range.extent.max(1), size)
        };
        let dimensions = self.problem.pipeline().funcs()[kernel.stage.func].dims.len();
        (0..dimensions).map(reach).collect()
    }

    /// The rest of the stage's reduction variables inside the loops around a nest.
    fn domain(&self, info: &NestPlan, stage: StageRef) -> Vec<Reach> {
        let kernel = &self.plan.kernels[info.kernel].kernel;
        let own = self.plan.is_own(info);
        let ranges = &self.problem.regions().funcs[stage.func].stages[stage.stage].domain;
        let reach = |(var, range): (usize, &Range)| {
            let taken = info.loops.iter().find(|id| {
                let tile = self.plan.loops[**id].tile;
                (tile.stage, tile.var) == (stage, var)
            });
            let block = kernel.block.iter().find(|tile| own && tile.dim == LoopKind::Reduction(var));
            let (symbol, size) = match (taken, block) {
                (Some(&id), _) => (Symbol::Loop(id), self.plan.loops[id].tile.size),
                (None, Some(tile)) => (Symbol::Block(tile.dim), tile.size),
                (None, None) => return Reach::fixed(range.min, range.last()),
            };
            Reach::tile(symbol, range.min, range.extent.max(1), size.of(range.extent))
        };
        ranges.iter().enumerate().map(reach).collect()
    }

    /// The reaches of a nest's variables in one thread, or in one `row` of its points along a dimension.
    fn thread_scope(
        &mut self,
        info: &NestPlan,
        scope: &VariableReaches,
        row: Option<LoopKind>,
    ) -> VariableReaches {
        let one_point = ThreadTiles::default();
        let tiles = info.nest.mapping.tiles().unwrap_or(&one_point);
        let loops = thread_loops(tiles, &scope.vars, &scope.rvars);
        let symbols = &mut self.symbols;
        let mut cut = |kind: LoopKind, reach: &Reach| {
            let own = loops.iter().find(|dim| dim.dim == kind && row != Some(kind));
            let serial = own.map_or(1, |dim| dim.serial);
            reach.cut(Symbol::Thread(kind), serial, symbols)
        };
        let vars = scope.vars.iter().enumerate();
        let vars = vars.map(|(d, reach)| cut(LoopKind::Pure(d), reach)).collect();
        let rvars = scope.rvars.iter().enumerate().map(|(r, reach)| {
            let kind = LoopKind::Reduction(r);
            // Only variables that threads share are split; all others run in full in each thread.
            match loops.iter().any(|dim| dim.dim == kind && dim.threads > 1) {
                true => cut(kind, reach),
                false => reach.clone(),
            }
        });
        VariableReaches { vars, rvars: rvars.collect() }
    }

    /// The reads of a nest that count: nodes that live in its kernel, and its Funcs in registers.
    fn wanted(&self, id: NestId) -> NodeSet {
        let info = &self.plan.nests[id];
        let mut wanted = self.nodes(&info.nest.registers);
        for other in self.plan.nests_of(info.kernel) {
            let read = read_of(other.nest.item);
            if lives_before(self.plan, id, read) {
                wanted.insert(self.problem.node(read));
            }
        }
        wanted
    }

    fn nodes(&self, funcs: &[FuncId]) -> NodeSet {
        let mut nodes = NodeSet::default();
        funcs.iter().for_each(|func| nodes.insert(self.problem.node(Source::Func(*func))));
        nodes
    }

    /// Adds the reads of a nest to `outside`, by its stage and by everything inlined or in registers
    /// there, as far as they are `wanted`. Lanes along a dimension of the nest share Funcs in registers.
    fn reads(
        &mut self,
        info: &NestPlan,
        stage: StageRef,
        scope: &VariableReaches,
        wanted: &NodeSet,
        outside: &mut Required,
        lanes: Option<LoopKind>,
    ) -> Reads {
        if wanted.is_empty() {
            return Reads::default();
        }
        let (mut registers, mut spreads) = (BTreeMap::new(), BTreeMap::new());
        let own = Source::Func(stage.func);
        let (pending, found) = (Required::default(), NodeSet::default());
        let mut reader = Reader { nest: &info.nest, stage, wanted, outside, pending, found };
        self.add_reads(stage, scope, &mut reader);
        if wanted.contains(self.problem.node(own)) {
            self.add_own_accesses(stage, scope, reader.outside.columns(own));
        }
        // Producers come before their consumers, so all readers of the last one are done.
        while let Some((Source::Func(func), mut columns)) = reader.pending.take_last() {
            let root = self.problem.root(Source::Func(func));
            let (regions, stages) =
                (&self.problem.regions().funcs[func].stages, self.problem.func(func).stages.len());
            let mut dims = self.hull(&columns, root);
            let held = info.nest.registers.contains(&func);
            let spread = lanes
                .filter(|_| held)
                .and_then(|lane| self.problem.spread(func, lane, &dims, &self.symbols.lowest).ok().flatten());
            if let Some(spread) = spread {
                spreads.insert(func, spread);
                dims = spread.own(&dims);
            }
            let mut footprints = Vec::new();
            for number in (0..stages).rev() {
                let stage = StageRef { func, stage: number };
                let rvars = regions[number].domain.iter();
                let rvars = rvars.map(|range| Reach::fixed(range.min, range.last())).collect();
                let scope = VariableReaches { vars: dims, rvars };
                self.add_reads(stage, &scope, &mut reader);
                self.add_own_accesses(stage, &scope, &mut columns);
                footprints.push(Footprint { dims: scope.vars });
                dims = self.hull(&columns, root);
            }
            if held {
                footprints.reverse();
                registers.insert(func, StagedFootprint { points: Footprint { dims }, stages: footprints });
            }
        }
        Reads { registers, spreads, outside: reader.found }
    }

    /// Passes the reads of a stage to `reader`.
    fn add_reads(&mut self, stage: StageRef, scope: &VariableReaches, reader: &mut Reader<'_>) {
        let program = &self.problem.stage(stage).program;
        let mut evaluation = Evaluation::new(self.problem.pipeline(), self.problem.regions(), program, scope);
        for access in &program.reads {
            if let Some(columns) = reader.columns(self, access.read) {
                evaluation.add(access, &mut self.symbols, columns);
            }
        }
    }

    /// Adds the accesses of a stage to its own Func.
    fn add_own_accesses(&mut self, stage: StageRef, scope: &VariableReaches, columns: &mut Columns) {
        let program = &self.problem.stage(stage).program;
        Evaluation::new(self.problem.pipeline(), self.problem.regions(), program, scope).add(
            &program.own,
            &mut self.symbols,
            columns,
        );
    }

    /// The reads of a Func by a nest, through its stage and everything inlined or in registers there,
    /// if the stage is at the point of the nest's box given by [`Symbol::Thread`].
    pub fn point_reads(
        &mut self,
        info: &NestPlan,
        stage: StageRef,
        points: &Footprint,
        func: FuncId,
    ) -> Columns {
        let mut vars = Vec::new();
        for (d, reach) in points.dims.iter().enumerate() {
            let symbol = Symbol::Thread(LoopKind::Pure(d));
            self.symbols.add_range(symbol, reach.min, reach.max);
            vars.push(Reach::point(symbol, reach.min, reach.max));
        }
        let rvars = self.domain(info, stage);
        let mut outside = Required::default();
        self.reads(info, stage, &VariableReaches { vars, rvars }, &self.nodes(&[func]), &mut outside, None);
        std::mem::take(outside.columns(Source::Func(func)))
    }

    /// The smallest box that includes some accesses, seen from inside `loops`.
    pub(super) fn union(&mut self, columns: &Columns, root: &Region, loops: &[LoopId]) -> Vec<Reach> {
        let symbols = &self.symbols;
        let seen = |column: &Vec<Reach>| column.iter().map(|reach| reach.seen_from(loops, symbols)).collect();
        let seen: Columns = columns.iter().map(seen).collect();
        self.hull(&seen, root)
    }

    /// The smallest box that includes some accesses at one position.
    fn hull(&mut self, columns: &Columns, root: &Region) -> Vec<Reach> {
        let along = |(column, range): (&Vec<Reach>, &Range)| {
            let whole = Reach::fixed(range.min, range.last());
            let hull = Reach::hull(column, &mut self.symbols).unwrap_or(whole);
            if range.is_empty() { hull } else { hull.within(range.min, range.last()) }
        };
        columns.iter().zip(&root.0).map(along).collect()
    }
}

/// The boxes of a nest's Funcs in registers.
fn register_footprints(
    funcs: &[FuncId],
    mut at_thread: Reads,
    mut at_block: BTreeMap<FuncId, StagedFootprint>,
) -> BTreeMap<FuncId, RegisterFootprint> {
    let footprint = |func: &FuncId| {
        let (thread, block) = (at_thread.registers.remove(func)?, at_block.remove(func)?);
        let spread = at_thread.spreads.remove(func);
        Some((*func, RegisterFootprint { thread, block, spread, rows: None }))
    };
    funcs.iter().filter_map(footprint).collect()
}

/// Whether several threads share a reduction variable, so that a point can belong to several threads.
fn shares_reductions(loops: &[ThreadLoop]) -> bool {
    loops.iter().any(|dim| dim.threads > 1 && !is_pure(dim.dim))
}

/// The node that reads of an item refer to.
pub(crate) fn read_of(item: Item) -> Source {
    match item {
        Item::Stage(stage) => Source::Func(stage.func),
        Item::Input(input) => Source::Input(input),
    }
}

/// Whether the source of a read is inside the nest's kernel and, for an input, is copied before the
/// nest.
pub(crate) fn lives_before(plan: &Plan, id: NestId, read: Source) -> bool {
    let nest = &plan.nests[id];
    ids_in(&plan.kernels[nest.kernel].nests).any(|other| {
        let info = &plan.nests[other];
        match read {
            Source::Func(func) => info.computes(func) && !plan.is_own(info),
            Source::Input(input) => {
                info.nest.item == Item::Input(input) && other < id && info.path.parent().encloses(&nest.path)
            }
        }
    })
}
