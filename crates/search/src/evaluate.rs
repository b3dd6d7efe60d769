//! Evaluates kernels: checks the rules of schedules, then the limits of the search, then predicts
//! the cost.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use warploom_cost::{CostModel, Featurizer, KernelFeatures, NewDecisions, RowSource, StageRow};
use warploom_lang::FuncId;
use warploom_plan::{NestPlan, Plan, RegisterFootprint};
use warploom_schedule::{FuncSet, Kernel, RootItem};

use crate::contractions::is_contraction;
use crate::memo::{Memo, Verdict};
use crate::space::SearchSpace;
use crate::state::{EvaluatedKernel, Sketch, State, funcs};
use crate::statistics::{Refusal, Statistics, StopReason};

/// How long after the deadline the first schedule may still be evaluated, so that the result has a
/// cost.
const GRACE: Duration = Duration::from_millis(500);

/// Evaluates kernels and memoises the results.
pub(crate) struct Evaluator<'a> {
    pub space: &'a SearchSpace<'a>,
    featurizer: Featurizer,
    model: &'a dyn CostModel,
    memo: Memo,
    deadline: Option<Instant>,
    cut_short: AtomicBool,
}

/// A kernel that is legal and within the limits. The model has not predicted its cost yet.
struct FeaturedKernel {
    /// Its position in the request.
    position: usize,
    key: u128,
    sketch: Sketch,
    extents: Vec<Vec<i64>>,
    features: Vec<KernelFeatures>,
}

/// The features of a sketch's kernels, and the extents of its nests.
type Description = (Vec<KernelFeatures>, Vec<Vec<i64>>);

impl FeaturedKernel {
    fn new(position: usize, key: u128, sketch: Sketch, (features, extents): Description) -> FeaturedKernel {
        FeaturedKernel { position, key, sketch, extents, features }
    }
}

impl<'a> Evaluator<'a> {
    pub fn new(space: &'a SearchSpace<'a>, model: &'a dyn CostModel, started: Instant) -> Evaluator<'a> {
        let deadline = space.options.time_limit.and_then(|limit| started.checked_add(limit));
        let memo = Memo::new(space.options.memo);
        let featurizer = Featurizer::new(space.problem);
        Evaluator { space, featurizer, model, memo, deadline, cut_short: AtomicBool::new(false) }
    }

    /// Whether the deadline has passed.
    pub fn is_over(&self) -> bool {
        let over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if over {
            self.cut_short.store(true, Ordering::Relaxed);
        }
        over
    }

    /// Whether the model knows all decisions of a kernel, so that its cost is comparable to others.
    pub fn knows(&self, item: &RootItem) -> bool {
        item.kernels().all(|kernel| self.model.knows(NewDecisions::of_kernel(kernel.numbers, kernel.nests())))
    }

    /// Why the search ends.
    pub fn stop(&self) -> StopReason {
        match self.cut_short.load(Ordering::Relaxed) {
            true => StopReason::TimeLimit,
            false => StopReason::Finished,
        }
    }

    /// The verdicts on some kernels, in order. After the deadline, kernels that are not memoised
    /// are refused.
    pub fn judge(&self, sketches: Vec<Sketch>, counts: &mut Statistics) -> Vec<Verdict> {
        let mut verdicts: Vec<Verdict> = vec![Err(Refusal::Illegal); sketches.len()];
        let mut candidates = Vec::new();
        for (position, sketch) in sketches.into_iter().enumerate() {
            let key = sketch.key();
            if let Some(known) = self.memo.get(key) {
                counts.memo_hits += 1;
                verdicts[position] = known;
                continue;
            }
            if self.is_over() {
                verdicts[position] = Err(Refusal::OutOfTime);
                continue;
            }
            match self.candidate(position, key, sketch, counts) {
                Ok(candidate) => candidates.push(candidate),
                Err(reason) => {
                    self.memo.insert(key, Err(reason));
                    verdicts[position] = Err(reason);
                }
            }
        }
        for (candidate, cost) in self.costs(candidates, counts) {
            let FeaturedKernel { position, key, sketch, extents, .. } = candidate;
            let verdict = Ok(Arc::new(EvaluatedKernel::new(sketch, key, extents, cost)));
            self.memo.insert(key, verdict.clone());
            verdicts[position] = verdict;
        }
        verdicts
    }

    /// Predicts the cost of all candidates in one batch.
    fn costs(&self, candidates: Vec<FeaturedKernel>, counts: &mut Statistics) -> Vec<(FeaturedKernel, f64)> {
        let started = Instant::now();
        let features: Vec<&KernelFeatures> = candidates.iter().flat_map(|of| &of.features).collect();
        let mut costs = Vec::with_capacity(features.len());
        self.model.costs(self.space.dag, &features, &mut costs);
        counts.costing += started.elapsed();
        let mut costs = costs.into_iter();
        let sum = |candidate: FeaturedKernel| {
            let cost = costs.by_ref().take(candidate.features.len()).sum();
            (candidate, cost)
        };
        candidates.into_iter().map(sum).collect()
    }

    /// Evaluates a kernel that must be legal but may exceed the limits of the search. `None` if it
    /// is illegal, or if the grace period after the deadline is over.
    pub fn appraise(&self, sketch: Sketch, counts: &mut Statistics) -> Option<Arc<EvaluatedKernel>> {
        if self.is_over() && self.deadline.is_some_and(|deadline| deadline.elapsed() > GRACE) {
            return None;
        }
        let inlined = funcs(self.space, &sketch.inlined);
        let description = self.description(&self.examine(&inlined, &sketch).ok()?);
        let candidate = FeaturedKernel::new(0, sketch.key(), sketch, description);
        let (candidate, cost) = self.costs(vec![candidate], counts).pop()?;
        let FeaturedKernel { key, sketch, extents, .. } = candidate;
        Some(Arc::new(EvaluatedKernel::new(sketch, key, extents, cost)))
    }

    fn candidate(
        &self,
        position: usize,
        key: u128,
        sketch: Sketch,
        counts: &mut Statistics,
    ) -> Result<FeaturedKernel, Refusal> {
        counts.kernels += 1;
        let started = Instant::now();
        let inlined = funcs(self.space, &sketch.inlined);
        let plan = self.examine(&inlined, &sketch);
        counts.examining += started.elapsed();
        let plan = plan?;
        self.check_register_arrays(&plan)?;
        self.check_any_size(&inlined, &sketch, &plan)?;
        let lone = sketch.nest_reads.len() == 1;
        let started = Instant::now();
        let description = self.description(&plan);
        let candidate = FeaturedKernel::new(position, key, sketch, description);
        counts.featuring += started.elapsed();
        candidate.features.iter().try_for_each(|kernel| self.check_limits(kernel, lone))?;
        Ok(candidate)
    }

    /// The features of the kernels of a plan, and the extents of its nests.
    fn description(&self, plan: &Plan) -> Description {
        let extents = |nest: &NestPlan| match &nest.footprint {
            Some(footprint) => footprint.points.extents(),
            None => Vec::new(),
        };
        (self.featurizer.features(plan), plan.nests.values().map(extents).collect())
    }

    /// The plan of a kernel, if the kernel alone is legal.
    fn examine(&self, inlined: &FuncSet, sketch: &Sketch) -> Result<Plan, Refusal> {
        self.space.problem.examine(inlined, [&*sketch.item]).map_err(|_| Refusal::Illegal)
    }

    /// Refuses kernels that are not legal at all sizes, or that need so much shared memory at the largest sizes that
    /// fewer than half as many blocks fit.
    fn check_any_size(&self, inlined: &FuncSet, sketch: &Sketch, plan: &Plan) -> Result<(), Refusal> {
        let Some(any_size) = &self.space.any_size else { return Ok(()) };
        let largest = any_size.examine(inlined, [&*sketch.item]).map_err(|_| Refusal::Illegal)?;
        let device = any_size.device();
        let mut kernels = plan.kernels.values().zip(largest.kernels.values());
        let fits = kernels.all(|(own, largest)| {
            largest.most_resident(device).saturating_mul(2) >= own.most_resident(device)
        });
        if fits { Ok(()) } else { Err(Refusal::Illegal) }
    }

    /// Refuses nests whose registers exceed the limit for values that a thread computes for itself. Registers that
    /// lanes share only have to fit.
    fn check_register_arrays(&self, plan: &Plan) -> Result<(), Refusal> {
        let bytes = |registers: &BTreeMap<FuncId, RegisterFootprint>| {
            let of = |(func, footprint): (&FuncId, &RegisterFootprint)| {
                let node = &self.space.dag.nodes()[self.space.dag.func_node(*func)];
                footprint.live_points().saturating_mul(node.bytes_per_point as u64)
            };
            registers.iter().map(of).fold(0, u64::saturating_add)
        };
        let nests = plan.nests.values().filter_map(|nest| nest.footprint.as_ref());
        let alone = nests.filter(|nest| nest.lanes.is_none());
        let most = alone.map(|nest| bytes(&nest.registers)).max();
        match most.unwrap_or(0) > self.space.options.limits.register_array_bytes {
            true => Err(Refusal::RegisterArrays),
            false => Ok(()),
        }
    }

    fn check_limits(&self, kernel: &KernelFeatures, lone: bool) -> Result<(), Refusal> {
        let limits = &self.space.options.limits;
        if kernel.registers > self.space.problem.device().registers.per_thread {
            return Err(Refusal::Registers);
        }
        if kernel.local_bytes > limits.local_bytes {
            return Err(Refusal::LocalBytes);
        }
        if kernel.nodes > limits.nodes && !lone {
            return Err(Refusal::CodeSize);
        }
        match kernel.rows.iter().any(|row| self.is_repeated(row)) {
            true => Err(Refusal::Recompute),
            false => Ok(()),
        }
    }

    /// Whether a stage is recomputed much more often than at root.
    fn is_repeated(&self, row: &StageRow) -> bool {
        let (RowSource::Stage(stage) | RowSource::Inlined(stage)) = row.source else { return false };
        let node = &self.space.dag.nodes()[self.space.dag.stages()[stage].node];
        // Recomputing a trivial stage costs next to nothing.
        let exempt = node.is_wrapper || node.is_boundary_condition || node.is_pointwise;
        let features = &row.features;
        let times = features.points_computed_total + features.inlined_calls;
        !exempt && times > self.space.options.limits.recompute * features.points_computed_minimum
    }

    /// The state in which each tiled contraction sets `blocks`, the occupancy that the prediction assumes. Without it,
    /// the kernel compiler allocates more registers to unrolled products than they need, and fewer blocks fit. `None`
    /// if no contraction needs it.
    pub fn with_blocks(&self, state: &State, counts: &mut Statistics) -> Option<State> {
        let mut kernels = state.kernels.clone();
        for evaluated in &mut kernels {
            let is_free = |kernel: &Kernel| {
                kernel.numbers.blocks.is_none()
                    && !self.space.is_decided(kernel.stage.func)
                    && self.is_tiled_contraction(kernel)
            };
            if evaluated.sketch.item.kernels().any(is_free) {
                let blocks = self.predicted_blocks(evaluated);
                let item = evaluated.sketch.item.with(|kernel| kernel.numbers.blocks = blocks);
                *evaluated = self.judge(vec![evaluated.sketch.with_tiles(item)], counts).pop()?.ok()?;
            }
        }
        let bound = State::new(kernels, state.inlined.clone());
        (bound.identity() != state.identity()).then_some(bound)
    }

    /// Whether a kernel has a contraction in registers that runs in loops over the block.
    fn is_tiled_contraction(&self, kernel: &Kernel) -> bool {
        kernel.nests().enumerate().any(|(number, nest)| {
            let stage = nest.item.stage().filter(|_| nest.storage.is_private());
            kernel.loops_over(number).next().is_some()
                && stage.is_some_and(|stage| is_contraction(self.space.problem, stage))
        })
    }

    /// The blocks per SM that the prediction assumes, if registers limit them and there are several.
    fn predicted_blocks(&self, evaluated: &EvaluatedKernel) -> Option<NonZeroU32> {
        let inlined = funcs(self.space, &evaluated.sketch.inlined);
        let plan = self.examine(&inlined, &evaluated.sketch).ok()?;
        let [kernel] = &self.featurizer.features(&plan)[..] else { return None };
        let device = self.space.problem.device();
        let blocks = device.occupancy(kernel.threads, kernel.registers, kernel.shared_bytes).blocks_per_sm;
        let others = device.occupancy(kernel.threads, 0, kernel.shared_bytes).blocks_per_sm;
        NonZeroU32::new(blocks).filter(|blocks| blocks.get() > 1 && blocks.get() < others)
    }

    /// The cost of each Func of a state, as far as time permits. The cost of a kernel is split in
    /// proportion to the terms that explain it.
    pub fn func_costs(&self, state: &State) -> BTreeMap<FuncId, f64> {
        let dag = self.space.dag;
        let mut costs = BTreeMap::new();
        for evaluated in state.kernels.iter().take_while(|_| !self.is_over()) {
            let inlined = funcs(self.space, &evaluated.sketch.inlined);
            let Ok(plan) = self.examine(&inlined, &evaluated.sketch) else { continue };
            for kernel in self.featurizer.features(&plan) {
                let terms = self.model.explain(dag, &kernel);
                let part = |terms: &Vec<warploom_cost::Term>| -> f64 {
                    terms.iter().map(|term| term.microseconds).sum()
                };
                let all: f64 = terms.rows.iter().map(part).sum();
                for (row, of) in kernel.rows.iter().zip(&terms.rows) {
                    let (RowSource::Stage(stage) | RowSource::Inlined(stage)) = row.source else { continue };
                    let share = if all > 0.0 { part(of) / all } else { 1.0 / kernel.rows.len() as f64 };
                    *costs.entry(dag.stages()[stage].func).or_insert(0.0) += share * terms.total;
                }
            }
        }
        costs
    }
}
