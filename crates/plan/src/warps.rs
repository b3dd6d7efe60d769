//! Finds the Funcs that threads exchange within warps: each thread holds one point in a register, and the other
//! threads of its warp read it by shuffles. Neither shared memory nor a barrier is needed.
//!
//! All threads of a warp take part in a shuffle, so shuffles precede the loops and guards of a nest. This leaves
//! indices that follow from the thread's number: along dimensions of which each thread has a single point.

use std::collections::BTreeMap;

use ahash::AHashSet;
use smallvec::SmallVec;
use warploom_lang::ir::{NodeKind, Stage};
use warploom_lang::{ExprId, FuncId};
use warploom_schedule::{LoopKind, NodeSet, Rational, Source, StageRef};
use warploom_target::WARP;

use crate::footprint::{AxisKind, NestFootprint};
use crate::ids::KernelId;
use crate::plan::NestPlan;
use crate::reach::Reach;
use crate::reach::symbol::Symbol;
use crate::trace::Tracer;

/// The most points of a Func that a nest reads by shuffles. Every warp of the block makes them, whereas only the threads
/// with work read shared memory.
const MOST_SHUFFLES: u64 = 4;

/// A nest with its sizes.
type SizedNest<'a> = (&'a NestPlan, &'a NestFootprint);

/// Which dimensions differ between the points of a thread.
type Moving = SmallVec<[bool; 4]>;

/// The thread that holds a point: the sum over some dimensions of the position in the box, times the distance
/// between threads.
struct Holders<'a> {
    start: &'a [Reach],
    lanes: SmallVec<[(usize, i64); 4]>,
}

/// The positions along a dimension that a thread reads: a sum over its digits, plus a range.
struct Positions {
    steps: SmallVec<[(LoopKind, i64); 2]>,
    first: i64,
    last: i64,
}

impl Tracer<'_> {
    /// Finds the Funcs of a kernel that are exchanged within warps, and notes them in the footprints of the nests.
    pub(super) fn exchange_in_warps(
        &mut self,
        kernel: KernelId,
        nests: &mut [Option<NestFootprint>],
        threads: u64,
    ) -> NodeSet {
        let (plan, problem, mut found) = (self.plan, self.problem, NodeSet::default());
        let limits = &problem.device().threads;
        if !threads.is_multiple_of(WARP.into()) || threads > limits.per_block.into() || limits.warp != WARP {
            return found;
        }
        let infos = plan.nests_of(kernel);
        let sized = infos.iter().zip(&*nests).filter_map(|(info, nest)| Some((info, nest.as_ref()?)));
        let sized: Vec<SizedNest<'_>> = sized.collect();
        for info in infos.iter().filter(|info| info.nest.storage.is_shared()) {
            if let Some(StageRef { func, stage: 0 }) = info.stage()
                && self.stays_in_warps(func, &sized)
            {
                found.insert(problem.node(Source::Func(func)));
            }
        }
        drop(sized);
        for (info, nest) in infos.iter().zip(nests) {
            let Some(nest) = nest.as_mut().filter(|_| !found.is_empty()) else { continue };
            let own = info.stage().map(|stage| problem.node(Source::Func(stage.func)));
            nest.exchanged = nest.exchanged.filter(|node| !found.contains(*node));
            let others = nest.reads.iter().filter(|node| found.contains(*node) && Some(*node) != own);
            others.for_each(|node| nest.shuffled.insert(node));
        }
        found
    }

    /// Whether all readers of a Func read only points that threads of their own warp hold.
    fn stays_in_warps(&mut self, func: FuncId, nests: &[SizedNest<'_>]) -> bool {
        let node = self.problem.node(Source::Func(func));
        let Some(holders) = self.holders(func, nests) else { return false };
        let mut readers =
            nests.iter().filter(|(info, nest)| nest.reads.contains(node) && !info.computes(func));
        readers.all(|(info, nest)| self.reads_own_warp(func, &holders, info, nest))
    }

    /// The threads that hold a Func, if all stages agree on them and each thread has one point.
    fn holders<'a>(&self, func: FuncId, nests: &[SizedNest<'a>]) -> Option<Holders<'a>> {
        let stages = || nests.iter().filter(|(info, _)| info.computes(func));
        let (_, first) = stages().next()?;
        let holders = Holders { start: &first.points.dims, lanes: lanes(first)? };
        let decl = &self.problem.pipeline().funcs()[func];
        let whole = stages().count() == decl.stages.len() && decl.types.iter().all(|ty| ty.bytes() >= 4);
        let alike = |(info, nest): &SizedNest<'_>| {
            let mut dims = nest.points.dims.iter().zip(holders.start);
            info.stage().is_some_and(|stage| self.stays_at_its_points(info, stage))
                && (0..decl.dims.len()).all(|d| is_settled(nest, LoopKind::Pure(d)))
                && lanes(nest).is_some_and(|lanes| lanes == holders.lanes)
                && dims.all(|(own, first)| own.starts_like(first))
        };
        (whole && stages().all(alike)).then_some(holders)
    }

    /// Whether the threads of a nest in shared memory access only their own points of the nest's Func.
    fn stays_at_its_points(&self, info: &NestPlan, stage: StageRef) -> bool {
        let pure = self.problem.stage(stage).loops.iter().filter(|kind| matches!(kind, LoopKind::Pure(_)));
        pure.count() == self.problem.pipeline().funcs()[stage.func].dims.len()
            && info.nest.storage.is_shared()
            && !info.nest.numbers.atomic
            && info.nest.numbers.depth.is_none()
            && !self.problem.is_idle(stage)
    }

    /// How often a stage reads a Func at one point, directly and through inlined Funcs.
    fn times_read(&self, func: FuncId, stage: StageRef) -> u64 {
        let mut known = BTreeMap::from([(func, 1)]);
        let times = |stage: StageRef, known: &BTreeMap<FuncId, u64>| {
            let reads = self.problem.stage(stage).points_read.iter().filter_map(|read| known.get(read));
            reads.fold(0, |sum: u64, times| sum.saturating_add(*times))
        };
        // Producers come before their consumers.
        let between = self.plan.inlined.iter().filter(|inlined| (func..stage.func).contains(inlined));
        for inlined in between {
            let times = times(StageRef { func: inlined, stage: 0 }, &known);
            known.insert(inlined, times);
        }
        times(stage, &known)
    }

    /// Whether each thread of a nest reads only points that its own warp holds, at indices that shuffles can have.
    fn reads_own_warp(
        &mut self,
        func: FuncId,
        holders: &Holders<'_>,
        info: &NestPlan,
        nest: &NestFootprint,
    ) -> bool {
        let Some(stage) = info.stage().filter(|_| nest.threads.is_some()) else { return false };
        if !info.nest.registers.is_empty() || !self.indexed_by_settled(func, stage, nest) {
            return false;
        }
        if self.times_read(func, stage) > MOST_SHUFFLES {
            return false;
        }
        let columns = self.point_reads(info, stage, &nest.points, func);
        let read = |(d, _): &(usize, i64)| -> Option<Vec<Positions>> {
            let column = columns.get(*d).filter(|column| !column.is_empty())?;
            column.iter().map(|reach| Positions::of(reach, &holders.start[*d], nest)).collect()
        };
        let Some(read) = holders.lanes.iter().map(read).collect::<Option<Vec<_>>>() else { return false };
        threads(nest).all(|(thread, digits)| {
            let (mut first, mut last) = (0, 0);
            for (positions, (_, distance)) in read.iter().zip(&holders.lanes) {
                let ends = positions.iter().map(|positions| positions.at(&digits));
                let (least, most) = ends.fold((i64::MAX, i64::MIN), |(a, b), (c, d)| (a.min(c), b.max(d)));
                first += least * distance;
                last += most * distance;
            }
            [first, last].iter().all(|holder| holder.div_euclid(WARP.into()) == thread / i64::from(WARP))
        })
    }

    /// Whether a stage, with everything inlined into it, reads a Func only at indices that are the same at all points
    /// of a thread. This is decided by the expressions, as lowering builds them.
    fn indexed_by_settled(&self, func: FuncId, stage: StageRef, nest: &NestFootprint) -> bool {
        let funcs = self.problem.pipeline().funcs();
        let mut body = &funcs[stage.func].stages[stage.stage];
        let dims = 0..funcs[stage.func].dims.len();
        let mut moving: Moving = dims.map(|d| !is_settled(nest, LoopKind::Pure(d))).collect();
        let mut inlined = BTreeMap::new();
        while self.keeps_indices(func, body, &moving, &mut inlined) {
            // Producers come before their consumers, so all readers of the last one are done.
            let Some((last, dims)) = inlined.pop_last() else { return true };
            (body, moving) = (&funcs[last].stages[0], dims);
        }
        false
    }

    /// Whether a stage reads a Func only at indices that do not move, if some of its dimensions do. Adds the
    /// dimensions of Funcs inlined into it that move.
    fn keeps_indices(
        &self,
        func: FuncId,
        body: &Stage,
        moving: &Moving,
        inlined: &mut BTreeMap<FuncId, Moving>,
    ) -> bool {
        let exprs = self.problem.pipeline().exprs();
        let mut moved: AHashSet<ExprId> = AHashSet::new();
        for id in exprs.reachable(body.roots()) {
            let args = exprs[id].args.iter().map(|arg| moved.contains(arg));
            let moves = match exprs[id].kind {
                NodeKind::Call(called, _) if called == func => {
                    if args.into_iter().any(|moves| moves) {
                        return false;
                    }
                    true
                }
                NodeKind::Call(called, _) if self.plan.inlined.contains(called) => {
                    let dims = inlined.entry(called).or_default();
                    dims.resize(exprs[id].args.len(), false);
                    dims.iter_mut().zip(args).for_each(|(dim, moves)| *dim |= moves);
                    true
                }
                NodeKind::Call(..) | NodeKind::Load(_) | NodeKind::RVar(_) => true,
                NodeKind::Var(d) => moving[d as usize],
                _ => args.into_iter().any(|moves| moves),
            };
            if moves {
                moved.insert(id);
            }
        }
        true
    }
}

impl Positions {
    /// An index relative to the `start` of the box that is read; `None` if it is not a sum of the reader's digits.
    fn of(index: &Reach, start: &Reach, reader: &NestFootprint) -> Option<Positions> {
        let mut sum = Sum::default();
        sum.add(start, Rational::integer(-1))?;
        let (mut steps, width) = (SmallVec::new(), index.high.sub(index.low)?.as_integer()?);
        let others = |(symbol, _): &&(Symbol, Rational)| !matches!(symbol, Symbol::Thread(_));
        let terms = index.terms.iter().filter(others).copied().collect();
        sum.add(&Reach { terms, ..index.clone() }, Rational::ONE)?;
        for (symbol, step) in &index.terms {
            if let Symbol::Thread(LoopKind::Pure(e)) = *symbol {
                sum.add(&reader.points.dims[e], *step)?;
                steps.push((LoopKind::Pure(e), step.as_integer()?));
            }
        }
        let first = sum.constant()?;
        Some(Positions { steps, first, last: first + width })
    }

    /// The first and last position for given digits of the reader's thread number.
    fn at(&self, digits: &[(LoopKind, i64)]) -> (i64, i64) {
        let digit = |dim| digits.iter().find(|(known, _)| *known == dim).map_or(0, |(_, digit)| *digit);
        let moved: i64 = self.steps.iter().map(|(dim, step)| step * digit(*dim)).sum();
        (self.first + moved, self.last + moved)
    }
}

/// A sum of symbols.
#[derive(Default)]
struct Sum {
    terms: BTreeMap<Symbol, Rational>,
    offset: Option<Rational>,
}

impl Sum {
    /// Adds a multiple of the first value of a reach; `None` if a clamp or rounding moves it.
    fn add(&mut self, reach: &Reach, factor: Rational) -> Option<()> {
        if !reach.bounded || reach.clamp.is_some() || reach.has_fractions() {
            return None;
        }
        for (symbol, step) in &reach.terms {
            let term = self.terms.entry(*symbol).or_insert(Rational::ZERO);
            *term = term.add(step.mul(factor)?)?;
        }
        let offset = self.offset.unwrap_or(Rational::ZERO);
        self.offset = Some(offset.add(reach.low.mul(factor)?)?);
        Some(())
    }

    /// The value, if no symbol is left.
    fn constant(&self) -> Option<i64> {
        let fixed = self.terms.values().all(|step| step.is_zero());
        self.offset.filter(|_| fixed)?.as_integer()
    }
}

/// Whether each thread of a nest has at most one point along a loop.
pub(super) fn is_settled(nest: &NestFootprint, dim: LoopKind) -> bool {
    let (threads, serial) = nest.share(dim);
    serial == 1 && nest.extent(dim) <= threads
}

/// The dimensions that the threads of a nest share, with the distance between threads; `None` if they share more than
/// dimensions.
fn lanes(nest: &NestFootprint) -> Option<SmallVec<[(usize, i64); 4]>> {
    nest.threads.as_ref()?;
    let mut distance = 1_i64;
    let lanes = nest.axes_of(AxisKind::Lane).map(|axis| {
        let LoopKind::Pure(d) = axis.dim else { return None };
        let before = distance;
        distance = distance.saturating_mul(axis.count);
        Some((d, before))
    });
    lanes.collect()
}

/// The threads of a nest that have a point, with the digits of their numbers.
fn threads(nest: &NestFootprint) -> impl Iterator<Item = (i64, SmallVec<[(LoopKind, i64); 4]>)> {
    let used = nest.thread_count().and_then(|used| i64::try_from(used).ok()).unwrap_or(0);
    (0..used).filter_map(|thread| {
        let (mut rest, mut digits) = (thread, SmallVec::new());
        for axis in nest.axes_of(AxisKind::Lane) {
            let digit = rest % axis.count;
            if digit * axis.step >= axis.extent {
                return None;
            }
            digits.push((axis.dim, digit));
            rest /= axis.count;
        }
        Some((thread, digits))
    })
}
