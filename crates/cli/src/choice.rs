//! The flags of commands that run a pipeline on data.

use warploom::app::{App, Subject};
use warploom::inputs::Given;
use warploom::tune::workload::Workload;

use crate::error::Error;
use crate::inputs;
use crate::pipeline::Which;

/// Which pipeline, at which sizes, on which inputs.
#[derive(Debug, clap::Args)]
pub(crate) struct Choice {
    #[command(flatten)]
    which: Which,
    /// The file of an input; without NAME, of the next input that has no file. Can be repeated
    #[arg(long, value_name = "[NAME=]FILE")]
    input: Vec<String>,
    /// Seed of the generated inputs, an integer
    #[arg(long, default_value_t = 0, help_heading = "Pipeline")]
    pub(crate) seed: u64,
}

/// A pipeline with everything it needs to run.
pub(crate) struct Chosen {
    pub(crate) subject: Subject,
    pub(crate) workload: Workload,
}

impl Choice {
    /// The pipeline, and its inputs that come from files.
    pub(crate) fn subject(&self, apps: &[App]) -> Result<(Subject, Vec<Given>), Error> {
        self.which.realise_with(apps, &self.input)
    }

    pub(crate) fn make(&self, apps: &[App]) -> Result<Chosen, Error> {
        self.with_inputs(self.subject(apps)?)
    }

    /// Reads and generates the inputs, which takes seconds if they are large.
    pub(crate) fn with_inputs(&self, (subject, given): (Subject, Vec<Given>)) -> Result<Chosen, Error> {
        let workload = subject.workload(|name| inputs::given(&given, name), self.seed)?;
        Ok(Chosen { subject, workload })
    }
}
