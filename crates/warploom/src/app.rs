//! Apps: pipelines with everything around them that is needed to run, check and time them.

use std::collections::BTreeMap;

use warploom_interp::buffer::Buffer;
use warploom_lang::{Pipeline, PipelineError, Realisation, Region, Value};
use warploom_tune::workload::Workload;

/// A pipeline with its sizes, parameters, inputs and cost, as `warploom apps` lists it.
///
/// An app is data and plain functions, so that a table of them is all the command-line program needs.
#[derive(Clone, Copy, Debug)]
pub struct App {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// The named sizes, with the values it is benchmarked at.
    pub sizes: &'static [Setting],
    /// Structure parameters: numbers that shape the pipeline itself, such as pyramid levels.
    pub structure: &'static [Setting],
    /// Default values of the pipeline's Params.
    pub params: &'static [Setting],
    /// The pipeline. Uses the structure parameters, never the sizes.
    pub build: fn(&Settings) -> Result<Pipeline, PipelineError>,
    /// The boxes of inputs and outputs at given sizes.
    pub shapes: fn(&Settings) -> Shapes,
    /// An input with typical contents, from a seed.
    pub input: fn(&InputRequest<'_>) -> Buffer,
    /// Arithmetic operations that any schedule has to do at these sizes.
    pub operations: fn(&Settings) -> f64,
    /// How far floats of kernels built for speed may be off, as a fraction of an output's largest sample. `None` if no one
    /// number serves, as conditioning depends on the data: then what follows from the pipeline.
    pub tolerance: Option<f64>,
}

/// A named number and its default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// Its default.
    pub default: f64,
    /// Whether it counts something and must be a whole number.
    pub whole: bool,
}

/// A number, for a table of [`Setting`]s.
pub const fn setting(name: &'static str, default: f64) -> Setting {
    Setting { name, default, whole: false }
}

/// A whole number, for a table of [`Setting`]s.
pub const fn count(name: &'static str, default: u32) -> Setting {
    Setting { name, default: default as f64, whole: true }
}

/// The values of an app's sizes, structure parameters and Params.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    values: BTreeMap<&'static str, f64>,
}

impl Settings {
    /// The defaults of an app.
    pub fn defaults(app: &App) -> Settings {
        let all = app.sizes.iter().chain(app.structure).chain(app.params);
        Settings { values: all.map(|setting| (setting.name, setting.default)).collect() }
    }

    /// Changes one value; `false` if the app has no such setting.
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
    /// If the app declares no setting of that name: a mistake in the app's own code.
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

    /// Names and values in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        self.values.iter().map(|(name, value)| (*name, *value))
    }
}

/// The boxes of a pipeline's inputs and outputs, by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Shapes {
    /// Inputs.
    pub inputs: Vec<(&'static str, Region)>,
    /// Outputs.
    pub outputs: Vec<(&'static str, Region)>,
}

impl Shapes {
    /// A realisation of a pipeline with these boxes; its Params are still to be given.
    ///
    /// # Panics
    /// If the pipeline has no input or output of one of the names.
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

/// Which input is wanted.
#[derive(Clone, Debug)]
pub struct InputRequest<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its box.
    pub region: Region,
    /// Seed of its contents.
    pub seed: u64,
    /// The app's settings.
    pub settings: &'a Settings,
}

impl App {
    /// The app with inputs from a seed; `None` if it lacks something that its pipeline has.
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

    /// Bytes that must cross the memory bus: every input read once, every output written once.
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
