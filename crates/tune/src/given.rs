//! Schedules that somebody has chosen, measured.

use warploom_runtime::TimingOptions;
use warploom_schedule::schedule::Schedule;

use crate::records::Records;
use crate::sample::Origin;
use crate::tuning::{Ended, Event, Observer, Proposal, Session, Task, TuneError, Tuned};
use crate::worker::Bench;

/// A schedule with its origin and predicted time in microseconds, if that is known.
pub type Given = (Schedule, Origin, Option<f64>);

/// Measures schedules at length, compares their results at both sizes, and times them in turns if there are several.
///
/// # Errors
/// If nothing could be begun. What fails later is in [`Tuned::ended`], beside what was measured before.
pub fn given(
    task: &Task<'_>,
    schedules: Vec<Given>,
    bench: &mut Bench<'_>,
    records: &mut Records,
    observer: Observer<'_>,
) -> Result<Tuned, TuneError> {
    let mut session = Session::new(task, bench, records, observer)?;
    // Whoever asks for a schedule wants to know how fast it is, even if it spills.
    session.skip_spilling = false;
    session.timing = TimingOptions::default();
    session.progress.expected = schedules.len();
    let proposal = |(schedule, origin, predicted_us)| Proposal { schedule, origin, predicted_us };
    let proposals: Vec<Proposal> = schedules.into_iter().map(proposal).collect();
    let ended = run(&mut session, &proposals).unwrap_or_else(Ended::Failed);
    let shown = proposals.iter().filter_map(|proposal| session.find(proposal).ok().flatten()).collect();
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
