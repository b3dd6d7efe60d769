//! The set of operators: which rows to run, and what an earlier run has done already.

use std::io::Write;

use warploom_apps::operators::{Operator, operators};
use warploom_results::suite::anchors::LibraryTimes;
use warploom_results::suite::operators::{Report, Row, chosen, file_stem};

use super::written::verdict;
use super::{Arguments, one};
use crate::error::Error;
use crate::names::written;
use crate::progress::{Progress, Unit};
use crate::show;
use crate::voice;

pub(super) fn suite(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let chosen = chosen(operators(), &arguments.rows)?;
    let times = arguments.compare.as_deref().map(LibraryTimes::read).transpose()?;
    let mut runner = arguments.runner()?;
    let (mode, command) = (written(&arguments.mode), show::command());
    let mut report = Report::new(mode, runner.device(), runner.versions(), command, arguments.seed);
    if let Some(folder) = &arguments.output {
        report.continue_from(folder, &chosen)?.iter().for_each(|said| voice::line(said));
    }
    if let Some(times) = &times {
        report.compare(times);
    }
    if !report.rows.is_empty() {
        // The comparison may be another one, even if no row is left to run.
        arguments.write(&report)?;
    }
    let left: Vec<&Operator> = chosen.iter().filter(|operator| !report.has(operator)).collect();
    let progress = Progress::new("operators", Unit::Things("rows"));
    progress.set_length(left.len() as u64);
    for operator in left {
        if runner.is_stopped() {
            break;
        }
        let app = operator.app();
        let Some((asked, timed)) = one(&mut runner, &app, &file_stem(&app.name), &progress)? else { break };
        let row = Row::new(operator, asked.sizes, timed);
        progress.advance(1);
        progress.say(&format!("{}: {}", row.title(), row.timed.brief()));
        report.add(row, times.as_ref());
        arguments.write(&report)?;
    }
    drop(progress);
    arguments.print(&report, out)?;
    verdict(&report, report.rows.len())
}
