//! Measures the few schedules with the best predictions: for users with a GPU and a minute.

use std::collections::{HashMap, VecDeque};

use warploom_schedule::{RootItem, Schedule, Size};

use crate::records::{Records, Trial};
use crate::tuning::{Ended, Event, Observer, Proposal, Session, Task, TuneError, Tuned};
use crate::worker::Bench;

/// The factor on the predicted time of a schedule if one of its kind was tried already.
const ALIKE: f64 = 1.4;

/// Schedules that are timed against each other in the end.
const FINALISTS: usize = 3;

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
    let shown = tried.iter().filter_map(|trial| session.records().trial(trial.id).transpose()).collect();
    Ok(session.conclude(ended.unwrap_or_else(Ended::Failed), shown))
}

/// The `count` candidates with the best predictions that are not all alike. A prediction is wrong for all schedules of
/// a kind in the same way, so the second of a kind counts as [`ALIKE`] times as slow, the third as its square. A
/// prediction equal to an earlier one counts once more: most often such schedules differ only in the order of two
/// copies.
fn varied(candidates: Vec<Proposal>, count: usize) -> Vec<Proposal> {
    let mut left: VecDeque<Proposal> = candidates.into();
    let mut first = Vec::new();
    let mut seen: HashMap<(u64, usize), i32> = HashMap::new();
    while first.len() < count {
        let rank = |proposal: &Proposal| {
            let same = first.iter().any(|of: &Proposal| of.predicted_us == proposal.predicted_us);
            let alike = seen.get(&kind(&proposal.schedule)).copied().unwrap_or(0) + i32::from(same);
            proposal.predicted_us.unwrap_or(f64::INFINITY) * ALIKE.powi(alike)
        };
        // Ties go to the first.
        let next = (0..left.len()).min_by(|a, b| rank(&left[*a]).total_cmp(&rank(&left[*b])));
        let Some(next) = next.and_then(|next| left.remove(next)) else { break };
        *seen.entry(kind(&next.schedule)).or_default() += 1;
        first.push(next);
    }
    first.extend(left);
    first
}

/// The properties that determine the error of a prediction: the most unrolled points in the last nest of a kernel, and
/// the number of nests that write to shared memory.
fn kind(schedule: &Schedule) -> (u64, usize) {
    let points = |item: &RootItem| {
        let tiles = item.nests().last().and_then(|own| own.mapping.tiles());
        let sizes = tiles.into_iter().flat_map(|tiles| &tiles.serial).map(|tile| tile.size);
        sizes
            .map(|size| if let Size::Of(size) = size { u64::from(size) } else { 0 })
            .fold(1, u64::saturating_mul)
    };
    let shared = schedule.root.iter().flat_map(RootItem::nests).filter(|nest| nest.storage.is_shared());
    (schedule.root.iter().map(points).max().unwrap_or(0), shared.count())
}

fn run(session: &mut Session<'_, '_>, count: usize, tried: &mut Vec<Trial>) -> Result<Ended, TuneError> {
    session.tell(&Event::Searching { iteration: 0, of: 1 });
    let task = session.task;
    let mut candidates = session.search(task.model, &task.search);
    if candidates.is_empty() {
        candidates.push(session.default());
    }
    let mut left = varied(candidates, count).into_iter().take(count.saturating_mul(TRIES));
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
    session.finals(count.min(FINALISTS), true)?;
    Ok(Ended::Finished)
}

#[cfg(test)]
mod tests {
    use warploom_lang::{FuncId, Id, StageRef};
    use warploom_schedule::LoopKind;
    use warploom_schedule::{ThreadTiles, Tile};

    use super::*;
    use crate::sample::Origin;

    fn proposal(serial: u32, predicted_us: f64) -> Proposal {
        let tile = Tile { dim: LoopKind::Pure(0), size: Size::Of(serial) };
        let tiles = ThreadTiles { serial: vec![tile], ..ThreadTiles::default() };
        let stage = StageRef { func: FuncId::new(0), stage: 0 };
        let root = vec![RootItem::lone(stage, Vec::new(), Vec::new(), Vec::new(), tiles)];
        let schedule = Schedule { rewrites: Vec::new(), inlined: Default::default(), root };
        Proposal { schedule, origin: Origin::Search, predicted_us: Some(predicted_us) }
    }

    #[test]
    fn the_first_are_of_several_kinds() {
        let all = [(8, 1.0), (8, 1.0), (8, 1.01), (8, 1.02), (4, 1.15), (2, 1.5), (1, 9.0)];
        let candidates = all.iter().map(|(serial, time)| proposal(*serial, *time)).collect();
        let times: Vec<f64> = varied(candidates, 4).iter().filter_map(|of| of.predicted_us).collect();
        assert_eq!(times, [1.0, 1.15, 1.01, 1.5, 1.0, 1.02, 9.0]);
    }
}
