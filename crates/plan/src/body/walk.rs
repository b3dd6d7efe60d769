//! How a nest visits the points of its stage: its loops as axes, its variables as sums over the
//! axes.

mod registers;
mod tiles;

pub use registers::RegisterStage;

use std::collections::BTreeMap;

use smallvec::{SmallVec, smallvec};
use warploom_schedule::{LoopKind, common_denominator};

use crate::body::walk::tiles::Tiles;
use crate::body::warps::{Digit, Lanes, WARP, quotient};
use crate::footprint::{self, NestFootprint};
use crate::reach::Reach;
use crate::reach::symbol::Symbol;

/// The kind of loop that an axis is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AxisKind {
    /// Iterations of a loop around the kernel. Counts are averages over them.
    Launch,
    /// Blocks of the grid. Counts are averages over them.
    Block,
    /// A loop inside the block, around nests.
    Over,
    /// A digit of the thread's index.
    Lane,
    /// Rounds in which the threads move on to the next points.
    Round,
    /// A reduction variable inside a thread.
    Reduce,
    /// The groups of a thread's points, unrolled, with those of other threads between them.
    Group,
    /// Points of a thread's tile.
    Serial {
        /// Whether it divides a reduction variable.
        reduction: bool,
        /// Whether it is unrolled.
        unrolled: bool,
    },
}

impl AxisKind {
    /// Whether it is outside the block.
    pub fn is_outside(self) -> bool {
        matches!(self, AxisKind::Launch | AxisKind::Block)
    }

    /// Whether it iterates over a reduction variable inside one thread.
    pub fn reduces(self) -> bool {
        matches!(self, AxisKind::Reduce | AxisKind::Serial { reduction: true, .. })
    }

    /// Whether it is unrolled.
    pub fn is_unrolled(self) -> bool {
        matches!(self, AxisKind::Group | AxisKind::Serial { unrolled: true, .. })
    }
}

/// A loop, or a digit of the thread's index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Axis {
    /// Its kind.
    pub kind: AxisKind,
    /// The first value.
    pub start: i64,
    /// The number of values.
    pub count: i64,
}

/// The number of an axis.
pub type AxisId = u32;

/// The most cases of a walk. Of more dimensions that tiles cut, the rest counts as whole.
const MOST_CASES: usize = 729;

/// `floor((constant + steps · axes) / den)`
#[derive(Clone, Debug)]
pub struct Linear {
    /// The sum where all axes are 0.
    pub constant: i64,
    /// At least 1.
    pub den: i64,
    /// The number of each axis, and the change of the sum per step.
    pub steps: SmallVec<[(AxisId, i64); 4]>,
}

impl Linear {
    /// A number.
    pub fn constant(constant: i64) -> Linear {
        Linear { constant, den: 1, steps: SmallVec::new() }
    }

    /// Adds a term for an axis, with a whole number of steps.
    fn move_by(&mut self, axis: Option<AxisId>, step: i64) {
        if let Some(axis) = axis {
            self.steps.push((axis, step * self.den));
        }
    }

    /// The change of the sum per step of an axis.
    fn step(&self, axis: AxisId) -> i64 {
        self.steps.iter().filter(|(own, _)| *own == axis).map(|(_, step)| step).sum()
    }

    /// The smallest and largest value over all axes.
    pub fn range(&self, axes: &[Axis]) -> (i64, i64) {
        let (mut low, mut high) = (self.constant, self.constant);
        for (axis, step) in &self.steps {
            let Axis { start, count, .. } = axes[*axis as usize];
            let (a, b) = (step * start, step * (start + count - 1));
            low += a.min(b);
            high += a.max(b);
        }
        (low.div_euclid(self.den), high.div_euclid(self.den))
    }

    /// The value where the axes are at `place`.
    pub fn at(&self, place: &[i64]) -> i64 {
        quotient(self.numerator(place), self.den)
    }

    /// The sum before the division.
    pub fn numerator(&self, place: &[i64]) -> i64 {
        let steps = self.steps.iter().map(|(axis, step)| step * place[*axis as usize]);
        self.constant + steps.sum::<i64>()
    }
}

/// Axis numbers, each with the change per step.
type Steps = SmallVec<[(AxisId, i64); 2]>;

/// The loops around a nest: blocks, loops around the kernel and loops inside the block.
#[derive(Clone, Default, Debug)]
pub struct Around {
    /// Outermost first.
    pub axes: SmallVec<[Axis; 16]>,
    /// The symbols in footprints, as sums over axes.
    symbols: SmallVec<[(Symbol, Steps); 6]>,
}

impl Around {
    /// Enters a loop. A loop that runs once gets no axis.
    pub fn enter(&mut self, symbol: Symbol, kind: AxisKind, start: i64, count: i64) {
        if let Some(axis) = self.add(kind, start, count) {
            self.symbols.push((symbol, smallvec![(axis, 1)]));
        }
    }

    /// The current depth, for [`leave`](Around::leave).
    pub fn depth(&self) -> (usize, usize) {
        (self.axes.len(), self.symbols.len())
    }

    /// Leaves all loops entered since that depth.
    pub fn leave(&mut self, (axes, symbols): (usize, usize)) {
        self.axes.truncate(axes);
        self.symbols.truncate(symbols);
    }

    fn add(&mut self, kind: AxisKind, start: i64, count: i64) -> Option<AxisId> {
        (count > 1 || start > 0).then(|| {
            self.axes.push(Axis { kind, start, count });
            (self.axes.len() - 1) as AxisId
        })
    }

    fn symbol(&self, symbol: Symbol) -> &[(AxisId, i64)] {
        self.symbols.iter().find(|(known, _)| *known == symbol).map_or(&[], |(_, steps)| steps)
    }

    /// The first value of a reach away from clamps. `lowest` is the table that [`Symbol::Lowest`]
    /// indexes.
    pub fn lowest(&self, reach: &Reach, lowest: &[Vec<Reach>]) -> Linear {
        self.first(reach, lowest, &mut BTreeMap::new())
    }

    /// Like `lowest`, with a cache of the first values of [`Symbol::Lowest`].
    fn first(
        &self,
        reach: &Reach,
        lowest: &[Vec<Reach>],
        known: &mut BTreeMap<usize, Option<Linear>>,
    ) -> Linear {
        if reach.terms.is_empty() {
            return Linear::constant(reach.min);
        }
        let terms = || reach.terms.iter();
        let den = common_denominator(terms().map(|(_, step)| *step).chain([reach.low]));
        let scaled = |part: warploom_schedule::Rational| part.numerator() * (den / part.denominator());
        let mut sum = Linear { constant: scaled(reach.low) + den - 1, den, steps: SmallVec::new() };
        for (symbol, step) in terms() {
            let step = scaled(*step);
            if let Symbol::Lowest(number) = symbol {
                if !known.contains_key(number) {
                    // Away from clamps all of them move alike, so the same one is always the first.
                    let parts = lowest[*number].iter().map(|reach| self.first(reach, lowest, known));
                    let first = parts.min_by_key(|part| part.constant.div_euclid(part.den));
                    known.insert(*number, first);
                }
                if let Some(first) = &known[number] {
                    sum.constant += step * first.constant.div_euclid(first.den);
                    sum.steps.extend(first.steps.iter().map(|(axis, own)| (*axis, step * own / first.den)));
                }
                continue;
            }
            sum.steps.extend(self.symbol(*symbol).iter().map(|(axis, times)| (*axis, step * times)));
        }
        sum
    }
}

/// A set of threads that are active together, and the ranges of the other axes meanwhile.
#[derive(Clone, Debug)]
pub struct Case {
    /// Axes with a restricted range: number, first value, number of values.
    pub limits: SmallVec<[(AxisId, i64, i64); 3]>,
    /// Active threads, summed over all rounds.
    pub active: f64,
    /// Warps with at least one active thread.
    pub warps: f64,
}

/// The cases of a walk.
pub type Cases = SmallVec<[Case; 2]>;

/// The axes, variables and active threads of a nest.
///
/// The search makes one for each nest of each candidate and moves it several times, so its lists are short.
#[derive(Clone, Debug)]
pub struct Walk {
    /// Its axes, those around the nest first.
    pub around: Around,
    /// The variables of the stage: dimensions, then reduction variables.
    pub vars: SmallVec<[Linear; 5]>,
    /// The number of values of each variable in one run of the nest.
    pub extents: SmallVec<[i64; 6]>,
    /// The smallest and the largest value of each variable in all runs.
    pub ranges: SmallVec<[(i64, i64); 6]>,
    /// The digits of the thread's index (of the point's index in a flat loop), the fastest first:
    /// axis and radix.
    pub digits: SmallVec<[(AxisId, i64); 4]>,
    /// The number of digit combinations.
    pub total: i64,
    /// Threads per block.
    pub threads: i64,
    /// Which threads are active, and where.
    pub cases: Cases,
    /// The tiles of threads along each dimension.
    tiles: SmallVec<[Tiles; 3]>,
    /// Axes before this one are outside the nest.
    pub own_axes: usize,
    /// Whether the cases describe the active threads exactly.
    pub exact: bool,
    /// Whether every unrolled point has a guard, because the tiles do not divide the box.
    pub guarded: bool,
}

/// A part of a dimension on which the same threads are active.
#[derive(Clone, Copy)]
struct Part {
    round: (i64, i64),
    active: i64,
    serial: (i64, i64),
}

/// The parts of a dimension of `extent` points: the whole rounds and the remainder.
fn parts(extent: i64, threads: i64, serial: i64) -> SmallVec<[Part; 3]> {
    let full = extent / (threads * serial);
    let rest = extent - full * threads * serial;
    let (whole, cut) = (rest / serial, rest % serial);
    let all = [
        Part { round: (0, full), active: threads, serial: (0, serial) },
        Part { round: (full, 1), active: whole + 1, serial: (0, cut) },
        Part { round: (full, 1), active: whole, serial: (cut, serial - cut) },
    ];
    all.into_iter().filter(|part| part.round.1 > 0 && part.active > 0 && part.serial.1 > 0).collect()
}

/// The axes of one variable.
#[derive(Clone, Copy)]
struct Shared {
    kind: LoopKind,
    lane: Option<AxisId>,
    round: Option<AxisId>,
    serial: Option<AxisId>,
    extent: i64,
    threads: i64,
    points: i64,
}

impl Walk {
    /// The walk of a nest inside `around`, over its points.
    pub fn new(around: Around, footprint: &NestFootprint, threads: i64, lowest: &[Vec<Reach>]) -> Walk {
        Walk::over(around, footprint, None, threads, lowest)
    }

    /// The walk of a nest. Along the `whole` dimension all threads take part, also those without points.
    fn over(
        mut around: Around,
        footprint: &NestFootprint,
        whole: Option<LoopKind>,
        threads: i64,
        lowest: &[Vec<Reach>],
    ) -> Walk {
        let own_axes = around.axes.len();
        let reaches = || footprint.points.dims.iter().chain(&footprint.domain);
        let vars = reaches().map(|reach| around.lowest(reach, lowest)).collect();
        around.symbols.retain(|(symbol, _)| !matches!(symbol, Symbol::Thread(_)));
        let loops = footprint.threads.as_deref().unwrap_or_default();
        let mut walk = Walk {
            around,
            vars,
            extents: reaches().map(|_| 1).collect(),
            ranges: reaches().map(|reach| (reach.min, reach.max)).collect(),
            digits: SmallVec::new(),
            total: 1,
            threads,
            cases: SmallVec::new(),
            tiles: SmallVec::new(),
            own_axes,
            exact: true,
            guarded: loops.iter().any(|dim| dim.serial > 1 && dim.extent % (dim.threads * dim.serial) != 0),
        };
        let shared = walk.enter(footprint, whole);
        walk.divide(&shared);
        walk.tiles = shared.iter().filter_map(Tiles::of).collect();
        walk.count_active();
        walk
    }

    /// Enters the axes of a nest and returns those of each variable.
    fn enter(&mut self, footprint: &NestFootprint, whole: Option<LoopKind>) -> SmallVec<[Shared; 6]> {
        let dims = footprint.points.dims.len();
        let flat = footprint.threads.is_none();
        let number = |kind: LoopKind| match kind {
            LoopKind::Pure(d) => d,
            LoopKind::Reduction(r) => dims + r,
        };
        let one = |kind: LoopKind| Shared {
            kind,
            lane: None,
            round: None,
            serial: None,
            extent: 1,
            threads: 1,
            points: 1,
        };
        let pure = (0..dims).map(LoopKind::Pure);
        let reductions = (0..footprint.domain.len()).map(LoopKind::Reduction);
        let mut shared: SmallVec<[Shared; 6]> = pure.chain(reductions).map(one).collect();
        for axis in &footprint.axes {
            let variable = number(axis.dim);
            let own = &mut shared[variable];
            let (sharing, points) = footprint.share(axis.dim);
            own.extent = if whole == Some(axis.dim) { sharing * points } else { axis.extent };
            self.extents[variable] = axis.extent;
            let reduction = variable >= dims;
            let kind = match axis.kind {
                footprint::AxisKind::Lane => AxisKind::Lane,
                footprint::AxisKind::Round if axis.is_interleaved() => AxisKind::Group,
                footprint::AxisKind::Round => AxisKind::Round,
                footprint::AxisKind::Reduce => AxisKind::Reduce,
                footprint::AxisKind::Serial => AxisKind::Serial { reduction, unrolled: axis.unrolled },
            };
            let entered = self.around.add(kind, 0, axis.count);
            self.vars[variable].move_by(entered, axis.step);
            match axis.kind {
                footprint::AxisKind::Lane => {
                    own.lane = entered;
                    self.digits.extend(entered.map(|entered| (entered, axis.count)));
                    self.total *= axis.count;
                    if !flat {
                        (own.threads, own.points) = (axis.count, axis.step);
                    }
                }
                footprint::AxisKind::Round | footprint::AxisKind::Reduce => {
                    own.round = entered;
                    own.points = axis.step / own.threads;
                }
                footprint::AxisKind::Serial => own.serial = entered,
            }
        }
        for own in &shared {
            let lane = own.lane.map(|axis| (axis, 1));
            let tile = lane.into_iter().chain(own.round.map(|axis| (axis, own.threads)));
            self.around.symbols.push((Symbol::Thread(own.kind), tile.collect()));
        }
        if flat { SmallVec::new() } else { shared }
    }

    /// Makes the cases: all combinations of the parts of the dimensions.
    fn divide(&mut self, shared: &[Shared]) {
        self.cases.push(Case { limits: SmallVec::new(), active: 0.0, warps: 0.0 });
        for own in shared {
            let parts = parts(own.extent, own.threads, own.points);
            let whole = own.extent % (own.threads * own.points) == 0;
            if whole {
                continue;
            }
            if self.cases.len() * parts.len() > MOST_CASES {
                self.exact = false;
                continue;
            }
            let mut cases = SmallVec::new();
            for case in &self.cases {
                for part in &parts {
                    let mut case = case.clone();
                    let mut limit = |axis: Option<AxisId>, (start, count): (i64, i64)| {
                        case.limits.extend(axis.map(|axis| (axis, start, count)));
                    };
                    limit(own.lane, (0, part.active));
                    limit(own.round, part.round);
                    limit(own.serial, part.serial);
                    cases.push(case);
                }
            }
            self.cases = cases;
        }
    }

    /// Counts the active threads and warps of each case.
    fn count_active(&mut self) {
        for number in 0..self.cases.len() {
            let (active, warps) = self.active(&self.cases[number]);
            (self.cases[number].active, self.cases[number].warps) = (active, warps);
        }
    }

    fn active(&self, case: &Case) -> (f64, f64) {
        if case.limits.is_empty() {
            let rounds = self.total / self.threads;
            let warps = |threads: i64| (threads + WARP - 1) / WARP;
            let warps = rounds * warps(self.threads) + warps(self.total % self.threads);
            return (self.total as f64, warps as f64);
        }
        let (mut active, mut warps) = (0.0, 0.0);
        self.lanes(case, |_| 0).for_each_warp(|alike| {
            let alike_warps =
                alike.weight * alike.repeats.iter().map(|(_, count)| *count as f64).product::<f64>();
            active += alike_warps * alike.runs.iter().map(|run| run.count as f64).sum::<f64>();
            warps += alike_warps;
        });
        (active, warps)
    }

    /// The threads of a case, where one step of an axis moves the element by `step`.
    pub fn lanes(&self, case: &Case, step: impl Fn(usize) -> i64) -> Lanes {
        let digit = |&(axis, radix): &(AxisId, i64)| {
            let limit = case.limits.iter().find(|(limited, ..)| *limited == axis);
            Digit { radix, limit: limit.map_or(radix, |(.., count)| *count), step: step(axis as usize) }
        };
        Lanes::new(self.digits.iter().map(digit), self.threads)
    }

    /// The cases. Of those that differ only along axes that fail `keep`, returns the first.
    pub fn cases_of(&self, keep: impl Fn(AxisKind) -> bool + Copy) -> impl Iterator<Item = &Case> {
        let kept = move |case: &Case| -> SmallVec<[(AxisId, i64, i64); 6]> {
            let passes = |axis: AxisId| keep(self.around.axes[axis as usize].kind);
            case.limits.iter().filter(|(axis, ..)| passes(*axis)).copied().collect()
        };
        let is_first = move |position: usize, case: &Case| {
            position == 0 || {
                let own = kept(case);
                self.cases[..position].iter().all(|other| kept(other) != own)
            }
        };
        self.cases
            .iter()
            .enumerate()
            .filter(move |(position, case)| is_first(*position, case))
            .map(|(_, case)| case)
    }

    /// The number of iterations of the uniform axes of a case that pass `keep`. Axes outside the
    /// block do not count.
    pub fn turns(&self, case: &Case, keep: impl Fn(AxisKind) -> bool) -> f64 {
        let mut turns = 1.0;
        for (number, axis) in self.around.axes.iter().enumerate() {
            let counts = axis.kind != AxisKind::Lane && !axis.kind.is_outside() && keep(axis.kind);
            if counts {
                turns *= self.span(case, number).1 as f64;
            }
        }
        turns
    }

    /// The first value and the number of values of an axis in a case.
    pub fn span(&self, case: &Case, axis: usize) -> (i64, i64) {
        let own = self.around.axes[axis];
        let limit = case.limits.iter().find(|(limited, ..)| *limited as usize == axis);
        limit.map_or((own.start, own.count), |(_, start, count)| (*start, *count))
    }
}
