//! Measured samples, and the files they are kept in: [`ShardWriter`], [`ShardFolder`] and [`Shard`].
//!
//! A sample holds what was measured and what is needed to build it again, never features: those are computed
//! anew from pipeline and schedule, so that samples outlive every change of what is computed from them.

mod first_version;
mod folder;
mod shard;

use serde::{Deserialize, Serialize};
use warploom_lang::{Pipeline, Realisation, Region, Value};

pub use folder::ShardFolder;
pub use shard::{Shard, ShardError, ShardWriter};

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
    /// Built for checking, it gave another result than the reference.
    Wrong(String),
    /// Only built for speed is it too far from the reference.
    Numeric(String),
    /// A kernel stores registers to memory for want of room, and was not run for that.
    Spilled(String),
    /// It took too long to compile or to run.
    TimedOut(String),
    /// The process that compiled or ran it ended.
    Crashed(String),
}

impl Status {
    /// One word for it, as records keep it.
    pub fn kind(&self) -> &'static str {
        match self {
            Status::Measured => "ok",
            Status::NotLowered(_) => "not_lowered",
            Status::NotCompiled(_) => "not_compiled",
            Status::Failed(_) => "failed",
            Status::Wrong(_) => "wrong",
            Status::Numeric(_) => "numeric",
            Status::Spilled(_) => "spilled",
            Status::TimedOut(_) => "timeout",
            Status::Crashed(_) => "crashed",
        }
    }

    /// What is known besides.
    pub fn message(&self) -> &str {
        match self {
            Status::Measured => "",
            Status::NotLowered(message)
            | Status::NotCompiled(message)
            | Status::Failed(message)
            | Status::Wrong(message)
            | Status::Numeric(message)
            | Status::Spilled(message)
            | Status::TimedOut(message)
            | Status::Crashed(message) => message,
        }
    }

    /// The status of a word and a message; `None` if there is no such word.
    pub fn from_parts(kind: &str, message: String) -> Option<Status> {
        Some(match kind {
            "ok" => Status::Measured,
            "not_lowered" => Status::NotLowered(message),
            "not_compiled" => Status::NotCompiled(message),
            "failed" => Status::Failed(message),
            "wrong" => Status::Wrong(message),
            "numeric" => Status::Numeric(message),
            "spilled" => Status::Spilled(message),
            "timeout" => Status::TimedOut(message),
            "crashed" => Status::Crashed(message),
            _ => return None,
        })
    }
}

/// Where a schedule came from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Origin {
    /// Somebody gave it.
    Given,
    /// It is the default schedule.
    Default,
    /// A search found it.
    Search,
    /// It was drawn from the legal ones.
    Random,
    /// It lies near a schedule that was among the fastest measured.
    Near,
}

impl Origin {
    const ALL: [(Origin, &'static str); 5] = [
        (Origin::Given, "given"),
        (Origin::Default, "default"),
        (Origin::Search, "search"),
        (Origin::Random, "random"),
        (Origin::Near, "near"),
    ];

    /// One word for it, as records keep it.
    pub fn name(self) -> &'static str {
        Origin::ALL.iter().find(|(origin, _)| *origin == self).map_or("", |(_, name)| name)
    }

    /// The origin of a word; `None` if there is no such word.
    pub fn from_name(name: &str) -> Option<Origin> {
        Origin::ALL.iter().find(|(_, known)| *known == name).map(|(origin, _)| *origin)
    }
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

impl KernelUse {
    /// Bytes that go through memory for want of registers.
    pub fn spilled_bytes(&self) -> u64 {
        u64::from(self.spill_stores) + u64::from(self.spill_loads)
    }
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
    /// Where that came from.
    pub origin: Origin,
    /// Name of the device.
    pub device: String,
    /// Fingerprint of the device.
    pub fingerprint: String,
    /// Versions of this program, the kernel compiler and the driver.
    pub versions: Vec<String>,
    /// How it ended.
    pub status: Status,
    /// Whether its results were compared with the reference, at a smaller size.
    pub verified: bool,
    /// Its times, if it ran.
    pub times: Option<Times>,
    /// What the compiler said of its kernels.
    pub kernels: Vec<KernelUse>,
    /// Time the kernel compiler took, in milliseconds.
    pub compile_ms: f64,
}

impl Sample {
    /// About how many bytes of memory it takes.
    pub(crate) fn memory(&self) -> u64 {
        let regions = self.sizes.inputs.iter().chain(&self.sizes.outputs);
        let regions = regions.map(|region| size_of::<Region>() + size_of_val(region.0.as_slice()));
        let texts = [&self.schedule, &self.device, &self.fingerprint].into_iter().chain(&self.versions);
        let texts = texts.map(|text| size_of::<String>() + text.len());
        let kernels = self.kernels.iter().map(|kernel| size_of::<KernelUse>() + kernel.name.len());
        let rest = size_of::<Sample>() + size_of_val(self.sizes.params.as_slice());
        (rest + regions.chain(texts).chain(kernels).sum::<usize>() + self.status.message().len()) as u64
    }
}
