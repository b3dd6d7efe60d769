//! What the thread with the GPU does: from machine code to a sample.

use std::sync::Arc;
use std::time::Instant;

use warploom_interp::buffer::Buffer;
use warploom_interp::compare::{Tolerance, compare};
use warploom_lang::dispatch;
use warploom_runtime::Error;

use super::prepare::{Prepared, PreparedCheck};
use super::{Check, Machine, Measured, Setup};
use crate::sample::{Sample, Status};
use crate::workload::from_bytes;

/// Checks and times a candidate. If a kernel of it faults, that comes too.
pub(super) fn judge(
    setup: &Setup<'_>,
    prepared: Prepared,
    machine: &mut dyn Machine,
) -> (Measured, Option<String>) {
    let started = Instant::now();
    let Prepared { candidate, outcome, kernels, compile_ms, check } = prepared;
    let subject = &candidate.subject;
    let mut sample = Sample {
        pipeline: 0,
        sizes: subject.sizes(),
        schedule: candidate.schedule.to_text(subject.pipeline()),
        origin: candidate.origin,
        device: setup.device.name.clone(),
        fingerprint: setup.device.fingerprint(),
        versions: setup.versions.clone(),
        status: Status::Measured,
        verified: false,
        times: None,
        kernels,
        compile_ms,
    };
    let ran = match outcome {
        Err(status) => {
            sample.status = status;
            Ok(())
        }
        Ok(program) => verify(&mut sample, check.as_ref(), machine)
            .and_then(|()| machine.time(subject, &program).map(|times| sample.times = Some(times))),
    };
    let mut fault = None;
    if let Err(error) = ran {
        fault = error.is_fault().then(|| error.to_string());
        if sample.status == Status::Measured {
            sample.status = Status::Failed(error.to_string());
        }
    }
    (Measured { candidate, sample, machine_time: started.elapsed() }, fault)
}

/// Compares the kernels of both builds with the reference.
fn verify(
    sample: &mut Sample,
    prepared: Option<&PreparedCheck>,
    machine: &mut dyn Machine,
) -> Result<(), Error> {
    let Some(PreparedCheck { check, checking, timing }) = prepared else { return Ok(()) };
    let difference = compared(check, &machine.run(&check.subject, checking)?, None);
    let status = match difference {
        Some(difference) => Some(Status::Wrong(difference)),
        None => {
            let outputs = machine.run(&check.subject, timing)?;
            compared(check, &outputs, Some(&check.tolerance)).map(Status::Numeric)
        }
    };
    sample.verified = true;
    if let Some(status) = status {
        sample.status = status;
    }
    Ok(())
}

/// How outputs differ from the reference: in any bit, or by more than a tolerance.
fn compared(check: &Arc<Check>, outputs: &[Vec<u8>], tolerance: Option<&Tolerance>) -> Option<String> {
    if outputs.len() != check.expected.len() {
        return Some(format!("there are {} outputs instead of {}", outputs.len(), check.expected.len()));
    }
    outputs.iter().zip(&check.expected).find_map(|(bytes, expected)| {
        let region = expected.region().clone();
        let actual = dispatch!(expected.ty(), T => Buffer::from_vec::<T>(region, from_bytes::<T>(bytes)));
        let actual = match actual {
            Ok(actual) => actual,
            Err(error) => return Some(error.to_string()),
        };
        match compare(&actual, expected, tolerance.unwrap_or(&Tolerance::default())) {
            Ok(found) if found.identical || (tolerance.is_some() && found.passed) => None,
            Ok(found) => Some(found.to_string()),
            Err(mismatch) => Some(mismatch.to_string()),
        }
    })
}
