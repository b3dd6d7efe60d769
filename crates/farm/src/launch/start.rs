//! Starts the workers of a plan.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::iter;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::error::{At, LaunchError};
use super::plan::{Job, Plan, Process, Remote, Start};
use super::run::{Failure, MOST, command, last_lines, not_run, run, text};
use super::ssh;

/// The number of machines that are connected to at the same time.
const AT_ONCE: usize = 16;

/// The programs that start workers, and their time limits.
#[derive(Clone, Debug)]
pub struct Tools {
    /// Submits jobs to Slurm.
    pub sbatch: PathBuf,
    /// Runs commands on other machines.
    pub ssh: PathBuf,
    /// The time limit for one job or one machine.
    pub limit: Duration,
    /// The time for which workers on this machine are watched for immediate failures.
    pub watch: Duration,
}

impl Default for Tools {
    fn default() -> Tools {
        Tools {
            sbatch: "sbatch".into(),
            ssh: "ssh".into(),
            limit: Duration::from_secs(60),
            watch: Duration::from_secs(1),
        }
    }
}

/// The started workers, and the failures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The successful starts.
    pub started: Vec<Started>,
    /// The failures. After a job that Slurm refuses, no further one is submitted; machines do not depend on each other.
    pub failed: Vec<Failed>,
}

/// A successful start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Started {
    /// An array job of Slurm.
    Job {
        /// Its number, with which it can be cancelled.
        id: u64,
        /// The cluster, if Slurm manages several.
        cluster: Option<String>,
        /// Its name.
        name: String,
        /// Number of its tasks.
        tasks: u32,
    },
    /// A worker on another machine.
    Remote {
        /// The machine.
        host: String,
        /// Process id there.
        pid: u32,
    },
    /// A worker on this machine.
    Process {
        /// The process id, which is also that of its process group.
        pid: u32,
        /// The path of its output.
        log: PathBuf,
    },
}

/// A failed start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The job, machine or log.
    pub what: String,
    /// The reason, on one line.
    pub reason: String,
}

impl Plan {
    /// Starts everything. A missing folder is created for this user alone.
    ///
    /// # Errors
    ///
    /// If the folder cannot be written to, or if a program that starts workers is missing. All other failures of a job,
    /// a machine or a process are in the report.
    pub fn start(&self, tools: &Tools) -> Result<Report, LaunchError> {
        let (mut jobs, mut remotes, mut processes) = (Vec::new(), Vec::new(), Vec::new());
        for start in &self.starts {
            match start {
                Start::Job(job) => jobs.push(job),
                Start::Remote(remote) => remotes.push(remote),
                Start::Process(process) => processes.push(process),
            }
        }
        if !jobs.is_empty() || !processes.is_empty() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).at(&self.folder)?;
        }
        let mut report = Report::default();
        submit(&jobs, tools, &mut report)?;
        connect(&remotes, tools, &mut report)?;
        spawn(&processes, tools, &mut report)?;
        Ok(report)
    }
}

impl Report {
    fn add(&mut self, what: &str, outcome: Result<Started, String>) {
        match outcome {
            Ok(started) => self.started.push(started),
            Err(reason) => self.failed.push(Failed { what: what.to_owned(), reason }),
        }
    }
}

/// Writes the scripts and submits them.
fn submit(jobs: &[&Job], tools: &Tools, report: &mut Report) -> Result<(), LaunchError> {
    for job in jobs {
        write(&job.path, &job.script).at(&job.path)?;
    }
    let advice = "run this where Slurm's programs are installed, such as a cluster's login node";
    for job in jobs {
        let outcome = run(&tools.sbatch, &job.arguments(), tools.limit, advice)?;
        let outcome = outcome.map_err(|failure| failure.reason).and_then(|said| submitted(job, &said));
        let is_refused = outcome.is_err();
        report.add(&job.name, outcome);
        if is_refused {
            break;
        }
    }
    Ok(())
}

/// Writes a file for its owner alone. Readers see either the old text or the new one.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new("/")))?;
    file.write_all(text.as_bytes())?;
    file.persist(path)?;
    Ok(())
}

/// The job that `sbatch --parsable` names as `17` or `17;cluster`, after any output of the cluster itself.
fn submitted(job: &Job, said: &str) -> Result<Started, String> {
    let last = said.lines().next_back().unwrap_or_default().trim();
    let (id, cluster) = last.split_once(';').map_or((last, None), |(id, rest)| (id, Some(rest.to_owned())));
    let id = id
        .parse()
        .map_err(|_| format!("sbatch printed `{}` in place of a job's number", last_lines(said)))?;
    Ok(Started::Job { id, cluster, name: job.name.clone(), tasks: job.tasks })
}

/// Starts the workers of other machines, many at a time.
fn connect(remotes: &[&Remote], tools: &Tools, report: &mut Report) -> Result<(), LaunchError> {
    let advice = "install it (Debian, Ubuntu: `apt install openssh-client`)";
    let next = AtomicUsize::new(0);
    let (sender, outcomes) = mpsc::channel();
    thread::scope(|scope| {
        for sender in iter::repeat_n(sender, remotes.len().min(AT_ONCE)) {
            let next = &next;
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(remote) = remotes.get(number) else { return };
                    let outcome = run(&tools.ssh, &remote.arguments, tools.limit, advice);
                    // The receiver outlives these threads.
                    let _ = sender.send((number, remote, outcome));
                }
            });
        }
    });
    let mut outcomes: Vec<_> = outcomes.into_iter().collect();
    outcomes.sort_by_key(|(number, ..)| *number);
    for (_, remote, outcome) in outcomes {
        let outcome = outcome?.map_err(|failure| not_started(remote, failure));
        report.add(&remote.host, outcome.and_then(|said| connected(remote, &said)));
    }
    Ok(())
}

/// The worker whose process id the other machine prints, after any output of its login shell.
fn connected(remote: &Remote, said: &str) -> Result<Started, String> {
    let last = said.lines().next_back().unwrap_or_default().trim();
    let pid = last
        .parse()
        .map_err(|_| format!("the machine printed `{}` in place of a process id", last_lines(said)))?;
    Ok(Started::Remote { host: remote.host.clone(), pid })
}

fn not_started(remote: &Remote, failure: Failure) -> String {
    let Remote { program, farm_file, .. } = remote;
    match failure.code {
        Some(ssh::NO_PROGRAM) => {
            format!("there is no program `{program}` there; install it, or name another with `program=`")
        }
        Some(ssh::NO_FARM_FILE) => {
            format!(
                "cannot read the farm file `{farm_file}` there; copy it, or name another with `farm-file=`"
            )
        }
        _ => failure.reason,
    }
}

/// Starts workers on this machine, in process groups of their own, so that signals of the terminal do not reach them.
fn spawn(processes: &[&Process], tools: &Tools, report: &mut Report) -> Result<(), LaunchError> {
    let mut children = Vec::new();
    for process in processes {
        let Some((program, arguments)) = process.arguments.split_first() else { continue };
        let log = File::options().create(true).append(true).mode(0o600).open(&process.log).at(&process.log)?;
        let errors = log.try_clone().at(&process.log)?;
        let mut command = command(Path::new(program));
        command.args(arguments).process_group(0).stdin(Stdio::null()).stdout(log).stderr(errors);
        match command.spawn() {
            Ok(child) => children.push((process, child)),
            Err(error) => {
                let advice = "give the path of a program that exists";
                let reason = not_run(Path::new(program), &error, advice)?;
                report.add(&process.log.display().to_string(), Err(reason));
            }
        }
    }
    let end = Instant::now() + tools.watch;
    let has_ended = |child: &mut Child| !matches!(child.try_wait(), Ok(None));
    // The running ones are watched until the time is over.
    while !children.is_empty()
        && Instant::now() < end
        && !children.iter_mut().all(|(_, child)| has_ended(child))
    {
        thread::sleep(Duration::from_millis(10));
    }
    for (process, mut child) in children {
        let outcome = match child.try_wait() {
            Ok(Some(status)) if !status.success() => Err(ended(status, &process.log)),
            _ => Ok(Started::Process { pid: child.id(), log: process.log.clone() }),
        };
        report.add(&process.log.display().to_string(), outcome);
    }
    Ok(())
}

/// Why a worker ended at once.
fn ended(status: ExitStatus, log: &Path) -> String {
    let tail = || -> io::Result<String> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(MOST)))?;
        text(&mut file)
    };
    format!("the worker ended at once ({status}): {}", last_lines(&tail().unwrap_or_default()))
}
