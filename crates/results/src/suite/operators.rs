//! The results of the set of operators.

use std::path::Path;

use serde::Deserialize;
use warploom::app::Sizes;
use warploom::date;
use warploom::lang::files;
use warploom::target::Device;
use warploom_apps::operators::{Operator, operators};
use warploom_report::{Table, dash};

use super::Outcome;
use super::anchors::{LibraryTime, LibraryTimes};
use super::families::{self, Family, MOST, family_table, of_rows, overall};
use super::networks::{Summed, network_table, sums};
use super::timed::{self, Timed, times, us};
use crate::error::ResultsError;
use crate::report::Declared as _;

report! {
    /// The result of one row.
    #[derive(Clone, Deserialize)]
    pub struct Row = "operator" {
        pub family: String, "the family that it is averaged in";
        pub name: String, "the name";
        pub shape: String, "the sizes as a text; name and shape together are unique";
        pub sizes: Sizes, "the sizes of its definition by name";
        operations: f64, "arithmetic operations; a product and a sum of it count as two";
        #[serde(flatten)]
        pub timed: Timed, "its schedule and times; `floor_us` is `null` if only parts of the inputs are read";
        pub library: LibraryTime, "the times of `--compare`";
        pub ratio: Option<f64>, "the better of `fp32_us` and `compiled_us`, divided by `min_us`";
    }

    /// The results of all rows.
    #[derive(Deserialize)]
    pub struct Report = "warploom.operators/1" {
        pub mode: String, "`one-shot`, `top5`, `autotune`, `manual` or `default`";
        pub device: String, "the GPU";
        pub versions: Vec<String>, "the program, the compiler and the driver";
        seed: u64, "the seed of all random choices";
        pub command: String, "the command line of the run, the last one if there were several";
        pub date: String, "its date, as in 2026-01-31";
        pub libraries_of: Option<String>, "the GPU that the times of `--compare` were measured on";
        pub mean_ratio: Option<f64>, "geometric mean over the families";
        pub rows: Vec<Row>, "the rows, in the order of the set";
        pub families: Vec<Family>, "the families that have rows";
        pub networks: Vec<Summed>, "whole networks";
    }
}

impl Row {
    /// The result of an operator.
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
    pub fn title(&self) -> String {
        format!("{} {}", self.name, self.shape)
    }

    /// Whether it is the row of an operator.
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
pub fn table(rows: &[Row]) -> Table {
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
    /// Results without rows yet.
    pub fn new(mode: String, device: &Device, versions: &[String], command: String, seed: u64) -> Report {
        Report {
            mode,
            device: device.name.clone(),
            versions: versions.to_vec(),
            seed,
            command,
            date: date::today(),
            libraries_of: None,
            mean_ratio: None,
            rows: Vec::new(),
            families: Vec::new(),
            networks: Vec::new(),
        }
    }

    /// The name of the file of results of a mode.
    fn file_name(mode: &str) -> String {
        format!("operators-{mode}.json")
    }

    /// The results that are in a folder; `None` if there are none.
    fn read(folder: &Path, mode: &str) -> Result<Option<Report>, ResultsError> {
        let path = folder.join(Report::file_name(mode));
        if !path.exists() {
            return Ok(None);
        }
        let file = path.display().to_string();
        let bytes = files::read(&path, files::TEXT)?;
        let report = Report::parse(&bytes).map_err(|error| ResultsError::Continue { file, error })?;
        Ok(Some(report))
    }

    /// Results from their JSON.
    ///
    /// # Errors
    /// Why it is none, in words.
    pub fn parse(bytes: &[u8]) -> Result<Report, String> {
        #[derive(Deserialize)]
        struct Form {
            schema: String,
        }
        let form: Form = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if form.schema != Report::NAME {
            return Err(format!(
                "its format is `{}`, and this program reads `{}`",
                form.schema,
                Report::NAME
            ));
        }
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }

    /// Takes over what an earlier run has left in the folder: valid results of the rows that are chosen, and all of others.
    /// Returns what there is to say of that.
    ///
    /// # Errors
    /// If the earlier results cannot be read.
    pub fn continue_from(
        &mut self,
        folder: &Path,
        chosen: &[Operator],
    ) -> Result<Option<String>, ResultsError> {
        let Some(earlier) = Report::read(folder, &self.mode)? else { return Ok(None) };
        let file = folder.join(Report::file_name(&self.mode));
        let file = file.display();
        if !earlier.fits(self) {
            return Ok(Some(format!(
                "{file} has results of another device, version or seed: every row is run again"
            )));
        }
        self.take(earlier, |row| !row.timed.is_ok() && chosen.iter().any(|operator| row.is_of(operator)));
        let (kept, of) = (chosen.iter().filter(|operator| self.has(operator)).count(), chosen.len());
        Ok((kept > 0).then(|| format!("{file} has {kept} of {of} rows already: they are not run again")))
    }

    /// Whether its rows could be rows of another report.
    fn fits(&self, other: &Report) -> bool {
        (&self.device, &self.versions, self.seed) == (&other.device, &other.versions, other.seed)
    }

    /// Takes over the rows of an earlier report, except some.
    fn take(&mut self, earlier: Report, except: impl Fn(&Row) -> bool) {
        self.libraries_of = earlier.libraries_of;
        self.rows = earlier.rows.into_iter().filter(|row| !except(row)).collect();
        self.conclude();
    }

    /// Whether there is a row of an operator.
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

    /// The tables of rows, families and networks.
    pub fn tables(&self) -> [Table; 3] {
        [table(&self.rows), family_table(&self.families), network_table(&self.networks)]
    }

    fn tail(&self) -> String {
        let notes: String = self.notes().iter().map(|note| format!("\n{note}\n")).collect();
        timed::ranges(self.rows.iter().map(|row| &row.timed)).to_owned() + &notes
    }

    /// What to say below the tables.
    pub fn notes(&self) -> Vec<String> {
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
            let why = families::apart(&row.name)?;
            Some(format!("{} is in no mean: {why}.", row.title()))
        }));
        notes.extend(self.rows.iter().flat_map(|row| row.timed.sentences(&row.title())));
        notes
    }
}

impl Outcome for Report {
    const WHAT: &'static str = "operators";

    fn stem(&self) -> String {
        format!("operators-{}", self.mode)
    }

    fn text(&self, shown: &dyn Fn(&Table) -> String) -> String {
        let [rows, families, networks] = self.tables().map(|table| shown(&table));
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

    fn schedules(&self) -> Vec<(String, &str)> {
        self.rows.iter().map(|row| (file_stem(&row.title()), row.timed.schedule.as_str())).collect()
    }

    fn failed(&self) -> Vec<String> {
        self.rows.iter().filter(|row| !row.timed.is_ok()).map(Row::title).collect()
    }
}

/// The rows that match one of the patterns; all without patterns.
///
/// # Errors
/// If a pattern fits no row.
pub fn chosen(all: Vec<Operator>, patterns: &[String]) -> Result<Vec<Operator>, ResultsError> {
    if patterns.is_empty() {
        return Ok(all);
    }
    let fits = |pattern: &str, operator: &Operator| {
        let Operator { family, name, shape, .. } = operator;
        [name.clone(), (*family).to_owned(), format!("{name} {shape}")]
            .iter()
            .any(|text| matches(&pattern.to_lowercase(), &text.to_lowercase()))
    };
    if let Some(pattern) = patterns.iter().find(|pattern| !all.iter().any(|row| fits(pattern, row))) {
        let mut families: Vec<&str> = all.iter().map(|operator| operator.family).collect();
        families.dedup();
        return Err(ResultsError::NoRows { pattern: pattern.clone(), families: families.join(", ") });
    }
    Ok(all.into_iter().filter(|row| patterns.iter().any(|pattern| fits(pattern, row))).collect())
}

/// Whether a text is what a pattern says, in which `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The name of a row in names of files: what is neither a letter nor a digit becomes a hyphen.
pub fn file_stem(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn patterns_match_names_families_and_shapes() {
        let names = |patterns: &[&str]| -> Result<Vec<String>, ResultsError> {
            let patterns: Vec<String> = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
            Ok(chosen(operators(), &patterns)?.into_iter().map(|row| row.name + " " + &row.shape).collect())
        };
        assert_eq!(names(&["gmm 32*"]).unwrap(), ["GMM 32x32x32"]);
        assert_eq!(names(&["mm"]).unwrap().len(), 3, "a family");
        assert_eq!(names(&["c2d c1"]).unwrap().len(), 1, "a name, and not the start of others");
        assert_eq!(names(&["MLP?", "MLP1"]).err().unwrap().to_string().matches("MLP?").count(), 1);
        assert_eq!(names(&["*7x7*", "GRP C15*"]).unwrap().len(), names(&["*7x7*"]).unwrap().len());
        assert_eq!(names(&[]).unwrap().len(), operators().len());
        let unknown = names(&["GMM", "nothing"]).unwrap_err().to_string();
        assert!(unknown.contains("`nothing`") && unknown.contains("GMM, MM, tmm, GMV"), "{unknown}");
    }

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text) in
            [("a*c", "abc"), ("a*c", "ac"), ("*", ""), ("*b*", "abc"), ("a", "a"), ("a**c", "abc")]
        {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a*c", "ab"), ("a", "ab"), ("aba*ba", "aba"), ("", "a"), ("*x*", "abc")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn rows_have_files_of_their_own() {
        let all = operators();
        let stems: BTreeSet<String> =
            all.iter().map(|row| file_stem(&format!("{} {}", row.name, row.shape))).collect();
        assert_eq!(stems.len(), all.len());
        assert_eq!(file_stem("BMM1 960x(128x128x64)"), "BMM1-960x-128x128x64");
    }
}
