//! The result of tuning.

use std::path::Path;

use warploom::app::{Sizes, Subject};
use warploom::cost::{Basis, CostModel};
use warploom::records::shown;
use warploom::show;
use warploom::target::Device;
use warploom::tune::explore::Explored;
use warploom::tune::tuning::{Ended, Progress, Tally, Tuned};
use warploom_report::Table;

use crate::trials::{TrialReport, basis_of, range_of, trial_table};

report! {
    /// The result of a run.
    pub struct Report = "warploom.tune/2 finished" {
        event: &'static str, "`finished`";
        app: String, "the app, or the pipeline of a file";
        sizes: Sizes, "its sizes by name";
        device: String, "the GPU";
        ended: &'static str, "`finished`, `time_limit`, `stopped` or `failed`";
        error: Option<String>, "why it failed";
        best: Option<TrialReport>, "the winner";
        basis: Option<Basis>,
            "what its predicted time was computed from; `null` if it has none, or if models changed during the run";
        checked_at_full_size: bool, "whether its outputs were compared at the full size";
        trials: Vec<TrialReport>, "the best trials, best first";
        progress: Progress, "all trials of this run";
        iterations: usize, "the finished iterations; 0 with `--top` and with strategies";
        exploration: Option<Exploration>, "what the strategy did; null without `--strategy`";
        records: String, "the database";
        files: Vec<String>, "the files that were written";
    }
}

impl Report {
    /// The result of tuning; `model` predicted all times, if it is known.
    pub fn new(
        asked: &Subject,
        device: &Device,
        tuned: &Tuned,
        model: Option<&dyn CostModel>,
        iterations: usize,
        records: &Path,
        files: Vec<String>,
    ) -> Report {
        let (ended, error) = match &tuned.ended {
            Ended::Finished => ("finished", None),
            Ended::TimeLimit => ("time_limit", None),
            Ended::Stopped => ("stopped", None),
            Ended::Failed(error) => ("failed", Some(error.to_string())),
        };
        let best = tuned.winner.as_ref().filter(|winner| winner.trial.predicted_us.is_some());
        Report {
            event: "finished",
            app: asked.name.clone(),
            sizes: asked.sizes.clone(),
            device: device.name.clone(),
            ended,
            error,
            best: tuned.winner.as_ref().map(|winner| TrialReport::new(&winner.trial, model)),
            basis: best.and_then(|winner| basis_of(asked, device, &winner.schedule, model?)),
            checked_at_full_size: tuned.winner.as_ref().is_some_and(|winner| winner.checked_at_full_size),
            trials: tuned.shown.iter().map(|trial| TrialReport::new(trial, model)).collect(),
            progress: tuned.progress,
            iterations,
            exploration: None,
            records: shown(records),
            files,
        }
    }

    /// Adds what a strategy did.
    #[must_use]
    pub fn of_strategy(self, exploration: Option<Exploration>) -> Report {
        Report { exploration, ..self }
    }

    /// The result for a terminal; `layout` lays out the table of trials.
    pub fn text(
        &self,
        tuned: &Tuned,
        model: Option<&dyn CostModel>,
        layout: &dyn Fn(&Table) -> String,
    ) -> String {
        let Progress { done, invalid, .. } = self.progress;
        let best = tuned.winner.as_ref();
        let head = match best.and_then(|winner| winner.trial.time_us()) {
            Some(time) => format!("best {time:.2} us"),
            None => "no valid schedule".to_owned(),
        };
        let checked = match best {
            Some(winner) if winner.checked_at_full_size => ", compared at the full size",
            Some(_) => ", not compared at the full size",
            None => "",
        };
        let why = match self.ended {
            "time_limit" => ", ended by the time limit",
            "stopped" => ", stopped",
            _ => "",
        };
        let trials = show::count(done, "new trial");
        let mut text = format!(
            "{}{} on {}: {head}{checked}; {trials}, {invalid} invalid{why}, in {}\n",
            self.app,
            self.sizes,
            self.device,
            show::path(&self.records)
        );
        text += &self.exploration.as_ref().map(Exploration::text).unwrap_or_default();
        if !tuned.shown.is_empty() {
            text += &format!(
                "\n{}",
                layout(&trial_table(&tuned.shown, best.map(|winner| winner.trial.id), model))
            );
            if tuned.shown.iter().any(|trial| range_of(trial, model).is_some()) {
                text += show::BRACKETS;
            }
            text += &self
                .basis
                .as_ref()
                .map(|basis| format!("the best is predicted by {basis}\n"))
                .unwrap_or_default();
        }
        let files = show::paths(&self.files);
        if files.is_empty() { text } else { format!("{text}\n{files}") }
    }
}

report! {
    /// What a strategy did.
    pub struct Exploration = "exploration" {
        run: String, "the key of its steps in the database";
        templates: usize, "the structures that it explored; 0 for `model`";
        #[serde(flatten)]
        tally: Tally, "its steps";
        exhausted: bool, "whether it had nothing left to ask";
    }
}

impl Exploration {
    /// What an exploration did.
    pub fn new(explored: &Explored) -> Exploration {
        let Explored { run, templates, tally, exhausted, .. } = explored;
        Exploration { run: run.0.clone(), templates: *templates, tally: *tally, exhausted: *exhausted }
    }

    /// One line for people.
    pub fn text(&self) -> String {
        let Exploration { run, templates, tally, exhausted } = self;
        let best = tally.best_us.map_or("nothing valid".to_owned(), |best| format!("best {best:.2} us"));
        let strategy = run.split(' ').next().unwrap_or_default();
        let end = if *exhausted { ", nothing left to ask" } else { "" };
        format!(
            "{strategy}: {best}; {} in {}, {} repeated, {} refused, {} avoided{end}\n",
            show::count(tally.trials, "trial"),
            show::count(*templates, "template"),
            tally.repeated,
            tally.refused,
            tally.avoided,
        )
    }
}
