//! The choice of a pipeline at some sizes: an app, or a file.

pub(crate) mod file;
mod tensor;

use warploom::app::{App, Settings, Subject};
use warploom::inputs::{Given, fit, solve_sizes};
use warploom::lang::ir::ParamDecl;
use warploom::lang::{BoundsError, ParamId, Pipeline, Realisation, Value};

use crate::error::Error;
use crate::inputs;
use crate::names::find_app;
use crate::settings::{set_params, set_sizes, set_structure};

/// Which pipeline, at which sizes.
#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// The app (`warploom apps` lists them), a *.json file with a pipeline, or a *.tc file in Tensor Comprehensions
    #[arg(value_name = "APP|FILE")]
    app: String,
    #[command(flatten)]
    values: Values,
}

/// Sizes and parameters.
#[derive(Debug, clap::Args)]
pub(crate) struct Values {
    /// Sizes in points, as W=1536,H=2560 or 1536x2560; other sizes are the app's defaults
    ///
    /// For a file: one size for all inputs and outputs, as 1536x2560x3 (those with fewer dimensions use the first extents),
    /// or one box for each, as input=1536x2560x3,output=1536x2560; -1:1538 is a dimension with minimum -1 and extent 1538.
    /// For a *.tc file: the names in its declarations, as M=1024,N=512.
    /// Where a command takes input files, these give the sizes that are left out.
    #[arg(
        long,
        value_name = "SIZES",
        allow_hyphen_values = true,
        help_heading = "Pipeline",
        verbatim_doc_comment
    )]
    size: Vec<String>,
    /// The value of a Param; others have the default of the app or the pipeline. Can be repeated
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Pipeline")]
    param: Vec<String>,
    /// The value of a structure parameter; others have the app's defaults. Can be repeated
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Pipeline")]
    set: Vec<String>,
    /// The definition in a *.tc file that has several
    #[arg(long, value_name = "NAME", help_heading = "Pipeline")]
    def: Option<String>,
}

/// What a pipeline is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// Its kernels are built. Only the Params that bounds depend on need values.
    Compile,
    /// It is run, so every Param needs a value.
    Run,
}

/// The Params that need no value for this purpose, because kernels take them when they run.
fn run_time_params(pipeline: &Pipeline, purpose: Purpose) -> impl Iterator<Item = (ParamId, &ParamDecl)> {
    let specialised = pipeline.specialised_params();
    pipeline.params().iter().filter(move |(id, _)| purpose == Purpose::Compile && !specialised[*id])
}

/// Why `--def` has no effect.
const NO_DEFINITIONS: &str = "only *.tc files have definitions; remove it";

/// Whether a name on the command line is that of a file.
pub(crate) fn is_file(name: &str) -> bool {
    name.ends_with(".json") || is_tensor(name)
}

/// Whether a file has definitions in the notation of Tensor Comprehensions.
fn is_tensor(name: &str) -> bool {
    name.ends_with(".tc")
}

impl Which {
    /// The pipeline at the requested sizes.
    pub(crate) fn realise(&self, apps: &[App]) -> Result<Subject, Error> {
        Ok(self.realise_with(apps, &[])?.0)
    }

    /// The pipeline at the requested sizes, for kernels that are not run now. Params that kernels take when
    /// they run need no value.
    pub(crate) fn realise_to_compile(&self, apps: &[App]) -> Result<Subject, Error> {
        Ok(self.realise_for(apps, &[], Purpose::Compile)?.0)
    }

    /// The pipeline with inputs from files, as `[NAME=]FILE`, which give the sizes that were not requested.
    pub(crate) fn realise_with(
        &self,
        apps: &[App],
        files: &[String],
    ) -> Result<(Subject, Vec<Given>), Error> {
        self.realise_for(apps, files, Purpose::Run)
    }

    fn realise_for(
        &self,
        apps: &[App],
        files: &[String],
        purpose: Purpose,
    ) -> Result<(Subject, Vec<Given>), Error> {
        match is_file(&self.app) {
            true => self.values.of_file(&self.app, files, purpose),
            false => self.values.of_app(find_app(apps, &self.app)?, files, purpose),
        }
    }

    /// The pipeline at any sizes, and at the requested ones if there are enough of them.
    pub(crate) fn pipeline(&self, apps: &[App]) -> Result<(Pipeline, Option<Realisation>), Error> {
        match is_file(&self.app) {
            true if self.values.size.is_empty() && !is_tensor(&self.app) => {
                Ok((file::pipeline(&self.app, &self.values)?, None))
            }
            _ => {
                let subject = self.realise_to_compile(apps)?;
                Ok((subject.pipeline, Some(subject.request)))
            }
        }
    }
}

impl Values {
    /// A size, and nothing else.
    pub(crate) fn sized(size: Option<&str>) -> Values {
        let size = size.map(str::to_owned).into_iter().collect();
        Values { size, param: Vec::new(), set: Vec::new(), def: None }
    }

    /// The pipeline of a file with these values.
    pub(crate) fn of_file(
        &self,
        file: &str,
        files: &[String],
        purpose: Purpose,
    ) -> Result<(Subject, Vec<Given>), Error> {
        match is_tensor(file) {
            true => tensor::realise(file, self, files, purpose),
            false if self.def.is_some() => {
                Err(Error::Ignored { flag: "def".to_owned(), why: NO_DEFINITIONS })
            }
            false => file::realise(file, self, files, purpose),
        }
    }

    /// An app with these values.
    pub(crate) fn of_app(
        &self,
        app: &App,
        files: &[String],
        purpose: Purpose,
    ) -> Result<(Subject, Vec<Given>), Error> {
        if self.def.is_some() {
            return Err(Error::Ignored { flag: "def".to_owned(), why: NO_DEFINITIONS });
        }
        let mut settings = Settings::defaults(app);
        set_structure(app, &mut settings, &self.set)?;
        let pipeline = app.built(&settings)?;
        set_params(app, &pipeline, &mut settings, &self.param)?;
        let fixed = set_sizes(app, &mut settings, &self.size)?;
        let mut unset = Vec::new();
        for (_, param) in run_time_params(&pipeline, purpose) {
            if settings.get(&param.name).is_none() && param.usual().is_none() {
                settings.give(&param.name, 0.0);
                unset.push(param.name.clone());
            }
        }
        let shapes = app.shapes_at(&settings);
        let names: Vec<&str> = shapes.inputs.iter().map(|(name, _)| name.as_str()).collect();
        let given = inputs::read(app, &settings, &pipeline, &names, files)?;
        solve_sizes(app, &mut settings, &fixed, &given);
        let subject = Subject { unset, ..Subject::new(app, settings)? };
        let given = fit(&subject, given)?;
        Ok((subject, given))
    }
}

/// Gives 0 to Params that need no value for this purpose. Returns their names.
fn fill(pipeline: &Pipeline, request: &mut Realisation, purpose: Purpose) -> Vec<String> {
    let mut unset = Vec::new();
    for (id, param) in run_time_params(pipeline, purpose) {
        if request.params[id].is_none() {
            request.params[id] = Some(Value::zero(param.ty));
            unset.push(param.name.clone());
        }
    }
    unset
}

/// Whether the error is about sizes or values that the user gave.
pub(crate) fn is_usage(error: &BoundsError) -> bool {
    use BoundsError::{Extent, Missing, ParamRange, ParamType, Position, Rank, TooLarge, Unknown};
    matches!(
        error,
        Extent { .. }
            | Missing { .. }
            | ParamRange { .. }
            | ParamType { .. }
            | Position { .. }
            | Rank { .. }
            | TooLarge { .. }
            | Unknown { .. }
    )
}
