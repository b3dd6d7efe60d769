//! Tasks to tune something: what `warploom tune` would be asked to do.

use std::path::Path;

use clap::Parser;
use serde::{Deserialize, Serialize};
use warploom::app::{App, Tunable};
use warploom::farm::worker::{Opened, ProposeError, Proposed, Site};
use warploom::lang::files::read_text;
use warploom::target::Device;
use warploom_apps::operators::operators;

use crate::error::Error;
use crate::pipeline::is_file;
use crate::tune;
use crate::writable::write;

/// Something to tune.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(in crate::farm) struct Tuning {
    /// The arguments of `warploom tune`: an app, an operator or a file, then options.
    arguments: Vec<String>,
    /// The content of the file, where the first argument names one: workers do not have it.
    content: Option<String>,
}

/// The arguments of `warploom tune`, alone.
#[derive(Parser)]
#[command(name = "warploom tune", no_binary_name = true)]
struct Tune {
    #[command(flatten)]
    arguments: tune::Arguments,
}

/// Options that have no meaning for many machines, or name files that workers do not have.
const REFUSED: [(&str, &str); 11] = [
    ("--records", "a farm's trials are in its database"),
    ("--output", "`warploom records best` prints the fastest schedule when a run is finished"),
    ("--out", "`warploom records best` prints the fastest schedule when a run is finished"),
    ("-o", "`warploom records best` prints the fastest schedule when a run is finished"),
    ("--json", "`warploom farm status --json` shows runs"),
    ("--weights", "trained weights are in the farm's database"),
    ("--template", "workers do not have the file"),
    ("--init", "workers do not have the file"),
    ("--gpu", "each worker has GPUs of its own"),
    ("--threads", "each worker has threads of its own"),
    ("--fake", "give it to workers"),
];

impl Tuning {
    /// The task of tuning an app, an operator or a file with some options.
    pub(super) fn new(what: &str, options: &[String]) -> Result<Tuning, Error> {
        let flag = |option: &String| option.split('=').next().unwrap_or_default().to_owned();
        for option in options {
            if let Some((_, why)) = REFUSED.iter().find(|(name, _)| *name == flag(option)) {
                return Err(Error::Ignored { flag: flag(option).trim_start_matches('-').to_owned(), why });
            }
        }
        let content = if is_file(what) { Some(read_text(Path::new(what))?) } else { None };
        let arguments = [what.to_owned()].into_iter().chain(options.iter().cloned()).collect();
        Ok(Tuning { arguments, content })
    }

    /// Does something with the arguments of `warploom tune`, and with the apps that they may name.
    fn with<T>(
        &self,
        apps: &[App],
        work: impl FnOnce(&[App], &tune::Arguments) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut arguments = self.arguments.clone();
        let what = arguments.first().cloned().unwrap_or_default();
        // A file ends in the same way as the one that was named, because that says what is in it.
        let folder = tempfile::tempdir()?;
        if let (Some(content), Some(first)) = (&self.content, arguments.first_mut()) {
            let name = Path::new(&what).file_name().map_or_else(|| what.clone().into(), ToOwned::to_owned);
            *first = write(&folder.path().join(name), content.as_bytes())?;
        }
        let Tune { arguments } = Tune::try_parse_from(&arguments).map_err(Error::Arguments)?;
        if self.content.is_some() || apps.iter().any(|app| app.name == what) {
            return work(apps, &arguments);
        }
        let operator = operators().into_iter().map(|operator| operator.app()).find(|app| app.name == what);
        match operator {
            Some(operator) => work(&[operator], &arguments),
            None => work(apps, &arguments),
        }
    }

    /// The error that every worker would find in the task.
    pub(super) fn check(&self, apps: &[App]) -> Result<(), Error> {
        self.with(apps, |apps, arguments| arguments.check(apps))
    }

    pub(super) fn open(&self, apps: &[App], device: &Device) -> Result<Opened, String> {
        let opened = self.with(apps, |apps, arguments| arguments.tunable(apps, device));
        let tunable = opened.map_err(|error| error.to_string())?;
        let Tunable { subject, small, tolerance } = tunable;
        Ok(Opened { subject, small, tolerance })
    }

    pub(super) fn propose(&self, apps: &[App], site: Site<'_>) -> Result<Proposed, ProposeError> {
        let proposed = self.with(apps, |apps, arguments| Ok(arguments.in_farm(apps, site)));
        proposed.unwrap_or_else(|error| Err(ProposeError::Task(error.to_string())))
    }
}
