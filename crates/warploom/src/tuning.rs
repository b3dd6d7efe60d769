//! Tuning from a program: from a searched schedule to the fastest measured one.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use thiserror::Error;
use warploom_codegen::build::BuildError;
use warploom_plan::Problem;
use warploom_search::Options;
use warploom_tune::autotune::{AutotuneOptions, autotune};
use warploom_tune::measure::Subject;

use warploom_tune::records::{Records, RecordsError};
use warploom_tune::top::top;
use warploom_tune::tuning::{Ended, Event, Task, TuneError, Tuned, Winner};
use warploom_tune::worker::{BenchOptions, OpenBench, WorkerError};

use crate::autoschedule::Autoscheduled;
use crate::model::model_for;
use crate::scheduled::Scheduled;
use crate::{check, records};

/// How long to tune, and where to record it.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// The number of schedules of one search to measure: those with the best predicted times.
    pub top: usize,
    /// The number of iterations of searching and measuring; with 0, only the best schedules of one search are measured.
    pub iterations: usize,
    /// When to stop; the best schedule until then is the result.
    pub time_limit: Option<Duration>,
    /// The database of trials, created if missing. Its trials are not measured again. Without it, nothing is kept.
    pub records: Option<PathBuf>,
    /// Options of the search.
    pub search: Options,
    /// The GPUs to measure on.
    pub bench: BenchOptions,
}

impl Default for Tuning {
    /// Measures the five schedules with the best predicted times.
    fn default() -> Tuning {
        Tuning {
            top: 5,
            iterations: 0,
            time_limit: None,
            records: None,
            search: Options::default(),
            bench: BenchOptions::default(),
        }
    }
}

/// Why tuning gave no schedule.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TuningError {
    /// Kernels for any size.
    #[error("kernels for any size are not tuned; give autoschedule a fixed size, and tune that")]
    AnySize,
    /// There is no GPU, or no process that can use it.
    #[error(transparent)]
    Bench(#[from] WorkerError),
    /// The database cannot be used.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// An error ended the run.
    #[error(transparent)]
    Tune(#[from] TuneError),
    /// The pipeline or the fastest schedule cannot be built for the GPU.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// No schedule is valid.
    #[error("none of {tried} schedules could be measured; `warploom tune` shows why")]
    Nothing {
        /// How many were tried.
        tried: usize,
    },
}

impl Autoscheduled {
    /// Measures schedules on the GPU and returns the fastest. Candidates are compared with the reference evaluator at a small
    /// size, and with the default schedule at the full one.
    ///
    /// Kernels are compiled and run in other processes of this program if it calls [`worker_entry`](crate::worker_entry) first
    /// in `main`; a kernel that hangs then costs one trial.
    ///
    /// ```no_run
    /// # use warploom::prelude::*;
    /// # fn tuned(pipeline: &Pipeline, image: &Buffer) -> Result<Vec<Buffer>, Box<dyn std::error::Error>> {
    /// let fast = pipeline.autoschedule(&Device::detect_or("h200")?, [image])?;
    /// let faster = fast.tune(&Tuning { records: Some("tuning.db".into()), ..Tuning::default() })?;
    /// Ok(faster.compile()?.run(&[image])?)
    /// # }
    /// ```
    ///
    /// # Errors
    /// If there is no GPU, or none of the schedules is valid on it.
    pub fn tune(&self, tuning: &Tuning) -> Result<Autoscheduled, TuningError> {
        self.tune_with(tuning, &mut |_| {})
    }

    /// Like `tune`; `observer` receives every trial.
    ///
    /// # Errors
    /// As [`Autoscheduled::tune`].
    pub fn tune_with(
        &self,
        tuning: &Tuning,
        observer: &mut dyn FnMut(&Event<'_>),
    ) -> Result<Autoscheduled, TuningError> {
        if self.scheduled.any_size.is_some() {
            return Err(TuningError::AnySize);
        }
        let mut bench = OpenBench::open(&tuning.bench)?;
        let (pipeline, request) = (self.scheduled.problem.pipeline(), self.scheduled.problem.request());
        let problem = Problem::new(pipeline, request, bench.device()).map_err(BuildError::from)?;
        let Tuned { winner, progress, ended, .. } = tuning.run(&problem, &mut bench, observer)?;
        match (winner, ended) {
            (Some(winner), _) => self.tuned(problem, winner),
            (None, Ended::Failed(error)) => Err(error.into()),
            (None, _) => Err(TuningError::Nothing { tried: progress.done }),
        }
    }

    /// The same pipeline with the winning schedule.
    fn tuned(&self, problem: Problem, winner: Winner) -> Result<Autoscheduled, TuningError> {
        let model = model_for(problem.device()).model;
        let measured_us = winner.trial.time_us();
        let scheduled = Scheduled::new(problem, None, winner.schedule, false)?;
        Ok(Autoscheduled::new(scheduled, self.outcome.clone(), &*model, measured_us))
    }
}

impl Tuning {
    fn run(
        &self,
        problem: &Problem,
        bench: &mut OpenBench,
        observer: &mut dyn FnMut(&Event<'_>),
    ) -> Result<Tuned, TuningError> {
        let mut records = match &self.records {
            Some(place) => records::open(place)?,
            None => Records::in_memory()?,
        };
        let (pipeline, request, device) = (problem.pipeline(), problem.request(), problem.device());
        let model = model_for(device).model;
        let task = Task {
            small: check::of_pipeline(pipeline, request, device).map(Arc::new),
            subject: Arc::new(Subject::noise(pipeline.clone(), request.clone(), self.search.seed)),
            tolerance: None,
            model: &*model,
            search: self.search.clone(),
            deadline: self.time_limit.map(|limit| Instant::now() + limit),
            stop: &AtomicBool::new(false),
        };
        Ok(bench.with(|bench| match self.iterations {
            0 => top(&task, self.top.max(1), bench, &mut records, observer),
            iterations => {
                let samples = self.search.samples.max(1);
                let options = AutotuneOptions { iterations, samples, ..AutotuneOptions::default() };
                autotune(&task, &options, bench, &mut records, None, observer).map(|tuned| tuned.tuned)
            }
        })?)
    }
}
