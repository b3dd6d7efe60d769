//! Files of landscapes.
//!
//! A file is a header (18 letters, the version as `u32`, and a checksum of the rest as `u64`) followed by one Brotli
//! stream of bincode; numbers are little endian. It contains everything needed to make the space again: the pipeline,
//! its sizes, the device, the template as text, its open axes and the limits; then the factors and the times of each
//! point.

use std::io::Write;
use std::path::Path;

use brotli::{CompressorWriter, Decompressor};
use serde::{Deserialize, Serialize};
use warploom_lang::Pipeline;
use warploom_lang::files::{self, LANDSCAPE, ReadError};
use warploom_schedule::Schedule;
use warploom_strategy::{Coordinate, Point};
use warploom_target::Device;
use xxhash_rust::xxh3::xxh3_64;

use super::{Definition, Landscape, LandscapeError, Limits, Outcome, Provenance};
use crate::sample::Sizes;

const MAGIC: &[u8; 18] = b"warploom landscape";
const VERSION: u32 = 1;
const HEADER: usize = MAGIC.len() + 4 + 8;

/// The slowest quality, because files are written rarely and kept for long.
const QUALITY: u32 = 11;
const WINDOW: u32 = 22;
const BUFFER: usize = 1 << 14;

#[derive(Serialize, Deserialize)]
struct Stored {
    pipeline: String,
    sizes: Sizes,
    device: String,
    versions: Vec<String>,
    measured: (u64, u64),
    template: String,
    axes: Vec<String>,
    limits: Limits,
    missing: u64,
    /// For each point, for each open axis, its factors.
    points: Vec<Vec<Vec<u64>>>,
    /// For each point: the shortest and the median time, or the reason for a failure.
    outcomes: Vec<Result<(f64, f64), String>>,
}

impl Landscape {
    /// Writes a file; one that exists is replaced.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), LandscapeError> {
        let path = path.as_ref();
        let failed = |error| LandscapeError::Write { path: path.to_path_buf(), error };
        let bytes = self.to_bytes().map_err(failed)?;
        files::write_whole(path, &bytes).map_err(failed)
    }

    fn to_bytes(&self) -> std::io::Result<Vec<u8>> {
        let Provenance { pipeline, sizes, device, versions, measured } = &self.source;
        let Definition { template, axes, limits } = &self.definition;
        let stored = Stored {
            pipeline: pipeline.to_json(),
            sizes: sizes.clone(),
            device: device.to_json().map_err(std::io::Error::other)?,
            versions: versions.clone(),
            measured: *measured,
            template: template.to_text(pipeline),
            axes: axes.clone(),
            limits: *limits,
            missing: self.missing as u64,
            points: self.points().map(|(point, _)| factors(point)).collect(),
            outcomes: self.points().map(|(_, outcome)| packed(outcome)).collect(),
        };
        let plain = bincode::serde::encode_to_vec(&stored, bincode::config::standard());
        let plain = plain.map_err(std::io::Error::other)?;
        let mut stream = CompressorWriter::new(Vec::new(), BUFFER, QUALITY, WINDOW);
        stream.write_all(&plain)?;
        let packed = stream.into_inner();
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(xxh3_64(&packed).to_le_bytes());
        bytes.extend(packed);
        Ok(bytes)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, is damaged, or describes a space that this version does not have.
    pub fn read(path: impl AsRef<Path>) -> Result<Landscape, LandscapeError> {
        let path = path.as_ref();
        Landscape::parse(&files::read(path, LANDSCAPE)?, path)
    }

    /// Reads the bytes of a file. `path` is used in messages only.
    ///
    /// # Errors
    /// As those of [`Landscape::read`].
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Landscape, LandscapeError> {
        let damaged = |why: String| LandscapeError::Damaged { path: path.to_path_buf(), why };
        let format = || LandscapeError::Format { path: path.to_path_buf(), version: VERSION };
        let (header, packed) = bytes.split_at_checked(HEADER).ok_or_else(format)?;
        let rest = header.strip_prefix(MAGIC.as_slice()).ok_or_else(format)?;
        let checksum = rest.strip_prefix(&VERSION.to_le_bytes()).ok_or_else(format)?;
        if checksum != xxh3_64(packed).to_le_bytes() {
            return Err(damaged("its checksum is another one".to_owned()));
        }
        let plain = files::read_stream(Decompressor::new(packed, BUFFER), LANDSCAPE);
        let plain = plain.map_err(|error| damaged(error.to_string()))?;
        let too_large = || ReadError::TooLarge { path: path.to_path_buf(), limit: LANDSCAPE };
        let plain = plain.ok_or_else(too_large)?;
        let config = bincode::config::standard().with_limit::<{ LANDSCAPE.most as usize }>();
        let decoded = bincode::serde::decode_from_slice::<Stored, _>(&plain, config);
        let (stored, _) = decoded.map_err(|error| damaged(error.to_string()))?;
        stored.landscape(damaged)
    }
}

impl Stored {
    fn landscape(self, damaged: impl Fn(String) -> LandscapeError) -> Result<Landscape, LandscapeError> {
        let pipeline = Pipeline::from_json(&self.pipeline)
            .map_err(|error| damaged(format!("its pipeline cannot be read: {error}")))?;
        let device = Device::from_json(&self.device)
            .map_err(|error| damaged(format!("its device cannot be read: {error}")))?;
        let template = Schedule::parse(&self.template, &pipeline)
            .map_err(|errors| damaged(format!("its template cannot be read: {errors}")))?;
        if self.points.len() != self.outcomes.len() {
            return Err(damaged("it has not as many times as points".to_owned()));
        }
        let points = self.points.into_iter().map(|at| {
            let at = at.into_iter().map(Coordinate::Factors).collect();
            Point { template: 0, at }
        });
        let outcomes = points.zip(self.outcomes.into_iter().map(unpacked)).collect();
        let (versions, measured) = (self.versions, self.measured);
        let source = Provenance { pipeline, sizes: self.sizes, device, versions, measured };
        let definition = Definition { template, axes: self.axes, limits: self.limits };
        let missing = usize::try_from(self.missing).unwrap_or(usize::MAX);
        Landscape::new(source, definition, outcomes, missing)
    }
}

/// The factors of a point. All axes of landscapes are factors.
fn factors(point: &Point) -> Vec<Vec<u64>> {
    let of = |coordinate: &Coordinate| match coordinate {
        Coordinate::Factors(factors) => factors.clone(),
        Coordinate::Order(_) | Coordinate::Index(_) => Vec::new(),
    };
    point.at.iter().map(of).collect()
}

fn packed(outcome: &Outcome) -> Result<(f64, f64), String> {
    match outcome {
        Outcome::Time { min_us, median_us } => Ok((*min_us, *median_us)),
        Outcome::Failed(why) => Err(why.clone()),
    }
}

fn unpacked(stored: Result<(f64, f64), String>) -> Outcome {
    match stored {
        Ok((min_us, median_us)) => Outcome::Time { min_us, median_us },
        Err(why) => Outcome::Failed(why),
    }
}
