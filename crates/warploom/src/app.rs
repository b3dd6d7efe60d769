//! Apps: pipelines bundled with the sizes, inputs and parameters needed to run, check and time
//! them.

use std::collections::BTreeMap;

use warploom_interp::buffer::Buffer;
use warploom_lang::dynamic::{DynamicRequest, SizeError, SizeRange};
use warploom_lang::{Pipeline, PipelineError, Realisation, Region, Value};
use warploom_tune::workload::Workload;

/// A pipeline with its sizes, parameters, inputs and cost, as listed by `warploom apps`.
///
/// An app holds only data and function pointers, so the command-line program needs nothing but a
/// table of apps.
#[derive(Clone, Copy, Debug)]
pub struct App {
    /// How the command line refers to it.
    pub name: &'static str,
    /// One line that says what it computes, for listings.
    pub about: &'static str,
    /// The named sizes, such as width and height. Their defaults are the sizes it is benchmarked
    /// at.
    pub sizes: &'static [Setting],
    /// Structure parameters: numbers that shape the pipeline itself, such as pyramid levels.
    pub structure: &'static [Setting],
    /// Default values of the pipeline's Params.
    pub params: &'static [Setting],
    /// Builds the pipeline. May depend on the structure parameters, but not on the sizes.
    pub build: fn(&Settings) -> Result<Pipeline, PipelineError>,
    /// The boxes of the inputs and outputs at the given sizes.
    pub shapes: fn(&Settings) -> Shapes,
    /// Generates one input with typical contents from a seed.
    pub input: fn(&InputRequest<'_>) -> Buffer,
    /// The number of arithmetic operations that every schedule must perform at these sizes.
    pub operations: fn(&Settings) -> f64,
    /// The tolerance for floating-point outputs of kernels built for speed, as a fraction of the
    /// output's largest sample. `None` if conditioning depends on the data, so that no single
    /// number fits; the tolerance is then derived from the pipeline.
    pub tolerance: Option<f64>,
}

/// A named number of an app, with its default value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// The name to set it by; unique within an app.
    pub name: &'static str,
    /// The value unless the user sets another.
    pub default: f64,
    /// Whether it must be a whole number, for counts such as pyramid levels or pixels.
    pub whole: bool,
}

/// A [`Setting`] that may be any number.
pub const fn setting(name: &'static str, default: f64) -> Setting {
    Setting { name, default, whole: false }
}

/// A [`Setting`] that must be a whole number.
pub const fn count(name: &'static str, default: u32) -> Setting {
    Setting { name, default: default as f64, whole: true }
}

/// The values of an app's sizes, structure parameters and Params.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    values: BTreeMap<&'static str, f64>,
}

impl Settings {
    /// The default value of every setting of the app.
    pub fn defaults(app: &App) -> Settings {
        let all = app.sizes.iter().chain(app.structure).chain(app.params);
        Settings { values: all.map(|setting| (setting.name, setting.default)).collect() }
    }

    /// Sets one value. Returns `false` if the app has no such setting.
    #[must_use]
    pub fn set(&mut self, name: &str, value: f64) -> bool {
        match self.values.iter_mut().find(|(known, _)| **known == name) {
            Some((_, slot)) => {
                *slot = value;
                true
            }
            None => false,
        }
    }

    /// The value of a setting.
    ///
    /// # Panics
    /// If the app declares no setting of that name, which is a bug in the app's own code.
    pub fn number(&self, name: &str) -> f64 {
        match self.values.get(name) {
            Some(value) => *value,
            None => panic!("the app declares no setting `{name}`"),
        }
    }

    /// The value of a whole-number setting; see [`Settings::number`].
    pub fn int(&self, name: &str) -> i64 {
        self.number(name) as i64
    }

    /// All names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        self.values.iter().map(|(name, value)| (*name, *value))
    }
}

/// The boxes of a pipeline's inputs and outputs, by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Shapes {
    /// One box per input.
    pub inputs: Vec<(&'static str, Region)>,
    /// One box per output.
    pub outputs: Vec<(&'static str, Region)>,
}

impl Shapes {
    /// The realisation of a pipeline with these boxes. It has no values for Params yet.
    ///
    /// # Panics
    /// If the pipeline has no input or output with one of these names.
    pub fn realisation(&self, pipeline: &Pipeline) -> Realisation {
        let mut request = Realisation::new(pipeline);
        for (name, region) in &self.inputs {
            request = request.input(name, region.clone());
        }
        for (name, region) in &self.outputs {
            request = request.output(name, region.clone());
        }
        request
    }
}

/// The arguments of `App::input`: which input to generate.
#[derive(Clone, Debug)]
pub struct InputRequest<'a> {
    /// The input's name in the pipeline.
    pub name: &'a str,
    /// The box to fill with samples.
    pub region: Region,
    /// The same seed always gives the same contents.
    pub seed: u64,
    /// The app's settings, for inputs whose contents depend on them.
    pub settings: &'a Settings,
}

impl App {
    /// The app's pipeline with inputs generated from a seed. `None` if the pipeline does not build,
    /// or if the app lacks one of its inputs, Params or outputs.
    pub fn workload(&self, settings: &Settings, seed: u64) -> Option<Workload> {
        let pipeline = (self.build)(settings).ok()?;
        let shapes = (self.shapes)(settings);
        let mut inputs = Vec::new();
        for decl in pipeline.inputs().values() {
            let (name, region) = shapes.inputs.iter().find(|(name, _)| *name == decl.name)?;
            inputs.push((self.input)(&InputRequest { name, region: region.clone(), seed, settings }));
        }
        let value = |name: &str| settings.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
        let params = pipeline.params().values().map(|decl| Value::from_number(decl.ty, value(&decl.name)?));
        let params = params.collect::<Option<_>>()?;
        let outputs = pipeline.outputs().iter().map(|id| {
            let name = pipeline.funcs()[*id].name.as_str();
            shapes.outputs.iter().find(|(known, _)| *known == name).map(|(_, region)| region.clone())
        });
        let outputs = outputs.collect::<Option<_>>()?;
        Some(Workload { pipeline, inputs, params, outputs })
    }

    /// The app's request with some of its sizes given at each launch. The others, and the values that kernels are scheduled
    /// for, are those of `settings`. `None` if the app lacks one of its pipeline's inputs, Params or outputs.
    ///
    /// # Errors
    /// If a size cannot have its range, or a box does not grow linearly with it.
    pub fn dynamic(
        &self,
        pipeline: &Pipeline,
        settings: &Settings,
        sizes: Vec<SizeRange>,
    ) -> Option<Result<DynamicRequest, SizeError>> {
        let value = |name: &str| settings.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
        let typical: Option<Vec<i64>> = sizes.iter().map(|size| Some(value(&size.name)? as i64)).collect();
        let params = pipeline.params().values().map(|decl| Value::from_number(decl.ty, value(&decl.name)?));
        let params: Vec<Value> = params.collect::<Option<_>>()?;
        let names: Vec<String> = sizes.iter().map(|size| size.name.clone()).collect();
        let at = |values: &[i64]| {
            let mut settings = settings.clone();
            for (name, value) in names.iter().zip(values) {
                let _known = settings.set(name, *value as f64);
            }
            let mut request = (self.shapes)(&settings).realisation(pipeline);
            request.params = params.iter().map(|value| Some(*value)).collect();
            request
        };
        Some(DynamicRequest::fit(pipeline, sizes, &typical?, at))
    }

    /// The bytes that must cross the memory bus: each input read once and each output written once.
    pub fn compulsory_bytes(&self, pipeline: &Pipeline, shapes: &Shapes) -> u64 {
        let inputs = shapes.inputs.iter().filter_map(|(name, region)| {
            let input = &pipeline.inputs()[pipeline.input_named(name)?];
            Some(region.points()? * input.ty.bytes() as u64)
        });
        let outputs = shapes.outputs.iter().filter_map(|(name, region)| {
            let func = &pipeline.funcs()[pipeline.func_named(name)?];
            Some(region.points()? * func.bytes_per_point() as u64)
        });
        inputs.chain(outputs).sum()
    }
}
