//! Apps: pipelines bundled with the sizes, inputs and parameters needed to run, check and time
//! them.

mod definition;
mod settings;
mod shapes;
mod sizes;
mod subject;
mod tunable;

use std::fmt;
use std::panic::Location;
use std::sync::{Arc, OnceLock};

use warploom_interp::buffer::{Buffer, BufferError};
use warploom_interp::noise;
use warploom_lang::dynamic::{DynamicRequest, SizeError, SizeRange};
use warploom_lang::{Pipeline, PipelineError, Realisation, Region, Type, Value};
use warploom_tune::workload::Workload;

pub use settings::{Setting, Settings, count, setting};
pub use shapes::Shapes;
pub use sizes::{Size, Sizes};
pub use subject::{AppError, Subject};
pub use tunable::Tunable;

/// A pipeline with its sizes, parameters, inputs and cost, as listed by `warploom apps`.
///
/// Only a name and a pipeline are needed; everything else has a default:
///
/// ```
/// use warploom::app::{App, Settings, count};
/// use warploom::prelude::*;
///
/// let brighter = App::new("brighter", |_: &Settings| {
///     let (x, y) = vars!(x, y);
///     let by = Param::f32("by").default(0.1f32);
///     Pipeline::new("brighter", [func("output", (x, y), Input::f32("input", 2).at((x, y)) + &by)])
/// })
/// .sizes([count("W", 1536), count("H", 2560)]);
///
/// let settings = Settings::defaults(&brighter);
/// assert_eq!(brighter.shapes_at(&settings).outputs[0].1, Region::of_extents(&[1536, 2560]));
/// assert_eq!(settings.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["H", "W", "by"]);
/// ```
#[derive(Clone)]
pub struct App {
    /// The name on the command line.
    pub name: String,
    /// One line that describes the app, for listings.
    pub about: String,
    /// The named sizes, such as width and height. Their defaults are the sizes it is benchmarked
    /// at.
    pub sizes: Vec<Setting>,
    /// Structure parameters: numbers that shape the pipeline itself, such as pyramid levels.
    pub structure: Vec<Setting>,
    /// The tolerance for floating-point outputs of kernels built for speed, as a fraction of the
    /// output's largest sample. `None` if it is derived from the pipeline, because conditioning depends
    /// on the data and no single number fits.
    pub tolerance: Option<f64>,
    /// The most points that the reference evaluator visits to check kernels at a smaller size.
    pub check_points: u64,
    params: OnceLock<Vec<Setting>>,
    place: &'static Location<'static>,
    build: Arc<Build>,
    shapes: Option<Arc<Boxes>>,
    input: Option<Arc<Generate>>,
    own_inputs: Vec<String>,
    operations: Option<Arc<Count>>,
}

/// The default of [`App::check_points`].
/// The largest size; larger arrays could not be indexed.
pub const MAX_SIZE: i64 = 1 << 30;

pub(crate) const CHECK_POINTS: u64 = 32_000_000;

type Build = dyn Fn(&Settings) -> Result<Pipeline, PipelineError> + Send + Sync;
type Boxes = dyn Fn(&Settings) -> Shapes + Send + Sync;
type Generate = dyn Fn(&InputRequest<'_>) -> Buffer + Send + Sync;
type Count = dyn Fn(&Settings) -> f64 + Send + Sync;

/// The parts of an app.
impl App {
    /// An app without sizes and structure parameters. `build` makes its pipeline, which may depend on the structure
    /// parameters, but not on the sizes.
    #[track_caller]
    pub fn new(
        name: impl Into<String>,
        build: impl Fn(&Settings) -> Result<Pipeline, PipelineError> + Send + Sync + 'static,
    ) -> App {
        App {
            name: name.into(),
            about: String::new(),
            sizes: Vec::new(),
            structure: Vec::new(),
            tolerance: None,
            check_points: CHECK_POINTS,
            params: OnceLock::new(),
            place: Location::caller(),
            build: Arc::new(build),
            shapes: None,
            input: None,
            own_inputs: Vec::new(),
            operations: None,
        }
    }

    /// A pipeline as an app, with the boxes and Params of a request. Every input and output needs a box.
    #[track_caller]
    pub fn of_pipeline(pipeline: &Pipeline, request: &Realisation) -> App {
        let shapes = Shapes::of_request(pipeline, request);
        let params = pipeline.params().values().zip(request.params.values());
        let params = params.filter_map(|(decl, value)| Some(setting(&decl.name, (*value)?.as_f64())));
        let app = pipeline.clone();
        App::new(pipeline.name(), move |_| Ok(app.clone()))
            .params(params.collect::<Vec<_>>())
            .shapes(move |_| shapes.clone())
    }

    /// One line that describes the app, for listings.
    #[must_use]
    pub fn about(self, about: impl Into<String>) -> App {
        App { about: about.into(), ..self }
    }

    /// The named sizes, with the sizes that the app is benchmarked at.
    #[must_use]
    pub fn sizes(self, sizes: impl Into<Vec<Setting>>) -> App {
        App { sizes: sizes.into(), ..self }
    }

    /// The structure parameters.
    #[must_use]
    pub fn structure(self, structure: impl Into<Vec<Setting>>) -> App {
        App { structure: structure.into(), ..self }
    }

    /// The values of Params. By default, those of the pipeline: defaults, or the middles of ranges.
    #[must_use]
    pub fn params(self, params: impl Into<Vec<Setting>>) -> App {
        App { params: OnceLock::from(params.into()), ..self }
    }

    /// The boxes of inputs and outputs at some sizes. By default the first dimension of each is as long as the first size, the
    /// second as the second, and so on.
    #[must_use]
    pub fn shapes(self, shapes: impl Fn(&Settings) -> Shapes + Send + Sync + 'static) -> App {
        App { shapes: Some(Arc::new(shapes)), ..self }
    }

    /// A function that generates an input with typical contents; the default is noise. The input has the requested box
    /// and type.
    #[must_use]
    pub fn inputs(self, input: impl Fn(&InputRequest<'_>) -> Buffer + Send + Sync + 'static) -> App {
        App { input: Some(Arc::new(input)), ..self }
    }

    /// Inputs whose contents belong to the app, such as calibration or learned weights. [`App::inputs`] returns them whatever the
    /// seed, and `warploom run` needs no files for them.
    #[must_use]
    pub fn own_inputs<'a>(self, names: impl IntoIterator<Item = &'a str>) -> App {
        App { own_inputs: names.into_iter().map(str::to_owned).collect(), ..self }
    }

    /// The number of arithmetic operations that every schedule must perform at some sizes. Without it, the floor of the
    /// time is given by memory alone.
    #[must_use]
    pub fn operations(self, operations: impl Fn(&Settings) -> f64 + Send + Sync + 'static) -> App {
        App { operations: Some(Arc::new(operations)), ..self }
    }

    /// The most points that the reference evaluator visits to check kernels at a smaller size.
    #[must_use]
    pub fn check_points(self, check_points: u64) -> App {
        App { check_points, ..self }
    }

    /// The tolerance of floating-point outputs, as a fraction of the largest sample.
    #[must_use]
    pub fn tolerance(self, tolerance: f64) -> App {
        App { tolerance: Some(tolerance), ..self }
    }
}

/// Values derived from these parts.
impl App {
    /// The source location of the app, for messages.
    pub fn place(&self) -> &'static Location<'static> {
        self.place
    }

    /// The pipeline.
    ///
    /// # Errors
    /// If the app does not build it.
    pub fn pipeline(&self, settings: &Settings) -> Result<Pipeline, PipelineError> {
        (self.build)(settings)
    }

    /// The values of Params unless a user gives others.
    pub fn param_settings(&self) -> &[Setting] {
        self.params.get_or_init(|| {
            let Ok(pipeline) = self.pipeline(&Settings::of([&self.sizes, &self.structure])) else {
                return Vec::new();
            };
            let params = pipeline.params().values();
            params.filter_map(|decl| Some(setting(&decl.name, decl.usual()?.as_f64()))).collect()
        })
    }

    /// The boxes of the inputs and outputs.
    pub fn shapes_at(&self, settings: &Settings) -> Shapes {
        match (&self.shapes, self.pipeline(settings)) {
            (Some(shapes), _) => shapes(settings),
            (None, Ok(pipeline)) => {
                let sizes: Vec<i64> = self.sizes.iter().map(|size| settings.int(&size.name)).collect();
                Shapes::of_sizes(&pipeline, &sizes)
            }
            (None, Err(_)) => Shapes { inputs: Vec::new(), outputs: Vec::new() },
        }
    }

    /// Generates one input.
    ///
    /// # Errors
    /// If there is not enough memory for noise.
    pub fn input(&self, request: &InputRequest<'_>) -> Result<Buffer, BufferError> {
        match &self.input {
            Some(input) => Ok(input(request)),
            None => request.noise(),
        }
    }

    /// Whether the contents of an input belong to the app.
    pub fn owns_input(&self, name: &str) -> bool {
        self.own_inputs.iter().any(|own| own == name)
    }

    /// The number of arithmetic operations that every schedule must perform; `None` if the app does not know.
    pub fn operations_at(&self, settings: &Settings) -> Option<f64> {
        self.operations.as_ref().map(|operations| operations(settings))
    }

    /// The app's pipeline with inputs generated from a seed. `None` if the pipeline does not build,
    /// or if the app lacks one of its inputs, Params or outputs.
    pub fn workload(&self, settings: &Settings, seed: u64) -> Option<Workload> {
        let pipeline = self.pipeline(settings).ok()?;
        let shapes = self.shapes_at(settings);
        let mut inputs = Vec::new();
        for decl in pipeline.inputs().values() {
            let region = shapes.input(&decl.name)?.clone();
            let request = InputRequest { name: &decl.name, ty: decl.ty, region, seed, settings };
            inputs.push(self.input(&request).ok()?);
        }
        let params = param_values(&pipeline, settings)?;
        let outputs = pipeline.outputs().iter().map(|id| {
            let name = pipeline.funcs()[*id].name.as_str();
            shapes.output(name).cloned()
        });
        let outputs = outputs.collect::<Option<_>>()?;
        Some(Workload { pipeline, inputs, params, outputs })
    }

    /// The app's request with some of its sizes given at each launch. The other sizes, and the typical values for which
    /// kernels are scheduled, are those of `settings`. `None` if the app lacks one of its pipeline's inputs, Params or
    /// outputs.
    ///
    /// # Errors
    /// If a size cannot have its range, or a box does not grow linearly with it.
    pub fn dynamic(
        &self,
        pipeline: &Pipeline,
        settings: &Settings,
        sizes: Vec<SizeRange>,
    ) -> Option<Result<DynamicRequest, SizeError>> {
        let typical: Option<Vec<i64>> =
            sizes.iter().map(|size| Some(settings.get(&size.name)? as i64)).collect();
        let params = param_values(pipeline, settings)?;
        let names: Vec<String> = sizes.iter().map(|size| size.name.clone()).collect();
        let at = |values: &[i64]| {
            let mut settings = settings.clone();
            for (name, value) in names.iter().zip(values) {
                let _known = settings.set(name, *value as f64);
            }
            let mut request = self.shapes_at(&settings).realisation(pipeline);
            request.params = params.iter().map(|value| Some(*value)).collect();
            request
        };
        Some(DynamicRequest::fit(pipeline, sizes, &typical?, at))
    }

    /// The bytes that must cross the memory bus: each input read once and each output written once.
    pub fn compulsory_bytes(&self, pipeline: &Pipeline, shapes: &Shapes) -> u64 {
        let inputs = shapes.inputs.iter().filter_map(|(name, region)| {
            Some((region, pipeline.inputs()[pipeline.input_named(name)?].ty.bytes()))
        });
        let outputs = shapes.outputs.iter().filter_map(|(name, region)| {
            Some((region, pipeline.funcs()[pipeline.func_named(name)?].bytes_per_point()))
        });
        // Impossible sizes saturate.
        inputs.chain(outputs).fold(0, |sum: u64, (region, bytes)| {
            sum.saturating_add(region.points().unwrap_or(u64::MAX).saturating_mul(bytes as u64))
        })
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("name", &self.name).field("sizes", &self.sizes).finish_non_exhaustive()
    }
}

/// The values of a pipeline's Params, in order. `None` if one is missing or is not of the Param's type.
fn param_values(pipeline: &Pipeline, settings: &Settings) -> Option<Vec<Value>> {
    let params = pipeline.params().values();
    params.map(|decl| Value::from_number(decl.ty, settings.get(&decl.name)?)).collect()
}

/// The input to generate: the argument of [`App::inputs`].
#[derive(Clone, Debug)]
pub struct InputRequest<'a> {
    /// The input's name in the pipeline.
    pub name: &'a str,
    /// The type of its samples.
    pub ty: Type,
    /// The box to fill with samples.
    pub region: Region,
    /// The same seed always gives the same contents.
    pub seed: u64,
    /// The app's settings, for inputs whose contents depend on them.
    pub settings: &'a Settings,
}

impl InputRequest<'_> {
    /// Noise, the default contents of inputs: floats in [0, 1), integers over their full range. Inputs of one pipeline
    /// differ from each other.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn noise(&self) -> Result<Buffer, BufferError> {
        noise(self.ty, self.region.clone(), self.own_seed())
    }

    /// A seed that differs from those of other inputs.
    pub fn own_seed(&self) -> u64 {
        let mixed = |seed: u64, byte: u8| seed.wrapping_mul(31).wrapping_add(u64::from(byte));
        self.name.bytes().fold(self.seed, mixed)
    }
}
