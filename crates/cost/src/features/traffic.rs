//! Memory traffic of the accesses of a nest.

use std::cell::RefCell;

use ahash::AHashMap;
use smallvec::SmallVec;

use crate::features::flatten::Group;
use crate::features::form::bit;
use crate::features::vectors::VECTOR_BYTES;
use crate::features::vectors::Vector;
use crate::features::walk::{Axis, AxisKind, Case, Linear, Walk};
use crate::features::warps::{Lanes, MAX_PHASES, Transactions, Units, quotient};
use crate::kernel::{Memory, Traffic};

/// Expected number of words in the fullest of 32 banks if 32 threads access random words.
const RANDOM_WAVEFRONTS: f64 = 3.5;

/// The memory and layout of an array.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub memory: Memory,
    /// The distance between neighbours in elements, one per dimension.
    pub strides: SmallVec<[i64; 4]>,
    /// The first index of each dimension.
    pub base: SmallVec<[Linear; 4]>,
    /// Extents of the array.
    pub extents: SmallVec<[i64; 4]>,
}

impl Place {
    pub fn elements(&self) -> f64 {
        self.extents.iter().map(|extent| *extent as f64).product()
    }
}

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

/// How the indices of a group change with the axes of a walk.
pub(crate) struct Moves<'a> {
    pub walk: &'a Walk,
    pub group: &'a Group,
    /// For each index and axis the change per step, times the index's denominator.
    steps: SmallVec<[i64; 32]>,
    /// The distance between the first and the last access along each index.
    spreads: SmallVec<[i64; 4]>,
    /// Whether a variable is itself rounded, so that the steps are approximate.
    rounded: bool,
    /// A bit mask of axes that change an index in an unknown way.
    unknown: u64,
}

impl<'a> Moves<'a> {
    pub fn new(walk: &'a Walk, group: &'a Group) -> Moves<'a> {
        let axes = walk.around.axes.len();
        let mut steps: SmallVec<[i64; 32]> = SmallVec::from_elem(0, axes * group.rows.len());
        let (mut rounded, mut unknown) = (false, 0);
        for (row, steps) in group.rows.iter().zip(steps.chunks_mut(axes.max(1))) {
            for (number, var) in walk.vars.iter().enumerate() {
                if row.unknown & bit(number) != 0 {
                    unknown |= var.steps.iter().fold(0, |mask, (axis, _)| mask | bit(*axis as usize));
                }
                let coef = row.coefs.get(number).copied().unwrap_or(0);
                if coef == 0 {
                    continue;
                }
                rounded |= var.den > 1;
                for (axis, step) in &var.steps {
                    steps[*axis as usize] += coef * step / var.den;
                }
            }
        }
        let spreads = (0..group.rows.len()).map(|row| group.spread(row)).collect();
        Moves { walk, group, steps, spreads, rounded, unknown }
    }

    /// The change of an index per step of an axis, times the index's denominator.
    pub fn step(&self, row: usize, axis: usize) -> i64 {
        self.steps[row * self.walk.around.axes.len() + axis]
    }

    /// Whether an axis changes any index.
    pub fn moves(&self, axis: usize) -> bool {
        self.is_unknown(axis) || (0..self.group.rows.len()).any(|row| self.step(row, axis) != 0)
    }

    /// Whether an axis changes some index in an unknown way.
    pub fn is_unknown(&self, axis: usize) -> bool {
        self.unknown & bit(axis) != 0
    }

    /// Whether some index depends on the thread in an unknown way.
    pub fn is_scattered(&self) -> bool {
        let mut lanes = self.walk.digits.iter();
        lanes.any(|(axis, _)| self.is_unknown(*axis as usize))
    }

    /// Whether the accessed elements are known exactly.
    pub fn is_exact(&self) -> bool {
        let whole = self.group.rows.iter().all(|row| row.den == 1);
        self.group.is_exact() && whole && !self.rounded && self.unknown == 0
    }

    /// Whether all indices are in bounds, so that nothing is clamped.
    pub fn stays_inside(&self, place: &Place) -> bool {
        let axes = &self.walk.around.axes;
        let vars: SmallVec<[(i64, i64); 6]> = self.walk.vars.iter().map(|var| var.range(axes)).collect();
        self.group.rows.iter().enumerate().all(|(number, row)| {
            let constants = || self.group.origins.iter().map(|origin| origin[number]);
            let (mut low, mut high) = (constants().min().unwrap_or(0), constants().max().unwrap_or(0));
            for (coef, (first, last)) in row.coefs.iter().zip(&vars) {
                low += (coef * first).min(coef * last);
                high += (coef * first).max(coef * last);
            }
            let (base, _) = place.base[number].range(axes);
            base <= low && high < base + place.extents[number]
        })
    }

    /// The number of values that an index takes over the selected axes, for all accesses of the
    /// group together.
    pub fn extent(&self, row: usize, keep: impl Fn(AxisKind) -> bool) -> f64 {
        let axes = || self.walk.around.axes.iter().enumerate().filter(|(_, axis)| keep(axis.kind));
        let (groups, others): (Vec<_>, Vec<_>) = axes().partition(|(_, axis)| axis.kind == AxisKind::Group);
        let steps = |(number, axis): &(usize, &Axis)| self.step(row, *number).abs() * (axis.count - 1);
        let moved: i64 = others.iter().map(steps).sum();
        // Groups lie apart from each other.
        let apart = groups.iter().filter(|group| steps(group) > 0).map(|(_, axis)| axis.count as f64);
        self.extent_of(row, moved) * apart.product::<f64>()
    }

    /// The number of values that an index takes if its first access moves by `moved` steps.
    #[inline]
    pub fn extent_of(&self, row: usize, moved: i64) -> f64 {
        (moved / self.group.rows[row].den + self.spreads[row] + 1) as f64
    }

    /// A bit mask of axes that change an index in an unknown way.
    pub fn unknown_axes(&self) -> u64 {
        self.unknown
    }

    /// The traffic of one full block, by vectors of at most `most` elements where that is possible. Of the axes inside a thread,
    /// only those that pass `keep` run. Also returns whether every warp was analysed.
    pub fn traffic(
        &self,
        place: &Place,
        units: Units,
        keep: impl Fn(AxisKind) -> bool + Copy,
        most: i64,
    ) -> (Traffic, bool) {
        let mut traffic = Traffic::default();
        let (walk, group) = (self.walk, self.group);
        for case in walk.cases_of(keep) {
            let turns = walk.turns(case, keep) * group.count;
            traffic.elements += turns * case.active;
            traffic.requests += turns * case.warps;
        }
        traffic.bytes = traffic.elements * group.bytes as f64;
        if place.memory == Memory::Thread {
            return (traffic, true);
        }
        let (mut accesses, all) = match self.elements(place) {
            Some(elements) if most == 1 => self.linear(&elements, place, units, keep, group.origins.iter()),
            Some(elements) => {
                let vectors = self.vectors(&elements, place, keep, most);
                let parts: f64 = vectors.iter().map(|of| of.map_or(1.0, |of| 1.0 / of.width as f64)).sum();
                traffic.requests *= parts / vectors.len().max(1) as f64;
                self.in_vectors(&elements, place, units, keep, &vectors)
            }
            None => (self.rounded(place, units, keep, traffic.requests), false),
        };
        if self.is_scattered() {
            accesses = (accesses * self.scattered(place, units, traffic)).sqrt();
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
    fn scattered(&self, place: &Place, units: Units, traffic: Traffic) -> f64 {
        let bytes = place.elements() * self.group.bytes as f64;
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

    /// The number of shared-memory elements per vector load, if neighbouring points are unrolled
    /// and everything else keeps the alignment.
    pub fn vector_width(&self, place: &Place) -> i64 {
        if place.memory != Memory::Shared || self.group.count != 1.0 || self.is_scattered() {
            return 1;
        }
        let (Some(elements), Some(origin)) = (self.elements(place), self.group.origins.first()) else {
            return 1;
        };
        let constant: i64 = origin.iter().zip(&place.strides).map(|(at, stride)| at * stride).sum();
        let start = elements.constant + constant;
        let axes = || self.walk.around.axes.iter().enumerate().filter(|(_, axis)| axis.count > 1);
        let widest = VECTOR_BYTES / self.group.bytes as i64;
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

    /// The element of the first access as a sum over axes, if nothing is rounded.
    pub fn elements(&self, place: &Place) -> Option<Elements> {
        let whole =
            self.group.rows.iter().all(|row| row.den == 1) && place.base.iter().all(|base| base.den == 1);
        if !whole || self.rounded {
            return None;
        }
        let mut elements = Elements {
            constant: 0,
            steps: SmallVec::from_elem(0, self.walk.around.axes.len()),
            vector: None,
        };
        for (number, (row, stride)) in self.group.rows.iter().zip(&place.strides).enumerate() {
            let vars = self.walk.vars.iter().zip(&row.coefs);
            let start: i64 = vars.map(|(var, coef)| coef * var.constant.div_euclid(var.den)).sum();
            let base = &place.base[number];
            elements.constant += stride * (start - base.constant);
            for (axis, step) in elements.steps.iter_mut().enumerate() {
                *step += stride * self.step(number, axis);
            }
            for (axis, step) in &base.steps {
                elements.steps[*axis as usize] -= stride * step;
            }
        }
        Some(elements)
    }

    /// Sectors or wavefronts of accesses of which some are made by vectors: the sum over those of each width.
    fn in_vectors(
        &self,
        elements: &Elements,
        place: &Place,
        units: Units,
        keep: impl Fn(AxisKind) -> bool + Copy,
        vectors: &[Option<Vector>],
    ) -> (f64, bool) {
        let mut kinds: SmallVec<[Option<Vector>; 4]> = SmallVec::from_slice(vectors);
        kinds.sort_unstable_by_key(|vector| vector.map_or(1, |vector| vector.width));
        kinds.dedup();
        let (mut total, mut all) = (0.0, true);
        for vector in kinds {
            let own = vectors.iter().zip(&self.group.origins).filter(|(own, _)| **own == vector);
            let own = own.map(|(_, origin)| origin);
            let (part, whole) = self.linear(&elements.by(vector), place, units, keep, own);
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
        place: &Place,
        units: Units,
        keep: impl Fn(AxisKind) -> bool + Copy,
        accesses: impl Iterator<Item = &'o SmallVec<[i64; 4]>>,
    ) -> (f64, bool) {
        let (walk, group) = (self.walk, self.group);
        let width = elements.vector.map_or(1, |vector| vector.width);
        let transactions = Transactions::new(place.memory, group.bytes * width as usize, units);
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
        for (number, axis) in self.walk.around.axes.iter().enumerate() {
            if axis.kind == AxisKind::Lane || !(keep(axis.kind) || number < self.walk.own_axes) {
                continue;
            }
            let (first, mut count) = self.walk.span(case, number);
            if let Some(vector) = elements.vector.filter(|vector| vector.axis == number) {
                count /= vector.width;
            }
            start += first * elements.steps[number];
            let weight = if axis.kind.is_outside() { 1.0 / count as f64 } else { 1.0 };
            phases.walk(elements.steps[number], count, weight);
            if self.is_unknown(number) {
                phases.spread();
            }
        }
        phases.shift(start);
        phases
    }
}

/// An element as a sum over axes.
#[derive(Clone)]
pub(crate) struct Elements {
    pub constant: i64,
    /// The change per step of each axis; in vectors, if there are any.
    pub steps: SmallVec<[i64; 16]>,
    vector: Option<Vector>,
}

impl Elements {
    /// The same with steps in vectors. All steps but that of the vector's axis are multiples of its width.
    fn by(&self, vector: Option<Vector>) -> Elements {
        let mut elements = Elements { vector, ..self.clone() };
        if let Some(Vector { axis, width }) = vector {
            elements.steps.iter_mut().for_each(|step| *step /= width);
            elements.steps[axis] = 1;
        }
        elements
    }
}
