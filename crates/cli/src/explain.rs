//! `warploom explain`: what the kernels of a schedule do, and their predicted costs.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Arg;
use warploom::app::{App, Sizes, Subject};
use warploom::plan::Problem;
use warploom::schedule::{Change, Schedule};
use warploom::schedule_file::{problem, rewritten};
use warploom::target::Device;
use warploom::tune::explain::Explanation;
use warploom_results::explained::{self, Against, Explained, Ranges, head, listing, predicted};

use crate::any_size::Dynamic;
use crate::backend::{self, Kernels, Obtained, Source};
use crate::error::Error;
use crate::pipeline::Which;
use crate::report::{self, Format};
use crate::table::PlainText as _;
use crate::writable::{Output, write};
use crate::{show, voice};

/// Show the kernels of a schedule as loop nests, with their memory, redundancy and predicted times
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("schedule", |arg: Arg| arg.help(
        "A file, a folder with APP.schedule, `default`, `random:SEED` or `search[:SEED]` (default: search)"
    ).long_help(
        "The schedule: a file, a folder with APP.schedule, `default`, `random:SEED` or `search[:SEED]`\n\n\
         By default it is the one that `compile` finds, which is `search`.\n\
         `default` is the default schedule, with one kernel per nontrivial stage;\n\
         `random:SEED` is a random legal schedule drawn with this seed;\n\
         `search` is the schedule that the search finds; its seed is 0 unless given."
    )),
    mut_arg("device", backend::of_schedule),
    after_long_help = "Examples:
  warploom explain unsharp                                     what `compile` finds
  warploom explain unsharp --schedule apps/schedules
  warploom explain harris --schedule out/harris.schedule --size 640x480 --device a100
  warploom explain blur --schedule default --json
  warploom explain harris --schedule apps/schedules --decisions
  warploom explain blur --dynamic W=64..8192,H=64..8192        what `compile --dynamic` finds
  warploom explain unsharp --html unsharp.html                 as a page, with the code beside the loop nests
  warploom explain unsharp --schedule apps/schedules --against default --html both.html

Each entry is a stage: how threads share it, where its points are stored, how many points are computed per required point,
and how many microseconds each resource of the SMs is busy. For a stage that is inlined or in registers, it is the number of
times that one point of its consumer computes it. The parts of a time overlap, so they do not add up. The last line of a kernel
says what limits its speed. If the GPU is mostly idle for most of the time, the last line of all says why.

The page shows every loop, the graph of the pipeline, and the CUDA code beside its loop nest. It is self-contained: it needs no
other file and no network."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    kernels: Kernels,
    #[command(flatten)]
    dynamic: Dynamic,
    /// List the decisions that lead from the default schedule to this one, instead of the kernels
    #[arg(long, conflicts_with_all = ["html", "against"])]
    decisions: bool,
    /// Compare with another schedule, given like --schedule
    #[arg(long, value_name = "FILE", value_parser = Source::parse)]
    against: Option<Source>,
    /// Write a page of HTML; an existing file is overwritten
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

report! {
    struct Decisions = "warploom.decisions/2" {
        app: String, "the app, or the pipeline of a file";
        sizes: Sizes, "its sizes by name";
        decisions: Vec<String>, "the changes that lead from the default schedule to this one";
    }

    struct Report = "warploom.explain/2" {
        app: String, "the app, or the pipeline of a file";
        sizes: Sizes, "its sizes by name";
        device: String, "the GPU";
        searched: bool, "whether the schedule was searched for, because none was given";
        ranges: Option<Ranges>,
            "with `--dynamic`: the sizes that every run gives, and figures across their ranges; all other figures are those at `sizes`";
        #[serde(flatten)]
        explanation: Explanation, "the kernels and their predicted times";
        against: Option<Against>, "the schedule of `--against`";
    }

    struct Written = "warploom.explain-page/1" {
        file: String, "the page";
        bytes: usize, "its size";
        predicted_us: f64, "the predicted time of the kernels";
        kernels: usize, "how many there are";
    }
}

pub(crate) fn explain(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let asked = arguments.which.realise_to_compile(apps)?;
    let device = arguments.kernels.device_of_schedule(asked.pipeline.name(), arguments.format)?;
    let problem = problem(&asked.pipeline, &asked.request, &device)?;
    voice::warnings(&asked.pipeline, problem.regions());
    // `compile` finds its schedule with the same options.
    let source = arguments.kernels.schedule.clone().unwrap_or(Source::Search(0));
    let any_size = arguments.dynamic.problem(&asked, &device)?;
    let obtained = arguments.kernels.obtain_from(&source, &problem, any_size.as_ref())?;
    let searched = matches!(obtained, Obtained::Found(_));
    let mut schedule = obtained.schedule().clone();
    let mut program = None;
    if let Some(any_size) = any_size {
        let scheduled = obtained.build(problem.clone(), Some(any_size.clone()), true)?;
        schedule = scheduled.schedule().clone();
        program = Some((any_size, scheduled.program().clone()));
    }
    if arguments.decisions {
        return arguments.decisions(asked, &rewritten(&problem, &schedule)?, &schedule, out);
    }
    let model = arguments.kernels.model.load(&device)?;
    let explained =
        |source: &Source, schedule: Schedule| Explained::new(source.to_string(), &problem, schedule, &*model);
    let first = explained(&source, schedule)?;
    let second = match &arguments.against {
        Some(source) => {
            let obtained = arguments.kernels.obtain_from(source, &problem, None)?;
            Some(explained(source, obtained.schedule().clone())?)
        }
        None => None,
    };
    if let Some(file) = &arguments.html {
        return arguments.page(&asked, &device, &first, second.as_ref(), file, out);
    }
    let ranges =
        program.map(|(any_size, program)| Ranges::new(&any_size, &first.schedule, &program, &*model));
    let ranges = ranges.transpose()?.flatten();
    let against = second.as_ref().map(|second| Against::new(&first, second));
    let explanation = first.explanation;
    let Subject { name: app, sizes, .. } = asked;
    let report = Report { app, sizes, device: device.name.clone(), searched, ranges, explanation, against };
    report::print(out, arguments.format, &report, || report.text(&device))
}

impl Report {
    fn text(&self, device: &Device) -> String {
        let Report { app, sizes, ranges, explanation, against, .. } = self;
        let across = |ranges: &Ranges| {
            format!("{app} for {} ({}), {}\n", device.name, device.arch(), ranges.text(&|table| table.text()))
        };
        let text = ranges.as_ref().map(across).unwrap_or_default();
        text + &match against {
            Some(against) => head(app, &sizes.to_string(), device, explanation) + &against.text(),
            None => listing(app, &sizes.to_string(), device, explanation),
        }
    }
}

impl Arguments {
    pub(crate) fn outputs(&self) -> Vec<Output<'_>> {
        self.html.iter().map(|file| Output::File(file)).collect()
    }

    /// Prints the decisions that lead from the default schedule to this one.
    fn decisions(
        &self,
        asked: Subject,
        problem: &Problem,
        schedule: &Schedule,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let changes = Change::between(&problem.default_schedule(), schedule);
        let rewrites = schedule.rewrites.iter().map(ToString::to_string);
        let changes = changes.iter().map(|change| change.to_text(problem.pipeline()));
        let decisions: Vec<String> = rewrites.chain(changes).collect();
        let report = Decisions { app: asked.name, sizes: asked.sizes, decisions };
        report::print(out, self.format, &report, || {
            report.decisions.iter().map(|text| format!("{text}\n")).collect()
        })
    }

    /// Writes the page.
    fn page(
        &self,
        asked: &Subject,
        device: &Device,
        first: &Explained,
        second: Option<&Explained>,
        file: &Path,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let html = explained::page(&asked.name, &asked.sizes.to_string(), device, first, second)?.to_html();
        let name = write(file, html.as_bytes())?;
        let (predicted_us, kernels) = (first.explanation.predicted_us, first.explanation.kernels.len());
        let written = Written { file: name, bytes: html.len(), predicted_us, kernels };
        report::print(out, self.format, &written, || {
            let (count, bytes) = (show::count(kernels, "kernel"), show::bytes(html.len() as u64));
            format!("{}: {count}, {}, {bytes}\n", show::path(file), predicted(&first.explanation))
        })
    }
}
