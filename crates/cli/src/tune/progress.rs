//! How far tuning is: a bar on a terminal, a line now and then elsewhere, or lines of JSON.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value as Json, json};
use warploom::target::Device;
use warploom::tune::tuning::{self, Event};

use super::report::TrialReport;
use crate::error::Error;
use crate::pipeline::Subject;

/// How often there is a line where there is no terminal.
const LINES: Duration = Duration::from_secs(10);

/// The form of the lines of JSON.
pub(crate) const SCHEMA: &str = "warploom.tune/1";

/// What is shown of a run.
pub(crate) struct Progress<'a> {
    /// Where lines of JSON go.
    out: Out<'a>,
    json: bool,
    bar: ProgressBar,
    next_line: Option<Instant>,
    iterates: bool,
    started: Instant,
    first_best: Option<f64>,
    learned: String,
    last: tuning::Progress,
}

/// A place for lines that remembers its first failure.
struct Out<'a> {
    out: &'a mut dyn Write,
    failed: Option<std::io::Error>,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(name: &str, json: bool, iterates: bool, out: &'a mut dyn Write) -> Progress<'a> {
        let bar = ProgressBar::no_length().with_prefix(format!("tuning {name}"));
        let template = "{prefix}  {bar:20} {pos}/{len} trials   {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress {
            out: Out { out, failed: None },
            json,
            bar,
            next_line: (!stderr().is_terminal()).then(Instant::now),
            iterates,
            started: Instant::now(),
            first_best: None,
            learned: String::new(),
            last: tuning::Progress::default(),
        }
    }

    /// Says what is about to be tuned.
    pub(crate) fn begin(&mut self, asked: &Subject, device: &Device, checked: bool) {
        if self.json {
            let Subject { name, sizes, .. } = asked;
            self.line(&json!({ "event": "begin", "app": name, "sizes": sizes, "device": device.name }));
        } else {
            self.say(&format!("{}{} on {}", asked.name, asked.sizes, device.name));
        }
        if !checked {
            self.note("there is no small size at which the reference evaluator is quick: results are compared with the default schedule alone");
        }
    }

    pub(crate) fn hear(&mut self, event: &Event<'_>) {
        if self.json {
            if let Some(line) = as_json(event) {
                self.line(&line);
            }
            return;
        }
        match event {
            Event::Note(note) => self.note(note),
            Event::Searching { iteration, of } => {
                if self.iterates {
                    self.bar.set_prefix(format!("iteration {}/{of}", iteration + 1));
                }
                self.bar.set_message("searching");
            }
            Event::Measured { progress, .. } => self.show(*progress),
            Event::Retrained { before, after } => {
                let number = |regret: &Option<f64>| regret.map_or("-".to_owned(), |it| format!("{it:.2}"));
                self.learned = format!("   retrained: regret {} -> {}", number(before), number(after));
            }
            Event::Retiming { finalists } => {
                self.bar.set_message(format!("timing the best {finalists} in turns"));
            }
            _ => {}
        }
    }

    fn show(&mut self, progress: tuning::Progress) {
        self.last = progress;
        self.first_best = self.first_best.or(progress.best_us);
        let text = self.text();
        match self.next_line {
            None => {
                self.bar.set_length(progress.expected as u64);
                self.bar.set_position(progress.done as u64);
                self.bar.set_message(text);
            }
            Some(due) if Instant::now() >= due => {
                let prefix = self.bar.prefix();
                self.say(&format!("{prefix}  {}/{} trials   {text}", progress.done, progress.expected));
                self.next_line = Some(Instant::now() + LINES);
            }
            Some(_) => {}
        }
    }

    fn text(&self) -> String {
        let tuning::Progress { done, expected, invalid, best_us } = self.last;
        let was = match (self.first_best, best_us) {
            (Some(first), Some(best)) if best < first => format!(" (was {first:.1})"),
            _ => String::new(),
        };
        let best = best_us.map_or("none yet".to_owned(), |best| format!("{best:.1} us{was}"));
        let left = self.started.elapsed().mul_f64((expected - done) as f64 / done.max(1) as f64);
        format!("best {best}   invalid {invalid}{}   ETA {}", self.learned, human(left))
    }

    fn note(&mut self, note: &str) {
        match self.json {
            true => self.line(&json!({ "event": "note", "note": note })),
            false => self.say(&format!("note: {note}")),
        }
    }

    /// A line on standard error, above the bar.
    fn say(&self, line: &str) {
        // If standard error is closed, nobody wants to know.
        self.bar.suspend(|| writeln!(stderr(), "{line}").unwrap_or_default());
    }

    fn line(&mut self, event: &Json) {
        let Out { out, failed } = &mut self.out;
        if failed.is_none() {
            let written = write_line(*out, event);
            *failed = written.err();
        }
    }

    /// Ends the bar; gives back where results go.
    pub(crate) fn end(self) -> Result<&'a mut dyn Write, Error> {
        self.bar.finish_and_clear();
        match self.out.failed {
            Some(error) => Err(error.into()),
            None => Ok(self.out.out),
        }
    }
}

/// Writes one object of JSON on a line of its own.
pub(super) fn write_line(out: &mut dyn Write, event: &Json) -> std::io::Result<()> {
    let mut object = json!({ "schema": SCHEMA });
    if let (Some(object), Some(event)) = (object.as_object_mut(), event.as_object()) {
        object.extend(event.clone());
    }
    writeln!(out, "{object}")?;
    out.flush()
}

fn as_json(event: &Event<'_>) -> Option<Json> {
    Some(match event {
        Event::Note(note) => json!({ "event": "note", "note": note }),
        Event::Searching { iteration, of } => {
            json!({ "event": "searching", "iteration": iteration, "of": of })
        }
        Event::Planned { candidates, known } => {
            json!({ "event": "planned", "candidates": candidates, "known": known })
        }
        Event::Measured { trial, progress } => {
            json!({ "event": "measured", "trial": TrialReport::new(trial), "progress": progress })
        }
        Event::Retrained { before, after } => {
            json!({ "event": "retrained", "regret_before": before, "regret_after": after })
        }
        Event::Retiming { finalists } => json!({ "event": "retiming", "finalists": finalists }),
        _ => return None,
    })
}

/// `41 min`, `3.2 h`, `12 s`
fn human(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..100 => format!("{seconds} s"),
        seconds @ 100..6000 => format!("{} min", seconds / 60),
        seconds => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}
