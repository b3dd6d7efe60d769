//! Strategies that look for the fastest point of a space. They are asked for points and told their times; they know
//! nothing of schedules or GPUs.
//!
//! [`make`] returns a strategy by its name: random search, and those of four papers. A strategy of your own implements
//! [`Strategy`]. This one goes to a random neighbour of the best point so far, and gives up if there is no new one:
//!
//! ```
//! use std::collections::HashSet;
//! use warploom_strategy::{Axis, Coordinate, Draw, Moves, Point, Space, Strategy, Verdict};
//!
//! struct Climb {
//!     draw: Draw,
//!     told: HashSet<Point>,
//!     best: Option<(f64, Point)>,
//! }
//!
//! impl Strategy for Climb {
//!     fn ask(&mut self, space: &dyn Space, most: usize) -> Vec<Point> {
//!         let mut near = match &self.best {
//!             None => vec![space.origin(0)],
//!             Some((_, best)) => Moves::Prime.neighbours(space, best).into_iter().map(|(_, near)| near).collect(),
//!         };
//!         near.retain(|point| !self.told.contains(point) && space.refusal(point).is_none());
//!         self.draw.shuffle(&mut near);
//!         near.truncate(most.min(1));
//!         near
//!     }
//!
//!     fn tell(&mut self, _: &dyn Space, results: &[(Point, Verdict)]) {
//!         for (point, verdict) in results {
//!             self.told.insert(point.clone());
//!             if let Verdict::Time(time) = verdict
//!                 && self.best.as_ref().is_none_or(|(best, _)| time < best)
//!             {
//!                 self.best = Some((*time, point.clone()));
//!             }
//!         }
//!     }
//!
//!     fn key(&self) -> String {
//!         "climb seed=0".to_owned()
//!     }
//! }
//!
//! /// A loop of 1024 split in three; the fastest split is 8, 8, 16.
//! struct Split([Axis; 1]);
//!
//! impl Space for Split {
//!     fn templates(&self) -> usize {
//!         1
//!     }
//!     fn axes(&self, _: u16) -> &[Axis] {
//!         &self.0
//!     }
//!     fn origin(&self, _: u16) -> Point {
//!         Point { template: 0, at: vec![Coordinate::Factors(vec![1024, 1, 1])] }
//!     }
//!     fn refusal(&self, _: &Point) -> Option<String> {
//!         None
//!     }
//! }
//!
//! fn time(point: &Point) -> f64 {
//!     let Coordinate::Factors(factors) = &point.at[0] else { return f64::INFINITY };
//!     let off = |(factor, best): (&u64, u32)| f64::from(factor.ilog2().abs_diff(best));
//!     factors.iter().zip([3, 3, 4]).map(off).sum()
//! }
//!
//! let space = Split([Axis::Factors { name: "rows".to_owned(), product: 1024, slots: 3 }]);
//! let mut climb = Climb { draw: Draw::new(0), told: HashSet::new(), best: None };
//! for _ in 0..60 {
//!     let asked = climb.ask(&space, 1);
//!     let results: Vec<_> = asked.into_iter().map(|point| (point.clone(), Verdict::Time(time(&point)))).collect();
//!     climb.tell(&space, &results);
//! }
//! assert_eq!(climb.best.map(|(time, _)| time), Some(0.0));
//! ```

pub mod anneal_q;
mod draw;
pub mod g_bfs;
pub mod genetic;
mod make;
mod maths;
pub mod n_a2c;
pub mod net;
pub mod opevo;
pub mod random;
pub mod settings;
pub mod space;
mod unseen;

pub use draw::Draw;
pub use make::{Error, make, names};
pub use settings::{Field, Settings};
pub use space::{Axis, Coordinate, Moves, Point, Space};

/// The verdict on a point.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It runs in this time, in microseconds.
    Time(f64),
    /// It was compiled or run, but has no time: it spills, fails, or gives wrong results.
    Failed,
    /// The rules refuse it; nothing was compiled, and it costs no trial.
    Refused,
}

/// A way through a space. The same seed and the same answers give the same questions.
pub trait Strategy {
    /// At most `most` points to try next, none of which has a verdict yet; empty if there is nothing left to ask.
    fn ask(&mut self, space: &dyn Space, most: usize) -> Vec<Point>;

    /// The verdicts on all points of the last question, in its order.
    fn tell(&mut self, space: &dyn Space, results: &[(Point, Verdict)]);

    /// The name, the settings and the seed, for example `opevo parents=8 children=8 q=0.5 hop=0.1 seed=0`. Runs with
    /// the same key ask the same questions.
    fn key(&self) -> String;
}
