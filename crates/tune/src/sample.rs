//! Measured samples, and the files they are kept in.
//!
//! A shard is a file of frames: a header, then for each frame its length (`u32`, little endian) and its bytes
//! (bincode). A frame is a pipeline, once, or a sample of a pipeline that came before. A frame is written
//! whole and flushed before the next begins, so a run that is killed loses at most the sample it was
//! working on; a torn last frame is ignored when the file is read.
//!
//! A sample holds what was measured and what is needed to build it again, never features: those are computed
//! anew from pipeline and schedule, so that samples outlive every change of what is computed from them.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use warploom_lang::{Pipeline, PipelineError, Realisation, Region, Value};

const MAGIC: &[u8; 16] = b"warploom samples";
const VERSION: u32 = 1;
/// Longer frames are taken for damage.
const MAX_FRAME: u32 = 1 << 26;

/// The sizes and Params a sample was built for, in the order of the pipeline's tables.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sizes {
    /// Boxes of the inputs.
    pub inputs: Vec<Region>,
    /// Boxes of the outputs.
    pub outputs: Vec<Region>,
    /// Values of the Params, as type and bits.
    pub params: Vec<(warploom_lang::Type, u32)>,
}

impl Sizes {
    /// Those of a realisation in which everything is given.
    pub fn of(request: &Realisation) -> Sizes {
        let params = request.params.values().flatten().map(|value| (value.ty(), value.bits()));
        Sizes {
            inputs: request.inputs.values().flatten().cloned().collect(),
            outputs: request.outputs.iter().flatten().cloned().collect(),
            params: params.collect(),
        }
    }

    /// The realisation of a pipeline at these sizes.
    pub fn realise(&self, pipeline: &Pipeline) -> Realisation {
        let mut request = Realisation::new(pipeline);
        for (slot, region) in pipeline.inputs().keys().zip(&self.inputs) {
            request.inputs[slot] = Some(region.clone());
        }
        for (slot, region) in request.outputs.iter_mut().zip(&self.outputs) {
            *slot = Some(region.clone());
        }
        for (slot, (ty, bits)) in pipeline.params().keys().zip(&self.params) {
            request.params[slot] = Some(Value::from_bits(*ty, *bits));
        }
        request
    }
}

/// How a candidate ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Status {
    /// It ran and was timed.
    Measured,
    /// It could not be lowered.
    NotLowered(String),
    /// The compiler refused it.
    NotCompiled(String),
    /// It could not be launched, or crashed.
    Failed(String),
    /// It gave another result than the reference.
    Wrong(String),
}

/// Times of whole runs, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Times {
    /// The shortest.
    pub min: f64,
    /// The one in the middle.
    pub median: f64,
    /// How many runs were timed.
    pub runs: u32,
}

/// What the compiler said of one kernel.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct KernelUse {
    /// Its name.
    pub name: String,
    /// Registers a thread.
    pub registers: u32,
    /// Bytes of registers stored to memory for want of room.
    pub spill_stores: u32,
    /// Bytes read back.
    pub spill_loads: u32,
    /// Bytes of shared memory a block.
    pub shared: u32,
}

/// One candidate and what became of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// Hash of its pipeline.
    pub pipeline: u128,
    /// Its sizes and Params.
    pub sizes: Sizes,
    /// Its schedule as text.
    pub schedule: String,
    /// Name of the device.
    pub device: String,
    /// Fingerprint of the device.
    pub fingerprint: String,
    /// Versions of this program, the kernel compiler and the driver.
    pub versions: Vec<String>,
    /// How it ended.
    pub status: Status,
    /// Its times, if it was measured.
    pub times: Option<Times>,
    /// What the compiler said of its kernels.
    pub kernels: Vec<KernelUse>,
    /// Time the kernel compiler took, in milliseconds.
    pub compile_ms: f64,
}

#[derive(Serialize, Deserialize)]
enum Frame {
    Pipeline { hash: u128, json: String },
    Sample(Box<Sample>),
}

/// Why a shard could not be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ShardError {
    /// The file could not be opened, read or written.
    #[error("{}: {error}; check the path and the free space", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It is something else.
    #[error("{} is not a file of samples, or of another version; this program reads version {VERSION}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
    },
    /// A frame in the middle is damaged.
    #[error("{} is damaged at byte {offset}; the samples before it can be saved by cutting the file there", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: usize,
    },
    /// A pipeline that is not well formed.
    #[error("{} holds a pipeline that cannot be read: {error}", path.display())]
    Pipeline {
        /// The file.
        path: PathBuf,
        /// Why.
        error: PipelineError,
    },
}

/// A shard being written.
pub struct ShardWriter {
    path: PathBuf,
    file: File,
    known: Vec<u128>,
}

impl ShardWriter {
    /// Starts a new shard; an existing file is never overwritten.
    pub fn create(path: impl AsRef<Path>) -> Result<ShardWriter, ShardError> {
        let path = path.as_ref().to_path_buf();
        let failed = |error| ShardError::File { path: path.clone(), error };
        let mut file = File::create_new(&path).map_err(failed)?;
        file.write_all(MAGIC).and_then(|()| file.write_all(&VERSION.to_le_bytes())).map_err(failed)?;
        Ok(ShardWriter { path, file, known: Vec::new() })
    }

    /// Adds a sample of a pipeline, whose hash it is given.
    pub fn add(&mut self, pipeline: &Pipeline, mut sample: Sample) -> Result<(), ShardError> {
        let hash = pipeline.structural_hash();
        if !self.known.contains(&hash) {
            self.frame(&Frame::Pipeline { hash, json: pipeline.to_json() })?;
            self.known.push(hash);
        }
        sample.pipeline = hash;
        self.frame(&Frame::Sample(Box::new(sample)))
    }

    fn frame(&mut self, frame: &Frame) -> Result<(), ShardError> {
        let failed = |error| ShardError::File { path: self.path.clone(), error };
        let bytes = bincode::serde::encode_to_vec(frame, bincode::config::standard());
        let bytes = bytes.map_err(|error| failed(io::Error::other(error)))?;
        let mut whole = (bytes.len() as u32).to_le_bytes().to_vec();
        whole.extend(bytes);
        self.file.write_all(&whole).and_then(|()| self.file.flush()).map_err(failed)
    }
}

/// Everything in a shard.
#[derive(Debug, Default)]
pub struct Shard {
    /// The pipelines by hash.
    pub pipelines: HashMap<u128, Pipeline>,
    /// The samples in the order they were taken.
    pub samples: Vec<Sample>,
}

impl Shard {
    /// Reads a shard; a frame that was cut off at the end is left out.
    pub fn read(path: impl AsRef<Path>) -> Result<Shard, ShardError> {
        let path = path.as_ref().to_path_buf();
        let mut bytes = Vec::new();
        let opened = File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes));
        opened.map_err(|error| ShardError::File { path: path.clone(), error })?;
        Shard::parse(&bytes, &path)
    }

    fn parse(bytes: &[u8], path: &Path) -> Result<Shard, ShardError> {
        let start = MAGIC.len() + 4;
        if bytes.len() < start || &bytes[..16] != MAGIC || bytes[16..20] != VERSION.to_le_bytes() {
            return Err(ShardError::Format { path: path.to_path_buf() });
        }
        let mut shard = Shard::default();
        let mut offset = start;
        while let Some(length) = bytes.get(offset..offset + 4) {
            let damaged = || ShardError::Damaged { path: path.to_path_buf(), offset };
            let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
            if length > MAX_FRAME {
                return Err(damaged());
            }
            let Some(frame) = bytes.get(offset + 4..offset + 4 + length as usize) else { break };
            let decoded = bincode::serde::decode_from_slice(frame, bincode::config::standard());
            let (frame, _): (Frame, usize) = decoded.map_err(|_| damaged())?;
            shard.add(frame, path)?;
            offset += 4 + length as usize;
        }
        Ok(shard)
    }

    fn add(&mut self, frame: Frame, path: &Path) -> Result<(), ShardError> {
        match frame {
            Frame::Pipeline { hash, json } => {
                let unreadable = |error| ShardError::Pipeline { path: path.to_path_buf(), error };
                self.pipelines.insert(hash, Pipeline::from_json(&json).map_err(unreadable)?);
            }
            Frame::Sample(sample) => self.samples.push(*sample),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warploom_lang::{Input, func, vars};

    use super::*;

    fn pipeline() -> Pipeline {
        let x = vars!(x);
        let input = Input::f32("input", 1);
        Pipeline::new("double", [func("double", x, input.at(x) * 2.0)]).expect("it is right")
    }

    fn sample(schedule: &str) -> Sample {
        let pipeline = pipeline();
        let request = Realisation::new(&pipeline)
            .input("input", Region::of_extents(&[8]))
            .output("double", Region::of_extents(&[8]));
        Sample {
            pipeline: 0,
            sizes: Sizes::of(&request),
            schedule: schedule.into(),
            device: "H200".into(),
            fingerprint: "0123".into(),
            versions: vec!["0.1.0".into()],
            status: Status::Measured,
            times: Some(Times { min: 1.0, median: 1.5, runs: 10 }),
            kernels: Vec::new(),
            compile_ms: 20.0,
        }
    }

    /// A shard with two samples, as bytes.
    fn written() -> Vec<u8> {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("a.samples");
        let mut shard = ShardWriter::create(&path).expect("it is new");
        assert!(ShardWriter::create(&path).is_err(), "nothing is overwritten");
        shard.add(&pipeline(), sample("one")).expect("there is room");
        shard.add(&pipeline(), sample("two")).expect("there is room");
        let read = Shard::read(&path).expect("it was just written");
        assert_eq!((read.pipelines.len(), read.samples.len()), (1, 2));
        let request = read.samples[1].sizes.realise(&read.pipelines[&read.samples[1].pipeline]);
        assert_eq!(Sizes::of(&request), read.samples[1].sizes);
        std::fs::read(&path).expect("it is there")
    }

    #[test]
    fn a_torn_end_loses_only_the_last_frame() {
        let bytes = written();
        for cut in 1..40 {
            let shard =
                Shard::parse(&bytes[..bytes.len() - cut], Path::new("torn")).expect("the rest is whole");
            assert_eq!(shard.samples.len(), 1);
        }
    }

    proptest! {
        #[test]
        fn damage_never_panics(position in 0usize..4000, byte in any::<u8>()) {
            let mut bytes = written();
            let len = bytes.len();
            bytes[position % len] = byte;
            let _ = Shard::parse(&bytes, Path::new("damaged"));
        }
    }
}
