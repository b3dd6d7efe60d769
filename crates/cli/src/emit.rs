//! The representations of a scheduled pipeline that can be written or printed.

use std::path::Path;

use clap::ValueEnum;
use serde_json::Value as Json;
use warploom::codegen::ir::Program;
use warploom::codegen::printer::{Build, PRINTER};
use warploom::cost::{FEATURES, Featurizer, KernelFeatures, RowSource, StageFeatures, schema_hash};
use warploom::plan::Problem;
use warploom::schedule::{Dag, Schedule};
use warploom::tune::explain::Explanation;

use crate::error::Error;
use crate::report::object;
use crate::writable::{self, make_folder};

/// A kind of text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Emit {
    /// The schedule, in the format that `--schedule` reads
    Schedule,
    /// The kernels as loop nests with their predicted times, as `warploom explain` prints them
    Nest,
    /// The kernels in CUDA C++
    Cuda,
    /// The kernels' features, which are the input of the cost model, as JSON
    Features,
}

/// A pipeline with its schedule and kernels.
pub(crate) struct Scheduled<'a> {
    pub(crate) problem: &'a Problem,
    pub(crate) schedule: &'a Schedule,
    pub(crate) program: &'a Program,
    pub(crate) explanation: &'a Explanation,
}

report! {
    struct Features<'a> = "warploom.features/1" {
        schema_hash: String, "a hash of the names and units of the features; weights files have the same one";
        names: Vec<&'static str>, "the features that the cost model reads";
        units: Vec<&'static str>, "their units";
        kernels: Vec<Kernel<'a>>, "the kernels";
    }

    struct Kernel<'a> = "features kernel" {
        stage: &'a str, "the stage that it is named after";
        launches: f64, "the number of launches";
        blocks: f64, "the blocks of a launch";
        threads: u32, "the threads per block";
        shared_bytes: u32, "shared memory per block";
        registers: u32, "estimated registers per thread";
        local_bytes: f64, "estimated local memory per thread";
        barriers: f64, "the barriers of a block";
        read_bytes: f64, "what it reads at least";
        written_bytes: f64, "what it writes at least";
        nodes: f64, "the size of its code";
        rows: Vec<Row>, "its stages";
    }

    struct Row = "features row" {
        stage: String, "the stage or input";
        kind: &'static str, "`stage`, `inlined` or `staged`";
        nest: usize, "the loop nest that it belongs to";
        values: Vec<f64>, "one value per feature, in the order of `names`";
    }
}

impl Emit {
    /// The extension of its file.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Emit::Schedule => "schedule",
            Emit::Nest => "nest.txt",
            Emit::Cuda => "cu",
            Emit::Features => "features.json",
        }
    }

    /// The text, which ends with a newline.
    pub(crate) fn text(self, of: &Scheduled<'_>) -> Result<String, Error> {
        Ok(match self {
            Emit::Schedule => of.schedule.to_text(of.problem.pipeline()),
            Emit::Nest => of.explanation.to_string(),
            Emit::Cuda => PRINTER.print(of.program, Build::Timing),
            Emit::Features => {
                serde_json::to_string_pretty(&object(&features(of))).map_err(std::io::Error::from)? + "\n"
            }
        })
    }

    /// The same content as a JSON value.
    pub(crate) fn json(self, of: &Scheduled<'_>) -> Result<Json, Error> {
        Ok(match self {
            Emit::Nest => serde_json::to_value(of.explanation).map_err(std::io::Error::from)?,
            Emit::Features => serde_json::to_value(object(&features(of))).map_err(std::io::Error::from)?,
            Emit::Schedule | Emit::Cuda => Json::String(self.text(of)?),
        })
    }
}

/// Writes texts as files called `name`, and returns their paths.
pub(crate) fn write(
    folder: &Path,
    name: &str,
    kinds: &[Emit],
    of: &Scheduled<'_>,
) -> Result<Vec<String>, Error> {
    make_folder(folder)?;
    let file = |emit: &Emit| {
        writable::write(&folder.join(format!("{name}.{}", emit.extension())), emit.text(of)?.as_bytes())
    };
    kinds.iter().map(file).collect()
}

fn features<'a>(of: &Scheduled<'a>) -> Features<'a> {
    let kernels = Featurizer::new(of.problem).of_schedule(of.schedule);
    let stages = of.explanation.kernels.iter().map(|kernel| kernel.stage.as_str());
    Features {
        schema_hash: format!("{:016x}", schema_hash()),
        names: FEATURES.iter().map(|feature| feature.name).collect(),
        units: FEATURES.iter().map(|feature| feature.unit).collect(),
        kernels: kernels
            .iter()
            .zip(stages)
            .map(|(kernel, stage)| Kernel::new(of.problem.dag(), kernel, stage))
            .collect(),
    }
}

impl<'a> Kernel<'a> {
    fn new(dag: &Dag, kernel: &KernelFeatures, stage: &'a str) -> Kernel<'a> {
        let row = |row: &warploom::cost::StageRow| {
            let (stage, kind) = match row.source {
                RowSource::Stage(stage) => (&dag.stages()[stage].name, "stage"),
                RowSource::Inlined(stage) => (&dag.stages()[stage].name, "inlined"),
                RowSource::Staged(node) => (&dag.nodes()[node].name, "staged"),
            };
            let values: [f64; StageFeatures::COUNT] = row.features.values();
            Row { stage: stage.clone(), kind, nest: row.nest, values: values.to_vec() }
        };
        Kernel {
            stage,
            launches: kernel.launches,
            blocks: kernel.blocks,
            threads: kernel.threads,
            shared_bytes: kernel.shared_bytes,
            registers: kernel.registers,
            local_bytes: kernel.local_bytes,
            barriers: kernel.barriers,
            read_bytes: kernel.read_bytes,
            written_bytes: kernel.written_bytes,
            nodes: kernel.nodes,
            rows: kernel.rows.iter().map(row).collect(),
        }
    }
}
