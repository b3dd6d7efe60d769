//! Where an index can be, as seen from one iteration of the loops around it.

use std::collections::BTreeSet;

use smallvec::SmallVec;
use warploom_lang::affine::{Congruence, gcd};
use warploom_lang::bounds::IntSpan;

use crate::dag::LoopKind;
use crate::ids::LoopId;
use crate::rational::Rational;

/// Something that is fixed at a place and moves from one iteration to the next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Symbol {
    /// The number of the block along a loop of the kernel's stage.
    Block(LoopKind),
    /// The iteration of a loop around kernels or over a block.
    Loop(LoopId),
    /// The number of a thread's tile along a loop of the stage it computes.
    Thread(LoopKind),
    /// The smallest value that some reaches can have, where that is no sum of the others. Each is one of its
    /// own; [`Plan::lowest`](crate::schedule::Plan) has the reaches.
    Lowest(usize),
}

/// Where an index can be at one iteration of the loops around it: between `A + low` and `A + high`, where
/// `A` is the sum of `terms`, both clamped to `clamp`; and never outside `min..=max`.
///
/// Only whole numbers are meant: the smallest is `ceil(A + low)`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reach {
    /// Symbols and how far one step of each moves the index; each symbol once, in order, none by 0.
    pub terms: SmallVec<[(Symbol, Rational); 3]>,
    /// The smallest offset.
    pub low: Rational,
    /// The largest offset.
    pub high: Rational,
    /// Limits of a clamp, if there is one: `i64::MIN` or `i64::MAX` where it has none.
    pub clamp: Option<(i64, i64)>,
    /// Whether the clamp only moves the values, as it moves the box of a stage: all of the extent from the smallest value on is meant,
    /// as far as `max`.
    pub moved: bool,
    /// The smallest value at any iteration.
    pub min: i64,
    /// The largest value at any iteration.
    pub max: i64,
    /// Whether it follows from loops and constants: not if nothing is known of the index, or if its accesses
    /// move with the block in different ways, so that it may be anywhere in `min..=max`.
    pub bounded: bool,
}

/// How many values each symbol takes, and what each [`Symbol::Lowest`] stands for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbols {
    ranges: Vec<(Symbol, i64, i64)>,
    /// The reaches whose smallest value each `Lowest` is.
    pub lowest: Vec<Vec<Reach>>,
}

impl Symbols {
    /// Makes a symbol known that counts from 0 up to `count - 1`.
    pub fn add(&mut self, symbol: Symbol, count: i64) {
        self.add_range(symbol, 0, (count - 1).max(0));
    }

    /// Makes a symbol known that goes from `first` to `last`.
    pub fn add_range(&mut self, symbol: Symbol, first: i64, last: i64) {
        self.ranges.retain(|(known, ..)| *known != symbol);
        self.ranges.push((symbol, first, last));
    }

    /// A symbol for the smallest value of some reaches.
    fn lowest_of(&mut self, reaches: Vec<Reach>) -> Symbol {
        let symbol = Symbol::Lowest(self.lowest.len());
        let least = |end: fn(&Reach) -> i64| reaches.iter().map(end).min().unwrap_or(0);
        self.ranges.push((symbol, least(|reach| reach.min), least(|reach| reach.max)));
        self.lowest.push(reaches);
        symbol
    }

    fn range(&self, symbol: Symbol) -> (i64, i64) {
        let known = self.ranges.iter().find(|(known, ..)| *known == symbol);
        known.map_or((0, 0), |(_, first, last)| (*first, *last))
    }

    /// How many values a symbol takes.
    pub fn count(&self, symbol: Symbol) -> i64 {
        let (first, last) = self.range(symbol);
        last - first + 1
    }

    /// Whether a symbol is fixed at a place inside these loops.
    fn is_fixed(&self, symbol: Symbol, loops: &[LoopId]) -> bool {
        match symbol {
            Symbol::Block(_) => true,
            Symbol::Loop(id) => loops.contains(&id),
            Symbol::Thread(_) => false,
            Symbol::Lowest(number) => self.is_lowest_fixed(number, loops),
        }
    }

    /// Whether all that decides on [`Symbol::Lowest`] of this number is fixed at a place inside these loops.
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

    /// Anything from `min` to `max`.
    pub(crate) fn unknown(min: i64, max: i64) -> Reach {
        Reach { bounded: false, ..Reach::fixed(min, max) }
    }

    /// One of the tiles of `size` values that `extent` values from `min` are cut into.
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

    /// One point, which a symbol stands for.
    pub(crate) fn point(symbol: Symbol, min: i64, max: i64) -> Reach {
        Reach { min, max, ..Reach::from_symbol(symbol, 0) }
    }

    /// One of the tiles of `size` values that this reach is cut into.
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

    /// The same values without a clamp, so that sums can be made of it.
    #[must_use]
    pub(crate) fn plain(&self, symbols: &mut Symbols) -> Reach {
        match self.clamp {
            None => self.clone(),
            Some(_) => self.counted_from_lowest(symbols),
        }
    }

    /// The same values, counted from the smallest.
    fn counted_from_lowest(&self, symbols: &mut Symbols) -> Reach {
        let width = self.width();
        let lowest = symbols.lowest_of(vec![self.clone()]);
        Reach { min: self.min, max: self.max, bounded: self.bounded, ..Reach::from_symbol(lowest, width) }
    }

    /// `width + 1` values from a symbol on.
    fn from_symbol(symbol: Symbol, width: i64) -> Reach {
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

    /// What a stage iterates over that computes this box: one of fractions from its first to its last value, any other in its whole
    /// extent.
    #[must_use]
    pub(crate) fn iterated(&self) -> Reach {
        Reach { moved: self.clamp.is_some() && !self.has_fractions(), ..self.clone() }.settled()
    }

    /// Whether it moves by fractions, so that its ends are rounded, differently from place to place.
    pub fn has_fractions(&self) -> bool {
        let mut parts = self.terms.iter().map(|(_, step)| *step).chain([self.low, self.high]);
        !self.terms.is_empty() && parts.any(|part| part.as_integer().is_none())
    }

    /// How far apart two values can be at one iteration.
    pub fn width(&self) -> i64 {
        let offsets = self.high.sub(self.low).map_or(i64::MAX, floor);
        offsets.min(self.max - self.min).max(0)
    }

    /// How many values there can be at one iteration: what must be allocated.
    pub fn extent(&self) -> i64 {
        self.width() + 1
    }

    /// The value, if there is only one.
    pub fn singleton(&self) -> Option<i64> {
        (self.min == self.max).then_some(self.min)
    }

    /// Whether at every iteration both start at the same value.
    pub fn starts_like(&self, other: &Reach) -> bool {
        match (self.terms.is_empty(), other.terms.is_empty()) {
            (true, true) => self.min == other.min,
            _ => self.terms == other.terms && self.low == other.low && self.clamp == other.clamp,
        }
    }

    /// The span that `lang::bounds` computes with.
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

    /// With all values known to be inside `min..=max`.
    #[must_use]
    pub(crate) fn within(mut self, min: i64, max: i64) -> Reach {
        self.min = self.min.max(min);
        self.max = self.max.min(max).max(self.min);
        self.settled()
    }

    /// The same values, without terms if these have no say.
    #[must_use]
    pub(crate) fn settled(self) -> Reach {
        // What does not move, or can be as far apart as the ends, starts at the smallest value.
        if self.terms.is_empty() || self.width() == self.max - self.min {
            return Reach { bounded: self.bounded, ..Reach::fixed(self.min, self.max) };
        }
        self
    }

    /// The sum with another reach, `None` if it has no such form.
    pub(crate) fn add(&self, other: &Reach) -> Option<Reach> {
        match (self.singleton(), other.singleton()) {
            (_, Some(value)) => return self.clone().shift(value),
            (Some(value), _) => return other.clone().shift(value),
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

    /// The sum with a constant, `None` if it does not fit.
    pub(crate) fn shift(self, by: i64) -> Option<Reach> {
        let clamp = limits(self.clamp, |limit| limit.checked_add(by))?;
        Reach { clamp, ..self }.spread(by, by)
    }

    /// The sum of what is not clamped with anything from `from` to `to`, `None` if it does not fit.
    pub(crate) fn spread(self, from: i64, to: i64) -> Option<Reach> {
        if (from, to) == (0, 0) {
            return Some(self);
        }
        let (low, high) = (self.low.add(Rational::integer(from))?, self.high.add(Rational::integer(to))?);
        Some(Reach { low, high, min: self.min.checked_add(from)?, max: self.max.checked_add(to)?, ..self })
    }

    /// The product with a constant, `None` if it does not fit.
    pub(crate) fn scale(self, factor: i64, symbols: &mut Symbols) -> Option<Reach> {
        if factor == 1 {
            return Some(self);
        }
        // The largest value becomes the smallest, and is where the smallest was moved to.
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
        let clamp = limits(self.clamp, |limit| limit.checked_mul(factor))?;
        let clamp =
            clamp.map(|(low, high)| if factor < 0 { (opposite(high), opposite(low)) } else { (low, high) });
        let (min, max) = ordered(self.min, self.max)?;
        Some(Reach { terms, low: low.min(high), high: low.max(high), clamp, min, max, ..self })
    }

    /// The quotient by a positive constant, rounded down.
    pub(crate) fn floor_div(&self, divisor: i64, symbols: &mut Symbols) -> Option<Reach> {
        let quotient = self.quotient(divisor)?;
        // What a limit moved is rounded there in another way.
        let (first, last) = self.clamp.unwrap_or((i64::MIN, i64::MAX));
        let wider = |start: i64| {
            let end = start.saturating_add(self.width());
            let limits = !matches!(start, i64::MIN | i64::MAX);
            limits && end.div_euclid(divisor) - start.div_euclid(divisor) > quotient.width()
        };
        match self.moved && (quotient.has_fractions() || [first, last, self.min].into_iter().any(wider)) {
            true => self.plain(symbols).quotient(divisor),
            false => Some(quotient),
        }
    }

    fn quotient(&self, divisor: i64) -> Option<Reach> {
        let over = |value: Rational| value.div(Rational::integer(divisor));
        let terms: Option<SmallVec<_>> =
            self.terms.iter().map(|(symbol, step)| Some((*symbol, over(*step)?))).collect();
        let terms: SmallVec<[(Symbol, Rational); 3]> = terms?;
        let whole = terms.iter().all(|(_, step)| step.as_integer().is_some());
        let (low, high) = match (self.low.as_integer(), self.high.as_integer()) {
            // Every place is a multiple of the divisor away, so that rounding falls alike.
            (Some(low), Some(high)) if whole => {
                (Rational::integer(low.div_euclid(divisor)), Rational::integer(high.div_euclid(divisor)))
            }
            _ => (over(self.low.sub(Rational::integer(divisor - 1))?)?, over(self.high)?),
        };
        let quotient = |value: i64| value.div_euclid(divisor);
        Some(Reach {
            terms,
            low,
            high,
            clamp: limits(self.clamp, |limit| Some(quotient(limit)))?,
            moved: self.moved,
            min: quotient(self.min),
            max: quotient(self.max),
            bounded: self.bounded,
        })
    }

    /// Clamped to `low..=high`.
    #[must_use]
    pub(crate) fn clamped(&self, low: i64, high: i64) -> Reach {
        if low <= self.min && self.max <= high {
            return self.clone();
        }
        let (min, max) = (self.min.clamp(low, high), self.max.clamp(low, high));
        if self.terms.is_empty() {
            // What could be anywhere is bounded by the clamp, but not narrower for it.
            return Reach { bounded: self.bounded, ..Reach::fixed(min, max) };
        }
        let (old_low, old_high) = self.clamp.unwrap_or((i64::MIN, i64::MAX));
        let clamp = Some((old_low.clamp(low, high), old_high.clamp(low, high)));
        Reach { clamp, min, max, ..self.clone() }
    }

    /// As seen from a place inside fewer loops: whatever moves inside takes all its values.
    #[must_use]
    pub(crate) fn seen_from(&self, loops: &[LoopId], symbols: &Symbols) -> Reach {
        self.without(|symbol| !symbols.is_fixed(symbol, loops), symbols)
    }

    /// With some symbols taking all their values.
    fn without(&self, gone: impl Fn(Symbol) -> bool, symbols: &Symbols) -> Reach {
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
            reach.bounded &= matches!(symbol, Symbol::Loop(_));
        }
        reach.at_rest()
    }

    /// Where it ever was, if nothing moves it any more.
    #[must_use]
    fn at_rest(self) -> Reach {
        if !self.terms.is_empty() {
            return self;
        }
        let (low, high) = (ceil(self.low).max(self.min), floor(self.high).min(self.max));
        Reach { bounded: self.bounded, ..Reach::fixed(low.min(self.max), high.max(self.min)) }
    }

    /// Makes it hold another one that moves alike.
    fn extend(&mut self, other: &Reach) {
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.moved |= other.moved;
        self.bounded &= other.bounded;
    }

    /// The smallest reach that holds all of some, which are seen from the same place.
    pub(crate) fn hull(reaches: &[Reach], symbols: &mut Symbols) -> Option<Reach> {
        // A box of fractions ends at its last value, which is not where the extent of what was moved ends.
        if reaches.iter().any(|reach| reach.moved) && reaches.iter().any(Reach::has_fractions) {
            let plain = |reach: &Reach| if reach.moved { reach.plain(symbols) } else { reach.clone() };
            let reaches: Vec<Reach> = reaches.iter().map(plain).collect();
            return Reach::hull(&reaches, symbols);
        }
        let (first, others) = reaches.split_first()?;
        // Most move alike, and then nothing else has a say.
        if others.iter().all(|other| other.terms == first.terms && other.clamp == first.clamp) {
            let mut hull = first.clone().at_rest();
            match hull.terms.is_empty() {
                true => others.iter().for_each(|other| hull.extend(&other.clone().at_rest())),
                false => others.iter().for_each(|other| hull.extend(other)),
            }
            return Some(hull);
        }
        // Symbols that move some of them differently can be anywhere in the hull.
        let step = |reach: &Reach, symbol: Symbol| {
            reach.terms.iter().find(|(known, _)| *known == symbol).map(|(_, step)| *step)
        };
        let differs = |symbol: Symbol| reaches.iter().any(|reach| step(reach, symbol) != step(first, symbol));
        let mut parts: Vec<Reach> = reaches.iter().map(|reach| reach.without(differs, symbols)).collect();
        parts.dedup();
        let (mut hull, rest) = parts.split_first().map(|(first, rest)| (first.clone(), rest))?;
        if rest.is_empty() {
            return Some(hull);
        }
        let alike = rest.iter().all(|part| part.clamp == hull.clamp);
        let same_range = rest.iter().all(|part| (part.min, part.max) == (hull.min, hull.max));
        let distance = (!alike && !same_range).then(|| distance(&parts, symbols));
        if !alike && same_range {
            hull.clamp = Some((hull.min, hull.max));
        }
        for part in rest {
            hull.extend(part);
        }
        match distance {
            Some(width) if width < hull.max - hull.min && hull.bounded => {
                let (min, max) = (hull.min, hull.max);
                let lowest = symbols.lowest_of(parts);
                Some(Reach { min, max, ..Reach::from_symbol(lowest, width) })
            }
            Some(_) => Some(Reach { bounded: hull.bounded, ..Reach::fixed(hull.min, hull.max) }),
            None if hull.terms.is_empty() && hull.clamp.is_some() => {
                Some(Reach { bounded: hull.bounded, ..Reach::fixed(hull.min, hull.max) })
            }
            None => Some(hull),
        }
    }
}

/// How far apart values of reaches with the same terms can be, each clamped to its own range.
///
/// All ends are clamped shifts of the sum of the terms, so that the largest distance is at one of the places
/// where a clamp begins or ends to act.
fn distance(parts: &[Reach], symbols: &Symbols) -> i64 {
    let whole = i64::MAX;
    let Some((first, last)) = sum_range(&parts[0], symbols) else { return whole };
    let clamped = |sum: Rational, offset: Rational, part: &Reach| {
        let value = sum.add(offset)?;
        Some(value.clamp(Rational::integer(part.min), Rational::integer(part.max)))
    };
    let start = |sum: Rational, part: &Reach| clamped(sum, part.low, part);
    let end = |sum: Rational, part: &Reach| match part.moved {
        true => Some(start(sum, part)?.add(part.high.sub(part.low)?)?.min(Rational::integer(part.max))),
        false => clamped(sum, part.high, part),
    };
    let mut places = vec![first, last];
    for part in parts {
        for limit in [part.min, part.max] {
            for offset in [part.low, part.high] {
                let Some(place) = Rational::integer(limit).sub(offset) else { return whole };
                places.push(place.clamp(first, last));
            }
        }
    }
    let reach_at = |place: Rational| {
        let highest = parts.iter().map(|part| end(place, part)).collect::<Option<Vec<_>>>()?;
        let lowest = parts.iter().map(|part| start(place, part)).collect::<Option<Vec<_>>>()?;
        highest.into_iter().max()?.sub(lowest.into_iter().min()?)
    };
    let reaches: Option<Vec<Rational>> = places.into_iter().map(reach_at).collect();
    reaches.and_then(|reaches| reaches.into_iter().max()).map_or(whole, floor)
}

/// The smallest and largest sum of a reach's terms.
fn sum_range(reach: &Reach, symbols: &Symbols) -> Option<(Rational, Rational)> {
    let (mut first, mut last) = (Rational::ZERO, Rational::ZERO);
    for (symbol, step) in &reach.terms {
        let (start, end) = symbols.range(*symbol);
        let (a, b) = (step.mul(Rational::integer(start))?, step.mul(Rational::integer(end))?);
        (first, last) = (first.add(a.min(b))?, last.add(a.max(b))?);
    }
    Some((first, last))
}

/// The limits of a clamp after a change of the values, `None` if one does not fit.
fn limits(clamp: Option<(i64, i64)>, change: impl Fn(i64) -> Option<i64>) -> Option<Option<(i64, i64)>> {
    let changed = |limit: i64| if matches!(limit, i64::MIN | i64::MAX) { Some(limit) } else { change(limit) };
    match clamp {
        Some((low, high)) => Some(Some((changed(low)?, changed(high)?))),
        None => Some(None),
    }
}

/// No limit on the other side; a limit is what it is.
fn opposite(limit: i64) -> i64 {
    match limit {
        i64::MIN => i64::MAX,
        i64::MAX => i64::MIN,
        limit => limit,
    }
}

/// How many tiles of `size` cover `extent`.
pub(crate) fn blocks(extent: i64, size: i64) -> i64 {
    extent.max(1).div_euclid(size) + i64::from(extent.max(1) % size != 0)
}

fn floor(value: Rational) -> i64 {
    value.numerator().div_euclid(value.denominator())
}

fn ceil(value: Rational) -> i64 {
    -(-value.numerator()).div_euclid(value.denominator())
}
