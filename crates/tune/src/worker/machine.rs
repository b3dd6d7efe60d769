//! A GPU that is driven by a worker process.

use std::sync::{Arc, Weak};
use std::time::Duration;

use warploom_runtime::TimingOptions;
use warploom_target::{Device, Program};

use super::bytes::Bytes;
use super::process::{Broken, Process};
use super::protocol::{Request, Response, SubjectMessage};
use super::{Assignment, Fake, Patience, Role, WorkerError, WorkerProgram};
use crate::measure::{Failure, Machine, Subject, Timed};

/// Bytes of an input in one message, small enough for the copies of sending to be negligible.
const PART: usize = 64 << 20;

/// A GPU whose programs run in a worker process. A lost process is replaced by a new one.
pub struct ProcessMachine {
    program: WorkerProgram,
    assignment: Assignment,
    patience: Patience,
    device: Device,
    running: Option<Running>,
    lost: u64,
}

/// A process and the subjects that were sent to it.
struct Running {
    process: Process,
    subjects: Vec<(u64, Weak<Subject>)>,
    next: u64,
}

impl ProcessMachine {
    /// Starts a worker process that owns a GPU.
    ///
    /// # Errors
    /// If the worker does not start, or has no such GPU.
    pub fn start(
        program: WorkerProgram,
        gpu: usize,
        fake: Option<Fake>,
        patience: Patience,
    ) -> Result<ProcessMachine, WorkerError> {
        let assignment = Assignment { role: Role::Run { gpu }, fake };
        let process = Process::start(&program, &assignment, patience.start)?;
        let device = process.device.clone();
        let device = device.ok_or_else(|| WorkerError::Unable("the worker has no device".to_owned()))?;
        let running = Some(Running::new(process));
        Ok(ProcessMachine { program, assignment, patience, device, running, lost: 0 })
    }

    /// The GPU's description, as the worker reported it.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Number of processes lost so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Sends a request about a subject. A process that fails to answer is replaced at the next
    /// request.
    fn ask(
        &mut self,
        subject: &Arc<Subject>,
        request: impl FnOnce(u64) -> Request,
    ) -> Result<Response, Failure> {
        let patience = self.patience;
        let mut running = match self.running.take() {
            Some(running) => running,
            None => self.restart()?,
        };
        let answered = running
            .subject(subject, patience.run)
            .and_then(|number| running.process.ask(&request(number), patience.run));
        match answered {
            Ok(response) => {
                // After a fault the process is unusable.
                if !is_fault(&response) {
                    self.running = Some(running);
                } else {
                    self.lost += 1;
                }
                Ok(response)
            }
            Err(broken) => {
                self.lost += 1;
                let sentence = format!("running: {}", broken.sentence());
                tracing::debug!(sentence, "lost a process");
                Err(match broken {
                    Broken::Late(_) => Failure::TimedOut(sentence),
                    Broken::Ended(_) | Broken::Nonsense(_) => Failure::Crashed(sentence),
                })
            }
        }
    }

    fn restart(&self) -> Result<Running, Failure> {
        Process::start_again(&self.program, &self.assignment, self.patience.start)
            .map(Running::new)
            .map_err(|error| Failure::Lost(format!("the GPU process cannot be started again: {error}")))
    }
}

impl Running {
    fn new(process: Process) -> Running {
        Running { process, subjects: Vec::new(), next: 0 }
    }

    /// The number of a subject in the process; the subject is sent if it is new. Subjects that were
    /// dropped here are removed there too.
    fn subject(&mut self, subject: &Arc<Subject>, patience: Duration) -> Result<u64, Broken> {
        let known = |(_, known): &&(u64, Weak<Subject>)| std::ptr::eq(known.as_ptr(), Arc::as_ptr(subject));
        if let Some((number, _)) = self.subjects.iter().find(known) {
            return Ok(*number);
        }
        let (alive, dead): (Vec<_>, Vec<_>) =
            self.subjects.drain(..).partition(|(_, known)| known.strong_count() > 0);
        self.subjects = alive;
        for (number, _) in dead {
            self.process.ask(&Request::Forget { number }, patience)?;
        }
        for input in subject.inputs() {
            let mut parts = input.chunks(PART);
            // An input without bytes also has a part.
            let first = parts.next().unwrap_or_default();
            for (starts, part) in [(true, first)].into_iter().chain(parts.map(|part| (false, part))) {
                self.process.ask(&Request::Input { starts, part: Bytes(part.to_vec()) }, patience)?;
            }
        }
        let number = self.next;
        self.next += 1;
        let message = SubjectMessage {
            pipeline: subject.pipeline().to_json(),
            sizes: subject.sizes(),
            params: subject.params().to_vec(),
        };
        self.process.ask(&Request::Subject { number, subject: Box::new(message) }, patience)?;
        self.subjects.push((number, Arc::downgrade(subject)));
        Ok(number)
    }
}

fn is_fault(response: &Response) -> bool {
    let failure = match response {
        Response::Timed(Err(failure)) | Response::Outputs(Err(failure)) => failure,
        _ => return false,
    };
    matches!(failure, Failure::Fault(_))
}

/// Converts a failure inside the process to one as seen from outside.
fn outside(failure: Failure) -> Failure {
    match failure {
        Failure::Fault(message) => Failure::Crashed(message),
        other => other,
    }
}

fn odd() -> Failure {
    Failure::Crashed("the GPU process sent an unexpected answer".to_owned())
}

impl Machine for ProcessMachine {
    fn time(
        &mut self,
        subject: &Arc<Subject>,
        program: &Program,
        timing: &TimingOptions,
    ) -> Result<Timed, Failure> {
        let request = |subject| Request::Time { subject, program: program.clone(), timing: timing.clone() };
        match self.ask(subject, request)? {
            Response::Timed(timed) => timed.map_err(outside),
            _ => Err(odd()),
        }
    }

    fn run(&mut self, subject: &Arc<Subject>, program: &Program) -> Result<Vec<Vec<u8>>, Failure> {
        match self.ask(subject, |subject| Request::Run { subject, program: program.clone() })? {
            Response::Outputs(outputs) => {
                Ok(outputs.map_err(outside)?.into_iter().map(|Bytes(bytes)| bytes).collect())
            }
            _ => Err(odd()),
        }
    }

    fn restore(&mut self) {
        self.running = None;
    }
}
