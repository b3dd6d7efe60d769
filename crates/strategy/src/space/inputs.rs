//! Points as inputs of a network.

use super::{Axis, Coordinate, Point, Space};
use crate::maths;

/// The numbers that describe a point to a network; points of one template have the same number of them. Factors become
/// `log2(factor) / log2(product)`, numbers their position from 0 to 1; choices and orders are one-hot.
pub fn inputs(space: &dyn Space, point: &Point) -> Vec<f32> {
    let mut numbers = Vec::new();
    for (axis, coordinate) in space.axes(point.template).iter().zip(&point.at) {
        match (axis, coordinate) {
            (Axis::Factors { product, .. }, Coordinate::Factors(factors)) => {
                let whole = maths::log2(*product).max(1.0);
                numbers.extend(factors.iter().map(|&factor| (maths::log2(factor) / whole) as f32));
            }
            (Axis::Order { len, .. }, Coordinate::Order(order)) => {
                order.iter().for_each(|&at| one_hot(&mut numbers, *len, usize::from(at)));
            }
            (Axis::Numbers { values, .. }, Coordinate::Index(at)) => {
                numbers.push(f32::from(*at) / values.len().saturating_sub(1).max(1) as f32);
            }
            (Axis::Choice { len, .. }, Coordinate::Index(at)) => {
                one_hot(&mut numbers, *len, usize::from(*at))
            }
            _ => {}
        }
    }
    numbers
}

fn one_hot(numbers: &mut Vec<f32>, len: usize, hot: usize) {
    numbers.extend((0..len).map(|at| if at == hot { 1.0 } else { 0.0 }));
}
