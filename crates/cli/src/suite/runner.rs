//! Finds a schedule for one app, and times it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use warploom::app::{App, Settings, Subject, Tunable};
use warploom::check::small_settings;
use warploom::codegen::ir::Program;
use warploom::codegen::printer::{Build, PRINTER};
use warploom::cost::CostModel;
use warploom::records;
use warploom::schedule_file::{ScheduleFileError, problem, read_legal};
use warploom::search::Options;
use warploom::target::Device;
use warploom::tune::autotune::AutotuneOptions;
use warploom::tune::given::{Given, given};
use warploom::tune::one_shot::one_shot_without_spills;
use warploom::tune::records::Records;
use warploom::tune::sample::Origin;
use warploom::tune::top::top;
use warploom::tune::tuning::{Ended, Event, Observer, Task, Tuned};
use warploom::tune::worker::{Bench, OpenBench};

use super::timed::Timed;
use super::{Arguments, Mode, Set, Sizes};
use crate::error::Error;
use crate::progress::Progress;
use crate::tune::{Start, autotuned, basis_of, kind, range_of, stop_on_interrupt, why_nothing};

/// Everything that the apps of one run share.
pub(super) struct Runner<'a> {
    arguments: &'a Arguments,
    pub bench: OpenBench,
    pub records: Records,
    pub start: Start,
    pub stop: &'static AtomicBool,
}

impl<'a> Runner<'a> {
    pub fn open(arguments: &'a Arguments) -> Result<Runner<'a>, Error> {
        let bench = arguments.measuring.open()?;
        let start = Start::new(&arguments.first, bench.device())?;
        let records = arguments.records.as_ref().map_or_else(Records::in_memory, records::open)?;
        Ok(Runner { arguments, bench, records, start, stop: stop_on_interrupt() })
    }

    pub fn device(&self) -> &Device {
        self.bench.device()
    }

    pub fn versions(&self) -> &[String] {
        self.bench.versions()
    }

    /// Whether the user asked to end the run.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Finds a schedule for one app and times it; `None` if the run was interrupted before. `stem` is the name of its file of
    /// hand-written schedules.
    pub fn one(
        &mut self,
        app: &App,
        stem: &str,
        progress: &Progress,
    ) -> Result<Option<(Subject, Timed)>, Error> {
        progress.set_message(app.name.clone());
        let Runner { arguments, bench, records, start, stop } = self;
        bench.with(|bench| arguments.one((app, stem), bench, records, start, stop, progress))
    }
}

/// What a mode finds.
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

impl Arguments {
    /// An app at the sizes to run it at.
    pub(super) fn asked(&self, app: &App) -> Result<Subject, Error> {
        let settings = match self.sizes {
            Sizes::Default => Settings::defaults(app),
            Sizes::Small => small_settings(app).unwrap_or_else(|| Settings::defaults(app)),
        };
        Ok(Subject::new(app, settings)?)
    }

    /// The options of searches.
    pub(super) fn search_options(&self) -> Options {
        Options { seed: self.seed, samples: self.samples.max(1), ..Options::default() }
    }

    /// Finds a schedule for one app and times it; `None` if the run was interrupted before. `stem` is the name of its file of
    /// hand-written schedules.
    fn one(
        &self,
        (app, stem): (&App, &str),
        bench: &mut Bench<'_>,
        records: &mut Records,
        start: &Start,
        stop: &AtomicBool,
        progress: &Progress,
    ) -> Result<Option<(Subject, Timed)>, Error> {
        let asked = self.asked(app)?;
        let tunable = Tunable::new(&asked, bench.device, self.seed)?;
        let started = Instant::now();
        let deadline = self.time_limit.map(|limit| started + limit);
        let task = tunable.task(&*start.model, self.search_options(), deadline, stop);
        let mut hear = |event: &Event<'_>| {
            if let Event::Measured { progress: so_far, .. } = event {
                progress.set_part(so_far.done as f64 / so_far.expected.max(1) as f64);
                progress.set_message(format!("{}: {}/{} trials", app.name, so_far.done, so_far.expected));
            }
        };
        let found = self.find((&asked, stem), &task, bench, records, start, &mut hear)?;
        let seconds = started.elapsed().as_secs_f64();
        let (schedule, timed) = match found {
            Found::Nothing(why) => {
                let failed = Timed::failed(&asked, bench.device, seconds, why);
                return Ok(Some((asked, failed)));
            }
            Found::Interrupted => return Ok(None),
            // There are too many operators to time each of them once more.
            Found::Tuned(schedule, _, tuned) if self.set == Set::Operators => (schedule, *tuned),
            Found::Schedule(found) | Found::Tuned(_, found, _) => {
                let schedule = found.0.to_text(&asked.pipeline);
                // The app gets a final time even if the time limit has passed or the run was interrupted.
                let never = AtomicBool::new(false);
                let last = Task { deadline: None, stop: &never, small: task.small.clone(), ..task };
                let mut afresh = Records::in_memory()?;
                let timed = given(&last, vec![found], bench, &mut afresh, &mut |_| {})?;
                lost(&timed)?;
                (schedule, timed)
            }
        };
        let mut row = Timed::new(&asked, bench.device, seconds, schedule, &timed);
        if let (Some(trial), Some(model)) = (timed.shown.first(), self.only_model(start)) {
            row.set_range(range_of(trial, Some(model)));
            let best = timed.winner.as_ref().filter(|_| trial.predicted_us.is_some());
            let basis = best.and_then(|winner| basis_of(&asked, bench.device, &winner.schedule, model));
            row.note_basis(basis);
        }
        Ok(Some((asked, row)))
    }

    /// The model that predicts the times of all schedules; `None` if it changes during the run.
    fn only_model<'m>(&self, start: &'m Start) -> Option<&'m dyn CostModel> {
        (!self.retrains()).then_some(&*start.model)
    }

    /// Finds a schedule in the chosen mode.
    fn find(
        &self,
        (asked, stem): (&Subject, &str),
        task: &Task<'_>,
        bench: &mut Bench<'_>,
        records: &mut Records,
        start: &Start,
        observer: Observer<'_>,
    ) -> Result<Found, Error> {
        let tuned = match self.mode {
            Mode::Manual => {
                let file = self.schedules.join(format!("{stem}.schedule"));
                let problem = problem(&asked.pipeline, &asked.request, bench.device)?;
                return match read_legal(&file, &problem) {
                    Ok(schedule) => Ok(Found::Schedule((schedule, Origin::Given, None))),
                    // The other apps may have better ones.
                    Err(error @ ScheduleFileError::Illegal { .. }) => Ok(Found::Nothing(error.to_string())),
                    Err(error) => Err(error.into()),
                };
            }
            Mode::Default => {
                let problem = problem(&asked.pipeline, &asked.request, bench.device)?;
                return Ok(Found::Schedule((problem.default_schedule(), Origin::Default, None)));
            }
            Mode::OneShot => return Ok(one_shot(task, bench).map_or_else(Found::Nothing, Found::Schedule)),
            Mode::Top5 => top(task, 5, bench, records, observer)?,
            Mode::Autotune => {
                let options = AutotuneOptions {
                    iterations: self.iterations,
                    samples: self.samples.max(1),
                    initial: start.weights.clone(),
                    ..AutotuneOptions::default()
                };
                autotuned(self.retrains(), task, &options, bench, records, observer)?.tuned
            }
        };
        lost(&tuned)?;
        let stopped = matches!(tuned.ended, Ended::Stopped);
        Ok(match &tuned.winner {
            // A later run continues with the operators that have no row, and would keep the best of a few candidates.
            _ if stopped && self.set == Set::Operators => Found::Interrupted,
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

    fn retrains(&self) -> bool {
        #[cfg(feature = "train")]
        return self.retrain;
        #[cfg(not(feature = "train"))]
        false
    }
}

/// The schedule that `warploom compile` would choose.
fn one_shot(task: &Task<'_>, bench: &Bench<'_>) -> Result<Given, String> {
    let spills = |program: &Program| {
        let compiled = (bench.compile)(&PRINTER.describe(program, Build::Timing)).ok()?;
        let spilled =
            |used: &warploom::runtime::Resources| u64::from(used.spill_stores) + u64::from(used.spill_loads);
        Some(compiled.kernels.values().map(spilled).sum())
    };
    let problem = task.subject.problem(bench.device).map_err(|error| error.to_string())?;
    let found = one_shot_without_spills(&problem, task.model, &task.search, &spills, &|_| {});
    let found = found.map_err(|error| error.to_string())?;
    Ok((found.planned.schedule, Origin::Search, Some(found.predicted_us)))
}

/// Returns an error if measuring or recording is no longer possible.
pub(super) fn lost(tuned: &Tuned) -> Result<(), Error> {
    match &tuned.ended {
        Ended::Failed(error) => Err(Error::Tune(error.to_string(), kind(error))),
        _ => Ok(()),
    }
}
