//! The one judge of kernels: rules of schedules, then what is not worth its cost, then the cost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use warploom_cost::{CostModel, KernelFeatures, RowSource, StageRow, Subject};
use warploom_lang::FuncId;
use warploom_schedule::schedule::{Footprints, RegisterFootprint};

use crate::memo::{Memo, Verdict};
use crate::space::Space;
use crate::state::{Kern, Sketch, State, funcs};
use crate::statistics::{Refusal, Statistics, StopReason};

/// How long after the end of a search its first schedule may be evaluated, so that the answer has a cost.
const GRACE: Duration = Duration::from_millis(500);

/// Judges kernels and remembers what it found.
pub(crate) struct Evaluator<'a> {
    pub space: &'a Space<'a>,
    subject: Subject<'a>,
    model: &'a dyn CostModel,
    memo: Memo,
    deadline: Option<Instant>,
    cut_short: AtomicBool,
}

/// A kernel that is legal and worth its cost, which the model is still to give.
struct Candidate {
    /// Its position among those that were asked for.
    position: usize,
    key: u128,
    sketch: Sketch,
    extents: Vec<Vec<i64>>,
    features: Vec<KernelFeatures>,
}

impl<'a> Evaluator<'a> {
    pub fn new(
        space: &'a Space<'a>,
        subject: Subject<'a>,
        model: &'a dyn CostModel,
        started: Instant,
    ) -> Evaluator<'a> {
        let deadline = space.options.time_limit.and_then(|limit| started.checked_add(limit));
        let memo = Memo::new(space.options.memo);
        Evaluator { space, subject, model, memo, deadline, cut_short: AtomicBool::new(false) }
    }

    /// Whether the time is up.
    pub fn is_over(&self) -> bool {
        let over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if over {
            self.cut_short.store(true, Ordering::Relaxed);
        }
        over
    }

    /// Why the search ends.
    pub fn stop(&self) -> StopReason {
        match self.cut_short.load(Ordering::Relaxed) {
            true => StopReason::TimeLimit,
            false => StopReason::Finished,
        }
    }

    /// The verdicts on some kernels, in their order. When the time is up, only those that are known are given.
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
            let Candidate { position, key, sketch, extents, .. } = candidate;
            let verdict = Ok(Arc::new(Kern::new(sketch, key, extents, cost)));
            self.memo.insert(key, verdict.clone());
            verdicts[position] = verdict;
        }
        verdicts
    }

    /// Asks the model about all candidates at once.
    fn costs(&self, candidates: Vec<Candidate>, counts: &mut Statistics) -> Vec<(Candidate, f64)> {
        let started = Instant::now();
        let features: Vec<&KernelFeatures> = candidates.iter().flat_map(|of| &of.features).collect();
        let mut costs = Vec::with_capacity(features.len());
        self.model.costs(&self.space.dag, &features, &mut costs);
        counts.costing += started.elapsed();
        let mut costs = costs.into_iter();
        let sum = |candidate: Candidate| {
            let cost = costs.by_ref().take(candidate.features.len()).sum();
            (candidate, cost)
        };
        candidates.into_iter().map(sum).collect()
    }

    /// Evaluates a kernel that must be legal but need not be worth its cost. `None` if it is not legal, or the time
    /// was up a while ago.
    pub fn appraise(&self, sketch: Sketch, counts: &mut Statistics) -> Option<Arc<Kern>> {
        if self.is_over() && self.deadline.is_some_and(|deadline| deadline.elapsed() > GRACE) {
            return None;
        }
        let footprints = self.examine(&sketch).ok()?;
        let candidate = self.described(0, sketch.key(), sketch, &footprints);
        let (candidate, cost) = self.costs(vec![candidate], counts).pop()?;
        let Candidate { key, sketch, extents, .. } = candidate;
        Some(Arc::new(Kern::new(sketch, key, extents, cost)))
    }

    fn candidate(
        &self,
        position: usize,
        key: u128,
        sketch: Sketch,
        counts: &mut Statistics,
    ) -> Result<Candidate, Refusal> {
        counts.kernels += 1;
        let started = Instant::now();
        let footprints = self.examine(&sketch);
        counts.examining += started.elapsed();
        let footprints = footprints?;
        self.register_arrays(&footprints)?;
        let lone = sketch.nest_reads.len() == 1;
        let started = Instant::now();
        let candidate = self.described(position, key, sketch, &footprints);
        counts.featuring += started.elapsed();
        candidate.features.iter().try_for_each(|kernel| self.worth_it(kernel, lone))?;
        Ok(candidate)
    }

    /// A kernel with its features.
    fn described(&self, position: usize, key: u128, sketch: Sketch, footprints: &Footprints) -> Candidate {
        let inlined = funcs(self.space, &sketch.inlined);
        let features = self.subject.features(&inlined, &sketch.item, footprints);
        let extents = footprints.nests.iter().map(|nest| match nest {
            Some(nest) => nest.points.extents(),
            None => Vec::new(),
        });
        let extents = extents.collect();
        Candidate { position, key, sketch, extents, features }
    }

    /// The footprints of a kernel that breaks no rule by itself.
    fn examine(&self, sketch: &Sketch) -> Result<Footprints, Refusal> {
        let inlined = funcs(self.space, &sketch.inlined);
        let examined = self.space.geometry.examine(&inlined, [&*sketch.item], self.space.device);
        examined.map_err(|_| Refusal::Illegal)
    }

    fn register_arrays(&self, footprints: &Footprints) -> Result<(), Refusal> {
        let bytes = |registers: &BTreeMap<FuncId, RegisterFootprint>| {
            let of = |(func, footprint): (&FuncId, &RegisterFootprint)| {
                let node = &self.space.dag.nodes()[self.space.dag.func_node(*func)];
                footprint.thread.points.points().saturating_mul(node.bytes_per_point as u64)
            };
            registers.iter().map(of).fold(0, u64::saturating_add)
        };
        let most = footprints.nests.iter().flatten().map(|nest| bytes(&nest.registers)).max();
        match most.unwrap_or(0) > self.space.options.limits.register_array_bytes {
            true => Err(Refusal::RegisterArrays),
            false => Ok(()),
        }
    }

    fn worth_it(&self, kernel: &KernelFeatures, lone: bool) -> Result<(), Refusal> {
        let limits = &self.space.options.limits;
        if kernel.registers > self.space.device.registers.per_thread {
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

    /// Whether a stage is computed much more often than at root.
    fn is_repeated(&self, row: &StageRow) -> bool {
        let (RowSource::Stage(stage) | RowSource::Inlined(stage)) = row.source else { return false };
        let node = &self.space.dag.nodes()[self.space.dag.stages()[stage].node];
        // Where there is next to nothing to compute, it does not matter how often.
        let exempt = node.is_wrapper || node.is_boundary_condition || node.is_pointwise;
        let features = &row.features;
        let times = features.points_computed_total + features.inlined_calls;
        !exempt && times > self.space.options.limits.recompute * features.points_computed_minimum
    }

    /// What each Func of a state costs, as far as there is time: the kernels it is in, divided by the parts of their explanations.
    pub fn func_costs(&self, state: &State) -> BTreeMap<FuncId, f64> {
        let dag = &self.space.dag;
        let mut costs = BTreeMap::new();
        for kern in state.kernels.iter().take_while(|_| !self.is_over()) {
            let Ok(footprints) = self.examine(&kern.sketch) else { continue };
            let inlined = funcs(self.space, &kern.sketch.inlined);
            for kernel in self.subject.features(&inlined, &kern.sketch.item, &footprints) {
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
