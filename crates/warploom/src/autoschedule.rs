//! From a pipeline to kernels in one call.

use std::fmt;

use warploom_codegen::cuda::{Build, print};
use warploom_codegen::ir::Program;
use warploom_lang::{Pipeline, Realisation, infer};
use warploom_schedule::schedule::Schedule;
use warploom_search::{Options, Outcome};
use warploom_target::Device;
use warploom_tune::explain::Explanation;
use warploom_tune::one_shot::{OneShot, OneShotError, one_shot};

use crate::model::model_for;

/// Scheduling without a schedule: searches for a fast one and builds its kernels. Needs no GPU.
///
/// ```
/// use warploom::prelude::*;
/// use warploom::search::Options;
///
/// let (x, y) = vars!(x, y);
/// let edge = Input::f32("input", 2).repeat_edge();
/// let blur_x = func("blur_x", (x, y), (edge.at((x - 1, y)) + edge.at((x, y)) + edge.at((x + 1, y))) / 3.0);
/// let blur_y = func("blur_y", (x, y), (blur_x.at((x, y - 1)) + blur_x.at((x, y)) + blur_x.at((x, y + 1))) / 3.0);
/// let pipeline = Pipeline::new("blur", [blur_y])?;
///
/// let image = Region::of_extents(&[1536, 2560]);
/// let request = Realisation::new(&pipeline).input("input", image.clone()).output("blur_y", image);
/// // `autoschedule` searches for longer.
/// let options = Options { samples: 4, beam: 4, passes: 2, ..Options::default() };
/// let blur = pipeline.autoschedule_with(&Device::preset("h200")?, &request, &options)?;
/// assert!(blur.predicted_us() > 0.0);
/// assert!(blur.nest().contains("kernel blur_y"));
/// assert!(blur.cuda().contains("__global__"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Autoschedule {
    /// Searches with the usual options.
    ///
    /// # Errors
    ///
    /// If the sizes or Params don't fit the pipeline, or its kernels need more than the device has.
    fn autoschedule(&self, device: &Device, request: &Realisation) -> Result<Autoscheduled, OneShotError> {
        self.autoschedule_with(device, request, &Options::default())
    }

    /// Searches with other options.
    ///
    /// # Errors
    ///
    /// As [`Autoschedule::autoschedule`].
    fn autoschedule_with(
        &self,
        device: &Device,
        request: &Realisation,
        options: &Options,
    ) -> Result<Autoscheduled, OneShotError>;
}

impl Autoschedule for Pipeline {
    fn autoschedule_with(
        &self,
        device: &Device,
        request: &Realisation,
        options: &Options,
    ) -> Result<Autoscheduled, OneShotError> {
        let model = model_for(device).model;
        let shot = one_shot(self, request, device, &*model, options, &|_| {})?;
        let explanation = Explanation::new(self, &infer(self, request)?, device, &shot.schedule, &*model);
        Ok(Autoscheduled { schedule_text: shot.schedule.to_text(self), shot, explanation })
    }
}

/// A pipeline with the best schedule that was found for it.
#[derive(Debug)]
pub struct Autoscheduled {
    shot: OneShot,
    explanation: Explanation,
    schedule_text: String,
}

impl Autoscheduled {
    /// The schedule.
    pub fn schedule(&self) -> &Schedule {
        &self.shot.schedule
    }

    /// The kernels.
    pub fn program(&self) -> &Program {
        &self.shot.program
    }

    /// The kernels in CUDA C++.
    pub fn cuda(&self) -> String {
        print(&self.shot.program, Build::Timing)
    }

    /// How long a run takes, as the cost model predicts, in microseconds.
    pub fn predicted_us(&self) -> f64 {
        self.shot.predicted_us
    }

    /// What was decided and what it is predicted to cost, kernel by kernel.
    pub fn nest(&self) -> String {
        self.explanation.to_string()
    }

    /// The same as data.
    pub fn explanation(&self) -> &Explanation {
        &self.explanation
    }

    /// All that the search found and did.
    pub fn outcome(&self) -> &Outcome {
        &self.shot.outcome
    }
}

/// The schedule's text, which [`Schedule::parse`] reads back.
impl fmt::Display for Autoscheduled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.schedule_text)
    }
}
