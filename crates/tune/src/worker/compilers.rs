//! Compiling in processes, as many at a time as ask.

use std::sync::{Mutex, PoisonError};

use warploom_target::{Device, Program};

use super::process::{Broken, Process};
use super::protocol::{Request, Response};
use super::{Assignment, Fake, Patience, Role, WorkerError, WorkerProgram};
use crate::measure::{Compiled, Failure};

/// Processes that compile for a device.
pub struct Compilers {
    program: WorkerProgram,
    assignment: Assignment,
    device: Device,
    patience: Patience,
    idle: Mutex<Vec<Process>>,
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
        Ok(Compilers { program, assignment, device, patience, idle: Mutex::new(vec![first]) })
    }

    /// Compiles; waits for as long as one program may take. Called by many threads at once, each has a process then.
    ///
    /// # Errors
    /// If the compiler refuses, takes too long or crashes.
    pub fn compile(&self, program: &Program) -> Result<Compiled, Failure> {
        let idle = self.idle().pop();
        let mut process = match idle {
            Some(process) => process,
            None => Process::start(&self.program, &self.assignment, self.patience.start)
                .map_err(|error| Failure::Lost(error.to_string()))?,
        };
        let request = Request::Compile { program: program.clone(), device: Box::new(self.device.clone()) };
        match process.ask(&request, self.patience.compile) {
            Ok(Response::Compiled(compiled)) => {
                self.idle().push(process);
                compiled
            }
            Ok(_) => Err(Failure::Crashed("the compiler's process answered something else".to_owned())),
            Err(broken @ Broken::Late(_)) => {
                Err(Failure::TimedOut(format!("compiling: {}", broken.sentence())))
            }
            Err(broken) => Err(Failure::Crashed(format!("compiling: {}", broken.sentence()))),
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Process>> {
        // The list is whole whatever happened to a thread that held it.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
