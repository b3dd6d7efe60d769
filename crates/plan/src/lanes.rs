//! Funcs in registers that the threads of a warp share: each lane computes its own part, and reads the rest by shuffles.
//!
//! The threads of a nest with `lanes` are rows of 32 along one of its dimensions, so a warp is one row. A Func in its registers
//! whose points move by a constant step from lane to lane overlaps between lanes if a lane needs more points than the step.
//! Each lane then computes only the first `step` points of what it needs. Point `i` of a lane is point `i % step` of the lane
//! that is `i / step` further on, so the shuffles that complete a lane's points have constant distances.

use warploom_lang::FuncId;
use warploom_schedule::{LoopKind, Nest, Rational};
use warploom_target::WARP;

use crate::footprint::{AxisKind, Footprint, NestFootprint, Spread, StagedFootprint, ThreadLoop};
use crate::ids::KernelId;
use crate::problem::Problem;
use crate::reach::Reach;
use crate::reach::symbol::Symbol;
use crate::trace::Tracer;
use crate::warps::is_settled;

/// The fewest bytes that a shuffle exchanges.
const LEAST_BYTES: usize = 4;

/// Why the lanes of a warp cannot share a Func of which they need the same points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unshared {
    /// Its points do not move by a constant number from lane to lane, along one dimension.
    Index,
    /// It has updates.
    Stages,
    /// Its elements have fewer bytes than a shuffle exchanges.
    Bytes(usize),
}

/// The dimension of a nest with `lanes` along which a warp is a row of threads.
pub(super) fn lane_loop(nest: &Nest, threads: &[ThreadLoop]) -> Option<LoopKind> {
    let first = threads.first().filter(|_| nest.numbers.lanes)?;
    let is_row = matches!(first.dim, LoopKind::Pure(_)) && first.threads == i64::from(WARP);
    is_row.then_some(first.dim)
}

impl Problem {
    /// How lanes along a dimension of a nest share a Func, given the points that each needs; `None` if they need nothing in
    /// common that a single lane could compute for others.
    pub(super) fn spread(
        &self,
        func: FuncId,
        lane: LoopKind,
        points: &[Reach],
        lowest: &[Vec<Reach>],
    ) -> Result<Option<Spread>, Unshared> {
        let symbol = Symbol::Thread(lane);
        let mut moving = points.iter().enumerate().filter(|(_, reach)| moves_with(reach, symbol, lowest));
        let Some((dim, reach)) = moving.next() else { return Ok(None) };
        let step = constant_step(reach, symbol).filter(|_| moving.next().is_none());
        let step = step.ok_or(Unshared::Index)?;
        if reach.extent() <= step {
            return Ok(None);
        }
        let decl = &self.pipeline().funcs()[func];
        if decl.stages.len() > 1 {
            return Err(Unshared::Stages);
        }
        match decl.types.iter().map(|ty| ty.bytes()).find(|bytes| *bytes < LEAST_BYTES) {
            Some(bytes) => Err(Unshared::Bytes(bytes)),
            None => Ok(Some(Spread { dim, step })),
        }
    }
}

impl Tracer<'_> {
    /// Finds the values of threads that lanes which share registers compute, and notes in the footprints of all their stages that
    /// lanes without a point compute the last one.
    pub(super) fn compute_in_all_lanes(&self, kernel: KernelId, nests: &mut [Option<NestFootprint>]) {
        let infos = self.plan.nests_of(kernel);
        for number in 0..infos.len() {
            let Some(lane) = nests[number].as_ref().and_then(|nest| nest.lanes) else { continue };
            let Some(func) = infos[number].stage().map(|stage| stage.func) else { continue };
            let of_func = || (0..infos.len()).filter(|other| infos[*other].computes(func));
            let fits = |other: usize| {
                let (info, nest) = (&infos[other], nests[other].as_ref()?);
                let alike = nest.lanes == Some(lane) || nest.registers.is_empty();
                let row = nest.axes_of(AxisKind::Lane).next()?;
                let whole = (row.dim, row.count) == (lane, i64::from(WARP)) && is_settled(nest, lane);
                Some(info.nest.storage.is_private() && nest.slides.is_none() && alike && whole)
            };
            let all = of_func().count() == self.problem.pipeline().funcs()[func].stages.len();
            if all && of_func().all(|other| fits(other) == Some(true)) {
                let of_func: Vec<usize> = of_func().collect();
                for other in of_func {
                    nests[other].iter_mut().for_each(|nest| nest.all_lanes = Some(lane));
                }
            }
        }
    }
}

impl Spread {
    /// The points that a lane computes itself, of those that it needs.
    pub(super) fn own(self, points: &[Reach]) -> Vec<Reach> {
        let mut own = points.to_vec();
        let reach = &mut own[self.dim];
        reach.high = reach.low.add(Rational::integer(self.step - 1)).unwrap_or(reach.high);
        own
    }

    /// Whether lane 0 starts where the points of the block start, so that the lanes of a warp hold those of the block.
    pub(super) fn starts_with_block(self, thread: &StagedFootprint, block: &Footprint) -> bool {
        let (own, whole) = (&thread.points.dims[self.dim], &block.dims[self.dim]);
        let terms = own.terms.iter().filter(|(symbol, _)| !matches!(symbol, Symbol::Thread(_)));
        let first = Reach { terms: terms.copied().collect(), ..own.clone() };
        match (first.terms.is_empty(), whole.terms.is_empty()) {
            (true, true) => first.low == Rational::integer(whole.min),
            _ => first.starts_like(whole),
        }
    }
}

/// The number of points by which a reach moves from lane to lane, if that is all that positions it within the block.
fn constant_step(reach: &Reach, symbol: Symbol) -> Option<i64> {
    if !reach.bounded || reach.clamp.is_some() || reach.has_fractions() {
        return None;
    }
    let is_thread = |symbol: Symbol| matches!(symbol, Symbol::Thread(_));
    let forward = reach.terms.iter().all(|(known, step)| !is_thread(*known) || *step > Rational::ZERO);
    let (_, step) = reach.terms.iter().find(|(known, _)| *known == symbol)?;
    step.as_integer().filter(|_| forward)
}

/// Whether a reach depends on a symbol, directly or through [`Symbol::Lowest`].
fn moves_with(reach: &Reach, symbol: Symbol, lowest: &[Vec<Reach>]) -> bool {
    reach.terms.iter().any(|(known, _)| match *known {
        Symbol::Lowest(number) => lowest[number].iter().any(|part| moves_with(part, symbol, lowest)),
        known => known == symbol,
    })
}
