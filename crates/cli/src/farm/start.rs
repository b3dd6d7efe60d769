//! `warploom farm start`: a database, runs, and workers for them.

use std::io::Write;

use clap::ValueEnum;
use warploom::app::App;
use warploom_apps::operators::{Operator, operators};
use warploom_results::suite::operators::chosen;

use super::launching::{Asked, Launching, Words};
use super::tasks::Task;
use crate::error::Error;

/// Start the database, runs, and workers for them
///
/// Each app, file or operator is a run. Options of `warploom tune` follow after `--` and hold for all of them. The command ends
/// when everything is started; `warploom farm status` shows how far it is.
#[derive(Debug, clap::Args)]
#[command(override_usage = "warploom farm start --database <DIR> [OPTIONS] [APP|FILE]...\n           \
    [-- <OPTIONS OF TUNE>...]")]
pub(super) struct Arguments {
    /// The apps (`warploom apps` lists them), *.json files with pipelines and *.tc files to tune
    #[arg(value_name = "APP|FILE")]
    what: Vec<String>,
    /// Tune all apps, or all operators
    #[arg(long, value_enum, value_name = "SET")]
    suite: Option<Set>,
    /// The operators, by name, family, or name and shape, separated by commas; * stands for anything (default: all)
    #[arg(long, value_delimiter = ',', value_name = "PATTERNS", requires = "suite")]
    rows: Vec<String>,
    #[command(flatten)]
    launching: Launching,
    /// Options of `warploom tune`, as --iterations 20 --retrain
    #[arg(last = true, value_name = "OPTIONS")]
    options: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Set {
    /// All apps but the basic ones
    Apps,
    /// The operators of papers on tensor compilers
    Operators,
}

pub(super) fn start(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let asked = arguments.asked(apps)?;
    let names: Vec<&str> = asked.iter().map(|asked| asked.name.as_str()).collect();
    let words = Words { runs: &names.join(", "), afterwards: &|_| String::new() };
    arguments.launching.launch(&asked, &words, out)
}

impl Arguments {
    /// A run for each of what is tuned.
    fn asked(&self, apps: &[App]) -> Result<Vec<Asked>, Error> {
        let set: Vec<String> = match self.suite {
            None => Vec::new(),
            Some(Set::Operators) => {
                chosen(operators(), &self.rows)?.iter().map(|row: &Operator| row.app().name).collect()
            }
            Some(Set::Apps) => {
                let basic = |app: &&App| !warploom_apps::BASICS.iter().any(|basic| basic.name == app.name);
                apps.iter().filter(basic).map(|app| app.name.clone()).collect()
            }
        };
        let names = self.what.iter().cloned().chain(set);
        let asked = names.map(|name| {
            let task = Task::tune(&name, &self.options)?;
            task.check(apps)?;
            Ok(Asked { name, task, expected: 0 })
        });
        asked.collect()
    }
}
