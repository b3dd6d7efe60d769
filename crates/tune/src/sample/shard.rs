//! Sample files.
//!
//! A shard is a header (16 letters and the version, `u32`) followed by one Brotli stream. The
//! stream consists of frames: length (`u32`), checksum (`u32`) and that many bytes of bincode;
//! numbers are little endian. A frame is either a pipeline, stored once, or a sample of a pipeline
//! that came before it. The stream is flushed after every sample, so a run that is killed loses at
//! most the sample in progress. A truncated frame at the end is ignored when the file is read.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use brotli::{CompressorWriter, Decompressor};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use warploom_lang::files::{self, Limit, ReadError, SAMPLE, SAMPLES};
use warploom_lang::{Pipeline, PipelineError};
use xxhash_rust::xxh3::xxh3_64;

use super::{Sample, first_version, renamed_key};

const MAGIC: &[u8; 16] = b"warploom samples";
const VERSION: u32 = 2;
const HEADER: usize = MAGIC.len() + 4;

/// Upper bound for the memory of a pipeline, as a multiple of its text size.
const PIPELINE_GROWTH: u64 = 8;

const BUFFER: usize = 1 << 14;
/// Brotli quality, up to 11; higher values take much longer and gain little.
const QUALITY: u32 = 5;
/// Logarithm of Brotli's window size. It is large because samples of many pipelines alternate.
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
        /// The sample file.
        path: PathBuf,
        /// The error from the operating system.
        error: io::Error,
    },
    /// The file or a frame exceeds its size limit or the available memory, or the file is not a
    /// regular file.
    #[error(transparent)]
    Refused(ReadError),
    /// The file is not a shard, or has a newer version.
    #[error("{} is not a samples file, or has a later version; this program reads up to version {VERSION}", path.display())]
    Format {
        /// The file that was read.
        path: PathBuf,
    },
    /// A frame before the end is damaged.
    #[error("{} is damaged after {samples} samples", path.display())]
    Damaged {
        /// The sample file.
        path: PathBuf,
        /// Number of intact samples before the damage.
        samples: usize,
    },
    /// The shard contains an invalid pipeline.
    #[error("{} contains a pipeline that cannot be read: {error}", path.display())]
    Pipeline {
        /// The sample file.
        path: PathBuf,
        /// Why the pipeline is invalid.
        error: PipelineError,
    },
}

/// A file that counts the bytes written to it.
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

/// Writes a shard.
pub struct ShardWriter {
    path: PathBuf,
    stream: CompressorWriter<Counted>,
    /// The hashes of the names of the pipelines so far, by their structural hashes.
    known: HashMap<u128, Vec<u128>>,
}

impl ShardWriter {
    /// Creates a new shard; never overwrites a file.
    pub fn create(path: impl AsRef<Path>) -> Result<ShardWriter, ShardError> {
        let path = path.as_ref().to_path_buf();
        let failed = |error| ShardError::File { path: path.clone(), error };
        let mut file = Counted { file: File::create_new(&path).map_err(failed)?, bytes: 0 };
        file.write_all(MAGIC).and_then(|()| file.write_all(&VERSION.to_le_bytes())).map_err(failed)?;
        let stream = CompressorWriter::new(file, BUFFER, QUALITY, WINDOW);
        Ok(ShardWriter { path, stream, known: HashMap::new() })
    }

    /// Adds a sample of a pipeline, and sets the sample's pipeline hash. It has been written to the
    /// file when this returns.
    pub fn add(&mut self, pipeline: &Pipeline, mut sample: Sample) -> Result<(), ShardError> {
        let (structure, names) = (pipeline.structural_hash(), pipeline.names_hash());
        let known = self.known.entry(structure).or_default();
        let position = known.iter().position(|known| *known == names);
        // Schedules are texts, which mean something else under other names.
        let is_first = position.map_or(known.is_empty(), |position| position == 0);
        let hash = if is_first { structure } else { renamed_key(pipeline) };
        if position.is_none() {
            known.push(names);
            self.frame(&Frame::Pipeline { hash, json: pipeline.to_json() })?;
        }
        sample.pipeline = hash;
        self.frame(&Frame::Sample(Box::new(sample)))?;
        self.stream.flush().map_err(|error| ShardError::File { path: self.path.clone(), error })
    }

    /// Bytes written to the file so far.
    pub fn bytes(&self) -> u64 {
        self.stream.get_ref().bytes
    }

    fn frame(&mut self, frame: &Frame) -> Result<(), ShardError> {
        let failed = |error| ShardError::File { path: self.path.clone(), error };
        let bytes = bincode::serde::encode_to_vec(frame, bincode::config::standard());
        let bytes = bytes.map_err(|error| failed(io::Error::other(error)))?;
        if bytes.len() as u64 > SAMPLE.most {
            let (path, limit) = (self.path.clone(), SAMPLE);
            return Err(ShardError::Refused(ReadError::TooLarge { path, limit }));
        }
        let mut whole = (bytes.len() as u32).to_le_bytes().to_vec();
        whole.extend((xxh3_64(&bytes) as u32).to_le_bytes());
        whole.extend(bytes);
        self.stream.write_all(&whole).map_err(failed)
    }
}

/// The contents of a shard.
#[derive(Debug, Default)]
pub struct Shard {
    /// Pipelines by the hashes in their samples.
    pub pipelines: HashMap<u128, Pipeline>,
    /// Samples in the order they were measured.
    pub samples: Vec<Sample>,
}

impl Shard {
    /// Reads a shard; a truncated frame at the end is ignored.
    pub fn read(path: impl AsRef<Path>) -> Result<Shard, ShardError> {
        let path = path.as_ref();
        let bytes = files::read(path, SAMPLES).map_err(|error| match error {
            ReadError::System { path, error } => ShardError::File { path, error },
            refused => ShardError::Refused(refused),
        })?;
        Shard::parse(&bytes, path)
    }

    /// Parses the bytes of a shard. `path` is used in error messages only.
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Shard, ShardError> {
        if bytes.len() < HEADER || &bytes[..MAGIC.len()] != MAGIC {
            return Err(ShardError::Format { path: path.to_path_buf() });
        }
        let mut reader = Reader { shard: Shard::default(), taken: 0, path };
        let rest = Torn(&bytes[HEADER..]);
        let whole = match word(&bytes[MAGIC.len()..]) {
            1 => reader.add_frames(rest, false),
            VERSION => reader.add_frames(Decompressor::new(rest, BUFFER), true),
            _ => return Err(ShardError::Format { path: path.to_path_buf() }),
        };
        match whole? {
            true => Ok(reader.shard),
            false => {
                Err(ShardError::Damaged { path: path.to_path_buf(), samples: reader.shard.samples.len() })
            }
        }
    }
}

/// Reads a shard frame by frame.
struct Reader<'p> {
    shard: Shard,
    /// Approximate memory used so far, limited by [`SAMPLES`].
    taken: u64,
    path: &'p Path,
}

impl Reader<'_> {
    /// Reads all frames of a stream; `false` if there is damage before its end.
    fn add_frames(&mut self, mut stream: impl Read, checked: bool) -> Result<bool, ShardError> {
        let mut head = [0; 8];
        let head = &mut head[..if checked { 8 } else { 4 }];
        loop {
            let mut bytes = Vec::new();
            let read = stream.read_exact(head).and_then(|()| {
                let length = u64::from(word(head)).min(SAMPLE.most + 1);
                (&mut stream).take(length).read_to_end(&mut bytes)
            });
            match read {
                Err(error) => return Ok(error.kind() == ErrorKind::UnexpectedEof),
                Ok(length) if length as u64 > SAMPLE.most => return Err(self.too_large(SAMPLE)),
                // The stream ends within a frame.
                Ok(length) if length < word(head) as usize => return Ok(true),
                Ok(_) => {}
            }
            let frame = match checked {
                true if word(&head[4..]) != xxh3_64(&bytes) as u32 => None,
                true => decode(&bytes),
                false => first_version::decode(&bytes),
            };
            let Some(frame) = frame else { return Ok(false) };
            self.add(frame, bytes.len() as u64)?;
        }
    }

    fn add(&mut self, frame: Frame, unpacked: u64) -> Result<(), ShardError> {
        let taken = match &frame {
            Frame::Pipeline { .. } => unpacked.saturating_mul(PIPELINE_GROWTH),
            Frame::Sample(sample) => unpacked.max(sample.memory()),
        };
        self.taken = self.taken.saturating_add(taken);
        if self.taken > SAMPLES.most {
            return Err(self.too_large(SAMPLES));
        }
        match frame {
            Frame::Pipeline { hash, json } => {
                let unreadable = |error| ShardError::Pipeline { path: self.path.to_path_buf(), error };
                self.shard.pipelines.insert(hash, Pipeline::from_json(&json).map_err(unreadable)?);
            }
            Frame::Sample(sample) => self.shard.samples.push(*sample),
        }
        Ok(())
    }

    fn too_large(&self, limit: Limit) -> ShardError {
        ShardError::Refused(ReadError::TooLarge { path: self.path.to_path_buf(), limit })
    }
}

/// Decodes a frame; `None` if it is invalid.
pub(super) fn decode<T: DeserializeOwned>(frame: &[u8]) -> Option<T> {
    let config = bincode::config::standard().with_limit::<{ SAMPLE.most as usize }>();
    bincode::serde::decode_from_slice(frame, config).ok().map(|(frame, _)| frame)
}

/// A byte stream whose end is an error of a distinct kind, because the decompressor reports every
/// problem as damage.
struct Torn<'a>(&'a [u8]);

impl Read for Torn<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.0.is_empty() {
            true => Err(ErrorKind::UnexpectedEof.into()),
            false => self.0.read(bytes),
        }
    }
}

/// The little-endian `u32` at the start of some bytes.
fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
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

    /// A shard with two samples, as bytes, as a killed process would leave it, and the length of
    /// the part with the first sample.
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

    /// A version 1 file with one frame.
    fn first_version(frame: &[u8]) -> Vec<u8> {
        [MAGIC.as_slice(), &1_u32.to_le_bytes(), &(frame.len() as u32).to_le_bytes(), frame].concat()
    }

    /// A file with a compressed stream.
    fn packed(stream: &[u8]) -> Vec<u8> {
        let start = [MAGIC.as_slice(), &VERSION.to_le_bytes()].concat();
        let mut packed = CompressorWriter::new(start, BUFFER, QUALITY, WINDOW);
        packed.write_all(stream).expect("memory does not fail");
        packed.into_inner()
    }

    /// A file of 46 bytes that declares a pipeline text of 2^60 bytes.
    #[test]
    fn a_length_that_is_made_up_is_damage() {
        let text = [&[0, 0, 253], (1_u64 << 60).to_le_bytes().as_slice(), &[b'x'; 11]].concat();
        let file = first_version(&text);
        assert_eq!(file.len(), 46);
        let refused = |file: &[u8]| Shard::parse(file, Path::new("a.samples")).expect_err("it is made up");
        assert_eq!(refused(&file).to_string(), "a.samples is damaged after 0 samples");
        let head = [(text.len() as u32).to_le_bytes(), (xxh3_64(&text) as u32).to_le_bytes()].concat();
        let file = packed(&[head, text].concat());
        assert_eq!(refused(&file).to_string(), "a.samples is damaged after 0 samples");
    }

    #[test]
    fn little_that_becomes_much_is_refused() {
        let mut frame = vec![0; 40 << 20];
        frame[..4].copy_from_slice(&u32::MAX.to_le_bytes());
        let file = packed(&frame);
        assert!(file.len() < 1000, "{} bytes", file.len());
        let refused = Shard::parse(&file, Path::new("a.samples")).expect_err("it is too much");
        assert_eq!(
            refused.to_string(),
            "a.samples is too large: 16 MiB is the limit for one sample; give a smaller file"
        );
    }

    /// Each frame is within its limit, but even empty strings take memory.
    #[test]
    fn many_frames_are_refused_when_they_take_too_much_memory() {
        let large = Sample { versions: vec![String::new(); 1 << 20], ..sample("large") };
        assert!(large.memory() > 24 << 20);
        let frame =
            bincode::serde::encode_to_vec(Frame::Sample(Box::new(large)), bincode::config::standard());
        let frame = frame.expect("it can be encoded");
        let head = [(frame.len() as u32).to_le_bytes(), (xxh3_64(&frame) as u32).to_le_bytes()].concat();
        let file = packed(&[head, frame].concat().repeat(22));
        let refused = Shard::parse(&file, Path::new("a.samples")).expect_err("it is too much");
        assert!(
            matches!(refused, ShardError::Refused(ReadError::TooLarge { limit: SAMPLES, .. })),
            "{refused}"
        );
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
