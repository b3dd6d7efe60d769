//! Memory traffic of the accesses of a nest.

use std::cell::RefCell;

use ahash::AHashMap;
use smallvec::SmallVec;

use warploom_plan::body::{
    Axis, AxisKind, Case, Elements, Lanes, Memory, Moves, Place, VECTOR_BYTES, Vector, quotient,
};

use crate::features::transactions::{MAX_PHASES, Transactions, Units};
use crate::kernel::Traffic;

/// Expected number of words in the fullest of 32 banks if 32 threads access random words.
const RANDOM_WAVEFRONTS: f64 = 3.5;

/// How often each phase (the alignment of an access relative to a sector or word) occurs.
#[derive(Clone, Copy)]
struct Phases {
    counts: [f64; MAX_PHASES],
    /// A factor that still applies to all counts.
    scale: f64,
    number: i64,
}

impl Phases {
    fn new(number: i64) -> Phases {
        Phases { counts: [0.0; MAX_PHASES], scale: 1.0, number }
    }

    fn of(&self, value: i64) -> usize {
        (value - quotient(value, self.number) * self.number) as usize
    }

    /// Shifts every phase by 0 to `count - 1` multiples of `step`, each with weight `weight`.
    fn walk(&mut self, step: i64, count: i64, weight: f64) {
        let step = self.of(step) as i64;
        if step == 0 || count == 1 {
            self.scale *= count as f64 * weight;
            return;
        }
        let before = self.counts;
        self.counts = [0.0; MAX_PHASES];
        self.scale *= weight;
        // The pattern repeats after as many steps as there are phases.
        let (whole, rest) = (count / self.number, count % self.number);
        for (phase, own) in before[..self.number as usize].iter().enumerate().filter(|(_, own)| **own > 0.0) {
            for k in 0..self.number.min(count) {
                let moved = self.of(phase as i64 + k * step);
                self.counts[moved] += own * (whole + i64::from(k < rest)) as f64;
            }
        }
    }

    /// Shifts every phase by `step`.
    fn shift(&mut self, step: i64) {
        let by = self.of(step);
        self.counts[..self.number as usize].rotate_right(by);
    }

    /// Distributes the counts evenly over all phases.
    fn spread(&mut self) {
        let counts = &mut self.counts[..self.number as usize];
        let total: f64 = counts.iter().sum();
        counts.fill(total / self.number as f64);
    }

    /// The weighted sum over all phases.
    fn sum(&self, mut of: impl FnMut(i64) -> f64) -> f64 {
        let counts = self.counts[..self.number as usize].iter().enumerate();
        let taken = counts.filter(|(_, own)| **own > 0.0).map(|(phase, own)| own * of(phase as i64));
        taken.sum::<f64>() * self.scale
    }
}

/// The access pattern of the threads, and the unit of memory that is counted.
type Way = (Lanes, Transactions);

thread_local! {
    /// The cached cost of each access pattern. Most kernels access most arrays in a few patterns.
    static TABLES: RefCell<AHashMap<Way, Table>> = RefCell::default();
}

/// The cache is cleared when it reaches this size.
const MAX_TABLES: usize = 4096;

/// The cost of an access by a block's threads, for each phase of the first thread's element.
struct Table {
    /// Negative where it is not computed yet.
    costs: [f64; MAX_PHASES],
    /// Whether every warp was analysed, not only a sample.
    all: bool,
}

/// Calls `look` with the table of an access pattern.
fn with_table<R>(way: Way, look: impl FnOnce(&Way, &mut Table) -> R) -> R {
    TABLES.with_borrow_mut(|tables| {
        if let Some(table) = tables.get_mut(&way) {
            return look(&way, table);
        }
        if tables.len() >= MAX_TABLES {
            tables.clear();
        }
        let mut table = Table { costs: [-1.0; MAX_PHASES], all: true };
        let result = look(&way, &mut table);
        tables.insert(way, table);
        result
    })
}

impl Table {
    /// Sectors or wavefronts of all warps together.
    fn cost(&mut self, (lanes, transactions): &Way, phase: i64) -> f64 {
        let known = self.costs[phase as usize];
        if known >= 0.0 {
            return known;
        }
        let mut total = 0.0;
        self.all &= lanes.for_each_warp(|alike| {
            let cost = if alike.repeats.is_empty() {
                transactions.of_runs(alike.runs, phase)
            } else {
                let mut phases = Phases::new(transactions.phases);
                phases.counts[phase as usize] = 1.0;
                alike.repeats.iter().for_each(|(step, count)| phases.walk(*step, *count, 1.0));
                phases.sum(|phase| transactions.of_runs(alike.runs, phase))
            };
            total += alike.weight * cost;
        });
        self.costs[phase as usize] = total;
        total
    }
}

/// Counts the transactions of the accesses of a group to an array.
pub(crate) struct Counter<'m> {
    pub moves: &'m Moves<'m>,
    pub place: &'m Place,
    pub units: Units,
}

impl Counter<'_> {
    /// The traffic of one full block, by the vectors of each access if there are any. Of the axes inside a thread, only those that
    /// pass `keep` run. Also returns whether every warp was analysed.
    pub fn traffic(
        &self,
        keep: impl Fn(AxisKind) -> bool + Copy,
        vectors: &[Option<Vector>],
    ) -> (Traffic, bool) {
        let mut traffic = Traffic::default();
        let Moves { walk, group, .. } = *self.moves;
        let place = self.place;
        for case in walk.cases_of(keep) {
            let turns = walk.turns(case, keep) * group.count;
            traffic.elements += turns * case.active;
            traffic.requests += turns * case.warps;
        }
        traffic.bytes = traffic.elements * group.bytes as f64;
        if place.memory == Memory::Thread {
            return (traffic, true);
        }
        let (mut accesses, all) = match self.moves.elements(place) {
            Some(elements) if vectors.is_empty() => self.linear(&elements, keep, group.origins.iter()),
            Some(elements) => {
                let parts: f64 = vectors.iter().map(|of| of.map_or(1.0, |of| 1.0 / of.width as f64)).sum();
                traffic.requests *= parts / vectors.len().max(1) as f64;
                self.in_vectors(&elements, keep, vectors)
            }
            None => (self.rounded(keep, traffic.requests), false),
        };
        if self.moves.is_scattered() {
            accesses = (accesses * self.scattered(traffic)).sqrt();
        }
        match place.memory {
            Memory::Shared => traffic.wavefronts = accesses,
            _ => traffic.sectors = accesses,
        }
        (traffic, all)
    }

    /// An upper bound on sectors or wavefronts for data-dependent accesses: every thread accesses a
    /// different place. Image data is smooth, so the actual number lies between this and the number
    /// if all threads accessed one place; the caller takes the geometric mean.
    fn scattered(&self, traffic: Traffic) -> f64 {
        let (place, units) = (self.place, self.units);
        let bytes = place.elements() * self.moves.group.bytes as f64;
        match place.memory {
            Memory::Shared => {
                let whole = (bytes / (units.word * units.banks) as f64).ceil();
                traffic.requests * whole.clamp(1.0, RANDOM_WAVEFRONTS)
            }
            _ => {
                let whole = (bytes / units.sector as f64).ceil().max(1.0);
                traffic.elements.min(traffic.requests * whole)
            }
        }
    }

    /// Sectors or wavefronts of accesses of which some are made by vectors: the sum over those of each width.
    fn in_vectors(
        &self,
        elements: &Elements,
        keep: impl Fn(AxisKind) -> bool + Copy,
        vectors: &[Option<Vector>],
    ) -> (f64, bool) {
        let mut kinds: SmallVec<[Option<Vector>; 4]> = SmallVec::from_slice(vectors);
        kinds.sort_unstable_by_key(|vector| vector.map_or(1, |vector| vector.width));
        kinds.dedup();
        let (mut total, mut all) = (0.0, true);
        for vector in kinds {
            let own = vectors.iter().zip(&self.moves.group.origins).filter(|(own, _)| **own == vector);
            let own = own.map(|(_, origin)| origin);
            let (part, whole) = self.linear(&elements.by(vector), keep, own);
            total += part;
            all &= whole;
        }
        (total, all)
    }

    /// Sectors or wavefronts of some accesses if elements are sums over axes: the cost of each warp at each phase,
    /// times how often that phase occurs. Also returns whether every warp was analysed.
    fn linear<'o>(
        &self,
        elements: &Elements,
        keep: impl Fn(AxisKind) -> bool + Copy,
        accesses: impl Iterator<Item = &'o SmallVec<[i64; 4]>>,
    ) -> (f64, bool) {
        let Moves { walk, group, .. } = *self.moves;
        let place = self.place;
        let width = elements.vector.map_or(1, |vector| vector.width);
        let transactions = Transactions::new(place.memory, group.bytes * width as usize, self.units);
        let mut origins = Phases::new(transactions.phases);
        for origin in accesses {
            let offset: i64 = origin.iter().zip(&place.strides).map(|(at, stride)| at * stride).sum();
            let phase = origins.of(quotient(elements.constant + offset, width));
            origins.counts[phase] += group.count / group.origins.len() as f64;
        }
        let (mut total, mut all) = (0.0, true);
        for case in walk.cases_of(keep) {
            let phases = self.phases(origins, elements, case, &keep);
            let lanes = walk.lanes(case, |axis| elements.steps[axis]);
            with_table((lanes, transactions), |way, table| {
                total += phases.sum(|phase| table.cost(way, phase));
                all &= table.all;
            });
        }
        (total, all)
    }

    /// The phases of the first lane over all uniform axes.
    fn phases(
        &self,
        mut phases: Phases,
        elements: &Elements,
        case: &Case,
        keep: &impl Fn(AxisKind) -> bool,
    ) -> Phases {
        let mut start = 0;
        for (number, axis) in self.moves.walk.around.axes.iter().enumerate() {
            if axis.kind == AxisKind::Lane || !(keep(axis.kind) || number < self.moves.walk.own_axes) {
                continue;
            }
            let (first, mut count) = self.moves.walk.span(case, number);
            if let Some(vector) = elements.vector.filter(|vector| vector.axis == number) {
                count /= vector.width;
            }
            start += first * elements.steps[number];
            let weight = if axis.kind.is_outside() { 1.0 / count as f64 } else { 1.0 };
            phases.walk(elements.steps[number], count, weight);
            if self.moves.is_unknown(number) {
                phases.spread();
            }
        }
        phases.shift(start);
        phases
    }
}

/// The number of shared-memory elements per vector load, if neighbouring points are unrolled
/// and everything else keeps the alignment.
pub(crate) fn vector_width(moves: &Moves<'_>, place: &Place) -> i64 {
    if place.memory != Memory::Shared || moves.group.count != 1.0 || moves.is_scattered() {
        return 1;
    }
    let (Some(elements), Some(origin)) = (moves.elements(place), moves.group.origins.first()) else {
        return 1;
    };
    let constant: i64 = origin.iter().zip(&place.strides).map(|(at, stride)| at * stride).sum();
    let start = elements.constant + constant;
    let axes = || moves.walk.around.axes.iter().enumerate().filter(|(_, axis)| axis.count > 1);
    let widest = VECTOR_BYTES / moves.group.bytes as i64;
    let fits = |width: i64| {
        let is_along = |(number, axis): &(usize, &Axis)| {
            axis.kind.is_unrolled() && elements.steps[*number] == 1 && axis.count % width == 0
        };
        let others = axes().filter(|(number, _)| elements.steps[*number] != 1);
        let mut steps = others.map(|(number, _)| elements.steps[number]);
        axes().filter(is_along).count() == 1 && start % width == 0 && steps.all(|step| step % width == 0)
    };
    [4, 2].into_iter().find(|width| *width <= widest && fits(*width)).unwrap_or(1)
}
