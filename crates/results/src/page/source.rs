//! The source files of a page.

use std::io::Read;
use std::path::Path;

use warploom::date;
#[cfg(feature = "farm")]
use warploom::farm::history::History;
use warploom::lang::files;
use warploom::records;
use warploom::show;
use warploom::tune::records::{Problem, Records, Trial};

#[cfg(feature = "farm")]
use super::farm;
use crate::error::ResultsError;
use crate::report::Declared as _;
use crate::suite::{apps, operators, strategies};

/// The magic bytes of SQLite files.
const DATABASE: &[u8] = b"SQLite format 3\0";

/// The starts of the schemas of results.
const SUITE: &str = "warploom.suite/";
const OPERATORS: &str = "warploom.operators/";
const STRATEGIES: &str = "warploom.strategies/";

/// A source file and its content.
pub struct Source {
    /// The path as given on the command line.
    pub file: String,
    pub(super) content: Content,
}

pub(super) enum Content {
    /// A records database, its problems, and what a farm's workers have done if it is on a server.
    Records {
        records: Records,
        problems: Vec<Tried>,
        #[cfg(feature = "farm")]
        farm: Option<History>,
    },
    /// Results of the suite.
    Suite(Box<apps::Report>),
    /// Results of the set of operators.
    Operators(Box<operators::Report>),
    /// A comparison of strategies.
    Strategies(Box<strategies::Report>),
}

pub(super) struct Tried {
    pub problem: Problem,
    pub trials: Vec<Trial>,
}

impl Source {
    /// Reads a file and detects its format.
    ///
    /// # Errors
    /// If it cannot be read, or holds no results.
    pub fn read(path: &Path) -> Result<Source, ResultsError> {
        let file = records::shown(path);
        let nothing = || ResultsError::NothingToReport { file: file.clone() };
        let content = match records::is_server(path)? || is_database(path)? {
            true => read_records(path)?,
            false => match files::read(path, files::TEXT)? {
                bytes if bytes.trim_ascii().is_empty() => return Err(nothing()),
                bytes => read_results(&file, &bytes)?,
            },
        };
        let empty = match &content {
            Content::Records { problems, .. } => problems.is_empty(),
            Content::Suite(results) => results.apps.is_empty(),
            Content::Operators(results) => results.rows.is_empty(),
            Content::Strategies(results) => results.comparison.subjects.is_empty(),
        };
        if empty { Err(nothing()) } else { Ok(Source { file, content }) }
    }

    pub(super) fn devices(&self) -> Vec<String> {
        match &self.content {
            Content::Records { problems, .. } => {
                problems.iter().map(|tried| tried.problem.device.clone()).collect()
            }
            Content::Suite(results) => vec![results.device.clone()],
            Content::Operators(results) => vec![results.device.clone()],
            Content::Strategies(results) => vec![results.comparison.device.clone()],
        }
    }

    pub(super) fn versions(&self) -> Vec<String> {
        match &self.content {
            Content::Records { problems, .. } => {
                let trials = problems.iter().flat_map(|tried| &tried.trials);
                trials.flat_map(|trial| trial.sample.versions.clone()).collect()
            }
            Content::Suite(results) => results.versions.clone(),
            Content::Operators(results) => results.versions.clone(),
            Content::Strategies(results) => results.versions.clone(),
        }
    }

    /// The dates of its measurements.
    pub(super) fn dates(&self) -> Vec<String> {
        match &self.content {
            Content::Records { problems, .. } => problems.iter().flat_map(Tried::dates).collect(),
            Content::Suite(results) => vec![results.date.clone()],
            Content::Operators(results) => vec![results.date.clone()],
            Content::Strategies(results) => vec![results.date.clone()],
        }
    }
}

impl Content {
    /// A few words about its content.
    pub fn summary(&self) -> String {
        match self {
            Content::Records { problems, .. } => {
                let trials = problems.iter().map(|tried| tried.trials.len()).sum();
                format!("{} of {}", show::count(trials, "trial"), show::count(problems.len(), "problem"))
            }
            Content::Suite(results) => {
                format!("the suite, {}, {}", results.mode, show::count(results.apps.len(), "app"))
            }
            Content::Operators(results) => {
                format!("operators, {}, {}", results.mode, show::count(results.rows.len(), "row"))
            }
            Content::Strategies(results) => {
                format!("strategies, {}", show::count(results.comparison.subjects.len(), "subject"))
            }
        }
    }
}

impl Tried {
    /// The first and last date of its measurements.
    pub(super) fn dates(&self) -> Vec<String> {
        let times = || self.trials.iter().map(|trial| trial.measured_at);
        times().min().into_iter().chain(times().max()).map(date::of).collect()
    }
}

fn is_database(path: &Path) -> Result<bool, ResultsError> {
    let unreadable = |error| ResultsError::Read { path: path.display().to_string(), error };
    let mut start = Vec::new();
    let opened = files::open(path)?.take(DATABASE.len() as u64).read_to_end(&mut start);
    opened.map_err(unreadable)?;
    Ok(start == DATABASE)
}

fn read_records(path: &Path) -> Result<Content, ResultsError> {
    let records = records::open_existing(path)?;
    let mut problems = Vec::new();
    for problem in records.problems()? {
        let trials = records.trials(Some(problem.id))?;
        problems.push(Tried { problem, trials });
    }
    Ok(Content::Records {
        records,
        problems,
        #[cfg(feature = "farm")]
        farm: farm::read(path)?,
    })
}

fn read_results(file: &str, bytes: &[u8]) -> Result<Content, ResultsError> {
    #[derive(serde::Deserialize)]
    struct Form {
        schema: String,
    }
    let form: Option<Form> = serde_json::from_slice(bytes).ok();
    let known = |form: &Form| [SUITE, OPERATORS, STRATEGIES].iter().any(|name| form.schema.starts_with(name));
    let Some(Form { schema }) = form.filter(known) else {
        return Err(ResultsError::NotReported { file: file.to_owned() });
    };
    let failed =
        |error: String| ResultsError::Results { file: file.to_owned(), schema: schema.clone(), error };
    if schema.starts_with(OPERATORS) {
        let results = operators::Report::parse(bytes).map_err(failed)?;
        return Ok(Content::Operators(Box::new(results)));
    }
    if schema.starts_with(STRATEGIES) {
        if schema != strategies::Report::NAME {
            return Err(failed(format!("this program reads `{}`", strategies::Report::NAME)));
        }
        let results = serde_json::from_slice(bytes).map_err(|error| failed(error.to_string()))?;
        return Ok(Content::Strategies(Box::new(results)));
    }
    match version(&schema).zip(version(apps::Report::NAME)) {
        _ if schema == apps::Report::NAME => {}
        Some((written, read)) if written < read => {
            return Err(ResultsError::OldResults { file: file.to_owned(), schema });
        }
        _ => return Err(failed(format!("this program reads `{}`; use a newer program", apps::Report::NAME))),
    }
    let results = serde_json::from_slice(bytes).map_err(|error| failed(error.to_string()))?;
    Ok(Content::Suite(Box::new(results)))
}

/// The version at the end of a schema, as in `warploom.suite/2`.
fn version(schema: &str) -> Option<u32> {
    schema.rsplit_once('/')?.1.parse().ok()
}
