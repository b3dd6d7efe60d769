//! `warploom records`: lists, exports and imports the measurements of tuning.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use warploom::lang::{Region, Type, Value, files, visible};
use warploom::records as places;
use warploom::tune::records::{Imported, Problem, ProblemId, Records, Trial};
use warploom_results::trials::{TrialReport, trial_table};

use crate::error::Error;
use crate::folder::files_of;
use crate::report::{self, Format};
use crate::show;
use crate::table::{PlainText as _, Table, dash};
use crate::writable::{Output, unwritable};

/// List, show, export and import the trials of tuning
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom records list
  warploom records list harris
  warploom records show 17
  warploom records best harris > harris.schedule
  warploom records export all.jsonl
  warploom records export samples/night1.samples       for `warploom train --data samples`
  warploom records import all.jsonl --records other.db

Every command takes --records FILE (default: tuning.db) and --json.

A database contains one trial per tried schedule: its times, or the reason why it has none. It is a SQLite file that
several processes of one machine can use at the same time. A read-only database can be listed and exported.")]
pub(crate) struct Arguments {
    /// The database of trials
    #[arg(long, value_name = "FILE", default_value = crate::tune::RECORDS, global = true)]
    records: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    what: What,
}

/// The schema of one trial.
const TRIAL: &str = "warploom.records.trial/1";

#[derive(Debug, Subcommand)]
enum What {
    /// List the tuned pipelines, or the trials of one of them
    List {
        /// The pipeline's name, or its number in `records list`
        pipeline: Option<String>,
    },
    /// Show one trial with its schedule
    Show {
        /// The trial's number
        trial: i64,
    },
    /// Print the fastest schedule of a pipeline
    Best {
        /// The pipeline's name, or its number in `records list`
        pipeline: String,
    },
    /// Write trials to a file: training samples if it is named *.samples, JSON lines otherwise
    Export {
        /// The output file, which must not exist
        file: PathBuf,
        /// Only the trials of this pipeline
        #[arg(long, value_name = "NAME")]
        pipeline: Option<String>,
    },
    /// Copy everything to another database: trials, iterations, trained weights and steps
    Copy {
        /// The database to copy to; created if missing
        to: PathBuf,
    },
    /// Add trials from files of `export` or `warploom collect`
    Import {
        /// The files to read, or folders of them
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

report! {
    struct Listed<'a> = "warploom.records.list/2" {
        problems: Vec<ProblemReport<'a>>, "the tuned pipelines";
    }

    struct Trials<'a> = "warploom.records.trials/2" {
        problem: ProblemReport<'a>, "the pipeline";
        trials: Vec<TrialReport>, "its trials, best first";
    }

    /// A problem, as reports show it.
    struct ProblemReport<'a> = "problem" {
        id: ProblemId, "its number";
        name: &'a str, "the pipeline";
        pipeline: &'a str, "a hash of its structure";
        inputs: &'a [Region], "the boxes of its inputs";
        outputs: &'a [Region], "the boxes of its outputs";
        params: Vec<ParamReport>, "its Params";
        device: &'a str, "the GPU";
        fingerprint: &'a str, "a hash of its description";
        versions: &'a [String], "the versions that machine code depends on";
        trials: u64, "the number of trials";
        valid: u64, "those with a valid time";
        best_us: Option<f64>, "the shortest valid time";
    }

    struct ParamReport = "problem param" {
        #[serde(rename = "type")]
        ty: Type, "`f32`, `i32` and so on";
        value: f64, "its value";
    }
}

impl<'a> ProblemReport<'a> {
    fn new(problem: &'a Problem) -> ProblemReport<'a> {
        let Problem { id, name, pipeline, sizes, device, fingerprint, versions, trials, valid, best_us } =
            problem;
        let param =
            |&(ty, bits): &(Type, u64)| ParamReport { ty, value: Value::from_bits(ty, bits).as_f64() };
        ProblemReport {
            id: *id,
            name,
            pipeline,
            inputs: &sizes.inputs,
            outputs: &sizes.outputs,
            params: sizes.params.iter().map(param).collect(),
            device,
            fingerprint,
            versions,
            trials: *trials,
            valid: *valid,
            best_us: *best_us,
        }
    }
}

report! {
    struct Counted = "warploom.records.export/1" {
        file: String, "the file";
        trials: usize, "the trials in it";
    }
}

impl Arguments {
    pub(crate) fn outputs(&self) -> Vec<Output<'_>> {
        match &self.what {
            What::Import { .. } => vec![Output::Records(&self.records)],
            What::Export { file, .. } => vec![Output::File(file)],
            What::Copy { to } => vec![Output::Records(to)],
            What::List { .. } | What::Show { .. } | What::Best { .. } => Vec::new(),
        }
    }
}

pub(crate) fn records(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let Arguments { records: path, json, what } = arguments;
    let format = Format { json: *json };
    match what {
        What::Import { files } => import(&mut places::open(path)?, files, format, out),
        What::List { pipeline: None } => list(&places::open_existing(path)?.problems()?, format, out),
        What::List { pipeline: Some(name) } => trials(&places::open_existing(path)?, name, format, out),
        What::Show { trial } => show_trial(&places::open_existing(path)?, *trial, format, out),
        What::Best { pipeline } => best(&places::open_existing(path)?, pipeline, format, out),
        What::Export { file, pipeline } => {
            export(&places::open_existing(path)?, file, pipeline.as_deref(), format, out)
        }
        What::Copy { to } => {
            let from = places::open_existing(path)?;
            say_imported(places::open(to)?.copy_from(&from)?, format, out)
        }
    }
}

/// The problem with this number, or the one with the most trials among those of this pipeline.
fn find(records: &Records, name: &str) -> Result<Problem, Error> {
    let problems = records.problems()?;
    let known = || {
        let mut names: Vec<&str> = problems.iter().map(|problem| problem.name.as_str()).collect();
        names.dedup();
        if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
    };
    let by_number = problems.iter().find(|problem| number(problem.id) == name);
    let by_name = problems.iter().filter(|problem| problem.name == name);
    let found = by_number.or_else(|| by_name.max_by_key(|problem| problem.trials));
    found.cloned().ok_or_else(|| Error::NotTuned { name: name.to_owned(), known: known() })
}

fn number(problem: ProblemId) -> String {
    serde_json::to_string(&problem).unwrap_or_default()
}

fn list(problems: &[Problem], format: Format, out: &mut dyn Write) -> Result<(), Error> {
    let listed = Listed { problems: problems.iter().map(ProblemReport::new).collect() };
    report::print(out, format, &listed, || {
        let outputs = |problem: &Problem| problem.sizes.outputs.iter().map(show::extents).collect::<Vec<_>>();
        Table::of(problems)
            .right("number", |problem| number(problem.id))
            .left("pipeline", |problem| visible(&problem.name).into_owned())
            .left("outputs", move |problem| outputs(problem).join(", "))
            .left("device", |problem| visible(&problem.device).into_owned())
            .left("versions", |problem| visible(&problem.versions.join(", ")).into_owned())
            .right("trials", |problem| problem.trials.to_string())
            .right("valid", |problem| problem.valid.to_string())
            .right("best us", |problem| dash(problem.best_us.map(|time| format!("{time:.2}"))))
            .text()
    })
}

fn trials(records: &Records, name: &str, format: Format, out: &mut dyn Write) -> Result<(), Error> {
    let problem = find(records, name)?;
    let mut trials = records.trials(Some(problem.id))?;
    let time = |trial: &Trial| trial.time_us().unwrap_or(f64::INFINITY);
    trials.sort_by(|a, b| time(a).total_cmp(&time(b)));
    let reports = trials.iter().map(|trial| TrialReport::new(trial, None)).collect();
    let report = Trials { problem: ProblemReport::new(&problem), trials: reports };
    report::print(out, format, &report, || trial_table(&trials, None, None).text())
}

fn show_trial(records: &Records, id: i64, format: Format, out: &mut dyn Write) -> Result<(), Error> {
    let trial = records.trial(id)?.ok_or(Error::NoTrial { number: id })?;
    if format.json {
        return report::json(out, TRIAL, &TrialReport::new(&trial, None));
    }
    let sample = &trial.sample;
    let mut text = trial_table([&trial], None, None).text();
    let (device, versions) = (visible(&sample.device), sample.versions.join(", "));
    text += &format!("\n{} on {device}; {}\n", sample.origin.name(), visible(&versions));
    if !sample.status.message().is_empty() {
        text += &format!("{}: {}\n", sample.status.kind(), sample.status.message());
    }
    report::text(out, &format!("{text}\n"))?;
    report::verbatim(out, &sample.schedule)
}

fn best(records: &Records, name: &str, format: Format, out: &mut dyn Write) -> Result<(), Error> {
    let problem = find(records, name)?;
    let best = records.best(problem.id, 1)?.into_iter().next();
    let best = best.ok_or_else(|| {
        Error::NothingMeasured(format!("none of {} trials of `{name}` is valid", problem.trials))
    })?;
    match format.json {
        true => report::json(out, TRIAL, &TrialReport::new(&best, None)),
        false => report::verbatim(out, &best.sample.schedule),
    }
}

fn is_samples(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "samples")
}

fn export(
    records: &Records,
    file: &Path,
    pipeline: Option<&str>,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let problem = pipeline.map(|name| find(records, name)).transpose()?.map(|problem| problem.id);
    let trials = if is_samples(file) {
        records.export_samples(problem, file)?
    } else {
        let mut lines = BufWriter::new(File::create_new(file).map_err(unwritable(file))?);
        records.export(problem, &mut lines, file)?
    };
    let counted = Counted { file: file.display().to_string(), trials };
    report::print(out, format, &counted, || {
        format!("{} in {}\n", show::count(trials, "trial"), show::path(file))
    })
}

fn import(
    records: &mut Records,
    files: &[PathBuf],
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut all = Imported::default();
    for file in &files_of(files, &["samples", "jsonl"])? {
        let imported = if is_samples(file) {
            records.import_samples(file)?
        } else {
            records.import(BufReader::new(files::open(file)?), file)?
        };
        all.new += imported.new;
        all.known += imported.known;
    }
    say_imported(all, format, out)
}

fn say_imported(all: Imported, format: Format, out: &mut dyn Write) -> Result<(), Error> {
    match format.json {
        true => report::json(out, "warploom.records.import/1", &all),
        false => report::text(out, &format!("{} new trials, {} already known\n", all.new, all.known)),
    }
}
