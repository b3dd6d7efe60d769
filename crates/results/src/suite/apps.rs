//! The report of the suite.

use serde::Deserialize;
use warploom::app::Sizes;
use warploom::codegen::export::file_stem;
use warploom::date;
use warploom::target::Device;
use warploom_report::{Table, geometric_mean};

use super::Outcome;
use super::anchors::{Anchor, Anchors};
use super::timed::{self, Timed, times, us};

report! {
    /// The result of one app.
    #[derive(Clone, Deserialize)]
    pub struct Row = "suite app" {
        pub app: String, "the app";
        pub sizes: Sizes, "its sizes by name";
        #[serde(flatten)]
        pub timed: Timed, "its schedule and times";
        pub anchor: Anchor, "the times of `--compare`";
    }

    /// The results of all apps.
    #[derive(Deserialize)]
    pub struct Report = "warploom.suite/2" {
        pub mode: String, "`one-shot`, `top5`, `autotune`, `manual` or `default`";
        pub device: String, "the GPU";
        pub versions: Vec<String>, "the program, the compiler and the driver";
        pub command: String, "the command line of the run";
        pub date: String, "its date, as in 2026-01-31";
        pub anchors_of: Option<String>, "the GPU that the times of `--compare` were measured on";
        faster_than_manual: Option<f64>, "geometric mean of the speedups over Halide's hand-written schedules";
        faster_than_anderson2021: Option<f64>, "geometric mean of the speedups over Halide's autoscheduler";
        pub apps: Vec<Row>, "the apps";
    }
}

impl Row {
    /// The line to print when the app is done.
    pub fn line(&self) -> String {
        format!("{}: {}", self.app, self.timed.brief())
    }

    fn times_faster(&self, than: Option<f64>) -> Option<f64> {
        Some(than? / self.timed.min_us?)
    }
}

/// The table of apps.
pub fn table(rows: &[Row]) -> Table {
    Table::of(rows)
        .left("app", |row| row.app.clone())
        .right("minimum us", |row| us(row.timed.min_us))
        .right("median us", |row| us(row.timed.median_us))
        .right("predicted us", |row| row.timed.predicted())
        .right("Halide manual", |row| times(row.times_faster(row.anchor.halide_manual_us)))
        .right("Anderson2021", |row| times(row.times_faster(row.anchor.anderson2021_us)))
        .right("of the floor", |row| row.timed.of_the_floor())
        .right("kernels", |row| row.timed.kernels.to_string())
        .right("registers", |row| row.timed.most_registers())
        .right("spilled bytes", |row| row.timed.spilled_bytes.to_string())
        .right("compile s", |row| format!("{:.1}", row.timed.compile_seconds))
        .right("search s", |row| format!("{:.1}", row.timed.search_seconds))
        .left("check", |row| row.timed.check().to_owned())
        .done()
}

impl Report {
    /// Results without apps yet.
    pub fn new(
        mode: String,
        device: &Device,
        versions: &[String],
        command: String,
        anchors: Option<&Anchors>,
    ) -> Report {
        Report {
            mode,
            device: device.name.clone(),
            versions: versions.to_vec(),
            command,
            date: date::today(),
            anchors_of: anchors.map(|anchors| anchors.device.clone()),
            faster_than_manual: None,
            faster_than_anderson2021: None,
            apps: Vec::new(),
        }
    }

    /// Adds an app, and compares it with its anchor.
    pub fn add(&mut self, mut row: Row, anchors: Option<&Anchors>) {
        row.anchor = anchors.map(|anchors| anchors.of(&row.app)).unwrap_or_default();
        self.apps.push(row);
        let mean = |of: fn(&Anchor) -> Option<f64>| {
            geometric_mean(self.apps.iter().filter_map(|row| row.times_faster(of(&row.anchor))))
        };
        let manual = mean(|anchor| anchor.halide_manual_us);
        let anderson = mean(|anchor| anchor.anderson2021_us);
        (self.faster_than_manual, self.faster_than_anderson2021) = (manual, anderson);
    }

    fn head(&self) -> String {
        format!("{} on {}, {}", self.mode, self.device, self.date)
    }

    /// What went wrong and what else there is to say about apps.
    pub fn notes(&self) -> Vec<String> {
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

impl Outcome for Report {
    const WHAT: &'static str = "apps";

    fn stem(&self) -> String {
        format!("suite-{}", self.mode)
    }

    fn text(&self, shown: &dyn Fn(&Table) -> String) -> String {
        format!("{}\n\n{}{}", self.head(), shown(&table(&self.apps)), self.tail())
    }

    fn markdown(&self) -> String {
        let Report { mode, command, versions, .. } = self;
        let versions = versions.join(", ");
        let head = format!("# The suite, {mode}\n\n{}, {versions}.\n\nCommand: `{command}`.", self.head());
        format!("{head}\n\n{}{}", table(&self.apps).markdown(), self.tail())
    }

    fn schedules(&self) -> Vec<(String, &str)> {
        self.apps.iter().map(|row| (file_stem(&row.app), row.timed.schedule.as_str())).collect()
    }

    fn failed(&self) -> Vec<String> {
        self.apps.iter().filter(|row| !row.timed.is_ok()).map(|row| row.app.clone()).collect()
    }
}
