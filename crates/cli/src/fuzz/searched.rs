//! `warploom fuzz --search`: the schedules that a search finds.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use warploom::cost::CostModel;
use warploom::fuzz::{Case, Failure, Subject, Verdict};
use warploom::lang::{Pipeline, Regions, infer};
use warploom::schedule::schedule::Schedule;
use warploom::search::{Options, Outcome, Refusal, search};
use warploom::target::Device;

/// Searches for schedules of random pipelines, and counts what came of it.
pub(super) struct Searcher<'a> {
    device: &'a Device,
    model: Box<dyn CostModel + Send>,
    /// Searches for each pipeline.
    samples: usize,
    /// Most schedules of each pipeline.
    schedules: usize,
    counts: Mutex<Counts>,
}

/// What all searches together did.
#[derive(Clone, Default, Serialize)]
pub(super) struct Counts {
    searches: u64,
    /// Schedules that were found, of which some are checked.
    candidates: u64,
    /// The seeds of pipelines for which nothing was found but the default schedule.
    fallbacks: Vec<u64>,
    /// Schedules that broke a rule only as a whole.
    dropped: u64,
    /// Options that were refused, by reason.
    refused: BTreeMap<&'static str, u64>,
    #[serde(flatten)]
    times: Times,
}

/// How long searches took, on one thread each.
#[derive(Clone, Default, Serialize)]
struct Times {
    mean_search_seconds: f64,
    longest_search_seconds: f64,
    #[serde(skip)]
    all: Duration,
}

impl<'a> Searcher<'a> {
    pub(super) fn new(
        device: &'a Device,
        model: Box<dyn CostModel + Send>,
        samples: usize,
        schedules: u64,
    ) -> Searcher<'a> {
        let schedules = usize::try_from(schedules).unwrap_or(usize::MAX);
        Searcher { device, model, samples: samples.max(1), schedules, counts: Mutex::default() }
    }

    /// The best schedule of a pipeline, the worst that was found, and some between them.
    pub(super) fn schedules(&self, subject: &Subject<'_>) -> Vec<Schedule> {
        let outcome = self.search(subject.pipeline, subject.regions, subject.seed);
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).add(subject.seed, &outcome);
        match outcome.candidates.len() {
            0 => vec![outcome.best],
            found => {
                let at = |position: usize| outcome.candidates[position].schedule.clone();
                spread(found, self.schedules).into_iter().map(at).collect()
            }
        }
    }

    /// Checks that a case can be searched; what is found is not looked at.
    pub(super) fn check(&self, case: &Case) -> Result<Verdict, Failure> {
        case.check_with(|run| {
            if let Ok(regions) = infer(&run.case.pipeline, &run.case.request) {
                self.search(&run.case.pipeline, &regions, run.case.seed);
            }
            Ok(Verdict::Passed)
        })
    }

    /// A short search on one thread.
    fn search(&self, pipeline: &Pipeline, regions: &Regions, seed: u64) -> Outcome {
        let options =
            Options { seed, beam: 4, passes: 2, samples: self.samples, threads: 1, ..Options::default() };
        let run = || search(pipeline, regions, self.device, &*self.model, &options, &|_| {});
        // Who waits for another pool's threads is given other pipelines to do meanwhile, which would count as time of
        // this search. A thread that belongs to no pool just waits.
        std::thread::scope(|scope| scope.spawn(run).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// What was done so far.
    pub(super) fn counts(&self) -> Counts {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // They come in any order.
        counts.fallbacks.sort_unstable();
        counts.times.mean_search_seconds = counts.times.all.as_secs_f64() / counts.searches.max(1) as f64;
        counts
    }
}

impl Counts {
    fn add(&mut self, seed: u64, outcome: &Outcome) {
        let statistics = &outcome.statistics;
        self.searches += 1;
        self.candidates += outcome.candidates.len() as u64;
        if outcome.fallback {
            self.fallbacks.push(seed);
        }
        self.dropped += statistics.dropped;
        for reason in Refusal::ALL {
            *self.refused.entry(reason.name()).or_default() += statistics.refused_for(reason);
        }
        self.times.all += statistics.elapsed;
        let longest = &mut self.times.longest_search_seconds;
        *longest = longest.max(statistics.elapsed.as_secs_f64());
    }

    pub(super) fn text(&self) -> String {
        let Counts { searches, candidates, fallbacks, dropped, times, .. } = self;
        let refused = self.refused.iter().filter(|(_, count)| **count > 0);
        let refused: Vec<String> = refused.map(|(reason, count)| format!("{count} {reason}")).collect();
        let pruned = if refused.is_empty() { "nothing".to_owned() } else { refused.join(", ") };
        format!(
            "{searches} searches found {candidates} schedules, with {} fallbacks to the default and {dropped} dropped; \
             {:.3} s each, {:.3} s the longest\noptions pruned: {pruned}\n",
            fallbacks.len(),
            times.mean_search_seconds,
            times.longest_search_seconds
        )
    }
}

/// As many positions in a list as are asked for, the first and the last among them, evenly spread.
fn spread(length: usize, count: usize) -> Vec<usize> {
    match count.min(length) {
        0 => Vec::new(),
        1 => vec![0],
        count => (0..count).map(|number| number * (length - 1) / (count - 1)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_and_the_worst_are_taken() {
        assert_eq!(spread(9, 3), [0, 4, 8]);
        assert_eq!(spread(2, 3), [0, 1]);
        assert_eq!(spread(7, 1), [0]);
        assert_eq!(spread(4, 4), [0, 1, 2, 3]);
        assert!(spread(5, 0).is_empty());
    }
}
