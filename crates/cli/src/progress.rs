//! Progress of long tasks on standard error: a bar on a terminal, otherwise a line every few
//! seconds, and nothing with `--quiet`.

use std::fmt;
use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use warploom::lang::visible;

use crate::voice;

/// The interval between lines if there is no terminal.
const LINES: Duration = Duration::from_secs(10);

/// The most columns of a line if there is no terminal whose width is known.
const WIDTH: usize = 80;

/// The end of a line that was cut.
const CUT: &str = "...";

/// The interval at which a bar is redrawn while only the clock changes.
const TICKS: Duration = Duration::from_millis(200);

/// The unit of progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// A count of items, as in `12/80 trials`.
    Things(&'static str),
    /// Internal steps, shown as a percentage.
    Share,
    /// No count; only the elapsed time is shown.
    Time,
}

/// A long task whose progress is shown until this value is dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    unit: Unit,
    /// The time limit, measured from the start.
    limit: Duration,
    lines: Option<Lines>,
}

/// A thread that prints a line at intervals.
struct Lines {
    /// Dropping the sender ends the thread.
    alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts to show progress.
    pub(crate) fn new(label: impl Into<String>, unit: Unit) -> Progress {
        Progress::limited(label, unit, None)
    }

    /// Starts to show progress of a task that ends after a time limit at the latest.
    pub(crate) fn limited(label: impl Into<String>, unit: Unit, limit: Option<Duration>) -> Progress {
        if voice::is_quiet() {
            return Progress::hidden();
        }
        let limit = limit.unwrap_or(Duration::MAX);
        let attended = stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        match attended && !voice::logs() {
            true => Progress::drawn(shown(label), unit, limit),
            false => Progress::in_lines(shown(label), unit, limit, LINES, voice::line),
        }
    }

    /// Counts without showing anything.
    pub(crate) fn hidden() -> Progress {
        Progress { bar: ProgressBar::hidden(), unit: Unit::Time, limit: Duration::MAX, lines: None }
    }

    fn drawn(label: String, unit: Unit, limit: Duration) -> Progress {
        let bar =
            ProgressBar::no_length().with_prefix(label).with_style(style("{prefix}  {elapsed}  {wide_msg}"));
        bar.enable_steady_tick(TICKS);
        Progress { bar, unit, limit, lines: None }
    }

    /// Prints a line at every interval, the first one after one interval.
    fn in_lines(
        label: String,
        unit: Unit,
        limit: Duration,
        every: Duration,
        say: impl Fn(&str) + Send + 'static,
    ) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_prefix(label);
        let (alive, ended) = mpsc::channel::<()>();
        let shown = bar.clone();
        let thread = thread::spawn(move || {
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                say(&text(&shown, unit, limit));
            }
        });
        Progress { bar, unit, limit, lines: Some(Lines { alive: Some(alive), thread: Some(thread) }) }
    }

    /// Replaces the label that the task started with.
    pub(crate) fn set_label(&self, label: impl Into<String>) {
        self.bar.set_prefix(shown(label));
    }

    /// Sets the total. The bar appears only once the total is known.
    pub(crate) fn set_length(&self, length: u64) {
        if self.bar.length().is_none() {
            let template = match self.unit {
                Unit::Things(things) => {
                    format!("{{bar:20}} {{pos}}/{{len}} {things}  {{elapsed}}, {{left}} left")
                }
                Unit::Share => "{bar:20} {percent:>3} %  {elapsed}, {left} left".to_owned(),
                Unit::Time => "{elapsed}".to_owned(),
            };
            let limit = self.limit;
            let left = move |bar: &ProgressState, out: &mut dyn fmt::Write| {
                let left = bar.eta().min(limit.saturating_sub(bar.elapsed()));
                // A formatting error here only leaves the field empty.
                let _ = write!(out, "{:#}", HumanDuration(left));
            };
            let style = style(&format!("{{prefix}}  {template}  {{wide_msg}}")).with_key("left", left);
            self.bar.set_style(style);
        }
        self.bar.set_length(length);
    }

    /// Sets how much is done.
    pub(crate) fn set_position(&self, position: u64) {
        self.bar.set_position(position);
    }

    /// Adds to how much is done.
    pub(crate) fn advance(&self, by: u64) {
        self.bar.inc(by);
    }

    /// Sets additional text after the bar.
    pub(crate) fn set_message(&self, message: impl Into<String>) {
        self.bar.set_message(shown(message));
    }

    /// Runs a function that writes to the terminal, with the bar hidden meanwhile.
    pub(crate) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// Prints a line to standard error, above the bar.
    pub(crate) fn say(&self, line: &str) {
        self.aside(|| voice::line(line));
    }
}

/// Removes the bar when the task ends, successfully or not.
impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        if let Some(lines) = &mut self.lines {
            drop(lines.alive.take());
            // Waits until the thread has finished its line, so that it does not appear among later
            // output.
            let _ = lines.thread.take().map(JoinHandle::join);
        }
    }
}

/// Escapes text for the line of a bar; it may contain names from files.
fn shown(text: impl Into<String>) -> String {
    visible(&text.into()).into_owned()
}

/// The style of the bar, which never takes more than one line.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// One line of progress, as in `tuning harris: 12/80 trials, 31 s, best 29.8 us`, that fits [`WIDTH`].
fn text(bar: &ProgressBar, unit: Unit, limit: Duration) -> String {
    let (done, message) = (bar.position(), bar.message());
    let count = match (unit, bar.length()) {
        (Unit::Things(things), Some(all)) => format!(" {done}/{all} {things},"),
        (Unit::Share, Some(all)) => format!(" {} %,", 100 * done.min(all) / all.max(1)),
        _ => String::new(),
    };
    let left = match bar.length().filter(|_| done > 0) {
        Some(all) if done < all => {
            let left = bar.elapsed().mul_f64((all - done) as f64 / done as f64);
            let left = left.min(limit.saturating_sub(bar.elapsed()));
            format!(", about {} left", HumanDuration(left))
        }
        _ => String::new(),
    };
    let message = if message.is_empty() { message } else { format!(", {message}") };
    fitted(format!("{}:{count} {}{left}{message}", bar.prefix(), HumanDuration(bar.elapsed())))
}

/// Cuts a line that is too long at its end.
fn fitted(line: String) -> String {
    if line.chars().count() <= WIDTH {
        return line;
    }
    let kept: String = line.chars().take(WIDTH - CUT.len()).collect();
    kept.trim_end_matches([' ', ',']).to_owned() + CUT
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn lines_say_how_far_it_is_until_it_is_over() {
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let hear = {
            let said = said.clone();
            move |line: &str| said.lock().unwrap().push(line.to_owned())
        };
        let (label, trials) = ("tuning".to_owned(), Unit::Things("trials"));
        let progress = Progress::in_lines(label, trials, Duration::MAX, Duration::from_millis(20), hear);
        progress.set_length(80);
        progress.set_position(12);
        progress.set_message("best 29.8 us");
        let until = std::time::Instant::now() + Duration::from_secs(10);
        let heard = || said.lock().unwrap().iter().any(|line| line.contains("12/80 trials"));
        while !heard() && std::time::Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        assert!(heard(), "{said:?}");
        drop(progress);
        let after = said.lock().unwrap().clone();
        let last = after.last().unwrap();
        assert!(
            last.starts_with("tuning: 12/80 trials, ") && last.ends_with(" left, best 29.8 us"),
            "{last}"
        );
        thread::sleep(Duration::from_millis(60));
        assert_eq!(*said.lock().unwrap(), after, "nothing is said when it is over");
    }

    #[test]
    fn lines_fit_80_columns() {
        let progress = Progress::hidden();
        progress.set_label("tuning depthwise_separable_conv");
        progress.bar.set_length(1600);
        progress.set_position(1234);
        progress.set_message("best 1234.5 us (was 2345.6), invalid 12, retrained: regret 1.31 -> 1.09");
        let line = text(&progress.bar, Unit::Things("trials"), Duration::MAX);
        assert!(line.starts_with("tuning depthwise_separable_conv: 1234/1600 trials, "), "{line}");
        assert!(line.ends_with("...") && line.chars().count() <= WIDTH, "{line}");
        assert_eq!(fitted("ä".repeat(WIDTH)), "ä".repeat(WIDTH));
        assert_eq!(fitted("ä".repeat(WIDTH + 1)), "ä".repeat(WIDTH - 3) + CUT);
        assert_eq!(fitted("a".repeat(76) + ", and more"), "a".repeat(76) + CUT);
    }

    #[test]
    fn short_work_says_nothing() {
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = said.clone();
        let say = move |line: &str| heard.lock().unwrap().push(line.to_owned());
        let (label, minute) = ("evaluating".to_owned(), Duration::from_secs(60));
        let progress = Progress::in_lines(label, Unit::Share, Duration::MAX, minute, say);
        progress.set_length(4);
        progress.advance(2);
        assert!(text(&progress.bar, Unit::Share, minute).starts_with("evaluating: 50 %, "));
        assert!(text(&progress.bar, Unit::Time, minute).starts_with("evaluating: "));
        let late = text(&progress.bar, Unit::Share, Duration::ZERO);
        assert!(late.ends_with("about 0 seconds left"), "{late}");
        drop(progress);
        assert!(said.lock().unwrap().is_empty());
    }
}
