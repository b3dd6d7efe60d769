//! Schedules that a search finds, for fuzzing.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use warploom::cost::CostModel;
use warploom::fuzz::{Case, Failure, Verdict};
use warploom::plan::Problem;
use warploom::schedule::Schedule;
use warploom::search::{Options, Outcome, Refusal, search};
use warploom::target::Device;

/// Searches for schedules of random pipelines and keeps statistics.
pub struct Searcher<'a> {
    device: &'a Device,
    model: Box<dyn CostModel + Send>,
    /// The number of searches per pipeline.
    samples: usize,
    /// The most schedules to check per pipeline.
    schedules: usize,
    counts: Mutex<Counts>,
}

report! {
    /// Statistics of all searches.
    #[derive(Clone, Default)]
    pub struct Counts = "fuzz search" {
        searches: u64, "the searches";
        candidates: u64, "the schedules that were found";
        fallbacks: Vec<u64>, "seeds of pipelines for which only the default schedule was found";
        dropped: u64, "complete schedules that turned out to be illegal";
        refused: BTreeMap<&'static str, u64>, "the pruned options by reason";
        #[serde(flatten)]
        times: Times;
    }

    /// Times of single-threaded searches.
    #[derive(Clone, Default)]
    struct Times = "" {
        mean_search_seconds: f64, "the mean time of a search";
        longest_search_seconds: f64, "the longest";
        #[serde(skip)]
        all: Duration;
    }
}

impl<'a> Searcher<'a> {
    /// So many searches for a pipeline, of whose schedules so many are checked.
    pub fn new(
        device: &'a Device,
        model: Box<dyn CostModel + Send>,
        samples: usize,
        schedules: u64,
    ) -> Searcher<'a> {
        let schedules = usize::try_from(schedules).unwrap_or(usize::MAX);
        Searcher { device, model, samples: samples.max(1), schedules, counts: Mutex::default() }
    }

    /// The best and the worst schedule that a search found, and some in between.
    pub fn schedules(&self, problem: &Problem, seed: u64) -> Vec<Schedule> {
        let outcome = self.search(problem, seed);
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).add(seed, &outcome);
        match outcome.candidates.len() {
            0 => vec![outcome.best],
            found => {
                let at = |position: usize| outcome.candidates[position].schedule.clone();
                spread(found, self.schedules).into_iter().map(at).collect()
            }
        }
    }

    /// Checks that a search for the case's pipeline succeeds; its results are ignored.
    ///
    /// # Errors
    /// If its inputs cannot be made.
    pub fn check(&self, case: &Case) -> Result<Verdict, Failure> {
        case.check_with(|run| {
            let Case { pipeline, request, seed, .. } = run.case;
            if let Ok(problem) = Problem::new(pipeline, request, self.device) {
                self.search(&problem, *seed);
            }
            Ok(Verdict::Passed)
        })
    }

    /// A short single-threaded search.
    fn search(&self, problem: &Problem, seed: u64) -> Outcome {
        let options =
            Options { seed, beam: 4, passes: 2, samples: self.samples, threads: 1, ..Options::default() };
        let run = || search(problem, &*self.model, &options, &|_| {});
        // A thread of this pool that waits for another pool would take up other pipelines
        // meanwhile, and their time would count as part of this search. A thread outside of all
        // pools just waits.
        std::thread::scope(|scope| scope.spawn(run).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// The statistics so far.
    pub fn counts(&self) -> Counts {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Searches finish in any order.
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

    /// The statistics for a terminal.
    pub fn text(&self) -> String {
        let Counts { searches, candidates, fallbacks, dropped, times, .. } = self;
        let refused = self.refused.iter().filter(|(_, count)| **count > 0);
        let refused: Vec<String> = refused.map(|(reason, count)| format!("{count} {reason}")).collect();
        let pruned = if refused.is_empty() { "nothing".to_owned() } else { refused.join(", ") };
        format!(
            "{searches} searches found {candidates} schedules, with {} fallbacks to the default and {dropped} dropped; \
             {:.3} s each, at most {:.3} s\noptions pruned: {pruned}\n",
            fallbacks.len(),
            times.mean_search_seconds,
            times.longest_search_seconds
        )
    }
}

/// `count` evenly spaced positions in a list, including the first and the last.
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
