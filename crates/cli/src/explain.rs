//! `warploom explain`: what the kernels of a schedule do, and their predicted costs.

use std::io::Write;

use clap::Arg;
use serde::Serialize;
use warploom::app::App;
use warploom::codegen::build::BuildError;
use warploom::cost::CostModel;
use warploom::schedule::schedule::{Change, Problem, Schedule};
use warploom::target::Device;
use warploom::tune::explain::Explanation;

use crate::backend::{self, Kernels, problem, rewritten, unbuilt};
use crate::error::Error;
use crate::pipeline::Which;
use crate::report::{self, Format};
use crate::show;
use crate::voice;

/// Show the kernels of a schedule as loop nests, with their memory, redundancy and predicted times
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("schedule", |arg: Arg| arg.required(true)),
    mut_arg("device", backend::of_schedule),
    after_long_help = "Examples:
  warploom explain unsharp --schedule apps/schedules
  warploom explain harris --schedule out/harris.schedule --size 640x480 --device a100
  warploom explain harris --schedule search
  warploom explain blur --schedule default --json
  warploom explain harris --schedule apps/schedules --decisions

Each line is a stage: how threads share it, where its points are stored, how many points are computed per required point,
and how many microseconds each resource of the SMs is busy. The parts of a time overlap, so they do not add up. If the GPU is
mostly idle for most of the time, the last line says why."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    kernels: Kernels,
    /// List the decisions that lead from the default schedule to this one, instead of the kernels
    #[arg(long)]
    decisions: bool,
    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct Decisions {
    app: String,
    sizes: String,
    decisions: Vec<String>,
}

#[derive(Serialize)]
struct Report {
    app: String,
    sizes: String,
    device: String,
    #[serde(flatten)]
    explanation: Explanation,
}

pub(crate) fn explain(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let asked = arguments.which.realise(apps)?;
    let device = arguments.kernels.device_of_schedule(asked.pipeline.name(), arguments.format)?;
    let problem = problem(&asked.pipeline, &asked.request, &device)?;
    voice::warnings(&asked.pipeline, problem.regions());
    let schedule = arguments.kernels.schedule(&problem)?;
    let problem = rewritten(&problem, &schedule)?;
    if arguments.decisions {
        let changes = Change::between(&Schedule::default_for(&problem), &schedule);
        let rewrites = schedule.rewrites.iter().map(ToString::to_string);
        let changes = changes.iter().map(|change| change.to_text(problem.pipeline()));
        let decisions: Vec<String> = rewrites.chain(changes).collect();
        if arguments.format.json {
            let report = Decisions { app: asked.name, sizes: asked.sizes, decisions };
            return report::json(out, "warploom.decisions/1", &report);
        }
        return report::text(out, &decisions.iter().map(|text| format!("{text}\n")).collect::<String>());
    }
    let model = arguments.kernels.model.load(&device)?;
    let explanation = explanation(&problem, &schedule, &*model)?;
    if arguments.format.json {
        let report = Report { app: asked.name, sizes: asked.sizes, device: device.name, explanation };
        return report::json(out, "warploom.explain/1", &report);
    }
    report::text(out, &listing(&asked.name, &asked.sizes, &device, &explanation))
}

/// The explanation of a schedule; an error if the schedule is illegal.
pub(crate) fn explanation(
    problem: &Problem,
    schedule: &Schedule,
    model: &dyn CostModel,
) -> Result<Explanation, Error> {
    let problem = rewritten(problem, schedule)?;
    let checked = problem.check(schedule);
    checked.map_err(|violations| unbuilt(problem.pipeline(), BuildError::Illegal(violations)))?;
    let explanation = Explanation::new(&problem, schedule, model);
    explanation.map_err(|error| unbuilt(problem.pipeline(), error.into()))
}

/// An explanation as text. `sizes` starts with ` at`, as in ` at W=640, H=480`.
pub(crate) fn listing(app: &str, sizes: &str, device: &Device, explanation: &Explanation) -> String {
    format!(
        "{app}{sizes} for {} ({}): {:.1} us predicted by the {} model; {}; {}\n\n{explanation}",
        device.name,
        device.arch(),
        explanation.predicted_us,
        explanation.model,
        show::range(explanation.range()),
        show::count(explanation.kernels.len(), "kernel")
    )
}
