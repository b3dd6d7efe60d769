//! Steps from a point to its neighbours.

use super::count::primes;
use super::{Axis, Coordinate, Point, Space};

/// A definition of neighbours. They differ in how factors move; orders are the same in all: any two things swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// OpEvo's: one prime moves from a slot to another, numbers go up or down by one, any other choice is a neighbour.
    Prime,
    /// Those of G-BFS and N-A2C: a slot is halved and another doubled. The papers have only sizes that are powers of
    /// two. Here the smallest prime of the source slot moves: an even slot gives a 2, a slot of 15 a 3. So every
    /// factorisation can be reached. The other axes move as OpEvo's.
    Double,
    /// FlexTensor's: a slot rises to the next divisor of its product with another one, which takes the rest. Numbers
    /// and choices go one up or down, cyclically.
    Divisor,
}

/// A direction, the same for all points of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// A step on one axis.
    Along {
        /// The position of the axis.
        axis: usize,
        /// The step.
        step: AxisStep,
    },
    /// To the origin of another template.
    Template(u16),
}

/// A step on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisStep {
    /// A prime moves from a slot to another.
    Prime {
        /// The slot that is divided by it.
        from: usize,
        /// The slot that is multiplied by it.
        to: usize,
        /// The prime; 0 stands for the smallest prime of the source slot.
        prime: u64,
    },
    /// A slot becomes the next larger divisor of its product with another one, which takes the rest.
    Divisor {
        /// The slot that falls.
        from: usize,
        /// The slot that rises.
        to: usize,
    },
    /// Two things of an order swap.
    Swap(usize, usize),
    /// The next larger number, if any.
    Up,
    /// The next smaller number, if any.
    Down,
    /// The next number or choice, cyclically.
    Next,
    /// The previous number or choice, cyclically. Absent if there are only two, where it equals the next.
    Previous,
    /// A particular choice.
    Choose(u16),
}

impl Moves {
    /// All directions of a template: those along its axes, in order, then one per template. The position is the number
    /// of a direction. Some have no destination from some points.
    pub fn directions(self, space: &dyn Space, template: u16) -> Vec<Direction> {
        let along = |(axis, of): (usize, &Axis)| {
            self.steps(of).into_iter().map(move |step| Direction::Along { axis, step }).collect::<Vec<_>>()
        };
        let mut directions: Vec<Direction> =
            space.axes(template).iter().enumerate().flat_map(along).collect();
        if space.templates() > 1 {
            directions.extend((0..space.templates() as u16).map(Direction::Template));
        }
        directions
    }

    /// The steps on an axis, the same for all its values.
    pub fn steps(self, axis: &Axis) -> Vec<AxisStep> {
        let pairs = |len: usize| {
            (0..len).flat_map(move |to| (0..len).filter(move |&from| from != to).map(move |from| (to, from)))
        };
        match (axis, self) {
            (Axis::Factors { product, slots, .. }, Moves::Prime) => primes(*product)
                .into_iter()
                .flat_map(|(prime, _)| {
                    pairs(*slots).map(move |(to, from)| AxisStep::Prime { from, to, prime })
                })
                .collect(),
            (Axis::Factors { slots, .. }, Moves::Double) => {
                pairs(*slots).map(|(to, from)| AxisStep::Prime { from, to, prime: 0 }).collect()
            }
            (Axis::Factors { slots, .. }, Moves::Divisor) => {
                pairs(*slots).map(|(to, from)| AxisStep::Divisor { from, to }).collect()
            }
            (Axis::Order { len, .. }, _) => {
                (0..*len).flat_map(|i| (i + 1..*len).map(move |j| AxisStep::Swap(i, j))).collect()
            }
            (Axis::Numbers { .. } | Axis::Choice { .. }, Moves::Divisor) => {
                vec![AxisStep::Previous, AxisStep::Next]
            }
            (Axis::Numbers { .. }, _) => vec![AxisStep::Down, AxisStep::Up],
            (Axis::Choice { len, .. }, _) => (0..*len).map(|at| AxisStep::Choose(at as u16)).collect(),
        }
    }

    /// The neighbours of a value, all different.
    pub fn on_axis(self, axis: &Axis, from: &Coordinate) -> Vec<Coordinate> {
        self.steps(axis).into_iter().filter_map(|step| step.apply(axis, from)).collect()
    }

    /// The neighbours of a point, all different, each with the number of its direction. They may be refused.
    pub fn neighbours(self, space: &dyn Space, point: &Point) -> Vec<(usize, Point)> {
        let directions = self.directions(space, point.template);
        let all = directions.iter().enumerate();
        all.filter_map(|(number, direction)| Some((number, direction.apply(space, point)?))).collect()
    }
}

impl Direction {
    /// The destination from a point; `None` if there is none.
    pub fn apply(self, space: &dyn Space, point: &Point) -> Option<Point> {
        match self {
            Direction::Along { axis, step } => {
                let there = step.apply(&space.axes(point.template)[axis], &point.at[axis])?;
                let mut point = point.clone();
                point.at[axis] = there;
                Some(point)
            }
            Direction::Template(template) => (template != point.template).then(|| space.origin(template)),
        }
    }
}

impl AxisStep {
    /// The destination from a value of an axis; `None` if there is none, or if it is no step of this axis.
    pub fn apply(self, axis: &Axis, value: &Coordinate) -> Option<Coordinate> {
        match value {
            Coordinate::Factors(factors) => self.transfer(factors).map(Coordinate::Factors),
            Coordinate::Order(order) => {
                let AxisStep::Swap(i, j) = self else { return None };
                let mut order = order.clone();
                order.swap(i, j);
                Some(Coordinate::Order(order))
            }
            Coordinate::Index(at) => {
                let len = u16::try_from(axis.count()).unwrap_or(u16::MAX);
                let to = match self {
                    AxisStep::Up => (at + 1 < len).then_some(at + 1),
                    AxisStep::Down => at.checked_sub(1),
                    AxisStep::Next => (len > 1).then_some((at + 1) % len.max(1)),
                    AxisStep::Previous => {
                        (len > 2).then_some(at.checked_sub(1).unwrap_or(len.saturating_sub(1)))
                    }
                    AxisStep::Choose(to) => (to != *at).then_some(to),
                    _ => None,
                };
                to.map(Coordinate::Index)
            }
        }
    }
    fn transfer(self, factors: &[u64]) -> Option<Vec<u64>> {
        let (from, to, up, down) = match self {
            AxisStep::Prime { from, to, prime } => {
                let prime = if prime == 0 { primes(factors[from]).first()?.0 } else { prime };
                (
                    from,
                    to,
                    factors[to] * prime,
                    factors[from].is_multiple_of(prime).then(|| factors[from] / prime)?,
                )
            }
            AxisStep::Divisor { from, to } => {
                let both = factors[from] * factors[to];
                let next = divisors(both).into_iter().filter(|&divisor| divisor > factors[to]).min()?;
                (from, to, next, both / next)
            }
            _ => return None,
        };
        let mut factors = factors.to_vec();
        (factors[from], factors[to]) = (down, up);
        Some(factors)
    }
}

fn divisors(product: u64) -> Vec<u64> {
    let mut found = vec![1];
    for (prime, exponent) in primes(product) {
        let smaller = found.clone();
        found.extend((1..=exponent).flat_map(|e| smaller.iter().map(move |divisor| divisor * prime.pow(e))));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn factors(product: u64, slots: usize) -> Axis {
        Axis::Factors { name: String::new(), product, slots }
    }

    fn neighbours(moves: Moves, axis: &Axis, from: &[u64]) -> Vec<Vec<u64>> {
        let all = moves.on_axis(axis, &Coordinate::Factors(from.to_vec()));
        all.into_iter().map(|at| if let Coordinate::Factors(at) = at { at } else { vec![] }).collect()
    }

    #[test]
    fn factors_move_as_each_paper_says() {
        let axis = factors(12, 2);
        assert_eq!(neighbours(Moves::Prime, &axis, &[1, 12]), [[2, 6], [3, 4]]);
        assert_eq!(neighbours(Moves::Prime, &axis, &[6, 2]), [[12, 1], [3, 4], [2, 6]]);
        assert_eq!(neighbours(Moves::Double, &axis, &[4, 3]), [[12, 1], [2, 6]]);
        assert_eq!(neighbours(Moves::Divisor, &axis, &[2, 6]), [[3, 4], [1, 12]]);
        assert_eq!(neighbours(Moves::Divisor, &axis, &[12, 1]), [[6, 2]]);
    }

    #[test]
    fn a_matrix_product_has_26_actions() {
        let axes = [factors(1024, 4), factors(1024, 2), factors(1024, 4)];
        assert_eq!(axes.iter().map(|axis| Moves::Double.steps(axis).len()).sum::<usize>(), 26);
    }

    #[test]
    fn numbers_and_choices_move_as_each_paper_says() {
        let name = String::new();
        let numbers = Axis::Numbers { name: name.clone(), values: vec![1, 5, 9] };
        let choice = Axis::Choice { name: name.clone(), len: 4 };
        let two = Axis::Choice { name, len: 2 };
        let at = |moves: Moves, axis: &Axis, at: u16| moves.on_axis(axis, &Coordinate::Index(at));
        let indices = |list: &[u16]| list.iter().map(|&at| Coordinate::Index(at)).collect::<Vec<_>>();
        assert_eq!(at(Moves::Prime, &numbers, 0), indices(&[1]));
        assert_eq!(at(Moves::Double, &numbers, 1), indices(&[0, 2]));
        assert_eq!(at(Moves::Divisor, &numbers, 0), indices(&[2, 1]));
        assert_eq!(at(Moves::Prime, &choice, 1), indices(&[0, 2, 3]));
        assert_eq!(at(Moves::Divisor, &choice, 3), indices(&[2, 0]));
        assert_eq!(at(Moves::Divisor, &two, 1), indices(&[0]));
    }

    #[test]
    fn orders_swap_any_two() {
        let axis = Axis::Order { name: String::new(), len: 4 };
        let all = Moves::Prime.on_axis(&axis, &Coordinate::Order(vec![2, 0, 1, 3]));
        assert_eq!(all.len(), 6);
        assert!(all.contains(&Coordinate::Order(vec![3, 0, 1, 2])));
    }

    #[test]
    fn every_factorisation_can_be_reached() {
        let axis = factors(2 * 2 * 3 * 5, 3);
        for moves in [Moves::Prime, Moves::Double, Moves::Divisor] {
            let mut reached = BTreeSet::from([axis.coordinate(0)]);
            let mut open = vec![axis.coordinate(0)];
            while let Some(here) = open.pop() {
                let near = moves.on_axis(&axis, &here);
                assert_eq!(near.iter().collect::<BTreeSet<_>>().len(), near.len(), "neighbours differ");
                assert!(near.iter().all(|at| axis.holds(at)));
                open.extend(near.into_iter().filter(|at| reached.insert(at.clone())));
            }
            assert_eq!(reached.len() as u128, axis.count(), "{moves:?}");
        }
    }
}
