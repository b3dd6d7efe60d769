//! Starting workers where a farm's machines are: as jobs of Slurm, by ssh, or on this machine.
//!
//! | module | subject |
//! | --- | --- |
//! | [`roles`] | the roles of a worker |
//! | [`slurm`] | job scripts |
//! | [`hosts`] | machines that are reached by ssh, as a file lists them |
//! | [`plan`] | the planned starts, as text for users |
//! | [`start`] | starting them, and the results |
//! | `ssh`, `local` | workers on other machines, and on this one |
//! | `run`, `quote` | running the programs that start workers, and words for their shells |
//! | [`gpus`] | the GPUs that a scheduler gave a worker |
//! | `error` | why workers could not be started |
//!
//! A worker finds its server by a farm file, so that no password is in arguments, job scripts or logs. PostgreSQL's
//! variables (`PGPASSWORD` and others) are not passed on.
//!
//! ```
//! use std::path::Path;
//! use warploom_farm::launch::{Placement, Worker};
//!
//! let placement = Placement::Slurm("gpu:8,cpu:4".parse()?);
//! let worker = Worker::new("/opt/warploom/bin/warploom", "/home/ann/farm.json")?;
//! let plan = placement.plan(&worker, Path::new("/home/ann/farm.jobs"))?;
//! assert!(plan.describe().contains("#SBATCH --array=0-7"));
//! # Ok::<(), warploom_farm::launch::LaunchError>(())
//! ```

mod error;
pub mod gpus;
pub mod hosts;
mod local;
pub mod plan;
mod quote;
pub mod roles;
mod run;
pub mod slurm;
mod ssh;
pub mod start;

use std::num::NonZero;
use std::path::{Path, PathBuf, absolute};

use warploom_tune::records::Records;

pub use error::LaunchError;
pub use plan::Plan;

use error::At;
use hosts::Hosts;
use roles::Roles;
use slurm::Slurm;

/// The place where workers are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// As array jobs of Slurm.
    Slurm(Slurm),
    /// By ssh, one on each line of a file.
    Ssh(Hosts),
    /// This many processes on this machine.
    Local(NonZero<u32>),
}

impl Placement {
    /// The planned starts. Scripts and logs of this machine and of Slurm's jobs go into a folder, which the machines of
    /// a cluster must share.
    ///
    /// # Errors
    ///
    /// If a path cannot be used in a command or a script.
    pub fn plan(&self, worker: &Worker, folder: &Path) -> Result<Plan, LaunchError> {
        let folder = absolute(folder).at(folder)?;
        let starts = match self {
            Placement::Slurm(slurm) => slurm.starts(worker, &folder)?,
            Placement::Ssh(hosts) => ssh::starts(hosts, worker),
            Placement::Local(count) => local::starts(*count, worker, &folder)?,
        };
        Ok(Plan { folder, starts })
    }
}

/// The common part of a farm's workers: `PROGRAM farm worker FARMFILE --role ROLES`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    program: String,
    farm_file: String,
    arguments: Vec<String>,
    gpus: Vec<usize>,
}

impl Worker {
    /// Workers that run a program, which is a path or a name that is looked up in PATH, and read a
    /// farm file. Relative paths are those of this process.
    ///
    /// # Errors
    ///
    /// If the farm file is a URL, or if a path cannot be used in a command or a script.
    pub fn new(program: impl AsRef<Path>, farm_file: impl AsRef<Path>) -> Result<Worker, LaunchError> {
        let (program, farm_file) = (program.as_ref(), farm_file.as_ref());
        if Records::of_server(farm_file).is_some() {
            return Err(LaunchError::Url);
        }
        let is_name = program.components().count() == 1 && program.file_name() == Some(program.as_os_str());
        let program = if is_name { PathBuf::from(program) } else { absolute(program).at(program)? };
        let program = text(&program)?.to_owned();
        if program.starts_with('-') {
            return Err(LaunchError::Program { program });
        }
        let farm_file = text(&absolute(farm_file).at(farm_file)?)?.to_owned();
        Ok(Worker { program, farm_file, arguments: Vec::new(), gpus: Vec::new() })
    }

    /// The same with more arguments for every worker.
    pub fn with_arguments(self, arguments: Vec<String>) -> Worker {
        Worker { arguments, ..self }
    }

    /// The same with numbers of this machine's GPUs, which are divided among its workers. Without them, each worker
    /// takes the first.
    pub fn with_gpus(self, gpus: Vec<usize>) -> Worker {
        Worker { gpus, ..self }
    }

    /// The words of the command.
    fn command(&self, roles: &Roles, gpus: &[usize]) -> Vec<String> {
        self.command_of(&self.program, &self.farm_file, roles, gpus)
    }

    /// The words of the command on a machine that may have other paths.
    fn command_of(&self, program: &str, farm_file: &str, roles: &Roles, gpus: &[usize]) -> Vec<String> {
        let roles = roles.to_string();
        let mut words: Vec<String> =
            [program, "farm", "worker", farm_file, "--role", &roles].map(str::to_owned).into();
        if !gpus.is_empty() {
            let numbers: Vec<String> = gpus.iter().map(usize::to_string).collect();
            words.extend(["--gpu".to_owned(), numbers.join(",")]);
        }
        words.extend(self.arguments.iter().cloned());
        words
    }
}

/// A path in the form for commands, scripts and messages.
fn text(path: &Path) -> Result<&str, LaunchError> {
    path.to_str()
        .filter(|text| !text.is_empty() && !text.chars().any(char::is_control))
        .ok_or_else(|| LaunchError::Path { path: path.to_path_buf() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_given_files_and_never_urls() {
        let error = Worker::new("warploom", "postgres://ann:secret@db/farm").unwrap_err().to_string();
        assert!(error.contains("give a farm file") && !error.contains("secret"), "{error}");
        for (program, file) in
            [("warploom", "a\nb"), ("warploom", ""), ("", "farm.json"), ("-x", "farm.json")]
        {
            let error = Worker::new(program, file).unwrap_err().to_string();
            assert!(error.contains("; "), "{error}");
        }
    }

    #[test]
    fn relative_paths_are_those_of_this_process() {
        let here = std::env::current_dir().unwrap();
        let worker = Worker::new("bin/warploom", "farm.json").unwrap();
        assert_eq!(Path::new(&worker.program), here.join("bin/warploom"));
        assert_eq!(Path::new(&worker.farm_file), here.join("farm.json"));
        assert_eq!(Worker::new("warploom", "farm.json").unwrap().program, "warploom");
        assert!(Worker::new("./warploom", "farm.json").unwrap().program.starts_with('/'));
    }
}
