//! Spaces that are made up, with times that are known.

use std::collections::BTreeSet;
use warploom_strategy::{Axis, Coordinate, Point, Space, Strategy, Verdict};

pub fn factors(product: u64, slots: usize) -> Axis {
    Axis::Factors { name: format!("{product} in {slots}"), product, slots }
}

/// The logarithms to base 2 of the factors on an axis.
fn logarithms(point: &Point, axis: usize) -> Vec<f64> {
    match &point.at[axis] {
        Coordinate::Factors(factors) => factors.iter().map(|factor| f64::from(factor.ilog2())).collect(),
        other => panic!("{other:?} are no factors"),
    }
}

/// A matrix product with tilings of m, k and n in 4, 2 and 4: blocks, then serial steps, threads and the innermost tile. Its
/// time is a made-up model, smooth but for traps.
pub struct Gemm {
    axes: Vec<Axis>,
    side: u64,
}

impl Gemm {
    pub fn new(side: u64) -> Gemm {
        Gemm { axes: vec![factors(side, 4), factors(side, 2), factors(side, 4)], side }
    }

    /// How far the tile of a dimension is from 4 serial steps, 16 threads and 4 innermost points.
    fn off(point: &Point, axis: usize) -> f64 {
        let at = logarithms(point, axis);
        (at[1] - 1.0).powi(2) + 1.5 * (at[2] - 4.0).powi(2) + (at[3] - 2.0).powi(2)
    }

    pub fn verdict(&self, point: &Point) -> Verdict {
        if self.refusal(point).is_some() {
            return Verdict::Refused;
        }
        let (m, k, n) = (logarithms(point, 0), logarithms(point, 1), logarithms(point, 2));
        // Tiles that spill.
        if m[3] + n[3] > 7.0 {
            return Verdict::Failed;
        }
        // Traps: odd exponents of both tiles conflict, and so does a reduction that is as long as the tile is wide.
        let banks = if m[3] % 2.0 == 1.0 && n[3] % 2.0 == 1.0 { 1.3 } else { 1.0 };
        let stride = if k[1] == m[2] { 1.2 } else { 1.0 };
        let off = Gemm::off(point, 0) + Gemm::off(point, 2) + 0.7 * (k[1] - 3.0).powi(2);
        Verdict::Time(10.0 * (1.0 + 0.2 * off) * banks * stride)
    }
}

impl Space for Gemm {
    fn templates(&self) -> usize {
        1
    }

    fn axes(&self, _: u16) -> &[Axis] {
        &self.axes
    }

    fn origin(&self, _: u16) -> Point {
        let untiled = |slots: usize| {
            Coordinate::Factors((0..slots).map(|slot| if slot == 0 { self.side } else { 1 }).collect())
        };
        Point { template: 0, at: vec![untiled(4), untiled(2), untiled(4)] }
    }

    fn refusal(&self, point: &Point) -> Option<String> {
        let (m, k, n) = (logarithms(point, 0), logarithms(point, 1), logarithms(point, 2));
        if m[2] + n[2] > 10.0 {
            return Some("more than 1024 threads".to_owned());
        }
        let rows: f64 = m[1..].iter().sum::<f64>().max(n[1..].iter().sum());
        (rows + k[1] > 13.0).then(|| "too much shared memory".to_owned())
    }
}

/// Two templates with every kind of axis. The second is the better one, and has 3 as a prime.
pub struct Mixed([Vec<Axis>; 2]);

impl Mixed {
    pub fn new() -> Mixed {
        let name = |name: &str| name.to_owned();
        let plain = vec![factors(16, 2), Axis::Choice { name: name("unroll"), len: 2 }];
        let rich = vec![
            factors(24, 3),
            Axis::Order { name: name("loops"), len: 3 },
            Axis::Numbers { name: name("depth"), values: vec![0, 1, 2, 4] },
            Axis::Choice { name: name("stage"), len: 3 },
        ];
        Mixed([plain, rich])
    }

    pub fn verdict(&self, point: &Point) -> Verdict {
        if self.refusal(point).is_some() {
            return Verdict::Refused;
        }
        let index = |axis: usize| match point.at[axis] {
            Coordinate::Index(at) => f64::from(at),
            _ => 0.0,
        };
        let sizes = logarithms(point, 0);
        if point.template == 0 {
            return Verdict::Time(20.0 + 3.0 * (sizes[1] - 2.0).abs() + index(1));
        }
        let order = if point.at[1] == Coordinate::Order(vec![2, 0, 1]) { 0.0 } else { 4.0 };
        let off = (sizes[1] - 1.0).powi(2) + (sizes[2] - 2.0).powi(2) + (index(2) - 2.0).abs() + order;
        if index(3) == 2.0 { Verdict::Failed } else { Verdict::Time(5.0 + off + 2.0 * index(3)) }
    }
}

impl Space for Mixed {
    fn templates(&self) -> usize {
        2
    }

    fn axes(&self, template: u16) -> &[Axis] {
        &self.0[usize::from(template)]
    }

    fn origin(&self, template: u16) -> Point {
        let start = |axis: &Axis| match axis {
            Axis::Factors { product, slots, .. } => {
                Coordinate::Factors((0..*slots).map(|slot| if slot == 0 { *product } else { 1 }).collect())
            }
            Axis::Order { len, .. } => Coordinate::Order((0..*len as u8).collect()),
            Axis::Numbers { .. } | Axis::Choice { .. } => Coordinate::Index(0),
        };
        Point { template, at: self.axes(template).iter().map(start).collect() }
    }

    fn refusal(&self, point: &Point) -> Option<String> {
        let sizes = logarithms(point, 0);
        (point.template == 1 && sizes[1] == 0.0 && sizes[2] == 1.0).then(|| "a made-up rule".to_owned())
    }
}

/// What a run asked and was told, in order.
pub type Steps = Vec<(Point, Verdict)>;

/// Runs a strategy until it has used its trials, or asks nothing. Checks what every strategy must keep.
pub fn run(
    strategy: &mut dyn Strategy,
    space: &dyn Space,
    verdict: impl Fn(&Point) -> Verdict,
    trials: usize,
    most: usize,
) -> Steps {
    let mut steps = Steps::new();
    let mut asked = BTreeSet::new();
    let mut left = trials;
    while left > 0 {
        let batch = strategy.ask(space, most.min(left));
        assert!(batch.len() <= most.min(left), "more than allowed");
        if batch.is_empty() {
            break;
        }
        for point in &batch {
            let axes = space.axes(point.template);
            assert_eq!(axes.len(), point.at.len());
            assert!(axes.iter().zip(&point.at).all(|(axis, at)| axis.holds(at)), "{point:?}");
            assert!(asked.insert(point.clone()), "{} asks {point:?} twice", strategy.key());
        }
        let results: Steps = batch.into_iter().map(|point| (point.clone(), verdict(&point))).collect();
        left -= results.iter().filter(|(_, verdict)| *verdict != Verdict::Refused).count();
        strategy.tell(space, &results);
        steps.extend(results);
    }
    steps
}

/// The least time of a run.
pub fn best(steps: &[(Point, Verdict)]) -> f64 {
    let time = |verdict: &Verdict| if let Verdict::Time(time) = verdict { *time } else { f64::INFINITY };
    steps.iter().map(|(_, verdict)| time(verdict)).fold(f64::INFINITY, f64::min)
}
