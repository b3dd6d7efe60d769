//! Imports and exports trials as lines of JSON and as sample files.

use std::collections::HashMap;
use std::io::{BufRead, Read, Write};
use std::path::Path;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use warploom_lang::Pipeline;
use warploom_lang::files::{LINE, ReadError, SAMPLES};

use super::{ProblemId, Records, RecordsError, Trial, now, rows, sensible};
use crate::sample::{KernelUse, Origin, Sample, Shard, ShardWriter, Sizes, Status, Times};

/// One line of exported records. A pipeline precedes its first trial.
#[derive(Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum Line {
    Pipeline { hash: String, name: String, json: String },
    Trial(Box<TrialLine>),
}

#[derive(Serialize, Deserialize)]
struct TrialLine {
    pipeline: String,
    sizes: Sizes,
    device: String,
    fingerprint: String,
    versions: Vec<String>,
    schedule: String,
    origin: String,
    status: String,
    message: String,
    verified: bool,
    predicted_us: Option<f64>,
    times: Option<Times>,
    spread: f64,
    retimed_us: Option<f64>,
    kernels: Vec<KernelUse>,
    compile_ms: f64,
    measured_at: u64,
}

/// The result of an import.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Imported {
    /// Number of trials that were added.
    pub new: u64,
    /// Number of trials that were skipped because their schedule already has one.
    pub known: u64,
}

impl Records {
    /// Writes all trials, or those of one problem, as lines of JSON. Returns the number of trials.
    /// `path` is used in error messages only.
    ///
    /// # Errors
    /// If they cannot be read or written.
    pub fn export(
        &self,
        problem: Option<ProblemId>,
        out: &mut dyn Write,
        path: &Path,
    ) -> Result<usize, RecordsError> {
        let failed = |error| RecordsError::File { path: path.to_path_buf(), error };
        let mut line = |line: &Line| {
            let written = serde_json::to_writer(&mut *out, line).map_err(std::io::Error::from);
            written.and_then(|()| writeln!(out)).map_err(failed)
        };
        let trials = self.trials(problem)?;
        let mut known = HashMap::new();
        for trial in &trials {
            let hash = trial.sample.pipeline;
            if known.insert(hash, ()).is_none()
                && let Some(pipeline) = self.pipeline(hash)?
            {
                let (name, json) = (pipeline.name().to_owned(), pipeline.to_json());
                line(&Line::Pipeline { hash: rows::hexadecimal(hash), name, json })?;
            }
            line(&Line::Trial(Box::new(TrialLine::of(trial))))?;
        }
        out.flush().map_err(|error| RecordsError::File { path: path.to_path_buf(), error })?;
        Ok(trials.len())
    }

    /// Imports the output of [`Records::export`], all of it or nothing. `path` is used in error
    /// messages only.
    ///
    /// # Errors
    /// If a line is not a record, contains numbers that cannot be measurements, or if trials cannot
    /// be stored.
    pub fn import(&mut self, mut lines: impl BufRead, path: &Path) -> Result<Imported, RecordsError> {
        let mut pipelines: HashMap<String, Rc<Pipeline>> = HashMap::new();
        let (mut trials, mut taken) = (Vec::new(), 0);
        for number in 0.. {
            let Some(line) = next_line(&mut lines, number + 1, path)? else { break };
            taken += line.len() as u64;
            let wrong =
                |message: String| RecordsError::Line { path: path.to_path_buf(), line: number + 1, message };
            match serde_json::from_str(&line).map_err(|error| wrong(error.to_string()))? {
                Line::Pipeline { hash, json, .. } => {
                    let pipeline = Pipeline::from_json(&json).map_err(|error| wrong(error.to_string()))?;
                    pipelines.insert(hash, Rc::new(pipeline));
                }
                Line::Trial(trial) => {
                    let hash = trial.pipeline.clone();
                    let trial = trial.trial().ok_or_else(|| wrong("it contains an unknown word".into()))?;
                    let pipeline = pipelines.get(&hash).cloned();
                    let pipeline =
                        pipeline.ok_or_else(|| wrong("its pipeline does not precede it".into()))?;
                    sensible::check(&pipeline, &trial).map_err(wrong)?;
                    taken += trial.sample.memory();
                    trials.push((pipeline, trial));
                }
            }
            if taken > SAMPLES.most {
                let (path, limit) = (path.to_path_buf(), SAMPLES);
                return Err(RecordsError::Refused(ReadError::TooLarge { path, limit }));
            }
        }
        self.add_all(trials)
    }

    /// All trials, or those of one problem, as training samples for the cost model.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn shard(&self, problem: Option<ProblemId>) -> Result<Shard, RecordsError> {
        let mut shard = Shard::default();
        for Trial { sample, .. } in self.trials(problem)? {
            if !shard.pipelines.contains_key(&sample.pipeline)
                && let Some(pipeline) = self.pipeline(sample.pipeline)?
            {
                shard.pipelines.insert(sample.pipeline, pipeline);
            }
            shard.samples.push(sample);
        }
        Ok(shard)
    }

    /// Writes all trials, or those of one problem, to a new sample file. Returns the number of
    /// trials.
    ///
    /// # Errors
    /// If they cannot be read or written.
    pub fn export_samples(&self, problem: Option<ProblemId>, file: &Path) -> Result<usize, RecordsError> {
        let Shard { pipelines, samples } = self.shard(problem)?;
        let mut out = ShardWriter::create(file)?;
        let count = samples.len();
        for sample in samples {
            if let Some(pipeline) = pipelines.get(&sample.pipeline) {
                out.add(pipeline, sample)?;
            }
        }
        Ok(count)
    }

    /// Imports a sample file. Values that it does not contain, such as predicted times, remain
    /// unset.
    ///
    /// # Errors
    /// If the file cannot be read, contains numbers that cannot be measurements, or if trials
    /// cannot be stored.
    pub fn import_samples(&mut self, file: &Path) -> Result<Imported, RecordsError> {
        let Shard { pipelines, samples } = Shard::read(file)?;
        let pipelines: HashMap<u128, Rc<Pipeline>> =
            pipelines.into_iter().map(|(hash, pipeline)| (hash, Rc::new(pipeline))).collect();
        let mut trials = Vec::new();
        for (number, sample) in samples.into_iter().enumerate() {
            let trial = Trial { measured_at: now(), ..Trial::new(sample, None, 0.0) };
            let Some(pipeline) = pipelines.get(&trial.sample.pipeline) else { continue };
            sensible::check(pipeline, &trial).map_err(|message| RecordsError::Sample {
                path: file.to_path_buf(),
                number: number + 1,
                message,
            })?;
            trials.push((pipeline.clone(), trial));
        }
        self.add_all(trials)
    }

    fn add_all(&mut self, trials: Vec<(Rc<Pipeline>, Trial)>) -> Result<Imported, RecordsError> {
        self.change(|change| {
            let mut of_problems = Vec::with_capacity(trials.len());
            for (pipeline, trial) in &trials {
                let Sample { sizes, device, fingerprint, versions, .. } = &trial.sample;
                let problem = rows::problem(change, pipeline, sizes, device, fingerprint, versions)?;
                of_problems.push((problem, trial));
            }
            let ids = rows::insert(change, &of_problems)?;
            let new = ids.iter().flatten().count() as u64;
            Ok(Imported { new, known: ids.len() as u64 - new })
        })
    }
}

/// The next line, or `None` at the end. `number` and `path` are used in error messages only.
fn next_line(lines: &mut impl BufRead, number: usize, path: &Path) -> Result<Option<String>, RecordsError> {
    let failed = |error| RecordsError::File { path: path.to_path_buf(), error };
    let wrong = |message| RecordsError::Line { path: path.to_path_buf(), line: number, message };
    let mut line = Vec::new();
    lines.take(LINE.most + 1).read_until(b'\n', &mut line).map_err(failed)?;
    if line.len() as u64 > LINE.most {
        return Err(wrong(format!("it is longer than {LINE}, the limit for a line")));
    }
    match line.is_empty() {
        true => Ok(None),
        false => String::from_utf8(line).map(Some).map_err(|_| wrong("it is not UTF-8".to_owned())),
    }
}

impl TrialLine {
    fn of(trial: &Trial) -> TrialLine {
        let Trial { id: _, sample, predicted_us, spread, retimed_us, measured_at } = trial.clone();
        TrialLine {
            pipeline: rows::hexadecimal(sample.pipeline),
            sizes: sample.sizes,
            device: sample.device,
            fingerprint: sample.fingerprint,
            versions: sample.versions,
            schedule: sample.schedule,
            origin: sample.origin.name().to_owned(),
            status: sample.status.kind().to_owned(),
            message: sample.status.message().to_owned(),
            verified: sample.verified,
            predicted_us,
            times: sample.times,
            spread,
            retimed_us,
            kernels: sample.kernels,
            compile_ms: sample.compile_ms,
            measured_at,
        }
    }

    fn trial(self) -> Option<Trial> {
        let sample = Sample {
            pipeline: u128::from_str_radix(&self.pipeline, 16).ok()?,
            sizes: self.sizes,
            schedule: self.schedule,
            origin: Origin::from_name(&self.origin)?,
            device: self.device,
            fingerprint: self.fingerprint,
            versions: self.versions,
            status: Status::from_parts(&self.status, self.message)?,
            verified: self.verified,
            times: self.times,
            kernels: self.kernels,
            compile_ms: self.compile_ms,
        };
        let (predicted_us, spread, retimed_us) = (self.predicted_us, self.spread, self.retimed_us);
        Some(Trial { id: 0, sample, predicted_us, spread, retimed_us, measured_at: self.measured_at })
    }
}
