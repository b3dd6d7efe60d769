//! The progress of tuning, as a bar or as lines of JSON.

use std::io::Write;
use std::time::Duration;
use warploom_results::trials::TrialReport;

use serde_json::{Value as Json, json};
use warploom::app::Subject;
use warploom::cost::CostModel;
use warploom::target::Device;
use warploom::tune::tuning::{self, Event};

use super::interrupt::stop;
use crate::error::Error;
use crate::progress::{self, Unit};
use crate::report;
use crate::show;

/// The schema of the JSON lines.
pub(crate) const SCHEMA: &str = "warploom.tune/2";

/// Shows the events of a run.
pub(crate) struct Progress<'a> {
    /// The destination of JSON lines.
    out: Out<'a>,
    json: bool,
    shown: progress::Progress,
    iterates: bool,
    /// Whether the first trials have been chosen.
    planned: bool,
    /// What predicts the times of trials.
    model: Option<&'a dyn CostModel>,
    first_best: Option<f64>,
    learned: String,
}

/// A writer that remembers its first error.
struct Out<'a> {
    out: &'a mut dyn Write,
    failed: Option<std::io::Error>,
}

impl<'a> Progress<'a> {
    /// Starts to show a run, with its time limit if there is one.
    pub(crate) fn new(
        name: &str,
        json: bool,
        iterates: bool,
        limit: Option<Duration>,
        out: &'a mut dyn Write,
    ) -> Progress<'a> {
        let shown = match json {
            true => progress::Progress::hidden(),
            false => progress::Progress::limited(format!("tuning {name}"), Unit::Things("trials"), limit),
        };
        Progress {
            out: Out { out, failed: None },
            json,
            shown,
            iterates,
            planned: false,
            model: None,
            first_best: None,
            learned: String::new(),
        }
    }

    /// Names the model that predicts the times of all trials.
    pub(crate) fn predicted_by(self, model: Option<&'a dyn CostModel>) -> Progress<'a> {
        Progress { model, ..self }
    }

    /// Announces the pipeline and device.
    pub(crate) fn begin(&mut self, asked: &Subject, device: &Device, checked: bool) {
        if self.json {
            let Subject { name, sizes, .. } = asked;
            self.line(&json!({ "event": "begin", "app": name, "sizes": sizes, "device": device.name }));
        } else {
            self.shown.say(&format!("{}{} on {}", asked.name, asked.sizes, device.name));
        }
        if !checked {
            self.note("the reference evaluator is too slow even at a small size: results are compared only with the default schedule");
        }
    }

    pub(crate) fn hear(&mut self, event: &Event<'_>) {
        if self.json {
            if let Some(line) = as_json(event, self.model) {
                self.line(&line);
            }
            return;
        }
        match event {
            Event::Note(note) => self.note(note),
            Event::Searching { iteration, of } => {
                if self.iterates {
                    self.shown.set_label(format!("iteration {}/{of}", iteration + 1));
                }
                self.shown.set_message("searching");
            }
            // The search at the start is no trial.
            Event::Planned { .. } if !self.iterates && !self.planned => {
                self.planned = true;
                self.shown.restart_pace();
            }
            Event::Exploring { templates, .. } => {
                self.shown.say(&format!("the space has {}", show::count(*templates, "template")));
            }
            Event::Measured { progress, .. } => self.show(*progress),
            Event::Retrained { before, after } => {
                let number = |regret: &Option<f64>| regret.map_or("-".to_owned(), |it| format!("{it:.2}"));
                self.learned = format!(", retrained: regret {} -> {}", number(before), number(after));
            }
            Event::Retiming { finalists } => {
                self.shown.set_message(format!("timing the best {finalists} in turn"));
            }
            _ => {}
        }
    }

    fn show(&mut self, progress: tuning::Progress) {
        let tuning::Progress { done, expected, invalid, best_us } = progress;
        self.first_best = self.first_best.or(best_us);
        let was = match (self.first_best, best_us) {
            (Some(first), Some(best)) if best < first => format!(" (was {first:.1})"),
            _ => String::new(),
        };
        let best = best_us.map_or("none yet".to_owned(), |best| format!("{best:.1} us{was}"));
        self.shown.set_length(expected as u64);
        self.shown.set_position(done as u64);
        self.shown.set_message(format!("best {best}, invalid {invalid}{}", self.learned));
    }

    fn note(&mut self, note: &str) {
        match self.json {
            true => self.line(&json!({ "event": "note", "note": note })),
            false => self.shown.say(&format!("note: {note}")),
        }
    }

    fn line(&mut self, event: &Json) {
        let Out { out, failed } = &mut self.out;
        if failed.is_none() {
            let written = report::json_line(*out, SCHEMA, event);
            *failed = written.err();
            // Nobody reads the measurements any more, so the run ends.
            if failed.is_some() {
                stop();
            }
        }
    }

    /// Removes the bar and returns the writer for the results.
    pub(crate) fn end(self) -> Result<&'a mut dyn Write, Error> {
        drop(self.shown);
        match self.out.failed {
            Some(error) => Err(error.into()),
            None => Ok(self.out.out),
        }
    }
}

fn as_json(event: &Event<'_>, model: Option<&dyn CostModel>) -> Option<Json> {
    Some(match event {
        Event::Note(note) => json!({ "event": "note", "note": note }),
        Event::Searching { iteration, of } => {
            json!({ "event": "searching", "iteration": iteration, "of": of })
        }
        Event::Planned { candidates, known } => {
            json!({ "event": "planned", "candidates": candidates, "known": known })
        }
        Event::Measured { trial, progress } => {
            json!({ "event": "measured", "trial": TrialReport::new(trial, model), "progress": progress })
        }
        Event::Retrained { before, after } => {
            json!({ "event": "retrained", "regret_before": before, "regret_after": after })
        }
        Event::Exploring { run, templates, recorded } => {
            json!({ "event": "exploring", "run": run, "templates": templates, "recorded": recorded })
        }
        Event::Stepped { tally, of } => json!({ "event": "stepped", "tally": tally, "of": of }),
        Event::Retiming { finalists } => json!({ "event": "retiming", "finalists": finalists }),
        _ => return None,
    })
}
