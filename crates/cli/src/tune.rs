//! `warploom tune`: finds the fastest schedule by measuring.

#[cfg(all(feature = "farm", unix))]
mod farmed;
mod interrupt;
mod measuring;
mod progress;
mod strategy;

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Arg;
use warploom::app::{App, Subject, Tunable};
#[cfg(feature = "train")]
use warploom::codegen::export::file_stem;
use warploom::cost::{Analytic, CostModel, Network, Weights};
use warploom::records;
use warploom::search::Options;
use warploom::target::Device;
use warploom::tune::autotune::{AutotuneOptions, Autotuned, autotune};
use warploom::tune::explore::{ExploreOptions, MODEL, explore};
use warploom::tune::records::Records;
use warploom::tune::retrain::Retrain;
use warploom::tune::top::top;
use warploom::tune::tuning::{Ended, Event, Observer, Task, TuneError, Tuned};
use warploom::tune::worker::Bench;
use warploom_results::trials::why_nothing;
use warploom_results::tuned::{Exploration, Report};

use crate::compile::export;
use crate::error::{Error, Kind};
use crate::landscape::landscape_kind;
use crate::model::{built_in, read};
use crate::pipeline::Which;
use crate::report::{self, Format};
use crate::search::duration;
use crate::table::PlainText as _;
use crate::writable::{self, Output};

use progress::SCHEMA;
use strategy::Exploring;

#[cfg(all(feature = "farm", unix))]
pub(crate) use interrupt::stop_working;
pub(crate) use interrupt::{stop_on_interrupt, stop_watching};
pub(crate) use measuring::Measuring;
pub(crate) use progress::Progress;
pub(crate) use strategy::Spaces;

/// The default database of trials.
pub(crate) const RECORDS: &str = "tuning.db";

/// Find the fastest schedule by measuring, in a minute or overnight
///
/// With --top, measures the schedules of one search with the best predicted times; with --iterations, searches and measures repeatedly.
///
/// With --strategy, a strategy chooses what is measured.
#[derive(Debug, clap::Args)]
#[command(mut_arg("json", |arg: Arg| arg.help("Print one JSON object per line instead of text")), after_long_help = "Examples:
  warploom tune harris --top 5 -o out                         measure the five schedules with the best predicted times
  warploom tune harris --iterations 20 --time-limit 8h -o out
  warploom tune local_laplacian --iterations 20 --records night.db -o out
  warploom tune mine.json --size 640x480 -o out               a pipeline written by Pipeline::to_json
  warploom tune harris --strategy opevo --trials 500 -o out   evolution of tiles, orders and copies
  warploom tune harris --strategy g-bfs --set-strategy rho=10,moves=prime --templates 1

Candidates are compiled on all cores and timed one at a time, in a separate process. A kernel that crashes, hangs or gives
wrong results costs only its own trial. With --iterations, candidates are compared with the reference evaluator at a small
size; the best ones, and all with --top, with the default schedule at the full size, which is itself compared with the
evaluator. Candidates that spill registers are not run.

Every trial is recorded before the next one begins. To continue after an interruption, run the same command again: nothing
is measured twice. Several processes of this machine can tune with the same database at the same time. The interrupt key
ends the run after the current trial, without loss; pressed twice, it ends the run at once. SIGTERM, a closed terminal and
a closed --json pipe have the same effect.

A strategy explores the structures of a few schedules, and may change their numbers and orders. Its trials are the schedules
that it asks for and that are measured or in the database; those that it repeats or that the rules refuse cost nothing. Its
steps are recorded, and the same command continues them. The strategy `model` searches as --iterations does, and `model-fixed`
ranks the same schedules as the others by the model.

With -o, writes the same files as `warploom compile`, for the winner. With --json, prints one JSON object per line: events,
then the result.

Exits with 0 if a schedule was found, even if the time limit or the user ended the search; 2 if the database cannot be used;
4 if there is no GPU or it is lost; 5 if no schedule could be measured; 141 if the reader of the results has gone. Results
found so far are written in all these cases.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    which: Which,
    /// Measure the N schedules of one search with the best predicted times
    #[arg(long, value_name = "N", default_value_t = 5, conflicts_with = "iterations")]
    top: usize,
    /// Search and measure N times, with different schedules each time
    #[arg(long, value_name = "N")]
    iterations: Option<usize>,
    /// Stop after this time, as 8h, 30m or 90s (default: no limit)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time_limit: Option<Duration>,
    /// The database of trials; created if missing
    #[arg(long, value_name = "FILE", default_value = RECORDS)]
    records: PathBuf,
    /// The folder for the winner's files; created if missing
    #[arg(short, long, alias = "out", value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    exploring: Exploring,
    #[command(flatten)]
    first: FirstModel,
    /// Train the model after each iteration on all trials in the database
    #[cfg(feature = "train")]
    #[arg(long, requires = "iterations", help_heading = "Model")]
    retrain: bool,
    /// The file for the trained weights (default: APP.weights in the folder of -o)
    #[cfg(feature = "train")]
    #[arg(long, value_name = "FILE", requires = "retrain", help_heading = "Model")]
    weights: Option<PathBuf>,
    /// Searches per batch; with --iterations, also the number of measured schedules per batch
    #[arg(long, value_name = "N", default_value_t = 80, help_heading = "Search")]
    samples: usize,
    /// Seed of all random choices, an integer
    #[arg(long, default_value_t = 0, help_heading = "Search")]
    seed: u64,
    /// States that a beam search expands per decision
    #[arg(long, value_name = "N", default_value_t = 32, help_heading = "Search")]
    beam: usize,
    /// Number of passes of a beam search
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = "Search")]
    passes: usize,
    #[command(flatten)]
    measuring: Measuring,
}

/// What a run does.
enum Plan {
    /// Measures so many schedules of one search.
    Top(usize),
    /// Searches and measures so often.
    Iterations(usize),
    /// Lets a strategy ask.
    Explore(Box<ExploreOptions>),
}

impl Plan {
    /// Whether it searches and measures in turns.
    fn iterates(&self) -> bool {
        match self {
            Plan::Top(_) => false,
            Plan::Iterations(_) => true,
            Plan::Explore(options) => options.strategy == MODEL,
        }
    }
}

/// The initial cost model of a run, and its weights.
pub(crate) struct Start {
    pub(crate) model: Box<dyn CostModel + Send>,
    pub(crate) weights: Option<Weights>,
}

pub(crate) fn tune(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let started = Instant::now();
    let asked = arguments.which.realise(apps)?;
    let plan = arguments.plan(&asked)?;
    let mut bench = arguments.measuring.open()?;
    let device = bench.device().clone();
    arguments.exploring.check(&asked, &device)?;
    let start = Start::new(&arguments.first, &device)?;
    let mut records = records::open(&arguments.records)?;
    let tunable = Tunable::new(&asked, &device, arguments.seed)?;
    let deadline = arguments.time_limit.map(|limit| started + limit);
    let task = tunable.task(&*start.model, arguments.search_options(), deadline, stop_on_interrupt());
    let (json, iterates) = (arguments.format.json, plan.iterates());
    // A model that changes during the run predicts nothing of all trials.
    let model = (!arguments.retrains()).then_some(&*start.model as &dyn CostModel);
    let progress = Progress::new(&asked.name, json, iterates, arguments.time_limit, out);
    let mut progress = progress.predicted_by(model);
    progress.begin(&asked, &device, tunable.small.is_some());
    let mut hear = |event: &Event<'_>| progress.hear(event);
    let done =
        bench.with(|bench| arguments.run(plan, &task, bench, &mut records, start.weights.clone(), &mut hear));
    let (Autotuned { tuned, weights, iterations }, exploration) = done?;
    let out = progress.end();
    let Tuned { winner, ended, .. } = &tuned;
    let mut files = match (winner, &arguments.output) {
        (Some(winner), Some(folder)) => export(&asked, &device, &winner.schedule, folder)?,
        _ => Vec::new(),
    };
    files.extend(arguments.write_weights(&asked.name, weights.as_ref())?);
    let report = Report::new(&asked, &device, &tuned, model, iterations, &arguments.records, files);
    let report = report.of_strategy(exploration);
    let out = out?;
    match arguments.format.json {
        true => report::json_line(out, SCHEMA, &report)?,
        false => report::text(out, &report.text(&tuned, model, &|table| table.text()))?,
    }
    finish(&tuned, &asked.name, ended)
}

/// The result of the command: the error that ended the run, or that nothing was measured.
fn finish(tuned: &Tuned, name: &str, ended: &Ended) -> Result<(), Error> {
    match ended {
        Ended::Failed(error) => Err(Error::Tune(error.to_string(), kind(error))),
        _ if tuned.winner.is_none() => {
            let tried = tuned.progress.done.max(tuned.shown.len());
            let why = why_nothing(ended, tried, "schedule", name);
            let more = format!("; `warploom records list {name}` shows why");
            Err(Error::NothingMeasured(if tried > 0 { why + &more } else { why }))
        }
        _ => Ok(()),
    }
}

/// The kind of an error during tuning.
pub(crate) fn kind(error: &TuneError) -> Kind {
    match error {
        TuneError::Bounds(_) | TuneError::Template(_) => Kind::Pipeline,
        TuneError::Strategy(_) => Kind::Usage,
        TuneError::Landscape(error) => landscape_kind(error),
        TuneError::Measure(_) => Kind::Gpu,
        _ => Kind::File,
    }
}

impl Arguments {
    pub(crate) fn outputs(&self) -> Vec<Output<'_>> {
        let mut outputs = writable::folder(&self.output);
        outputs.push(Output::Records(&self.records));
        #[cfg(feature = "train")]
        outputs.extend(self.weights.iter().map(|file| Output::File(file)));
        outputs
    }

    fn search_options(&self) -> Options {
        Options {
            seed: self.seed,
            beam: self.beam.max(1),
            passes: self.passes.max(1),
            samples: self.samples.max(1),
            ..Options::default()
        }
    }

    fn retrains(&self) -> bool {
        #[cfg(feature = "train")]
        return self.retrain;
        #[cfg(not(feature = "train"))]
        false
    }

    fn plan(&self, asked: &Subject) -> Result<Plan, Error> {
        let options = self.exploring.options(&asked.pipeline, self.seed)?;
        Ok(match (self.iterations, options) {
            (Some(iterations), _) => Plan::Iterations(iterations),
            (None, Some(options)) => Plan::Explore(Box::new(options)),
            (None, None) => Plan::Top(self.top.max(1)),
        })
    }

    fn run(
        &self,
        plan: Plan,
        task: &Task<'_>,
        bench: &mut Bench<'_>,
        records: &mut Records,
        initial: Option<Weights>,
        observer: Observer<'_>,
    ) -> Result<(Autotuned, Option<Exploration>), TuneError> {
        let once = |tuned| Autotuned { tuned, weights: None, iterations: 0 };
        let iterations = match plan {
            Plan::Top(count) => return Ok((once(top(task, count, bench, records, observer)?), None)),
            Plan::Explore(options) => {
                let explored = explore(task, &options, bench, records, observer)?;
                let exploration = Exploration::new(&explored);
                return Ok((once(explored.tuned), Some(exploration)));
            }
            Plan::Iterations(iterations) => iterations,
        };
        let samples = self.samples.max(1);
        let options = AutotuneOptions { iterations, samples, initial, ..AutotuneOptions::default() };
        let mut retrainer = retrainer(self.retrains());
        let retrain = retrainer.as_deref_mut().map(|retrain| retrain as &mut dyn Retrain);
        Ok((autotune(task, &options, bench, records, retrain, observer)?, None))
    }

    #[cfg(feature = "train")]
    fn write_weights(&self, name: &str, weights: Option<&Weights>) -> Result<Option<String>, Error> {
        let in_folder = || Some(self.output.as_ref()?.join(format!("{}.weights", file_stem(name))));
        let Some((weights, path)) = weights.zip(self.weights.clone().or_else(in_folder)) else {
            return Ok(None);
        };
        writable::write(&path, &weights.to_bytes()).map(Some)
    }

    #[cfg(not(feature = "train"))]
    fn write_weights(&self, _: &str, _: Option<&Weights>) -> Result<Option<String>, Error> {
        Ok(None)
    }
}

/// What trains the model between iterations, if that is asked for.
pub(crate) fn retrainer(asked: bool) -> Option<Box<dyn Retrain>> {
    #[cfg(feature = "train")]
    if asked {
        // Few epochs suffice, because each iteration continues from the weights of the last one.
        let options = warploom_training::train::Options { epochs: 12, ..Default::default() };
        return Some(Box::new(warploom_training::retrain::Retrainer { options }));
    }
    debug_assert!(!asked, "there is no flag for it");
    None
}

/// The model that tuning begins with.
#[derive(Debug, clap::Args)]
pub(crate) struct FirstModel {
    /// Start from the analytic model instead of weights
    #[arg(long, conflicts_with = "init", help_heading = "Model")]
    from_scratch: bool,
    /// Start from these weights (default: the built-in weights)
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    init: Option<PathBuf>,
}

impl Start {
    /// Loads the analytic model, weights from a file, or the built-in weights.
    pub(crate) fn new(first: &FirstModel, device: &Device) -> Result<Start, Error> {
        if first.from_scratch {
            return Ok(Start { model: Box::new(Analytic::new(device)), weights: None });
        }
        let weights = match &first.init {
            Some(file) => Some(read(file)?),
            None => built_in(device),
        };
        let model: Box<dyn CostModel + Send> = match &weights {
            Some(weights) => Box::new(Network::new(weights, device)),
            None => Box::new(Analytic::new(device)),
        };
        Ok(Start { model, weights })
    }
}

impl From<TuneError> for Error {
    fn from(error: TuneError) -> Error {
        match error {
            TuneError::Records(error) => Error::Records(error),
            error => Error::Tune(error.to_string(), kind(&error)),
        }
    }
}
