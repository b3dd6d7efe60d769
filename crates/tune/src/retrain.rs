//! The interface for training the cost model on measurements.

use std::error::Error;

use warploom_cost::{CostModel, Weights};
use warploom_plan::Problem;
use warploom_schedule::Schedule;
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

/// The regret of a model on some trials.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Regret {
    /// The time of the trial that the model predicts to be the fastest, divided by the shortest time. `None` if fewer
    /// than two trials were timed.
    pub ratio: Option<f64>,
    /// The timed trials that are left out, because their schedules are no longer usable.
    pub unusable: usize,
}

/// The regret of a model on some trials.
pub fn regret(model: &dyn CostModel, problem: &Problem, trials: &[Trial]) -> Regret {
    let (mut timed, mut unusable) = (Vec::new(), 0);
    for trial in trials {
        let Some(time) = trial.time_us() else { continue };
        let schedule = Schedule::parse(&trial.sample.schedule, problem.pipeline());
        match schedule.map(|schedule| predicted_us(problem, &schedule, model)) {
            Ok(Ok(predicted)) => timed.push((predicted, time)),
            Ok(Err(_)) | Err(_) => unusable += 1,
        }
    }
    let picked = timed.iter().min_by(|a, b| a.0.total_cmp(&b.0));
    let fastest = timed.iter().map(|(_, time)| *time).fold(f64::INFINITY, f64::min);
    let ratio = picked.filter(|_| timed.len() > 1).map(|picked| picked.1 / fastest);
    Regret { ratio, unusable }
}
