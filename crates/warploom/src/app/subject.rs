//! An app at some sizes: a pipeline with everything needed to build and to run its kernels.

use thiserror::Error;
use warploom_interp::buffer::{Buffer, BufferError};
use warploom_interp::{EvalError, available_memory};
use warploom_lang::dynamic::{DynamicRequest, SizeError, SizeRange};
use warploom_lang::ir::{InputDecl, ParamDecl};
use warploom_lang::{InputId, Pipeline, PipelineError, Realisation, Region, Type, Value};
use warploom_target::Device;
use warploom_tune::workload::Workload;

use super::{App, InputRequest, Settings, Shapes, Sizes};
use crate::show;

/// Assumed free memory if the system does not report it, in bytes.
const UNKNOWN: u64 = 64 << 30;

/// A pipeline with everything needed to build its kernels.
pub struct Subject {
    /// The name in reports.
    pub name: String,
    /// Its sizes by name.
    pub sizes: Sizes,
    /// The pipeline.
    pub pipeline: Pipeline,
    /// The boxes of its inputs and outputs, and the values of its Params.
    pub request: Realisation,
    /// The app that it comes from; a file is an app without sizes of its own.
    pub app: App,
    /// The settings of the app.
    pub settings: Settings,
    /// The Params that kernels take when they run and that have no value; the request has 0 for them.
    pub unset: Vec<String>,
}

/// Why an app cannot be built or run with some settings.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are the words of the sentences")]
pub enum AppError {
    /// The pipeline has errors.
    #[error("`{app}` cannot be built: {error}")]
    Pipeline { app: String, error: PipelineError },
    /// A number that is no value of the Param's type.
    #[error("Param {name} of `{app}` is {ty}, so it cannot be {}; give {}", show::exact(*.value), show::values_of(*.ty))]
    ParamType { app: String, name: String, ty: Type, value: f64 },
    /// A Param without a value.
    #[error("`{app}` has no value for its Param {name}; give one")]
    NoValue { app: String, name: String },
    /// A name that is none of the app's sizes.
    #[error("`{app}` has no size `{name}` that a run could give; it has {known}")]
    NoSize { app: String, name: String, known: String },
    /// Sizes that cannot be given at each run.
    #[error(transparent)]
    Dynamic(#[from] SizeError),
    /// Inputs and outputs that are too large.
    #[error(
        "the inputs and outputs of `{app}`{sizes} need {}, but only {} is free; use smaller sizes",
        show::bytes(*.needed), show::bytes(*.free)
    )]
    Memory { app: String, sizes: String, needed: u64, free: u64 },
    /// An input that cannot be generated or stored.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// The reference evaluator cannot run the pipeline.
    #[error("`{app}` cannot be run{sizes}: {error}")]
    Evaluation { app: String, sizes: String, error: Box<EvalError> },
}

impl App {
    /// The pipeline with these settings.
    ///
    /// # Errors
    /// If the pipeline has errors; the error names the app.
    pub fn built(&self, settings: &Settings) -> Result<Pipeline, AppError> {
        self.pipeline(settings).map_err(|error| AppError::Pipeline { app: self.name.clone(), error })
    }

    /// A Param's value, converted to its type.
    fn value(&self, param: &ParamDecl, settings: &Settings) -> Result<Value, AppError> {
        let (app, name) = (self.name.clone(), param.name.clone());
        let Some(value) = settings.get(&name).or_else(|| Some(param.usual()?.as_f64())) else {
            return Err(AppError::NoValue { app, name });
        };
        let typed = Value::from_number(param.ty, value).filter(|typed| typed.as_f64().is_finite());
        typed.ok_or(AppError::ParamType { app, name, ty: param.ty, value })
    }
}

impl Subject {
    /// An app with some settings.
    ///
    /// # Errors
    /// If the pipeline has errors, or a Param no value of its type.
    pub fn new(app: &App, settings: Settings) -> Result<Subject, AppError> {
        let pipeline = app.built(&settings)?;
        let mut request = app.shapes_at(&settings).realisation(&pipeline);
        for param in pipeline.params().values() {
            request = request.param(&param.name, app.value(param, &settings)?);
        }
        let sizes = match app.sizes.is_empty() {
            true => Sizes::of_boxes(&pipeline, &request),
            false => Sizes::of_app(app, &settings),
        };
        let (name, app, unset) = (app.name.clone(), app.clone(), Vec::new());
        Ok(Subject { name, sizes, pipeline, request, app, settings, unset })
    }

    /// The boxes of inputs and outputs.
    pub fn shapes(&self) -> Shapes {
        Shapes::of_request(&self.pipeline, &self.request)
    }

    /// The bytes of inputs and outputs.
    pub fn compulsory_bytes(&self) -> u64 {
        self.app.compulsory_bytes(&self.pipeline, &self.shapes())
    }

    /// A lower bound on the run time, in microseconds, from the compulsory bytes and, if they are known, the operations.
    pub fn floor_us(&self, device: &Device) -> f64 {
        let memory_us = self.compulsory_bytes() as f64 / (device.memory.dram_achieved_gbps * 1e3);
        let operations = self.app.operations_at(&self.settings).unwrap_or(0.0);
        memory_us.max(operations / (device.peak_fp32_tflops() * 1e6))
    }

    /// Checks that the inputs and outputs fit in memory, before they are allocated.
    ///
    /// # Errors
    /// If they need more memory than is free.
    pub fn check_memory(&self) -> Result<(), AppError> {
        let (needed, free) = (self.compulsory_bytes(), available_memory().unwrap_or(UNKNOWN));
        match needed <= free {
            true => Ok(()),
            false => {
                let (app, sizes) = (self.name.clone(), self.sizes.to_string());
                Err(AppError::Memory { app, sizes, needed, free })
            }
        }
    }

    /// The input that is given, or one that is generated from a seed.
    fn input(&self, id: InputId, given: Option<Buffer>, seed: u64) -> Result<Buffer, AppError> {
        let InputDecl { name, ty, dimensions, .. } = &self.pipeline.inputs()[id];
        if let Some(given) = given {
            return Ok(given);
        }
        let region = self.request.inputs[id].clone().unwrap_or_else(|| Region::empty(*dimensions));
        Ok(self.app.input(&InputRequest { name, ty: *ty, region, seed, settings: &self.settings })?)
    }

    /// The pipeline with data: inputs that are given by name, the others generated from a seed.
    ///
    /// # Errors
    /// If they do not fit in memory, or cannot be generated.
    pub fn workload(&self, given: impl Fn(&str) -> Option<Buffer>, seed: u64) -> Result<Workload, AppError> {
        self.check_memory()?;
        let inputs = self.pipeline.inputs().iter();
        let inputs = inputs.map(|(id, input)| self.input(id, given(&input.name), seed));
        Ok(Workload::new(&self.pipeline, &self.request, inputs.collect::<Result<_, _>>()?))
    }

    /// The error of a pipeline that the reference evaluator cannot run.
    pub fn failed(&self, error: EvalError) -> AppError {
        AppError::Evaluation { app: self.name.clone(), sizes: self.sizes.to_string(), error: Box::new(error) }
    }

    /// The request with sizes that every run gives. The pipeline is scheduled for its own sizes.
    ///
    /// # Errors
    /// If there is no such size, or the boxes do not grow linearly with it.
    pub fn dynamic(&self, ranges: Vec<SizeRange>) -> Result<DynamicRequest, AppError> {
        let pipeline = &self.pipeline;
        let unknown = |known: Vec<String>| {
            let name = ranges.iter().find(|range| !known.contains(&range.name))?.name.clone();
            Some(AppError::NoSize { app: self.name.clone(), name, known: known.join(", ") })
        };
        let (app, settings) = (&self.app, &self.settings);
        if app.sizes.is_empty() {
            let first = self.request.inputs.values().chain(&self.request.outputs).flatten().next();
            let extents: Vec<i64> = first.map(Region::extents).unwrap_or_default();
            if let Some(error) = unknown((0..extents.len()).map(|d| format!("d{d}")).collect()) {
                return Err(error);
            }
            let dims: Vec<usize> =
                ranges.iter().filter_map(|range| range.name.strip_prefix('d')?.parse().ok()).collect();
            let typical: Vec<i64> = dims.iter().map(|d| extents[*d]).collect();
            let at = |sizes: &[i64]| grown(&self.request, &dims, &typical, sizes);
            return Ok(DynamicRequest::fit(pipeline, ranges, &typical, at)?);
        }
        match unknown(app.sizes.iter().map(|size| size.name.clone()).collect()) {
            Some(error) => Err(error),
            None => {
                let whole = || AppError::NoValue { app: app.name.clone(), name: "a Param".to_owned() };
                Ok(app.dynamic(pipeline, settings, ranges).ok_or_else(whole)??)
            }
        }
    }
}

/// A request in which some dimensions have other extents: those of all inputs and outputs that are as long as `typical`.
fn grown(request: &Realisation, dims: &[usize], typical: &[i64], sizes: &[i64]) -> Realisation {
    let mut grown = request.clone();
    let regions = grown.inputs.values_mut().chain(&mut grown.outputs).flatten();
    for region in regions {
        for ((d, typical), size) in dims.iter().zip(typical).zip(sizes) {
            if let Some(range) = region.0.get_mut(*d).filter(|range| range.extent == *typical) {
                range.extent = *size;
            }
        }
    }
    grown
}
