//! The report of a comparison of strategies.

use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use warploom::target::Device;
use warploom::tune::compare::{Apart, Comparison, Curve, Mean, Subject};
use warploom_report::geometric_mean;

use crate::error::Error;
use crate::report::{self, Format};
use crate::show;
use crate::suite::timed::{times, write_files};
use crate::table::{self, Align};

pub(crate) const SCHEMA: &str = "warploom.strategies/1";

/// The strategy that others are compared with.
const BASE: &str = "random";

/// The results of all runs.
#[derive(Deserialize, Serialize)]
pub(crate) struct Report {
    pub(crate) versions: Vec<String>,
    /// The command line of the run.
    pub(crate) command: String,
    /// The day on which times were measured, as 2026-01-31; the last, if there were several.
    pub(crate) date: String,
    #[serde(flatten)]
    pub(crate) comparison: Comparison,
    /// All strategies relative to [`BASE`]; empty if that is not among them.
    pub(crate) relative: Vec<Relative>,
}

/// The speed of what a strategy finds, relative to [`BASE`].
#[derive(Deserialize, Serialize)]
pub(crate) struct Relative {
    pub(crate) strategy: String,
    pub(crate) at: Vec<Speed>,
}

/// A relative speed after a number of trials.
#[derive(Deserialize, Serialize)]
pub(crate) struct Speed {
    trials: usize,
    /// The geometric mean over subjects; above 1, the strategy is better.
    speed: Option<f64>,
    /// Number of subjects where both have valid times.
    subjects: usize,
}

impl Report {
    pub fn new(device: &Device, versions: &[String], date: String, trials: usize) -> Report {
        Report {
            versions: versions.to_vec(),
            command: show::command(),
            date,
            comparison: Comparison { device: device.name.clone(), trials, subjects: Vec::new() },
            relative: Vec::new(),
        }
    }

    /// Adds a run that has ended.
    pub fn add(&mut self, subject: &str, strategy: &str, run: Curve) {
        self.comparison.add(subject, strategy, run);
        let comparison = &self.comparison;
        let names = comparison.strategies();
        if !names.contains(&BASE) {
            return;
        }
        let speed = |strategy: &str, trials: usize| {
            let speeds = comparison.speeds(strategy, BASE, trials);
            Speed { trials, subjects: speeds.len(), speed: geometric_mean(speeds) }
        };
        let relative = |strategy: &&str| Relative {
            strategy: (*strategy).to_owned(),
            at: comparison.steps().into_iter().map(|trials| speed(strategy, trials)).collect(),
        };
        self.relative = names.iter().map(relative).collect();
    }

    /// Says which time is the best that there is on a subject, in microseconds.
    pub fn set_optimum(&mut self, subject: &str, best_us: f64) {
        self.comparison.set_optimum(subject, best_us);
    }

    /// The number of runs so far.
    pub fn runs(&self) -> usize {
        let strategies = self.comparison.subjects.iter().flat_map(|subject| &subject.strategies);
        strategies.map(|compared| compared.runs.len()).sum()
    }

    pub fn print(&self, format: Format, markdown: bool, out: &mut dyn Write) -> Result<(), Error> {
        report::in_form(out, (format, markdown), SCHEMA, self, [Report::text, Report::markdown])
    }

    /// Writes the results to a folder.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let mut json = Vec::new();
        report::json(&mut json, SCHEMA, self)?;
        let files = [("strategies.json", json), ("strategies.md", self.markdown().into_bytes())];
        write_files(folder, files.map(|(name, content)| (name.to_owned(), content)).to_vec())
    }

    /// Returns an error if nothing valid was found for a subject.
    pub fn verdict(&self) -> Result<(), Error> {
        let subjects = &self.comparison.subjects;
        let found = |subject: &&Subject| {
            let runs = subject.strategies.iter().flat_map(|compared| &compared.runs);
            !runs.into_iter().all(|run| run.best_us.is_empty())
        };
        let failed: Vec<&str> = subjects
            .iter()
            .filter(|subject| !found(subject))
            .map(|subject| subject.subject.as_str())
            .collect();
        match failed.is_empty() {
            true => Ok(()),
            false => {
                Err(Error::Suite { failed: failed.len(), count: subjects.len(), names: failed.join(", ") })
            }
        }
    }

    /// What the tables show, in a sentence.
    pub(crate) fn caption(&self) -> String {
        let runs = self.comparison.subjects.iter().flat_map(|subject| &subject.strategies);
        let seeds = runs.map(|compared| compared.runs.len()).max().unwrap_or(0);
        format!(
            "The best time so far after a number of trials, in us: mean ± standard deviation over {}. In brackets: how \
             many have a valid time, if not all.",
            show::count(seeds, "seed")
        )
    }

    fn text(&self) -> String {
        let titles = titles(&self.comparison);
        let titles: Vec<(&str, Align)> =
            titles.iter().map(|(title, align)| (title.as_str(), *align)).collect();
        let subject = |subject: &Subject| {
            let table = table::whole(&titles, &cells(subject, |_| false));
            let notes: String = notes(subject).iter().map(|note| format!("{note}\n")).collect();
            format!("\n{}\n{table}{notes}", subject.subject)
        };
        let subjects: String = self.comparison.subjects.iter().map(subject).collect();
        let relative = self.relative_to_base(|rows| table::whole(&titles, rows));
        format!("{}\n{}\n{subjects}{relative}", self.head(), self.caption())
    }

    fn markdown(&self) -> String {
        let titles = titles(&self.comparison);
        let titles: Vec<(&str, Align)> =
            titles.iter().map(|(title, align)| (title.as_str(), *align)).collect();
        let subject = |subject: &Subject| {
            let rows = cells(subject, |mean| is_best(subject, mean));
            let notes: String = notes(subject).iter().map(|note| format!("\n{note}\n")).collect();
            format!("\n## {}\n\n{}{notes}", subject.subject, table::markdown(&titles, &rows))
        };
        let subjects: String = self.comparison.subjects.iter().map(subject).collect();
        let relative = self.relative_to_base(|rows| format!("\n{}", table::markdown(&titles, rows)));
        let (versions, command) = (self.versions.join(", "), &self.command);
        format!(
            "# Strategies\n\n{}, {versions}.\n\nCommand: `{command}`.\n\n{} The best mean is in bold.\n{subjects}{relative}",
            self.head(),
            self.caption()
        )
    }

    fn head(&self) -> String {
        let Comparison { device, trials, .. } = &self.comparison;
        format!("strategies with {} on {device}, {}", show::count(*trials, "trial"), self.date)
    }

    /// The table relative to [`BASE`] under its heading; nothing if there is none.
    fn relative_to_base(&self, table: impl Fn(&[Vec<String>]) -> String) -> String {
        let rows = speed_cells(&self.relative);
        match rows.is_empty() {
            true => String::new(),
            false => format!("\n{}\n{}", self.about_speeds(), table(&rows)),
        }
    }

    /// What the relative speeds are, in a sentence.
    pub(crate) fn about_speeds(&self) -> String {
        let subjects = show::count(self.comparison.subjects.len(), "subject");
        format!("Speed relative to `{BASE}`, geometric mean over {subjects}; higher is better.")
    }
}

/// The columns of all tables.
pub(crate) fn titles(comparison: &Comparison) -> Vec<(String, Align)> {
    let after = |trials: usize| (format!("after {trials}"), Align::Right);
    let first = ("strategy".to_owned(), Align::Left);
    std::iter::once(first).chain(comparison.steps().into_iter().map(after)).collect()
}

/// The rows of a subject's table. What is `bold` is marked as Markdown does it.
pub(crate) fn cells(subject: &Subject, bold: impl Fn(&Mean) -> bool) -> Vec<Vec<String>> {
    let row = |compared: &warploom::tune::compare::Compared| {
        let cell = |mean: &Mean| match bold(mean) {
            true => format!("**{}**", cell(mean, compared.runs.len())),
            false => cell(mean, compared.runs.len()),
        };
        std::iter::once(compared.strategy.clone()).chain(compared.at.iter().map(cell)).collect()
    };
    subject.strategies.iter().map(row).collect()
}

/// What is known beyond the times of a subject: the best that there is, and how sure the order of the best two is.
pub(crate) fn notes(subject: &Subject) -> Vec<String> {
    let optimum = subject
        .optimum_us
        .map(|us| format!("Known optimum: {us:.2} us, the best of all points of the landscape."));
    optimum.into_iter().chain(subject.apart.as_ref().map(apart)).collect()
}

fn apart(Apart { best, second, trials, seeds, needed }: &Apart) -> String {
    let pair = format!("`{best}` and `{second}`, the best two after {}", show::count(*trials, "trial"));
    match needed {
        None => format!("{pair}, have the same mean over {}.", show::count(*seeds, "seed")),
        Some(needed) => {
            let verdict = if needed <= seeds { "enough" } else { "too few" };
            format!(
                "To tell apart {pair}, takes about {} each (two-sample z test at 95 %, power 80 %, with the spread seen \
                 here); {} {verdict}.",
                show::count(*needed, "seed"),
                if *seeds == 1 { "1 is".to_owned() } else { format!("{seeds} are") }
            )
        }
    }
}

/// The rows of the table of relative speeds.
pub(crate) fn speed_cells(relative: &[Relative]) -> Vec<Vec<String>> {
    let row = |Relative { strategy, at }: &Relative| {
        std::iter::once(strategy.clone()).chain(at.iter().map(|speed| times(speed.speed))).collect()
    };
    relative.iter().map(row).collect()
}

/// A mean with its deviation, and how many seeds have a valid time if not all of the runs have.
fn cell(mean: &Mean, runs: usize) -> String {
    let Some(mean_us) = mean.mean_us else { return "-".to_owned() };
    let deviation = mean.deviation_us.map(|deviation| format!(" ± {deviation:.2}")).unwrap_or_default();
    let some = if mean.seeds < runs { format!(" ({})", mean.seeds) } else { String::new() };
    format!("{mean_us:.2}{deviation}{some}")
}

/// Whether no strategy has a better mean after as many trials.
fn is_best(subject: &Subject, mean: &Mean) -> bool {
    let others = subject.strategies.iter().filter_map(|other| other.after(mean.trials).mean_us);
    mean.mean_us.is_some() && mean.mean_us == others.reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let mut report =
            Report::new(&Device::preset("h200").unwrap(), &["one".to_owned()], "2026-11-17".into(), 50);
        let slow: Vec<Option<f64>> = (0..30).map(|_| Some(8.0)).chain([Some(6.0)]).collect();
        report.add("blur", "random", Curve::new(0, &slow));
        report.add("blur", "opevo", Curve::new(0, &[Some(4.0)]));
        report.add("blur", "random", Curve::new(1, &[Some(10.0)]));
        report.add("blur", "opevo", Curve::new(1, &[None]));
        report.add("sharpen", "random", Curve::new(0, &[Some(9.0)]));
        report.add("sharpen", "opevo", Curve::new(0, &[Some(9.0)]));
        report
    }

    #[test]
    fn means_are_cells_and_the_best_are_bold() {
        let report = report();
        let text = report.text();
        for line in [
            "strategy     after 25     after 50",
            "random    9.00 ± 1.41  8.00 ± 2.83",
            "opevo        4.00 (1)     4.00 (1)",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
        }
        let markdown = report.markdown();
        assert!(markdown.contains("| opevo | **4.00 (1)** | **4.00 (1)** |"), "{markdown}");
        assert!(
            markdown.contains("| random | **9.00** | **9.00** |\n| opevo | **9.00** |"),
            "equal: {markdown}"
        );
    }

    #[test]
    fn the_optimum_and_the_seeds_of_a_difference_are_said() {
        let mut report = Report::new(&Device::preset("h200").unwrap(), &[], "2026-11-17".into(), 50);
        report.set_optimum("mm", 7.25);
        for (seed, (random, opevo)) in [(11.0, 10.0), (10.0, 9.0), (12.0, 11.0)].into_iter().enumerate() {
            report.add("mm", "random", Curve::new(seed as u64, &[Some(random)]));
            report.add("mm", "opevo", Curve::new(seed as u64, &[Some(opevo)]));
        }
        let optimum = "Known optimum: 7.25 us, the best of all points of the landscape.";
        let seeds = "To tell apart `opevo` and `random`, the best two after 50 trials, takes about 16 seeds each \
                     (two-sample z test at 95 %, power 80 %, with the spread seen here); 3 are too few.";
        for text in [report.text(), report.markdown()] {
            assert!(
                text.lines().any(|line| line == optimum) && text.lines().any(|line| line == seeds),
                "{text}"
            );
        }
        let mut json = Vec::new();
        report::json(&mut json, SCHEMA, &report).unwrap();
        let back: Report = serde_json::from_slice(&json).unwrap();
        assert_eq!(back.comparison, report.comparison);
    }

    #[test]
    fn speeds_are_means_over_subjects() {
        let rows = speed_cells(&report().relative);
        // 9 / 4 and 1; then 2 and 1.
        assert_eq!(rows, [["random", "1.00x", "1.00x"], ["opevo", "1.50x", "1.41x"]]);
        let mut alone = Report::new(&Device::preset("h200").unwrap(), &[], "2026-11-17".into(), 50);
        alone.add("blur", "opevo", Curve::new(0, &[Some(4.0)]));
        assert!(alone.relative.is_empty() && !alone.text().contains("relative"));
    }

    #[test]
    fn a_subject_without_valid_times_fails() {
        let mut report = report();
        assert!(report.verdict().is_ok());
        report.add("nothing", "random", Curve::new(0, &[None, None]));
        assert_eq!(report.verdict().unwrap_err().to_string(), "1 of 3 apps have no valid schedule: nothing");
    }
}
