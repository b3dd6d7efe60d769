//! `warploom graph`: prints which stages of a pipeline read which.

use std::io::Write;

use serde::Serialize;
use warploom::app::App;
use warploom::lang::ir::{FuncDecl, NodeKind};
use warploom::lang::{Pipeline, Type, infer};
use warploom::schedule::Dag;

use crate::error::Error;
use crate::pipeline::Which;
use crate::report::{self, Format};
use crate::voice;

/// Print the graph of a pipeline's stages
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom graph harris
  warploom graph local_laplacian --set pyramid_levels=3
  warploom graph mine.json                      a pipeline that Pipeline::to_json wrote; needs no sizes
  warploom graph harris --dot | dot -Tsvg -o harris.svg")]
pub(crate) struct Arguments {
    #[command(flatten)]
    which: Which,
    /// Print it in Graphviz's DOT language
    #[arg(long, conflicts_with = "json")]
    dot: bool,
    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct Graph<'a> {
    app: &'a str,
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
    let (pipeline, request) = arguments.which.pipeline(apps)?;
    if let Some(Ok(regions)) = request.map(|request| infer(&pipeline, &request)) {
        voice::warnings(&pipeline, &regions);
    }
    if arguments.format.json {
        return report::json(out, "warploom.graph/1", &Graph::new(&pipeline));
    }
    let dag = Dag::new(&pipeline);
    match arguments.dot {
        true => report::verbatim(out, &dag.to_dot()),
        false => report::text(out, &dag.to_text()),
    }
}

impl<'a> Graph<'a> {
    fn new(pipeline: &'a Pipeline) -> Graph<'a> {
        let inputs = pipeline.inputs().values().map(|input| input.name.as_str());
        let funcs = pipeline.funcs().iter().map(|(id, func)| Func {
            name: &func.name,
            dims: &func.dims,
            types: &func.types,
            updates: func.stages.len() - 1,
            output: pipeline.outputs().contains(&id),
            reads: reads(pipeline, func),
        });
        Graph { app: pipeline.name(), inputs: inputs.collect(), funcs: funcs.collect() }
    }
}

/// The names of the inputs and other Funcs that a Func reads, without duplicates.
fn reads<'a>(pipeline: &'a Pipeline, func: &FuncDecl) -> Vec<&'a str> {
    let roots = func.stages.iter().flat_map(|stage| stage.roots());
    let mut names = Vec::new();
    for id in pipeline.exprs().reachable(roots) {
        let name = match pipeline.exprs()[id].kind {
            NodeKind::Load(input) => pipeline.inputs()[input].name.as_str(),
            NodeKind::Table(table) => pipeline.tables()[table].name.as_str(),
            NodeKind::Call(callee, _) => pipeline.funcs()[callee].name.as_str(),
            _ => continue,
        };
        if name != func.name && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
