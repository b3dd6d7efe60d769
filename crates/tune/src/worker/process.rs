//! A worker process, as seen by its parent.

use std::io::{Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;
use warploom_target::Device;

use super::protocol::{self, PROTOCOL, Request, Response};
use super::{Assignment, WorkerProgram};

/// Number of attempts to start a worker, and the pause between them. A GPU may need a moment after
/// a fault, and a machine that is out of memory recovers when another process ends.
const ATTEMPTS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(500);

/// How long to wait for a killed process to exit. A process whose GPU hangs may take arbitrarily
/// long.
const BURIAL: Duration = Duration::from_secs(5);

/// How many bytes of a worker's standard error are kept.
const LAST_WORDS: usize = 2000;

/// Why a worker did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The executable cannot be started.
    #[error("cannot start a worker, {program}: {error}")]
    Start {
        /// The worker executable.
        program: String,
        /// The error from the operating system.
        error: std::io::Error,
    },
    /// The worker has a different version.
    #[error(
        "the worker {program} has version {found}, but this program has version {}; use the same version",
        version()
    )]
    Version {
        /// The worker executable.
        program: String,
        /// The worker's version.
        found: String,
    },
    /// The worker reports that there is no GPU or no kernel compiler, or the GPUs differ.
    #[error("{0}")]
    Unable(String),
    /// The same GPU was requested twice.
    #[error("GPU {gpu} is listed twice; list each GPU once")]
    Repeated {
        /// The device number.
        gpu: usize,
    },
    /// The worker exited, timed out, or did not send a valid greeting.
    #[error("the worker {program} did not start: {why}")]
    Silent {
        /// The worker executable.
        program: String,
        /// How the worker failed.
        why: String,
    },
}

impl WorkerError {
    /// Whether a retry may succeed: the worker was lost while starting. An error that the worker
    /// reports itself, or a missing executable, is permanent.
    fn may_pass(&self) -> bool {
        use std::io::ErrorKind::{NotFound, PermissionDenied};
        match self {
            WorkerError::Silent { .. } => true,
            WorkerError::Start { error, .. } => !matches!(error.kind(), NotFound | PermissionDenied),
            WorkerError::Version { .. } | WorkerError::Unable(_) | WorkerError::Repeated { .. } => false,
        }
    }
}

/// Why a worker was lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Broken {
    Late(Duration),
    Ended(String),
    Nonsense(String),
}

/// A running worker. It is killed when dropped.
pub(super) struct Process {
    child: Child,
    requests: Option<Sender<Vec<u8>>>,
    responses: Receiver<std::io::Result<Response>>,
    last_words: Arc<Mutex<Vec<u8>>>,
    /// The device of a worker in the `run` role.
    pub device: Option<Device>,
}

/// The version that parent and worker must share.
pub(super) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

impl Process {
    /// Starts the first worker of a kind; retries if it is lost before it is ready.
    pub fn start(
        program: &WorkerProgram,
        assignment: &Assignment,
        patience: Duration,
    ) -> Result<Process, WorkerError> {
        Process::try_often(program, assignment, patience, WorkerError::may_pass)
    }

    /// Starts another worker of a kind that has worked before. Retries after any error, because it
    /// may be temporary.
    pub fn start_again(
        program: &WorkerProgram,
        assignment: &Assignment,
        patience: Duration,
    ) -> Result<Process, WorkerError> {
        Process::try_often(program, assignment, patience, |_| true)
    }

    fn try_often(
        program: &WorkerProgram,
        assignment: &Assignment,
        patience: Duration,
        may_pass: impl Fn(&WorkerError) -> bool,
    ) -> Result<Process, WorkerError> {
        let mut attempt = 1;
        loop {
            match Process::start_once(program, assignment, patience) {
                Err(error) if attempt < ATTEMPTS && may_pass(&error) => {
                    tracing::debug!(%error, attempt, "a worker did not start");
                }
                started => return started,
            }
            thread::sleep(PAUSE * attempt);
            attempt += 1;
        }
    }

    /// Starts a worker and waits until it is ready.
    fn start_once(
        program: &WorkerProgram,
        assignment: &Assignment,
        patience: Duration,
    ) -> Result<Process, WorkerError> {
        let name = program.program.display().to_string();
        let mut process = Process::spawn(program, assignment)
            .map_err(|error| WorkerError::Start { program: name.clone(), error })?;
        let why = match process.response(patience) {
            Ok(Response::Hello { protocol, version: found, device }) => {
                if protocol != PROTOCOL || found != version() {
                    return Err(WorkerError::Version { program: name, found });
                }
                process.device = device.map(|device| *device.0);
                return Ok(process);
            }
            Ok(Response::Unable(why)) => return Err(WorkerError::Unable(why)),
            Ok(_) => "it answered before a request".to_owned(),
            Err(broken) => broken.sentence(),
        };
        Err(WorkerError::Silent { program: name, why })
    }

    fn spawn(program: &WorkerProgram, assignment: &Assignment) -> std::io::Result<Process> {
        let mut command = Command::new(&program.program);
        command.args(&program.arguments).args(assignment.arguments());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // In its own process group the worker does not receive the interrupt key; the parent
        // handles it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn()?;
        let (requests, to_write) = channel();
        let (read, responses) = channel();
        let last_words = Arc::new(Mutex::new(Vec::new()));
        if let Some(stdin) = child.stdin.take() {
            thread::spawn(move || write_all(stdin, &to_write));
        }
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || read_all(stdout, &read));
        }
        if let Some(stderr) = child.stderr.take() {
            let last_words = last_words.clone();
            thread::spawn(move || listen(stderr, &last_words));
        }
        Ok(Process { child, requests: Some(requests), responses, last_words, device: None })
    }

    /// Sends a request and waits for the answer. After an error the process is unusable.
    pub fn ask(&mut self, request: &Request, patience: Duration) -> Result<Response, Broken> {
        let message = protocol::frame(request).map_err(|error| Broken::Nonsense(error.to_string()))?;
        // If the send fails, the response below fails too.
        let _ = self.requests.as_ref().map(|requests| requests.send(message));
        self.response(patience)
    }

    fn response(&mut self, patience: Duration) -> Result<Response, Broken> {
        match self.responses.recv_timeout(patience) {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(Broken::Nonsense(error.to_string())),
            Err(RecvTimeoutError::Timeout) => Err(Broken::Late(patience)),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.end();
                Err(Broken::Ended(self.obituary(status)))
            }
        }
    }

    /// Waits for the process to exit, and kills it if it does not.
    fn end(&mut self) -> Option<ExitStatus> {
        self.requests = None;
        let mut until = Instant::now() + BURIAL / 10;
        let mut killed = false;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            // A process that closed its pipes itself is about to exit, and its exit status is worth
            // waiting for.
            if Instant::now() > until {
                if killed {
                    return None;
                }
                let _ = self.child.kill();
                killed = true;
                until = Instant::now() + BURIAL;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn obituary(&self, status: Option<ExitStatus>) -> String {
        let how = status.map_or("it cannot be ended".to_owned(), |status| status.to_string());
        let words = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        match String::from_utf8_lossy(&words).trim() {
            "" => format!("the process ended ({how})"),
            words => format!("the process ended ({how}): {words}"),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        self.end();
    }
}

impl Broken {
    pub fn sentence(&self) -> String {
        match self {
            Broken::Late(patience) => format!("no answer within {} s", patience.as_secs_f64()),
            Broken::Ended(how) => how.clone(),
            Broken::Nonsense(what) => format!("the process sent an invalid answer: {what}"),
        }
    }
}

fn write_all(mut stdin: ChildStdin, messages: &Receiver<Vec<u8>>) {
    for message in messages {
        if stdin.write_all(&message).and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

fn read_all(mut stdout: ChildStdout, responses: &Sender<std::io::Result<Response>>) {
    loop {
        let read = protocol::read(&mut stdout);
        let last = !matches!(read, Ok(Some(_)));
        let Some(response) = read.transpose() else { return };
        if responses.send(response).is_err() || last {
            return;
        }
    }
}

fn listen(mut stderr: ChildStderr, last_words: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut buffer) {
        let mut words = last_words.lock().unwrap_or_else(PoisonError::into_inner);
        words.extend(&buffer[..count]);
        let excess = words.len().saturating_sub(LAST_WORDS);
        words.drain(..excess);
    }
}
