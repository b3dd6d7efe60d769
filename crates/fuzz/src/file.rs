//! Case files: one self-contained JSON object, formatted for readability.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use thiserror::Error;
use warploom_lang::files::{self, ReadError};
use warploom_lang::{BoundsError, Pipeline, PipelineError, Realisation, Region, Value, infer};
use warploom_schedule::{Schedule, ScheduleErrors};

use crate::case::Case;
use crate::check::Failure;

const FORMAT: &str = "warploom-case";
const VERSION: u32 = 1;

/// Maximum line width.
const WIDTH: usize = 110;

/// Why a case file could not be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaseError {
    /// The file could not be read.
    #[error("cannot read {}: {error}; check the path", path.display())]
    Read {
        /// The case file.
        path: PathBuf,
        /// The error from the operating system.
        error: io::Error,
    },
    /// The file is too large, or not a regular file.
    #[error(transparent)]
    Refused(ReadError),
    /// The file could not be written.
    #[error("cannot write {}: {error}; check the folder and the free space", path.display())]
    Write {
        /// The case file.
        path: PathBuf,
        /// The error from the operating system.
        error: io::Error,
    },
    /// The file does not contain a valid case.
    #[error("{} does not contain a case: {problem}", path.display())]
    Content {
        /// The case file.
        path: PathBuf,
        /// Why the content is invalid.
        problem: Box<ContentError>,
    },
}

/// Why a text is not a valid case.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ContentError {
    /// The JSON is malformed or has the wrong structure.
    #[error("{0}; write such files with Case::save")]
    Json(#[from] serde_json::Error),
    /// It is a different format, or a different version.
    #[error("it is {format} version {version}, but this program reads {FORMAT} version {VERSION}")]
    Version {
        /// The format that the file declares.
        format: String,
        /// The version that the file declares.
        version: u32,
    },
    /// The pipeline is malformed.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// The boxes or Params do not fit the pipeline.
    #[error(transparent)]
    Request(#[from] BoundsError),
    /// The schedule cannot be parsed.
    #[error("its schedule cannot be read:\n{0}")]
    Schedule(#[from] ScheduleErrors),
}

/// The outcome of a case when it was saved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Seen {
    /// Name of the device that kernels were built for.
    pub device: String,
    /// Name of the failure's kind, or `passed`.
    pub kind: String,
    /// The failure message, split into lines.
    pub message: Vec<String>,
}

impl Seen {
    /// The outcome of a failed case.
    pub fn failed(device: &str, failure: &Failure) -> Seen {
        let message = failure.to_string().lines().map(str::to_owned).collect();
        Seen { device: device.to_owned(), kind: failure.kind().name().to_owned(), message }
    }
}

/// The file format. The field `listing` is written for readers and ignored when the file is read.
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
    /// Reads a case file, with the outcome stored in it.
    pub fn load(path: impl AsRef<Path>) -> Result<(Case, Seen), CaseError> {
        let path = path.as_ref();
        let text = files::read_text(path).map_err(|error| match error {
            ReadError::System { path, error } => CaseError::Read { path, error },
            refused => CaseError::Refused(refused),
        })?;
        Case::parse(&text)
            .map_err(|problem| CaseError::Content { path: path.to_path_buf(), problem: Box::new(problem) })
    }

    /// Writes a case file with an outcome. Creates the folder if necessary.
    pub fn save(&self, seen: &Seen, path: impl AsRef<Path>) -> Result<(), CaseError> {
        let path = path.as_ref();
        let written = path.parent().map_or(Ok(()), fs::create_dir_all);
        let written = written.and_then(|()| fs::write(path, self.to_text(seen)));
        written.map_err(|error| CaseError::Write { path: path.to_path_buf(), error })
    }

    /// Parses the text of a case file.
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

/// Converts to JSON. Only maps without string keys fail, and a case has none.
fn json(value: &impl Serialize) -> Json {
    serde_json::to_value(value).unwrap_or_default()
}

/// Formats a value on one line if it fits, else with one line per element. A list with a string
/// that contains a space is a text; it always has one line per element.
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
