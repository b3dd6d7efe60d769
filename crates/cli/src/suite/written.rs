//! Results of suites: printed, written to a folder, and judged.

use std::io::Write;

use warploom_results::suite::Outcome;

use super::Arguments;
use crate::error::Error;
use crate::report;
use crate::table::PlainText as _;
use crate::writable::{make_folder, write};

impl Arguments {
    /// Prints results as text, Markdown or JSON.
    pub(super) fn print<T: Outcome>(&self, results: &T, out: &mut dyn Write) -> Result<(), Error> {
        match self.markdown {
            true => report::verbatim(out, &results.markdown()),
            false => report::print(out, self.format, results, || results.text(&|table| table.text())),
        }
    }

    /// Writes results to the folder of `-o`, which is created if it is missing: as JSON, as Markdown, and the schedules that
    /// there are, each under its name. Called after every result, so that none is lost however the run ends.
    pub(super) fn write<T: Outcome>(&self, results: &T) -> Result<(), Error> {
        let Some(folder) = &self.output else { return Ok(()) };
        let mut json = Vec::new();
        report::json(&mut json, T::NAME, results)?;
        make_folder(folder)?;
        let stem = results.stem();
        write(&folder.join(format!("{stem}.json")), &json)?;
        write(&folder.join(format!("{stem}.md")), results.markdown().as_bytes())?;
        for (name, schedule) in results.schedules().into_iter().filter(|(_, schedule)| !schedule.is_empty()) {
            write(&folder.join(format!("{name}.schedule")), schedule.as_bytes())?;
        }
        Ok(())
    }
}

/// An error if some of so many pipelines have no valid schedule.
pub(super) fn verdict<T: Outcome>(results: &T, count: usize) -> Result<(), Error> {
    match results.failed() {
        failed if failed.is_empty() => Ok(()),
        failed => {
            let (names, failed) = (failed.join(", "), failed.len());
            Err(Error::Suite { failed, count, what: T::WHAT, names })
        }
    }
}
