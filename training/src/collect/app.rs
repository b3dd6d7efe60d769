//! Rounds of an app, each with its own search.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use warploom::app::{App, Settings};
use warploom::schedule::Schedule;
use warploom::tune::measure::{Candidate, Subject};
use warploom::tune::sample::Origin;

use super::schedules::{Choice, Predictor};
use super::unit::{Recipe, Selection, candidates};
use super::{Collector, check, mixed};

/// Limits of the search, larger than for random pipelines.
const SEARCH_SECONDS: u64 = 10;
const MAX_NODES: f64 = 20_000.0;

/// An app, and the schedules of it that were already chosen.
pub(super) struct AppRounds<'a> {
    app: &'a App,
    given: Vec<&'a str>,
    /// Created on first use, because generating inputs takes a while.
    subject: OnceLock<Option<Arc<Subject>>>,
    known: Mutex<HashSet<String>>,
}

/// An app with data, at its default sizes. `None` if it has none.
pub fn subject_of(app: &App) -> Option<Subject> {
    let workload = app.workload(&Settings::defaults(app), check::SEED)?;
    Subject::of(&workload).ok()
}

impl<'a> AppRounds<'a> {
    pub fn new(app: &'a App, given: &'a [String]) -> AppRounds<'a> {
        let own = given.iter().filter(|text| text.split_whitespace().next() == Some(app.name.as_str()));
        let given = own.map(String::as_str).collect();
        AppRounds { app, given, subject: OnceLock::new(), known: Mutex::default() }
    }

    fn subject(&self) -> Option<&Arc<Subject>> {
        self.subject.get_or_init(|| subject_of(self.app).map(Arc::new)).as_ref()
    }
}

impl Recipe<'_> {
    /// The schedules of a round of an app, some of which earlier rounds may have too. The first
    /// round has the default schedule, and those of `given` that are legal. `None` if the app cannot
    /// be measured on the device.
    pub fn of_app(&self, subject: &Subject, round: u64, samples: usize, given: &[&str]) -> Option<Selection> {
        let pipeline = subject.pipeline();
        let problem = subject.problem(self.device).ok()?;
        let choice = Choice {
            seed: mixed(&[self.seed, round]),
            samples,
            with_default: round == 0,
            search_seconds: SEARCH_SECONDS,
            max_nodes: MAX_NODES,
        };
        let mut chosen = Predictor::new(&problem, self.model).choose(&choice);
        if round == 0 {
            let given = given.iter().filter_map(|text| Schedule::parse(text, pipeline).ok());
            let given = given.filter(|schedule| problem.is_legal(schedule));
            chosen.schedules.extend(given.map(|schedule| (schedule, Origin::Given)));
        }
        Some(Selection { schedules: self.selected(pipeline, chosen.schedules), skipped: chosen.too_slow })
    }
}

impl Collector<'_> {
    /// The candidates of one round of an app.
    pub(super) fn app_round(&self, app: &AppRounds<'_>, round: u64, samples: usize) -> VecDeque<Candidate> {
        let Some(subject) = app.subject() else { return VecDeque::new() };
        let selection = self.recipe().of_app(subject, round, samples, &app.given);
        let Some(Selection { mut schedules, skipped }) = selection else { return VecDeque::new() };
        self.skipped.fetch_add(skipped, Ordering::Relaxed);
        let mut known = app.known.lock().unwrap_or_else(PoisonError::into_inner);
        schedules.retain(|selected| known.insert(selected.schedule.to_text(subject.pipeline())));
        drop(known);
        candidates(subject, schedules, || check::of_app(app.app, subject.pipeline()))
    }
}

#[cfg(test)]
mod tests {
    use warploom::cost::Analytic;
    use warploom::target::Device;

    use super::super::Options;
    use super::*;

    /// With an app whose searches end long before their time limits.
    #[test]
    fn a_recipe_makes_what_is_collected() {
        let device = Device::preset("h200").expect("it is known");
        let model = Analytic::new(&device);
        let options = Options {
            pipelines: 0,
            per_pipeline: 0,
            per_app: 8,
            seed: 5,
            verify: 0.5,
            threads: 1,
            time_limit: None,
        };
        let apps = [warploom_apps::find("copy").expect("it is there").clone()];
        let collector = Collector::new(&options, &apps, &[], &device, &model);
        let collected = collector.app_round(&collector.apps[0], 0, 8);
        let recipe = Recipe { device: &device, model: &model, seed: options.seed, verify: options.verify };
        let subject = collector.apps[0].subject().expect("it has data");
        let made = recipe.of_app(subject, 0, 8, &[]).expect("it fits");
        assert_eq!(recipe.of_app(subject, 0, 8, &[]).as_ref(), Some(&made), "another process makes the same");
        let made = made.schedules.iter().map(|selected| {
            (selected.schedule.to_text(subject.pipeline()), selected.origin, selected.verify)
        });
        let collected = collected.iter().map(|candidate| {
            let verify = !candidate.checks.is_empty();
            (candidate.schedule.to_text(candidate.subject.pipeline()), candidate.origin, verify)
        });
        assert_eq!(collected.collect::<Vec<_>>(), made.collect::<Vec<_>>());
    }
}
