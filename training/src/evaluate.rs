//! Scores cost models on groups of samples.

use rayon::prelude::*;
use serde::Serialize;
use warploom::cost::{Analytic, Network, Parts};

use crate::data::{Data, Group, Kind};
use crate::score::Score;

/// Groups with fewer samples are not scored, because they say little about the order of schedules.
pub const LEAST_SAMPLES: usize = 5;

/// A model that predicts the times of samples.
pub trait Predictor: Sync {
    /// The predicted time of a sample, in microseconds.
    fn predict(&self, data: &Data, sample: usize) -> f64;
}

impl Predictor for Network {
    fn predict(&self, data: &Data, sample: usize) -> f64 {
        let kernels = data.kernels[sample].clone();
        let kernel = |kernel: usize| {
            let rows = data.row_inputs[data.rows[kernel].clone()].iter().copied();
            self.predict(&data.inputs[kernel], rows)
        };
        kernels.map(kernel).sum()
    }
}

impl Predictor for Analytic {
    fn predict(&self, data: &Data, sample: usize) -> f64 {
        let kernel = |kernel: usize| {
            let inputs = &data.inputs[kernel];
            let [launch, dram, l2, sm, latency] = inputs.parts.map(f64::from);
            let parts = Parts { launch, dram, l2, sm, latency };
            f64::from(inputs.launches) * parts.together(self.constants().overlap)
        };
        data.kernels[sample].clone().map(kernel).sum()
    }
}

/// The predicted times of all samples of each group.
pub fn predictions(data: &Data, groups: &[&Group], predictor: &impl Predictor) -> Vec<Vec<f64>> {
    let group =
        |group: &&Group| group.samples.clone().map(|sample| predictor.predict(data, sample)).collect();
    groups.par_iter().map(group).collect()
}

/// The score of each group's predictions.
pub fn scores(data: &Data, groups: &[&Group], predicted: &[Vec<f64>]) -> Vec<Score> {
    let score = |(group, predicted): (&&Group, &Vec<f64>)| Score::new(predicted, &times(data, group));
    groups.iter().zip(predicted).map(score).collect()
}

/// The mean score over all groups that have enough samples; `None` if there is no such group.
pub fn mean_score(data: &Data, groups: &[&Group], predicted: &[Vec<f64>]) -> Option<Score> {
    let scores = scores(data, groups, predicted);
    Score::mean(&scores.into_iter().filter(|score| score.samples >= LEAST_SAMPLES).collect::<Vec<_>>())
}

/// The measured times of a group, in microseconds.
pub fn times(data: &Data, group: &Group) -> Vec<f64> {
    data.times[group.samples.clone()].iter().map(|time| f64::from(*time)).collect()
}

/// Scores of several predictors on the same pipelines.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Name of an app, or a description of the pipelines.
    pub name: String,
    /// Score of a random pick.
    pub chance: Score,
    /// Score of the analytic model.
    pub analytic: Score,
    /// Score of learned weights, if there are any for these pipelines.
    pub learned: Option<Score>,
}

/// Scores of the models on all apps and on random pipelines.
#[derive(Clone, Debug, Serialize)]
pub struct Evaluation {
    /// One entry per app that has enough samples.
    pub apps: Vec<Compared>,
    /// The mean over those apps, with equal weight.
    pub all_apps: Option<Compared>,
    /// The mean over the validation pipelines, which training never sees, with equal weight.
    pub random: Option<Compared>,
}

impl Evaluation {
    /// Scores the analytic model, a random pick, and learned weights. `learned` returns the weights
    /// for the name of an app, or for the random pipelines if given `None`.
    pub fn new<'n>(data: &Data, learned: &dyn Fn(Option<&str>) -> Option<&'n Network>) -> Evaluation {
        let names = warploom_apps::APPS.iter().map(|app| app.name.as_str());
        let apps: Vec<Compared> = names
            .filter_map(|name| {
                let groups = large(data, |group| group.kind == Kind::App && group.name == name);
                compare(name, data, &groups, learned(Some(name)))
            })
            .collect();
        let random = large(data, Group::is_validation);
        Evaluation {
            all_apps: mean_of("all apps", &apps),
            apps,
            random: compare("random pipelines", data, &random, learned(None)),
        }
    }
}

/// The groups that are large enough to be scored and for which `asked` holds.
pub fn large(data: &Data, asked: impl Fn(&Group) -> bool) -> Vec<&Group> {
    data.groups.iter().filter(|group| group.samples.len() >= LEAST_SAMPLES && asked(group)).collect()
}

fn compare(name: &str, data: &Data, groups: &[&Group], learned: Option<&Network>) -> Option<Compared> {
    let analytic = Analytic::new(&data.device);
    let chance: Vec<Score> = groups.iter().map(|group| Score::of_chance(&times(data, group))).collect();
    Some(Compared {
        name: name.to_owned(),
        chance: Score::mean(&chance)?,
        analytic: mean_score(data, groups, &predictions(data, groups, &analytic))?,
        learned: learned.and_then(|network| mean_score(data, groups, &predictions(data, groups, network))),
    })
}

/// The mean over apps. It has a learned score only if every app has one.
fn mean_of(name: &str, apps: &[Compared]) -> Option<Compared> {
    let all = |score: fn(&Compared) -> Score| Score::mean(&apps.iter().map(score).collect::<Vec<_>>());
    let learned: Option<Vec<Score>> = apps.iter().map(|app| app.learned).collect();
    Some(Compared {
        name: name.to_owned(),
        chance: all(|app| app.chance)?,
        analytic: all(|app| app.analytic)?,
        learned: learned.and_then(|scores| Score::mean(&scores)),
    })
}
