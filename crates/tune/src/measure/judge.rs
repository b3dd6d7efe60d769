//! The work of a GPU thread: turns machine code into a sample.

use std::time::{Duration, Instant};

use warploom_interp::buffer::Buffer;
use warploom_interp::expected::{Closeness, Expected};
use warploom_runtime::TimingOptions;
use warploom_target::Program;

use super::prepare::{Built, Prepared, rewritten};
use super::{Candidate, Check, Failure, Machine, Measured, Setup};
use crate::sample::{Sample, Status};
use crate::workload::{buffer, output_orders};

/// Checks and times a candidate that was built elsewhere. Also returns the failure, if there was one.
/// `best` is the shortest time of other candidates, in microseconds.
pub fn run(
    setup: &Setup<'_>,
    candidate: Candidate,
    built: Built,
    machine: &mut dyn Machine,
    best: f64,
) -> (Measured, Option<Failure>) {
    judge(setup, rewritten(candidate, built), machine, best)
}

/// Checks and times a candidate. Also returns the failure, if there was one. `best` is the shortest
/// time of other candidates, in microseconds.
pub(super) fn judge(
    setup: &Setup<'_>,
    prepared: Prepared,
    machine: &mut dyn Machine,
    best: f64,
) -> (Measured, Option<Failure>) {
    let started = Instant::now();
    let Prepared { candidate, built: Built { outcome, kernels, compile_ms, checks, lost } } = prepared;
    let subject = &candidate.subject;
    let mut sample = Sample {
        pipeline: subject.pipeline().structural_hash(),
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
    let mut spread = 0.0;
    let ran = match outcome {
        Err(status) => {
            sample.status = status;
            lost.map_or(Ok(()), |why| Err(Failure::Lost(why)))
        }
        Ok(program) => candidate
            .checks
            .iter()
            .zip(&checks)
            .try_for_each(|(check, builds)| verify(&mut sample, check, builds.as_ref(), machine))
            .and_then(|()| machine.time(subject, &program, &timing(setup, best)))
            .map(|timed| {
                sample.times = Some(timed.times);
                spread = timed.spread;
            }),
    };
    let failure = ran.err();
    if let (Some(failure), Status::Measured) = (&failure, &sample.status) {
        sample.status = failure.clone().when_run();
    }
    (Measured { candidate, sample, spread, machine_time: started.elapsed() }, failure)
}

/// Timing options for a candidate; in a contest, `best` (microseconds) is its rival.
fn timing(setup: &Setup<'_>, best: f64) -> TimingOptions {
    let mut timing = setup.timing.clone();
    if setup.contest.is_some() {
        timing.rival = Duration::try_from_secs_f64(best / 1e6).ok();
    }
    timing
}

/// Compares both builds with the expected outputs, if there are any, unless an earlier check already
/// failed.
fn verify(
    sample: &mut Sample,
    check: &Check,
    builds: Option<&[Program; 2]>,
    machine: &mut dyn Machine,
) -> Result<(), Failure> {
    let Some([checking, timing]) = builds.filter(|_| sample.status == Status::Measured) else {
        return Ok(());
    };
    sample.status = compare_builds(check, checking, timing, machine)?;
    sample.verified = true;
    Ok(())
}

/// Runs the checking and timing builds at the size of a check, and returns the status to record.
///
/// # Errors
/// If a build cannot be run.
pub(crate) fn compare_builds(
    check: &Check,
    checking: &Program,
    timing: &Program,
    machine: &mut dyn Machine,
) -> Result<Status, Failure> {
    let checked = buffers(check, &machine.run(&check.subject, checking)?);
    let status = match checked.map(|outputs| check.expected.difference(&outputs)) {
        Err(difference) | Ok(Some(difference)) => Status::Wrong(difference),
        Ok(None) => {
            let outputs = buffers(check, &machine.run(&check.subject, timing)?);
            outputs.map_or_else(Status::Numeric, |outputs| closeness(&check.expected, &outputs))
        }
    };
    if status != Status::Measured {
        machine.restore();
    }
    Ok(status)
}

/// The status to record for the outputs of a timing build.
fn closeness(expected: &Expected, outputs: &[Buffer]) -> Status {
    let found = expected.closeness(outputs);
    for closeness in &found {
        tracing::debug!("{closeness}");
    }
    found.iter().find_map(Closeness::sentence).map_or(Status::Measured, Status::Numeric)
}

/// Converts the output bytes of a check to buffers.
fn buffers(check: &Check, outputs: &[Vec<u8>]) -> Result<Vec<Buffer>, String> {
    let expected = check.expected.buffers();
    if outputs.len() != expected.len() {
        return Err(format!("there are {} outputs instead of {}", outputs.len(), expected.len()));
    }
    let orders = output_orders(check.subject.pipeline());
    let made = expected
        .zip(orders)
        .zip(outputs)
        .map(|((expected, order), bytes)| buffer(expected.ty(), expected.region(), &order, bytes));
    made.map(|made| made.map_err(|error| error.to_string())).collect()
}
