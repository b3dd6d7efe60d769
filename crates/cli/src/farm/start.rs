//! `warploom farm start`: a database, runs, and workers for them.

use std::io::Write;
use std::num::NonZero;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, ValueEnum};
use serde::Serialize;
use warploom::app::App;
use warploom::farm::database::{self, DatabaseError};
use warploom::farm::launch::hosts::Hosts;
use warploom::farm::launch::slurm::{SbatchOption, Slurm};
use warploom::farm::launch::start::{Report as Launched, Started, Tools};
use warploom::farm::launch::{Placement, Plan, Worker};
use warploom::farm::queue::Queue;
use warploom::farm::server::{Listen, StartOptions};
use warploom::target::Device;
use warploom_apps::operators::Operator;

use super::server;
use super::tasks::Task;
use crate::device;
use crate::error::Error;
use crate::report::{self, Format};
use crate::show;
use crate::suite::operators;
use crate::voice;

/// Start the database, runs, and workers for them
///
/// Each app, file or operator is a run. Options of `warploom tune` follow after `--` and hold for all of them. The command ends
/// when everything is started; `warploom farm status` shows how far it is.
#[derive(Debug, clap::Args)]
#[command(override_usage = "warploom farm start --database <DIR> [OPTIONS] [APP|FILE]...\n           \
    [-- <OPTIONS OF TUNE>...]")]
#[command(group(ArgGroup::new("place").args(["database", "farm"]).required(true)))]
#[command(group(ArgGroup::new("workers").args(["slurm", "ssh", "local"])))]
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
    /// The folder of a private database; made and started if necessary
    #[arg(long, value_name = "DIR", help_heading = "Database")]
    database: Option<PathBuf>,
    /// The farm file of a database that runs already, or the URL of your own server
    #[arg(long, value_name = "FARMFILE|URL", help_heading = "Database")]
    farm: Option<PathBuf>,
    /// Also listen for other machines, at this name or address of this machine, as 10.0.0.5 or gpu1.lan:5433
    #[arg(long, value_name = "ADDRESS", value_parser = address, requires = "database", help_heading = "Database")]
    listen: Option<Listen>,
    /// The most connections (default: as before, at first 200)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..=10_000), requires = "database", help_heading = "Database")]
    connections: Option<u32>,
    /// Submit array jobs to Slurm, as gpu:8,cpu:4: so many tasks with a GPU each, and so many without
    #[arg(long, value_name = "TASKS", help_heading = "Workers")]
    slurm: Option<Slurm>,
    /// One more option of sbatch, as --partition=long; after gpu: or cpu: only for these tasks. Can be repeated
    #[arg(
        long,
        value_name = "OPTION",
        requires = "slurm",
        allow_hyphen_values = true,
        help_heading = "Workers"
    )]
    sbatch: Vec<SbatchOption>,
    /// Start a worker by ssh on each host of a file
    #[arg(long, value_name = "FILE", help_heading = "Workers")]
    ssh: Option<PathBuf>,
    /// Start so many workers on this machine
    #[arg(long, value_name = "N", help_heading = "Workers")]
    local: Option<NonZero<u32>>,
    /// Numbers of this machine's GPUs, which its workers divide among them
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', requires = "local", help_heading = "Workers")]
    gpu: Vec<usize>,
    /// What runs are tuned for, where the first worker with a GPU may come late (default: the GPU of most workers)
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Print the scripts and commands that would start workers, and start nothing
    #[arg(long, requires = "workers")]
    dry_run: bool,
    /// A fake device for workers, for tests
    #[arg(long, value_name = "DEVICE", hide = true)]
    fake: Option<String>,
    #[command(flatten)]
    format: Format,
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

#[derive(Serialize)]
struct Report {
    /// The folder of the database; `null` if it is not a private one.
    database: Option<String>,
    /// Whether it runs now.
    running: bool,
    /// Whether it ran before.
    was_running: bool,
    /// The file for workers; `null` for the URL of a server.
    farm_file: Option<String>,
    /// The address of the server without the password.
    server: String,
    /// The runs that were added.
    runs: Vec<Run>,
    /// The workers that were started.
    started: Vec<String>,
    /// Those that could not be started, and why.
    failed: Vec<String>,
}

#[derive(Serialize)]
struct Run {
    id: i64,
    name: String,
}

/// The database of a farm.
struct Database {
    folder: Option<PathBuf>,
    was_running: bool,
    /// The file for workers, or a URL.
    place: PathBuf,
}

fn address(text: &str) -> Result<Listen, String> {
    text.parse::<Listen>().map_err(|error| error.to_string())
}

pub(super) fn start(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    // What is wrong with the command is said before anything is started.
    let tasks = arguments.tasks(apps)?;
    let device = arguments.device.as_deref().map(|name| device::find(name, arguments.format)).transpose()?;
    let placement = arguments.placement()?;
    if arguments.dry_run {
        let plan = placement.map(|placement| arguments.plan(&placement, &arguments.place())).transpose()?;
        return report::text(out, &plan.map(|plan| plan.describe()).unwrap_or_default());
    }
    let database = arguments.database()?;
    let address = server::address(&database.place)?;
    let runs = add(&address, &tasks, device.as_ref())?;
    let plan = placement.map(|placement| arguments.plan(&placement, &database.place)).transpose()?;
    let launched = plan.map(|plan| plan.start(&Tools::default())).transpose()?.unwrap_or_default();
    let report = Report {
        database: database.folder.map(|folder| folder.display().to_string()),
        running: true,
        was_running: database.was_running,
        farm_file: database.place.is_file().then(|| database.place.display().to_string()),
        server: address.to_string(),
        runs,
        started: launched.started.iter().map(shown).collect(),
        failed: launched.failed.iter().map(|failed| format!("{}: {}", failed.what, failed.reason)).collect(),
    };
    match arguments.format.json {
        true => report::json(out, "warploom.farm/1", &report)?,
        false => report::text(out, &report.text())?,
    }
    verdict(&launched)
}

/// An error if nothing at all could be started.
fn verdict(launched: &Launched) -> Result<(), Error> {
    match (launched.started.is_empty(), launched.failed.first()) {
        (true, Some(failed)) => Err(Error::NoWorkers { why: format!("{}: {}", failed.what, failed.reason) }),
        _ => Ok(()),
    }
}

/// Adds a run for each task.
fn add(
    address: &warploom::farm::address::Address,
    tasks: &[(String, Task)],
    device: Option<&Device>,
) -> Result<Vec<Run>, Error> {
    let device = device.map(Device::to_json).transpose().map_err(|error| Error::Farmed(error.to_string()))?;
    let mut queue = Queue::open(address)?;
    let add = |(name, task): &(String, Task)| {
        let id = queue.add_run(name, &task.to_json(), device.as_deref())?;
        Ok(Run { id, name: name.clone() })
    };
    tasks.iter().map(add).collect()
}

impl Arguments {
    /// The tasks, with the names of what they are about.
    fn tasks(&self, apps: &[App]) -> Result<Vec<(String, Task)>, Error> {
        let set: Vec<String> = match self.suite {
            None => Vec::new(),
            Some(Set::Operators) => {
                operators::chosen_rows(&self.rows)?.iter().map(|row: &Operator| row.app().name).collect()
            }
            Some(Set::Apps) => {
                let basic = |app: &&App| !warploom_apps::BASICS.iter().any(|basic| basic.name == app.name);
                apps.iter().filter(basic).map(|app| app.name.clone()).collect()
            }
        };
        let names = self.what.iter().cloned().chain(set);
        let tasks = names.map(|name| {
            let task = Task::new(&name, &self.options)?;
            task.check(apps)?;
            Ok((name, task))
        });
        tasks.collect()
    }

    fn placement(&self) -> Result<Option<Placement>, Error> {
        if let Some(slurm) = &self.slurm {
            return Ok(Some(Placement::Slurm(slurm.clone().with_options(self.sbatch.clone()))));
        }
        if let Some(file) = &self.ssh {
            return Ok(Some(Placement::Ssh(Hosts::read(file)?)));
        }
        Ok(self.local.map(Placement::Local))
    }

    /// The file for workers as it will be, or the URL.
    fn place(&self) -> PathBuf {
        let private = self.database.as_deref().map(server::farm_file);
        private.or_else(|| self.farm.clone()).unwrap_or_default()
    }

    fn plan(&self, placement: &Placement, place: &Path) -> Result<Plan, Error> {
        let mut arguments = vec!["--until-done".to_owned()];
        if let Some(fake) = &self.fake {
            arguments.extend(["--fake".to_owned(), fake.clone()]);
        }
        let worker = Worker::new(std::env::current_exe()?, place)?;
        let worker = worker.with_arguments(arguments).with_gpus(self.gpu.clone());
        // Beside the farm file, which all machines of a cluster can read.
        let folder = place.parent().unwrap_or(Path::new(".")).join("workers");
        let plan = placement.plan(&worker, &folder)?;
        if let Some(missing) = plan.missing_roles() {
            voice::note(&format!("no worker is started here that can {missing}; others must"));
        }
        Ok(plan)
    }

    /// Starts the private database, or takes the one that is there.
    fn database(&self) -> Result<Database, Error> {
        let Some(folder) = &self.database else {
            return Ok(Database { folder: None, was_running: true, place: self.place() });
        };
        let options = StartOptions {
            listen: self.listen.clone(),
            max_connections: self.connections,
            ..StartOptions::default()
        };
        let started = database::start(folder, &options)?;
        if let Some(note) = &started.note {
            voice::note(note);
        }
        started.worker.address().map_err(DatabaseError::Address)?;
        let (folder, was_running) = (Some(folder.clone()), started.was_running);
        Ok(Database { folder, was_running, place: started.worker_path })
    }
}

fn shown(started: &Started) -> String {
    match started {
        Started::Job { id, name, tasks, .. } => {
            format!("job {id} ({name}), {}", show::count(*tasks as usize, "task"))
        }
        Started::Remote { host, pid } => format!("{host}, process {pid}"),
        Started::Process { pid, log } => format!("process {pid}, log {}", log.display()),
    }
}

impl Report {
    fn text(&self) -> String {
        let Report { database, was_running, farm_file, server, runs, started, failed, .. } = self;
        let mut text = String::new();
        if let Some(database) = database {
            let runs = if *was_running { "runs already" } else { "runs" };
            text += &format!("the database in {database} {runs}: {server}\n");
        }
        if !runs.is_empty() {
            let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
            text += &format!("{}: {}\n", show::count(runs.len(), "run"), names.join(", "));
        }
        for worker in started {
            text += &format!("started {worker}\n");
        }
        for worker in failed {
            text += &format!("not started: {worker}\n");
        }
        let place = farm_file.as_deref().unwrap_or("URL");
        text += &match (started.is_empty(), runs.is_empty()) {
            (false, _) => format!("\nsee how far it is:\n  warploom farm status {place} --watch\n"),
            (true, false) => {
                format!("\nstart workers, here or wherever this file is:\n  warploom farm worker {place}\n")
            }
            (true, true) => format!(
                "\ntune with it, here or wherever this file is:\n  \
                 warploom farm start harris --farm {place} --local 2 -- --iterations 20\n  \
                 warploom tune harris --iterations 20 --records {place} -o out\n"
            ),
        };
        text
    }
}
