//! Looks up schedules that tuning recorded earlier.

use thiserror::Error;
use warploom_lang::{BoundsError, Pipeline, Realisation};
use warploom_plan::Problem;
use warploom_schedule::Schedule;
use warploom_target::Device;
use warploom_tune::records::{Records, RecordsError, Trial};
use warploom_tune::sample;

use crate::backend::{Backend, RunError};
use crate::compiled::Compiled;
use crate::sizes::{Sizes, SizesError};

/// Reuses schedules that were measured earlier, without a search.
pub trait Autotuned {
    /// The fastest recorded schedule of this pipeline at these sizes on this device, or the default
    /// schedule if there is no such record.
    ///
    /// ```
    /// use warploom::prelude::*;
    /// use warploom::tune::records::Records;
    ///
    /// let x = vars!(x);
    /// let ramp = Pipeline::new("ramp", [func("ramp", x, x * 2)])?;
    /// let device = Device::preset("h200")?;
    /// let records = Records::in_memory()?;
    /// let ramp = ramp.autotuned_or_default(&device, size([100]), &records)?;
    /// assert_eq!(ramp.time_us(), None);
    /// let outputs = ramp.compile_for(Backend::Simulator(device))?.run(&[])?;
    /// assert_eq!(outputs[0].as_slice::<i32>().map(|samples| samples[99]), Some(198));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the sizes don't fit the pipeline, or if the records cannot be read.
    fn autotuned_or_default(
        &self,
        device: &Device,
        sizes: impl Sizes,
        records: &Records,
    ) -> Result<Recorded, RecordedError>;
}

/// Why the records were not looked up.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordedError {
    /// The sizes do not cover every input and output of the pipeline.
    #[error(transparent)]
    Sizes(#[from] SizesError),
    /// The sizes or Params don't fit the pipeline.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    /// The records cannot be read.
    #[error(transparent)]
    Records(#[from] RecordsError),
}

/// A pipeline with a schedule that was measured earlier, or with its default schedule.
#[derive(Debug)]
pub struct Recorded {
    problem: Problem,
    schedule: Schedule,
    time_us: Option<f64>,
    unusable: usize,
}

impl Autotuned for Pipeline {
    fn autotuned_or_default(
        &self,
        device: &Device,
        sizes: impl Sizes,
        records: &Records,
    ) -> Result<Recorded, RecordedError> {
        let request = sizes.realisation(self)?;
        let problem = Problem::new(self, &request, device)?;
        let mut unusable = 0;
        for trial in fastest_first(records, self, &request, device)? {
            // An older version of Warploom may have accepted a schedule that this one rejects.
            match Schedule::parse(&trial.sample.schedule, self) {
                Ok(schedule) if problem.is_legal(&schedule) => {
                    return Ok(Recorded { problem, schedule, time_us: trial.time_us(), unusable });
                }
                Ok(_) | Err(_) => unusable += 1,
            }
        }
        let schedule = problem.default_schedule();
        Ok(Recorded { problem, schedule, time_us: None, unusable })
    }
}

/// All valid trials of a pipeline at some sizes on a device, measured by any version, fastest
/// first.
fn fastest_first(
    records: &Records,
    pipeline: &Pipeline,
    request: &Realisation,
    device: &Device,
) -> Result<Vec<Trial>, RecordsError> {
    let (key, sizes) = (format!("{:032x}", records.key(pipeline)?), sample::Sizes::of(request));
    let fingerprint = device.fingerprint();
    let mut trials = Vec::new();
    for problem in records.problems()? {
        if problem.pipeline == key && problem.sizes == sizes && problem.fingerprint == fingerprint {
            trials.extend(records.best(problem.id, usize::MAX)?);
        }
    }
    let time = |trial: &Trial| trial.time_us().unwrap_or(f64::INFINITY);
    trials.sort_by(|a, b| time(a).total_cmp(&time(b)));
    Ok(trials)
}

impl Recorded {
    /// The number of faster recorded schedules that are not usable: a version with other rules recorded them, or inner
    /// Funcs or variables of the pipeline had other names then.
    pub fn unusable(&self) -> usize {
        self.unusable
    }

    /// The recorded schedule, or the default one if `time_us` is `None`.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The recorded run time in microseconds; `None` for the default schedule.
    pub fn time_us(&self) -> Option<f64> {
        self.time_us
    }

    /// Compiles the kernels for the first GPU.
    ///
    /// # Errors
    /// If there is no GPU, or the kernels cannot be compiled for it.
    pub fn compile(&self) -> Result<Compiled, RunError> {
        self.compile_for(Backend::gpu()?)
    }

    /// Compiles the kernels for any backend.
    ///
    /// # Errors
    /// If the backend cannot use the schedule, or if the kernels do not compile.
    pub fn compile_for(&self, backend: Backend) -> Result<Compiled, RunError> {
        Compiled::of_problem(&self.problem, self.schedule.clone(), None, backend)
    }
}

#[cfg(test)]
mod tests {
    use warploom_lang::{Input, func, vars};
    use warploom_tune::sample::{Origin, Sample, Status, Times};

    use super::*;
    use crate::sizes::size;

    fn sharper() -> Pipeline {
        let (x, y) = vars!(x, y);
        let input = Input::f32("input", 2);
        let twice = func("twice", (x, y), 2.0 * input.at((x, y)));
        Pipeline::new("sharper", [func("sharper", (x, y), twice.at((x, y)) - 1.0)]).expect("it is right")
    }

    fn trial(pipeline: &Pipeline, request: &Realisation, schedule: &str, status: Status, time: f64) -> Trial {
        let sample = Sample {
            pipeline: pipeline.structural_hash(),
            sizes: sample::Sizes::of(request),
            schedule: schedule.to_owned(),
            origin: Origin::Search,
            device: "H200".to_owned(),
            fingerprint: String::new(),
            versions: Vec::new(),
            status,
            verified: true,
            times: Some(Times { min: time, median: time, runs: 5 }),
            kernels: Vec::new(),
            compile_ms: 1.0,
        };
        Trial::new(sample, None, 0.0)
    }

    #[test]
    fn the_fastest_right_one_is_taken() -> Result<(), Box<dyn std::error::Error>> {
        let (pipeline, device) = (sharper(), Device::preset("h200")?);
        let request = size([64, 64]).realisation(&pipeline)?;
        let text = |x: u32| {
            let kernel = format!("kernel sharper  block x {x}, y 4  threads x {x}, y 4");
            format!("sharper  inline twice\n  {kernel}\n")
        };
        let mut records = Records::in_memory()?;
        let problem = records.problem(&pipeline, &request, &device, &["codegen 1".to_owned()])?;
        let wrong = Status::Wrong("it is not right".to_owned());
        records.record(problem, &trial(&pipeline, &request, "no schedule at all", Status::Measured, 1.0))?;
        records.record(problem, &trial(&pipeline, &request, &text(64), wrong, 2.0))?;
        records.record(problem, &trial(&pipeline, &request, &text(32), Status::Measured, 3.0))?;
        records.record(problem, &trial(&pipeline, &request, &text(16), Status::Measured, 4.0))?;
        let found = pipeline.autotuned_or_default(&device, &request, &records)?;
        assert_eq!(found.time_us(), Some(3.0));
        assert_eq!(found.schedule(), &Schedule::parse(&text(32), &pipeline)?);
        let other = pipeline.autotuned_or_default(&device, size([32, 64]), &records)?;
        assert_eq!(other.time_us(), None);
        Ok(())
    }
}
