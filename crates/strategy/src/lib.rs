//! Strategies that look for the fastest point of a space. They are asked for points and told how fast those are; they know
//! nothing of schedules or GPUs.

pub mod space;

pub use space::{Axis, Coordinate, Point, Space};

/// What came of a point.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It runs in so many microseconds.
    Time(f64),
    /// It was compiled or run, and gave no time: it spills, fails, or gives wrong results.
    Failed,
    /// The rules refuse it; nothing was compiled, and it costs no trial.
    Refused,
}

/// A way through a space. The same seed and the same answers give the same questions.
pub trait Strategy {
    /// At most so many points to try next, each of which was not told yet; none if there is nothing left to ask.
    fn ask(&mut self, space: &dyn Space, most: usize) -> Vec<Point>;

    /// The verdicts on all points of the last question, in its order.
    fn tell(&mut self, space: &dyn Space, results: &[(Point, Verdict)]);

    /// The name, the settings and the seed, for example `opevo parents=8 children=8 q=0.5 seed=0`. Runs with the same
    /// key ask the same questions.
    fn key(&self) -> String;
}
