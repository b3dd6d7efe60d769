//! The report of the set of operators.

use std::io::Write;
use std::path::Path;

use serde::Deserialize;
use warploom::lang::files;
use warploom::target::Device;
use warploom_apps::operators::{Operator, operators};

use super::families::{Family, MOST, family_table, of_rows, overall};
use super::file_stem;
use super::networks::{Summed, network_table, sums};
use crate::date;
use crate::error::Error;
use crate::report::{self, Declared as _, Format};
use crate::show;
use crate::suite::anchors::{LibraryTime, LibraryTimes};
use crate::suite::timed::{self, Timed, times, us, verdict, write_results};
use crate::table::{PlainText as _, Table, dash};
use warploom::app::Sizes;

const SCHEMA: &str = Report::NAME;

report! {
    /// The result of one row.
    #[derive(Clone, Deserialize)]
    pub(crate) struct Row = "operator" {
        pub(crate) family: String, "the family that it is averaged in";
        pub(crate) name: String, "the name";
        pub(crate) shape: String, "the sizes as a text; name and shape together are unique";
        pub(crate) sizes: Sizes, "the sizes of its definition by name";
        operations: f64, "arithmetic operations; a product and a sum of it count as two";
        #[serde(flatten)]
        pub(crate) timed: Timed, "its schedule and times; `floor_us` is `null` if only parts of the inputs are read";
        pub(crate) library: LibraryTime, "the times of `--compare`";
        pub(crate) ratio: Option<f64>, "the better of `fp32_us` and `compiled_us`, divided by `min_us`";
    }

    /// The results of all rows.
    #[derive(Deserialize)]
    pub(crate) struct Report = "warploom.operators/1" {
        pub(crate) mode: String, "`one-shot`, `top5`, `autotune`, `manual` or `default`";
        pub(crate) device: String, "the GPU";
        pub(crate) versions: Vec<String>, "the program, the compiler and the driver";
        seed: u64, "the seed of all random choices";
        pub(crate) command: String, "the command line of the run, the last one if there were several";
        pub(crate) date: String, "its date, as in 2026-01-31";
        pub(crate) libraries_of: Option<String>, "the GPU that the times of `--compare` were measured on";
        pub(crate) mean_ratio: Option<f64>, "geometric mean over the families";
        pub(crate) rows: Vec<Row>, "the rows, in the order of the set";
        pub(crate) families: Vec<Family>, "the families that have rows";
        pub(crate) networks: Vec<Summed>, "whole networks";
    }
}

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

    /// Billions of operations in a thousandth of a second.
    fn tflops(&self) -> Option<f64> {
        self.timed.min_us.filter(|_| self.operations > 0.0).map(|us| self.operations / us / 1e6)
    }
}

/// The table of rows.
pub(crate) fn table(rows: &[Row]) -> Table {
    Table::of(rows)
        .left("row", Row::title)
        .right("minimum us", |row| us(row.timed.min_us))
        .right("median us", |row| us(row.timed.median_us))
        .right("predicted us", |row| row.timed.predicted())
        .right("TFLOPS", |row| dash(row.tflops().map(|rate| format!("{rate:.2}"))))
        .right("library us", |row| us(row.library.best_us()))
        .right("ratio", |row| times(row.ratio))
        .right("TF32 us", |row| us(row.library.tf32_us))
        .right("of the floor", |row| row.timed.of_the_floor())
        .right("kernels", |row| row.timed.kernels.to_string())
        .right("registers", |row| row.timed.most_registers())
        .right("spilled bytes", |row| row.timed.spilled_bytes.to_string())
        .right("search s", |row| format!("{:.1}", row.timed.search_seconds))
        .left("check", |row| row.timed.check().to_owned())
        .done()
}

impl Report {
    pub fn new(mode: String, device: &Device, versions: &[String], seed: u64) -> Report {
        Report {
            mode,
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
        report::in_form(out, (format, markdown), self, [Report::text, Report::markdown])
    }

    /// Writes the results and the schedules to a folder.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let schedules = self.rows.iter().map(|row| (file_stem(&row.title()), &row.timed));
        write_results(folder, &format!("operators-{}", self.mode), (self, self.markdown()), schedules)
    }

    /// Returns an error if a row has no valid schedule.
    pub fn verdict(&self) -> Result<(), Error> {
        let failed = self.rows.iter().filter(|row| !row.timed.is_ok()).map(Row::title);
        verdict("operators", self.rows.len(), &failed.collect::<Vec<_>>())
    }

    fn text(&self) -> String {
        let [rows, families, networks] = self.tables().map(|table| table.text());
        let Report { mode, device, date, .. } = self;
        format!("{mode} on {device}, {date}\n\n{rows}\n{families}\n{networks}{}", self.tail())
    }

    fn markdown(&self) -> String {
        let [rows, families, networks] = self.tables().map(|table| table.markdown());
        let Report { mode, command, versions, device, date, .. } = self;
        let versions = versions.join(", ");
        format!(
            "# Operators, {mode}\n\n{mode} on {device}, {date}, {versions}.\n\nCommand: `{command}`.\n\n{families}\n\
             {networks}{}\n{rows}",
            self.tail()
        )
    }

    /// The tables of rows, families and networks.
    pub(crate) fn tables(&self) -> [Table; 3] {
        [table(&self.rows), family_table(&self.families), network_table(&self.networks)]
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
