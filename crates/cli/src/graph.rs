//! `warploom graph`: prints which stages of an app read which.

use std::io::Write;

use serde::Serialize;
use warploom::app::{App, Settings};
use warploom::lang::ir::{FuncDecl, NodeKind};
use warploom::lang::{Pipeline, Type, infer};
use warploom::schedule::Dag;

use crate::error::Error;
use crate::names::find_app;
use crate::pipeline::{Subject, Which};
use crate::report::{self, Format};
use crate::settings::set_structure;
use crate::voice;

/// Print the graph of an app's stages
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom graph harris
  warploom graph local_laplacian --set pyramid_levels=3
  warploom graph harris --dot | dot -Tsvg -o harris.svg")]
pub(crate) struct Arguments {
    /// The app; `warploom apps` lists them
    app: String,
    /// Print it in Graphviz's DOT language
    #[arg(long, conflicts_with = "json")]
    dot: bool,
    /// The value of a structure parameter. Can be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct Graph<'a> {
    app: &'static str,
    inputs: Vec<&'a str>,
    funcs: Vec<Func<'a>>,
}

#[derive(Serialize)]
struct Func<'a> {
    name: &'a str,
    dims: &'a [String],
    types: &'a [Type],
    updates: usize,
    output: bool,
    /// The names of the inputs and Funcs that it reads.
    reads: Vec<&'a str>,
}

pub(crate) fn graph(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let app = find_app(apps, &arguments.app)?;
    let mut settings = Settings::defaults(app);
    set_structure(app, &mut settings, &arguments.set)?;
    let Subject { pipeline, request, .. } = Which::of_settings(app, settings)?;
    if let Ok(regions) = infer(&pipeline, &request) {
        voice::warnings(&pipeline, &regions);
    }
    if arguments.format.json {
        return report::json(out, "warploom.graph/1", &Graph::new(app, &pipeline));
    }
    let dag = Dag::new(&pipeline);
    report::text(out, &if arguments.dot { dag.to_dot() } else { dag.to_text() })
}

impl<'a> Graph<'a> {
    fn new(app: &App, pipeline: &'a Pipeline) -> Graph<'a> {
        let inputs = pipeline.inputs().values().map(|input| input.name.as_str());
        let funcs = pipeline.funcs().iter().map(|(id, func)| Func {
            name: &func.name,
            dims: &func.dims,
            types: &func.types,
            updates: func.stages.len() - 1,
            output: pipeline.outputs().contains(&id),
            reads: reads(pipeline, func),
        });
        Graph { app: app.name, inputs: inputs.collect(), funcs: funcs.collect() }
    }
}

/// The names of the inputs and other Funcs that a Func reads, without duplicates.
fn reads<'a>(pipeline: &'a Pipeline, func: &FuncDecl) -> Vec<&'a str> {
    let roots = func.stages.iter().flat_map(|stage| stage.roots());
    let mut names = Vec::new();
    for id in pipeline.exprs().reachable(roots) {
        let name = match pipeline.exprs()[id].kind {
            NodeKind::Load(input) => pipeline.inputs()[input].name.as_str(),
            NodeKind::Call(callee, _) => pipeline.funcs()[callee].name.as_str(),
            _ => continue,
        };
        if name != func.name && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
