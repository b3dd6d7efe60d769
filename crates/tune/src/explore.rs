//! Lets a strategy choose the schedules to measure.
//!
//! A [strategy](warploom_strategy::Strategy) asks for points of a [space](warploom_search::points). The templates of
//! the space are the structures of some schedules: the default one, the given ones, and the best of a search. Points
//! are measured as in all tuning, and the strategy is told their times.
//!
//! Every step of a run is recorded. When the same run is started again, it asks the strategy again and answers from the
//! records until it has caught up; so strategies need not be stored.

mod count;
mod model;
mod model_fixed;
mod run;
mod walk;

use warploom_cost::CostModel;
use warploom_schedule::Schedule;
use warploom_search as search;
use warploom_search::points::{Open, Schedules, TemplateError};
use warploom_strategy::{Settings, Strategy};

use self::model::ModelSettings;
use self::model_fixed::{ModelFixed, ModelFixedSettings};
use self::run::ExploreRun;
use self::walk::walk;
use crate::records::{Records, RunKey};
use crate::tuning::{Ended, Event, Observer, Session, Tally, Task, TuneError, Tuned};
use crate::worker::Bench;

pub(crate) use self::count::Count;
pub(crate) use self::model_fixed::Built;

/// The name of the strategy that iterates like [`autotune`](crate::autotune::autotune()) without training. It is not
/// bound to templates, and knows only the trials of its own run.
pub const MODEL: &str = "model";

/// The name of the strategy that ranks points of the templates by the task's cost model.
pub const MODEL_FIXED: &str = "model-fixed";

/// Options of a strategy's run.
#[derive(Clone, Debug)]
pub struct ExploreOptions {
    /// The name of the strategy: one of [`names`].
    pub strategy: String,
    /// Its settings, such as `q=0.3,parents=20`; those that are not named have defaults.
    pub settings: String,
    /// Seed of its random choices.
    pub seed: u64,
    /// Number of schedules that are measured or found in the records.
    pub trials: usize,
    /// Schedules whose structures are templates, after the default schedule.
    pub given: Vec<Schedule>,
    /// Number of templates. A search supplies missing ones, if it finds enough.
    pub templates: usize,
    /// The properties in which the points of a template differ.
    pub open: Open,
    /// Whether schedules that spill registers are measured. Otherwise they count as failed.
    pub run_spilling: bool,
    /// Number of the best schedules that are timed against each other at the end.
    pub finalists: usize,
}

impl Default for ExploreOptions {
    fn default() -> ExploreOptions {
        ExploreOptions {
            strategy: "opevo".to_owned(),
            settings: String::new(),
            seed: 0,
            trials: 1000,
            given: Vec::new(),
            templates: 8,
            open: Open::ALL,
            run_spilling: false,
            finalists: 5,
        }
    }
}

/// The result of a run.
#[derive(Debug)]
pub struct Explored {
    /// The best schedule of the problem, and why the run ended.
    pub tuned: Tuned,
    /// The key of the run's steps in the records.
    pub run: RunKey,
    /// Number of templates of the space; 0 for [`MODEL`], which needs none.
    pub templates: usize,
    /// All steps, including those of earlier processes.
    pub tally: Tally,
    /// The times of the trials in order, in microseconds; `None` for those without one.
    pub times: Vec<Option<f64>>,
    /// Whether the strategy ended before its trials were used up.
    pub exhausted: bool,
}

/// The names of all strategies for [`explore`].
pub fn names() -> Vec<&'static str> {
    warploom_strategy::names().into_iter().chain([MODEL_FIXED, MODEL]).collect()
}

/// Checks that the strategy exists and has the given settings, for programs that want to know before they measure.
///
/// # Errors
/// If there is no such strategy, or it has no such setting.
pub fn check(options: &ExploreOptions) -> Result<(), warploom_strategy::Error> {
    match options.strategy.as_str() {
        MODEL => ModelSettings.parse(&options.settings).map(|_| ()),
        MODEL_FIXED => ModelFixedSettings::default().parse(&options.settings).map(|_| ()),
        _ => warploom_strategy::make(&options.strategy, options.trials, 0, &options.settings)
            .map(|_| ())
            .map_err(|error| knowing(error, &[MODEL_FIXED, MODEL])),
    }
}

/// Adds strategies to the list in an error.
fn knowing(error: warploom_strategy::Error, more: &[&'static str]) -> warploom_strategy::Error {
    use warploom_strategy::Error::UnknownStrategy;
    match error {
        UnknownStrategy { name, mut known } => {
            known.extend(more);
            UnknownStrategy { name, known }
        }
        error => error,
    }
}

/// Measures the points that a strategy asks for, until its trials are used up. The default schedule is measured too, so
/// that the result is never slower. An interrupted run resumes where it stopped.
///
/// # Errors
/// If tuning cannot start. Later failures are in [`Tuned::ended`], along with the results measured
/// before.
pub fn explore(
    task: &Task<'_>,
    options: &ExploreOptions,
    bench: &mut Bench<'_>,
    records: &mut Records,
    observer: Observer<'_>,
) -> Result<Explored, TuneError> {
    check(options)?;
    let space = match options.strategy.as_str() {
        MODEL => None,
        _ => Some(space(task, options, bench, records, observer)?),
    };
    explore_in(space.as_ref(), task, options, bench, records, observer)
}

/// The same in an existing space, as when several strategies are compared; [`MODEL`] needs none.
///
/// # Errors
/// As those of [`explore`], and if there is no space for a strategy that needs one.
pub fn explore_in(
    space: Option<&Schedules>,
    task: &Task<'_>,
    options: &ExploreOptions,
    bench: &mut Bench<'_>,
    records: &mut Records,
    observer: Observer<'_>,
) -> Result<Explored, TuneError> {
    check(options)?;
    let session = Session::new(task, bench, records, observer)?;
    let ExploreOptions { strategy, settings, trials, seed, .. } = options;
    if strategy == MODEL {
        let run = ExploreRun::new(options, &model::key(task, options));
        return Ok(finish(session, run, 0, model::iterate));
    }
    let space = space.ok_or(TemplateError::Empty)?;
    let mut strategy = make(strategy, settings, *trials, *seed, space, task.model)?;
    Ok(follow(session, options, space, &mut *strategy))
}

/// A strategy by its name, including those that need a cost model.
pub(crate) fn make<'a>(
    name: &str,
    settings: &str,
    trials: usize,
    seed: u64,
    space: &'a dyn Built,
    model: &'a dyn CostModel,
) -> Result<Box<dyn Strategy + 'a>, warploom_strategy::Error> {
    if name == MODEL_FIXED {
        let settings = ModelFixedSettings::default().parse(settings)?;
        return Ok(Box::new(ModelFixed::new(settings, seed, space, model)));
    }
    warploom_strategy::make(name, trials, seed, settings).map_err(|error| knowing(error, &[MODEL_FIXED]))
}

/// The same for a strategy of your own. The options' name, settings and seed are ignored.
///
/// # Errors
/// As those of [`explore`].
pub fn explore_with(
    strategy: &mut dyn Strategy,
    task: &Task<'_>,
    options: &ExploreOptions,
    bench: &mut Bench<'_>,
    records: &mut Records,
    observer: Observer<'_>,
) -> Result<Explored, TuneError> {
    let space = space(task, options, bench, records, observer)?;
    Ok(follow(Session::new(task, bench, records, observer)?, options, &space, strategy))
}

/// The space of the options: the structures of the default schedule, of the given ones, and of the best candidates of a
/// search. It depends on neither strategy nor seed, so runs with different ones are comparable.
///
/// # Errors
/// If tuning cannot start, or no schedule is a template.
pub fn space(
    task: &Task<'_>,
    options: &ExploreOptions,
    bench: &mut Bench<'_>,
    records: &mut Records,
    observer: Observer<'_>,
) -> Result<Schedules, TuneError> {
    let mut session = Session::new(task, bench, records, observer)?;
    // The default schedule may need more than the device has.
    let default = Some(session.default().schedule).filter(|default| session.problem.is_legal(default));
    let first: Vec<Schedule> = default.into_iter().chain(options.given.clone()).collect();
    let (fixed, mut found) = (first.len(), Vec::new());
    if fixed < options.templates {
        session.tell(&Event::Searching { iteration: 0, of: 1 });
        let seed = search::Options::default().seed;
        found = session.search(session.task.model, &search::Options { seed, ..session.task.search.clone() });
    }
    let found = found.into_iter().map(|found| found.schedule);
    let mut space: Option<Schedules> = None;
    for (number, schedule) in first.into_iter().chain(found).enumerate() {
        match &mut space {
            None => space = Some(Schedules::new(&session.problem, [&schedule], options.open)?),
            Some(space) if number < fixed || space.all().len() < options.templates => {
                space.add(&session.problem, &schedule, options.open)?;
            }
            Some(_) => break,
        }
    }
    Ok(space.ok_or(TemplateError::Empty)?)
}

/// Runs a strategy to its end.
fn follow(
    session: Session<'_, '_>,
    options: &ExploreOptions,
    space: &Schedules,
    strategy: &mut dyn Strategy,
) -> Explored {
    let run = ExploreRun::new(options, &walk::key(&session, options, space, &strategy.key()));
    finish(session, run, space.all().len(), |run, session| walk(run, session, space, strategy))
}

/// Runs a source of questions to its end, and times the best schedules against each other.
fn finish<'a, 's, 'b>(
    mut session: Session<'s, 'b>,
    mut run: ExploreRun<'a>,
    templates: usize,
    go: impl FnOnce(&mut ExploreRun<'a>, &mut Session<'s, 'b>) -> Result<Ended, TuneError>,
) -> Explored {
    let ExploreOptions { run_spilling, finalists, .. } = *run.options;
    session.skip_spilling = !run_spilling;
    let ended = go(&mut run, &mut session).unwrap_or_else(Ended::Failed);
    let ended = match session.finals_after(&ended, finalists) {
        Ok(()) => ended,
        Err(error) => Ended::Failed(error),
    };
    let shown = session.records().best(session.id, finalists);
    let tuned = session.conclude(ended, shown);
    let ExploreRun { key, count: Count { tally, times, .. }, exhausted, .. } = run;
    Explored { tuned, run: key, templates, tally, times, exhausted }
}
