//! Checks the rules of schedules, and reports each violation at its place in the tree.

mod loops;
mod order;
mod placement;
pub(crate) mod rule;
mod storage;
pub(crate) mod violation;

use ahash::AHashSet;
use warploom_lang::{FuncId, IdVec};
use warploom_schedule::{FuncSet, Names, Path, RootItem, Schedule, StageRef};

use crate::ids::NestId;
use crate::legality::rule::Rule;
use crate::legality::violation::{Violation, located};
use crate::plan::{NestPlan, Plan};
use crate::problem::{FuncList, Problem};

pub use storage::{MAX_PRIVATE_BYTES, SMALL_EXTENT};

impl Problem {
    /// Returns the plan of a schedule, if it is legal.
    ///
    /// | what | rules |
    /// | --- | --- |
    /// | places | every Func is inlined, or each of its stages is placed exactly once; outputs are in global memory; a kernel ends with its own stage |
    /// | order | a Func is computed before its readers, in an earlier kernel or in the same block, and inside no loop that does not also contain the readers |
    /// | loops | tiles are loops of their stage, each divided once; blocks and threads share a reduction variable only if its values are independent or the nest is `atomic`; reduction loops keep their order unless it does not matter |
    /// | storage | a private Func is read only by the thread that computed it; arrays in a block or thread have a constant extent and fit; atomics update shared or global memory; the lanes of a warp share Funcs in registers that move with them by a constant number of points; what is copied asynchronously comes from global memory, in a loop over the block |
    /// | limits | threads, grid and shared memory of the device |
    ///
    /// Only the last two depend on sizes.
    ///
    /// # Errors
    /// All violations, in the order of the schedule's text.
    pub fn check(&self, schedule: &Schedule) -> Result<Plan, Vec<Violation>> {
        if schedule.rewrites != self.pipeline().rewrites() {
            return Err(vec![Violation::of_whole(Rule::OtherRewrites, self.pipeline().name())]);
        }
        let plan = self.plan(schedule);
        self.check_plan(schedule, &plan)?;
        Ok(plan)
    }

    /// Whether a schedule is legal for the problem that its rewrites lead to.
    pub fn is_legal(&self, schedule: &Schedule) -> bool {
        self.rewritten(&schedule.rewrites).is_ok_and(|problem| problem.check(schedule).is_ok())
    }

    /// Checks the plan of a whole schedule.
    pub(crate) fn check_plan(&self, schedule: &Schedule, plan: &Plan) -> Result<(), Vec<Violation>> {
        let mut checker = Checker::new(self, plan);
        checker.needed_places();
        checker.rules(|_| false);
        match checker.found.is_empty() {
            true => Ok(()),
            false => Err(located(schedule, self.pipeline(), checker.found)),
        }
    }

    /// Returns the plan of some kernels and loops around kernels, if they are legal on their own. Checks the same rules as
    /// [`check`](Problem::check), except that every Func has a place and that the results of other kernels are available in
    /// time.
    ///
    /// # Errors
    /// One of the broken rules.
    pub fn examine<'s>(
        &self,
        inlined: &FuncSet,
        root: impl IntoIterator<Item = &'s RootItem>,
    ) -> Result<Plan, Rule> {
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

/// The input of the rules, and the violations found.
struct Checker<'a> {
    problem: &'a Problem,
    names: Names<'a>,
    plan: &'a Plan,
    /// The Funcs that each nest reads, through its stage and everything inlined or in registers there.
    reads: IdVec<NestId, FuncList>,
    found: Vec<(Path, Rule)>,
    /// The same as a set, to skip duplicates.
    known: AHashSet<(Path, Rule)>,
}

impl<'a> Checker<'a> {
    fn new(problem: &'a Problem, plan: &'a Plan) -> Checker<'a> {
        let reads = plan.nests.values().map(|nest| {
            let inside = |func: FuncId| plan.inlined.contains(func) || nest.nest.registers.contains(&func);
            let mut reads = problem.reads_through(nest.stage(), inside).outside;
            reads.retain(|func| !nest.computes(*func));
            reads
        });
        let (names, reads) = (Names::new(problem.pipeline()), reads.collect());
        Checker { problem, names, plan, reads, found: Vec::new(), known: AHashSet::new() }
    }

    /// Checks the rules that apply to whole schedules and to single kernels, until the violations are
    /// `enough`.
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
        self.plan.inlined.contains(func)
    }

    /// The nests that compute stages of a Func, with their ids.
    fn nests_of(&self, func: FuncId) -> impl Iterator<Item = (NestId, &'a NestPlan)> + use<'a> {
        self.plan.computing(func)
    }

    /// The nests that hold a Func in registers, with its position there.
    fn registers_of(&self, func: FuncId) -> impl Iterator<Item = (&'a NestPlan, usize)> + use<'a> {
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
