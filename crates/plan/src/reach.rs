//! The possible values of an index, relative to one iteration of the loops around it.

mod hull;
pub(crate) mod limit;
pub(crate) mod symbol;

use std::collections::BTreeSet;

use smallvec::SmallVec;
use warploom_lang::affine::{Congruence, gcd};
use warploom_lang::bounds::IntSpan;
use warploom_lang::dynamic::Formula;
use warploom_schedule::Rational;

use crate::ids::LoopId;
use crate::reach::limit::{Limit, Limits};
use crate::reach::symbol::Symbol;

/// The possible values of an index at one iteration of the loops around it: from `A + low` to `A + high`,
/// where `A` is the sum of `terms`. Both ends are clamped to `clamp`, and never outside `min..=max`.
///
/// Only integers count: the smallest value is `ceil(A + low)`.
#[derive(PartialEq, Eq, Debug)]
pub struct Reach {
    /// Symbols, and how far one step of each moves the index. Sorted and unique, without zero steps.
    pub terms: SmallVec<[(Symbol, Rational); 3]>,
    /// The offset of the smallest value.
    pub low: Rational,
    /// The offset of the largest value.
    pub high: Rational,
    /// The limits of a clamp, if there is one.
    pub clamp: Option<(Limit, Limit)>,
    /// Whether the clamp only moves the values, like the box of a stage, instead of cutting them off:
    /// the reach has its full extent from the smallest value on, up to `max`.
    pub moved: bool,
    /// The smallest value over all iterations, at any sizes.
    pub min: i64,
    /// The largest value over all iterations, at any sizes.
    pub max: i64,
    /// Whether the reach follows from loops and constants. False if nothing is known about the index,
    /// or if its accesses move with the block in different ways, so that it may be anywhere in
    /// `min..=max`.
    pub bounded: bool,
}

/// The derived clone would copy the terms one at a time, and every plan clones many reaches.
impl Clone for Reach {
    fn clone(&self) -> Reach {
        Reach { terms: SmallVec::from_slice(&self.terms), ..*self }
    }
}

/// The range of each symbol, and the reaches of each [`Symbol::Lowest`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbols {
    ranges: Vec<(Symbol, i64, i64)>,
    /// The reaches whose smallest value each `Lowest` stands for.
    pub lowest: Vec<Vec<Reach>>,
    /// The limits that follow from the sizes of a launch, and the range of each [`Symbol::Size`].
    pub limits: Limits,
}

impl Symbols {
    /// Registers a symbol that counts from 0 to `count - 1`.
    pub fn add(&mut self, symbol: Symbol, count: i64) {
        self.add_range(symbol, 0, (count - 1).max(0));
    }

    /// Registers a symbol with values from `first` to `last`.
    pub fn add_range(&mut self, symbol: Symbol, first: i64, last: i64) {
        self.ranges.retain(|(known, ..)| *known != symbol);
        self.ranges.push((symbol, first, last));
    }

    /// Creates a symbol for the smallest value of some reaches.
    pub(super) fn lowest_of(&mut self, reaches: Vec<Reach>) -> Symbol {
        let symbol = Symbol::Lowest(self.lowest.len());
        let least = |end: fn(&Reach) -> i64| reaches.iter().map(end).min().unwrap_or(0);
        self.ranges.push((symbol, least(|reach| reach.min), least(|reach| reach.max)));
        self.lowest.push(reaches);
        symbol
    }

    pub(super) fn range(&self, symbol: Symbol) -> (i64, i64) {
        if let Symbol::Size(atom) = symbol {
            return self.limits.atom_range(atom);
        }
        let known = self.ranges.iter().find(|(known, ..)| *known == symbol);
        known.map_or((0, 0), |(_, first, last)| (*first, *last))
    }

    /// The number of values of a symbol.
    pub fn count(&self, symbol: Symbol) -> i64 {
        let (first, last) = self.range(symbol);
        last - first + 1
    }

    /// Whether a symbol is constant inside these loops.
    fn is_fixed(&self, symbol: Symbol, loops: &[LoopId]) -> bool {
        match symbol {
            Symbol::Block(_) | Symbol::Size(_) => true,
            Symbol::Loop(id) => loops.contains(&id),
            Symbol::Thread(_) => false,
            Symbol::Lowest(number) => self.is_lowest_fixed(number, loops),
        }
    }

    /// Whether everything that the [`Symbol::Lowest`] with this number depends on is constant inside
    /// these loops.
    fn is_lowest_fixed(&self, number: usize, loops: &[LoopId]) -> bool {
        let (mut open, mut seen) = (vec![number], BTreeSet::new());
        while let Some(number) = open.pop() {
            for (symbol, _) in self.lowest[number].iter().flat_map(|reach| &reach.terms) {
                match *symbol {
                    Symbol::Lowest(number) if seen.insert(number) => open.push(number),
                    Symbol::Lowest(_) => {}
                    symbol if self.is_fixed(symbol, loops) => {}
                    _ => return false,
                }
            }
        }
        true
    }
}

impl Reach {
    /// The same values at every iteration.
    pub(crate) fn fixed(min: i64, max: i64) -> Reach {
        let max = max.max(min);
        let (low, high) = (Rational::integer(min), Rational::integer(max));
        Reach { terms: SmallVec::new(), low, high, clamp: None, moved: false, min, max, bounded: true }
    }

    /// Any value from `min` to `max`.
    pub(crate) fn unknown(min: i64, max: i64) -> Reach {
        Reach { bounded: false, ..Reach::fixed(min, max) }
    }

    /// One tile, if `extent` values starting at `min` are split into tiles of `size` values.
    pub(crate) fn tile(symbol: Symbol, min: i64, extent: i64, size: i64) -> Reach {
        if size >= extent {
            return Reach::fixed(min, min + extent - 1);
        }
        Reach {
            terms: SmallVec::from_iter([(symbol, Rational::integer(size))]),
            low: Rational::integer(min),
            high: Rational::integer(min + size - 1),
            clamp: None,
            moved: false,
            min,
            max: min + extent - 1,
            bounded: true,
        }
    }

    /// A single value, given by a symbol.
    pub(crate) fn point(symbol: Symbol, min: i64, max: i64) -> Reach {
        Reach { min, max, ..Reach::from_symbol(symbol, 0) }
    }

    /// One tile, if this reach is split into tiles of `size` values.
    pub(crate) fn cut(&self, symbol: Symbol, size: i64, symbols: &mut Symbols) -> Reach {
        if size >= self.extent() {
            return self.clone();
        }
        symbols.add(symbol, blocks(self.extent(), size));
        let whole = |value: Rational| value.as_integer().is_some();
        let starts_whole = whole(self.low) && self.terms.iter().all(|(_, step)| whole(*step));
        let mut tile = if starts_whole { self.plain(symbols) } else { self.counted_from_lowest(symbols) };
        tile.terms.push((symbol, Rational::integer(size)));
        tile.terms.sort_unstable_by_key(|(symbol, _)| *symbol);
        match tile.low.add(Rational::integer(size - 1)) {
            Some(high) => Reach { high, ..tile },
            None => Reach::unknown(self.min, self.max),
        }
    }

    /// A number that follows from the sizes of a launch.
    pub(crate) fn of_formula(formula: &Formula, symbols: &Symbols) -> Reach {
        let range = symbols.limits.formulas.range(formula);
        let (min, max) = (range.min, range.max);
        let terms =
            formula.terms.iter().map(|(atom, factor)| (Symbol::Size(*atom), Rational::integer(*factor)));
        let constant = Rational::integer(formula.constant);
        Reach { terms: terms.collect(), low: constant, high: constant, ..Reach::fixed(min, max) }
    }

    /// The same values without a clamp, so that the reach can be used in sums.
    #[must_use]
    pub(crate) fn plain(&self, symbols: &mut Symbols) -> Reach {
        match self.clamp {
            None => self.clone(),
            Some(_) => self.counted_from_lowest(symbols),
        }
    }

    /// The same values, expressed relative to the smallest one.
    fn counted_from_lowest(&self, symbols: &mut Symbols) -> Reach {
        let width = self.width();
        let lowest = symbols.lowest_of(vec![self.clone()]);
        Reach { min: self.min, max: self.max, bounded: self.bounded, ..Reach::from_symbol(lowest, width) }
    }

    /// The `width + 1` values that start at a symbol.
    pub(super) fn from_symbol(symbol: Symbol, width: i64) -> Reach {
        Reach {
            terms: SmallVec::from_iter([(symbol, Rational::ONE)]),
            low: Rational::ZERO,
            high: Rational::integer(width),
            clamp: None,
            moved: false,
            min: i64::MIN,
            max: i64::MAX,
            bounded: true,
        }
    }

    /// The iteration range of a stage that computes this box. A box with fractions ends at its last
    /// value; any other box is iterated in its full extent.
    #[must_use]
    pub(crate) fn iterated(&self) -> Reach {
        Reach { moved: self.clamp.is_some() && !self.has_fractions(), ..self.clone() }.settled()
    }

    /// Whether the reach moves by fractions, so that the rounding of its ends varies from position to
    /// position.
    pub fn has_fractions(&self) -> bool {
        let mut parts = self.terms.iter().map(|(_, step)| *step).chain([self.low, self.high]);
        !self.terms.is_empty() && parts.any(|part| part.as_integer().is_none())
    }

    /// The maximum distance between two values at one iteration.
    pub fn width(&self) -> i64 {
        let offsets = self.high.sub(self.low).map_or(i64::MAX, Rational::floor);
        offsets.min(self.max - self.min).max(0)
    }

    /// The maximum number of values at one iteration, which must be allocated.
    pub fn extent(&self) -> i64 {
        self.width() + 1
    }

    /// The value, if there is only one over all iterations.
    pub fn singleton(&self) -> Option<i64> {
        (self.min == self.max).then_some(self.min)
    }

    /// Whether both reaches start at the same value at every iteration.
    pub fn starts_like(&self, other: &Reach) -> bool {
        match (self.terms.is_empty(), other.terms.is_empty()) {
            (true, true) => self.min == other.min,
            _ => self.terms == other.terms && self.low == other.low && self.clamp == other.clamp,
        }
    }

    /// The equivalent span for `lang::bounds`.
    pub(crate) fn span(&self) -> IntSpan {
        let width = self.width();
        if self.terms.is_empty() || width >= self.max - self.min {
            return IntSpan::fixed(self.min, self.max);
        }
        let modulus =
            self.terms.iter().try_fold(0, |modulus, (_, step)| Some(gcd(modulus, step.as_integer()?)));
        let remainder = |offset: Rational| match (modulus, offset.as_integer()) {
            (Some(modulus), Some(offset)) if self.clamp.is_none() => Congruence::new(modulus, offset),
            _ => Congruence::ANY,
        };
        IntSpan {
            min: self.min,
            max: self.max,
            width,
            lower: remainder(self.low),
            upper: remainder(self.high),
        }
    }

    /// The reach, given that all values are in `min..=max`.
    #[must_use]
    pub(crate) fn within(mut self, min: i64, max: i64) -> Reach {
        self.min = self.min.max(min);
        self.max = self.max.min(max).max(self.min);
        self.settled()
    }

    /// The same values, without terms if these make no difference.
    #[must_use]
    pub(crate) fn settled(self) -> Reach {
        // A reach without terms, or one that is as wide as its range, starts at the smallest value.
        if self.terms.is_empty() || self.width() == self.max - self.min {
            return Reach { bounded: self.bounded, ..Reach::fixed(self.min, self.max) };
        }
        self
    }

    /// The sum with another reach; `None` if the result cannot be expressed as a reach.
    pub(crate) fn add(&self, other: &Reach, symbols: &mut Symbols) -> Option<Reach> {
        match (self.singleton(), other.singleton()) {
            (_, Some(value)) => return self.clone().shift(value, symbols),
            (Some(value), _) => return other.clone().shift(value, symbols),
            _ if self.clamp.is_some() || other.clamp.is_some() => return None,
            _ => {}
        }
        let mut terms = self.terms.clone();
        for (symbol, step) in &other.terms {
            match terms.iter_mut().find(|(known, _)| known == symbol) {
                Some((_, sum)) => *sum = sum.add(*step)?,
                None => terms.push((*symbol, *step)),
            }
        }
        terms.retain(|(_, step)| !step.is_zero());
        terms.sort_unstable_by_key(|(symbol, _)| *symbol);
        Some(Reach {
            terms,
            low: self.low.add(other.low)?,
            high: self.high.add(other.high)?,
            clamp: None,
            moved: false,
            min: self.min.checked_add(other.min)?,
            max: self.max.checked_add(other.max)?,
            bounded: self.bounded && other.bounded,
        })
    }

    /// The sum with a constant; `None` if it does not fit.
    pub(crate) fn shift(self, by: i64, symbols: &mut Symbols) -> Option<Reach> {
        let shifted = |limit: Limit| {
            symbols.limits.changed(
                limit,
                |value| value.checked_add(by),
                |_, formula| formula.add_scaled(&Formula::constant(by), 1),
            )
        };
        let clamp = limits(self.clamp, shifted)?;
        Reach { clamp, ..self }.spread(by, by)
    }

    /// The sum of an unclamped reach with any value from `from` to `to`; `None` if it does not fit.
    pub(crate) fn spread(self, from: i64, to: i64) -> Option<Reach> {
        if (from, to) == (0, 0) {
            return Some(self);
        }
        let (low, high) = (self.low.add(Rational::integer(from))?, self.high.add(Rational::integer(to))?);
        Some(Reach { low, high, min: self.min.checked_add(from)?, max: self.max.checked_add(to)?, ..self })
    }

    /// The product with a constant; `None` if it does not fit.
    pub(crate) fn scale(self, factor: i64, symbols: &mut Symbols) -> Option<Reach> {
        if factor == 1 {
            return Some(self);
        }
        // Negation swaps the ends, but a moved reach is positioned by its smallest value.
        if factor < 0 && self.moved {
            return self.plain(symbols).scale(factor, symbols);
        }
        let scaled = |value: Rational| value.mul(Rational::integer(factor));
        let ordered = |a: i64, b: i64| {
            let (a, b) = (a.checked_mul(factor)?, b.checked_mul(factor)?);
            Some((a.min(b), a.max(b)))
        };
        let terms: Option<SmallVec<_>> =
            self.terms.iter().map(|(symbol, step)| Some((*symbol, scaled(*step)?))).collect();
        let mut terms = terms?;
        terms.retain(|(_, step): &mut (Symbol, Rational)| !step.is_zero());
        let (low, high) = (scaled(self.low)?, scaled(self.high)?);
        let times = |limit: Limit| {
            symbols.limits.changed(
                limit,
                |value| value.checked_mul(factor),
                |_, formula| formula.scale(factor),
            )
        };
        let clamp = limits(self.clamp, times)?.map(|(a, b)| if factor < 0 { (b, a) } else { (a, b) });
        let (min, max) = ordered(self.min, self.max)?;
        Some(Reach { terms, low: low.min(high), high: low.max(high), clamp, min, max, ..self })
    }

    /// The quotient by a positive constant, rounded down.
    pub(crate) fn floor_div(&self, divisor: i64, symbols: &mut Symbols) -> Option<Reach> {
        let quotient = self.quotient(divisor, symbols)?;
        // At a limit, the values of a moved reach are rounded differently.
        let (first, last) = self.clamp.unwrap_or((Limit::None, Limit::None));
        let wider = |limit: Limit| match limit {
            Limit::None => false,
            Limit::Formula(_) => true,
            Limit::Value(start) => {
                let end = start.saturating_add(self.width());
                end.div_euclid(divisor) - start.div_euclid(divisor) > quotient.width()
            }
        };
        let starts = [first, last, Limit::Value(self.min)];
        match self.moved && (quotient.has_fractions() || starts.into_iter().any(wider)) {
            true => self.plain(symbols).quotient(divisor, symbols),
            false => Some(quotient),
        }
    }

    fn quotient(&self, divisor: i64, symbols: &mut Symbols) -> Option<Reach> {
        let over = |value: Rational| value.div(Rational::integer(divisor));
        let terms: Option<SmallVec<_>> =
            self.terms.iter().map(|(symbol, step)| Some((*symbol, over(*step)?))).collect();
        let terms: SmallVec<[(Symbol, Rational); 3]> = terms?;
        let whole = terms.iter().all(|(_, step)| step.as_integer().is_some());
        let (low, high) = match (self.low.as_integer(), self.high.as_integer()) {
            // All steps are multiples of the divisor, so rounding is the same at every position.
            (Some(low), Some(high)) if whole => {
                (Rational::integer(low.div_euclid(divisor)), Rational::integer(high.div_euclid(divisor)))
            }
            _ => (over(self.low.sub(Rational::integer(divisor - 1))?)?, over(self.high)?),
        };
        let quotient = |value: i64| value.div_euclid(divisor);
        let over = |limit: Limit| {
            symbols.limits.changed(
                limit,
                |value| Some(quotient(value)),
                |formulas, formula| formulas.quotient(formula, divisor),
            )
        };
        let clamp = limits(self.clamp, over)?;
        Some(Reach {
            terms,
            low,
            high,
            clamp,
            moved: self.moved,
            min: quotient(self.min),
            max: quotient(self.max),
            bounded: self.bounded,
        })
    }

    /// The reach clamped to two limits; `None` if they do not fit.
    pub(crate) fn clamped(&self, low: Limit, high: Limit, symbols: &mut Symbols) -> Option<Reach> {
        let limits = &mut symbols.limits;
        let (least, most) = (limits.range(low, i64::MIN), limits.range(high, i64::MAX));
        if least.max <= self.min && self.max <= most.min {
            return Some(self.clone());
        }
        let (min, max) = (self.min.max(least.min).min(most.min), self.max.max(least.max).min(most.max));
        if self.terms.is_empty() {
            // The clamp limits an unbounded reach, but does not make it bounded.
            return Some(Reach { bounded: self.bounded, ..Reach::fixed(min, max) });
        }
        let (old_low, old_high) = self.clamp.unwrap_or((Limit::None, Limit::None));
        let both = (low, high);
        let clamp = Some((limits.clamped(old_low, both, low)?, limits.clamped(old_high, both, high)?));
        Some(Reach { clamp, min, max, ..self.clone() })
    }

    /// The reach as seen from inside these loops only: every symbol that varies there takes all its
    /// values.
    #[must_use]
    pub(crate) fn seen_from(&self, loops: &[LoopId], symbols: &Symbols) -> Reach {
        self.without(|symbol| !symbols.is_fixed(symbol, loops), symbols)
    }

    /// The reach with the selected symbols taking all their values.
    pub(super) fn without(&self, gone: impl Fn(Symbol) -> bool, symbols: &Symbols) -> Reach {
        let mut reach = self.clone();
        for (symbol, step) in &self.terms {
            if !gone(*symbol) {
                continue;
            }
            reach.terms.retain(|(kept, _)| kept != symbol);
            let (first, last) = symbols.range(*symbol);
            let ends = [first, last].map(|end| step.mul(Rational::integer(end)));
            let [Some(a), Some(b)] = ends else { return Reach::unknown(self.min, self.max) };
            match (reach.low.add(a.min(b)), reach.high.add(a.max(b))) {
                (Some(low), Some(high)) => (reach.low, reach.high) = (low, high),
                _ => return Reach::unknown(self.min, self.max),
            }
            reach.bounded &= matches!(symbol, Symbol::Loop(_) | Symbol::Size(_));
        }
        if reach.terms.is_empty() { reach.at_rest(&symbols.limits) } else { reach }
    }

    /// The range of all values of a reach without terms. A limit that follows from the sizes may be below its smallest value at
    /// some sizes, and above its largest one at others.
    pub(super) fn at_rest(&self, limits: &Limits) -> Reach {
        let (mut low, mut high) = (self.low.ceil(), self.high.floor());
        if let Some((least, most)) = self.clamp.filter(|_| self.is_limited_by_sizes()) {
            let (least, most) = (limits.range(least, i64::MIN), limits.range(most, i64::MAX));
            low = low.max(least.min).min(most.min);
            high = if self.moved { self.max } else { high.max(least.max).min(most.max) };
        }
        let (low, high) = (low.max(self.min), high.min(self.max));
        Reach { bounded: self.bounded, ..Reach::fixed(low.min(self.max), high.max(self.min)) }
    }
}

/// Changes both limits of a clamp; `None` if one does not fit.
fn limits(
    clamp: Option<(Limit, Limit)>,
    mut change: impl FnMut(Limit) -> Option<Limit>,
) -> Option<Option<(Limit, Limit)>> {
    match clamp {
        Some((low, high)) => Some(Some((change(low)?, change(high)?))),
        None => Some(None),
    }
}

/// The number of tiles of `size` that cover `extent`.
pub(crate) fn blocks(extent: i64, size: i64) -> i64 {
    extent.max(1).div_euclid(size) + i64::from(extent.max(1) % size != 0)
}
