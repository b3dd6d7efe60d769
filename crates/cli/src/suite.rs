//! `warploom suite`: schedules, checks and times all apps, or all operators.

mod operators;
mod strategies;
mod written;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use warploom::app::{App, Subject};
use warploom::codegen::export::file_stem;
use warploom::records;
use warploom::search::Options;
use warploom::tune::autotune::AutotuneOptions;
use warploom::tune::records::Records;
use warploom_results::suite::anchors::{Anchor, Anchors};
use warploom_results::suite::apps::{Report, Row};
use warploom_results::suite::timed::Timed;
use warploom_results::suite::{Finding, Runner};

use crate::error::Error;
use crate::names::{find_app, written};
use crate::pipeline::{Purpose, Values, is_file};
use crate::progress::{Progress, Unit};
use crate::report::Format;
use crate::search::duration;
use crate::show;
use crate::tune::{FirstModel, Measuring, Start, retrainer, stop_on_interrupt};
use crate::writable::{self, Output};

use strategies::Comparing;
use written::verdict;

/// Schedule, check and time all apps or operators, and compare them with recorded times
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom suite --mode top5 --compare docs/results/anchors-h200.json -o results
  warploom suite --mode manual --apps harris,unsharp --json
  warploom suite --mode top5 --apps harris,mine.json --size 1536x2560
  warploom suite --mode autotune --iterations 4 --time-limit 10m --records night.db
  warploom suite --of operators --mode top5 --compare docs/results/anchors-operators-h200.json -o results
  warploom suite --of operators --rows 'C2D,GMM 10*' --mode top5
  warploom suite --strategies random,opevo,g-bfs --apps harris,unsharp --records compared.db -o results
  warploom suite --strategies all --landscapes training/landscapes/bmm1.landscape --trials 1000 --seeds 10
  warploom suite --strategies all --trials 1000 --seeds 3 --of operators --rows 'GMM*' --records compared.db -o results

Every result is compared with that of the default schedule at the full size, and the default schedule with the reference
evaluator at a small size. The best schedule is then timed longer, back to back on a stream and as a CUDA graph; the faster
of the two counts. The interrupt key ends the suite: the app at hand gets the best schedule so far, an operator is left for
the next run.

With -o, writes suite-MODE.json, suite-MODE.md and the schedule of each app as APP.schedule; for operators, writes
operators-MODE.json, operators-MODE.md and NAME-SHAPE.schedule, and continues from the results that are there. Exits with
6 if an app or a row has no valid schedule.

With --strategies, every strategy tunes every app or operator with every seed, in one space, and the best times after 25, 50,
100, 200, 500 and 1,000 trials are compared. With -o, writes strategies.json and strategies.md after every run. What the
database of --records has is not measured again: it counts as a trial, and the same command continues a comparison that was
interrupted. The interrupt key ends it after the current trial.")]
pub(crate) struct Arguments {
    /// What to run
    #[arg(long = "of", alias = "set", value_enum, default_value_t = Set::Apps)]
    set: Set,
    /// Where schedules come from
    #[arg(long, value_enum, default_value_t = Mode::OneShot)]
    mode: Mode,
    /// The apps, and *.json files with pipelines, separated by commas (default: all apps except the basic ones)
    #[arg(long, alias = "app", value_delimiter = ',', value_name = "NAMES")]
    apps: Vec<String>,
    /// The size of pipelines from files, as 1536x2560x3 for all inputs and outputs
    #[arg(long, value_name = "SIZES", requires = "apps")]
    size: Option<String>,
    /// The operators, by name, family, or name and shape, separated by commas; * stands for anything (default: all)
    #[arg(long, value_delimiter = ',', value_name = "PATTERNS")]
    rows: Vec<String>,
    /// The sizes to time apps at
    #[arg(long, value_enum, default_value_t = Sizes::Default)]
    sizes: Sizes,
    /// A file with times to compare with, as docs/results/anchors-h200.json or anchors-operators-h200.json
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    /// The folder with the schedules for mode `manual`
    #[arg(long, value_name = "DIR", default_value = "apps/schedules")]
    schedules: PathBuf,
    /// A database of trials, so that an interrupted run can continue
    #[arg(long, value_name = "FILE")]
    records: Option<PathBuf>,
    /// The output folder; created if missing
    #[arg(short, long, alias = "out", value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print the table as Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    comparing: Comparing,
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

/// What the suite runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Set {
    /// The apps
    Apps,
    /// The operators of papers on tensor compilers, at their sizes (docs/operators.md)
    Operators,
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

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Sizes {
    /// The apps' benchmark sizes
    Default,
    /// Small sizes at which the reference evaluator is fast
    Small,
}

pub(crate) fn suite(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    match arguments.set {
        _ if arguments.comparing.is_on() => strategies::suite(apps, arguments, out),
        Set::Apps => suite_of_apps(apps, arguments, out),
        Set::Operators => operators::suite(arguments, out),
    }
}

fn suite_of_apps(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let apps = arguments.apps(apps)?;
    let anchors = arguments.compare.as_deref().map(Anchors::read).transpose()?;
    let mut runner = arguments.runner()?;
    let mode = written(&arguments.mode);
    let mut report = Report::new(mode, runner.device(), runner.versions(), show::command(), anchors.as_ref());
    let progress = Progress::new("suite", Unit::Things("apps"));
    progress.set_length(apps.len() as u64);
    for app in &apps {
        if runner.is_stopped() {
            break;
        }
        let Some((asked, timed)) = one(&mut runner, app, &file_stem(&app.name), &progress)? else { break };
        let row = Row { app: asked.name, sizes: asked.sizes, timed, anchor: Anchor::default() };
        progress.advance(1);
        progress.say(&row.line());
        report.add(row, anchors.as_ref());
        arguments.write(&report)?;
    }
    drop(progress);
    arguments.print(&report, out)?;
    verdict(&report, apps.len())
}

/// Finds a schedule for one app and times it, with a progress bar.
fn one(
    runner: &mut Runner,
    app: &App,
    stem: &str,
    progress: &Progress,
) -> Result<Option<(Subject, Timed)>, Error> {
    progress.set_message(app.name.clone());
    let tried = |done: usize, expected: usize| {
        progress.set_part(done as f64 / expected.max(1) as f64);
        progress.set_message(format!("{}: {done}/{expected} trials", app.name));
    };
    Ok(runner.one(app, stem, &tried)?)
}

impl Arguments {
    /// What finds schedules and times them.
    fn runner(&self) -> Result<Runner, Error> {
        let bench = self.measuring.open()?;
        let start = Start::new(&self.first, bench.device())?;
        let records = self.records.as_ref().map_or_else(Records::in_memory, records::open)?;
        let samples = self.samples.max(1);
        let finding = match self.mode {
            Mode::OneShot => Finding::OneShot,
            Mode::Top5 => Finding::Top(5),
            Mode::Autotune => Finding::Autotune(Box::new(AutotuneOptions {
                iterations: self.iterations,
                samples,
                initial: start.weights,
                ..AutotuneOptions::default()
            })),
            Mode::Manual => Finding::Manual(self.schedules.clone()),
            Mode::Default => Finding::Default,
        };
        Ok(Runner {
            finding,
            is_small: self.sizes == Sizes::Small,
            are_many: self.set == Set::Operators,
            search: Options { seed: self.seed, samples, ..Options::default() },
            time_limit: self.time_limit,
            bench,
            records,
            model: start.model,
            retrainer: retrainer(self.retrains()),
            stop: stop_on_interrupt(),
        })
    }

    fn retrains(&self) -> bool {
        #[cfg(feature = "train")]
        return self.retrain;
        #[cfg(not(feature = "train"))]
        false
    }

    pub(crate) fn outputs(&self) -> Vec<Output<'_>> {
        let records = self.records.iter().map(|file| Output::Records(file));
        writable::folder(&self.output).into_iter().chain(records).collect()
    }

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
            true => Ok(Values::sized(self.size.as_deref()).of_file(name, &[], Purpose::Run)?.0.app),
            false => find_app(apps, name).cloned(),
        }
    }
}
