//! `warploom report`: renders results as one HTML page.

mod watch;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use warploom::app::App;
use warploom_report::{Page, Section};
use warploom_results::page::{Nests, Source, page as made};

use crate::device;
use crate::error::Error;
use crate::folder::files_of;
use crate::report::{self, Declared as _, Format};
use crate::show;
use crate::writable::{self, Output};

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

    /// What explains loop nests.
    fn nests(&self) -> Result<Nests, Error> {
        let find = |name: &String| device::find(name, self.format);
        Ok(Nests::new(self.device.as_ref().map(find).transpose()?))
    }
}

pub(crate) fn page(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let Arguments { files, output, watch, .. } = arguments;
    keeps_sources(files, output)?;
    if *watch {
        return watch::watch(apps, arguments, out);
    }
    let mut nests = arguments.nests()?;
    let files = files_of(files, &["db", "json"])?;
    let sources = files.iter().map(|file| Source::read(file)).collect::<Result<Vec<_>, _>>()?;
    let page = made(apps, &sources, &mut nests, show::command(), false)?;
    let html = page.to_html();
    writable::write(output, html.as_bytes())?;
    say(arguments, &page, html.len(), out)
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
