//! Random schedules: legal for any pipeline, with bounded work and size, and as diverse as the rules
//! allow.

pub(crate) mod draw;
mod estimate;
pub(crate) mod facts;
mod kernels;
mod place;
mod rewrites;
pub(crate) mod tiles;
mod warps;

use std::collections::BTreeSet;

use warploom_lang::FuncId;
use warploom_schedule::{Item, Nest, RootItem, Schedule, StageRef};

use crate::decisions::DECISIONS;
use crate::plan::Plan;
use crate::problem::Problem;
use crate::random::draw::Draw;
use crate::random::estimate::Estimator;
use crate::random::facts::Facts;

pub use estimate::{size, work};

/// The maximum [`work`] of a random schedule, as a multiple of that of the default schedule.
pub const MAX_WORK: f64 = 8.0;

/// The maximum [`size`] of a random schedule's kernels, unless a single stage is larger.
pub const MAX_SIZE: u64 = 20_000;

/// The maximum number of points of a stage in unrolled loops.
const MAX_UNROLLED: u64 = 64;

/// The probability that a word is set where it is possible, unless its decision says otherwise.
pub(crate) const WORD: f64 = 0.25;

/// The probability that a schedule should have a Func in a block, and likewise one in a thread.
const WISH: f64 = 0.95;

impl Problem {
    /// A schedule determined by a seed: legal, with at most [`MAX_WORK`] times the work of
    /// [`Problem::default_schedule`], and with kernels of at most [`MAX_SIZE`] nodes.
    ///
    /// Generation starts with one kernel per stage and decides one Func at a time, consumers first. Each decision
    /// is an edit of the tree, which is kept only if the tree stays legal and within its bounds, so any sequence
    /// of draws ends in a schedule. The same seed gives the same schedule on every machine.
    ///
    /// ```
    /// use warploom_lang::*;
    /// use warploom_plan::Problem;
    /// use warploom_schedule::Schedule;
    /// use warploom_target::Device;
    /// let (x, y) = vars!(x, y);
    /// let input = Input::f32("input", 2);
    /// let row = func("row", (x, y), input.at((x, y)) + input.at((x + 1, y)));
    /// let blur = func("blur", (x, y), row.at((x, y)) + row.at((x, y + 1)));
    /// let pipeline = Pipeline::new("blur", [blur])?;
    /// let request = Realisation::new(&pipeline)
    ///     .input("input", Region::of_extents(&[101, 101]))
    ///     .output("blur", Region::of_extents(&[100, 100]));
    /// let problem = Problem::new(&pipeline, &request, &Device::preset("h200")?)?;
    /// for seed in 0..10 {
    ///     assert!(problem.check(&problem.random_schedule(seed)).is_ok());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn random_schedule(&self, seed: u64) -> Schedule {
        let problem = self;
        let facts = Facts::new(problem);
        let estimator = Estimator::new(problem);
        let measure = |schedule: &Schedule| Measures::of(&estimator, &problem.plan(schedule));
        let default = problem.default_schedule();
        let most = MAX_WORK * measure(&default).work;
        let mut start = one_kernel_a_stage(problem, &BTreeSet::new());
        // If only a small part of something large is read, start with the inlining of the default schedule.
        if measure(&start).work > most {
            start = one_kernel_a_stage(problem, &default.inlined);
        }
        let size = MAX_SIZE.max(measure(&start).size);
        let bounds = Measures { work: most, size, unrolled: MAX_UNROLLED };
        // Mix in the pipeline, so that the same seed does not give all pipelines the same tiles.
        let mut draw = Draw::new(seed ^ problem.pipeline().structural_hash() as u64);
        let wishes = Wishes { block: draw.chance(WISH), thread: draw.chance(WISH) };
        let mut generator =
            Generator { facts: &facts, estimator: &estimator, bounds, draw, wishes, schedule: start };
        generator.decide();
        generator.schedule
    }
}

/// A schedule with one kernel of one block per stage that is not inlined.
fn one_kernel_a_stage(problem: &Problem, inlined: &BTreeSet<FuncId>) -> Schedule {
    let pipeline = problem.pipeline();
    let funcs = pipeline.funcs().keys().filter(|func| !inlined.contains(func));
    let stages = funcs.flat_map(|func| problem.defined_stages(func));
    let (rewrites, root) = (pipeline.rewrites().to_vec(), stages.map(RootItem::single).collect());
    Schedule { rewrites, inlined: inlined.clone(), root }
}

/// The bounded quantities of a schedule.
struct Measures {
    work: f64,
    size: u64,
    /// Points of one nest in unrolled loops.
    unrolled: u64,
}

impl Measures {
    fn of(estimator: &Estimator<'_>, plan: &Plan) -> Measures {
        Measures {
            work: estimator.work(plan),
            size: estimator.size(plan),
            unrolled: plan.nests.values().map(estimate::unrolled).max().unwrap_or(1),
        }
    }
}

/// Levels at which the schedule should compute something but does not yet.
struct Wishes {
    block: bool,
    thread: bool,
}

/// The state of the generation: a legal schedule and what the edits need.
pub struct Generator<'a> {
    pub(crate) facts: &'a Facts<'a>,
    estimator: &'a Estimator<'a>,
    bounds: Measures,
    pub(crate) draw: Draw,
    wishes: Wishes,
    pub(crate) schedule: Schedule,
}

/// When words are drawn: each turn is that of the decisions which its place suits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// Of a kernel.
    Kernel(StageRef),
    /// Of the nests of a kernel, as they were placed.
    Nests(StageRef),
    /// Of the updates of a kernel, which may get other threads.
    Updates(StageRef),
    /// Of a nest of a kernel with Funcs in registers, which may get other threads.
    Registers(StageRef, Item),
    /// Of what depends on all other decisions.
    Last,
}

impl Generator<'_> {
    /// Decides on every Func, consumers first, and then on inputs.
    fn decide(&mut self) {
        for func in self.facts.problem.pipeline().funcs().keys().rev() {
            if !self.schedule.inlined.contains(&func) {
                self.place(func);
            }
        }
        for input in self.facts.problem.pipeline().inputs().keys() {
            self.stage_input(input);
        }
        self.words();
    }

    /// Sets words, after everything else is decided.
    fn words(&mut self) {
        let kernels: Vec<StageRef> = self.schedule.kernels().map(|kernel| kernel.stage).collect();
        for kernel in &kernels {
            self.turn(Turn::Kernel(*kernel));
            self.turn(Turn::Nests(*kernel));
        }
        for kernel in &kernels {
            self.turn(Turn::Updates(*kernel));
        }
        self.warps();
        for kernel in kernels {
            for item in self.with_registers(kernel) {
                self.turn(Turn::Registers(kernel, item));
            }
        }
        self.turn(Turn::Last);
    }

    fn turn(&mut self, turn: Turn) {
        DECISIONS.iter().for_each(|decision| decision.draw(self, turn));
    }

    /// The nests of a kernel that have Funcs in registers.
    fn with_registers(&self, stage: StageRef) -> Vec<Item> {
        let kernel = self.schedule.kernels().find(|kernel| kernel.stage == stage);
        let nests = kernel.into_iter().flat_map(|kernel| kernel.nests());
        nests.filter(|nest| !nest.registers.is_empty()).map(|nest| nest.item).collect()
    }

    /// Changes a nest, if that is legal.
    pub(crate) fn change(&mut self, kernel: StageRef, item: Item, change: impl Fn(&mut Nest)) -> bool {
        let mut next = self.schedule.clone();
        let nest = next.kernel_mut(kernel).and_then(|kernel| kernel.nest_mut(item));
        nest.into_iter().for_each(change);
        self.keep(next)
    }

    /// Replaces the schedule with `next`, if that is legal and within bounds.
    pub(crate) fn keep(&mut self, next: Schedule) -> bool {
        let (problem, bounds) = (self.facts.problem, &self.bounds);
        let plan = problem.plan(&next);
        let measures = Measures::of(self.estimator, &plan);
        let kept = measures.work <= bounds.work
            && measures.size <= bounds.size
            && measures.unrolled <= bounds.unrolled
            && problem.check_plan(&next, &plan).is_ok();
        if kept {
            self.schedule = next;
        }
        kept
    }
}
