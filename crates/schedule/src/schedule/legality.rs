//! Which trees are schedules: every rule, each broken one reported at its place.

mod loops;
mod order;
mod placement;
mod storage;

use std::collections::BTreeSet;

use ahash::AHashSet;
use warploom_lang::{FuncId, IdVec};

use crate::ids::NestId;
use crate::schedule::names::Names;
use crate::schedule::path::Path;
use crate::schedule::plan::{NestPlan, Plan};
use crate::schedule::problem::{FuncList, Problem};
use crate::schedule::tree::{RootItem, Schedule, StageRef};
use crate::schedule::violation::{Rule, Violation, located};

pub use storage::{MAX_PRIVATE_BYTES, SMALL_EXTENT};

impl Problem {
    /// The plan of a schedule, if it is legal.
    ///
    /// | what | rules |
    /// | --- | --- |
    /// | places | every Func is inlined or all its stages are placed once; outputs are in global memory; a kernel ends with its own stage |
    /// | order | a Func is computed before its readers, in a kernel before theirs or in the same block, inside no loop that they are outside of |
    /// | loops | tiles are loops of their stage, divided once; blocks and threads share a reduction variable only if its values are independent; reduction loops keep their order unless it does not matter |
    /// | storage | a private Func is read only by the thread that computed it; what lives in a block or thread has a constant extent and fits |
    /// | limits | threads, grid and shared memory of the device |
    ///
    /// Sizes matter only for the last two.
    ///
    /// # Errors
    /// Every violation, in the order of the schedule's text.
    pub fn check<'s>(&self, schedule: &'s Schedule) -> Result<Plan<'s>, Vec<Violation>> {
        let plan = self.plan(schedule);
        self.check_plan(schedule, &plan)?;
        Ok(plan)
    }

    /// Checks the plan of a whole schedule.
    pub(crate) fn check_plan(&self, schedule: &Schedule, plan: &Plan<'_>) -> Result<(), Vec<Violation>> {
        let mut checker = Checker::new(self, plan);
        checker.needed_places();
        checker.rules(|_| false);
        match checker.found.is_empty() {
            true => Ok(()),
            false => Err(located(schedule, self.pipeline(), checker.found)),
        }
    }

    /// The plan of some kernels and loops around kernels, if they are legal in themselves: all of
    /// [`check`](Problem::check) but whether every Func has its place, and whether what other kernels compute is there
    /// in time.
    ///
    /// # Errors
    /// One of the rules that they break.
    pub fn examine<'s>(
        &self,
        inlined: &'s BTreeSet<FuncId>,
        root: impl IntoIterator<Item = &'s RootItem>,
    ) -> Result<Plan<'s>, Rule> {
        let plan = self.plan_of(inlined, root);
        let mut checker = Checker::new(self, &plan);
        checker.present_places();
        checker.rules(|found| !found.is_empty());
        match checker.found.pop() {
            Some((_, rule)) => Err(rule),
            None => Ok(plan),
        }
    }
}

/// What the rules read, and what they found.
struct Checker<'a> {
    problem: &'a Problem,
    names: Names<'a>,
    plan: &'a Plan<'a>,
    /// What each nest reads: its stage and all that is inlined or in registers there.
    reads: IdVec<NestId, FuncList>,
    found: Vec<(Path, Rule)>,
    /// The same, to tell what was found before.
    known: AHashSet<(Path, Rule)>,
}

impl<'a> Checker<'a> {
    fn new(problem: &'a Problem, plan: &'a Plan<'a>) -> Checker<'a> {
        let reads = plan.nests.values().map(|nest| {
            let inside = |func: FuncId| plan.inlined.contains(&func) || nest.nest.registers.contains(&func);
            let mut reads = problem.reads_through(nest.stage(), inside).outside;
            reads.retain(|func| !nest.computes(*func));
            reads
        });
        let (names, reads) = (Names::new(problem.pipeline()), reads.collect());
        Checker { problem, names, plan, reads, found: Vec::new(), known: AHashSet::new() }
    }

    /// The rules that hold for a schedule as for each of its kernels, until what was found is `enough`.
    fn rules(&mut self, enough: impl Fn(&[(Path, Rule)]) -> bool) {
        for rules in [Checker::storage_words, Checker::order, Checker::loops, Checker::storage] {
            if enough(&self.found) {
                return;
            }
            rules(self);
        }
    }

    fn report(&mut self, path: &Path, rule: Rule) {
        let violation = (path.clone(), rule);
        if self.known.insert(violation.clone()) {
            self.found.push(violation);
        }
    }

    fn func_name(&self, func: FuncId) -> String {
        self.names.of_func(func).to_string()
    }

    fn stage_name(&self, stage: StageRef) -> String {
        self.names.of_stage(stage)
    }

    fn is_inlined(&self, func: FuncId) -> bool {
        self.plan.inlined.contains(&func)
    }

    /// The nests that compute stages of a Func, with their numbers.
    fn nests_of(&self, func: FuncId) -> impl Iterator<Item = (NestId, &'a NestPlan<'a>)> + use<'a> {
        self.plan.computing(func)
    }

    /// The nests that a Func is in registers of, with its position there.
    fn registers_of(&self, func: FuncId) -> impl Iterator<Item = (&'a NestPlan<'a>, usize)> + use<'a> {
        self.plan.holding(func)
    }

    /// The Funcs that have a place, in order.
    fn present(&self) -> FuncList {
        let nests = self.plan.nests.values();
        let mut present: FuncList = nests
            .flat_map(|nest| {
                nest.stage().map(|stage| stage.func).into_iter().chain(nest.nest.registers.iter().copied())
            })
            .collect();
        present.sort_unstable();
        present.dedup();
        present
    }
}
