//! `warploom run --trace`: a page with an animation of what is computed and read, and when.

use std::path::Path;
use std::time::Instant;

use warploom::schedule_file::problem;
use warploom::target::Device;
use warploom::tune::workload::Workload;
use warploom_report::{Fact, Trace};
use warploom_results::trace::{TraceError, check_size, trace};

use crate::backend::{Backend, Done, Source, Target};
use crate::error::{Error, RunError};
use crate::names::written;
use crate::progress::{Progress, Unit};
use crate::report::Format;
use crate::writable::write;

/// A page to write.
pub(super) struct Page<'a> {
    file: &'a Path,
    target: &'a Target,
    device: Device,
}

report! {
    /// The page that was written.
    pub(super) struct Written = "run trace" {
        pub(super) file: String, "the page";
        pub(super) bytes: usize, "its size";
        pub(super) steps: usize, "the steps of its animation";
    }
}

impl<'a> Page<'a> {
    /// Checks the flags before anything runs.
    pub(super) fn new(file: &'a Path, target: &'a Target, format: Format) -> Result<Page<'a>, Error> {
        if let Some(on) = target.on.filter(|on| *on != Backend::Sim) {
            return Err(Error::TraceOn { on: written(&on) });
        }
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            let (file, folder) = (file.display().to_string(), folder.display().to_string());
            return Err(Error::NoOutputFolder { file, folder });
        }
        Ok(Page { file, target, device: target.kernels.device(format)? })
    }

    /// Runs a pipeline in the simulator and writes the page; `what` is the app at its sizes.
    pub(super) fn run(&self, workload: Workload, what: &str) -> Result<(Done, Written), RunError> {
        let start = Instant::now();
        let failed = |error: TraceError| match error {
            TraceError::TooLarge => Error::TraceSize { what: what.to_owned() },
            TraceError::Simulation(error) => Error::Simulation(error),
            TraceError::Build(error) => error.into(),
        };
        let problem =
            problem(&workload.pipeline, &workload.realisation(), &self.device).map_err(Error::from)?;
        check_size(&problem).map_err(failed)?;
        let source = self.target.kernels.schedule.clone().unwrap_or(Source::Search(0));
        let obtained = self.target.kernels.obtain_from(&source, &problem, None)?;
        let progress = Progress::new(format!("tracing {}", problem.pipeline().name()), Unit::Time);
        let traced = trace(&problem, obtained.schedule(), workload);
        drop(progress);
        let (outputs, trace) = traced.map_err(failed)?;
        let title = format!("What {what} computes, and when");
        let written = self.write(Trace { title, facts: self.facts(&source), ..trace })?;
        Ok((Done { outputs, seconds: start.elapsed().as_secs_f64(), fault: None }, written))
    }

    fn facts(&self, source: &Source) -> Vec<Fact> {
        let schedule = match source {
            Source::Default => "the default one".to_owned(),
            Source::Random(seed) => format!("random, seed {seed}"),
            Source::Search(seed) => format!("found by the search, seed {seed}"),
            Source::Path(path) => path.display().to_string(),
        };
        vec![
            Fact::new("device", &self.device.name),
            Fact::new("schedule", schedule),
            Fact::new("page made", format!("by warploom {}", env!("CARGO_PKG_VERSION"))),
        ]
    }

    fn write(&self, trace: Trace) -> Result<Written, Error> {
        let html = trace.to_html();
        let file = write(self.file, html.as_bytes())?;
        Ok(Written { file, bytes: html.len(), steps: trace.steps.len() })
    }
}
