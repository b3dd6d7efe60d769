//! Compiles in a pool of worker processes.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use warploom_target::program::Code;
use warploom_target::{Device, Program};
use xxhash_rust::xxh3::xxh3_128;

use super::process::{Broken, Process};
use super::protocol::{self, Description, Request, Response};
use super::{Assignment, Fake, Patience, Role, WorkerError, WorkerProgram};
use crate::measure::{Compiled, Failure, by_parts};

/// Maximum size of the in-memory cache of compiled code, in bytes.
const KEPT: usize = 256 << 20;

/// A pool of processes that compile for one device.
pub struct Compilers {
    program: WorkerProgram,
    assignment: Assignment,
    device: Device,
    patience: Patience,
    /// Free slots of the pool, with their idle processes; `None` if a slot's process is not
    /// started.
    free: Mutex<Vec<Option<Process>>>,
    freed: Condvar,
    known: Mutex<Known>,
}

/// The programs compiled most recently. A candidate that is checked, timed and then selected as a
/// finalist is compiled each time, and candidates share most of their kernels.
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
        Code::Machine(code) => code.len(),
        Code::Virtual(text) | Code::Source { text, .. } => text.len(),
        Code::Parts(_) => 0,
    }
}

impl Compilers {
    /// Creates a pool of `processes` slots, and starts the first process to find errors early.
    ///
    /// # Errors
    /// If a worker does not start, or finds no kernel compiler.
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

    /// Compiles a program, kernel by kernel if it comes in parts. For each, waits for a free
    /// process and then at most for the time limit of one compilation. Many threads call it
    /// concurrently.
    ///
    /// # Errors
    /// If the compiler rejects the code, exceeds its time limit or crashes.
    pub fn compile(&self, program: &Program) -> Result<Compiled, Failure> {
        by_parts(program, |part| self.compile_part(part))
    }

    fn compile_part(&self, program: &Program) -> Result<Compiled, Failure> {
        let request =
            Request::Compile { program: program.clone(), device: Description(Box::new(self.device.clone())) };
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
        // Slots with a process are on top of the stack, so that they are reused first.
        let position = if process.is_some() { free.len() } else { 0 };
        free.insert(position, process);
        self.freed.notify_one();
        compiled
    }

    /// Sends a request to the process of a slot, which is started if necessary. Also returns the
    /// process if it is still usable.
    fn ask(&self, place: Option<Process>, request: &Request) -> (Option<Process>, Result<Compiled, Failure>) {
        let started = match place {
            Some(process) => Ok(process),
            None => Process::start_again(&self.program, &self.assignment, self.patience.start),
        };
        let mut process = match started {
            Ok(process) => process,
            Err(error) => {
                let why = format!("no compiler process can be started any more: {error}");
                return (None, Err(Failure::Lost(why)));
            }
        };
        let failure = match process.ask(request, self.patience.compile) {
            Ok(Response::Compiled(compiled)) => return (Some(process), compiled),
            Ok(_) => Failure::Crashed("the compiler process sent an unexpected answer".to_owned()),
            Err(broken @ Broken::Late(_)) => Failure::TimedOut(format!("compiling: {}", broken.sentence())),
            Err(broken) => Failure::Crashed(format!("compiling: {}", broken.sentence())),
        };
        (None, Err(failure))
    }
}

/// Ignores lock poisoning: the data is consistent even if a thread panicked while holding the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
