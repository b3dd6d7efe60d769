//! Compiling in processes, as many at a time as ask.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use warploom_target::{Device, Program};
use xxhash_rust::xxh3::xxh3_128;

use super::process::{Broken, Process};
use super::protocol::{self, Request, Response};
use super::{Assignment, Fake, Patience, Role, WorkerError, WorkerProgram};
use crate::measure::{Compiled, Failure};

/// Programs that are kept.
const KEPT: usize = 256;

/// Processes that compile for a device.
pub struct Compilers {
    program: WorkerProgram,
    assignment: Assignment,
    device: Device,
    patience: Patience,
    idle: Mutex<Vec<Process>>,
    known: Mutex<Known>,
}

/// What was compiled last. A candidate that is checked, timed and then among the best is compiled for each.
#[derive(Default)]
struct Known {
    compiled: HashMap<u128, Compiled>,
    order: VecDeque<u128>,
}

impl Known {
    fn add(&mut self, key: u128, compiled: &Compiled) {
        if self.compiled.insert(key, compiled.clone()).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > KEPT {
            self.order.pop_front().map(|oldest| self.compiled.remove(&oldest));
        }
    }
}

impl Compilers {
    /// Starts the first process, to see that it can be done.
    ///
    /// # Errors
    /// If a worker does not come up, or finds no kernel compiler.
    pub fn start(
        program: WorkerProgram,
        device: Device,
        fake: Option<Fake>,
        patience: Patience,
    ) -> Result<Compilers, WorkerError> {
        let assignment = Assignment { role: Role::Compile, fake };
        let first = Process::start(&program, &assignment, patience.start)?;
        Ok(Compilers {
            program,
            assignment,
            device,
            patience,
            idle: Mutex::new(vec![first]),
            known: Mutex::default(),
        })
    }

    /// Compiles; waits for as long as one program may take. Called by many threads at once, each has a process then.
    ///
    /// # Errors
    /// If the compiler refuses, takes too long or crashes.
    pub fn compile(&self, program: &Program) -> Result<Compiled, Failure> {
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
        let idle = lock(&self.idle).pop();
        let mut process = match idle {
            Some(process) => process,
            None => Process::start(&self.program, &self.assignment, self.patience.start)
                .map_err(|error| Failure::Lost(error.to_string()))?,
        };
        match process.ask(request, self.patience.compile) {
            Ok(Response::Compiled(compiled)) => {
                lock(&self.idle).push(process);
                compiled
            }
            Ok(_) => Err(Failure::Crashed("the compiler's process answered something else".to_owned())),
            Err(broken @ Broken::Late(_)) => {
                Err(Failure::TimedOut(format!("compiling: {}", broken.sentence())))
            }
            Err(broken) => Err(Failure::Crashed(format!("compiling: {}", broken.sentence()))),
        }
    }
}

/// What is behind a lock is whole whatever happened to a thread that held it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
