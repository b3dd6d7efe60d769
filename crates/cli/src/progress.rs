//! Progress of long tasks on standard error: a bar on a terminal, otherwise a line every few
//! seconds, and nothing with `--quiet`.

mod pace;

use std::fmt;
use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use warploom::lang::visible;

use crate::voice;
use pace::Pace;

/// The interval between lines if there is no terminal.
const LINES: Duration = Duration::from_secs(10);

/// The most columns of a line if there is no terminal whose width is known.
const WIDTH: usize = 80;

/// The end of a line that was cut.
const CUT: &str = "...";

/// The interval at which a bar is redrawn while only the clock changes.
const TICKS: Duration = Duration::from_millis(200);

/// The length of the bar itself, whatever the amount of work.
const WHOLE: u64 = 10_000;

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
    work: Work,
    lines: Option<Lines>,
}

/// The work and its time limit, shared with what draws it.
#[derive(Clone)]
struct Work {
    pace: Arc<Mutex<Pace>>,
    started: Instant,
    /// The time limit, measured from the start.
    limit: Duration,
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
            true => Progress::drawn(shown(label), unit, Work::new(limit)),
            false => Progress::in_lines(shown(label), unit, Work::new(limit), LINES, voice::line),
        }
    }

    /// Counts without showing anything.
    pub(crate) fn hidden() -> Progress {
        Progress { bar: ProgressBar::hidden(), unit: Unit::Time, work: Work::new(Duration::MAX), lines: None }
    }

    fn drawn(label: String, unit: Unit, work: Work) -> Progress {
        let bar =
            ProgressBar::no_length().with_prefix(label).with_style(style("{prefix}  {elapsed}  {wide_msg}"));
        bar.enable_steady_tick(TICKS);
        Progress { bar, unit, work, lines: None }
    }

    /// Prints a line at every interval, the first one after one interval.
    fn in_lines(
        label: String,
        unit: Unit,
        work: Work,
        every: Duration,
        say: impl Fn(&str) + Send + 'static,
    ) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_prefix(label);
        let (alive, ended) = mpsc::channel::<()>();
        let (shown, known) = (bar.clone(), work.clone());
        let thread = thread::spawn(move || {
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                say(&text(&shown, unit, &known));
            }
        });
        Progress { bar, unit, work, lines: Some(Lines { alive: Some(alive), thread: Some(thread) }) }
    }

    /// Replaces the label that the task started with.
    pub(crate) fn set_label(&self, label: impl Into<String>) {
        self.bar.set_prefix(shown(label));
    }

    /// Sets the total. The bar appears only once the total is known. It does not go back if the total grows.
    pub(crate) fn set_length(&self, length: u64) {
        if self.work.pace().total().is_none() {
            let template = match self.unit {
                Unit::Things(things) => format!("{{bar:20}} {{count}} {things}  {{elapsed}}{{left}}"),
                Unit::Share => "{bar:20} {percent:>3} %  {elapsed}{left}".to_owned(),
                Unit::Time => "{elapsed}".to_owned(),
            };
            let (count, left) = (self.work.clone(), self.work.clone());
            // A formatting error in one of these only leaves the field empty.
            let count = move |_: &ProgressState, out: &mut dyn fmt::Write| {
                out.write_str(&count.pace().count()).unwrap_or_default();
            };
            let left = move |_: &ProgressState, out: &mut dyn fmt::Write| {
                let text =
                    left.left().map_or(String::new(), |left| format!(", {:#} left", HumanDuration(left)));
                out.write_str(&text).unwrap_or_default();
            };
            let style = style(&format!("{{prefix}}  {template}  {{wide_msg}}"));
            self.bar.set_style(style.with_key("count", count).with_key("left", left));
            self.bar.set_length(WHOLE);
        }
        self.change(|pace| pace.set_total(length));
    }

    /// Sets how much is done, unless more was done already.
    pub(crate) fn set_position(&self, position: u64) {
        self.change(|pace| pace.set_done(position, Instant::now()));
    }

    /// Adds to how much is done.
    pub(crate) fn advance(&self, by: u64) {
        self.change(|pace| pace.set_done(pace.done() + by, Instant::now()));
    }

    /// Sets how much of the thing at hand is done, from 0 to 1.
    pub(crate) fn set_part(&self, part: f64) {
        self.change(|pace| pace.set_part(part, Instant::now()));
    }

    /// What was done so far was preparation: the pace is measured from now on.
    pub(crate) fn restart_pace(&self) {
        self.change(|pace| pace.restart(Instant::now()));
    }

    #[cfg(test)]
    pub(crate) fn limit(&self) -> Duration {
        self.work.limit
    }

    fn change(&self, change: impl FnOnce(&mut Pace)) {
        let mut pace = self.work.pace();
        change(&mut pace);
        let position = (pace.share() * WHOLE as f64) as u64;
        drop(pace);
        self.bar.set_position(position);
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

impl Work {
    fn new(limit: Duration) -> Work {
        let started = Instant::now();
        Work { pace: Arc::new(Mutex::new(Pace::new(started))), started, limit }
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time that is left, if anything is known of it.
    fn left(&self) -> Option<Duration> {
        let now = Instant::now();
        let left = self.pace().left(now)?;
        Some(left.min(self.limit.saturating_sub(now - self.started)))
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
fn text(bar: &ProgressBar, unit: Unit, work: &Work) -> String {
    let message = bar.message();
    let pace = work.pace();
    let count = match (unit, pace.total()) {
        (Unit::Things(things), Some(_)) => format!(" {} {things},", pace.count()),
        (Unit::Share, Some(_)) => format!(" {:.0} %,", (100.0 * pace.share()).floor()),
        _ => String::new(),
    };
    drop(pace);
    let left = work.left().map_or(String::new(), |left| format!(", about {} left", HumanDuration(left)));
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
        let progress =
            Progress::in_lines(label, trials, Work::new(Duration::MAX), Duration::from_millis(20), hear);
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
        progress.set_length(1600);
        progress.set_position(1234);
        progress.set_message("best 1234.5 us (was 2345.6), invalid 12, retrained: regret 1.31 -> 1.09");
        let line = text(&progress.bar, Unit::Things("trials"), &progress.work);
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
        let progress = Progress::in_lines(label, Unit::Share, Work::new(Duration::MAX), minute, say);
        progress.set_length(4);
        progress.advance(2);
        assert!(text(&progress.bar, Unit::Share, &progress.work).starts_with("evaluating: 50 %, "));
        assert!(text(&progress.bar, Unit::Time, &progress.work).starts_with("evaluating: "));
        let late = Work { limit: Duration::ZERO, ..progress.work.clone() };
        let late = text(&progress.bar, Unit::Share, &late);
        assert!(late.ends_with("about 0 seconds left"), "{late}");
        drop(progress);
        assert!(said.lock().unwrap().is_empty());
    }

    #[test]
    fn a_bar_never_goes_back() {
        let progress = Progress::hidden();
        let shown = || (progress.bar.position(), text(&progress.bar, Unit::Share, &progress.work));
        progress.set_length(100);
        progress.set_position(60);
        let before = shown();
        assert!(before.0 == 6000 && before.1.contains(" 60 %,"), "{before:?}");
        progress.set_position(20);
        progress.set_length(400);
        progress.set_position(70);
        let after = shown();
        assert!(after.0 == 6000 && after.1.contains(" 60 %,"), "{after:?}");
        progress.set_position(300);
        assert_eq!(shown().0, 7500);
    }
}
