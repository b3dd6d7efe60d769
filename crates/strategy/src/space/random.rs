//! Random values, points and walks.

use super::{Axis, Coordinate, Moves, Point, Space};
use crate::Draw;

impl Axis {
    /// A uniformly random value.
    pub fn random(&self, draw: &mut Draw) -> Coordinate {
        self.coordinate(draw.below(self.count()))
    }

    /// The end of a q-random walk from a value: with probability `1 - q` it stops, otherwise it goes to any neighbour
    /// by OpEvo's moves and decides again.
    pub fn walk(&self, from: &Coordinate, q: f64, draw: &mut Draw) -> Coordinate {
        let mut here = from.clone();
        while draw.chance(q) {
            let mut neighbours = Moves::Prime.on_axis(self, &here);
            if neighbours.is_empty() {
                break;
            }
            here = neighbours.swap_remove(draw.position(neighbours.len()));
        }
        here
    }
}

/// A uniformly random point of a template.
pub fn random_of(space: &dyn Space, template: u16, draw: &mut Draw) -> Point {
    Point { template, at: space.axes(template).iter().map(|axis| axis.random(draw)).collect() }
}

/// Any template, then any of its points; it may be refused.
pub fn random(space: &dyn Space, draw: &mut Draw) -> Point {
    let template = draw.position(space.templates()) as u16;
    random_of(space, template, draw)
}

/// The first of at most `tries` random points that is not refused.
pub fn random_legal(space: &dyn Space, draw: &mut Draw, tries: usize) -> Option<Point> {
    (0..tries).map(|_| random(space, draw)).find(|point| space.refusal(point).is_none())
}

/// An independent q-random walk on each axis.
pub fn walk(space: &dyn Space, from: &Point, q: f64, draw: &mut Draw) -> Point {
    let axes = space.axes(from.template).iter();
    let at = axes.zip(&from.at).map(|(axis, coordinate)| axis.walk(coordinate, q, draw)).collect();
    Point { template: from.template, at }
}

/// A child: a template drawn from the parents by weight, then each coordinate, independently, from one of the parents
/// with this template, by weight. `None` if no parent has weight.
pub fn cross(parents: &[(&Point, f64)], draw: &mut Draw) -> Option<Point> {
    let weights: Vec<f64> = parents.iter().map(|(_, weight)| *weight).collect();
    let template = parents[draw.roulette(&weights)?].0.template;
    let weights: Vec<f64> = parents
        .iter()
        .map(|(point, weight)| if point.template == template { *weight } else { 0.0 })
        .collect();
    let axes =
        parents.iter().find(|(point, _)| point.template == template).map_or(0, |(point, _)| point.at.len());
    let at = (0..axes).map(|axis| Some(parents[draw.roulette(&weights)?].0.at[axis].clone()));
    Some(Point { template, at: at.collect::<Option<_>>()? })
}
