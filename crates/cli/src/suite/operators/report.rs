//! The report of the set of operators.

use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use warploom::lang::files;
use warploom::target::Device;
use warploom_apps::operators::{Operator, operators};

use super::families::{FAMILY_TITLES, Family, MOST, of_rows, overall};
use super::file_stem;
use super::networks::{NETWORK_TITLES, Summed, sums};
use crate::date;
use crate::error::Error;
use crate::report::{self, Format};
use crate::show;
use crate::sizes::Sizes;
use crate::suite::anchors::{LibraryTime, LibraryTimes};
use crate::suite::timed::{self, Timed, times, us, write_files};
use crate::table::{self, Align};

const SCHEMA: &str = "warploom.operators/1";

/// The result of one row.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct Row {
    pub(crate) family: String,
    pub(crate) name: String,
    pub(crate) shape: String,
    pub(crate) sizes: Sizes,
    /// A product and a sum of it count as two.
    operations: f64,
    #[serde(flatten)]
    pub(crate) timed: Timed,
    pub(crate) library: LibraryTime,
    /// The best time of a library without tensor cores, divided by ours.
    pub(crate) ratio: Option<f64>,
}

/// The results of all rows.
#[derive(Deserialize, Serialize)]
pub(crate) struct Report {
    pub(crate) mode: String,
    pub(crate) device: String,
    pub(crate) versions: Vec<String>,
    seed: u64,
    /// The command line of the run, the last one if there were several.
    pub(crate) command: String,
    /// Its date, as 2026-01-31.
    pub(crate) date: String,
    /// The device that the times of libraries were measured on.
    pub(crate) libraries_of: Option<String>,
    /// The geometric mean over families.
    pub(crate) mean_ratio: Option<f64>,
    pub(crate) rows: Vec<Row>,
    pub(crate) families: Vec<Family>,
    pub(crate) networks: Vec<Summed>,
}

pub(crate) const TITLES: [(&str, Align); 14] = [
    ("row", Align::Left),
    ("minimum us", Align::Right),
    ("median us", Align::Right),
    ("predicted us", Align::Right),
    ("TFLOPS", Align::Right),
    ("library us", Align::Right),
    ("ratio", Align::Right),
    ("TF32 us", Align::Right),
    ("of the floor", Align::Right),
    ("kernels", Align::Right),
    ("registers", Align::Right),
    ("spilled bytes", Align::Right),
    ("search s", Align::Right),
    ("check", Align::Left),
];

impl Row {
    pub fn new(operator: &Operator, sizes: Sizes, mut timed: Timed) -> Row {
        if !operator.reads_all() {
            // It is computed from the whole inputs.
            timed.floor_us = None;
        }
        Row {
            family: operator.family.to_owned(),
            name: operator.name.clone(),
            shape: operator.shape.clone(),
            sizes,
            operations: operator.operations(),
            timed,
            library: LibraryTime::default(),
            ratio: None,
        }
    }

    /// Name and shape.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.name, self.shape)
    }

    pub fn is_of(&self, operator: &Operator) -> bool {
        self.name == operator.name && self.shape == operator.shape
    }

    fn compare(&mut self, library: &LibraryTimes) {
        self.library = library.of(&self.name, &self.shape);
        self.ratio = self.library.best_us().zip(self.timed.min_us).map(|(other, own)| other / own);
    }

    /// The cells of its table row, under [`TITLES`].
    pub(crate) fn cells(&self) -> Vec<String> {
        let Row { timed, library, .. } = self;
        let tflops = timed.min_us.filter(|_| self.operations > 0.0).map(|us| self.operations / us / 1e6);
        vec![
            self.title(),
            us(timed.min_us),
            us(timed.median_us),
            timed.predicted(),
            tflops.map_or("-".to_owned(), |rate| format!("{rate:.2}")),
            us(library.best_us()),
            times(self.ratio),
            us(library.tf32_us),
            timed.of_the_floor(),
            timed.kernels.to_string(),
            timed.most_registers(),
            timed.spilled_bytes.to_string(),
            format!("{:.1}", timed.search_seconds),
            timed.check().to_owned(),
        ]
    }
}

impl Report {
    pub fn new(mode: &str, device: &Device, versions: &[String], seed: u64) -> Report {
        Report {
            mode: mode.to_owned(),
            device: device.name.clone(),
            versions: versions.to_vec(),
            seed,
            command: show::command(),
            date: date::today(),
            libraries_of: None,
            mean_ratio: None,
            rows: Vec::new(),
            families: Vec::new(),
            networks: Vec::new(),
        }
    }

    pub fn file_name(mode: &str, extension: &str) -> String {
        format!("operators-{mode}.{extension}")
    }

    /// The results that are in a folder; `None` if there are none.
    pub fn read(folder: &Path, mode: &str) -> Result<Option<Report>, Error> {
        let path = folder.join(Report::file_name(mode, "json"));
        if !path.exists() {
            return Ok(None);
        }
        let file = path.display().to_string();
        let bytes = files::read(&path, files::TEXT)?;
        let report = Report::parse(&bytes).map_err(|error| Error::Continue { file, error })?;
        Ok(Some(report))
    }

    /// Results from their JSON; the error says why it is none.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Report, String> {
        #[derive(Deserialize)]
        struct Form {
            schema: String,
        }
        let form: Form = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if form.schema != SCHEMA {
            return Err(format!("its format is `{}`, and this program reads `{SCHEMA}`", form.schema));
        }
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }

    /// Whether its rows could be rows of another report.
    pub fn fits(&self, other: &Report) -> bool {
        (&self.device, &self.versions, self.seed) == (&other.device, &other.versions, other.seed)
    }

    /// Takes over the rows of an earlier report, except some.
    pub fn take(&mut self, earlier: Report, except: impl Fn(&Row) -> bool) {
        self.libraries_of = earlier.libraries_of;
        self.rows = earlier.rows.into_iter().filter(|row| !except(row)).collect();
        self.conclude();
    }

    pub fn has(&self, operator: &Operator) -> bool {
        self.rows.iter().any(|row| row.is_of(operator))
    }

    /// Compares the rows so far with times of libraries.
    pub fn compare(&mut self, library: &LibraryTimes) {
        self.libraries_of = Some(library.device.clone());
        self.rows.iter_mut().for_each(|row| row.compare(library));
        self.conclude();
    }

    /// Adds a row, in the order of the set.
    pub fn add(&mut self, mut row: Row, library: Option<&LibraryTimes>) {
        if let Some(library) = library {
            row.compare(library);
        }
        self.rows.push(row);
        let set = operators();
        self.rows.sort_by_key(|row| set.iter().position(|operator| row.is_of(operator)));
        self.conclude();
    }

    fn conclude(&mut self) {
        self.families = of_rows(&self.rows);
        self.mean_ratio = overall(&self.families);
        self.networks = sums(&self.rows);
    }

    pub fn print(&self, format: Format, markdown: bool, out: &mut dyn Write) -> Result<(), Error> {
        report::in_form(out, (format, markdown), SCHEMA, self, [Report::text, Report::markdown])
    }

    /// Writes the results and the schedules to a folder.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let mut json = Vec::new();
        report::json(&mut json, SCHEMA, self)?;
        let name = |extension: &str| Report::file_name(&self.mode, extension);
        let mut files = vec![(name("json"), json), (name("md"), self.markdown().into_bytes())];
        for row in self.rows.iter().filter(|row| !row.timed.schedule.is_empty()) {
            let schedule = row.timed.schedule.clone().into_bytes();
            files.push((format!("{}.schedule", file_stem(&row.title())), schedule));
        }
        write_files(folder, files)
    }

    /// Returns an error if a row has no valid schedule.
    pub fn verdict(&self) -> Result<(), Error> {
        let failed: Vec<String> = self.rows.iter().filter(|row| !row.timed.is_ok()).map(Row::title).collect();
        match failed.is_empty() {
            true => Ok(()),
            false => Err(Error::Operators {
                failed: failed.len(),
                count: self.rows.len(),
                names: failed.join(", "),
            }),
        }
    }

    fn text(&self) -> String {
        let [rows, families, networks] = self.tables(table::whole);
        let Report { mode, device, date, .. } = self;
        format!("{mode} on {device}, {date}\n\n{rows}\n{families}\n{networks}{}", self.tail())
    }

    fn markdown(&self) -> String {
        let [rows, families, networks] = self.tables(table::markdown);
        let Report { mode, command, versions, device, date, .. } = self;
        let versions = versions.join(", ");
        format!(
            "# Operators, {mode}\n\n{mode} on {device}, {date}, {versions}.\n\nCommand: `{command}`.\n\n{families}\n\
             {networks}{}\n{rows}",
            self.tail()
        )
    }

    /// The tables of rows, families and networks.
    fn tables(&self, table: impl Fn(&[(&'static str, Align)], &[Vec<String>]) -> String) -> [String; 3] {
        let rows: Vec<Vec<String>> = self.rows.iter().map(Row::cells).collect();
        let families: Vec<Vec<String>> = self.families.iter().map(Family::cells).collect();
        let networks: Vec<Vec<String>> = self.networks.iter().map(Summed::cells).collect();
        [table(&TITLES, &rows), table(&FAMILY_TITLES, &families), table(&NETWORK_TITLES, &networks)]
    }

    fn tail(&self) -> String {
        let notes: String = self.notes().iter().map(|note| format!("\n{note}\n")).collect();
        timed::ranges(self.rows.iter().map(|row| &row.timed)).to_owned() + &notes
    }

    /// What to say below the tables.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some((mean, of)) = self.mean_ratio.zip(self.libraries_of.as_ref()) {
            notes.push(format!(
                "Geometric mean over families: {mean:.2}x the speed of libraries on {of}, without tensor cores. In the mean of \
                 a family, a ratio counts as at most {MOST} and at least 1/{MOST}. FlexTensor reports 1.83x over cuDNN on a \
                 V100."
            ));
        }
        let apart = self.rows.iter().filter(|row| row.ratio.is_some());
        notes.extend(apart.filter_map(|row| {
            let why = super::families::apart(&row.name)?;
            Some(format!("{} is in no mean: {why}.", row.title()))
        }));
        notes.extend(self.rows.iter().flat_map(|row| row.timed.sentences(&row.title())));
        notes
    }
}
