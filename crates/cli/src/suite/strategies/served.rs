//! Compares strategies on recorded landscapes: no GPU is needed, and every run gives the same.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::slice;

use warploom::date;
use warploom::tune::compare::Curve;
use warploom::tune::explore::MODEL;
use warploom::tune::landscape::Landscape;

use super::super::Arguments;
use super::super::written::verdict;
use super::{Report, Wanted};
use crate::error::{Error, Kind};
use crate::folder::files_of;
use crate::progress::{Progress, Unit};
use crate::show;
use crate::tune::Start;

pub(super) fn suite(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let comparing = &arguments.comparing;
    let mut strategies = comparing.contenders();
    strategies.retain(|contender| contender.strategy != MODEL);
    let is_model = |wanted: &Wanted| matches!(wanted, Wanted::One(contender) if contender.strategy == MODEL);
    if comparing.strategies.iter().any(is_model) {
        let text = format!(
            "the strategy `{MODEL}` is not bound to a template, so it cannot run on landscapes; leave it out"
        );
        return Err(Error::Tune(text, Kind::Usage));
    }
    let landscapes = read_all(&files_of(&comparing.landscapes, &["landscape"])?)?;
    let trials = comparing.trials.max(1);
    let seeds = comparing.seeds(arguments.seed);
    let Some((_, first)) = landscapes.first() else { return Ok(()) };
    let last = landscapes.iter().map(|(_, landscape)| landscape.source.measured.1).max().unwrap_or_default();
    let mut report =
        Report::new(&first.source.device, &first.source.versions, show::command(), date::of(last), trials);
    let progress = Progress::new("strategies", Unit::Things("runs"));
    progress.set_length((landscapes.len() * strategies.len() * seeds.len()) as u64);
    for (name, landscape) in &landscapes {
        progress.set_message(name.clone());
        if let Some(best) = landscape.times_us().first() {
            report.set_optimum(name, *best);
        }
        let start = Start::new(&arguments.first, &landscape.source.device)?;
        for contender in &strategies {
            let played = landscape.compare(slice::from_ref(contender), &seeds, trials, &*start.model)?;
            for (seed, played) in seeds.iter().zip(played) {
                report.add(name, &contender.to_string(), Curve::new(*seed, &played.times_us));
            }
            progress.advance(seeds.len() as u64);
        }
        arguments.write(&report)?;
    }
    drop(progress);
    arguments.print(&report, out)?;
    verdict(&report, report.comparison.subjects.len())
}

/// The landscapes with their names, which differ. All are from one device.
fn read_all(files: &[PathBuf]) -> Result<Vec<(String, Landscape)>, Error> {
    let mut all: Vec<(String, Landscape)> = Vec::new();
    for file in files {
        let (name, landscape) = (name(file), read(file)?);
        let wrong = match all.first() {
            _ if all.iter().any(|(other, _)| *other == name) => {
                "has the name of an earlier landscape; rename it"
            }
            Some((_, first)) if first.source.device.name != landscape.source.device.name => {
                "was recorded on another device than the first; compare them apart"
            }
            _ => {
                all.push((name, landscape));
                continue;
            }
        };
        return Err(Error::Tune(format!("{} {wrong}", file.display()), Kind::Usage));
    }
    Ok(all)
}

/// A landscape all of whose points were measured.
fn read(file: &PathBuf) -> Result<Landscape, Error> {
    let landscape = Landscape::read(file)?;
    match landscape.missing {
        0 => Ok(landscape),
        missing => {
            let text = format!(
                "{}: {missing} points were not measured yet; run `warploom landscape record` again to add them",
                file.display()
            );
            Err(Error::Tune(text, Kind::File))
        }
    }
}

/// The name of the file without its ending.
fn name(file: &Path) -> String {
    file.file_stem().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}
