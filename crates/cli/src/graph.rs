//! `warploom graph`: prints which stages of a pipeline read which.

use std::io::Write;

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

report! {
    struct Graph<'a> = "warploom.graph/1" {
        app: &'a str, "the app";
        inputs: Vec<&'a str>, "the names of its inputs";
        funcs: Vec<Func<'a>>, "its Funcs in the order of their definition";
    }

    struct Func<'a> = "graph func" {
        name: &'a str, "its name";
        dims: &'a [String], "its dimensions";
        types: &'a [Type], "its types; several for a tuple";
        updates: usize, "the number of update stages";
        output: bool, "whether it is an output of the pipeline";
        reads: Vec<&'a str>, "the inputs and Funcs that it reads";
    }
}

pub(crate) fn graph(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let (pipeline, request) = arguments.which.pipeline(apps)?;
    if let Some(Ok(regions)) = request.map(|request| infer(&pipeline, &request)) {
        voice::warnings(&pipeline, &regions);
    }
    match arguments.dot {
        true => report::verbatim(out, &Dag::new(&pipeline).to_dot()),
        false => {
            report::print(out, arguments.format, &Graph::new(&pipeline), || Dag::new(&pipeline).to_text())
        }
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
