//! `warploom apps`: lists the apps.

use std::io::Write;
use std::path::Path;

use warploom::app::{App, AppError, Setting, Settings, Sizes, Subject};
use warploom::fuzz::catch;
use warploom::lang::draft::Draft;
use warploom::lang::{Pipeline, Region, Type};

use crate::error::Error;
use crate::names::find_app;
use crate::pipeline::is_file;
use crate::report::{self, Declared as _, Format};
use crate::settings::set_structure;
use crate::show;
use crate::table::{PlainText as _, Table};
use crate::writable::{Output, write};

/// List the apps with their inputs, outputs, sizes and parameters, or export one
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom apps
  warploom apps --json
  warploom apps --export harris.json                              the pipeline of harris, as a file that all commands take
  warploom apps --export local_laplacian=small.json --set pyramid_levels=3

Parameters marked with * are fixed when a pipeline is compiled, like sizes. Changing any other parameter
needs no recompilation.")]
pub(crate) struct Arguments {
    /// Write the pipeline of an app to a file; without APP, of the app that the file is named after
    #[arg(long, value_name = "[APP=]FILE")]
    export: Option<String>,
    /// The value of a structure parameter of the exported app. Can be repeated
    #[arg(long, value_name = "NAME=VALUE", requires = "export")]
    set: Vec<String>,
    #[command(flatten)]
    format: Format,
}

report! {
    /// An app that was written to a file.
    struct Exported = "warploom.exported/1" {
        app: String, "the app";
        file: String, "the file with its pipeline";
        stages: usize, "its Funcs";
        bytes: usize, "the size of the file";
        size: String, "the value of `--size` that gives the pipeline the app's default sizes";
    }

    struct Listing = "warploom.apps/1" {
        apps: Vec<Entry>, "in the order of the suite, the basic ones last";
        failed: Vec<Failed>, "the apps whose pipelines cannot be built; then the exit code is 3";
    }

    struct Failed = "failed app" {
        name: String, "the name of the app";
        error: String, "what is wrong, for people";
    }

    struct Entry = "app" {
        name: String, "its name";
        about: String, "what it does";
        stages: usize, "its Funcs";
        inputs: Vec<Array>, "at the default sizes";
        outputs: Vec<Array>, "at the default sizes";
        sizes: Vec<Default>, "what `--size` sets";
        structure: Vec<Default>, "what `--set` sets";
        params: Vec<Param>, "what `--param` sets";
    }

    /// An input or output, at the default sizes.
    struct Array = "app array" {
        name: String, "its name";
        types: Vec<Type>, "`f32`, `u8` and so on; several for a tuple";
        region: Region, "its box";
    }

    struct Default = "app default" {
        name: String, "its name";
        default: f64, "its value if none is given";
    }

    struct Param = "app param" {
        name: String, "its name";
        #[serde(rename = "type")]
        ty: Type, "`f32`, `i32` and so on";
        default: Option<f64>, "its value if none is given";
        range: Option<[f64; 2]>, "the smallest and the largest value that it may have";
        specialised: bool, "whether it is fixed when the pipeline is compiled, like a size";
    }
}

/// Prints the table of apps.
pub(crate) fn apps(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    if let Some(export) = &arguments.export {
        return write_app(apps, export, arguments, out);
    }
    let (mut listed, mut failed) = (Vec::new(), Vec::new());
    for app in apps {
        let name = app.name.clone();
        match catch(|| entry(app)) {
            Ok(Ok(entry)) => listed.push(entry),
            Ok(Err(error)) => failed.push(Failed { name, error: error.to_string() }),
            Err(panic) => failed.push(Failed { error: format!("`{name}` panicked: {panic}"), name }),
        }
    }
    let errors: Vec<String> = failed.iter().map(|failed| failed.error.clone()).collect();
    let listing = Listing { apps: listed, failed };
    report::print(out, arguments.format, &listing, || listing.text())?;
    if errors.is_empty() { Ok(()) } else { Err(Error::BrokenApps { errors }) }
}

impl Arguments {
    pub(crate) fn outputs(&self) -> Vec<Output<'_>> {
        self.export.iter().map(|export| Output::File(Path::new(exported(export).1))).collect()
    }
}

/// Splits `[APP=]FILE`.
fn exported(export: &str) -> (String, &str) {
    let stem = || Path::new(export).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    export.split_once('=').map_or_else(|| (stem(), export), |(name, file)| (name.to_owned(), file))
}

/// Writes the pipeline of `[APP=]FILE`, with the app's values of Params as defaults.
fn write_app(apps: &[App], export: &str, arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let (name, file) = exported(export);
    let app = find_app(apps, &name)?;
    if !is_file(file) {
        return Err(Error::ExportName { file: file.to_owned() });
    }
    let mut settings = Settings::defaults(app);
    set_structure(app, &mut settings, &arguments.set)?;
    let subject = Subject::new(app, settings)?;
    let mut draft = Draft::of(&subject.pipeline);
    for (param, value) in draft.params.values_mut().zip(subject.request.params.values()) {
        param.default = *value;
    }
    let pipeline = draft.finish().map_err(|error| AppError::Pipeline { app: app.name.clone(), error })?;
    let json = pipeline.to_json();
    let (app, file) = (app.name.clone(), write(Path::new(file), json.as_bytes())?);
    let size = Sizes::of_boxes(&pipeline, &subject.request).as_argument().unwrap_or_default();
    let exported = Exported { app, file, stages: pipeline.funcs().len(), bytes: json.len(), size };
    if arguments.format.json {
        return report::json(out, Exported::NAME, &exported);
    }
    let Exported { stages, size, .. } = &exported;
    let file = show::path(&exported.file);
    report::verbatim(
        out,
        &format!("{file}: {stages} stages; use it as in: warploom compile {file} --size {size}\n"),
    )
}

fn entry(app: &App) -> Result<Entry, Error> {
    let settings = Settings::defaults(app);
    let pipeline = app.built(&settings)?;
    let shapes = app.shapes_at(&settings);
    let input_type = |name: &str| {
        let id = pipeline.input_named(name);
        id.map(|id| pipeline.inputs()[id].ty).into_iter().collect()
    };
    let output_types = |name: &str| {
        let id = pipeline.func_named(name);
        id.map(|id| pipeline.funcs()[id].types.clone()).unwrap_or_default()
    };
    let inputs = shapes.inputs.iter();
    let inputs = inputs.map(|(name, region)| Array {
        name: name.clone(),
        types: input_type(name),
        region: region.clone(),
    });
    let outputs = shapes.outputs.iter();
    let outputs = outputs.map(|(name, region)| Array {
        name: name.clone(),
        types: output_types(name),
        region: region.clone(),
    });
    Ok(Entry {
        name: app.name.clone(),
        about: app.about.clone(),
        stages: pipeline.funcs().len(),
        inputs: inputs.collect(),
        outputs: outputs.collect(),
        sizes: defaults(&app.sizes),
        structure: defaults(&app.structure),
        params: params(app, &pipeline),
    })
}

fn defaults(settings: &[Setting]) -> Vec<Default> {
    settings.iter().map(|setting| Default { name: setting.name.clone(), default: setting.default }).collect()
}

/// The Params, in the order in which the app declares them.
fn params(app: &App, pipeline: &Pipeline) -> Vec<Param> {
    let place = |name: &str| app.param_settings().iter().position(|setting| setting.name == name);
    let specialised = pipeline.specialised_params();
    let mut params: Vec<Param> = pipeline
        .params()
        .iter()
        .map(|(id, param)| Param {
            name: param.name.clone(),
            ty: param.ty,
            default: place(&param.name).map(|place| app.param_settings()[place].default),
            range: param.range.map(|(low, high)| [low.as_f64(), high.as_f64()]),
            specialised: specialised[id],
        })
        .collect();
    params.sort_by_key(|param| place(&param.name));
    params
}

impl Listing {
    fn text(&self) -> String {
        let text = Table::of(&self.apps)
            .left("app", |app| app.name.clone())
            .right("Funcs", |app| app.stages.to_string())
            .left("inputs and outputs", Entry::arrays)
            .left("settings", Entry::settings)
            .text();
        let fixed = self.apps.iter().flat_map(|app| &app.params).any(|param| param.specialised);
        let note = "\n* fixed when the pipeline is compiled, like sizes; changing any other param needs no recompilation\n";
        if fixed { text + note } else { text }
    }
}

impl Entry {
    fn arrays(&self) -> String {
        let arrays = |arrays: &[Array]| arrays.iter().map(Array::short).collect::<Vec<_>>().join(" ");
        format!("{} -> {}", arrays(&self.inputs), arrays(&self.outputs)).trim_start().to_owned()
    }

    /// One line for each flag that sets something.
    fn settings(&self) -> String {
        let defaults =
            |settings: &[Default]| settings.iter().map(|s| format!("{}={}", s.name, s.default)).collect();
        let settings: [(&str, Vec<String>); 3] = [
            ("size", defaults(&self.sizes)),
            ("set", defaults(&self.structure)),
            ("param", self.params.iter().map(Param::short).collect()),
        ];
        let settings = settings.iter().filter(|(_, settings)| !settings.is_empty());
        settings
            .map(|(flag, settings)| format!("{flag} {}", settings.join(" ")))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl Array {
    /// `input:f32[3]`: the name, the types and the number of dimensions.
    fn short(&self) -> String {
        let types: Vec<&str> = self.types.iter().map(|ty| ty.name()).collect();
        format!("{}:{}[{}]", self.name, types.join("+"), self.region.dimensions())
    }
}

impl Param {
    fn short(&self) -> String {
        let mark = if self.specialised { "*" } else { "" };
        match self.default {
            Some(default) => format!("{}{mark}={}", self.name, crate::show::number(default)),
            None => format!("{}{mark}", self.name),
        }
    }
}
