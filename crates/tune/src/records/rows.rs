//! Converts between table rows and records.

use std::io::Write;
use std::path::Path;

use brotli::{CompressorWriter, Decompressor};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::de::DeserializeOwned;
use warploom_lang::Pipeline;
use warploom_lang::files::{self, TEXT};

use super::{Problem, ProblemId, RecordsError, Trial, schedule_hash};
use crate::sample::{KernelUse, Origin, Sample, Sizes, Status, Times};

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

/// The id of a problem; it is inserted if it is new.
pub(super) fn problem(
    change: &Transaction<'_>,
    pipeline: &Pipeline,
    sizes: &Sizes,
    device: &str,
    fingerprint: &str,
    versions: &[String],
) -> rusqlite::Result<ProblemId> {
    let hash = hexadecimal(pipeline.structural_hash());
    let known = "SELECT 1 FROM pipelines WHERE hash = ?1";
    if change.query_row(known, [&hash], |_| Ok(())).optional()?.is_none() {
        let insert = "INSERT INTO pipelines (hash, name, content) VALUES (?1, ?2, ?3)";
        change.execute(insert, params![hash, pipeline.name(), write_pipeline(pipeline)])?;
    }
    let (sizes, versions) = (json(sizes)?, that_matter(versions));
    change.execute(
        "INSERT INTO problems (pipeline, sizes, device, fingerprint, versions) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO NOTHING",
        params![hash, sizes, device, fingerprint, versions],
    )?;
    change.query_row(
        "SELECT id FROM problems WHERE pipeline = ?1 AND sizes = ?2 AND fingerprint = ?3 AND versions = ?4",
        params![hash, sizes, fingerprint, versions],
        |row| row.get(0).map(ProblemId),
    )
}

/// Inserts a trial; `false` if its schedule already has one.
pub(super) fn insert(change: &Transaction<'_>, problem: ProblemId, trial: &Trial) -> rusqlite::Result<bool> {
    let Trial { sample, predicted_us, spread, retimed_us, measured_at, .. } = trial;
    let kernels = &sample.kernels;
    let inserted = change.execute(
        "INSERT INTO trials (problem, schedule_hash, schedule, origin, status, message, verified, predicted_us,
             min_us, median_us, spread, runs, retimed_us, registers, spilled_bytes, shared_bytes, kernels,
             compile_ms, versions, measured_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)
         ON CONFLICT DO NOTHING",
        params![
            problem.0,
            schedule_hash(&sample.schedule),
            sample.schedule,
            sample.origin.name(),
            sample.status.kind(),
            sample.status.message(),
            sample.verified,
            predicted_us,
            sample.times.map(|times| times.min),
            sample.times.map(|times| times.median),
            spread,
            sample.times.map(|times| times.runs),
            retimed_us,
            kernels.iter().map(|kernel| kernel.registers).max(),
            (!kernels.is_empty()).then(|| kernels.iter().map(KernelUse::spilled_bytes).sum::<u64>() as i64),
            kernels.iter().map(|kernel| kernel.shared).max(),
            json(kernels)?,
            sample.compile_ms,
            json(&sample.versions)?,
            *measured_at as i64,
        ],
    )?;
    Ok(inserted > 0)
}

pub(super) fn has(
    connection: &Connection,
    problem: ProblemId,
    schedule_hash: &str,
) -> rusqlite::Result<bool> {
    let query = "SELECT 1 FROM trials WHERE problem = ?1 AND schedule_hash = ?2";
    let found = connection.query_row(query, params![problem.0, schedule_hash], |_| Ok(())).optional()?;
    Ok(found.is_some())
}

pub(super) fn trials(connection: &Connection, problem: Option<ProblemId>) -> rusqlite::Result<Vec<Trial>> {
    let query = format!("{SELECT} WHERE ?1 IS NULL OR t.problem = ?1 ORDER BY t.id");
    let mut query = connection.prepare(&query)?;
    query.query_map([problem.map(|problem| problem.0)], read_trial)?.collect()
}

pub(super) fn trial(connection: &Connection, id: i64) -> rusqlite::Result<Option<Trial>> {
    connection.query_row(&format!("{SELECT} WHERE t.id = ?1"), [id], read_trial).optional()
}

pub(super) fn find(
    connection: &Connection,
    problem: ProblemId,
    schedule_hash: &str,
) -> rusqlite::Result<Option<Trial>> {
    let query = format!("{SELECT} WHERE t.problem = ?1 AND t.schedule_hash = ?2");
    connection.query_row(&query, params![problem.0, schedule_hash], read_trial).optional()
}

pub(super) fn best(
    connection: &Connection,
    problem: ProblemId,
    count: usize,
) -> rusqlite::Result<Vec<Trial>> {
    let query = format!(
        "{SELECT} WHERE t.problem = ?1 AND t.status = 'ok' AND t.min_us IS NOT NULL
         ORDER BY coalesce(t.retimed_us, t.min_us), t.id LIMIT ?2"
    );
    let mut query = connection.prepare(&query)?;
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    query.query_map(params![problem.0, count], read_trial)?.collect()
}

pub(super) fn problems(connection: &Connection) -> rusqlite::Result<Vec<Problem>> {
    let mut query = connection.prepare(
        "SELECT p.id, l.name, p.pipeline, p.sizes, p.device, p.fingerprint, p.versions, count(t.id),
             coalesce(sum(t.status = 'ok'), 0),
             min(CASE t.status WHEN 'ok' THEN coalesce(t.retimed_us, t.min_us) END)
         FROM problems p JOIN pipelines l ON l.hash = p.pipeline LEFT JOIN trials t ON t.problem = p.id
         GROUP BY p.id ORDER BY l.name, p.id",
    )?;
    let read = |row: &Row<'_>| {
        Ok(Problem {
            id: ProblemId(row.get(0)?),
            name: row.get(1)?,
            pipeline: row.get(2)?,
            sizes: from_json(row, 3)?,
            device: row.get(4)?,
            fingerprint: row.get(5)?,
            versions: row.get::<_, String>(6)?.split(BETWEEN_VERSIONS).map(str::to_owned).collect(),
            trials: row.get::<_, i64>(7)? as u64,
            valid: row.get::<_, i64>(8)? as u64,
            best_us: row.get(9)?,
        })
    };
    query.query_map([], read)?.collect()
}

/// Reads a row of [`SELECT`].
fn read_trial(row: &Row<'_>) -> rusqlite::Result<Trial> {
    let hash: String = row.get(1)?;
    let (origin, kind): (String, String) = (row.get(4)?, row.get(8)?);
    let (min, median, runs): (Option<f64>, Option<f64>, Option<u32>) =
        (row.get(11)?, row.get(12)?, row.get(13)?);
    let sample = Sample {
        pipeline: u128::from_str_radix(&hash, 16).map_err(|_| unreadable(1, &hash))?,
        sizes: from_json(row, 2)?,
        schedule: row.get(3)?,
        origin: Origin::from_name(&origin).ok_or_else(|| unreadable(4, &origin))?,
        device: row.get(5)?,
        fingerprint: row.get(6)?,
        versions: from_json(row, 7)?,
        status: Status::from_parts(&kind, row.get(9)?).ok_or_else(|| unreadable(8, &kind))?,
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
        measured_at: row.get::<_, i64>(19)?.max(0) as u64,
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
pub(super) fn read_pipeline(content: &[u8], path: &Path) -> Result<Pipeline, RecordsError> {
    let damaged = |message: &str| RecordsError::Damaged {
        path: path.to_path_buf(),
        message: format!("a pipeline {message}"),
    };
    let Some((&PIPELINE_VERSION, compressed)) = content.split_first() else {
        return Err(damaged("has an unknown form"));
    };
    let json = files::read_stream(Decompressor::new(compressed, BUFFER), TEXT);
    let json = json.map_err(|_| damaged("cannot be unpacked"))?;
    let json = json.ok_or_else(|| damaged(&format!("has more than {TEXT} when unpacked")))?;
    let json = String::from_utf8(json).map_err(|_| damaged("is not UTF-8"))?;
    Pipeline::from_json(&json).map_err(|error| RecordsError::Pipeline { path: path.to_path_buf(), error })
}

fn json(value: &impl serde::Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

fn from_json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into()))
}

pub(super) fn unreadable(column: usize, text: &str) -> rusqlite::Error {
    let message = format!("`{text}` is not known");
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, message.into())
}
