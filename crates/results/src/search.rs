//! What a search did.

use std::collections::BTreeMap;

use warploom::search::{Options, Refusal, Statistics, StopReason};
use warploom::tune::one_shot::OneShot;
use warploom_report::Table;

report! {
    /// A search, as reports show it.
    pub struct Report = "search" {
        model: String, "the cost model";
        seed: u64, "the seed of all random choices";
        samples: usize, "the number of searches";
        beam: usize, "the states that the beam search expands per decision";
        passes: usize, "the passes of the beam search";
        sampling: bool, "whether options of a decision are sampled";
        freezing: bool, "whether cheap Funcs are frozen after the first pass";
        stop: &'static str, "`finished` or `time_limit`";
        reproducible: bool, "whether another run finds the same schedule";
        fallback: bool, "whether only the default schedule was found";
        refused: usize, "candidates with shorter predicted times that could not be built";
        spilling: usize, "candidates with shorter predicted times that spill registers";
        candidates_us: Vec<f64>, "the predicted times of all candidates, best first";
        statistics: Counts, "what the search did";
    }

    /// Statistics of a search.
    pub struct Counts = "search statistics" {
        decisions: u64, "the expanded states";
        options: u64, "the options of all decisions";
        sampled_away: u64, "the options that were not sampled";
        refused: BTreeMap<&'static str, u64>, "the pruned options by reason";
        states: u64, "the scored states";
        kernels_evaluated: u64, "the kernels that were evaluated";
        memo_hits: u64, "the kernels that were known already";
        candidates_dropped: u64, "complete schedules that turned out to be illegal";
        frozen_funcs: u64, "the frozen Funcs";
        seconds: f64, "the time of the search";
        rules_seconds: f64, "of it, the rules of schedules, summed over threads";
        features_seconds: f64, "of it, the features of kernels, summed over threads";
        model_seconds: f64, "of it, the cost model, summed over threads";
        pass_best_us: Vec<f64>, "the best predicted time after each pass";
    }
}

impl Report {
    /// What a search with these options found.
    pub fn new(found: &OneShot, model: &str, options: &Options) -> Report {
        let outcome = &found.outcome;
        let (stop, reproducible) = match outcome.stop {
            StopReason::Finished => ("finished", true),
            StopReason::TimeLimit => ("time_limit", false),
        };
        Report {
            model: model.to_owned(),
            seed: options.seed,
            samples: options.samples,
            beam: options.beam,
            passes: options.passes,
            sampling: options.sampling,
            freezing: options.freezing,
            stop,
            reproducible,
            fallback: outcome.fallback,
            refused: found.refused.len(),
            spilling: found.spilling,
            candidates_us: outcome.candidates.iter().map(|candidate| candidate.cost).collect(),
            statistics: Counts::new(&outcome.statistics),
        }
    }

    /// One line about what the search did.
    pub fn summary(&self) -> String {
        let Counts { seconds, states, options, refused, sampled_away, .. } = &self.statistics;
        let left_out = refused.values().sum::<u64>() + sampled_away;
        format!(
            "searched {} samples in {seconds:.2} s: {states} states scored, {left_out} of {options} options pruned or not sampled",
            self.samples
        )
    }

    /// All statistics as a table.
    pub fn table(&self) -> Table {
        let counts = &self.statistics;
        let seconds = |seconds: f64| format!("{seconds:.3} s");
        let us = |us: &f64| format!("{us:.1}");
        let mut rows = vec![
            ("states expanded", counts.decisions.to_string()),
            ("options", counts.options.to_string()),
            ("options not sampled", counts.sampled_away.to_string()),
        ];
        let refused = counts.refused.iter().filter(|(_, count)| **count > 0);
        let refused: Vec<(String, u64)> =
            refused.map(|(reason, count)| (format!("options pruned: {reason}"), *count)).collect();
        rows.extend(refused.iter().map(|(reason, count)| (reason.as_str(), count.to_string())));
        rows.extend([
            ("states scored", counts.states.to_string()),
            ("kernels evaluated", counts.kernels_evaluated.to_string()),
            ("memoized kernels reused", counts.memo_hits.to_string()),
            ("Funcs frozen", counts.frozen_funcs.to_string()),
            ("candidates", self.candidates_us.len().to_string()),
            ("best of each pass, us", counts.pass_best_us.iter().map(us).collect::<Vec<_>>().join(" ")),
            ("time", seconds(counts.seconds)),
            ("  rules, all threads", seconds(counts.rules_seconds)),
            ("  features, all threads", seconds(counts.features_seconds)),
            ("  cost model, all threads", seconds(counts.model_seconds)),
        ]);
        Table::of(&rows).left("statistics", |line| line.0.to_owned()).left("", |line| line.1.clone()).done()
    }
}

impl Counts {
    fn new(counts: &Statistics) -> Counts {
        Counts {
            decisions: counts.decisions,
            options: counts.enumerated,
            sampled_away: counts.sampled_away,
            refused: Refusal::ALL.iter().map(|reason| (reason.name(), counts.refused_for(*reason))).collect(),
            states: counts.states,
            kernels_evaluated: counts.kernels,
            memo_hits: counts.memo_hits,
            candidates_dropped: counts.dropped,
            frozen_funcs: counts.frozen,
            seconds: counts.elapsed.as_secs_f64(),
            rules_seconds: counts.examining.as_secs_f64(),
            features_seconds: counts.featuring.as_secs_f64(),
            model_seconds: counts.costing.as_secs_f64(),
            pass_best_us: counts.passes.iter().map(|pass| pass.best).collect(),
        }
    }
}

/// What there is to say of a search that did not go as usual, in sentences.
pub fn notes(found: &OneShot) -> Vec<String> {
    let mut notes = Vec::new();
    if found.outcome.stop == StopReason::TimeLimit {
        let seconds = found.outcome.statistics.elapsed.as_secs_f64();
        notes.push(format!(
            "the time limit ended the search after {seconds:.2} s; another run may find a different schedule"
        ));
    }
    // Without time, no schedule was looked at.
    if found.outcome.fallback && found.outcome.stop != StopReason::TimeLimit {
        notes.push(
            "the search found no schedule that the device can run; this is the default schedule".to_owned(),
        );
    }
    if found.spilling > 0 {
        let count = found.spilling;
        notes
            .push(format!("{count} schedules with shorter predicted times spill registers and were skipped"));
    }
    if let Some(error) = found.refused.first() {
        let count = found.refused.len();
        notes.push(format!(
            "{count} schedules with shorter predicted times could not be built; the first: {error}"
        ));
    }
    notes
}
