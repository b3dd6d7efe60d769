//! `warploom apps`: lists the apps.

use std::io::Write;

use serde::Serialize;
use warploom::app::{App, Setting, Settings};
use warploom::lang::{Pipeline, Region, Type};

use crate::error::Error;
use crate::report::{self, Format};
use crate::settings::build;
use crate::table::{self, Align};

/// List the apps with their inputs, outputs, sizes and parameters
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom apps
  warploom apps --json

Parameters marked with * are fixed when a pipeline is compiled, like sizes. Changing any other parameter
needs no recompilation.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct Listing {
    apps: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    about: &'static str,
    stages: usize,
    inputs: Vec<Array>,
    outputs: Vec<Array>,
    sizes: Vec<Default>,
    structure: Vec<Default>,
    params: Vec<Param>,
}

/// An input or output, at the default sizes.
#[derive(Serialize)]
struct Array {
    name: &'static str,
    types: Vec<Type>,
    region: Region,
}

#[derive(Serialize)]
struct Default {
    name: &'static str,
    default: f64,
}

#[derive(Serialize)]
struct Param {
    name: String,
    #[serde(rename = "type")]
    ty: Type,
    default: Option<f64>,
    range: Option<[f64; 2]>,
    specialised: bool,
}

/// Prints the table of apps.
pub(crate) fn apps(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let apps = apps.iter().map(entry).collect::<Result<Vec<_>, _>>()?;
    if arguments.format.json {
        return report::json(out, "warploom.apps/1", &Listing { apps });
    }
    let titles = [
        ("app", Align::Left),
        ("stages", Align::Right),
        ("inputs", Align::Left),
        ("outputs", Align::Left),
        ("sizes", Align::Left),
        ("structure", Align::Left),
        ("params", Align::Left),
    ];
    let rows: Vec<Vec<String>> = apps.iter().map(Entry::row).collect();
    let mut text = table::whole(&titles, &rows);
    if apps.iter().flat_map(|app| &app.params).any(|param| param.specialised) {
        text += "\n* fixed when the pipeline is compiled, like sizes; changing any other param needs no recompilation\n";
    }
    report::text(out, &text)
}

fn entry(app: &App) -> Result<Entry, Error> {
    let settings = Settings::defaults(app);
    let pipeline = build(app, &settings)?;
    let shapes = (app.shapes)(&settings);
    let input_type = |name: &str| {
        let id = pipeline.input_named(name);
        id.map(|id| pipeline.inputs()[id].ty).into_iter().collect()
    };
    let output_types = |name: &str| {
        let id = pipeline.func_named(name);
        id.map(|id| pipeline.funcs()[id].types.clone()).unwrap_or_default()
    };
    let inputs = shapes.inputs.iter();
    let inputs =
        inputs.map(|&(name, ref region)| Array { name, types: input_type(name), region: region.clone() });
    let outputs = shapes.outputs.iter();
    let outputs =
        outputs.map(|&(name, ref region)| Array { name, types: output_types(name), region: region.clone() });
    Ok(Entry {
        name: app.name,
        about: app.about,
        stages: pipeline.funcs().len(),
        inputs: inputs.collect(),
        outputs: outputs.collect(),
        sizes: defaults(app.sizes),
        structure: defaults(app.structure),
        params: params(app, &pipeline),
    })
}

fn defaults(settings: &[Setting]) -> Vec<Default> {
    settings.iter().map(|setting| Default { name: setting.name, default: setting.default }).collect()
}

/// The Params, in the order in which the app declares them.
fn params(app: &App, pipeline: &Pipeline) -> Vec<Param> {
    let place = |name: &str| app.params.iter().position(|setting| setting.name == name);
    let specialised = pipeline.specialised_params();
    let mut params: Vec<Param> = pipeline
        .params()
        .iter()
        .map(|(id, param)| Param {
            name: param.name.clone(),
            ty: param.ty,
            default: place(&param.name).map(|place| app.params[place].default),
            range: param.range.map(|(low, high)| [low.as_f64(), high.as_f64()]),
            specialised: specialised[id],
        })
        .collect();
    params.sort_by_key(|param| place(&param.name));
    params
}

impl Entry {
    fn row(&self) -> Vec<String> {
        let arrays = |arrays: &[Array]| join(arrays.iter().map(Array::short));
        let defaults =
            |settings: &[Default]| join(settings.iter().map(|s| format!("{}={}", s.name, s.default)));
        vec![
            self.name.to_owned(),
            self.stages.to_string(),
            arrays(&self.inputs),
            arrays(&self.outputs),
            defaults(&self.sizes),
            defaults(&self.structure),
            join(self.params.iter().map(Param::short)),
        ]
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

/// The width at which a column with a list wraps.
const LIST_WIDTH: usize = 24;

fn join(items: impl Iterator<Item = String>) -> String {
    let text = table::wrap(items, LIST_WIDTH);
    if text.is_empty() { "-".to_owned() } else { text }
}
