//! Worker processes that compile and run programs, and may crash or be killed.
//!
//! A kernel may hang or corrupt the GPU context of its process, and a kernel compiler may never
//! finish. So each runs in a process of its own, a *worker*, that can be killed. [`Compilers`] and
//! [`ProcessMachine`] implement the interfaces of [`measure`](crate::measure): they talk to workers
//! through pipes, kill those that exceed their time limit, and start new ones. A lost worker costs
//! one candidate, and that failure is recorded.
//!
//! A worker is the same executable in a different role. The `warploom` program has a hidden command
//! for it. Any other program calls [`entry`] first in its `main`:
//!
//! ```no_run
//! warploom_tune::worker::entry();
//! // From here on, `OpenBench::open` measures in processes of this program.
//! ```
//!
//! A worker exits as soon as the pipe from its parent closes, so no worker outlives a killed
//! parent.
//!
//! # The protocol
//!
//! In both directions, a message is the letters `WPLM`, its length (`u32`), a checksum (`u32`) and
//! that many bytes of bincode; numbers are little endian. The worker first sends a greeting with
//! its version, then answers one request at a time. Any other output is treated as corruption, and
//! the worker is killed.

mod bench;
mod bytes;
mod compilers;
mod fake;
mod machine;
mod process;
mod protocol;
mod serve;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use bench::{Bench, BenchOptions, OpenBench, versions_of};
pub use compilers::Compilers;
pub use fake::Fake;
pub use machine::ProcessMachine;
pub use process::WorkerError;

/// If this is the first argument, a program that calls [`entry`] becomes a worker.
const WORKER: &str = "warploom-worker";

static ENTERED: AtomicBool = AtomicBool::new(false);

/// An executable, with the arguments that make it a worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerProgram {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl WorkerProgram {
    /// An executable with the arguments that precede the assignment: `warploom` with `worker`.
    pub fn new(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = OsString>) -> WorkerProgram {
        WorkerProgram { program: program.into(), arguments: arguments.into_iter().collect() }
    }

    /// The current executable, if its `main` has called [`entry`].
    pub fn this() -> Option<WorkerProgram> {
        let entered = ENTERED.load(Ordering::Relaxed);
        let program = std::env::current_exe().ok().filter(|_| entered)?;
        Some(WorkerProgram::new(program, [OsString::from(WORKER)]))
    }
}

/// The role of a worker, passed as command-line arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assignment {
    role: Role,
    fake: Option<Fake>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Compile,
    Run { gpu: usize },
}

impl Assignment {
    fn arguments(&self) -> Vec<OsString> {
        let mut arguments = match self.role {
            Role::Compile => vec!["compile".to_owned()],
            Role::Run { gpu } => vec!["run".to_owned(), gpu.to_string()],
        };
        arguments.extend(self.fake.as_ref().map(ToString::to_string));
        arguments.into_iter().map(OsString::from).collect()
    }

    /// Parses arguments: `compile`, or `run` and the number of a GPU.
    ///
    /// # Errors
    /// A sentence, if the arguments are not an assignment.
    pub fn parse(arguments: &[String]) -> Result<Assignment, String> {
        let (role, rest) = match arguments {
            [role, rest @ ..] if role == "compile" => (Role::Compile, rest),
            [role, gpu, rest @ ..] if role == "run" => {
                let gpu = gpu.parse().map_err(|_| format!("`{gpu}` is not the number of a GPU"))?;
                (Role::Run { gpu }, rest)
            }
            _ => return Err("a worker's role is `compile`, or `run` and the number of a GPU".to_owned()),
        };
        let fake = match rest {
            [] => None,
            [fake] => Some(fake.parse()?),
            [_, more, ..] => return Err(format!("`{more}` is one argument too many")),
        };
        Ok(Assignment { role, fake })
    }

    /// Serves requests until the pipe from the parent closes.
    ///
    /// # Errors
    /// If an answer cannot be sent to the parent.
    pub fn serve(&self) -> io::Result<()> {
        serve::serve(self)
    }
}

/// Call this first in the `main` of a program that measures. In a worker process it serves requests
/// and does not return; otherwise it returns at once.
pub fn entry() {
    ENTERED.store(true, Ordering::Relaxed);
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some(WORKER) {
        return;
    }
    let served = Assignment::parse(&arguments.collect::<Vec<_>>()).map_err(io::Error::other);
    let served = served.and_then(|assignment| assignment.serve());
    std::process::exit(i32::from(served.is_err()));
}

/// Time limits of workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// Limit for compiling one program, or one part of it.
    pub compile: Duration,
    /// Limit for running or timing one program, including loading and copies.
    pub run: Duration,
    /// Limit for starting a worker until its greeting arrives.
    pub start: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            compile: Duration::from_secs(60),
            run: Duration::from_secs(30),
            start: Duration::from_secs(60),
        }
    }
}
