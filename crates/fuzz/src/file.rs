//! Case files: one JSON object that holds everything, laid out for people.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use thiserror::Error;
use warploom_lang::files::{self, ReadError};
use warploom_lang::{BoundsError, Pipeline, PipelineError, Realisation, Region, Value, infer};
use warploom_schedule::schedule::{Schedule, ScheduleErrors};

use crate::case::Case;
use crate::check::Failure;

const FORMAT: &str = "warploom-case";
const VERSION: u32 = 1;

/// Lines are broken where they would be longer than this.
const WIDTH: usize = 110;

/// Why a case file could not be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaseError {
    /// The file could not be read.
    #[error("cannot read {}: {error}; check the path", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The file is too large, or none that ends.
    #[error(transparent)]
    Refused(ReadError),
    /// The file could not be written.
    #[error("cannot write {}: {error}; check the folder and the free space", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It is no case.
    #[error("{} holds no case: {problem}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: Box<ContentError>,
    },
}

/// Why a text is no case.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ContentError {
    /// It is not the JSON that cases are.
    #[error("{0}; write such files with Case::save")]
    Json(#[from] serde_json::Error),
    /// It is something else, or from another version.
    #[error("it is {format} version {version}, this program reads {FORMAT} version {VERSION}")]
    Version {
        /// What it says it is.
        format: String,
        /// The version it has.
        version: u32,
    },
    /// Its pipeline is not well formed.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// Its boxes or Params don't fit the pipeline.
    #[error(transparent)]
    Request(#[from] BoundsError),
    /// Its schedule cannot be read.
    #[error("its schedule cannot be read:\n{0}")]
    Schedule(#[from] ScheduleErrors),
}

/// What a case did when it was written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Seen {
    /// The device that kernels were made for.
    pub device: String,
    /// The kind of failure, `passed` if there was none.
    pub kind: String,
    /// The failure in words, one line each.
    pub message: Vec<String>,
}

impl Seen {
    /// What a failed case says.
    pub fn failed(device: &str, failure: &Failure) -> Seen {
        let message = failure.to_string().lines().map(str::to_owned).collect();
        Seen { device: device.to_owned(), kind: failure.kind().name().to_owned(), message }
    }
}

/// The file's form; `listing` is for readers only.
#[derive(Deserialize)]
struct File {
    format: String,
    version: u32,
    seen: Seen,
    seed: u64,
    inputs: BTreeMap<String, Region>,
    outputs: BTreeMap<String, Region>,
    params: BTreeMap<String, Value>,
    schedule: Vec<String>,
    pipeline: Json,
}

impl Case {
    /// Reads a case, and what it did when it was written.
    pub fn load(path: impl AsRef<Path>) -> Result<(Case, Seen), CaseError> {
        let path = path.as_ref();
        let text = files::read_text(path).map_err(|error| match error {
            ReadError::System { path, error } => CaseError::Read { path, error },
            refused => CaseError::Refused(refused),
        })?;
        Case::parse(&text)
            .map_err(|problem| CaseError::Content { path: path.to_path_buf(), problem: Box::new(problem) })
    }

    /// Writes a case and what it does; the folder is made if there is none.
    pub fn save(&self, seen: &Seen, path: impl AsRef<Path>) -> Result<(), CaseError> {
        let path = path.as_ref();
        let written = path.parent().map_or(Ok(()), fs::create_dir_all);
        let written = written.and_then(|()| fs::write(path, self.to_text(seen)));
        written.map_err(|error| CaseError::Write { path: path.to_path_buf(), error })
    }

    /// Reads the text of a case file.
    pub fn parse(text: &str) -> Result<(Case, Seen), ContentError> {
        let file: File = serde_json::from_str(text)?;
        if file.format != FORMAT || file.version != VERSION {
            return Err(ContentError::Version { format: file.format, version: file.version });
        }
        let pipeline = Pipeline::from_json(&file.pipeline.to_string())?;
        let mut request = Realisation::new(&pipeline);
        for (name, region) in file.inputs {
            request = request.input(&name, region);
        }
        for (name, region) in file.outputs {
            request = request.output(&name, region);
        }
        for (name, value) in file.params {
            request = request.param(&name, value);
        }
        infer(&pipeline, &request)?;
        let schedule = Schedule::parse(&file.schedule.join("\n"), &pipeline)?;
        Ok((Case { pipeline, request, schedule, seed: file.seed }, file.seen))
    }

    /// The text of a case file.
    pub fn to_text(&self, seen: &Seen) -> String {
        let Case { pipeline, request, schedule, seed } = self;
        let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let inputs = pipeline.inputs().values().map(|input| &input.name).zip(request.inputs.values());
        let outputs = pipeline.outputs().iter().map(|id| &pipeline.funcs()[*id].name).zip(&request.outputs);
        let params = pipeline.params().values().map(|param| &param.name).zip(request.params.values());
        let fields = [
            ("format", json(&FORMAT)),
            ("version", json(&VERSION)),
            ("seen", json(seen)),
            ("listing", json(&lines(pipeline.to_string()))),
            ("schedule", json(&lines(schedule.to_text(pipeline)))),
            ("inputs", json(&inputs.collect::<BTreeMap<_, _>>())),
            ("outputs", json(&outputs.collect::<BTreeMap<_, _>>())),
            ("params", json(&params.collect::<BTreeMap<_, _>>())),
            ("seed", json(seed)),
            ("pipeline", pipeline.to_json().parse().unwrap_or_default()),
        ];
        let fields = fields.map(|(name, value)| format!("  \"{name}\": {}", laid_out(&value, 2)));
        format!("{{\n{}\n}}\n", fields.join(",\n"))
    }
}

/// Nothing of a case can fail here: only maps without string keys do.
fn json(value: &impl Serialize) -> Json {
    serde_json::to_value(value).unwrap_or_default()
}

/// A value in one line where it fits, with one line an element where it does not. A list of strings with spaces is
/// a text, whose lines stay lines.
fn laid_out(value: &Json, indent: usize) -> String {
    let inner = indent + 2;
    let short = value.to_string();
    let is_line = |item: &Json| item.as_str().is_some_and(|text| text.contains(' '));
    let is_text = value.as_array().is_some_and(|items| items.iter().any(is_line));
    let broken = is_text || indent + short.len() > WIDTH;
    let (open, elements, close): (_, Vec<String>, _) = match value {
        Json::Array(items) if broken => ('[', items.iter().map(|item| laid_out(item, inner)).collect(), ']'),
        Json::Object(fields) if broken => {
            let field =
                |(name, value): (&String, &Json)| format!("{}: {}", json(name), laid_out(value, inner));
            ('{', fields.iter().map(field).collect(), '}')
        }
        _ => return short,
    };
    let elements: Vec<String> = elements.iter().map(|element| format!("{:inner$}{element}", "")).collect();
    format!("{open}\n{}\n{:indent$}{close}", elements.join(",\n"), "")
}
