//! Enumeration of the values of an axis.

use super::{Axis, Coordinate, Point, Space};

/// The primes of a positive number with their exponents, in rising order.
pub(crate) fn primes(product: u64) -> Vec<(u64, u32)> {
    let mut left = product.max(1);
    let mut found = Vec::new();
    let mut prime = 2;
    while prime <= left / prime {
        let mut exponent = 0;
        while left.is_multiple_of(prime) {
            left /= prime;
            exponent += 1;
        }
        if exponent > 0 {
            found.push((prime, exponent));
        }
        prime += if prime == 2 { 1 } else { 2 };
    }
    if left > 1 {
        found.push((left, 1));
    }
    found
}

/// The number of ways to put `things` identical things into `boxes` boxes.
fn ways(things: u32, boxes: usize) -> u128 {
    let Some(bars) = boxes.checked_sub(1) else { return u128::from(things == 0) };
    (1..=bars as u128).fold(1u128, |sum, n| sum.saturating_mul(u128::from(things) + n) / n)
}

/// The way with number `index` to put `things` into boxes.
fn fill(mut things: u32, boxes: usize, mut index: u128) -> Vec<u32> {
    let mut filled = Vec::with_capacity(boxes);
    for rest in (0..boxes).rev() {
        let mut here = if rest == 0 { things } else { 0 };
        while rest > 0 && here < things && index >= ways(things - here, rest) {
            index -= ways(things - here, rest);
            here += 1;
        }
        things -= here;
        filled.push(here);
    }
    filled
}

impl Axis {
    /// The name, for people.
    pub fn name(&self) -> &str {
        match self {
            Axis::Factors { name, .. }
            | Axis::Order { name, .. }
            | Axis::Numbers { name, .. }
            | Axis::Choice { name, .. } => name,
        }
    }

    /// The number of values; saturates at [`u128::MAX`].
    pub fn count(&self) -> u128 {
        match self {
            Axis::Factors { product, slots, .. } => {
                primes(*product).iter().fold(1, |n: u128, &(_, e)| n.saturating_mul(ways(e, *slots)))
            }
            Axis::Order { len, .. } => (1..=*len as u128).fold(1, u128::saturating_mul),
            Axis::Numbers { values, .. } => values.len() as u128,
            Axis::Choice { len, .. } => *len as u128,
        }
    }

    /// The value with a number below [`Axis::count`]. Every value has exactly one number.
    pub fn coordinate(&self, mut index: u128) -> Coordinate {
        match self {
            Axis::Factors { product, slots, .. } => {
                let mut factors = vec![1u64; *slots];
                for (prime, exponent) in primes(*product) {
                    let all = ways(exponent, *slots).max(1);
                    let filled = fill(exponent, *slots, index % all);
                    index /= all;
                    factors.iter_mut().zip(filled).for_each(|(factor, e)| *factor *= prime.pow(e));
                }
                Coordinate::Factors(factors)
            }
            Axis::Order { len, .. } => {
                let mut left: Vec<u8> = (0..*len).map(|at| at as u8).collect();
                let mut order = Vec::with_capacity(*len);
                while !left.is_empty() {
                    let choices = left.len() as u128;
                    order.push(left.remove((index % choices) as usize));
                    index /= choices;
                }
                Coordinate::Order(order)
            }
            Axis::Numbers { .. } | Axis::Choice { .. } => Coordinate::Index(index as u16),
        }
    }

    /// Whether a value belongs to this axis.
    pub fn holds(&self, coordinate: &Coordinate) -> bool {
        match (self, coordinate) {
            (Axis::Factors { product, slots, .. }, Coordinate::Factors(factors)) => {
                factors.len() == *slots
                    && factors.iter().try_fold(1u64, |all, &f| all.checked_mul(f)) == Some(*product)
            }
            (Axis::Order { len, .. }, Coordinate::Order(order)) => {
                let mut sorted: Vec<usize> = order.iter().map(|&at| usize::from(at)).collect();
                sorted.sort_unstable();
                sorted.into_iter().eq(0..*len)
            }
            (Axis::Numbers { .. } | Axis::Choice { .. }, Coordinate::Index(at)) => {
                u128::from(*at) < self.count()
            }
            _ => false,
        }
    }
}

/// The number of points of a template; saturates at [`u128::MAX`].
pub fn template_size(space: &dyn Space, template: u16) -> u128 {
    space.axes(template).iter().fold(1, |n: u128, axis| n.saturating_mul(axis.count()))
}

/// The number of points in all templates, legal or not.
pub fn size(space: &dyn Space) -> u128 {
    (0..space.templates()).fold(0, |n: u128, t| n.saturating_add(template_size(space, t as u16)))
}

/// All points, legal or not, template by template.
pub fn points(space: &dyn Space) -> impl Iterator<Item = Point> + '_ {
    (0..space.templates() as u16).flat_map(move |template| {
        (0..template_size(space, template)).map(move |mut index| {
            let at = |axis: &Axis| {
                let count = axis.count().max(1);
                let coordinate = axis.coordinate(index % count);
                index /= count;
                coordinate
            };
            Point { template, at: space.axes(template).iter().map(at).collect() }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_value_has_one_number() {
        let name = String::new();
        let axes = [
            Axis::Factors { name: name.clone(), product: 360, slots: 3 },
            Axis::Factors { name: name.clone(), product: 1, slots: 4 },
            Axis::Factors { name: name.clone(), product: 97, slots: 1 },
            Axis::Order { name: name.clone(), len: 5 },
            Axis::Numbers { name: name.clone(), values: vec![1, 2, 9] },
            Axis::Choice { name, len: 4 },
        ];
        for (axis, count) in axes.iter().zip([10 * 6 * 3, 1, 1, 120, 3, 4]) {
            assert_eq!(axis.count(), count);
            let all: BTreeSet<Coordinate> = (0..count).map(|index| axis.coordinate(index)).collect();
            assert_eq!(all.len() as u128, count, "{axis:?}");
            assert!(all.iter().all(|coordinate| axis.holds(coordinate)));
        }
    }

    #[test]
    fn factorisations_are_counted_as_by_hand() {
        let by_hand = |product: u64| {
            (1..=product)
                .flat_map(|a| (1..=product).map(move |b| (a, b)))
                .fold(0, |n, (a, b)| n + u128::from(product.is_multiple_of(a * b)))
        };
        for product in 1..60 {
            let axis = Axis::Factors { name: String::new(), product, slots: 3 };
            assert_eq!(axis.count(), by_hand(product), "{product}");
        }
    }

    #[test]
    fn primes_of_large_numbers() {
        assert_eq!(primes(1), []);
        assert_eq!(primes(2 * 2 * 3 * 65_537), [(2, 2), (3, 1), (65_537, 1)]);
        assert_eq!(primes(65_537 * 65_537), [(65_537, 2)]);
    }
}
