//! Processes that compile and run, which may be lost.
//!
//! A kernel may hang, or break everything that its process has of the GPU; a kernel compiler may never end. So each is done
//! by a process of its own, a *worker*, that can be killed: [`Compilers`] and [`ProcessMachine`] stand behind the seams of
//! [`measure`](crate::measure), talk to workers through pipes, end those that take too long, and start new ones. What was
//! lost is one candidate, and that is recorded.
//!
//! A worker is the same program in another role. The `warploom` program has a hidden command for it; a program of one's own
//! calls [`entry`] first in its `main`:
//!
//! ```no_run
//! warploom_tune::worker::entry();
//! // From here on, `OpenBench::open` measures in processes of this program.
//! ```
//!
//! A worker ends as soon as the pipe from its parent is closed, so none survives a parent that was killed.
//!
//! # The protocol
//!
//! Both ways, a message is the letters `WPLM`, its length (`u32`), a checksum (`u32`) and that many bytes of bincode; numbers
//! are little endian.
//! The worker says who it is, then answers one request after the other. Anything else that comes out of it is taken for the
//! end of its mind, and of its life.

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

pub use bench::{Bench, BenchOptions, OpenBench};
pub use compilers::Compilers;
pub use fake::Fake;
pub use machine::ProcessMachine;
pub use process::WorkerError;

/// The first argument that makes a program that calls [`entry`] a worker.
const WORKER: &str = "warploom-worker";

static ENTERED: AtomicBool = AtomicBool::new(false);

/// A program that is a worker when it is called with certain arguments, and those that say what it has to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerProgram {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl WorkerProgram {
    /// A program with the arguments that come before the assignment: `warploom` with `worker`.
    pub fn new(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = OsString>) -> WorkerProgram {
        WorkerProgram { program: program.into(), arguments: arguments.into_iter().collect() }
    }

    /// This program, if its `main` has called [`entry`].
    pub fn this() -> Option<WorkerProgram> {
        let entered = ENTERED.load(Ordering::Relaxed);
        let program = std::env::current_exe().ok().filter(|_| entered)?;
        Some(WorkerProgram::new(program, [OsString::from(WORKER)]))
    }
}

/// What a worker has to do, as arguments.
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

    /// The assignment of arguments: `compile`, or `run` and the number of a GPU.
    ///
    /// # Errors
    /// A sentence, if they are none.
    pub fn parse(arguments: &[String]) -> Result<Assignment, String> {
        let (role, rest) = match arguments {
            [role, rest @ ..] if role == "compile" => (Role::Compile, rest),
            [role, gpu, rest @ ..] if role == "run" => {
                let gpu = gpu.parse().map_err(|_| format!("`{gpu}` is no number of a GPU"))?;
                (Role::Run { gpu }, rest)
            }
            _ => return Err("a worker's role is `compile`, or `run` and the number of a GPU".to_owned()),
        };
        let fake = match rest {
            [] => None,
            [fake] => Some(fake.parse()?),
            [_, more, ..] => return Err(format!("`{more}` is one too many")),
        };
        Ok(Assignment { role, fake })
    }

    /// Works until the pipe from the parent is closed.
    ///
    /// # Errors
    /// If the parent cannot be answered.
    pub fn serve(&self) -> io::Result<()> {
        serve::serve(self)
    }
}

/// To be called first in the `main` of a program that measures: if the program was started as a worker, this works and does
/// not return.
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

/// How long workers may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// For one program, to compile.
    pub compile: Duration,
    /// For one program, to be run or timed, with loading and copies.
    pub run: Duration,
    /// To come up.
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
