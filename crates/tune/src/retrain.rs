//! Learning from what was measured.

use std::error::Error;

use warploom_cost::{CostModel, Subject, Weights};
use warploom_lang::{Pipeline, Regions};
use warploom_schedule::schedule::Schedule;
use warploom_target::Device;

use crate::records::Trial;
use crate::sample::Shard;

/// Trains the cost model's weights.
pub trait Retrain {
    /// Weights from measured samples of a device; training starts from `initial`, or from nothing.
    ///
    /// # Errors
    /// If there is nothing to learn from, or training goes wrong. Tuning then goes on with the weights it had.
    fn retrain(
        &mut self,
        samples: &Shard,
        device: &Device,
        initial: Option<&Weights>,
    ) -> Result<Weights, Box<dyn Error + Send + Sync>>;
}

/// How many times as long as the fastest of some trials that one takes which a model predicts to be the fastest. `None` if
/// fewer than two were timed.
pub fn regret(
    model: &dyn CostModel,
    pipeline: &Pipeline,
    regions: &Regions,
    device: &Device,
    trials: &[Trial],
) -> Option<f64> {
    let subject = Subject::new(pipeline, regions, device);
    let predicted = |schedule: &Schedule| {
        let features = subject.of_schedule(schedule);
        let mut costs = Vec::new();
        model.costs(subject.dag(), &features.iter().collect::<Vec<_>>(), &mut costs);
        costs.iter().sum::<f64>()
    };
    let timed = trials.iter().filter_map(|trial| {
        let time = trial.time_us()?;
        Some((predicted(&Schedule::parse(&trial.sample.schedule, pipeline).ok()?), time))
    });
    let timed: Vec<(f64, f64)> = timed.collect();
    let picked = timed.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let fastest = timed.iter().map(|(_, time)| *time).fold(f64::INFINITY, f64::min);
    (timed.len() > 1).then_some(picked.1 / fastest)
}
