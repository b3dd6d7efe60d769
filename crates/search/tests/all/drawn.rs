//! Random points, and a product of matrices to draw them from.

use warploom_lang::{Input, Pipeline, Realisation, Region, func, rdom, vars};
use warploom_plan::Problem;
use warploom_schedule::Schedule;
use warploom_search::points::Schedules;
use warploom_strategy::{Axis, Coordinate, Point, Space};
use warploom_target::Device;

/// A small generator of numbers, the same everywhere.
pub struct Draw(pub u64);

impl Draw {
    fn below(&mut self, len: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % len.max(1) as u64) as usize
    }

    fn on(&mut self, axis: &Axis) -> Coordinate {
        match axis {
            Axis::Factors { product, slots, .. } => {
                let mut factors = vec![1; *slots];
                primes(*product).into_iter().for_each(|prime| factors[self.below(*slots)] *= prime);
                Coordinate::Factors(factors)
            }
            Axis::Order { len, .. } => {
                let mut order: Vec<u8> = (0..*len as u8).collect();
                (1..*len).rev().for_each(|last| order.swap(last, self.below(last + 1)));
                Coordinate::Order(order)
            }
            Axis::Numbers { values, .. } => Coordinate::Index(self.below(values.len()) as u16),
            Axis::Choice { len, .. } => Coordinate::Index(self.below(*len) as u16),
        }
    }

    /// Any point.
    pub fn point(&mut self, space: &Schedules) -> Point {
        let template = self.below(space.templates()) as u16;
        Point { template, at: space.axes(template).iter().map(|axis| self.on(axis)).collect() }
    }

    /// A point that differs from an origin on a few axes.
    pub fn near(&mut self, space: &Schedules) -> Point {
        let mut point = space.origin(self.below(space.templates()) as u16);
        let axes = space.axes(point.template);
        for _ in 0..1 + self.below(3) {
            let axis = self.below(axes.len());
            if let Some(at) = point.at.get_mut(axis) {
                *at = self.on(&axes[axis]);
            }
        }
        point
    }
}

pub fn primes(mut product: u64) -> Vec<u64> {
    let (mut found, mut prime) = (Vec::new(), 2);
    while product > 1 {
        while product.is_multiple_of(prime) {
            found.push(prime);
            product /= prime;
        }
        prime += 1;
    }
    found
}

/// A product of square matrices in blocks of tiles, with copies of both operands.
pub fn product(side: i64) -> (Problem, Schedule) {
    let (x, y) = vars!(x, y);
    let (a, b) = (Input::f32("A", 2), Input::f32("B", 2));
    let r = rdom!(r: (0, side as i32));
    let [k] = r.vars();
    let prod = func("prod", (x, y), 0.0_f32).over(&r, |f| f.add((x, y), a.at((k, y)) * b.at((x, k))));
    let pipeline = Pipeline::new("mm", [func("out", (x, y), prod.at((x, y)))]).expect("it is a pipeline");
    let square = Region::of_extents(&[side, side]);
    let request = Realisation::new(&pipeline).input("A", square.clone()).input("B", square.clone());
    let request = request.output("out", square);
    let problem = Problem::new(&pipeline, &request, &Device::preset("h200").expect("a known device"))
        .expect("the request fits");
    let schedule = "
mm
  kernel out   block x 64, y 64
    prod.0     threads x 16, y 16  serial x 4, y 4         unroll  private
    over prod.1.r 8
      A.stage  flat                                                shared
      B.stage  flat                                                shared
      prod.1   threads x 16, y 16  serial r all, x 4, y 4  unroll  private
    out        threads x 16, y 16  serial x 4, y 4         unroll
";
    let schedule = Schedule::parse(schedule, &pipeline).unwrap_or_else(|errors| panic!("{errors}"));
    (problem, schedule)
}
