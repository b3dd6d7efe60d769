//! The flags of commands that run an app at some sizes with generated inputs.

use warploom::app::{App, InputRequest, Settings, Shapes};
use warploom::interp::buffer::Buffer;
use warploom::tune::workload::Workload;

use crate::error::Error;
use crate::memory;
use crate::names::find_app;
use crate::settings::{build, param_values, set_params, set_sizes, set_structure};

/// Which app, at which sizes.
#[derive(Debug, clap::Args)]
pub(crate) struct Choice {
    /// The app; `warploom apps` lists them
    pub(crate) app: String,
    #[command(flatten)]
    pub(crate) values: Values,
}

/// Sizes and parameters.
#[derive(Debug, clap::Args)]
pub(crate) struct Values {
    /// Sizes in points, as W=1536,H=2560 or 1536x2560; other sizes are the app's defaults
    #[arg(long, value_name = "SIZES", allow_hyphen_values = true, help_heading = "Pipeline")]
    size: Vec<String>,
    /// The value of a Param; other Params have the app's defaults. Can be repeated
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Pipeline")]
    param: Vec<String>,
    /// The value of a structure parameter; others have the app's defaults. Can be repeated
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Pipeline")]
    set: Vec<String>,
    /// Seed of the generated inputs, an integer
    #[arg(long, default_value_t = 0, help_heading = "Pipeline")]
    pub(crate) seed: u64,
}

/// An app with everything it needs to run.
pub(crate) struct Chosen<'a> {
    pub(crate) app: &'a App,
    pub(crate) settings: Settings,
    pub(crate) shapes: Shapes,
    pub(crate) workload: Workload,
}

impl Choice {
    pub(crate) fn make<'a>(&self, apps: &'a [App]) -> Result<Chosen<'a>, Error> {
        self.values.make(find_app(apps, &self.app)?)
    }
}

impl Values {
    /// The app at these sizes, with generated inputs.
    pub(crate) fn make<'a>(&self, app: &'a App) -> Result<Chosen<'a>, Error> {
        let mut settings = Settings::defaults(app);
        set_structure(app, &mut settings, &self.set)?;
        set_params(app, &mut settings, &self.param)?;
        set_sizes(app, &mut settings, &self.size)?;
        Chosen::new(app, settings, self.seed)
    }
}

impl<'a> Chosen<'a> {
    /// The app with these settings, and inputs generated from a seed.
    pub(crate) fn new(app: &'a App, settings: Settings, seed: u64) -> Result<Chosen<'a>, Error> {
        let pipeline = build(app, &settings)?;
        let params = param_values(app, &pipeline, &settings)?;
        let shapes = (app.shapes)(&settings);
        memory::check(app, &pipeline, &shapes, &settings)?;
        let input = |name: &str| -> Option<Buffer> {
            let (name, region) = shapes.inputs.iter().find(|(known, _)| *known == name)?;
            let request = InputRequest { name, region: region.clone(), seed, settings: &settings };
            Some((app.input)(&request))
        };
        let inputs = pipeline.inputs().values().filter_map(|decl| input(&decl.name)).collect();
        let names = pipeline.outputs().iter().map(|id| pipeline.funcs()[*id].name.as_str());
        let region = |name: &str| shapes.outputs.iter().find(|(known, _)| *known == name);
        let outputs = names.filter_map(region).map(|(_, region)| region.clone()).collect();
        let params = params.into_iter().map(|(_, value)| value).collect();
        Ok(Chosen { app, settings, workload: Workload { pipeline, inputs, params, outputs }, shapes })
    }
}
