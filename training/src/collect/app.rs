//! Rounds of an app, each with its own search.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use warploom::app::{App, Settings};
use warploom::schedule::schedule::Schedule;
use warploom::tune::measure::{Candidate, Subject};
use warploom::tune::sample::Origin;

use super::schedules::{Choice, Predictor};
use super::unit::Made;
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

impl<'a> AppRounds<'a> {
    pub fn new(app: &'a App, given: &'a [String]) -> AppRounds<'a> {
        let own = given.iter().filter(|text| text.split_whitespace().next() == Some(app.name.as_str()));
        let given = own.map(String::as_str).collect();
        AppRounds { app, given, subject: OnceLock::new(), known: Mutex::default() }
    }

    fn subject(&self) -> Option<&Arc<Subject>> {
        let make = || {
            let workload = self.app.workload(&Settings::defaults(self.app), check::SEED)?;
            Subject::of(&workload).ok().map(Arc::new)
        };
        self.subject.get_or_init(make).as_ref()
    }
}

impl Collector<'_> {
    /// The candidates of one round of an app.
    pub(super) fn app_round(&self, app: &AppRounds<'_>, round: u64, samples: usize) -> VecDeque<Candidate> {
        let Some(subject) = app.subject() else { return VecDeque::new() };
        let pipeline = subject.pipeline();
        let Ok(problem) = subject.problem(self.device) else { return VecDeque::new() };
        let seed = mixed(&[self.options.seed, round]);
        let predictor = Predictor::new(&problem, self.model);
        let choice = Choice {
            seed,
            samples,
            with_default: round == 0,
            search_seconds: SEARCH_SECONDS,
            max_nodes: MAX_NODES,
        };
        let mut chosen = predictor.choose(&choice);
        self.skipped.fetch_add(chosen.too_slow, Ordering::Relaxed);
        if round == 0 {
            let given = app.given.iter().filter_map(|text| Schedule::parse(text, pipeline).ok());
            let given = given.filter(|schedule| problem.is_legal(schedule));
            chosen.schedules.extend(given.map(|schedule| (schedule, Origin::Given)));
        }
        let mut known = app.known.lock().unwrap_or_else(PoisonError::into_inner);
        chosen.schedules.retain(|(schedule, _)| known.insert(schedule.to_text(pipeline)));
        drop(known);
        let small = || check::of_app(app.app, pipeline);
        let checked = self.checked(pipeline, chosen.schedules, small);
        Made { subject: subject.clone(), schedules: checked }.candidates()
    }
}
