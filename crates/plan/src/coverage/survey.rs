//! Finds the decisions of one schedule.

use warploom_lang::{FuncId, InputId};
use warploom_schedule::{Index, Item, LoopKind, Nest, Schedule, Source, StageRef};
use warploom_target::WARP;

use crate::axes::is_pure;
use crate::coverage::{Choice, Coverage, StageKind};
use crate::decisions::{DECISIONS, Line};
use crate::footprint::{NestFootprint, ThreadLoop};
use crate::ids::{KernelId, LoopId};
use crate::plan::{KernelPlan, NestPlan, Plan};
use crate::problem::Problem;
use crate::random::facts::Facts;

impl Coverage {
    /// Counts the decisions of a legal schedule of a problem or of its rewritten form.
    pub fn add(&mut self, problem: &Problem, schedule: &Schedule) {
        let Ok(rewritten) = problem.rewritten(&schedule.rewrites) else { return };
        let facts = Facts::new(&rewritten);
        let survey = Survey::new(&facts, schedule);
        survey.count(self);
        self.add_rewrites(problem, schedule, &survey.plan);
        self.schedules += 1;
    }
}

/// A schedule whose decisions are counted.
struct Survey<'a> {
    facts: &'a Facts<'a>,
    schedule: &'a Schedule,
    plan: Plan,
}

/// A decision, whether it was possible, and whether it was taken.
type Found = (Choice, bool, bool);

impl<'a> Survey<'a> {
    pub fn new(facts: &'a Facts<'a>, schedule: &'a Schedule) -> Survey<'a> {
        Survey { facts, schedule, plan: facts.problem.plan(schedule) }
    }

    pub fn count(&self, coverage: &mut Coverage) {
        for func in self.facts.problem.pipeline().funcs().keys() {
            self.places(func, coverage);
        }
        for input in self.facts.problem.pipeline().inputs().keys() {
            for kernel in self.plan.kernels.keys() {
                self.copies(input, kernel, coverage);
            }
        }
        for info in self.plan.nests.values() {
            let Some(nest) = &info.footprint else { continue };
            let kind = StageKind::of(self.facts, info.nest.item);
            let mut record = |(decision, eligible, taken)| {
                if eligible {
                    coverage.record(decision, kind, taken);
                }
            };
            self.mapping(info, nest).into_iter().for_each(&mut record);
            if let Some(stage) = info.stage() {
                self.reductions(info, nest, stage).into_iter().for_each(&mut record);
                if self.plan.is_own(info) {
                    self.blocks(info, stage).into_iter().for_each(&mut record);
                }
            }
        }
        self.words(coverage);
        self.shuffles(coverage);
        self.edges(coverage);
        self.vector_copies(coverage);
        self.levels(coverage);
    }

    /// Counts the words of kernels and nests.
    fn words(&self, coverage: &mut Coverage) {
        let kernels = self.plan.kernels.values().map(|kernel| (kernel, None));
        let nests = self.plan.nests.values().map(|nest| (&self.plan.kernels[nest.kernel], Some(nest)));
        for (kernel, nest) in kernels.chain(nests) {
            let at = Line { problem: self.facts.problem, plan: &self.plan, kernel, nest };
            for decision in DECISIONS.iter().filter(|decision| decision.is_possible(&at)) {
                let word = decision.facts().word;
                coverage.record_word(word, at.has(word));
            }
        }
    }

    /// Counts the kernels that compute less than all required points of their Func.
    fn edges(&self, coverage: &mut Coverage) {
        let problem = self.facts.problem;
        for func in self.plan.kernels.values().map(|kernel| kernel.kernel.stage.func) {
            if !problem.is_output(func) {
                coverage.edges.record(problem.regions().funcs[func].region != *problem.stored(func));
            }
        }
    }

    /// Counts the copies ahead of time that are made by vectors.
    fn vector_copies(&self, coverage: &mut Coverage) {
        let ahead = self.plan.nests.values().filter(|info| !self.plan.ahead_of(info).is_empty());
        for info in ahead {
            let rows = info.footprint.as_ref().and_then(|nest| nest.points.dims.first());
            if rows.is_some_and(|reach| reach.extent() % 2 == 0) {
                coverage.vector_copies.record(info.nest.numbers.vector);
            }
        }
    }

    /// Counts the Funcs that threads exchange within warps.
    fn shuffles(&self, coverage: &mut Coverage) {
        let whole = |kernel: &&KernelPlan| kernel.threads.is_multiple_of(WARP.into());
        for kernel in self.plan.kernels.values().filter(whole) {
            for array in kernel.allocations.iter().filter(|array| array.item.stage().is_some()) {
                let mut nests = self.plan.nests.slice(kernel.nests.clone()).iter().map(|info| &info.nest);
                let first = nests.find(|nest| nest.item == array.item);
                if first.is_some_and(|nest| nest.storage.is_shared() && !nest.mapping.is_flat()) {
                    coverage.shuffles.record(array.in_warps);
                }
            }
        }
    }

    /// The nests that read a Func or input.
    fn readers(&self, what: Source) -> Vec<&NestPlan> {
        let reads = |info: &&NestPlan| self.facts.reads(self.schedule, &info.nest, what);
        self.plan.nests.values().filter(reads).collect()
    }

    /// The loops over the block around a nest.
    fn over_loops<'n>(&self, info: &'n NestPlan) -> &'n [LoopId] {
        &info.loops[self.plan.kernels[info.kernel].around.len()..]
    }

    /// Whether some nests are in a common loop over the block.
    fn share_over_loop(&self, nests: &[&NestPlan]) -> bool {
        let first = nests.first().and_then(|info| self.over_loops(info).first());
        first.is_some() && nests.iter().all(|info| self.over_loops(info).first() == first)
    }

    /// Whether a nest is in a loop over the block that belongs to another stage.
    fn is_in_over_loop(&self, info: &NestPlan) -> bool {
        let foreign = |number: &LoopId| Some(self.plan.loops[*number].tile.stage) != info.stage();
        self.over_loops(info).iter().any(foreign)
    }

    /// Counts where a Func is computed.
    fn places(&self, func: FuncId, coverage: &mut Coverage) {
        let readers = self.readers(Source::Func(func));
        let inner = !self.facts.problem.is_output(func);
        let pure = self.facts.problem.pipeline().funcs()[func].stages.len() == 1;
        let in_block = inner && in_one_kernel(&readers);
        let in_thread = inner && readers.len() == 1 && self.facts.fits_registers(func);
        let in_registers = self.plan.nests.values().any(|info| info.nest.registers.contains(&func));
        for stage in self.facts.problem.defined_stages(func) {
            let kind = StageKind::of(self.facts, Item::Stage(stage));
            let info = self.plan.nests.values().find(|info| info.stage() == Some(stage));
            let own = info.is_some_and(|info| self.plan.is_own(info));
            let info = info.filter(|_| !own);
            let is = |how: fn(&Nest) -> bool| info.is_some_and(|info| how(&info.nest));
            let (shared, flat) = (is(|nest| nest.storage.is_shared()), is(|nest| nest.mapping.is_flat()));
            let private = is(|nest| nest.storage.is_private());
            let over = info.is_some_and(|info| self.is_in_over_loop(info));
            let found = [
                (Choice::Inlined, inner && pure, self.schedule.inlined.contains(&func)),
                (Choice::Root, true, own),
                (Choice::SharedFlat, in_block, shared && flat),
                (Choice::SharedThreads, in_block, shared && !flat),
                (Choice::Private, in_block && self.can_be_private(func, &readers), private && !flat),
                (Choice::Registers, in_thread, in_registers),
                (Choice::InOverLoop, in_block && self.share_over_loop(&readers), over),
            ];
            for (decision, _, taken) in found.into_iter().filter(|(_, eligible, _)| *eligible) {
                coverage.record(decision, kind, taken);
            }
        }
    }

    /// Whether every reader has threads, and no thread reads what another one would compute.
    fn can_be_private(&self, func: FuncId, readers: &[&NestPlan]) -> bool {
        readers.iter().all(|info| {
            let nest = info.footprint.as_ref().and_then(|nest| nest.threads.as_ref());
            let (Some(threads), Some(stage)) = (nest, info.stage()) else { return false };
            let several = threads.iter().filter(|dim| dim.threads > 1);
            several.into_iter().all(|dim| self.reads_own_point(func, stage, dim.dim))
        })
    }

    /// Whether a stage reads a Func at exactly its own point along a loop, in a dimension over which
    /// all stages of the Func have a loop.
    fn reads_own_point(&self, func: FuncId, reader: StageRef, along: LoopKind) -> bool {
        let dag = self.facts.problem.dag();
        let consumer = self.facts.problem.stage_id(reader);
        let Some(edge) = dag.edge_between(dag.func_node(func), consumer) else { return false };
        let position = dag.stages()[consumer].loops.iter().position(|of| of.kind == along);
        let own = |index: &Index| {
            position.is_some() && index.unit_loop() == position && index.constant() == Some(0)
        };
        let looped = |d: usize| {
            let has = |stage| self.facts.problem.loops(Item::Stage(stage)).contains(&LoopKind::Pure(d));
            self.facts.problem.defined_stages(func).all(has)
        };
        let dimensions = 0..self.facts.problem.pipeline().funcs()[func].dims.len();
        dimensions
            .into_iter()
            .any(|d| looped(d) && dag.edges()[edge].loads.iter().all(|load| own(&load.map.rows()[d])))
            && matches!(along, LoopKind::Pure(_))
    }

    /// Counts whether a kernel copies an input that it reads.
    fn copies(&self, input: InputId, kernel: KernelId, coverage: &mut Coverage) {
        let mut readers = self.readers(Source::Input(input));
        readers.retain(|info| info.kernel == kernel);
        if readers.is_empty() {
            return;
        }
        let mut nests = self.plan.nests_of(kernel).iter();
        let copy = nests.find(|info| info.nest.item == Item::Input(input));
        let flat = copy.is_some_and(|info| info.nest.mapping.is_flat());
        let kind = StageKind::InputCopy;
        coverage.record(Choice::StagedInput, kind, copy.is_some());
        coverage.record(Choice::SharedFlat, kind, flat);
        coverage.record(Choice::SharedThreads, kind, copy.is_some() && !flat);
        if self.share_over_loop(&readers) {
            coverage.record(Choice::InOverLoop, kind, copy.is_some_and(|info| self.is_in_over_loop(info)));
        }
    }

    /// The decisions about the block tiles of a kernel.
    fn blocks(&self, info: &NestPlan, stage: StageRef) -> [Found; 3] {
        let kernel = &self.plan.kernels[info.kernel].kernel;
        let extent = |kind: LoopKind| self.facts.problem.loop_range(Item::Stage(stage), kind).extent;
        let pure = self.facts.problem.loops(Item::Stage(stage)).into_iter();
        let extents: Vec<i64> = pure.filter(|kind| is_pure(*kind)).map(extent).collect();
        let wide = extents.iter().filter(|extent| **extent > 1).count();
        let counts = &self.plan.kernels[info.kernel].blocks;
        let several = counts.iter().filter(|count| **count > 1).count();
        let cut = kernel.block.iter().zip(counts).any(|(tile, count)| {
            let extent = extent(tile.dim);
            *count > 1 && extent % tile.size.of(extent) != 0
        });
        [
            (Choice::BlockCut, extents.iter().any(|extent| *extent > 2), cut),
            (Choice::BlockSeveral, wide > 1, several > 1),
            (Choice::BlockWhole, wide > 0, several == 0),
        ]
    }

    /// The decisions about how threads share a nest.
    fn mapping(&self, info: &NestPlan, nest: &NestFootprint) -> [Found; 7] {
        let extents = self.facts.problem.loops(info.nest.item).into_iter().filter_map(|kind| match kind {
            LoopKind::Pure(d) => Some(nest.points.dims[d].extent()),
            LoopKind::Reduction(_) => None,
        });
        let extents: Vec<i64> = extents.collect();
        let wide = extents.iter().filter(|extent| **extent > 1).count();
        let loops = nest.threads.as_deref().unwrap_or_default();
        let several = loops.iter().filter(|dim| dim.threads > 1).count();
        let rounds = |dim: &ThreadLoop| dim.threads > 1 && dim.threads * dim.serial < dim.extent;
        let idle = |dim: &ThreadLoop| dim.threads > 1 && (dim.threads - 1) * dim.serial >= dim.extent;
        let serial = loops.iter().any(|dim| dim.serial > 1);
        let points = loops.iter().any(|dim| dim.serial > 1 && is_pure(dim.dim));
        let reduces = nest.domain.iter().any(|reach| reach.extent() > 1);
        [
            (Choice::ThreadsOne, wide >= 1, several == 1),
            (Choice::ThreadsTwo, wide >= 2, several == 2),
            (Choice::ThreadsThree, wide >= 3, several == 3),
            (Choice::Rounds, extents.iter().any(|extent| *extent > 2), loops.iter().any(rounds)),
            (Choice::Idle, wide >= 1, loops.iter().any(idle)),
            (Choice::SerialTile, wide >= 1, points),
            (Choice::Unrolled, wide >= 1 || reduces, serial && info.nest.mapping.unrolls()),
        ]
    }

    /// The decisions about the reduction variables of a stage.
    fn reductions(&self, info: &NestPlan, nest: &NestFootprint, stage: StageRef) -> [Found; 9] {
        let domain = self.facts.domain(stage);
        let reduces = domain.iter().any(|extent| *extent > 1);
        let own = self.plan.is_own(info);
        let (outside, inside) = info.loops.split_at(info.loops.len() - self.over_loops(info).len());
        let of_own = |number: &LoopId| self.plan.loops[*number].tile.stage == stage;
        let left: Vec<i64> = nest.domain.iter().map(|reach| reach.extent()).collect();
        let loops = nest.threads.as_deref().unwrap_or_default();
        let named = || loops.iter().filter(|dim| !is_pure(dim.dim) && dim.serial > 1);
        let free = |var: usize| domain[var] > 1 && self.facts.freedom(stage, var).under_outer;
        let shared = (0..domain.len()).any(free);
        // A free variable may run inside one that the definition has inside it.
        let exchange =
            (1..domain.len()).any(|inner| free(inner) && domain[..inner].iter().any(|extent| *extent > 1));
        let blocks = self.plan.kernels[info.kernel].kernel.block.iter();
        let on_blocks = blocks.zip(&self.plan.kernels[info.kernel].blocks);
        let on_blocks = on_blocks.into_iter().any(|(tile, count)| !is_pure(tile.dim) && *count > 1);
        let on_threads = loops.iter().any(|dim| !is_pure(dim.dim) && dim.threads > 1 && dim.extent > 1);
        let (can_be_atomic, atomic) =
            (self.facts.problem.can_be_atomic(&info.nest), info.nest.numbers.atomic);
        [
            (Choice::Around, own && reduces, outside.iter().any(of_own)),
            (Choice::Over, reduces, inside.iter().any(of_own)),
            (
                Choice::SplitReduction,
                left.iter().any(|left| *left > 2),
                named().any(|dim| dim.serial < dim.extent),
            ),
            (
                Choice::UnrolledReduction,
                left.iter().any(|left| *left > 1),
                info.nest.mapping.unrolls() && named().next().is_some(),
            ),
            (Choice::ReductionOnBlocks, own && shared, on_blocks),
            (Choice::ReductionOnThreads, shared, on_threads),
            (Choice::Reordered, exchange, self.is_reordered(info, nest, stage)),
            (Choice::AtomicsOnBlocks, own && reduces && can_be_atomic, atomic && on_blocks),
            (Choice::AtomicsOnThreads, reduces && can_be_atomic, atomic && on_threads),
        ]
    }

    /// Whether a reduction loop runs outside one that the definition has outside it.
    fn is_reordered(&self, info: &NestPlan, nest: &NestFootprint, stage: StageRef) -> bool {
        let own = info.loops.iter().filter(|number| self.plan.loops[**number].tile.stage == stage);
        let own = own.filter(|number| self.plan.loops[**number].count > 1);
        let mut order: Vec<usize> = own.map(|number| self.plan.loops[*number].tile.var).collect();
        let loops = nest.threads.as_deref().unwrap_or_default();
        let serial = |var: usize| {
            let dim = loops.iter().find(|dim| dim.dim == LoopKind::Reduction(var));
            dim.map_or((1, 1), |dim| (dim.threads, dim.serial))
        };
        let parts = (0..nest.domain.len()).rev();
        let parts = parts.filter(|var| serial(*var).0 <= 1 && serial(*var).1 < nest.domain[*var].extent());
        order.extend(parts);
        if let Some(tiles) = info.nest.mapping.tiles() {
            let named = tiles.serial.iter().filter_map(|tile| match tile.dim {
                LoopKind::Reduction(var) => Some(var),
                LoopKind::Pure(_) => None,
            });
            order.extend(named.filter(|var| serial(*var).0 <= 1 && serial(*var).1 > 1));
        }
        order.windows(2).any(|pair| pair[0] < pair[1])
    }

    /// Counts whether one Func is in a block and another one in a thread.
    fn levels(&self, coverage: &mut Coverage) {
        let inner: Vec<FuncId> = self
            .facts
            .problem
            .pipeline()
            .funcs()
            .keys()
            .filter(|func| !self.facts.problem.is_output(*func))
            .collect();
        if inner.len() < 2 || !inner.iter().any(|func| self.facts.fits_registers(*func)) {
            return;
        }
        let nests = &self.plan.nests;
        let block = nests.values().any(|info| info.stage().is_some() && !self.plan.is_own(info));
        let thread = nests.values().any(|info| !info.nest.registers.is_empty());
        coverage.levels.record(block && thread);
    }
}

fn in_one_kernel(nests: &[&NestPlan]) -> bool {
    let first = nests.first().map(|info| info.kernel);
    first.is_some() && nests.iter().all(|info| Some(info.kernel) == first)
}
