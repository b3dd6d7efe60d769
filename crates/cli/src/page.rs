//! `warploom report`: renders results as one HTML page.

#[cfg(feature = "farm")]
mod farm;
mod nests;
mod operators;
mod source;
mod strategies;
mod suites;
mod tuned;
mod watch;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use warploom::app::App;
use warploom_report::{Fact, Page, Section};

use crate::date;
use crate::error::Error;
use crate::folder::files_of;
use crate::report::{self, Declared as _, Format};
use crate::show;
use crate::table::Table;
use crate::writable::{self, Output};
use nests::Nests;
use source::{Content, Source};

/// Write an HTML page with the results of tuning and of the suite
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  warploom report tuning.db
  warploom report tuning.db -o harris.html
  warploom report results/suite-one-shot.json results/suite-top5.json night.db -o results.html
  warploom report tuning.db --watch                            while `warploom tune` runs

A file is a database of `warploom tune` or `warploom suite --records`, or the JSON that `warploom suite` writes. The page begins
with the speedup of each problem over its default schedule. Each problem of a database has a section with predicted against
measured times, the best time over the trials, the best trials, the kernels that the winner's time goes to, what it does
otherwise than the runner-up, its loop nests, and the outcomes of the trials. Results of the suite on the same device are drawn
side by side, those of operators by family. Comparisons of strategies have the best time over the trials, with bands. A farm has
its trials a minute over time, the trials and failures of each worker, and the best times so far.

With --watch, the page is written whenever a file changes, and loads itself again in the browser, until the interrupt key is
pressed. Files that do not exist yet are waited for. With --json, each time gives one line.

The page is self-contained: it needs no other file and no network.")]
pub(crate) struct Arguments {
    /// Databases of trials, and results of the suite; or folders of *.db and *.json
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The page; an existing file is overwritten
    #[arg(short, long, alias = "out", value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// The GPU that loop nests are explained for (default: the one that the file names)
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Write the page again whenever a file changes, until the interrupt key is pressed
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    format: Format,
}

report! {
    struct Written<'a> = "warploom.report/1" {
        file: String, "the page";
        bytes: usize, "its size";
        sections: Vec<Part<'a>>, "its sections";
    }

    struct Part<'a> = "page section" {
        kind: &'static str, "`suite`, `operators`, `strategies`, `farm` or `tuned`";
        title: &'a str, "its heading";
    }
}

impl Arguments {
    pub(crate) fn outputs(&self) -> Vec<Output<'_>> {
        vec![Output::File(&self.output)]
    }
}

pub(crate) fn page(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let Arguments { files, output, device, watch, format } = arguments;
    keeps_sources(files, output)?;
    if *watch {
        return watch::watch(apps, arguments, out);
    }
    let mut nests = Nests::new(device.as_deref(), *format)?;
    let files = files_of(files, &["db", "json"])?;
    let sources = files.iter().map(|file| Source::read(file)).collect::<Result<Vec<_>, _>>()?;
    let page = made(apps, &sources, &mut nests, false)?;
    let html = page.to_html();
    writable::write(output, html.as_bytes())?;
    say(arguments, &page, html.len(), out)
}

/// The page of all that the sources hold. A live page loads itself again.
fn made(apps: &[App], sources: &[Source], nests: &mut Nests, live: bool) -> Result<Page, Error> {
    let mut sections = suites::sections(apps, sources, nests);
    sections.extend(operators::sections(sources, nests));
    sections.extend(strategies::sections(sources));
    #[cfg(feature = "farm")]
    sections.extend(farm::sections(sources));
    for source in sources {
        if let Content::Records { records, problems, .. } = &source.content {
            for problem in problems {
                let tuned = tuned::section(apps, source, records, problem, nests)?;
                sections.push(Section::Tuned(Box::new(tuned)));
            }
        }
    }
    Ok(Page { title: title(sources), facts: facts(sources), sources: table_of(sources), sections, live })
}

/// Says what was written.
fn say(arguments: &Arguments, page: &Page, bytes: usize, out: &mut dyn Write) -> Result<(), Error> {
    let file = arguments.output.display().to_string();
    let part = |section| Part { kind: Section::kind(section), title: section.title() };
    let sections: Vec<Part<'_>> = page.sections.iter().map(part).collect();
    let written = Written { file, bytes, sections };
    if arguments.format.json && arguments.watch {
        return Ok(report::json_line(out, Written::NAME, &written)?);
    }
    report::print(out, arguments.format, &written, || {
        let Written { file, sections, .. } = &written;
        format!("{file}: {}, {}\n", show::count(sections.len(), "section"), show::bytes(bytes as u64))
    })
}

/// Returns an error if the page would overwrite one of its source files.
fn keeps_sources(files: &[PathBuf], output: &Path) -> Result<(), Error> {
    let Ok(output) = fs::canonicalize(output) else { return Ok(()) };
    match files.iter().find(|file| fs::canonicalize(file).is_ok_and(|file| file == output)) {
        Some(file) => Err(Error::OverSource { file: file.display().to_string() }),
        None => Ok(()),
    }
}

fn title(sources: &[Source]) -> String {
    format!("Warploom on {}", distinct(sources.iter().flat_map(Source::devices)).join(", "))
}

fn facts(sources: &[Source]) -> Vec<Fact> {
    let today = date::today();
    vec![
        Fact::new("device", distinct(sources.iter().flat_map(Source::devices)).join(", ")),
        Fact::new("measured with", distinct(sources.iter().flat_map(Source::versions)).join(", ")),
        Fact::new("measured", days(&distinct(sources.iter().flat_map(Source::dates)))),
        Fact::new("page made", format!("{today} by warploom {}", env!("CARGO_PKG_VERSION"))),
        Fact::new("command", show::command()),
    ]
}

/// What is said of a file of results.
fn facts_of(file: &str, [date, device, command]: [&String; 3], versions: &[String]) -> Vec<Fact> {
    vec![
        Fact::new("measured", format!("{date} on {device}")),
        Fact::new("versions", versions.join(", ")),
        Fact::new("file", file),
        Fact::new("command", command),
    ]
}

/// The table of source files.
fn table_of(sources: &[Source]) -> Table {
    Table::of(sources)
        .left("file", |source| source.file.clone())
        .left("holds", |source| source.content.summary())
        .left("device", |source| distinct(source.devices()).join(", "))
        .left("measured", |source| days(&distinct(source.dates())))
        .done()
}

/// Sorted, without duplicates.
fn distinct(all: impl IntoIterator<Item = String>) -> Vec<String> {
    BTreeSet::from_iter(all).into_iter().collect()
}

/// The first and last date, as in `2026-01-30 to 2026-01-31`.
fn days(dates: &[String]) -> String {
    match (dates.iter().min(), dates.iter().max()) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (Some(day), _) => day.clone(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_a_range() {
        let days_of = |dates: &[&str]| days(&dates.iter().map(|date| (*date).to_owned()).collect::<Vec<_>>());
        assert_eq!(days_of(&["2026-02-01", "2026-01-31", "2026-02-03"]), "2026-01-31 to 2026-02-03");
        assert_eq!([days_of(&["2026-02-01"]), days_of(&[])], ["2026-02-01", ""]);
    }
}
