//! A schedule without its numbers.

use std::collections::BTreeSet;

use thiserror::Error;
use warploom_plan::{Problem, RewrittenError, Rule, Violation, size};
use warploom_schedule::{Kernel, NodeSet, ReductionTile, RootItem, Schedule};
use warploom_strategy::{Axis, Coordinate};

use crate::options::Options;
use crate::points::Open;
use crate::points::find::Finder;
use crate::points::kernel::{Context, KernelTemplate};
use crate::points::knob::Knob;
use crate::points::skeleton::Skeleton;
use crate::space::SearchSpace;

/// The most nodes of a kernel that is given to the kernel compiler, unless the original schedule has more. A matrix
/// kernel that unrolls 4096 products has 50 thousand.
const MOST_NODES: u64 = 65_536;

/// Why there is no template of a schedule.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum TemplateError {
    /// A rewrite of the schedule is impossible.
    #[error(transparent)]
    Rewritten(#[from] RewrittenError),
    /// The schedule breaks a rule.
    #[error("only a legal schedule has a template, and this one is not: {0}")]
    Illegal(Box<Violation>),
    /// An axis was named that the template does not have.
    #[error("the template has no axis `{name}`; there are {known}")]
    NoAxis {
        /// The requested name.
        name: String,
        /// The axes that it has.
        known: String,
    },
    /// There is no schedule.
    #[error("a space needs at least one schedule")]
    Empty,
}

/// Why the schedule of a point cannot run.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Refusal {
    /// The point belongs to another space.
    #[error("the point is not on the axes of the template")]
    Elsewhere,
    /// The schedule breaks a rule, or exceeds a limit of the device.
    #[error(transparent)]
    Rule(#[from] Rule),
    /// A kernel would be too large to compile.
    #[error("the largest kernel has {nodes} operations after unrolling; the limit is {limit}")]
    CodeSize {
        /// The operations of the largest kernel.
        nodes: u64,
        /// The most that are compiled.
        limit: u64,
    },
}

/// A schedule without its numbers: axes for the numbers that were found in it, and schedules for the points on these
/// axes.
///
/// The rewrites of a pipeline, inlined Funcs, kernels, nests with their storage, and loops around kernels and over blocks
/// are as in the schedule that it was made from.
#[derive(Debug)]
pub struct Template {
    /// The problem of the rewritten pipeline.
    problem: Problem,
    origin: Schedule,
    skeleton: Skeleton,
    kernels: Vec<KernelTemplate>,
    axes: Vec<Axis>,
    /// The kernel and the knob of each axis.
    knobs: Vec<(usize, usize)>,
    most_nodes: u64,
}

impl Template {
    /// The template of a legal schedule, and of all schedules that differ from it only in numbers.
    ///
    /// # Errors
    /// If the schedule is not legal.
    pub fn of(problem: &Problem, schedule: &Schedule, open: Open) -> Result<Template, TemplateError> {
        let problem = problem.rewritten(&schedule.rewrites)?;
        if let Err(broken) = problem.check(schedule) {
            return Err(broken
                .into_iter()
                .next()
                .map_or(TemplateError::Empty, |first| TemplateError::Illegal(Box::new(first))));
        }
        let kernels = kernel_templates(&problem, schedule, open);
        let mut knobs = Vec::new();
        for (number, kernel) in kernels.iter().enumerate() {
            let all = kernel.knobs.iter().zip(&kernel.axes).enumerate();
            let shown = all.filter(|(_, (knob, axis))| is_open(knob, open) && has_several(axis));
            knobs.extend(shown.map(|(knob, _)| (number, knob)));
        }
        let axes = knobs.iter().map(|(kernel, knob)| kernels[*kernel].axes[*knob].clone()).collect();
        let most_nodes = size(&problem, schedule).max(MOST_NODES);
        let (origin, skeleton) = (schedule.clone(), Skeleton::new(schedule));
        Ok(Template { problem, origin, skeleton, kernels, axes, knobs, most_nodes })
    }

    /// The same template with only the named axes. On all other axes, its points have the values of the original
    /// schedule.
    ///
    /// # Errors
    /// If it has no axis of a name.
    pub fn only(mut self, names: &[String]) -> Result<Template, TemplateError> {
        if let Some(name) = names.iter().find(|name| !self.axes.iter().any(|axis| axis.name() == *name)) {
            let known: Vec<&str> = self.axes.iter().map(Axis::name).collect();
            return Err(TemplateError::NoAxis { name: name.clone(), known: known.join(", ") });
        }
        let (axes, knobs) = (std::mem::take(&mut self.axes), std::mem::take(&mut self.knobs));
        let kept =
            axes.into_iter().zip(knobs).filter(|(axis, _)| names.iter().any(|name| name == axis.name()));
        (self.axes, self.knobs) = kept.unzip();
        Ok(self)
    }

    /// The axes, those of each kernel together.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The problem that its schedules are for: that of the rewritten pipeline.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The schedule that the template was made from.
    pub fn origin(&self) -> &Schedule {
        &self.origin
    }

    /// The position of that schedule on all axes. Numbers that are not factors have the nearest position, which stands
    /// for the schedule itself.
    pub fn start(&self) -> Vec<Coordinate> {
        self.knobs.iter().map(|(kernel, knob)| self.kernels[*kernel].start[*knob].clone()).collect()
    }

    /// Whether a schedule has the same structure. Reduction variables that blocks or threads share in this template may
    /// run in each thread of the schedule.
    pub fn is_of(&self, schedule: &Schedule) -> bool {
        self.skeleton.covers(&Skeleton::new(schedule))
    }

    /// The place of a schedule. `None` if it has another structure, or numbers or a notation that no place produces.
    pub fn place(&self, schedule: &Schedule) -> Option<Vec<Coordinate>> {
        if !self.is_of(schedule) {
            return None;
        }
        let kernels = self.kernels.iter().zip(schedule.kernels()).map(|(template, kernel)| {
            match *kernel == template.origin {
                true => Some(template.start.clone()),
                false => template.read(self.context(), kernel),
            }
        });
        let read: Vec<Vec<Coordinate>> = kernels.collect::<Option<_>>()?;
        let place: Vec<Coordinate> =
            self.knobs.iter().map(|(kernel, knob)| read[*kernel][*knob].clone()).collect();
        (self.built(&place) == *schedule).then_some(place)
    }

    /// The schedule at a place on all axes.
    ///
    /// # Errors
    /// If the place is not on the axes, or if the device cannot run the schedule.
    pub fn schedule(&self, at: &[Coordinate]) -> Result<Schedule, Refusal> {
        if at.len() != self.axes.len() || !self.axes.iter().zip(at).all(|(axis, at)| is_on(axis, at)) {
            return Err(Refusal::Elsewhere);
        }
        let schedule = self.built(at);
        let pairs = schedule.root.iter().zip(&self.origin.root);
        let changed: Vec<&RootItem> = pairs.filter(|(new, old)| new != old).map(|(new, _)| new).collect();
        if !changed.is_empty() {
            // The rules that concern several kernels do not depend on numbers.
            self.problem.examine(&schedule.inlined_set(), changed)?;
            let (nodes, limit) = (size(&self.problem, &schedule), self.most_nodes);
            if nodes > limit {
                return Err(Refusal::CodeSize { nodes, limit });
            }
        }
        Ok(schedule)
    }

    fn context(&self) -> Context<'_> {
        Context { problem: &self.problem, inlined: &self.origin.inlined }
    }

    fn built(&self, at: &[Coordinate]) -> Schedule {
        let mut places: Vec<Vec<Coordinate>> =
            self.kernels.iter().map(|kernel| kernel.start.clone()).collect();
        for ((kernel, knob), at) in self.knobs.iter().zip(at) {
            places[*kernel][*knob] = at.clone();
        }
        let mut schedule = self.origin.clone();
        for ((kernel, template), at) in schedule.kernels_mut().zip(&self.kernels).zip(&places) {
            *kernel = template.kernel(self.context(), at);
        }
        schedule
    }
}

fn kernel_templates(problem: &Problem, schedule: &Schedule, open: Open) -> Vec<KernelTemplate> {
    let options = Options::default();
    let space = SearchSpace::new(problem, &options);
    let mut inlined: NodeSet = space.no_nodes();
    schedule.inlined.iter().for_each(|func| inlined.insert(space.dag.func_node(*func)));
    let context = Context { problem, inlined: &schedule.inlined };
    let finder = Finder { space: &space, context, inlined: &inlined, open };
    let template = |(around, kernel): (Vec<ReductionTile>, &Kernel)| finder.template(&around, kernel);
    kernels_in(&schedule.root, &[]).into_iter().map(template).collect()
}

/// All kernels in execution order, each with the loops around it.
fn kernels_in<'s>(root: &'s [RootItem], around: &[ReductionTile]) -> Vec<(Vec<ReductionTile>, &'s Kernel)> {
    let inside = |item: &'s RootItem| match item {
        RootItem::Kernel(kernel) => vec![(around.to_vec(), &**kernel)],
        RootItem::Around(loops) => kernels_in(&loops.body, &[around, &loops.loops].concat()),
    };
    root.iter().flat_map(inside).collect()
}

fn is_open(knob: &Knob, open: Open) -> bool {
    match knob {
        Knob::Tile { .. } | Knob::Reduction(_) => true,
        Knob::Order { .. } => open.orders,
        Knob::Unroll(_) | Knob::Word(_) | Knob::InputCopy(_) | Knob::SharedMapping(_) => open.rest,
    }
}

fn has_several(axis: &Axis) -> bool {
    match axis {
        Axis::Factors { product, slots, .. } => *product > 1 && *slots > 1,
        Axis::Order { len, .. } | Axis::Choice { len, .. } => *len > 1,
        Axis::Numbers { values, .. } => values.len() > 1,
    }
}

/// Whether an axis has this value.
fn is_on(axis: &Axis, at: &Coordinate) -> bool {
    match (axis, at) {
        (Axis::Factors { product, slots, .. }, Coordinate::Factors(factors)) => {
            let multiplied = factors.iter().try_fold(1u64, |product, factor| product.checked_mul(*factor));
            factors.len() == *slots && multiplied == Some(*product)
        }
        (Axis::Order { len, .. }, Coordinate::Order(order)) => {
            let distinct: BTreeSet<usize> = order.iter().map(|member| usize::from(*member)).collect();
            order.len() == *len && distinct.into_iter().eq(0..*len)
        }
        (Axis::Numbers { values, .. }, Coordinate::Index(position)) => usize::from(*position) < values.len(),
        (Axis::Choice { len, .. }, Coordinate::Index(position)) => usize::from(*position) < *len,
        _ => false,
    }
}
