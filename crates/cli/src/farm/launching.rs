//! What `farm start` and `farm collect` have in common: options for the database and for workers, and the
//! start of both.

mod report;

use std::io::Write;
use std::num::NonZero;
use std::path::{Path, PathBuf};

use clap::ArgGroup;
use warploom::farm::address::Address;
use warploom::farm::database::{self, DatabaseError};
use warploom::farm::launch::hosts::Hosts;
use warploom::farm::launch::slurm::{SbatchOption, Slurm};
use warploom::farm::launch::start::{Report as Launched, Tools};
use warploom::farm::launch::{Placement, Plan, Worker};
use warploom::farm::queue::Queue;
use warploom::farm::queue::runs::NewRun;
use warploom::farm::server::{Listen, StartOptions};
use warploom::target::Device;

use super::server;
use super::tasks::Task;
use crate::device;
use crate::error::Error;
use crate::report::{self as output, Format};
use crate::voice;
use report::{Report, Run};

/// Where the database is, and which workers are started.
#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("place").args(["database", "farm"]).required(true)))]
#[command(group(ArgGroup::new("workers").args(["slurm", "ssh", "local"])))]
pub(super) struct Launching {
    /// The folder of a private database; made and started if necessary
    #[arg(long, value_name = "DIR", help_heading = "Database")]
    database: Option<PathBuf>,
    /// The farm file of a database that runs already, or the URL of your own server
    #[arg(long, value_name = "FARMFILE|URL", help_heading = "Database")]
    farm: Option<PathBuf>,
    /// Also listen for other machines, at this name or address of this machine, as 10.0.0.5 or gpu1.lan:5433
    #[arg(long, value_name = "ADDRESS", value_parser = listen, requires = "database", help_heading = "Database")]
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
    /// The GPU that runs are for, where the first worker with a GPU may come late (default: the GPU of most workers)
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
}

/// A run to add.
pub(super) struct Asked {
    /// What people know it by.
    pub(super) name: String,
    pub(super) task: Task,
    /// How many trials it will take; 0 if that is not known.
    pub(super) expected: usize,
}

/// What the report in words says of runs.
pub(super) struct Words<'a> {
    /// What they are, together.
    pub(super) runs: &'a str,
    /// What to do after they have ended, at the place that is given; empty if there is nothing to say.
    pub(super) afterwards: &'a dyn Fn(&str) -> String,
}

/// The database of a farm.
struct Database {
    folder: Option<PathBuf>,
    was_running: bool,
    /// The file for workers, or a URL.
    place: PathBuf,
}

fn listen(text: &str) -> Result<Listen, String> {
    text.parse::<Listen>().map_err(|error| error.to_string())
}

impl Launching {
    /// Starts the database, adds runs, starts workers, and reports that.
    pub(super) fn launch(
        &self,
        asked: &[Asked],
        words: &Words<'_>,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        // What is wrong with the command is said before anything is started.
        let device = self.device.as_deref().map(|name| device::find(name, self.format)).transpose()?;
        let placement = self.placement()?;
        if self.dry_run {
            let plan = placement.map(|placement| self.plan(&placement, &self.place())).transpose()?;
            return output::verbatim(out, &plan.map(|plan| plan.describe()).unwrap_or_default());
        }
        let database = self.database()?;
        let address = server::address(&database.place)?;
        let runs = add(&address, asked, device.as_ref())?;
        let plan = placement.map(|placement| self.plan(&placement, &database.place)).transpose()?;
        let launched = plan.map(|plan| plan.start(&Tools::default())).transpose()?.unwrap_or_default();
        let report = Report::new(&database, &address, runs, &launched);
        output::print(out, self.format, &report, || report.text(words))?;
        verdict(&launched)
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

/// An error if nothing at all could be started.
fn verdict(launched: &Launched) -> Result<(), Error> {
    match (launched.started.is_empty(), launched.failed.first()) {
        (true, Some(failed)) => Err(Error::NoWorkers { why: format!("{}: {}", failed.what, failed.reason) }),
        _ => Ok(()),
    }
}

/// Adds a run for each task.
fn add(address: &Address, asked: &[Asked], device: Option<&Device>) -> Result<Vec<Run>, Error> {
    let device = device.map(Device::to_json).transpose().map_err(|error| Error::Farmed(error.to_string()))?;
    let tasks: Vec<String> = asked.iter().map(|asked| asked.task.to_json()).collect();
    let new = asked.iter().zip(&tasks).map(|(asked, task)| {
        let Asked { name, expected, .. } = asked;
        NewRun { name, task, expected: *expected }
    });
    let new: Vec<NewRun<'_>> = new.collect();
    let ids = Queue::open(address)?.add_runs(&new, device.as_deref())?;
    let names = asked.iter().map(|asked| asked.name.clone());
    Ok(ids.into_iter().zip(names).map(|(id, name)| Run { id, name }).collect())
}
