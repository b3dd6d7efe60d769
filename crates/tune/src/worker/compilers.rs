//! Compiling in processes, some at a time.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use warploom_target::program::Code;
use warploom_target::{Device, Program};
use xxhash_rust::xxh3::xxh3_128;

use super::process::{Broken, Process};
use super::protocol::{self, Request, Response};
use super::{Assignment, Fake, Patience, Role, WorkerError, WorkerProgram};
use crate::measure::{Compiled, Failure, by_parts};

/// Bytes of machine code that are kept.
const KEPT: usize = 256 << 20;

/// Processes that compile for a device.
pub struct Compilers {
    program: WorkerProgram,
    assignment: Assignment,
    device: Device,
    patience: Patience,
    /// Places at which nobody compiles, with the processes that are there.
    free: Mutex<Vec<Option<Process>>>,
    freed: Condvar,
    known: Mutex<Known>,
}

/// What was compiled last. A candidate that is checked, timed and then among the best is compiled for each, and most of its
/// kernels are those of other candidates too.
#[derive(Default)]
struct Known {
    compiled: HashMap<u128, Compiled>,
    order: VecDeque<u128>,
    bytes: usize,
}

impl Known {
    fn add(&mut self, key: u128, compiled: &Compiled) {
        if self.compiled.insert(key, compiled.clone()).is_none() {
            self.order.push_back(key);
            self.bytes += bytes(compiled);
        }
        while self.bytes > KEPT
            && let Some(oldest) = self.order.pop_front().and_then(|oldest| self.compiled.remove(&oldest))
        {
            self.bytes -= bytes(&oldest);
        }
    }
}

fn bytes(compiled: &Compiled) -> usize {
    match &compiled.program.code {
        Code::Cubin(code) => code.len(),
        Code::Ptx(text) | Code::Source { text, .. } => text.len(),
        Code::Parts(_) => 0,
    }
}

impl Compilers {
    /// Makes room for some processes, and starts the first, to see that it can be done.
    ///
    /// # Errors
    /// If a worker does not come up, or finds no kernel compiler.
    pub fn start(
        program: WorkerProgram,
        device: Device,
        fake: Option<Fake>,
        patience: Patience,
        processes: usize,
    ) -> Result<Compilers, WorkerError> {
        let assignment = Assignment { role: Role::Compile, fake };
        let first = Process::start(&program, &assignment, patience.start)?;
        let mut free: Vec<Option<Process>> = (1..processes).map(|_| None).collect();
        free.push(Some(first));
        Ok(Compilers {
            program,
            assignment,
            device,
            patience,
            free: Mutex::new(free),
            freed: Condvar::new(),
            known: Mutex::default(),
        })
    }

    /// Compiles, one kernel after the other if the program comes in parts; waits for a free process for each, and then for as
    /// long as one may take. Called by many threads at once.
    ///
    /// # Errors
    /// If the compiler refuses, takes too long or crashes.
    pub fn compile(&self, program: &Program) -> Result<Compiled, Failure> {
        by_parts(program, |part| self.compile_part(part))
    }

    fn compile_part(&self, program: &Program) -> Result<Compiled, Failure> {
        let request = Request::Compile { program: program.clone(), device: Box::new(self.device.clone()) };
        let key = protocol::frame(&request).map(|message| xxh3_128(&message));
        let key = key.map_err(|error| Failure::Refused(error.to_string()))?;
        if let Some(compiled) = lock(&self.known).compiled.get(&key) {
            return Ok(compiled.clone());
        }
        let compiled = self.compile_anew(&request)?;
        lock(&self.known).add(key, &compiled);
        Ok(compiled)
    }

    fn compile_anew(&self, request: &Request) -> Result<Compiled, Failure> {
        let mut free = lock(&self.free);
        let place = loop {
            match free.pop() {
                Some(place) => break place,
                None => free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(free);
        let (process, compiled) = self.ask(place, request);
        let mut free = lock(&self.free);
        // Processes lie above places without one, so that they are taken first.
        let position = if process.is_some() { free.len() } else { 0 };
        free.insert(position, process);
        self.freed.notify_one();
        compiled
    }

    /// Asks the process of a place, which is started if there is none, and gives it back if it is still of use.
    fn ask(&self, place: Option<Process>, request: &Request) -> (Option<Process>, Result<Compiled, Failure>) {
        let started = match place {
            Some(process) => Ok(process),
            None => Process::start_again(&self.program, &self.assignment, self.patience.start),
        };
        let mut process = match started {
            Ok(process) => process,
            Err(error) => {
                let why = format!("no compiler's process can be started any more: {error}");
                return (None, Err(Failure::Lost(why)));
            }
        };
        let failure = match process.ask(request, self.patience.compile) {
            Ok(Response::Compiled(compiled)) => return (Some(process), compiled),
            Ok(_) => Failure::Crashed("the compiler's process answered something else".to_owned()),
            Err(broken @ Broken::Late(_)) => Failure::TimedOut(format!("compiling: {}", broken.sentence())),
            Err(broken) => Failure::Crashed(format!("compiling: {}", broken.sentence())),
        };
        (None, Err(failure))
    }
}

/// What is behind a lock is whole whatever happened to a thread that held it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
