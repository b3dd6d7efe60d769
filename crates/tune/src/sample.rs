//! Measured samples, and the files that store them: [`ShardWriter`], [`ShardFolder`] and [`Shard`].
//!
//! A sample stores the measurement and the inputs to rebuild it, but no features. Features are recomputed from pipeline
//! and schedule, so samples stay valid when the feature set changes.

mod first_version;
mod folder;
mod shard;

use serde::{Deserialize, Serialize};
use warploom_lang::{Pipeline, Realisation, Region, Value};
use xxhash_rust::xxh3::xxh3_128;

pub use folder::ShardFolder;
pub use shard::{Shard, ShardError, ShardWriter};

/// The sizes and Params that a sample was built for, in the order of the pipeline's tables.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sizes {
    /// One box per input.
    pub inputs: Vec<Region>,
    /// One box per output.
    pub outputs: Vec<Region>,
    /// Type and bits of each Param.
    pub params: Vec<(warploom_lang::Type, u64)>,
}

impl Sizes {
    /// The sizes of a complete realisation; entries that are not set are skipped.
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

/// The outcome of a candidate. The messages are sentences for the user.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Status {
    /// It ran and was timed.
    Measured,
    /// It could not be lowered, or the schedule is not legal.
    NotLowered(String),
    /// The kernel compiler rejected it.
    NotCompiled(String),
    /// It could not be loaded or launched, or a kernel faulted.
    Failed(String),
    /// Its checking build gave results that differ from the expected ones.
    Wrong(String),
    /// Its checking build is correct, but its timing build exceeds the tolerance.
    Numeric(String),
    /// A kernel spills registers, so it was not run.
    Spilled(String),
    /// It exceeded the time limit for compiling or running.
    TimedOut(String),
    /// The process that compiled or ran it exited or sent a corrupt answer.
    Crashed(String),
}

impl Status {
    /// The name of the outcome in records, such as `ok` or `not_compiled`.
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

    /// The message of a failure; empty for `Measured`.
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

    /// The status of a name and a message; `None` if the name is unknown.
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
    /// The user supplied it.
    Given,
    /// It is the default schedule.
    Default,
    /// The schedule search found it.
    Search,
    /// It was drawn at random from the legal schedules.
    Random,
    /// It is a neighbour of one of the fastest schedules measured.
    Near,
    /// A strategy asked for it.
    Strategy,
}

impl Origin {
    const ALL: [(Origin, &'static str); 6] = [
        (Origin::Given, "given"),
        (Origin::Default, "default"),
        (Origin::Search, "search"),
        (Origin::Random, "random"),
        (Origin::Near, "near"),
        (Origin::Strategy, "strategy"),
    ];

    /// The name of the origin in records, such as `search`.
    pub fn name(self) -> &'static str {
        Origin::ALL.iter().find(|(origin, _)| *origin == self).map_or("", |(_, name)| name)
    }

    /// The origin of a name; `None` if the name is unknown.
    pub fn from_name(name: &str) -> Option<Origin> {
        Origin::ALL.iter().find(|(_, known)| *known == name).map(|(origin, _)| *origin)
    }
}

/// Times of complete runs, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Times {
    /// Shortest time.
    pub min: f64,
    /// Median time.
    pub median: f64,
    /// Number of timed runs.
    pub runs: u32,
}

/// Resource usage of one kernel, as the kernel compiler reported it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct KernelUse {
    /// Entry name of the kernel.
    pub name: String,
    /// Registers per thread.
    pub registers: u32,
    /// Bytes of spill stores.
    pub spill_stores: u32,
    /// Bytes of spill loads.
    pub spill_loads: u32,
    /// Bytes of shared memory per block.
    pub shared: u32,
}

impl KernelUse {
    /// Bytes of spill stores and spill loads together.
    pub fn spilled_bytes(&self) -> u64 {
        u64::from(self.spill_stores) + u64::from(self.spill_loads)
    }
}

/// A candidate and its measured result.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// Structural hash of the pipeline. If several pipelines have it, all but the first have another hash.
    pub pipeline: u128,
    /// Sizes of inputs and outputs, and the Params.
    pub sizes: Sizes,
    /// The schedule as text.
    pub schedule: String,
    /// How the schedule was found.
    pub origin: Origin,
    /// Name of the device.
    pub device: String,
    /// Fingerprint of the device; times are comparable only between equal fingerprints.
    pub fingerprint: String,
    /// Versions of Warploom, its code generator, the kernel compiler and the driver.
    pub versions: Vec<String>,
    /// The outcome.
    pub status: Status,
    /// Whether its outputs were compared with expected ones.
    pub verified: bool,
    /// Measured times; `None` if it was not timed.
    pub times: Option<Times>,
    /// Resource usage per kernel; empty if it was not compiled.
    pub kernels: Vec<KernelUse>,
    /// Compile time of the timing build, in milliseconds.
    pub compile_ms: f64,
}

/// The hash of a pipeline in samples, if its structural hash belongs to a pipeline with other names.
pub(crate) fn renamed_key(pipeline: &Pipeline) -> u128 {
    let hashes = [pipeline.structural_hash(), pipeline.names_hash()].map(u128::to_le_bytes);
    xxh3_128(&hashes.concat())
}

impl Sample {
    /// Approximate memory footprint, in bytes.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Sample files have the numbers of origins, and databases their names.
    #[test]
    fn origins_keep_their_numbers_and_names() {
        let expected = ["given", "default", "search", "random", "near", "strategy"];
        for (number, name) in expected.into_iter().enumerate() {
            let origin = Origin::from_name(name).unwrap();
            assert_eq!((origin as usize, origin.name()), (number, name));
        }
        assert_eq!(Origin::ALL.len(), expected.len());
    }
}
