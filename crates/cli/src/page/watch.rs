//! `warploom report --watch`: the page follows the files that it is made of.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use warploom::app::App;
use warploom::tune::records::Records;
use warploom_results::ResultsError;
use warploom_results::page::{Nests, Source};

use super::{Arguments, made, say};
use crate::error::Error;
use crate::show;
use crate::tune::stop_watching;
use crate::voice;
use crate::writable::write;

/// How often files are looked at, and how often the interrupt key is.
const LOOK: Duration = Duration::from_secs(1);
const LISTEN: Duration = Duration::from_millis(50);

/// The length of a file and its time of change; `None` if there is no file.
type Stamp = Option<(u64, Option<SystemTime>)>;

/// Writes the page whenever one of its sources changes, until the interrupt key is pressed.
pub(super) fn watch(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let stop = stop_watching();
    let mut watch = Watch {
        apps,
        arguments,
        nests: arguments.nests()?,
        seen: Vec::new(),
        said: BTreeSet::new(),
        html: None,
    };
    while !stop.load(Ordering::Relaxed) {
        watch.look(out)?;
        let mut waited = Duration::ZERO;
        while waited < LOOK && !stop.load(Ordering::Relaxed) {
            sleep(LISTEN);
            waited += LISTEN;
        }
    }
    watch.end()
}

struct Watch<'a> {
    apps: &'a [App],
    arguments: &'a Arguments,
    nests: Nests,
    /// What the files looked like when they were last read.
    seen: Vec<Stamp>,
    /// What was said before and need not be said again.
    said: BTreeSet<String>,
    /// The page as it was last written.
    html: Option<String>,
}

impl Watch<'_> {
    /// Writes the page if a file has changed in a way that the page shows.
    fn look(&mut self, out: &mut dyn Write) -> Result<(), Error> {
        let now: Vec<Stamp> = self.arguments.files.iter().flat_map(|file| stamps(file)).collect();
        if now == self.seen {
            return Ok(());
        }
        self.seen = now;
        let sources = self.sources()?;
        if sources.is_empty() {
            return Ok(());
        }
        let page = match made(self.apps, &sources, &mut self.nests, show::command(), true) {
            Ok(page) => page,
            Err(error) if self.html.is_some() => {
                self.note(&error.to_string());
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let html = page.to_html();
        if self.html.as_ref() != Some(&html) {
            write(&self.arguments.output, html.as_bytes())?;
            say(self.arguments, &page, html.len(), out)?;
            self.html = Some(html);
        }
        Ok(())
    }

    /// The files that hold results by now. Once there is a page, a file that cannot be read is one that is just being
    /// written.
    fn sources(&mut self) -> Result<Vec<Source>, Error> {
        let mut sources = Vec::new();
        for file in &self.arguments.files {
            if !has_content(file) {
                self.wait_for(file);
                continue;
            }
            match Source::read(file) {
                Ok(source) => sources.push(source),
                Err(ResultsError::NothingToReport { .. }) => self.wait_for(file),
                Err(error) if self.html.is_some() => self.note(&error.to_string()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(sources)
    }

    fn wait_for(&mut self, file: &Path) {
        let line = format!("waiting for results in {}", file.display());
        if self.said.insert(line.clone()) {
            voice::line(&line);
        }
    }

    fn note(&mut self, note: &str) {
        if self.said.insert(note.to_owned()) {
            voice::note(note);
        }
    }

    /// Writes the page a last time, so that it no longer loads itself again.
    fn end(mut self) -> Result<(), Error> {
        if self.html.is_none() {
            return Ok(());
        }
        let sources = self.sources()?;
        // If the files are gone, what was last seen of them stays.
        if sources.len() < self.arguments.files.len() {
            return Ok(());
        }
        let page = made(self.apps, &sources, &mut self.nests, show::command(), false)?;
        write(&self.arguments.output, page.to_html().as_bytes()).map(drop)
    }
}

fn has_content(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|file| file.len() > 0)
}

/// What a file and the log of a database look like. An empty log is none: it comes and goes as the database is read.
fn stamps(file: &Path) -> [Stamp; 2] {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    if Records::of_server(file).is_some() {
        // Only the server knows whether anything has changed.
        return [Some((0, Some(SystemTime::now()))), None];
    }
    [file.to_path_buf(), PathBuf::from(log)].map(|file| {
        let file = fs::metadata(file).ok().filter(|file| file.len() > 0)?;
        Some((file.len(), file.modified().ok()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_counts_unless_it_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.db");
        assert_eq!(stamps(&file), [None, None]);
        fs::write(&file, "one").unwrap();
        let one = stamps(&file);
        assert!(one[0].is_some() && one[1].is_none());
        fs::write(folder.path().join("a.db-wal"), "").unwrap();
        assert_eq!(stamps(&file), one);
        fs::write(folder.path().join("a.db-wal"), "more").unwrap();
        assert_ne!(stamps(&file), one);
    }
}
