//! Spaces of points: the axes, and the points that are refused.

mod count;
mod inputs;
mod moves;
mod random;

use std::fmt;

pub use count::{points, size, template_size};
pub use inputs::inputs;
pub use moves::{AxisStep, Direction, Moves};
pub use random::{cross, random, random_legal, random_of, walk};

/// One thing to choose.
#[derive(Clone, Debug, PartialEq)]
pub enum Axis {
    /// An ordered factorisation of `product` into `slots` positive integers.
    Factors {
        /// The name, for people.
        name: String,
        /// The product of the factors.
        product: u64,
        /// The number of factors.
        slots: usize,
    },
    /// An order of `len` things.
    Order {
        /// The name, for people.
        name: String,
        /// The number of things.
        len: usize,
    },
    /// One of several numbers, in rising order: the next smaller and the next larger one are neighbours.
    Numbers {
        /// The name, for people.
        name: String,
        /// In rising order.
        values: Vec<i64>,
    },
    /// One of `len` unordered things: all are neighbours.
    Choice {
        /// The name, for people.
        name: String,
        /// The number of things.
        len: usize,
    },
}

/// A value on an axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Coordinate {
    /// The factors of [`Axis::Factors`].
    Factors(Vec<u64>),
    /// Positions `0..len`, in the order chosen.
    Order(Vec<u8>),
    /// The position in [`Axis::Numbers`] or of [`Axis::Choice`].
    Index(u16),
}

/// A choice on every axis of a template.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point {
    /// The template whose axes these are.
    pub template: u16,
    /// One value per axis.
    pub at: Vec<Coordinate>,
}

/// The template, then the value on each axis, for example `0: 16*4*16 1>0 3`. Different points have different texts.
impl fmt::Display for Point {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:", self.template)?;
        self.at.iter().try_for_each(|coordinate| write!(out, " {coordinate}"))
    }
}

impl fmt::Display for Coordinate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn joined<T: ToString>(values: &[T], between: &str) -> String {
            values.iter().map(T::to_string).collect::<Vec<_>>().join(between)
        }
        match self {
            Coordinate::Factors(factors) => out.write_str(&joined(factors, "*")),
            Coordinate::Order(order) => out.write_str(&joined(order, ">")),
            Coordinate::Index(index) => write!(out, "{index}"),
        }
    }
}

/// Some templates, each with axes of its own.
pub trait Space {
    /// The number of templates, at least one.
    fn templates(&self) -> usize;

    /// The axes of a template.
    fn axes(&self, template: u16) -> &[Axis];

    /// The point that a template was made from, which is legal. Local searches start at that of template 0.
    fn origin(&self, template: u16) -> Point;

    /// Why the rules refuse a point; `None` if it can be measured.
    fn refusal(&self, point: &Point) -> Option<String>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_text() {
        let at =
            vec![Coordinate::Factors(vec![16, 4, 16]), Coordinate::Order(vec![1, 0]), Coordinate::Index(3)];
        assert_eq!(Point { template: 2, at }.to_string(), "2: 16*4*16 1>0 3");
        assert_eq!(Point { template: 0, at: Vec::new() }.to_string(), "0:");
    }
}
