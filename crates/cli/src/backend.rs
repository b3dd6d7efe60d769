//! What pipelines can be run on.

use std::time::{Duration, Instant};

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use warploom::interp::buffer::Buffer;
use warploom::interp::{EvalError, Evaluation};
use warploom::lang::ir::FuncDecl;
use warploom::lang::{Pipeline, Region, Value};

/// What runs a pipeline.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Backend {
    /// The reference evaluator: every Func straight from its definition
    Reference,
}

/// A pipeline with everything it needs to run.
pub(crate) struct Job<'a> {
    /// The pipeline.
    pub(crate) pipeline: &'a Pipeline,
    /// Its inputs.
    pub(crate) inputs: Vec<(&'a str, &'a Buffer)>,
    /// Values of its Params.
    pub(crate) params: &'a [(String, Value)],
    /// The boxes to compute.
    pub(crate) outputs: Vec<(&'a str, Region)>,
}

/// What a job came to.
pub(crate) struct Done {
    /// The outputs in the pipeline's order; a tuple has one a value.
    pub(crate) outputs: Vec<Buffer>,
    /// How long it took.
    pub(crate) seconds: f64,
}

impl Backend {
    /// Its name on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Backend::Reference => "reference",
        }
    }

    /// Runs a job, with a progress bar on standard error if that is a terminal.
    pub(crate) fn run(self, job: &Job<'_>) -> Result<Done, EvalError> {
        let bar = progress_bar(job.pipeline.name());
        let start = Instant::now();
        let outputs = match self {
            Backend::Reference => evaluate(job, &bar),
        };
        bar.finish_and_clear();
        Ok(Done { outputs: outputs?, seconds: start.elapsed().as_secs_f64() })
    }
}

/// The names of a Func's values, one a buffer: `out`, or `out.0` and `out.1` for a pair.
pub(crate) fn value_names(func: &FuncDecl) -> Vec<String> {
    match func.types.len() {
        1 => vec![func.name.clone()],
        values => (0..values).map(|value| format!("{}.{value}", func.name)).collect(),
    }
}

fn evaluate(job: &Job<'_>, bar: &ProgressBar) -> Result<Vec<Buffer>, EvalError> {
    let mut evaluation = Evaluation::new(job.pipeline).on_progress(|progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
        bar.set_message(progress.func.to_owned());
    });
    for &(name, buffer) in &job.inputs {
        evaluation = evaluation.input(name, buffer);
    }
    for (name, value) in job.params {
        evaluation = evaluation.param(name, *value);
    }
    for (name, region) in &job.outputs {
        evaluation = evaluation.output(name, region.clone());
    }
    evaluation.run()
}

fn progress_bar(label: &str) -> ProgressBar {
    let bar = ProgressBar::no_length().with_prefix(label.to_owned());
    if let Ok(style) =
        ProgressStyle::with_template("{prefix} {bar:30} {percent:>3}%  {elapsed}, {eta} left  {msg}")
    {
        bar.set_style(style);
    }
    if !bar.is_hidden() {
        bar.enable_steady_tick(Duration::from_millis(200));
    }
    bar
}
