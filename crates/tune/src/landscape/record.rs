//! Measures all points of a landscape.

use warploom_strategy::Point;

use super::{Definition, Landscape, Outcome, Provenance};
use crate::records::{Records, Trial};
use crate::sample::{Origin, Status};
use crate::tuning::{Ended, Event, Observer, Proposal, Session, Task, TuneError};
use crate::worker::Bench;

/// The result of recording.
#[derive(Debug)]
pub struct Recorded {
    /// The points known now, even if the run ended early.
    pub landscape: Landscape,
    /// Why the run ended.
    pub ended: Ended,
}

/// Measures the points of a definition, at most `most` in this run. Points in the records are not measured again, so
/// the same call continues a run that ended early.
///
/// # Errors
/// If the definition is wrong, or recording cannot start. Later failures are in [`Recorded::ended`].
pub fn record(
    task: &Task<'_>,
    definition: &Definition,
    trials: usize,
    bench: &mut Bench<'_>,
    records: &mut Records,
    observer: Observer<'_>,
) -> Result<Recorded, TuneError> {
    let mut session = Session::new(task, bench, records, observer)?;
    // Schedules that spill are slow, but legal.
    session.skip_spilling = false;
    let (space, points) = definition.points(&session.problem)?;
    let proposal = |point: Point| {
        let schedule = space.schedule(&point).ok()?;
        Some((point, Proposal { schedule, origin: Origin::Strategy, predicted_us: None }))
    };
    let all: Vec<(Point, Proposal)> = points.into_iter().filter_map(proposal).collect();
    let ended = measure(&mut session, &all, trials).unwrap_or_else(Ended::Failed);
    let landscape = gather(&session, definition, all)?;
    Ok(Recorded { landscape, ended })
}

/// Measures the points that the records do not have.
fn measure(
    session: &mut Session<'_, '_>,
    all: &[(Point, Proposal)],
    trials: usize,
) -> Result<Ended, TuneError> {
    let mut left = Vec::new();
    for (_, proposal) in all {
        if session.find(proposal)?.is_none() {
            left.push(proposal.clone());
        }
    }
    let known = all.len() - left.len();
    left.truncate(trials);
    session.progress.expected = left.len();
    session.tell(&Event::Planned { candidates: left.len(), known });
    session.measure(left, false)?;
    Ok(session.ended().unwrap_or(Ended::Finished))
}

/// The table of the points in the records.
fn gather(
    session: &Session<'_, '_>,
    definition: &Definition,
    all: Vec<(Point, Proposal)>,
) -> Result<Landscape, TuneError> {
    let (count, mut outcomes, mut measured) = (all.len(), Vec::new(), None);
    for (point, proposal) in all {
        let Some(trial) = session.find(&proposal)? else { continue };
        let (first, last) = measured.unwrap_or((trial.measured_at, trial.measured_at));
        measured = Some((trial.measured_at.min(first), trial.measured_at.max(last)));
        outcomes.push((point, outcome(&trial)));
    }
    let subject = &session.task.subject;
    let source = Provenance {
        pipeline: subject.pipeline().clone(),
        sizes: subject.sizes(),
        device: session.bench.device.clone(),
        versions: session.bench.versions.clone(),
        measured: measured.unwrap_or_default(),
    };
    let missing = count - outcomes.len();
    Ok(Landscape::new(source, definition.clone(), outcomes, missing)?)
}

fn outcome(trial: &Trial) -> Outcome {
    let times = trial.sample.times.filter(|_| trial.sample.status == Status::Measured);
    match times {
        Some(times) => Outcome::Time { min_us: times.min, median_us: times.median.max(times.min) },
        None => Outcome::Failed(trial.sample.status.kind().to_owned()),
    }
}
