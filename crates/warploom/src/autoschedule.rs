//! Automatic scheduling: from a pipeline to kernels in one call.

use std::fmt;
use std::path::Path;

use thiserror::Error;
use warploom_codegen::build::BuildError;
use warploom_codegen::ir::Program;
use warploom_codegen::printer::{Build, PRINTER};
use warploom_cost::{CostModel, TimeRange};
use warploom_lang::Pipeline;
use warploom_plan::Problem;
use warploom_schedule::Schedule;
use warploom_search::{Options, Outcome};
use warploom_target::Device;
use warploom_tune::explain::Explanation;
use warploom_tune::one_shot::one_shot;

use crate::backend::{Backend, RunError};
use crate::compiled::Compiled;
use crate::export::{ExportError, ExportOptions, Package};
use crate::model::model_for;
use crate::scheduled::Scheduled;
use crate::sizes::{Sizes, SizesError};

/// Finds a fast schedule by search and builds its kernels. Needs no GPU.
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
/// // `autoschedule` searches for longer.
/// let options = Options { samples: 4, beam: 4, passes: 2, ..Options::default() };
/// let blur = pipeline.autoschedule_with(&Device::detect_or("h200")?, size([1536, 2560]), &options)?;
/// assert!(blur.predicted_us() > 0.0);
/// assert!(blur.nest().contains("kernel blur_y"));
/// assert!(blur.cuda().contains("__global__"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Autoschedule {
    /// Searches for a schedule with the default options.
    ///
    /// # Errors
    ///
    /// If the sizes or Params don't fit the pipeline, or if its kernels need more resources than
    /// the device has.
    fn autoschedule(&self, device: &Device, sizes: impl Sizes) -> Result<Autoscheduled, AutoscheduleError> {
        self.autoschedule_with(device, sizes, &Options::default())
    }

    /// Searches for a schedule with the given options.
    ///
    /// # Errors
    ///
    /// As [`Autoschedule::autoschedule`].
    fn autoschedule_with(
        &self,
        device: &Device,
        sizes: impl Sizes,
        options: &Options,
    ) -> Result<Autoscheduled, AutoscheduleError>;
}

impl Autoschedule for Pipeline {
    fn autoschedule_with(
        &self,
        device: &Device,
        sizes: impl Sizes,
        options: &Options,
    ) -> Result<Autoscheduled, AutoscheduleError> {
        let request = sizes.realisation(self)?;
        let model = model_for(device).model;
        let problem = Problem::new(self, &request, device).map_err(BuildError::from)?;
        let any_size = sizes.dynamic(self)?.map(|request| Problem::dynamic(self, &request, device));
        let any_size = any_size.transpose().map_err(BuildError::from)?;
        let options = Options { any_size: any_size.clone(), ..options.clone() };
        let shot = one_shot(&problem, &*model, &options, &|_| {})?;
        let scheduled = Scheduled::found(problem, any_size, &shot, false)?;
        Ok(Autoscheduled::new(scheduled, shot.outcome, &*model, None))
    }
}

/// Why no schedule was found.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AutoscheduleError {
    /// The sizes do not cover every input and output of the pipeline.
    #[error(transparent)]
    Sizes(#[from] SizesError),
    /// The sizes or Params do not fit the pipeline, or no schedule that was found could be built.
    #[error(transparent)]
    Search(#[from] BuildError),
}

/// A pipeline with the best schedule that the search found, or that tuning measured: run it
/// ([`compile`](Self::compile)), tune it ([`tune`](Self::tune)), export it as C ([`export`](Self::export)), or inspect
/// its decisions ([`nest`](Self::nest), [`explanation`](Self::explanation)).
#[derive(Debug)]
pub struct Autoscheduled {
    pub(crate) scheduled: Scheduled,
    pub(crate) outcome: Outcome,
    explanation: Explanation,
    schedule_text: String,
    measured_us: Option<f64>,
}

impl Autoscheduled {
    pub(crate) fn new(
        scheduled: Scheduled,
        outcome: Outcome,
        model: &dyn CostModel,
        measured_us: Option<f64>,
    ) -> Autoscheduled {
        let explanation = scheduled.explanation(model);
        let schedule_text = scheduled.schedule().to_text(scheduled.problem().pipeline());
        Autoscheduled { scheduled, outcome, explanation, schedule_text, measured_us }
    }

    /// The schedule with the lowest predicted time among those that build.
    pub fn schedule(&self) -> &Schedule {
        self.scheduled.schedule()
    }

    /// The kernels of that schedule.
    pub fn program(&self) -> &Program {
        self.scheduled.program()
    }

    /// The kernels as CUDA C++ source.
    pub fn cuda(&self) -> String {
        PRINTER.print(self.program(), Build::Timing)
    }

    /// Compiles the kernels for the first GPU.
    ///
    /// ```no_run
    /// # use warploom::prelude::*;
    /// # fn blurred(blur: &Autoscheduled, image: &Buffer) -> Result<Vec<Buffer>, RunError> {
    /// blur.compile()?.run(&[image])
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If there is no GPU, or the kernels cannot be compiled for it.
    pub fn compile(&self) -> Result<Compiled, RunError> {
        self.compile_for(Backend::gpu()?)
    }

    /// Compiles the kernels for any backend.
    ///
    /// ```
    /// use warploom::prelude::*;
    ///
    /// let x = vars!(x);
    /// let input = Input::f32("input", 1);
    /// let double = Pipeline::new("double", [func("double", x, 2.0 * input.at(x))])?;
    /// let device = Device::preset("h200")?;
    /// let samples = Buffer::from_vec(Region::of_extents(&[3]), vec![1.0f32, 2.0, 3.0])?;
    /// let double = double.autoschedule(&device, [&samples])?;
    /// let outputs = double.compile_for(Backend::Simulator(device))?.run(&[&samples])?;
    /// assert_eq!(outputs[0].as_slice::<f32>(), Some([2.0, 4.0, 6.0].as_slice()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the backend cannot use the schedule, or if the kernels do not compile.
    pub fn compile_for(&self, backend: Backend) -> Result<Compiled, RunError> {
        let Scheduled { problem, any_size, planned, program } = &self.scheduled;
        let schedule = planned.schedule.clone();
        match any_size {
            Some(problem) => Compiled::of_any_size(problem, schedule, program.clone(), backend),
            None => Compiled::of_problem(problem, schedule, Some(program), backend),
        }
    }

    /// Writes the kernels as a package: CUDA C++, machine code, and C code that launches them. For
    /// programs that do not depend on Warploom, and for build scripts (`docs/export.md`).
    ///
    /// ```no_run
    /// use warploom::prelude::*;
    ///
    /// let (x, y) = vars!(x, y);
    /// let gain = Param::f32("gain").range(0.0, 4.0f32);
    /// let brighter = func("brighter", (x, y), Input::f32("input", 2).at((x, y)) * &gain);
    /// let pipeline = Pipeline::new("brighten", [brighter])?;
    ///
    /// let device = Device::preset("h200")?;
    /// let request = size([1536, 2560]).realisation(&pipeline)?.param("gain", 1.5f32);
    /// let package = pipeline.autoschedule(&device, request)?.export("generated")?;
    /// for note in package.notes() {
    ///     println!("cargo:warning={note}");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the kernels do not compile, or a file cannot be written. A missing NVRTC is not an error:
    /// the package then contains no machine code, and one of its notes says so.
    pub fn export(&self, folder: impl AsRef<Path>) -> Result<Package, ExportError> {
        self.export_with(folder, &ExportOptions::default())
    }

    /// Like `export`, under another name or for several devices.
    ///
    /// # Errors
    ///
    /// As [`Autoscheduled::export`], or if the schedule cannot be used on one of the devices.
    pub fn export_with(
        &self,
        folder: impl AsRef<Path>,
        options: &ExportOptions,
    ) -> Result<Package, ExportError> {
        let mut package = self.scheduled.package(options)?;
        package.compile()?;
        package.write(folder.as_ref())?;
        Ok(package)
    }

    /// The run time that the cost model predicts, in microseconds.
    pub fn predicted_us(&self) -> f64 {
        self.explanation.predicted_us
    }

    /// The run time that tuning measured, in microseconds; `None` before tuning.
    pub fn measured_us(&self) -> Option<f64> {
        self.measured_us
    }

    /// The range in which the measured time lies for nine of ten pipelines, in microseconds. `None` if the errors of
    /// the cost model on this device are not known.
    pub fn predicted_range(&self) -> Option<TimeRange> {
        self.explanation.range()
    }

    /// The loop nest of every kernel, with its decisions and predicted costs, as text.
    pub fn nest(&self) -> String {
        self.explanation.to_string()
    }

    /// The decisions and predicted costs of every kernel, as data.
    pub fn explanation(&self) -> &Explanation {
        &self.explanation
    }

    /// All candidates and statistics of the search.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }
}

/// The schedule as text; [`Schedule::parse`] reads it back.
impl fmt::Display for Autoscheduled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.schedule_text)
    }
}
