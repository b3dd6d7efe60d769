//! The smallest reach that includes several.

use warploom_schedule::Rational;

use crate::reach::limit::Limit;
use crate::reach::symbol::Symbol;
use crate::reach::{Reach, Symbols};

impl Reach {
    /// Whether a limit of the clamp follows from the sizes of a launch.
    pub(super) fn is_limited_by_sizes(&self) -> bool {
        let of_sizes = |limit: Limit| matches!(limit, Limit::Formula(_));
        self.clamp.is_some_and(|(low, high)| of_sizes(low) || of_sizes(high))
    }

    /// Extends the reach to include another one with the same terms.
    fn extend(&mut self, other: &Reach) {
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.moved |= other.moved;
        self.bounded &= other.bounded;
    }

    /// The smallest reach that includes all the given ones, which are seen from the same position.
    pub(crate) fn hull(reaches: &[Reach], symbols: &mut Symbols) -> Option<Reach> {
        // A reach with fractions ends at its last value, while a moved reach ends after its full
        // extent.
        if reaches.iter().any(|reach| reach.moved) && reaches.iter().any(Reach::has_fractions) {
            let plain = |reach: &Reach| if reach.moved { reach.plain(symbols) } else { reach.clone() };
            let reaches: Vec<Reach> = reaches.iter().map(plain).collect();
            return Reach::hull(&reaches, symbols);
        }
        let (first, others) = reaches.split_first()?;
        // Usually all move alike, and then only the ends differ.
        if others.iter().all(|other| other.terms == first.terms && other.clamp == first.clamp) {
            let at_rest = first.terms.is_empty();
            let mut hull = if at_rest { first.at_rest(&symbols.limits) } else { first.clone() };
            for other in others {
                if at_rest { hull.extend(&other.at_rest(&symbols.limits)) } else { hull.extend(other) }
            }
            return Some(hull);
        }
        // Symbols that move some of them differently take all their values.
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
        // Limits that differ from size to size say nothing about how far the parts are apart.
        let unrelated = !alike && parts.iter().any(Reach::is_limited_by_sizes);
        let same_range = !unrelated && rest.iter().all(|part| (part.min, part.max) == (hull.min, hull.max));
        let distance =
            (!alike && !same_range).then(|| if unrelated { i64::MAX } else { distance(&parts, symbols) });
        if !alike && same_range {
            hull.clamp = Some((Limit::Value(hull.min), Limit::Value(hull.max)));
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

/// The maximum distance between values of reaches with the same terms, each clamped to its own range.
///
/// All ends are clamped shifts of the sum of the terms, so the maximum is at a point where a clamp starts or
/// stops to act.
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
    reaches.and_then(|reaches| reaches.into_iter().max()).map_or(whole, Rational::floor)
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
