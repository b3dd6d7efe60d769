//! Measures schedules that the user supplied.

use warploom_runtime::TimingOptions;
use warploom_schedule::Schedule;

use crate::records::Records;
use crate::sample::Origin;
use crate::tuning::{Ended, Event, Observer, Proposal, Session, Task, TuneError, Tuned};
use crate::worker::Bench;

/// A schedule with its origin and its predicted time in microseconds, if known.
pub type Given = (Schedule, Origin, Option<f64>);

/// Measures schedules with long timing runs, checks their outputs at the small and the full size,
/// and times them in interleaved rounds if there are several.
///
/// # Errors
/// If tuning cannot start. Later failures are in [`Tuned::ended`], along with the results measured
/// before.
pub fn given(
    task: &Task<'_>,
    schedules: Vec<Given>,
    bench: &mut Bench<'_>,
    records: &mut Records,
    observer: Observer<'_>,
) -> Result<Tuned, TuneError> {
    let mut session = Session::new(task, bench, records, observer)?;
    // The user asked for these schedules, so they are timed even if they spill.
    session.skip_spilling = false;
    session.timing = TimingOptions::default();
    session.progress.expected = schedules.len();
    let proposal = |(schedule, origin, predicted_us)| Proposal { schedule, origin, predicted_us };
    let proposals: Vec<Proposal> = schedules.into_iter().map(proposal).collect();
    let ended = run(&mut session, &proposals).unwrap_or_else(Ended::Failed);
    let shown = proposals.iter().filter_map(|proposal| session.find(proposal).transpose()).collect();
    Ok(session.conclude(ended, shown))
}

fn run(session: &mut Session<'_, '_>, proposals: &[Proposal]) -> Result<Ended, TuneError> {
    session.tell(&Event::Planned { candidates: proposals.len(), known: 0 });
    session.measure(proposals.to_vec(), true)?;
    if let Some(ended) = session.ended() {
        return Ok(ended);
    }
    session.finals(proposals.len(), true)?;
    Ok(Ended::Finished)
}
