//! The report of the suite.

use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use warploom::codegen::export::file_stem;
use warploom::target::Device;
use warploom_report::geometric_mean;

use super::anchors::{Anchor, Anchors};
use super::timed::{self, Timed, times, us, write_files};
use crate::date;
use crate::error::Error;
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
    #[serde(flatten)]
    pub(crate) timed: Timed,
    pub(crate) anchor: Anchor,
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
    /// The line to print when the app is done.
    pub fn line(&self) -> String {
        format!("{}: {}", self.app, self.timed.brief())
    }

    fn times_faster(&self, than: Option<f64>) -> Option<f64> {
        Some(than? / self.timed.min_us?)
    }

    /// The cells of its table row, under [`TITLES`].
    pub(crate) fn cells(&self) -> Vec<String> {
        let Row { app, timed, anchor, .. } = self;
        vec![
            app.clone(),
            us(timed.min_us),
            us(timed.median_us),
            timed.predicted(),
            times(self.times_faster(anchor.halide_manual_us)),
            times(self.times_faster(anchor.anderson2021_us)),
            timed.of_the_floor(),
            timed.kernels.to_string(),
            timed.most_registers(),
            timed.spilled_bytes.to_string(),
            format!("{:.1}", timed.compile_seconds),
            format!("{:.1}", timed.search_seconds),
            timed.check().to_owned(),
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
        Report {
            mode: mode.to_owned(),
            device: device.name.clone(),
            versions: versions.to_vec(),
            command: show::command(),
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
        report::in_form(out, (format, markdown), SCHEMA, self, [Report::text, Report::markdown])
    }

    /// Writes the results and the schedules to a folder.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let mut json = Vec::new();
        report::json(&mut json, SCHEMA, self)?;
        let name = |extension: &str| format!("suite-{}.{extension}", self.mode);
        let mut files = vec![(name("json"), json), (name("md"), self.markdown().into_bytes())];
        for row in self.apps.iter().filter(|row| !row.timed.schedule.is_empty()) {
            files
                .push((format!("{}.schedule", file_stem(&row.app)), row.timed.schedule.clone().into_bytes()));
        }
        write_files(folder, files)
    }

    /// Returns an error if an app has no valid schedule or was not reached.
    pub fn verdict(&self, count: usize) -> Result<(), Error> {
        let failed: Vec<&str> =
            self.apps.iter().filter(|row| !row.timed.is_ok()).map(|row| row.app.as_str()).collect();
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
        let rows: Vec<Vec<String>> = self.apps.iter().map(Row::cells).collect();
        let Report { mode, command, versions, .. } = self;
        let versions = versions.join(", ");
        let head = format!("# The suite, {mode}\n\n{}, {versions}.\n\nCommand: `{command}`.", self.head());
        format!("{head}\n\n{}{}", table::markdown(&TITLES, &rows), self.tail())
    }

    fn head(&self) -> String {
        format!("{} on {}, {}", self.mode, self.device, self.date)
    }

    /// What went wrong and what else there is to say about apps.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.apps.iter().flat_map(|row| row.timed.sentences(&row.app)).collect()
    }

    fn tail(&self) -> String {
        let mean = |name: &str, mean: Option<f64>| {
            mean.map(|mean| format!("\nGeometric mean against {name}: {mean:.2}x\n")).unwrap_or_default()
        };
        let notes: String = self.notes().iter().map(|note| format!("\n{note}\n")).collect();
        let ranges = timed::ranges(self.apps.iter().map(|row| &row.timed));
        ranges.to_owned()
            + &mean("Halide's hand-written schedules", self.faster_than_manual)
            + &mean("Anderson2021", self.faster_than_anderson2021)
            + &notes
    }
}
