//! Version 1 of shards: frames are not compressed, and samples have no origin.

use serde::Deserialize;

use super::shard::{self, Frame};
use super::{KernelUse, Origin, Sample, Sizes, Status, Times};

#[derive(Deserialize)]
struct OldSample {
    pipeline: u128,
    sizes: Sizes,
    schedule: String,
    device: String,
    fingerprint: String,
    versions: Vec<String>,
    status: Status,
    times: Option<Times>,
    kernels: Vec<KernelUse>,
    compile_ms: f64,
}

#[derive(Deserialize)]
enum OldFrame {
    Pipeline { hash: u128, json: String },
    Sample(Box<OldSample>),
}

/// Decodes a frame of version 1.
pub(super) fn decode(bytes: &[u8]) -> Option<Frame> {
    Some(match shard::decode::<OldFrame>(bytes)? {
        OldFrame::Pipeline { hash, json } => Frame::Pipeline { hash, json },
        OldFrame::Sample(old) => Frame::Sample(Box::new(Sample {
            pipeline: old.pipeline,
            sizes: old.sizes,
            schedule: old.schedule,
            origin: Origin::Given,
            device: old.device,
            fingerprint: old.fingerprint,
            versions: old.versions,
            status: old.status,
            verified: false,
            times: old.times,
            kernels: old.kernels,
            compile_ms: old.compile_ms,
        })),
    })
}
