//! Finds a schedule for one pipeline after another, and times it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use warploom::app::{App, AppError, Settings, Subject, Tunable};
use warploom::check::small_settings;
use warploom::codegen::ir::Program;
use warploom::codegen::printer::{Build, PRINTER};
use warploom::cost::CostModel;
use warploom::runtime::Resources;
use warploom::schedule_file::{ScheduleFileError, problem, read_legal};
use warploom::search::Options;
use warploom::target::Device;
use warploom::tune::autotune::{AutotuneOptions, autotune};
use warploom::tune::given::{Given, given};
use warploom::tune::one_shot::one_shot_without_spills;
use warploom::tune::records::Records;
use warploom::tune::retrain::Retrain;
use warploom::tune::sample::Origin;
use warploom::tune::top::top;
use warploom::tune::tuning::{Ended, Event, Observer, Task, TuneError, Tuned};
use warploom::tune::worker::{Bench, OpenBench};

use super::timed::Timed;
use crate::error::ResultsError;
use crate::trials::{basis_of, range_of, why_nothing};

/// A way to a schedule.
#[derive(Clone, Debug)]
pub enum Finding {
    /// The best schedule of one search that does not spill registers; nothing is measured.
    OneShot,
    /// The fastest of so many schedules with the best predicted times.
    Top(usize),
    /// Repeated search and measurement.
    Autotune(Box<AutotuneOptions>),
    /// Hand-written schedules in files of a folder.
    Manual(PathBuf),
    /// The default schedule.
    Default,
}

/// Everything that the pipelines of one run share.
pub struct Runner {
    /// Where schedules come from.
    pub finding: Finding,
    /// Whether pipelines run at sizes at which the reference evaluator is fast.
    pub is_small: bool,
    /// Whether a schedule that was measured while it was found is not timed once more, and one that was found before an
    /// interruption is not kept, because there are many pipelines and a later run continues with the others.
    pub are_many: bool,
    /// The options of searches.
    pub search: Options,
    /// The time for tuning one pipeline.
    pub time_limit: Option<Duration>,
    /// What compiles and measures.
    pub bench: OpenBench,
    /// Where trials are recorded.
    pub records: Records,
    /// The cost model that tuning begins with.
    pub model: Box<dyn CostModel + Send>,
    /// What trains the model while tuning.
    pub retrainer: Option<Box<dyn Retrain>>,
    /// Whether the run is to end.
    pub stop: &'static AtomicBool,
}

/// What was found.
enum Found {
    /// No schedule, and why.
    Nothing(String),
    /// Nothing that should be kept: the run was interrupted.
    Interrupted,
    /// A schedule that is yet to be measured.
    Schedule(Given),
    /// The text of the fastest schedule, the schedule, and what was measured.
    Tuned(String, Given, Box<Tuned>),
}

impl Runner {
    /// The device that is measured on.
    pub fn device(&self) -> &Device {
        self.bench.device()
    }

    /// The versions of what compiles and runs.
    pub fn versions(&self) -> &[String] {
        self.bench.versions()
    }

    /// Whether the run is to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Finds a schedule for one app and times it; `None` if the run was interrupted before. `stem` is the name of its file of
    /// hand-written schedules; `progress` is told how many trials there were, and how many there may be.
    ///
    /// # Errors
    /// If the app cannot be built, or measuring or recording is no longer possible.
    pub fn one(
        &mut self,
        app: &App,
        stem: &str,
        progress: &dyn Fn(usize, usize),
    ) -> Result<Option<(Subject, Timed)>, ResultsError> {
        let asked = subject(app, self.is_small)?;
        let tunable = Tunable::new(&asked, self.bench.device(), self.search.seed)?;
        let Runner { finding, are_many, search, time_limit, bench, records, model, retrainer, stop, .. } =
            self;
        bench.with(|bench| {
            let started = Instant::now();
            let deadline = time_limit.map(|limit| started + limit);
            let is_trained = retrainer.is_some();
            let task = tunable.task(&**model, search.clone(), deadline, stop);
            let mut hear = |event: &Event<'_>| {
                if let Event::Measured { progress: so_far, .. } = event {
                    progress(so_far.done, so_far.expected);
                }
            };
            let retrain = retrainer.as_deref_mut();
            let found = finding.find((&asked, stem, *are_many), &task, bench, records, retrain, &mut hear)?;
            let seconds = started.elapsed().as_secs_f64();
            let (schedule, timed) = match found {
                Found::Nothing(why) => {
                    let failed = Timed::failed(&asked, bench.device, seconds, why);
                    return Ok(Some((asked, failed)));
                }
                Found::Interrupted => return Ok(None),
                // There are too many to time each of them once more.
                Found::Tuned(schedule, _, tuned) if *are_many => (schedule, *tuned),
                Found::Schedule(found) | Found::Tuned(_, found, _) => {
                    (found.0.to_text(&asked.pipeline), timed_last(&task, found, bench)?)
                }
            };
            let mut row = Timed::new(&asked, bench.device, seconds, schedule, &timed);
            // A model that changes during the run predicts nothing of all schedules.
            if let Some(trial) = timed.shown.first().filter(|_| !is_trained) {
                row.set_range(range_of(trial, Some(&**model)));
                let best = timed.winner.as_ref().filter(|_| trial.predicted_us.is_some());
                let basis =
                    best.and_then(|winner| basis_of(&asked, bench.device, &winner.schedule, &**model));
                row.note_basis(basis);
            }
            Ok(Some((asked, row)))
        })
    }
}

/// An app at its own sizes, or at sizes at which the reference evaluator is fast.
///
/// # Errors
/// If it cannot be built.
pub fn subject(app: &App, is_small: bool) -> Result<Subject, AppError> {
    let small = is_small.then(|| small_settings(app)).flatten();
    Subject::new(app, small.unwrap_or_else(|| Settings::defaults(app)))
}

/// The final time of a schedule, even if the time limit has passed or the run was interrupted.
fn timed_last(task: &Task<'_>, found: Given, bench: &mut Bench<'_>) -> Result<Tuned, ResultsError> {
    let never = AtomicBool::new(false);
    let last = Task {
        subject: task.subject.clone(),
        small: task.small.clone(),
        search: task.search.clone(),
        deadline: None,
        stop: &never,
        ..*task
    };
    Ok(lost(given(&last, vec![found], bench, &mut Records::in_memory()?, &mut |_| {})?)?)
}

impl Finding {
    /// Finds a schedule.
    fn find(
        &self,
        (asked, stem, are_many): (&Subject, &str, bool),
        task: &Task<'_>,
        bench: &mut Bench<'_>,
        records: &mut Records,
        retrain: Option<&mut (dyn Retrain + 'static)>,
        observer: Observer<'_>,
    ) -> Result<Found, ResultsError> {
        let tuned = match self {
            Finding::Manual(folder) => {
                let file = folder.join(format!("{stem}.schedule"));
                let problem = problem(&asked.pipeline, &asked.request, bench.device)?;
                return match read_legal(&file, &problem) {
                    Ok(schedule) => Ok(Found::Schedule((schedule, Origin::Given, None))),
                    // The other apps may have better ones.
                    Err(error @ ScheduleFileError::Illegal { .. }) => Ok(Found::Nothing(error.to_string())),
                    Err(error) => Err(error.into()),
                };
            }
            Finding::Default => {
                let problem = problem(&asked.pipeline, &asked.request, bench.device)?;
                return Ok(Found::Schedule((problem.default_schedule(), Origin::Default, None)));
            }
            Finding::OneShot => {
                return Ok(one_shot(task, bench).map_or_else(Found::Nothing, Found::Schedule));
            }
            Finding::Top(count) => top(task, *count, bench, records, observer)?,
            Finding::Autotune(options) => {
                let retrain = retrain.map(|retrain| retrain as &mut dyn Retrain);
                autotune(task, options, bench, records, retrain, observer)?.tuned
            }
        };
        let tuned = lost(tuned)?;
        let stopped = matches!(tuned.ended, Ended::Stopped);
        Ok(match &tuned.winner {
            // A later run would keep the best of a few candidates.
            _ if stopped && are_many => Found::Interrupted,
            None if stopped => Found::Interrupted,
            None => {
                let tried = tuned.progress.done.max(tuned.shown.len());
                Found::Nothing(why_nothing(&tuned.ended, tried, "schedule", &asked.name))
            }
            Some(winner) => {
                let found = (winner.schedule.clone(), winner.trial.sample.origin, winner.trial.predicted_us);
                Found::Tuned(winner.schedule.to_text(&asked.pipeline), found, Box::new(tuned))
            }
        })
    }
}

/// The schedule that `warploom compile` would choose.
fn one_shot(task: &Task<'_>, bench: &Bench<'_>) -> Result<Given, String> {
    let spills = |program: &Program| {
        let compiled = (bench.compile)(&PRINTER.describe(program, Build::Timing)).ok()?;
        let spilled = |used: &Resources| u64::from(used.spill_stores) + u64::from(used.spill_loads);
        Some(compiled.kernels.values().map(spilled).sum())
    };
    let problem = task.subject.problem(bench.device).map_err(|error| error.to_string())?;
    let found = one_shot_without_spills(&problem, task.model, &task.search, &spills, &|_| {});
    let found = found.map_err(|error| error.to_string())?;
    Ok((found.planned.schedule, Origin::Search, Some(found.predicted_us)))
}

/// What was measured.
///
/// # Errors
/// If measuring or recording is no longer possible.
pub fn lost(tuned: Tuned) -> Result<Tuned, TuneError> {
    match tuned.ended {
        Ended::Failed(error) => Err(error),
        ended => Ok(Tuned { ended, ..tuned }),
    }
}
