//! The report of the suite.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use warploom::cost::Range;
use warploom::target::Device;
use warploom::tune::sample::{KernelUse, Status};
use warploom::tune::tuning::Tuned;
use warploom_report::geometric_mean;

use super::anchors::{Anchor, Anchors};
use crate::bench::floor_us;
use crate::date;
use crate::error::Error;
use crate::pipeline::Subject;
use crate::report::{self, Format};
use crate::show;
use crate::sizes::Sizes;
use crate::table::{self, Align};

pub(crate) const SCHEMA: &str = "warploom.suite/2";

/// The result of one app.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct Row {
    pub(crate) app: String,
    pub(crate) sizes: Sizes,
    /// `ok`, or what is wrong with the schedule; `none` without a schedule.
    status: String,
    pub(crate) message: String,
    /// Whether the outputs were also compared at the full size.
    checked_at_full_size: bool,
    pub(crate) min_us: Option<f64>,
    median_us: Option<f64>,
    predicted_us: Option<f64>,
    /// The measured time lies between these two for nine of ten pipelines; `null` if that is not known. Older files do not
    /// have them.
    #[serde(default)]
    predicted_us_low: Option<f64>,
    #[serde(default)]
    predicted_us_high: Option<f64>,
    /// A lower bound for this device.
    pub(crate) floor_us: Option<f64>,
    kernels: usize,
    registers: Option<u32>,
    spilled_bytes: u64,
    compile_seconds: f64,
    /// The time to find the schedule.
    search_seconds: f64,
    pub(crate) anchor: Anchor,
    pub(crate) schedule: String,
}

/// The results of all apps.
#[derive(Deserialize, Serialize)]
pub(crate) struct Report {
    pub(crate) mode: String,
    pub(crate) device: String,
    pub(crate) versions: Vec<String>,
    /// The command line of the run.
    pub(crate) command: String,
    /// The date of the run, as 2026-01-31.
    pub(crate) date: String,
    /// The device that the anchors were measured on.
    pub(crate) anchors_of: Option<String>,
    /// The geometric mean of the speedups over Halide's hand-written schedules.
    faster_than_manual: Option<f64>,
    /// The geometric mean of the speedups over Halide's autoscheduler.
    faster_than_anderson2021: Option<f64>,
    pub(crate) apps: Vec<Row>,
    #[serde(skip)]
    anchors: Option<Anchors>,
}

impl Row {
    pub fn new(asked: &Subject, device: &Device, seconds: f64, schedule: String, timed: &Tuned) -> Row {
        let mut row = Row::failed(asked, device, seconds, String::new());
        row.schedule = schedule;
        let Some(trial) = timed.shown.first() else { return row };
        let sample = &trial.sample;
        sample.status.kind().clone_into(&mut row.status);
        row.message = sample.status.message().to_owned();
        row.checked_at_full_size = timed.winner.as_ref().is_some_and(|winner| winner.checked_at_full_size);
        let times = sample.times.filter(|_| sample.status == Status::Measured);
        row.min_us = times.map(|times| times.min);
        row.median_us = times.map(|times| times.median);
        row.predicted_us = trial.predicted_us;
        row.kernels = sample.kernels.len();
        row.registers = sample.kernels.iter().map(|kernel| kernel.registers).max();
        row.spilled_bytes = sample.kernels.iter().map(KernelUse::spilled_bytes).sum();
        row.compile_seconds = sample.compile_ms / 1e3;
        row
    }

    /// The row of an app for which no schedule was found.
    pub fn failed(asked: &Subject, device: &Device, seconds: f64, why: String) -> Row {
        Row {
            app: asked.name.clone(),
            sizes: asked.sizes.clone(),
            status: "none".to_owned(),
            message: why,
            checked_at_full_size: false,
            min_us: None,
            median_us: None,
            predicted_us: None,
            predicted_us_low: None,
            predicted_us_high: None,
            floor_us: Some(floor_us(asked, device)),
            kernels: 0,
            registers: None,
            spilled_bytes: 0,
            compile_seconds: 0.0,
            search_seconds: seconds,
            anchor: Anchor::default(),
            schedule: String::new(),
        }
    }

    /// Sets the range of the predicted time.
    pub fn set_range(&mut self, range: Option<Range>) {
        self.predicted_us_low = range.map(|range| range.low_us);
        self.predicted_us_high = range.map(|range| range.high_us);
    }

    fn range(&self) -> Option<Range> {
        Some(Range { low_us: self.predicted_us_low?, high_us: self.predicted_us_high? })
    }

    /// The line to print when the app is done.
    pub fn line(&self) -> String {
        let time = self.min_us.map_or(self.status.clone(), |time| format!("{time:.2} us"));
        format!("{}: {time}", self.app)
    }

    fn times_faster(&self, than: Option<f64>) -> Option<f64> {
        Some(than? / self.min_us?)
    }

    /// The cells of its table row, under [`TITLES`].
    pub(crate) fn cells(&self) -> Vec<String> {
        let number = |number: Option<f64>| number.map_or("-".to_owned(), |it| format!("{it:.1}"));
        let times = |number: Option<f64>| number.map_or("-".to_owned(), |it| format!("{it:.2}x"));
        let floor = self.min_us.zip(self.floor_us).map(|(time, floor)| 1e2 * floor / time);
        let check = match (self.status.as_str(), self.checked_at_full_size) {
            ("ok", true) => "ok",
            ("ok", false) => "small size only",
            (status, _) => status,
        };
        vec![
            self.app.clone(),
            number(self.min_us),
            number(self.median_us),
            self.predicted_us.map_or("-".to_owned(), |time| show::with_range(time, self.range())),
            times(self.times_faster(self.anchor.halide_manual_us)),
            times(self.times_faster(self.anchor.anderson2021_us)),
            floor.map_or("-".to_owned(), |share| format!("{share:.0} %")),
            self.kernels.to_string(),
            self.registers.map_or("-".to_owned(), |count| count.to_string()),
            self.spilled_bytes.to_string(),
            format!("{:.1}", self.compile_seconds),
            format!("{:.1}", self.search_seconds),
            check.to_owned(),
        ]
    }
}

pub(crate) const TITLES: [(&str, Align); 13] = [
    ("app", Align::Left),
    ("minimum us", Align::Right),
    ("median us", Align::Right),
    ("predicted us", Align::Right),
    ("Halide manual", Align::Right),
    ("Anderson2021", Align::Right),
    ("of the floor", Align::Right),
    ("kernels", Align::Right),
    ("registers", Align::Right),
    ("spilled bytes", Align::Right),
    ("compile s", Align::Right),
    ("search s", Align::Right),
    ("check", Align::Left),
];

impl Report {
    pub(super) fn new(mode: &str, device: &Device, versions: &[String], anchors: Option<Anchors>) -> Report {
        let words: Vec<String> = std::env::args().skip(1).collect();
        Report {
            mode: mode.to_owned(),
            device: device.name.clone(),
            versions: versions.to_vec(),
            command: format!("warploom {}", words.join(" ")),
            date: date::today(),
            anchors_of: anchors.as_ref().map(|anchors| anchors.device.clone()),
            faster_than_manual: None,
            faster_than_anderson2021: None,
            apps: Vec::new(),
            anchors,
        }
    }

    pub fn add(&mut self, mut row: Row) {
        row.anchor = self.anchors.as_ref().map(|anchors| anchors.of(&row.app)).unwrap_or_default();
        self.apps.push(row);
        let mean = |of: fn(&Anchor) -> Option<f64>| {
            geometric_mean(self.apps.iter().filter_map(|row| row.times_faster(of(&row.anchor))))
        };
        let manual = mean(|anchor| anchor.halide_manual_us);
        let anderson = mean(|anchor| anchor.anderson2021_us);
        (self.faster_than_manual, self.faster_than_anderson2021) = (manual, anderson);
    }

    pub fn print(&self, format: Format, markdown: bool, out: &mut dyn Write) -> Result<(), Error> {
        match (format.json, markdown) {
            (true, _) => report::json(out, SCHEMA, self),
            (false, true) => report::text(out, &self.markdown()),
            (false, false) => report::text(out, &self.text()),
        }
    }

    /// Writes the results and the schedules to a folder.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let mut json = Vec::new();
        report::json(&mut json, SCHEMA, self)?;
        let name = |extension: &str| format!("suite-{}.{extension}", self.mode);
        let mut files = vec![(name("json"), json), (name("md"), self.markdown().into_bytes())];
        for row in self.apps.iter().filter(|row| !row.schedule.is_empty()) {
            files.push((format!("{}.schedule", row.app), row.schedule.clone().into_bytes()));
        }
        let failed = |path: &Path, error| Error::Write { path: path.display().to_string(), error };
        fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        for (name, content) in files {
            let path = folder.join(name);
            fs::write(&path, content).map_err(|error| failed(&path, error))?;
        }
        Ok(())
    }

    /// Returns an error if an app has no valid schedule or was not reached.
    pub fn verdict(&self, count: usize) -> Result<(), Error> {
        let failed: Vec<&str> =
            self.apps.iter().filter(|row| row.status != "ok").map(|row| row.app.as_str()).collect();
        match failed.is_empty() {
            true => Ok(()),
            false => Err(Error::Suite { failed: failed.len(), count, names: failed.join(", ") }),
        }
    }

    fn text(&self) -> String {
        let rows: Vec<Vec<String>> = self.apps.iter().map(Row::cells).collect();
        format!("{}\n\n{}{}", self.head(), table::whole(&TITLES, &rows), self.tail())
    }

    fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let titles = line(TITLES.iter().map(|(title, _)| (*title).to_owned()).collect());
        let rule = line(TITLES.iter().map(|_| "---".to_owned()).collect());
        let rows: String = self.apps.iter().map(|row| line(row.cells())).collect();
        let Report { mode, command, versions, .. } = self;
        let versions = versions.join(", ");
        let head = format!("# The suite, {mode}\n\n{}, {versions}.\n\nCommand: `{command}`.", self.head());
        format!("{head}\n\n{titles}{rule}{rows}{}", self.tail())
    }

    fn head(&self) -> String {
        format!("{} on {}, {}", self.mode, self.device, self.date)
    }

    fn tail(&self) -> String {
        let mean = |name: &str, mean: Option<f64>| {
            mean.map(|mean| format!("\nGeometric mean against {name}: {mean:.2}x\n")).unwrap_or_default()
        };
        let failed = self.apps.iter().filter(|row| !row.message.is_empty());
        let failed: String = failed.map(|row| format!("\n{}: {}\n", row.app, row.message)).collect();
        let ranges = match self.apps.iter().any(|row| row.range().is_some()) {
            true => show::BRACKETS,
            false => "",
        };
        ranges.to_owned()
            + &mean("Halide's hand-written schedules", self.faster_than_manual)
            + &mean("Anderson2021", self.faster_than_anderson2021)
            + &failed
    }
}
