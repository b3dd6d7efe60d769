//! `warploom suite`: schedules, checks and times all apps.

mod anchors;
mod report;

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use warploom::app::{App, Settings};
use warploom::check::small_settings;
use warploom::codegen::cuda::{Build, describe};
use warploom::codegen::ir::Program;
use warploom::cost::CostModel;
use warploom::schedule::schedule::Schedule;
use warploom::search::Options;
use warploom::tune::autotune::{AutotuneOptions, autotune};
use warploom::tune::given::{Given, given};
use warploom::tune::one_shot::one_shot_without_spills;
use warploom::tune::records::Records;
use warploom::tune::sample::Origin;
use warploom::tune::top::top;
use warploom::tune::tuning::{Ended, Event, Observer, Task, Tuned};
use warploom::tune::worker::Bench;

use crate::backend::read_schedule;
use crate::error::Error;
use crate::names::find_app;
use crate::pipeline::{self, Values, is_file};
use crate::progress::{Progress, Unit};
use crate::report::Format;
use crate::search::duration;
use crate::tune::{FirstModel, Measuring, Start, Tunable, kind, range_of, stop_on_interrupt};
use anchors::Anchors;
use report::Report;

pub(crate) use report::{Report as Results, Row, SCHEMA, TITLES};

/// A database that is not kept.
const NOWHERE: &str = ":memory:";

/// Schedule, check and time all apps, and compare them with recorded times
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom suite --mode top5 --compare docs/results/anchors-h200.json -o results
  warploom suite --mode manual --apps harris,unsharp --json
  warploom suite --mode top5 --apps harris,mine.json --size 1536x2560
  warploom suite --mode autotune --iterations 4 --time-limit 10m --records night.db

Every app is compared with the reference evaluator at a small size, and with its default schedule at the full size. The
best schedule is then timed longer, back to back on a stream and as a CUDA graph; the faster of the two counts. The
interrupt key ends the suite after the current app.

With -o, writes suite-MODE.json, suite-MODE.md and the schedule of each app as APP.schedule. Exits with 6 if an app has
no valid schedule.")]
pub(crate) struct Arguments {
    /// Where schedules come from
    #[arg(long, value_enum, default_value_t = Mode::OneShot)]
    mode: Mode,
    /// The apps, and *.json files with pipelines, separated by commas (default: all apps except the basic ones)
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    apps: Vec<String>,
    /// The size of pipelines from files, as 1536x2560x3 for all inputs and outputs
    #[arg(long, value_name = "SIZE", requires = "apps")]
    size: Option<String>,
    /// The sizes to time apps at
    #[arg(long, value_enum, default_value_t = Sizes::Default)]
    sizes: Sizes,
    /// A file with times to compare with, as docs/results/anchors-h200.json
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    /// The folder with the schedules for mode `manual`
    #[arg(long, value_name = "DIR", default_value = "apps/schedules")]
    schedules: PathBuf,
    /// A database of trials, so that an interrupted run can continue
    #[arg(long, value_name = "FILE", default_value = NOWHERE, hide_default_value = true)]
    records: PathBuf,
    /// The output folder; created if missing
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print the table as Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    #[command(flatten)]
    format: Format,
    /// Iterations in mode `autotune`
    #[arg(long, value_name = "N", default_value_t = 20, help_heading = "Search")]
    iterations: usize,
    /// Searches per batch
    #[arg(long, value_name = "N", default_value_t = 80, help_heading = "Search")]
    samples: usize,
    /// Time limit for tuning one app, as 10m (default: none)
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Search")]
    time_limit: Option<Duration>,
    #[command(flatten)]
    first: FirstModel,
    /// Train the model after each iteration
    #[cfg(feature = "train")]
    #[arg(long, help_heading = "Model")]
    retrain: bool,
    /// Seed of all random choices, an integer
    #[arg(long, default_value_t = 0, help_heading = "Search")]
    seed: u64,
    #[command(flatten)]
    measuring: Measuring,
}

/// A way to a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Mode {
    /// The best schedule of one search that does not spill registers; nothing is measured
    OneShot,
    /// The fastest of the five schedules with the best predicted times
    Top5,
    /// Repeated search and measurement
    Autotune,
    /// Hand-written schedules
    Manual,
    /// The default schedule
    Default,
}

impl Mode {
    const fn name(self) -> &'static str {
        match self {
            Mode::OneShot => "one-shot",
            Mode::Top5 => "top5",
            Mode::Autotune => "autotune",
            Mode::Manual => "manual",
            Mode::Default => "default",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Sizes {
    /// The apps' benchmark sizes
    Default,
    /// Small sizes at which the reference evaluator is fast
    Small,
}

pub(crate) fn suite(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let apps = arguments.apps(apps)?;
    let anchors = arguments.compare.as_deref().map(Anchors::read).transpose()?;
    let mut bench = arguments.measuring.open()?;
    let mut records = Records::open(&arguments.records)?;
    let device = bench.device().clone();
    let start = Start::new(&arguments.first, &device)?;
    let stop = stop_on_interrupt();
    let mut report = Report::new(arguments.mode.name(), &device, bench.versions(), anchors);
    let progress = Progress::new("suite", Unit::Things("apps"));
    progress.set_length(apps.len() as u64);
    for app in &apps {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        progress.set_message(app.name.clone());
        let row = bench.with(|bench| arguments.one(app, bench, &mut records, &start, stop, &progress));
        let row = row?;
        progress.advance(1);
        progress.say(&row.line());
        report.add(row);
        // Written after every app, so that no result is lost however the suite ends.
        if let Some(folder) = &arguments.output {
            report.write(folder)?;
        }
    }
    drop(progress);
    report.print(arguments.format, arguments.markdown, out)?;
    report.verdict(apps.len())
}

impl Arguments {
    /// The requested apps. Without names, the suite: all apps except the basic ones.
    fn apps(&self, apps: &[App]) -> Result<Vec<App>, Error> {
        if self.apps.is_empty() {
            let small = |app: &&App| !warploom_apps::BASICS.iter().any(|basic| basic.name == app.name);
            return Ok(apps.iter().filter(small).cloned().collect());
        }
        if self.size.is_some() && !self.apps.iter().any(|name| is_file(name)) {
            let why = "only pipelines from files have a size here; apps have --sizes";
            return Err(Error::Ignored { flag: "size".to_owned(), why });
        }
        self.apps.iter().map(|name| self.app(apps, name)).collect()
    }

    /// An app, or a pipeline from a file at the size of `--size`.
    fn app(&self, apps: &[App], name: &str) -> Result<App, Error> {
        match is_file(name) {
            true => Ok(Values::sized(self.size.as_deref()).of_file(name, &[])?.0.app),
            false => find_app(apps, name).cloned(),
        }
    }

    /// Finds a schedule for one app and times it.
    fn one(
        &self,
        app: &App,
        bench: &mut Bench<'_>,
        records: &mut Records,
        start: &Start,
        stop: &AtomicBool,
        progress: &Progress,
    ) -> Result<Row, Error> {
        let settings = match self.sizes {
            Sizes::Default => Settings::defaults(app),
            Sizes::Small => small_settings(app).unwrap_or_else(|| Settings::defaults(app)),
        };
        let asked = pipeline::Subject::new(app, settings)?;
        let tunable = Tunable::new(&asked, bench.device, self.seed)?;
        let started = Instant::now();
        let task = Task {
            subject: tunable.subject.clone(),
            small: tunable.small.clone(),
            tolerance: tunable.tolerance,
            model: &*start.model,
            search: Options { seed: self.seed, samples: self.samples.max(1), ..Options::default() },
            deadline: self.time_limit.map(|limit| started + limit),
            stop,
        };
        let mut hear = |event: &Event<'_>| {
            if let Event::Measured { progress: so_far, .. } = event {
                progress.set_message(format!("{}: {}/{} trials", app.name, so_far.done, so_far.expected));
            }
        };
        let found = self.find(&asked, &task, bench, records, start, &mut hear)?;
        let seconds = started.elapsed().as_secs_f64();
        let found = match found {
            Ok(found) => found,
            Err(why) => return Ok(Row::failed(&asked, bench.device, seconds, why)),
        };
        let schedule = found.0.to_text(&asked.pipeline);
        // The app gets a final time even if the time limit has passed or the run was interrupted.
        let never = AtomicBool::new(false);
        let last = Task { deadline: None, stop: &never, small: task.small.clone(), ..task };
        let mut afresh = Records::open(NOWHERE)?;
        let timed = given(&last, vec![found], bench, &mut afresh, &mut |_| {})?;
        lost(&timed)?;
        let mut row = Row::new(&asked, bench.device, seconds, schedule, &timed);
        if let (Some(trial), Some(model)) = (timed.shown.first(), self.only_model(start)) {
            row.set_range(range_of(trial, Some(model)));
        }
        Ok(row)
    }

    /// The model that predicts the times of all schedules; `None` if it changes during the run.
    fn only_model<'m>(&self, start: &'m Start) -> Option<&'m dyn CostModel> {
        #[cfg(feature = "train")]
        if self.retrain {
            return None;
        }
        Some(&*start.model)
    }

    /// Finds a schedule in the chosen mode; the inner error says why there is none.
    fn find(
        &self,
        asked: &pipeline::Subject,
        task: &Task<'_>,
        bench: &mut Bench<'_>,
        records: &mut Records,
        start: &Start,
        observer: Observer<'_>,
    ) -> Result<Result<Given, String>, Error> {
        let tuned = match self.mode {
            Mode::Manual => {
                let file = self.schedules.join(format!("{}.schedule", asked.name));
                let schedule = read_schedule(&file, &asked.pipeline)?;
                return Ok(Ok((schedule, Origin::Given, None)));
            }
            Mode::Default => {
                let problem = crate::backend::problem(&asked.pipeline, &asked.request, bench.device)?;
                return Ok(Ok((Schedule::default_for(&problem), Origin::Default, None)));
            }
            Mode::OneShot => return Ok(one_shot(task, bench)),
            Mode::Top5 => top(task, 5, bench, records, observer)?,
            Mode::Autotune => {
                let options = AutotuneOptions {
                    iterations: self.iterations,
                    samples: self.samples.max(1),
                    initial: start.weights.clone(),
                    ..AutotuneOptions::default()
                };
                self.autotune(task, &options, bench, records, observer)?
            }
        };
        lost(&tuned)?;
        Ok(tuned
            .winner
            .map(|winner| (winner.schedule, winner.trial.sample.origin, winner.trial.predicted_us))
            .ok_or_else(|| format!("{} schedules were tried and none is valid", tuned.progress.done)))
    }

    fn autotune(
        &self,
        task: &Task<'_>,
        options: &AutotuneOptions,
        bench: &mut Bench<'_>,
        records: &mut Records,
        observer: Observer<'_>,
    ) -> Result<Tuned, Error> {
        #[cfg(feature = "train")]
        if self.retrain {
            let mut retrainer = crate::tune::retrainer();
            return Ok(autotune(task, options, bench, records, Some(&mut retrainer), observer)?.tuned);
        }
        Ok(autotune(task, options, bench, records, None, observer)?.tuned)
    }
}

/// The schedule that `warploom compile` would choose.
fn one_shot(task: &Task<'_>, bench: &Bench<'_>) -> Result<Given, String> {
    let spills = |program: &Program| {
        let compiled = (bench.compile)(&describe(program, Build::Timing)).ok()?;
        let spilled = |used: &warploom::runtime::nvrtc::Resources| {
            u64::from(used.spill_stores) + u64::from(used.spill_loads)
        };
        Some(compiled.kernels.values().map(spilled).sum())
    };
    let problem = task.subject.problem(bench.device).map_err(|error| error.to_string())?;
    let found = one_shot_without_spills(&problem, task.model, &task.search, &spills, &|_| {});
    let found = found.map_err(|error| error.to_string())?;
    Ok((found.schedule, Origin::Search, Some(found.predicted_us)))
}

/// Returns an error if measuring or recording is no longer possible.
fn lost(tuned: &Tuned) -> Result<(), Error> {
    match &tuned.ended {
        Ended::Failed(error) => Err(Error::Tune(error.to_string(), kind(error))),
        _ => Ok(()),
    }
}
