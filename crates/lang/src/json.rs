//! The JSON file format of pipelines.

use serde::{Deserialize, Serialize};

use crate::brief::quoted;
use crate::error::{Fault, PipelineError};
use crate::ids::{FuncId, IdVec, InputId, ParamId, TableId};
use crate::ir::{FuncDecl, InputDecl, Node, ParamDecl, TableDecl};
use crate::pipeline::Pipeline;

const FORMAT: &str = "warploom-pipeline";
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct File {
    format: String,
    version: u32,
    name: String,
    inputs: IdVec<InputId, InputDecl>,
    params: IdVec<ParamId, ParamDecl>,
    funcs: IdVec<FuncId, FuncDecl>,
    outputs: Vec<FuncId>,
    #[serde(default, skip_serializing_if = "IdVec::is_empty")]
    tables: IdVec<TableId, TableDecl>,
    exprs: Vec<Node>,
}

pub(crate) fn write(pipeline: &Pipeline) -> String {
    let file = File {
        format: FORMAT.to_string(),
        version: VERSION,
        name: pipeline.name.clone(),
        inputs: pipeline.inputs.clone(),
        params: pipeline.params.clone(),
        funcs: pipeline.funcs.clone(),
        outputs: pipeline.outputs.clone(),
        tables: pipeline.tables().clone(),
        exprs: pipeline.exprs.nodes().values().cloned().collect(),
    };
    // Serialisation fails only for maps with non-string keys and for failing Serialize
    // implementations.
    serde_json::to_string(&file).unwrap_or_default()
}

pub(crate) fn read(text: &str) -> Result<Pipeline, PipelineError> {
    let malformed = |what: String| PipelineError::from(Fault::Malformed { what });
    let file: File =
        serde_json::from_str(text).map_err(|error| malformed(quoted(&error.to_string()).into_owned()))?;
    if file.format != FORMAT || file.version != VERSION {
        return Err(malformed(format!(
            "it is {} version {}, but this program reads {FORMAT} version {VERSION}",
            quoted(&file.format),
            file.version
        )));
    }
    let File { name, inputs, params, funcs, outputs, tables, exprs, .. } = file;
    Ok(Pipeline::from_parts(name, inputs, params, funcs, outputs, (tables, exprs))?)
}
