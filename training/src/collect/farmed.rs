//! Units of a collection as tasks of a farm.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use warploom::app::App;
use warploom::farm::worker::{Opened, ProposeError, Proposed, Site};
use warploom::fuzz::catch;
use warploom::lang::{Pipeline, Realisation};
use warploom::model_for;
use warploom::runtime::TimingOptions;
use warploom::show;
use warploom::tune::measure::Subject;
use warploom::tune::records::{ProblemId, RecordsError};
use warploom::tune::tuning::{Crew, Order, Progress, Wanted};

use super::{Generated, Options, Plan, Recipe, Selected, Unit as Planned, subject_of};

/// A unit of a collection: a random pipeline, or a round of an app.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Collecting {
    /// Seed of all random choices.
    seed: u64,
    /// The fraction of samples whose results are compared.
    verify: f64,
    /// Number of samples.
    samples: usize,
    unit: Unit,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Unit {
    Random {
        number: u64,
        /// What the pipeline is made from: that takes searches, whose time is limited, so whoever
        /// proposes notes it for all others.
        made_from: Option<u64>,
    },
    App {
        name: String,
        round: u64,
    },
}

/// Finds an app by its name, or says why there is none.
pub type Finding<'a> = dyn Fn(&str) -> Result<&'a App, String> + 'a;

/// What is measured for a unit.
struct Made {
    pipeline: Pipeline,
    request: Realisation,
    schedules: Vec<Selected>,
    /// The unit, with all that others must know.
    unit: Unit,
}

/// Why nothing is measured for a unit.
enum Without {
    /// Nothing is worth it.
    Nothing(String),
    /// The unit cannot be made here.
    Failed(String),
}

impl Collecting {
    /// All units of a collection, in the order in which they are measured.
    pub fn all(options: &Options, apps: &[&App]) -> Vec<Collecting> {
        let Options { pipelines, per_pipeline, per_app, verify, seed, .. } = *options;
        let plan = Plan::new(pipelines, apps.len(), per_app);
        let collecting = |unit| {
            let (samples, unit) = match unit {
                Planned::Random { number } => (per_pipeline, Unit::Random { number, made_from: None }),
                Planned::App { app, round, samples } => {
                    (samples, Unit::App { name: apps[app].name.clone(), round })
                }
            };
            Collecting { seed, verify, samples, unit }
        };
        plan.units().map(collecting).collect()
    }

    /// What people know the unit by.
    pub fn name(&self) -> String {
        match &self.unit {
            Unit::Random { number, .. } => format!("random {number}"),
            Unit::App { name, round } => format!("{name} round {}", round + 1),
        }
    }

    /// How many samples it has.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Whether it is a random pipeline.
    pub fn is_random(&self) -> bool {
        matches!(self.unit, Unit::Random { .. })
    }

    /// What is measured for the unit. `find` finds apps.
    ///
    /// # Errors
    /// If the app is not known, or the random pipeline was not made yet.
    pub fn open(&self, find: &Finding<'_>) -> Result<Opened, String> {
        let (subject, tolerance) = match &self.unit {
            Unit::Random { made_from: Some(seed), .. } => (Generated::new(*seed).subject(), None),
            Unit::Random { made_from: None, number } => {
                return Err(format!("nobody has made the random pipeline {number} yet"));
            }
            Unit::App { name, .. } => app(find, name)?,
        };
        // Every schedule would be compared at a small size. Some are compared at the full one instead.
        Ok(Opened { subject: Arc::new(subject), small: None, tolerance })
    }

    /// Lets the workers of a farm measure what `warploom collect` would measure.
    ///
    /// `text` is the unit as a task, which others must know.
    ///
    /// # Errors
    /// If the unit cannot be made, or the records fail.
    pub fn propose(
        &self,
        find: &Finding<'_>,
        text: impl Fn(Collecting) -> String,
        site: Site<'_>,
    ) -> Result<Proposed, ProposeError> {
        let Site { device, versions, mut records, crew, settle, stop, .. } = site;
        let model = model_for(device).model;
        let recipe = Recipe { device, model: &*model, seed: self.seed, verify: self.verify };
        // A bug that one pipeline exposes must not end the process.
        let made = catch(|| self.make(find, &recipe));
        let made = match made {
            Ok(Ok(made)) => made,
            Ok(Err(Without::Nothing(why))) => {
                return Ok(Proposed::Finished(format!("nothing to measure: {why}")));
            }
            Ok(Err(Without::Failed(why))) => return Err(ProposeError::Task(why)),
            Err(panic) => {
                return Err(ProposeError::Task(format!("internal error: {panic}; please report it")));
            }
        };
        if made.unit != self.unit {
            settle(&text(Collecting { unit: made.unit.clone(), ..self.clone() }))?;
        }
        let problem = records.problem(&made.pipeline, &made.request, device, versions)?;
        made.measure(problem, crew, stop)?;
        if stop.load(Ordering::Relaxed) {
            return Ok(Proposed::Interrupted);
        }
        let texts = made.texts();
        let timed = records.trials(Some(problem))?;
        let timed = timed.iter().filter(|trial| trial.time_us().is_some());
        let timed = timed.filter(|trial| texts.contains(&trial.sample.schedule)).count();
        Ok(Proposed::Finished(format!("timed {timed} of {} schedules", texts.len())))
    }

    /// Makes what `warploom collect` would measure.
    fn make(&self, find: &Finding<'_>, recipe: &Recipe<'_>) -> Result<Made, Without> {
        let made = match &self.unit {
            Unit::Random { number, made_from } => self.make_random(*number, *made_from, recipe)?,
            Unit::App { name, round } => {
                let (subject, _) = app(find, name).map_err(Without::Failed)?;
                let selection = recipe.of_app(&subject, *round, self.samples, &[]);
                let unfit = || Without::Nothing("the app does not fit this device".to_owned());
                let schedules = selection.ok_or_else(unfit)?.schedules;
                let (pipeline, request) = (subject.pipeline().clone(), subject.request().clone());
                Made { pipeline, request, schedules, unit: self.unit.clone() }
            }
        };
        match made.schedules.is_empty() {
            true => Err(Without::Nothing("all schedules would run or compile for too long".to_owned())),
            false => Ok(made),
        }
    }

    fn make_random(&self, number: u64, made_from: Option<u64>, recipe: &Recipe<'_>) -> Result<Made, Without> {
        let seeds: Vec<u64> = made_from.map_or_else(|| recipe.seeds(number).collect(), |seed| vec![seed]);
        let made = seeds.iter().find_map(|seed| {
            let generated = Generated::new(*seed);
            let selection = recipe.of_random(&generated, self.samples)?;
            let Generated { seed, pipeline, request } = generated;
            let unit = Unit::Random { number, made_from: Some(seed) };
            Some(Made { pipeline, request, schedules: selection.schedules, unit })
        });
        made.ok_or_else(|| {
            let tried = show::count(seeds.len(), "random pipeline");
            Without::Nothing(format!("{tried} would be too fast, too slow or too large"))
        })
    }
}

impl Made {
    /// Lets a crew measure the schedules, and compare the results of some.
    fn measure(
        &self,
        problem: ProblemId,
        crew: &mut dyn Crew,
        stop: &AtomicBool,
    ) -> Result<(), RecordsError> {
        let mut progress = Progress { expected: self.schedules.len(), ..Progress::default() };
        for at_full_size in [false, true] {
            let selected = self.schedules.iter().filter(|selected| selected.verify == at_full_size);
            let wanted: Vec<Wanted> = selected.map(|selected| self.wants(selected)).collect();
            if wanted.is_empty() {
                continue;
            }
            let timing = TimingOptions::collection();
            let order = Order { problem, wanted, at_full_size, skip_spilling: false, timing };
            crew.measure(&order, &|| stop.load(Ordering::Relaxed), &mut |trial| {
                progress.done += 1;
                progress.invalid += usize::from(trial.time_us().is_none());
                progress
            })?;
        }
        Ok(())
    }

    fn wants(&self, Selected { schedule, origin, .. }: &Selected) -> Wanted {
        Wanted { schedule: schedule.to_text(&self.pipeline), origin: *origin, predicted_us: None }
    }

    fn texts(&self) -> HashSet<String> {
        self.schedules.iter().map(|selected| selected.schedule.to_text(&self.pipeline)).collect()
    }
}

/// An app with its data, and its tolerance.
fn app(find: &Finding<'_>, name: &str) -> Result<(Subject, Option<f64>), String> {
    let app = find(name)?;
    let subject = subject_of(app).ok_or_else(|| format!("`{name}` has no data"))?;
    Ok((subject, app.tolerance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_pipeline_is_known_once_it_was_made() {
        let unit = |made_from| Unit::Random { number: 7, made_from };
        let collecting = |made_from| Collecting { seed: 1, verify: 0.0, samples: 4, unit: unit(made_from) };
        let unknown = collecting(None).open(&|name| Err(name.to_owned())).err();
        assert_eq!(unknown.as_deref(), Some("nobody has made the random pipeline 7 yet"));
        let opened = collecting(Some(5)).open(&|name| Err(name.to_owned())).unwrap();
        let Generated { pipeline, request, .. } = Generated::new(5);
        assert_eq!(opened.subject.pipeline().structural_hash(), pipeline.structural_hash());
        assert_eq!(opened.subject.request(), &request);
        assert!(opened.small.is_none());
    }
}
