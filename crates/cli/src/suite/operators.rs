//! The set of operators: which rows to run, and what an earlier run has done already.

mod families;
mod networks;
mod report;

use std::io::Write;
use std::path::Path;

use warploom::app::App;
use warploom_apps::operators::{Operator, operators};

use super::Arguments;
use super::anchors::LibraryTimes;
use super::runner::Runner;
use crate::error::Error;
use crate::names::written;
use crate::progress::{Progress, Unit};
use crate::voice;
use report::Report;

pub(crate) use families::{Family, is_apart};
pub(crate) use report::{Report as Results, Row};

pub(super) fn suite(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let chosen = chosen(operators(), &arguments.rows)?;
    let times = arguments.compare.as_deref().map(LibraryTimes::read).transpose()?;
    let mut runner = Runner::open(arguments)?;
    let mut report =
        Report::new(written(&arguments.mode), runner.device(), runner.versions(), arguments.seed);
    if let Some(folder) = &arguments.output {
        continue_from(&mut report, folder, &chosen)?;
    }
    if let Some(times) = &times {
        report.compare(times);
    }
    if let Some(folder) = arguments.output.as_deref().filter(|_| !report.rows.is_empty()) {
        // The comparison may be another one, even if no row is left to run.
        report.write(folder)?;
    }
    let left: Vec<&Operator> = chosen.iter().filter(|operator| !report.has(operator)).collect();
    let progress = Progress::new("operators", Unit::Things("rows"));
    progress.set_length(left.len() as u64);
    for operator in left {
        if runner.is_stopped() {
            break;
        }
        let app = operator.app();
        let Some((asked, timed)) = runner.one(&app, &file_stem(&app.name), &progress)? else { break };
        let row = Row::new(operator, asked.sizes, timed);
        progress.advance(1);
        progress.say(&format!("{}: {}", row.title(), row.timed.brief()));
        report.add(row, times.as_ref());
        // Written after every row, so that no result is lost however the run ends.
        if let Some(folder) = &arguments.output {
            report.write(folder)?;
        }
    }
    drop(progress);
    report.print(arguments.format, arguments.markdown, out)?;
    report.verdict()
}

/// The operators that match one of the patterns, as apps.
pub(super) fn apps(patterns: &[String]) -> Result<Vec<App>, Error> {
    Ok(chosen(operators(), patterns)?.iter().map(Operator::app).collect())
}

/// The operators that match one of the patterns.
pub(crate) fn chosen_rows(patterns: &[String]) -> Result<Vec<Operator>, Error> {
    chosen(operators(), patterns)
}

/// Takes over what an earlier run has left in the folder: valid results of the rows that are chosen, and all of others.
fn continue_from(report: &mut Report, folder: &Path, chosen: &[Operator]) -> Result<(), Error> {
    let Some(earlier) = Report::read(folder, &report.mode)? else { return Ok(()) };
    let file = folder.join(Report::file_name(&report.mode, "json"));
    let file = file.display();
    if !earlier.fits(report) {
        voice::line(&format!(
            "{file} has results of another device, version or seed: every row is run again"
        ));
        return Ok(());
    }
    report.take(earlier, |row| !row.timed.is_ok() && chosen.iter().any(|operator| row.is_of(operator)));
    let kept = chosen.iter().filter(|operator| report.has(operator)).count();
    if kept > 0 {
        voice::line(&format!("{file} has {kept} of {} rows already: they are not run again", chosen.len()));
    }
    Ok(())
}

/// The rows that match one of the patterns; all without patterns.
fn chosen(all: Vec<Operator>, patterns: &[String]) -> Result<Vec<Operator>, Error> {
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
        return Err(Error::NoRows { pattern: pattern.clone(), families: families.join(", ") });
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
fn file_stem(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn patterns_match_names_families_and_shapes() {
        let names = |patterns: &[&str]| -> Result<Vec<String>, Error> {
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
