//! The interface for training the cost model on measurements.

use std::error::Error;

use warploom_cost::{CostModel, Weights};
use warploom_schedule::schedule::{Problem, Schedule};
use warploom_target::Device;

use crate::one_shot::predicted_us;
use crate::records::Trial;
use crate::sample::Shard;

/// Trains the cost model's weights.
pub trait Retrain {
    /// Trains weights on measured samples of a device, starting from `initial` or from scratch.
    ///
    /// # Errors
    /// If there are no usable samples, or training fails. Tuning then continues with its previous
    /// weights.
    fn retrain(
        &mut self,
        samples: &Shard,
        device: &Device,
        initial: Option<&Weights>,
    ) -> Result<Weights, Box<dyn Error + Send + Sync>>;
}

/// The regret of a model on some trials: the time of the trial that the model predicts to be the
/// fastest, divided by the shortest time. `None` if fewer than two trials were timed.
pub fn regret(model: &dyn CostModel, problem: &Problem, trials: &[Trial]) -> Option<f64> {
    let timed = trials.iter().filter_map(|trial| {
        let time = trial.time_us()?;
        let schedule = Schedule::parse(&trial.sample.schedule, problem.pipeline()).ok()?;
        Some((predicted_us(problem, &schedule, model).ok()?, time))
    });
    let timed: Vec<(f64, f64)> = timed.collect();
    let picked = timed.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let fastest = timed.iter().map(|(_, time)| *time).fold(f64::INFINITY, f64::min);
    (timed.len() > 1).then_some(picked.1 / fastest)
}
