//! `warploom landscape`: records the times of all points of a small space, and shows them.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Subcommand;
use warploom::app::{App, Subject, Tunable};
use warploom::cost::Analytic;
use warploom::plan::Problem;
use warploom::records;
use warploom::schedule::Written;
use warploom::schedule_file::{legal, problem, read_written};
use warploom::search::Options;
use warploom::tune::landscape::{Definition, Landscape, LandscapeError, Limits, Recorded, record};
use warploom::tune::tuning::{Ended, Event};
use warploom_results::landscape::{Count, Summary};
use warploom_results::trials::why_nothing;

use crate::error::{Error, Kind};
use crate::pipeline::Which;
use crate::report::{self, Format};
use crate::search::duration;
use crate::tune::{Measuring, Progress, RECORDS, kind, stop_on_interrupt};
use crate::writable::Output;

/// Record the times of all points of a small space, for comparing strategies without a GPU
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom landscape record mm.tc --size M=512,K=1024,N=1024 --template mm.schedule -o mm.landscape
  warploom landscape record mm.tc --size M=512,K=1024,N=1024 --template mm.schedule --dry-run
  warploom landscape show mm.landscape

A landscape has the times of all legal schedules with the structure of a template whose tiles divide the extents and are
within some limits. Strategies run on it as on the GPU that it was recorded on. docs/strategies.md describes this.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Record(Box<Recording>),
    /// Show what a landscape is of, and its times
    Show {
        /// The landscape
        file: PathBuf,
        #[command(flatten)]
        format: Format,
    },
}

/// Measure all points and write their times to a file
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Every point is recorded in the database before the next one is measured, and nothing is measured twice: to continue
after an interruption, run the same command again. The file is written in any case. It says how many points are missing."
)]
struct Recording {
    #[command(flatten)]
    which: Which,
    /// The schedule whose structure all points have
    #[arg(long, value_name = "FILE")]
    template: PathBuf,
    /// The axes that are open, as out.x,out.y,prod.1.r (default: all)
    ///
    /// On the others, all points are where the template is.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    axes: Vec<String>,
    /// What points may have on these axes
    ///
    /// These are the threads of a block, the points of a thread along one dimension and in all, and the values of a reduction
    /// in an iteration.
    #[arg(long, value_name = "LIMITS", default_value_t)]
    limits: Limits,
    /// Only print how many points there are
    #[arg(long)]
    dry_run: bool,
    /// The file for the landscape; replaced if it exists
    #[arg(short, long, alias = "out", value_name = "FILE", required_unless_present = "dry_run")]
    output: Option<PathBuf>,
    /// Measure at most N points in this run (default: all)
    #[arg(long, value_name = "N")]
    trials: Option<usize>,
    /// Stop after this time, as 8h, 30m or 90s (default: no limit)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time_limit: Option<Duration>,
    /// The database of trials; created if missing
    #[arg(long, value_name = "FILE", default_value = RECORDS)]
    records: PathBuf,
    /// Seed of the inputs, an integer
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    measuring: Measuring,
}

pub(crate) fn landscape(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    match &arguments.what {
        What::Record(recording) => recording.run(apps, out),
        What::Show { file, format } => {
            let summary = Summary::new(&Landscape::read(file)?);
            report::print(out, *format, &summary, || summary.text(file))
        }
    }
}

impl Arguments {
    pub(crate) fn outputs(&self) -> Vec<Output<'_>> {
        match &self.what {
            What::Record(recording) if !recording.dry_run => {
                let file = recording.output.iter().map(|file| Output::File(file));
                file.chain([Output::Records(&recording.records)]).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Recording {
    fn run(&self, apps: &[App], out: &mut dyn Write) -> Result<(), Error> {
        let asked = self.which.realise(apps)?;
        let template = read_written(&self.template, &asked.pipeline)?;
        match &self.output {
            Some(file) if !self.dry_run => self.record(&asked, template, file, out),
            _ => self.count(&asked, template, out),
        }
    }

    /// What is recorded, if the template is legal on a device.
    fn definition(&self, template: Written, problem: &Problem) -> Result<Definition, Error> {
        let template = legal(&self.template, template, problem)?;
        Ok(Definition { template, axes: self.axes.clone(), limits: self.limits })
    }

    fn count(&self, asked: &Subject, template: Written, out: &mut dyn Write) -> Result<(), Error> {
        let device = self.measuring.device(self.format)?;
        let problem = problem(&asked.pipeline, &asked.request, &device)?;
        let (space, points) = self.definition(template, &problem)?.points(&problem)?;
        let count = Count::new(&space, points.len());
        report::print(out, self.format, &count, || count.text())
    }

    fn record(
        &self,
        asked: &Subject,
        template: Written,
        file: &PathBuf,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let started = Instant::now();
        let mut bench = self.measuring.open()?;
        let device = bench.device().clone();
        let definition = self.definition(template, &problem(&asked.pipeline, &asked.request, &device)?)?;
        let mut records = records::open(&self.records)?;
        let tunable = Tunable::new(asked, &device, self.seed)?;
        let model = Analytic::new(&device);
        let deadline = self.time_limit.map(|limit| started + limit);
        let task = tunable.task(&model, Options::default(), deadline, stop_on_interrupt());
        let mut nowhere = io::sink();
        let mut progress = (!self.format.json).then(|| {
            let mut progress = Progress::new(&asked.name, false, false, self.time_limit, &mut nowhere);
            progress.begin(asked, &device, tunable.small.is_some());
            progress
        });
        let mut observer = |event: &Event<'_>| progress.iter_mut().for_each(|progress| progress.hear(event));
        let trials = self.trials.unwrap_or(usize::MAX);
        let recorded =
            bench.with(|bench| record(&task, &definition, trials, bench, &mut records, &mut observer));
        drop(progress);
        let Recorded { landscape, ended } = recorded?;
        landscape.write(file)?;
        let failed = failure(&landscape, &ended, &asked.name);
        // In JSON, an error is the only object.
        if failed.is_none() || !self.format.json {
            let summary = Summary::new(&landscape);
            report::print(out, self.format, &summary, || summary.text(file))?;
        }
        failed.map_or(Ok(()), Err)
    }
}

/// The error that ended the run, or that nothing was measured.
fn failure(landscape: &Landscape, ended: &Ended, name: &str) -> Option<Error> {
    match ended {
        Ended::Failed(error) => Some(Error::Tune(error.to_string(), kind(error))),
        _ if landscape.times_us().is_empty() => {
            let tried = landscape.points().count();
            Some(Error::NothingMeasured(why_nothing(ended, tried, "point", name)))
        }
        _ => None,
    }
}

impl From<LandscapeError> for Error {
    fn from(error: LandscapeError) -> Error {
        let kind = landscape_kind(&error);
        Error::Tune(error.to_string(), kind)
    }
}

/// The kind of an error of landscapes.
pub(crate) fn landscape_kind(error: &LandscapeError) -> Kind {
    use LandscapeError::{Bounds, Outside, Points, Strategy, Template};
    match error {
        Bounds(_) | Template(_) => Kind::Pipeline,
        Outside { .. } | Points { .. } | Strategy(_) => Kind::Usage,
        _ => Kind::File,
    }
}
