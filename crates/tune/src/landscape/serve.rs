//! Strategies on a landscape.

use std::fmt;

use rayon::prelude::*;
use warploom_cost::CostModel;
use warploom_schedule::Schedule;
use warploom_search::points::Template;
use warploom_strategy::{Point, Space, Strategy, Verdict};

use super::{Known, Landscape, LandscapeError};
use crate::explore::{Built, Count, ExploreOptions, check, make};
use crate::records::{RunStep, StepOutcome};
use crate::tuning::Tally;

/// A strategy to compare.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contender {
    /// Its name: one of [`names`](crate::explore::names).
    pub strategy: String,
    /// Its settings, such as `q=0.3,parents=20`; those that are not named have defaults.
    pub settings: String,
}

impl Contender {
    /// Reads `NAME`, or `NAME:SETTING=VALUE` with any number of settings, as `anneal-q:method=p`.
    ///
    /// # Errors
    /// If there is no such strategy, or it has no such setting.
    pub fn parse(text: &str) -> Result<Contender, warploom_strategy::Error> {
        let (strategy, settings) = text.split_once(':').unwrap_or((text, ""));
        let contender = Contender { strategy: strategy.to_owned(), settings: settings.replace(':', ",") };
        check(&ExploreOptions {
            strategy: contender.strategy.clone(),
            settings: contender.settings.clone(),
            ..ExploreOptions::default()
        })?;
        Ok(contender)
    }
}

/// The text that [`Contender::parse`] reads.
impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Contender { strategy, settings } = self;
        match settings.is_empty() {
            true => write!(f, "{strategy}"),
            false => write!(f, "{strategy}:{}", settings.replace(',', ":")),
        }
    }
}

/// The run of a strategy on a landscape.
#[derive(Clone, PartialEq, Debug)]
pub struct Played {
    /// The strategy with its settings and seed.
    pub key: String,
    /// The time of each trial in order, in microseconds; `None` if it failed.
    pub times_us: Vec<Option<f64>>,
    /// All steps, including those that are not trials.
    pub tally: Tally,
}

impl Landscape {
    /// Runs each strategy with each seed, all in parallel: the runs of the first strategy come first. The model is for
    /// strategies that need one. As in tuning, repeated schedules and refused points are not trials.
    ///
    /// # Errors
    /// If there is no such strategy, or the template was not recorded.
    pub fn compare(
        &self,
        contenders: &[Contender],
        seeds: &[u64],
        trials: usize,
        model: &dyn CostModel,
    ) -> Result<Vec<Played>, LandscapeError> {
        let seeded = |contender| seeds.iter().map(move |seed| (contender, *seed));
        let all: Vec<(&Contender, u64)> = contenders.iter().flat_map(seeded).collect();
        all.into_par_iter().map(|(contender, seed)| self.run(contender, seed, trials, model)).collect()
    }

    /// Runs one strategy.
    ///
    /// # Errors
    /// As those of [`compare`](Landscape::compare).
    pub fn run(
        &self,
        contender: &Contender,
        seed: u64,
        trials: usize,
        model: &dyn CostModel,
    ) -> Result<Played, LandscapeError> {
        let Contender { strategy, settings } = contender;
        let mut strategy = make(strategy, settings, trials, seed, self, model)?;
        self.follow(&mut *strategy, trials)
    }

    /// Runs a strategy of your own.
    ///
    /// # Errors
    /// If the template, where strategies start, was not recorded.
    pub fn follow(&self, strategy: &mut dyn Strategy, trials: usize) -> Result<Played, LandscapeError> {
        if self.known(&self.origin(0)).is_none() {
            return Err(LandscapeError::NoOrigin);
        }
        let mut count = Count::new(trials);
        while count.next() > 0 {
            let points = strategy.ask(self, count.next());
            if points.is_empty() || count.is_idle() {
                break;
            }
            let mut results: Vec<(Point, Verdict)> = Vec::with_capacity(points.len());
            for point in points {
                let step = self.step(&count, &point);
                results.push((point, count.add(&step)));
            }
            strategy.tell(self, &results);
        }
        Ok(Played { key: strategy.key(), times_us: count.times, tally: count.tally })
    }

    /// The step of a point, as tuning would record it.
    fn step(&self, count: &Count, point: &Point) -> RunStep {
        let Some(Known { outcome, schedule_hash, .. }) = self.known(point) else {
            return RunStep::new(point.to_string(), None, StepOutcome::Refused);
        };
        let time_us = outcome.time_us();
        let came = match time_us {
            _ if count.knows(schedule_hash) => StepOutcome::Repeated,
            Some(_) => StepOutcome::Measured,
            None => StepOutcome::Failed,
        };
        RunStep { time_us, ..RunStep::new(point.to_string(), Some(schedule_hash.clone()), came) }
    }
}

impl Built for Landscape {
    fn built(&self, point: &Point) -> Option<Schedule> {
        self.known(point).and_then(|known| self.schedules.schedule(&known.point).ok())
    }

    fn made_of(&self) -> &[Template] {
        self.schedules.all()
    }
}
