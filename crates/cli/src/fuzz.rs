//! `warploom fuzz`: checks random pipelines under random or searched schedules.

mod mutants;
mod replay;

use std::io::Write;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use warploom::fuzz::{Checker, Options, Scheduler, Summary, fuzz as run, random_schedules};
use warploom::randpipe::{self, Scale};
use warploom::target::Device;
use warploom_results::fuzzing::report::Report;
use warploom_results::fuzzing::{Compiler, Machine, Reducing, Searcher, most_telling};

use crate::backend::open_gpu;
use crate::device;
use crate::error::Error;
use crate::model::Model;
use crate::names::written;
use crate::progress::{Progress, Unit};
use crate::report::{Declared as _, Format, json, text};
use crate::search::duration;
use crate::writable::Output;

/// Check random pipelines under random or searched schedules against the reference evaluator
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom fuzz --pipelines 300 --per-pipeline 3 --seed 1  900 pairs in the simulator
  warploom fuzz --on cuda --scale small --coverage         on a GPU, with statistics of the schedules' decisions
  warploom fuzz --search --compile                         searched schedules, also compiled
  warploom fuzz --dynamic --pipelines 100                  kernels for any size, at several sizes and pitches
  warploom fuzz --replay fuzz-failures                     check the failures again
  warploom fuzz --mutate 200 --seed 1                      do the checks notice a missing barrier?

On a GPU, the tolerance of the timing build is the spread of the reference evaluator under perturbed rounding. If that
spread is large, the pipeline amplifies rounding errors. Such pairs are reported as ill-conditioned, not as failures.

Each failure is reduced and written to a file with the pipeline, the sizes, the schedule and the seed of the inputs.
The checked pairs depend only on the arguments, not on the number of threads. Exits with 1 if a pair fails.

With --mutate, each barrier and atomic of the first N kernels that have any is removed or altered in turn. The verifier
should refuse such a mutant, the simulator stop it, or an output be wrong. The others are listed with the reason why
the change has no effect there. Exits with 1 if there is no reason, because a check then has a gap.")]
pub(crate) struct Arguments {
    /// Number of pipelines to check
    #[arg(long, value_name = "N", default_value_t = 100)]
    pipelines: u64,
    /// Schedules per pipeline; with --search, the best and the worst that were found, and some in between
    #[arg(long = "per-pipeline", alias = "schedules", value_name = "N", default_value_t = 3)]
    schedules: u64,
    /// Seed of all pipelines and schedules, an integer
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// The size of the images
    #[arg(long, value_enum, default_value_t = Size::Tiny)]
    scale: Size,
    /// Number of stages per pipeline, from A to B, as in 2..12
    #[arg(long, value_name = "A..B", value_parser = stages)]
    stages: Option<RangeInclusive<usize>>,
    /// Number of threads (default: one per core)
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Fail if more of the pairs than this are skipped, because there is nothing to check, as in 20%
    #[arg(long, value_name = "SHARE%", value_parser = percentage, conflicts_with_all = ["mutate", "replay"])]
    max_skipped: Option<f64>,
    /// Print which scheduling decisions occurred, by kind of stage
    #[arg(long)]
    coverage: bool,
    #[command(flatten)]
    format: Format,
    /// What to run on
    #[arg(long, value_enum, default_value_t = Executor::Sim, help_heading = "Kernels")]
    on: Executor,
    /// The GPU to generate kernels for, if they do not run on one: a preset, a *.json file, or `auto`
    ///
    /// `auto` is the first GPU of this machine, or h200 if it has none.
    #[arg(long, value_name = "NAME", default_value = device::AUTO, help_heading = "Kernels")]
    device: String,
    /// Build the kernels of every pair for a range of sizes and any strides, and run them at several of these
    #[arg(long, conflicts_with = "on", help_heading = "Kernels")]
    dynamic: bool,
    /// Also compile the kernels of every pair; needs NVRTC
    #[arg(long, help_heading = "Kernels")]
    compile: bool,
    /// Use schedules that the search finds instead of random ones
    #[arg(long, help_heading = "Search")]
    search: bool,
    /// Searches per pipeline: one beam search, the others greedy with random choices
    #[arg(long, value_name = "N", default_value_t = 4, requires = "search", help_heading = "Search")]
    samples: usize,
    #[command(flatten)]
    model: Model,
    /// Remove or alter each barrier and atomic of N kernels instead; list the changes that no check notices
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["on", "compile", "search", "coverage", "replay"],
        help_heading = "Mutants"
    )]
    mutate: Option<usize>,
    /// The folder for failing cases
    #[arg(
        short,
        long,
        alias = "out",
        value_name = "DIR",
        default_value = "fuzz-failures",
        help_heading = "Failures"
    )]
    output: PathBuf,
    /// Number of failures to reduce and write; the run stops when there are as many
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Failures")]
    max_failures: usize,
    /// Time to spend on reducing one failure
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "20s", help_heading = "Failures")]
    reduce: Duration,
    /// Check these case files instead, or all files in these folders
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Failures")]
    replay: Vec<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Executor {
    /// The GPU simulator: outputs must match bit for bit, and every access is checked
    Sim,
    /// A GPU: the checking build must match bit for bit, the timing build within tolerance
    Cuda,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Size {
    /// Up to about 20 points per side
    Tiny,
    /// Up to about 64 points per side
    Small,
    /// About 512 points per side
    Medium,
    /// Millions of points
    Benchmark,
}

impl From<Size> for Scale {
    fn from(size: Size) -> Scale {
        match size {
            Size::Tiny => Scale::Tiny,
            Size::Small => Scale::Small,
            Size::Medium => Scale::Medium,
            Size::Benchmark => Scale::Benchmark,
        }
    }
}

fn stages(text: &str) -> Result<RangeInclusive<usize>, String> {
    let ends = text.split_once("..").and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
    match ends {
        Some((low, high)) if 1 <= low && low <= high => Ok(low..=high),
        _ => Err("write two whole numbers, the first from 1 to the second, as in 2..12".to_owned()),
    }
}

fn percentage(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let share = number.filter(|share| (0.0..=100.0).contains(share));
    share.ok_or_else(|| "write a number from 0 to 100 and a percent sign, as in 20%".to_owned())
}

/// Fuzzes, replays saved cases, or mutates kernels.
pub(crate) fn fuzz(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let machine = arguments.machine()?;
    if let Some(kernels) = arguments.mutate {
        return mutants::mutate(kernels, arguments, &machine.device, out);
    }
    let check: &Checker<'_> = &|case| machine.check(case);
    if !arguments.replay.is_empty() {
        return replay::replay(&arguments.replay, &machine.device, check, arguments.format, out);
    }
    let model = arguments.search.then(|| arguments.model.load(&machine.device)).transpose()?;
    let searcher =
        model.map(|model| Searcher::new(&machine.device, model, arguments.samples, arguments.schedules));
    let fuzzing = Fuzzing { arguments, device: &machine.device, check, searcher: searcher.as_ref() };
    fuzzing.run(machine.compiler.as_ref(), out)
}

/// The inputs of a fuzzing run.
struct Fuzzing<'a> {
    arguments: &'a Arguments,
    device: &'a Device,
    check: &'a Checker<'a>,
    /// The source of schedules; `None` for random ones.
    searcher: Option<&'a Searcher<'a>>,
}

impl Fuzzing<'_> {
    /// Checks new pairs of pipeline and schedule, and writes the failures to files.
    fn run(&self, compiler: Option<&Compiler>, out: &mut dyn Write) -> Result<(), Error> {
        let Fuzzing { arguments, device, check, searcher } = *self;
        let random = random_schedules(arguments.schedules);
        let schedules: &Scheduler<'_> = &|problem, seed| match searcher {
            Some(searcher) => searcher.schedules(problem, seed),
            None => random(problem, seed),
        };
        let progress = Progress::new("fuzzing", Unit::Things("pipelines"));
        let summary = run(&arguments.options(), device, schedules, check, &|so_far| {
            progress.set_length(so_far.total);
            progress.advance(1);
            progress.set_message(format!("{} failed", so_far.failed));
        });
        drop(progress);
        let summary = summary.map_err(|error| Error::Threads(error.to_string()))?;
        self.report(compiler, summary, out)
    }

    /// Reports what was found, and reduces and writes the failures.
    fn report(
        &self,
        compiler: Option<&Compiler>,
        mut summary: Summary,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let Fuzzing { arguments, device, check, searcher } = *self;
        let mut report = Report::new(written(&arguments.on), arguments.seed, device, &summary);
        report.passed &= arguments.check_skipped(report.skipped, report.pairs).is_ok();
        report.search = searcher.map(Searcher::counts);
        report.compiled = compiler.map(Compiler::counts);
        let mut say = |line: &str| if arguments.format.json { Ok(()) } else { text(out, line) };
        say(&report.header())?;
        let reducing =
            Reducing { device, check, searcher, time: arguments.reduce, folder: &arguments.output };
        let failures = most_telling(std::mem::take(&mut summary.failures));
        for found in failures.into_iter().take(arguments.max_failures.max(1)) {
            let written = reducing.written(found)?;
            say(&written.text())?;
            report.failures.push(written);
        }
        let left = report.failed - report.failures.len();
        if left > 0 {
            say(&format!("\n{left} more failures were not written; see --max-failures\n"))?;
        }
        if arguments.coverage {
            say(&format!("\n{}", summary.coverage))?;
        }
        if arguments.format.json {
            json(out, Report::NAME, &report)?;
        }
        match report.failed {
            0 => arguments.check_skipped(report.skipped, report.pairs),
            failed => Err(Error::Fuzz { failed: failed as u64, count: report.pairs, what: "pairs" }),
        }
    }
}

impl Arguments {
    pub(crate) fn outputs(&self) -> Vec<Output<'_>> {
        match self.replay.is_empty() && self.mutate.is_none() {
            true => vec![Output::Folder(&self.output)],
            false => Vec::new(),
        }
    }

    fn machine(&self) -> Result<Machine, Error> {
        match self.on {
            Executor::Cuda => {
                let gpu = open_gpu()?;
                Ok(Machine { device: gpu.device().clone(), gpu: Some(gpu), compiler: None, dynamic: false })
            }
            Executor::Sim => {
                let device = device::find(&self.device, self.format)?;
                let compiler = self.compile.then(|| Compiler::new(&device)).transpose();
                let compiler = compiler.map_err(|error| Error::Gpu(error.to_string()))?;
                Ok(Machine { device, gpu: None, compiler, dynamic: self.dynamic })
            }
        }
    }

    /// Returns an error if so many pairs were skipped that the run says little.
    fn check_skipped(&self, skipped: u64, pairs: u64) -> Result<(), Error> {
        let share = 100.0 * skipped as f64 / pairs.max(1) as f64;
        match self.max_skipped {
            Some(most) if share > most => Err(Error::Skipped { skipped, pairs, share, most }),
            _ => Ok(()),
        }
    }

    fn options(&self) -> Options {
        let mut random = randpipe::Options { scale: self.scale.into(), ..randpipe::Options::default() };
        if let Some(stages) = &self.stages {
            random.stages = stages.clone();
        }
        Options {
            pipelines: self.pipelines,
            seed: self.seed,
            random,
            threads: self.threads,
            max_failures: self.max_failures,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use tempfile::TempDir;
    use warploom::fuzz::{Case, Failure, Verdict};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        fuzz: Arguments,
    }

    fn arguments(line: &str) -> Arguments {
        Line::try_parse_from(std::iter::once("fuzz").chain(line.split_whitespace())).unwrap().fuzz
    }

    /// Reports a failure for every pipeline that contains a division.
    fn broken(case: &Case) -> Result<Verdict, Failure> {
        match case.pipeline.to_string().contains('/') {
            true => Err(Failure::Numeric("made up".to_owned())),
            false => Ok(Verdict::Passed),
        }
    }

    #[test]
    fn failures_are_written_small() {
        let folder = TempDir::new().unwrap();
        let place = folder.path().join("found").display().to_string();
        let line = format!("--pipelines 70 --schedules 1 --max-failures 2 --out {place}");
        let mut out = Vec::new();
        let device = Device::preset("h200").unwrap();
        let arguments = arguments(&line);
        let fuzzing = Fuzzing { arguments: &arguments, device: &device, check: &broken, searcher: None };
        let error = fuzzing.run(None, &mut out).unwrap_err();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("64 pairs of 64 pipelines simulated for H200, seed 1, in "), "{text}");
        assert!(text.contains(" numeric); stopped early\n"), "{text}");
        assert!(
            text.contains("\nnumeric: the timing build differs too much: made up\n  1 Func of "),
            "{text}"
        );
        assert!(text.contains(" more failures were not written; see --max-failures\n"), "{text}");
        assert!(
            error.to_string().ends_with(" of 64 pairs failed; please report them with their files"),
            "{error}"
        );
        assert_eq!(error.exit_code(), 1);
        let files: Vec<PathBuf> =
            std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files.len(), 2);
        for file in files {
            let (case, seen) = Case::load(&file).unwrap();
            assert_eq!((case.pipeline.funcs().len(), seen.kind.as_str()), (1, "numeric"));
            assert!(text.contains(&format!("\n  warploom fuzz --replay {}\n", file.display())), "{text}");
        }
    }

    #[test]
    fn failures_in_json_are_as_their_page_says() {
        let folder = TempDir::new().unwrap();
        let place = folder.path().join("found").display().to_string();
        let device = Device::preset("h200").unwrap();
        let arguments =
            arguments(&format!("--pipelines 70 --schedules 1 --max-failures 1 --out {place} --json"));
        let shaky = |case: &Case| broken(case).map(|_| Verdict::IllConditioned("made up".to_owned()));
        let fuzzing = Fuzzing { arguments: &arguments, device: &device, check: &shaky, searcher: None };
        let mut out = Vec::new();
        let error = fuzzing.run(None, &mut out).unwrap_err();
        assert!(error.is_in_the_report());
        let report: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!((&report["passed"], &report["failures"][0]["kind"]), (&false.into(), &"numeric".into()));
        let seen = crate::documented::Documented::read().check(&report);
        for row in ["fuzz failure: funcs", "fuzz ill-conditioned: message"] {
            assert!(seen.contains(row), "{row}: {seen:?}");
        }
    }

    #[test]
    fn stages_are_two_numbers() {
        assert_eq!(stages("2..12"), Ok(2..=12));
        assert_eq!(stages("3..3"), Ok(3..=3));
        for wrong in ["", "3", "5..2", "0..3", "a..b", "1..", "..2", "1..=2"] {
            assert!(stages(wrong).is_err(), "{wrong}");
        }
    }
}
