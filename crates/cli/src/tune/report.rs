//! The result of tuning.

use std::io::Write;
use std::path::Path;

use warploom::app::{Sizes, Subject};
use warploom::cost::{Basis, CostModel};
use warploom::records::shown;
use warploom::target::Device;
use warploom::tune::tuning::{Ended, Progress, Tuned};
use warploom_results::trials::{TrialReport, basis_of, range_of, trial_table};

use super::progress::SCHEMA;
use super::strategy::Exploration;
use crate::error::Error;
use crate::report::{self, Format};
use crate::show;
use crate::table::PlainText as _;

report! {
    /// The result of a run.
    pub(super) struct Report = "warploom.tune/2 finished" {
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
    pub(super) fn new(
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
    pub(super) fn of_strategy(self, exploration: Option<Exploration>) -> Report {
        Report { exploration, ..self }
    }

    pub(super) fn print(
        &self,
        format: Format,
        tuned: &Tuned,
        model: Option<&dyn CostModel>,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        if format.json {
            return Ok(report::json_line(out, SCHEMA, self)?);
        }
        report::text(out, &self.text(tuned, model))
    }

    fn text(&self, tuned: &Tuned, model: Option<&dyn CostModel>) -> String {
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
            text +=
                &format!("\n{}", trial_table(&tuned.shown, best.map(|winner| winner.trial.id), model).text());
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
