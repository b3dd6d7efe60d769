//! Searches for schedules: flags, progress and reports.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use warploom::codegen::export::named;
use warploom::codegen::ir::Program;
use warploom::codegen::printer::{Build, PRINTER};
use warploom::cost::CostModel;
use warploom::plan::{Problem, Violation};
use warploom::runtime::compiler::Arch;
use warploom::schedule_file::{read_written, unbuilt};
use warploom::search::{Event, Fixed, FixedError, Options};
use warploom::target::Device;
use warploom::tune::cache::compile_program;
use warploom::tune::one_shot::{OneShot, one_shot_without_spills};
use warploom_results::search::notes;

use crate::error::Error;
use crate::progress::{Progress, Unit};
use crate::voice;

/// How to search for a schedule where none is given.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Search")]
pub(crate) struct Flags {
    /// Total number of searches: one beam search, the others greedy with random choices
    #[arg(long, value_name = "N", default_value_t = 80, conflicts_with = "schedule")]
    samples: usize,
    /// States that the beam search expands per decision
    #[arg(long, value_name = "N", default_value_t = 32, conflicts_with = "schedule")]
    beam: usize,
    /// Number of passes of the beam search
    #[arg(long, value_name = "N", default_value_t = 5, conflicts_with = "schedule")]
    passes: usize,
    /// Seed of all random choices, an integer
    #[arg(long, default_value_t = 0, conflicts_with = "schedule")]
    seed: u64,
    /// Evaluate all options of a decision instead of a sample of each kind
    #[arg(long, conflicts_with = "schedule")]
    no_sampling: bool,
    /// Do not freeze the cheapest Funcs after the first pass
    #[arg(long, conflicts_with = "schedule")]
    no_freezing: bool,
    /// Do not rewrite reductions, scans and histograms that have too little parallelism
    #[arg(long, conflicts_with = "schedule")]
    no_rewrites: bool,
    /// Do not memoize evaluated kernels
    #[arg(long, conflicts_with = "schedule")]
    no_memo: bool,
    /// Stop after this time, as 10s, 2m or 500ms, with the best result so far, which may then differ between runs
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "schedule")]
    time_limit: Option<Duration>,
    /// Worker threads (default: one per core); the result does not depend on their number
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true,
        conflicts_with = "schedule"
    )]
    threads: usize,
    /// A partial schedule to keep; the search schedules the other Funcs
    #[arg(long, value_name = "FILE", conflicts_with = "schedule")]
    fix: Option<PathBuf>,
    /// Print statistics of the search
    #[arg(long, conflicts_with = "schedule")]
    pub(crate) statistics: bool,
}

impl Flags {
    /// The search options for a pipeline.
    pub(crate) fn options(&self, problem: &Problem) -> Result<Options, Error> {
        let usual = Options::default();
        let fixed = self.fix.as_ref().map(|file| fixed(file, problem)).transpose()?;
        Ok(Options {
            seed: self.seed,
            beam: self.beam.max(1),
            passes: self.passes.max(1),
            samples: self.samples.max(1),
            sampling: !self.no_sampling,
            freezing: !self.no_freezing,
            memo: if self.no_memo { 0 } else { usual.memo },
            threads: self.threads,
            time_limit: self.time_limit,
            rewrites: if self.no_rewrites { 0 } else { usual.rewrites },
            fixed,
            ..usual
        })
    }
}

/// Reads the partial schedule of `--fix`.
fn fixed(file: &Path, problem: &Problem) -> Result<Fixed, Error> {
    let written = read_written(file, problem.pipeline())?;
    Fixed::new(problem, written.schedule.clone()).map_err(|error| {
        let error = match error {
            FixedError::Conflict(violations) => {
                FixedError::Conflict(Violation::all_in(&written.spots, violations))
            }
            other => other,
        };
        Error::Fixed { file: file.display().to_string(), error: Box::new(error) }
    })
}

/// Parses `10s`, `2m` or `500ms`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let seconds = units.iter().find_map(|(unit, seconds)| {
        let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        Some(number * seconds)
    });
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| format!("`{text}` is not a time; write it as 10s, 2m or 500ms"))
}

/// Searches for a schedule of a pipeline and builds it. Shows progress, and prints a note if
/// anything went wrong.
pub(crate) fn run(problem: &Problem, model: &dyn CostModel, options: &Options) -> Result<OneShot, Error> {
    let watch = Watch::new(problem.pipeline().name(), options);
    let spills = |program: &Program| {
        watch.progress.set_message("compiling the best");
        spilled_bytes(program, problem.device())
    };
    let hear = |event| watch.hear(&event);
    let found = one_shot_without_spills(problem, model, options, &spills, &hear);
    drop(watch);
    let found = found.map_err(|error| unbuilt(problem.pipeline(), error))?;
    notes(&found).iter().for_each(|note| voice::note(note));
    Ok(found)
}

/// The bytes that the kernels spill according to NVRTC; `None` if it is missing.
fn spilled_bytes(program: &Program, device: &Device) -> Option<u64> {
    let arch = Arch::for_device(device).ok()?;
    // Under the names of a package, which is what usually comes next, so that the cache has its code.
    let exported = named(program, &program.name);
    let (_, image) = compile_program(&PRINTER.describe(&exported, Build::Timing), arch).ok()?;
    image.map(|image| image.spilled_bytes())
}

/// The progress of a search, in the steps of its events.
struct Watch {
    progress: Progress,
    beam: u64,
    /// Steps before the search at hand, and its own.
    before: AtomicU64,
    steps: AtomicU64,
    /// Steps of the search at hand that are done.
    done: AtomicU64,
    /// The lowest predicted time so far, as bits; positive floats order like their bits.
    best: AtomicU64,
}

impl Watch {
    fn new(name: &str, options: &Options) -> Watch {
        let progress = Progress::limited(format!("searching {name}"), Unit::Share, options.time_limit);
        let (before, steps, done) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        Watch { progress, beam: options.beam as u64, before, steps, done, best: AtomicU64::new(u64::MAX) }
    }

    fn hear(&self, event: &Event) {
        let best = match *event {
            Event::SearchStarted { before, steps, of } => {
                self.before.store(before as u64, Ordering::Relaxed);
                self.steps.store(steps as u64, Ordering::Relaxed);
                self.done.store(0, Ordering::Relaxed);
                self.progress.set_length(of as u64);
                return self.progress.set_position(before as u64);
            }
            Event::PassStarted { pass, .. } => return self.show(self.beam * pass as u64, 0.0),
            Event::Decided { decision, of, best } => {
                let done = self.beam as f64 * decision as f64 / of.max(1) as f64;
                self.show(self.done.load(Ordering::Relaxed), done);
                best
            }
            Event::PassFinished { pass, best } => {
                self.show(self.beam * (pass as u64 + 1), 0.0);
                best
            }
            Event::SampleFinished { sample, best } => {
                let one = u64::from(sample > 0);
                self.show(self.done.fetch_add(one, Ordering::Relaxed) + one, 0.0);
                best
            }
        };
        let least = self.best.fetch_min(best.to_bits(), Ordering::Relaxed).min(best.to_bits());
        self.progress.set_message(format!("best {:.1} us", f64::from_bits(least)));
    }

    /// Shows that so many steps of the search at hand are done, and some more of a pass.
    fn show(&self, done: u64, of_pass: f64) {
        self.done.fetch_max(done, Ordering::Relaxed);
        let steps = self.steps.load(Ordering::Relaxed);
        let done = (done + of_pass as u64).min(steps);
        self.progress.set_position(self.before.load(Ordering::Relaxed) + done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_time_is_left_than_the_limit() {
        let limit = Duration::from_secs(30);
        let watch = Watch::new("blur", &Options { time_limit: Some(limit), ..Options::default() });
        assert_eq!(watch.progress.limit(), limit);
        assert_eq!(Watch::new("blur", &Options::default()).progress.limit(), Duration::MAX);
    }

    #[test]
    fn times_have_a_unit() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["10", "s", "-1s", "1e400s", "soon"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
