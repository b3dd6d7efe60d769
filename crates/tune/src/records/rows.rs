//! Converts between table rows and records.

use std::collections::HashMap;
use std::io::Write;

use brotli::{CompressorWriter, Decompressor};
use serde::de::DeserializeOwned;
use warploom_lang::Pipeline;
use warploom_lang::files::{self, TEXT};

use super::store::{Change, Row, Unreadable, Value};
use super::{Problem, ProblemId, RecordsError, RecordsPlace, Trial, schedule_hash};
use crate::sample::{KernelUse, Origin, Sample, Sizes, Status, Times, renamed_key};
use crate::values;

/// Version of the stored pipeline format: compressed JSON.
const PIPELINE_VERSION: u8 = 1;

/// Prefix of version strings that machine code does not depend on.
const DRIVER: &str = "driver ";

const BUFFER: usize = 1 << 14;
const QUALITY: u32 = 5;
const WINDOW: u32 = 20;

/// Trials with their problems; see [`read_trial`].
const SELECT: &str = "
SELECT t.id, p.pipeline, p.sizes, t.schedule, t.origin, p.device, p.fingerprint, t.versions, t.status, t.message,
    t.verified, t.min_us, t.median_us, t.runs, t.kernels, t.compile_ms, t.predicted_us, t.spread, t.retimed_us,
    t.measured_at
FROM trials t JOIN problems p ON p.id = t.problem ";

pub(super) fn hexadecimal(hash: u128) -> String {
    format!("{hash:032x}")
}

/// Between two versions in the text of a problem's row.
const BETWEEN_VERSIONS: &str = ", ";

/// The versions that machine code depends on, joined to one string.
pub(super) fn that_matter(versions: &[String]) -> String {
    let kept: Vec<&str> =
        versions.iter().map(String::as_str).filter(|one| !one.starts_with(DRIVER)).collect();
    kept.join(BETWEEN_VERSIONS)
}

/// The content of the pipeline with a certain key.
pub(super) const PIPELINE: &str = "SELECT content FROM pipelines WHERE hash = $1";

/// The key of a pipeline: its structural hash, unless the pipeline `stored` under it has other names. Schedules are
/// stored as text, which has another meaning, or none, under other names.
pub(super) fn key(pipeline: &Pipeline, stored: Option<&[u8]>, place: &RecordsPlace) -> u128 {
    let hash = pipeline.structural_hash();
    // An unreadable pipeline may have had these names.
    let stored = stored.and_then(|content| read_pipeline(content, place).ok());
    match stored.is_some_and(|stored| stored.names_hash() != pipeline.names_hash()) {
        true => renamed_key(pipeline),
        false => hash,
    }
}

/// The id of a problem; it is inserted if it is new.
pub(super) fn problem(
    change: &mut dyn Change,
    pipeline: &Pipeline,
    sizes: &Sizes,
    device: &str,
    fingerprint: &str,
    versions: &[String],
) -> Result<ProblemId, RecordsError> {
    let of_structure = hexadecimal(pipeline.structural_hash());
    let stored = change.query_one(PIPELINE, values![&of_structure])?;
    let stored = read(change.place(), stored.map(|row| row.get::<Vec<u8>>(0)).transpose())?;
    let hash = hexadecimal(key(pipeline, stored.as_deref(), change.place()));
    if change.query_one("SELECT 1 FROM pipelines WHERE hash = $1", values![&hash])?.is_none() {
        change.execute(
            "INSERT INTO pipelines (hash, name, content) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
            values![&hash, pipeline.name(), write_pipeline(pipeline)],
        )?;
    }
    let (sizes, versions) = (json(change.place(), sizes)?, that_matter(versions));
    let known =
        "SELECT id FROM problems WHERE pipeline = $1 AND sizes = $2 AND fingerprint = $3 AND versions = $4";
    let key = values![&hash, &sizes, fingerprint, &versions];
    if let Some(row) = change.query_one(known, key)? {
        return read(change.place(), row.get(0).map(ProblemId));
    }
    change.execute(
        "INSERT INTO problems (pipeline, sizes, device, fingerprint, versions) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT DO NOTHING",
        values![&hash, &sizes, device, fingerprint, &versions],
    )?;
    let row = change.query_one(known, key)?;
    let id = row.ok_or_else(|| Unreadable("a problem is gone".to_owned())).and_then(|row| row.get(0));
    read(change.place(), id.map(ProblemId))
}

/// Number of columns that [`insert`] writes.
const COLUMNS: usize = 20;

/// The most trials that one statement inserts, far below the databases' limits on values.
const AT_ONCE: usize = 64;

/// Inserts trials. Returns the id of each, or `None` if its schedule already has a trial.
pub(super) fn insert(
    change: &mut dyn Change,
    trials: &[(ProblemId, &Trial)],
) -> Result<Vec<Option<i64>>, RecordsError> {
    let mut ids = Vec::with_capacity(trials.len());
    for trials in trials.chunks(AT_ONCE) {
        let rows: Vec<String> = (0..trials.len()).map(placeholders).collect();
        let insert = format!(
            "INSERT INTO trials (problem, schedule_hash, schedule, origin, status, message, verified, predicted_us,
                 min_us, median_us, spread, runs, retimed_us, registers, spilled_bytes, shared_bytes, kernels,
                 compile_ms, versions, measured_at)
             VALUES {} ON CONFLICT DO NOTHING RETURNING problem, schedule_hash, id",
            rows.join(", ")
        );
        let hashes = trials.iter().map(|(_, trial)| schedule_hash(&trial.sample.schedule));
        let keys: Vec<(i64, String)> = trials.iter().map(|(problem, _)| problem.0).zip(hashes).collect();
        let mut values = Vec::with_capacity(trials.len() * COLUMNS);
        for ((problem, hash), (_, trial)) in keys.iter().zip(trials) {
            values.extend(columns(change.place(), *problem, hash, trial)?);
        }
        let inserted = change.query(&insert, &values)?;
        let inserted = inserted.iter().map(|row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)));
        let inserted = inserted.collect::<Result<HashMap<(i64, String), i64>, Unreadable>>();
        let mut inserted = read(change.place(), inserted)?;
        ids.extend(keys.iter().map(|key| inserted.remove(key)));
    }
    Ok(ids)
}

/// The values of a row of a statement, as `($21, $22, ...)` for the second one.
fn placeholders(row: usize) -> String {
    let numbers: Vec<String> = (1..=COLUMNS).map(|column| format!("${}", row * COLUMNS + column)).collect();
    format!("({})", numbers.join(", "))
}

/// The values of a trial's row.
fn columns(
    place: &RecordsPlace,
    problem: i64,
    hash: &str,
    trial: &Trial,
) -> Result<[Value; COLUMNS], RecordsError> {
    let Trial { sample, predicted_us, spread, retimed_us, measured_at, .. } = trial;
    let kernels = &sample.kernels;
    let spilled = kernels.iter().map(KernelUse::spilled_bytes).sum::<u64>();
    Ok([
        problem.into(),
        hash.into(),
        (&sample.schedule).into(),
        sample.origin.name().into(),
        sample.status.kind().into(),
        sample.status.message().into(),
        sample.verified.into(),
        predicted_us.into(),
        sample.times.map(|times| times.min).into(),
        sample.times.map(|times| times.median).into(),
        (*spread).into(),
        sample.times.map(|times| times.runs).into(),
        retimed_us.into(),
        kernels.iter().map(|kernel| kernel.registers).max().into(),
        (!kernels.is_empty()).then_some(spilled).into(),
        kernels.iter().map(|kernel| kernel.shared).max().into(),
        json(place, kernels)?.into(),
        sample.compile_ms.into(),
        json(place, &sample.versions)?.into(),
        (*measured_at).into(),
    ])
}

pub(super) fn has(
    change: &mut dyn Change,
    problem: ProblemId,
    schedule_hash: &str,
) -> Result<bool, RecordsError> {
    let query = "SELECT 1 FROM trials WHERE problem = $1 AND schedule_hash = $2";
    Ok(change.query_one(query, values![problem.0, schedule_hash])?.is_some())
}

/// The clauses after [`SELECT`]: which trials to read, and in which order.
pub(super) mod which {
    pub const ALL: &str = "ORDER BY t.id";
    pub const OF_PROBLEM: &str = "WHERE t.problem = $1 ORDER BY t.id";
    pub const AFTER: &str = "WHERE t.problem = $1 AND t.id > $2 ORDER BY t.id";
    pub const BY_ID: &str = "WHERE t.id = $1";
    pub const OF_SCHEDULE: &str = "WHERE t.problem = $1 AND t.schedule_hash = $2";
    pub const BEST: &str = "WHERE t.problem = $1 AND t.status = 'ok' AND t.min_us IS NOT NULL
        ORDER BY coalesce(t.retimed_us, t.min_us), t.id LIMIT $2";
}

/// The statement that reads some trials.
pub(super) fn select(which: &str) -> String {
    format!("{SELECT}{which}")
}

/// All problems, ordered by pipeline name.
pub(super) const PROBLEMS: &str = "
SELECT p.id, l.name, p.pipeline, p.sizes, p.device, p.fingerprint, p.versions, count(t.id),
    count(*) FILTER (WHERE t.status = 'ok'),
    min(CASE t.status WHEN 'ok' THEN coalesce(t.retimed_us, t.min_us) END)
FROM problems p JOIN pipelines l ON l.hash = p.pipeline LEFT JOIN trials t ON t.problem = p.id
GROUP BY p.id, l.name ORDER BY l.name, p.id";

/// Reads a row of [`PROBLEMS`].
pub(super) fn read_problem(row: &Row) -> Result<Problem, Unreadable> {
    Ok(Problem {
        id: ProblemId(row.get(0)?),
        name: row.get(1)?,
        pipeline: row.get(2)?,
        sizes: from_json(row, 3)?,
        device: row.get(4)?,
        fingerprint: row.get(5)?,
        versions: row.get::<String>(6)?.split(BETWEEN_VERSIONS).map(str::to_owned).collect(),
        trials: row.get(7)?,
        valid: row.get(8)?,
        best_us: row.get(9)?,
    })
}

/// Reads a row of [`SELECT`].
pub(super) fn read_trial(row: &Row) -> Result<Trial, Unreadable> {
    let hash: String = row.get(1)?;
    let (origin, kind): (String, String) = (row.get(4)?, row.get(8)?);
    let (min, median, runs): (Option<f64>, Option<f64>, Option<u32>) =
        (row.get(11)?, row.get(12)?, row.get(13)?);
    let sample = Sample {
        pipeline: u128::from_str_radix(&hash, 16).map_err(|_| unknown(&hash))?,
        sizes: from_json(row, 2)?,
        schedule: row.get(3)?,
        origin: Origin::from_name(&origin).ok_or_else(|| unknown(&origin))?,
        device: row.get(5)?,
        fingerprint: row.get(6)?,
        versions: from_json(row, 7)?,
        status: Status::from_parts(&kind, row.get(9)?).ok_or_else(|| unknown(&kind))?,
        verified: row.get(10)?,
        times: min.map(|min| Times { min, median: median.unwrap_or(min), runs: runs.unwrap_or_default() }),
        kernels: from_json(row, 14)?,
        compile_ms: row.get(15)?,
    };
    Ok(Trial {
        id: row.get(0)?,
        sample,
        predicted_us: row.get(16)?,
        spread: row.get(17)?,
        retimed_us: row.get(18)?,
        measured_at: row.get::<i64>(19)?.max(0) as u64,
    })
}

/// Encodes a pipeline for storage.
fn write_pipeline(pipeline: &Pipeline) -> Vec<u8> {
    let mut compressed = CompressorWriter::new(vec![PIPELINE_VERSION], BUFFER, QUALITY, WINDOW);
    // Writing to memory cannot fail.
    compressed.write_all(pipeline.to_json().as_bytes()).unwrap_or_default();
    compressed.into_inner()
}

/// Decodes a stored pipeline.
pub(super) fn read_pipeline(content: &[u8], place: &RecordsPlace) -> Result<Pipeline, RecordsError> {
    let damaged =
        |message: &str| RecordsError::Row { place: place.clone(), message: format!("a pipeline {message}") };
    let Some((&PIPELINE_VERSION, compressed)) = content.split_first() else {
        return Err(damaged("has an unknown form"));
    };
    let json = files::read_stream(Decompressor::new(compressed, BUFFER), TEXT);
    let json = json.map_err(|_| damaged("cannot be unpacked"))?;
    let json = json.ok_or_else(|| damaged(&format!("has more than {TEXT} when unpacked")))?;
    let json = String::from_utf8(json).map_err(|_| damaged("is not UTF-8"))?;
    Pipeline::from_json(&json).map_err(|error| RecordsError::Pipeline { place: place.clone(), error })
}

fn json(place: &RecordsPlace, value: &impl serde::Serialize) -> Result<String, RecordsError> {
    read(place, serde_json::to_string(value).map_err(|error| Unreadable(error.to_string())))
}

fn from_json<T: DeserializeOwned>(row: &Row, column: usize) -> Result<T, Unreadable> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| Unreadable(error.to_string()))
}

pub(super) fn unknown(text: &str) -> Unreadable {
    Unreadable(format!("`{text}` is not known"))
}

/// The result of reading a row of a store.
pub(super) fn read<T>(place: &RecordsPlace, read: Result<T, Unreadable>) -> Result<T, RecordsError> {
    read.map_err(|error| RecordsError::unreadable(place, error))
}
