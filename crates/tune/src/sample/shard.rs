//! Files of samples.
//!
//! A shard is a header (16 letters and the version, `u32`) and one stream of Brotli. In the stream there are frames:
//! length (`u32`), checksum (`u32`) and that many bytes of bincode; numbers are little endian. A frame is a pipeline,
//! once, or a sample of a pipeline that came before. The stream is flushed after every sample, so that a run that is
//! killed loses at most the sample it was working on; a torn end is ignored when the file is read.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use brotli::{CompressorWriter, Decompressor};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use warploom_lang::{Pipeline, PipelineError};
use xxhash_rust::xxh3::xxh3_64;

use super::{Sample, first_version};

const MAGIC: &[u8; 16] = b"warploom samples";
const VERSION: u32 = 2;
const HEADER: usize = MAGIC.len() + 4;
/// Longer frames are taken for damage.
const MAX_FRAME: u32 = 1 << 26;

const BUFFER: usize = 1 << 14;
/// Brotli's own scale, to 11; above this it takes much longer and gains little.
const QUALITY: u32 = 5;
/// The logarithm of how far back repetitions are found: many pipelines are measured in turn.
const WINDOW: u32 = 22;

#[derive(Serialize, Deserialize)]
pub(super) enum Frame {
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
    #[error("{} is not a file of samples, or of a later version; this program reads up to version {VERSION}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
    },
    /// A frame in the middle is damaged.
    #[error("{} is damaged after {samples} samples", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How many samples come before.
        samples: usize,
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

/// A file that counts what is written to it.
struct Counted {
    file: File,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A shard being written.
pub struct ShardWriter {
    path: PathBuf,
    stream: CompressorWriter<Counted>,
    known: HashSet<u128>,
}

impl ShardWriter {
    /// Starts a new shard; an existing file is never overwritten.
    pub fn create(path: impl AsRef<Path>) -> Result<ShardWriter, ShardError> {
        let path = path.as_ref().to_path_buf();
        let failed = |error| ShardError::File { path: path.clone(), error };
        let mut file = Counted { file: File::create_new(&path).map_err(failed)?, bytes: 0 };
        file.write_all(MAGIC).and_then(|()| file.write_all(&VERSION.to_le_bytes())).map_err(failed)?;
        let stream = CompressorWriter::new(file, BUFFER, QUALITY, WINDOW);
        Ok(ShardWriter { path, stream, known: HashSet::new() })
    }

    /// Adds a sample of a pipeline, whose hash it is given; it is in the file when this returns.
    pub fn add(&mut self, pipeline: &Pipeline, mut sample: Sample) -> Result<(), ShardError> {
        let hash = pipeline.structural_hash();
        if self.known.insert(hash) {
            self.frame(&Frame::Pipeline { hash, json: pipeline.to_json() })?;
        }
        sample.pipeline = hash;
        self.frame(&Frame::Sample(Box::new(sample)))?;
        self.stream.flush().map_err(|error| ShardError::File { path: self.path.clone(), error })
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.stream.get_ref().bytes
    }

    fn frame(&mut self, frame: &Frame) -> Result<(), ShardError> {
        let failed = |error| ShardError::File { path: self.path.clone(), error };
        let bytes = bincode::serde::encode_to_vec(frame, bincode::config::standard());
        let bytes = bytes.map_err(|error| failed(io::Error::other(error)))?;
        let mut whole = (bytes.len() as u32).to_le_bytes().to_vec();
        whole.extend((xxh3_64(&bytes) as u32).to_le_bytes());
        whole.extend(bytes);
        self.stream.write_all(&whole).map_err(failed)
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
        if bytes.len() < HEADER || &bytes[..MAGIC.len()] != MAGIC {
            return Err(ShardError::Format { path: path.to_path_buf() });
        }
        let mut shard = Shard::default();
        let whole = match word(bytes, MAGIC.len()) {
            Some(1) => shard.add_frames(&bytes[HEADER..], false, path),
            Some(VERSION) => {
                let mut stream = Vec::new();
                let unpacked = Decompressor::new(Torn(&bytes[HEADER..]), BUFFER).read_to_end(&mut stream);
                // What was cut off at the end is no damage.
                let sound = unpacked.map_or_else(|error| error.kind() == ErrorKind::UnexpectedEof, |_| true);
                shard.add_frames(&stream, true, path).map(|whole| whole && sound)
            }
            _ => return Err(ShardError::Format { path: path.to_path_buf() }),
        };
        match whole? {
            true => Ok(shard),
            false => Err(ShardError::Damaged { path: path.to_path_buf(), samples: shard.samples.len() }),
        }
    }

    /// Adds what a stream of frames holds; `false` if there is damage before its end.
    fn add_frames(&mut self, stream: &[u8], checked: bool, path: &Path) -> Result<bool, ShardError> {
        let head = if checked { 8 } else { 4 };
        let mut offset = 0;
        while let Some(length) = word(stream, offset) {
            let start = offset + head;
            if length > MAX_FRAME {
                return Ok(false);
            }
            let Some(frame) = stream.get(start..start + length as usize) else { break };
            let frame = match checked {
                true if word(stream, offset + 4) != Some(xxh3_64(frame) as u32) => None,
                true => bincode::serde::decode_from_slice(frame, bincode::config::standard())
                    .ok()
                    .map(|(frame, _)| frame),
                false => first_version::decode(frame),
            };
            let Some(frame) = frame else { return Ok(false) };
            self.add(frame, path)?;
            offset = start + length as usize;
        }
        Ok(true)
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

/// Bytes whose end is an error of its own kind, as the decompressor calls everything damage.
struct Torn<'a>(&'a [u8]);

impl Read for Torn<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.0.is_empty() {
            true => Err(ErrorKind::UnexpectedEof.into()),
            false => self.0.read(bytes),
        }
    }
}

/// The number at an offset.
fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..offset + 4)?;
    Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warploom_lang::{Input, Realisation, Region, func, vars};

    use super::*;
    use crate::sample::{Origin, Sizes, Status, Times};

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
            origin: Origin::Random,
            device: "H200".into(),
            fingerprint: "0123".into(),
            versions: vec!["0.1.0".into()],
            status: Status::Measured,
            verified: true,
            times: Some(Times { min: 1.0, median: 1.5, runs: 10 }),
            kernels: Vec::new(),
            compile_ms: 20.0,
        }
    }

    /// A shard with two samples, as bytes, cut off as a kill would leave it, and how much of it has one.
    fn written() -> (Vec<u8>, usize) {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("a.samples");
        let mut shard = ShardWriter::create(&path).expect("it is new");
        assert!(ShardWriter::create(&path).is_err(), "nothing is overwritten");
        shard.add(&pipeline(), sample("one")).expect("there is room");
        let one = std::fs::read(&path).expect("it is there").len();
        assert_eq!(shard.bytes(), one as u64);
        shard.add(&pipeline(), sample("two")).expect("there is room");
        let bytes = std::fs::read(&path).expect("it is there");
        let killed = Shard::parse(&bytes, &path).expect("what is finished is in the file");
        drop(shard);
        let read = Shard::read(&path).expect("it was just written");
        assert_eq!(read.samples, killed.samples);
        assert_eq!((read.pipelines.len(), read.samples.len()), (1, 2));
        let request = read.samples[1].sizes.realise(&read.pipelines[&read.samples[1].pipeline]);
        assert_eq!(Sizes::of(&request), read.samples[1].sizes);
        (bytes, one)
    }

    #[test]
    fn a_torn_end_loses_only_the_last_frame() {
        let (bytes, one) = written();
        for end in one..bytes.len() - 4 {
            let shard = Shard::parse(&bytes[..end], Path::new("torn")).expect("the rest is whole");
            assert_eq!(shard.samples.len(), 1, "{end} of {}", bytes.len());
        }
    }

    #[test]
    fn the_first_version_is_read() {
        let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../training/data/h200-2026-11-15-c.samples");
        let shard = Shard::read(samples).expect("it is whole");
        assert_eq!((shard.pipelines.len(), shard.samples.len()), (2, 31));
        assert!(shard.samples.iter().all(|sample| sample.origin == Origin::Given && sample.times.is_some()));
    }

    proptest! {
        #[test]
        fn damage_never_panics(position in 0usize..4000, byte in any::<u8>()) {
            let (mut bytes, _) = written();
            let len = bytes.len();
            bytes[position % len] = byte;
            let _ = Shard::parse(&bytes, Path::new("damaged"));
        }
    }
}
