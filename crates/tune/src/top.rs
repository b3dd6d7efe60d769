//! Measures the few schedules with the best predictions: for users with a GPU and a minute.

use crate::records::{Records, Trial};
use crate::tuning::{Ended, Event, Observer, Session, Task, TuneError, Tuned};
use crate::worker::Bench;

/// Maximum number of candidates tried per requested schedule, because some spill or fail.
const TRIES: usize = 6;

/// Searches, then compiles the schedules with the best predictions until `count` of them run
/// without spilling and give correct results, and times those. Schedules that already have a trial
/// are not measured again.
///
/// # Errors
/// If tuning cannot start. Later failures are in [`Tuned::ended`], along with the results measured
/// before.
pub fn top(
    task: &Task<'_>,
    count: usize,
    bench: &mut Bench<'_>,
    records: &mut Records,
    observer: Observer<'_>,
) -> Result<Tuned, TuneError> {
    let mut session = Session::new(task, bench, records, observer)?;
    session.progress.expected = count;
    let mut tried = Vec::new();
    let ended = run(&mut session, count, &mut tried);
    // The final rounds changed their times.
    let shown = tried.iter().filter_map(|trial| session.records().trial(trial.id).ok().flatten()).collect();
    Ok(session.conclude(ended.unwrap_or_else(Ended::Failed), shown))
}

fn run(session: &mut Session<'_, '_>, count: usize, tried: &mut Vec<Trial>) -> Result<Ended, TuneError> {
    session.tell(&Event::Searching { iteration: 0, of: 1 });
    let task = session.task;
    let mut candidates = session.search(task.model, &task.search);
    if candidates.is_empty() {
        candidates.push(session.default());
    }
    let mut left = candidates.into_iter().take(count.saturating_mul(TRIES));
    loop {
        if let Some(ended) = session.ended() {
            session.finals(1, false)?;
            return Ok(ended);
        }
        let valid = tried.iter().filter(|trial| trial.time_us().is_some()).count();
        let next: Vec<_> = left.by_ref().take(count.saturating_sub(valid)).collect();
        if next.is_empty() {
            break;
        }
        let mut known = 0;
        for proposal in &next {
            known += usize::from(session.find(proposal)?.is_some());
        }
        session.tell(&Event::Planned { candidates: next.len() - known, known });
        session.measure(next.clone(), true)?;
        for proposal in &next {
            tried.extend(session.find(proposal)?);
        }
    }
    session.finals(count, true)?;
    Ok(Ended::Finished)
}
