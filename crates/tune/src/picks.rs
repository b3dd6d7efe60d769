//! Errors of predictions, from samples of pipelines that a model never saw.

use std::collections::BTreeMap;

use warploom_cost::{CostModel, Featurizer};
use warploom_lang::Pipeline;
use warploom_plan::Problem;
use warploom_schedule::Schedule;
use warploom_target::Device;

use crate::sample::{Sample, Shard, Status};

/// One in this many random pipelines is never trained on.
const HELD_OUT: u128 = 8;
/// Pipelines with fewer samples are left out.
const LEAST_SAMPLES: usize = 5;
/// Predictions of shorter times, in microseconds, have other errors than those of longer ones.
pub const SHORT_US: f64 = 20.0;

/// The schedule that a model picks for a pipeline, because it predicts the shortest time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pick {
    /// Structural hash of the pipeline.
    pub pipeline: u128,
    /// Its predicted time, in microseconds.
    pub predicted_us: f64,
    /// Its measured time, in microseconds.
    pub measured_us: f64,
}

/// The picks of a model, and the number of unusable samples.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Picks {
    /// One pick per pipeline and size.
    pub picks: Vec<Pick>,
    /// Samples of these pipelines whose sizes or schedules this version does not accept. They are not considered for
    /// picks.
    pub unusable: usize,
}

/// Whether a random pipeline with this structural hash is never trained on.
pub fn is_held_out(pipeline: u128) -> bool {
    pipeline.is_multiple_of(HELD_OUT)
}

/// The picks of a model among the samples that were measured on a device: one per pipeline and size, if `wanted` holds
/// and there are enough samples.
pub fn picks(
    shards: &[Shard],
    device: &Device,
    model: &dyn CostModel,
    wanted: &dyn Fn(&Pipeline) -> bool,
) -> Picks {
    let mut groups: BTreeMap<(u128, String), (&Pipeline, Vec<&Sample>)> = BTreeMap::new();
    for (shard, sample) in shards.iter().flat_map(|shard| shard.samples.iter().map(move |one| (shard, one))) {
        let Some(pipeline) = shard.pipelines.get(&sample.pipeline).filter(|pipeline| wanted(pipeline)) else {
            continue;
        };
        if sample.device == device.name && sample.status == Status::Measured {
            let key = (sample.pipeline, format!("{:?}", sample.sizes));
            groups.entry(key).or_insert_with(|| (pipeline, Vec::new())).1.push(sample);
        }
    }
    let mut found = Picks::default();
    for (pipeline, samples) in groups.values().filter(|(_, samples)| samples.len() >= LEAST_SAMPLES) {
        found.picks.extend(pick(pipeline, samples, device, model, &mut found.unusable));
    }
    found
}

fn pick(
    pipeline: &Pipeline,
    samples: &[&Sample],
    device: &Device,
    model: &dyn CostModel,
    unusable: &mut usize,
) -> Option<Pick> {
    let request = samples.first()?.sizes.realise(pipeline);
    let Ok(problem) = Problem::new(pipeline, &request, device) else {
        *unusable += samples.len();
        return None;
    };
    let featurizer = Featurizer::new(&problem);
    let times = samples.iter().filter_map(|sample| {
        let Ok(schedule) = Schedule::parse(&sample.schedule, pipeline) else {
            *unusable += 1;
            return None;
        };
        // A rewritten pipeline has different features.
        let legal = schedule.rewrites.is_empty() && problem.is_legal(&schedule);
        let measured_us = sample.times.filter(|times| legal && times.min > 0.0)?.min;
        let predicted_us = featurizer.cost(&schedule, model);
        Some(Pick { pipeline: sample.pipeline, predicted_us, measured_us })
    });
    // A schedule that was measured twice counts with its shortest time.
    times.min_by(|a, b| {
        a.predicted_us.total_cmp(&b.predicted_us).then(a.measured_us.total_cmp(&b.measured_us))
    })
}
