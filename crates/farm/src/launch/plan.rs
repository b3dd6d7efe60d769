//! The planned starts, as data and as text for users.

use std::path::PathBuf;

use super::quote::line;
use super::roles::Roles;

/// The planned starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The folder of scripts and logs.
    pub folder: PathBuf,
    /// The starts, in order.
    pub starts: Vec<Start>,
}

/// One thing to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// An array job of Slurm.
    Job(Job),
    /// A worker on another machine.
    Remote(Remote),
    /// A worker on this machine.
    Process(Process),
}

/// An array job of Slurm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its name in Slurm.
    pub name: String,
    /// The roles of its tasks.
    pub roles: Roles,
    /// The number of its tasks, each a worker.
    pub tasks: u32,
    /// The path of the script.
    pub path: PathBuf,
    /// The script.
    pub script: String,
}

/// A worker on another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// The machine.
    pub host: String,
    /// Its roles.
    pub roles: Roles,
    /// Path of the program there.
    pub program: String,
    /// Path of the farm file there.
    pub farm_file: String,
    /// Arguments of ssh.
    pub arguments: Vec<String>,
}

/// A worker on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its roles.
    pub roles: Roles,
    /// The program and its arguments.
    pub arguments: Vec<String>,
    /// The file to which its output is appended.
    pub log: PathBuf,
}

impl Job {
    /// Arguments of `sbatch`.
    pub(super) fn arguments(&self) -> Vec<String> {
        vec!["--parsable".to_owned(), self.path.display().to_string()]
    }
}

impl Plan {
    /// The roles that no worker of the plan has: without workers of other plans, nothing is tuned.
    pub fn missing_roles(&self) -> Option<Roles> {
        Roles::outside(self.starts.iter().map(Start::roles))
    }

    /// The scripts and the commands, in shell syntax.
    pub fn describe(&self) -> String {
        self.starts.iter().map(Start::describe).collect::<Vec<_>>().join("\n")
    }
}

impl Start {
    fn roles(&self) -> &Roles {
        match self {
            Start::Job(job) => &job.roles,
            Start::Remote(remote) => &remote.roles,
            Start::Process(process) => &process.roles,
        }
    }

    fn describe(&self) -> String {
        match self {
            Start::Job(job) => {
                let command = [vec!["sbatch".to_owned()], job.arguments()].concat();
                format!("# {}\n{}\n{}\n", job.path.display(), job.script, line(&command))
            }
            Start::Remote(remote) => {
                line(&[vec!["ssh".to_owned()], remote.arguments.clone()].concat()) + "\n"
            }
            Start::Process(process) => {
                let log = line(&[process.log.display().to_string()]);
                format!("{} >> {log} 2>&1 < /dev/null &\n", line(&process.arguments))
            }
        }
    }
}
