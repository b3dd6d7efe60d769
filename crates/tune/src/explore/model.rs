//! Searches with the cost model as a strategy: autotuning that knows only the measurements of its own run.

use std::collections::HashSet;

use warploom_schedule::Schedule;
use warploom_search as search;
use warploom_strategy::{Field, Settings, Verdict};

use super::run::ExploreRun;
use super::{ExploreOptions, MODEL};
use crate::autotune::{self, BASES};
use crate::tuning::{Ended, Event, Proposal, Session, Task, TuneError};

/// The searches have options of their own, so the strategy has no settings.
#[derive(Clone)]
pub(super) struct ModelSettings;

impl Settings for ModelSettings {
    fn fields(&mut self) -> Vec<Field<'_>> {
        Vec::new()
    }
}

/// The options of its searches.
fn search_options(task: &Task<'_>, options: &ExploreOptions) -> search::Options {
    search::Options { seed: options.seed, ..task.search.clone() }
}

/// The key of such a run: everything that determines which schedules it tries.
pub(super) fn key(task: &Task<'_>, options: &ExploreOptions) -> String {
    let searches = autotune::key(task.model, &search_options(task, options), task.search.samples, false);
    format!("{MODEL} {searches} trials={}", options.trials)
}

/// Divides the trials into equal iterations of at most as many as a search has samples. Schedules that other runs have
/// measured count as trials like all others, but no iteration starts from them.
pub(super) fn iterate(run: &mut ExploreRun<'_>, session: &mut Session<'_, '_>) -> Result<Ended, TuneError> {
    let task = session.task;
    let options = search_options(task, run.options);
    let trials = run.options.trials;
    let iterations = trials.div_ceil(options.samples.max(1));
    // The fastest schedules of the run, with the times that it was told.
    let mut fastest: Vec<(Schedule, f64)> = Vec::new();
    run.begin(session, 0)?;
    for iteration in 0..iterations {
        if let Some(ended) = session.ended() {
            return Ok(ended);
        }
        session.tell(&Event::Searching { iteration, of: iterations });
        let most = trials * (iteration + 1) / iterations - run.count.tally.trials;
        let (near, found) = autotune::proposals(session, task.model, &options, iteration, &fastest)?;
        let half = if fastest.is_empty() { 0 } else { most / 2 };
        let chosen = choose(run, session, [(near, half), (found, most)]);
        let named = chosen.iter().zip(1..).map(|((_, proposal), number)| {
            (format!("iteration {}: {number}", iteration + 1), Ok(proposal.clone()))
        });
        let asked = run.plan(session, named.collect())?;
        let Some(verdicts) = run.answer(session, asked)? else {
            return Ok(session.ended().unwrap_or(Ended::Finished));
        };
        for ((_, proposal), verdict) in chosen.into_iter().zip(verdicts) {
            if let Verdict::Time(time) = verdict {
                fastest.push((proposal.schedule, time));
            }
        }
        fastest.sort_by(|(_, a), (_, b)| a.total_cmp(b));
        fastest.truncate(BASES);
        session.tell(&Event::Stepped { tally: run.count.tally, of: trials });
    }
    run.exhausted = run.count.tally.trials < trials;
    Ok(Ended::Finished)
}

/// Proposals that are new to the run, with their texts: from each list up to the given number.
fn choose(
    run: &ExploreRun<'_>,
    session: &Session<'_, '_>,
    lists: [(Vec<Proposal>, usize); 2],
) -> Vec<(String, Proposal)> {
    let pipeline = session.task.subject.pipeline();
    let (mut chosen, mut seen) = (Vec::new(), HashSet::new());
    for (proposals, most) in lists {
        for proposal in proposals {
            let text = proposal.schedule.to_text(pipeline);
            if chosen.len() < most && !run.knows(&text) && seen.insert(text.clone()) {
                chosen.push((text, proposal));
            }
        }
    }
    chosen
}
