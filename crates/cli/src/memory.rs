//! Checks that the inputs and outputs of a pipeline fit in memory, before they are allocated.

use warploom::interp::available_memory;

use crate::error::Error;
use crate::pipeline::Subject;

/// Assumed free memory if the system does not report it, in bytes.
const UNKNOWN: u64 = 64 << 30;

/// Returns an error if the inputs and outputs need more memory than is free.
pub(crate) fn check(subject: &Subject) -> Result<(), Error> {
    let (pipeline, shapes) = (&subject.pipeline, subject.shapes());
    let input_bytes = |name: &str| pipeline.input_named(name).map(|id| pipeline.inputs()[id].ty.bytes());
    let output_bytes =
        |name: &str| pipeline.func_named(name).map(|id| pipeline.funcs()[id].bytes_per_point());
    let inputs = shapes.inputs.iter().map(|(name, region)| (region, input_bytes(name)));
    let outputs = shapes.outputs.iter().map(|(name, region)| (region, output_bytes(name)));
    let needed = inputs.chain(outputs).fold(0u64, |sum, (region, bytes)| {
        let points = region.points().unwrap_or(u64::MAX);
        sum.saturating_add(points.saturating_mul(bytes.unwrap_or(1) as u64))
    });
    let free = available_memory().unwrap_or(UNKNOWN);
    if needed <= free {
        return Ok(());
    }
    Err(Error::Memory { app: subject.name.clone(), sizes: subject.sizes.to_string(), needed, free })
}
