//! Plausibility checks for imported trials.

use warploom_lang::{Pipeline, Region};

use super::Trial;
use crate::sample::{Sample, Status, Times};

/// The longest plausible time, in microseconds: more than eleven days.
const LONGEST_US: f64 = 1e12;

/// The latest plausible timestamp, in seconds since the Unix epoch: the end of the year 9999.
const LATEST: u64 = 253_402_300_799;

/// The largest plausible number of samples in an input or output.
const MAX_POINTS: u64 = 1 << 40;

/// More registers, and more bytes of shared memory or spills, than any kernel uses.
const MAX_REGISTERS: u32 = 1 << 10;
const MAX_BYTES: u32 = 1 << 30;

/// Rejects numbers that cannot be measurements, and sizes that do not fit the pipeline. The error
/// is a sentence.
pub(super) fn check(pipeline: &Pipeline, trial: &Trial) -> Result<(), String> {
    let Trial { id: _, sample, predicted_us, spread, retimed_us, measured_at } = trial;
    let Sample { sizes, status, times, kernels, compile_ms, .. } = sample;
    if let Some(Times { min, median, runs }) = times {
        positive("its shortest time", *min)?;
        positive("its median time", *median)?;
        if median < min || *runs == 0 {
            return Err(format!("its median of {runs} runs is {median} us, its shortest time {min} us"));
        }
    } else if *status == Status::Measured {
        return Err("it was measured, but has no time".to_owned());
    }
    predicted_us.map_or(Ok(()), |time| positive("its predicted time", time))?;
    retimed_us.map_or(Ok(()), |time| positive("its time in turns", time))?;
    not_negative("its spread", *spread)?;
    not_negative("its time to compile", *compile_ms)?;
    if *measured_at > LATEST {
        return Err(format!("it was measured {measured_at} seconds after 1970"));
    }
    for kernel in kernels {
        let bytes = kernel.spill_stores.max(kernel.spill_loads).max(kernel.shared);
        if kernel.registers > MAX_REGISTERS || bytes > MAX_BYTES {
            return Err(format!("its kernel `{}` uses more registers or bytes than possible", kernel.name));
        }
    }
    let inputs: Vec<usize> = pipeline.inputs().values().map(|input| input.dimensions).collect();
    let outputs: Vec<usize> =
        pipeline.outputs().iter().map(|output| pipeline.funcs()[*output].dims.len()).collect();
    boxes("inputs", &sizes.inputs, &inputs)?;
    boxes("outputs", &sizes.outputs, &outputs)?;
    let params = pipeline.params().values().map(|param| param.ty);
    match params.eq(sizes.params.iter().map(|(ty, _)| *ty)) {
        true => Ok(()),
        false => Err("its Params are not those of its pipeline".to_owned()),
    }
}

fn positive(what: &str, time: f64) -> Result<(), String> {
    match time > 0.0 && time <= LONGEST_US {
        true => Ok(()),
        false => Err(format!("{what} is {time:?}; times must be above 0 and at most {LONGEST_US:e} us")),
    }
}

fn not_negative(what: &str, number: f64) -> Result<(), String> {
    match (0.0..=LONGEST_US).contains(&number) {
        true => Ok(()),
        false => Err(format!("{what} is {number:?}; it must be from 0 to {LONGEST_US:e}")),
    }
}

fn boxes(what: &str, given: &[Region], dimensions: &[usize]) -> Result<(), String> {
    if !given.iter().map(Region::dimensions).eq(dimensions.iter().copied()) {
        return Err(format!("its {what} are not those of its pipeline"));
    }
    let sound = |region: &Region| {
        let ends =
            region.0.iter().all(|range| range.min.checked_add(range.extent).is_some() && range.extent > 0);
        ends && region.points().is_some_and(|points| points <= MAX_POINTS)
    };
    match given.iter().all(sound) {
        true => Ok(()),
        false => Err(format!("its {what} have extents that no array can have")),
    }
}
