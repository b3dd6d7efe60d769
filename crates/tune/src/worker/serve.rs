//! The worker side: answers requests.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use warploom_lang::Pipeline;
use warploom_runtime::Gpu;
use warploom_runtime::compiler;
use warploom_target::{Device, Program};

use super::bytes::Bytes;
use super::process::version;
use super::protocol::{self, Description, PROTOCOL, Request, Response, SubjectMessage};
use super::{Assignment, Role};
use crate::measure::{Compiled, Failure, GpuMachine, Machine, Subject, compile_here};

/// Time allowed for the driver's cleanup at process exit, when nobody waits for it.
const FAREWELL: Duration = Duration::from_secs(2);

/// Stack size: compiling recurses as deeply as expressions nest.
const STACK_BYTES: usize = 64 << 20;

/// Answers requests from standard input until it closes.
pub(super) fn serve(assignment: &Assignment) -> io::Result<()> {
    let (sender, requests) = channel();
    thread::spawn(move || listen(&sender));
    let assignment = assignment.clone();
    let work = move || match (assignment.role, &assignment.fake) {
        (Role::Compile, None) => match compiler::version() {
            Ok(_) => compile_all(&requests, &compile),
            Err(error) => answer(&Response::Unable(error.to_string())),
        },
        (Role::Compile, Some(fake)) => compile_all(&requests, &|program, _| fake.compile(program)),
        (Role::Run { gpu }, None) => match Gpu::new(gpu) {
            Ok(gpu) => run_all(&requests, gpu.device(), &mut GpuMachine::new(&gpu)),
            Err(error) => answer(&Response::Unable(error.to_string())),
        },
        (Role::Run { .. }, Some(fake)) => run_all(&requests, &fake.device(), &mut fake.machine()),
    };
    let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(work)?;
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the worker panicked")))
}

/// Forwards requests. When the pipe closes, the parent is gone, so the process exits at once,
/// whatever it is doing.
fn listen(requests: &Sender<Request>) {
    let mut stdin = io::stdin().lock();
    while let Ok(Some(request)) = protocol::read(&mut stdin) {
        if requests.send(request).is_err() {
            break;
        }
    }
    thread::spawn(|| {
        thread::sleep(FAREWELL);
        std::process::abort();
    });
    std::process::exit(0);
}

fn answer(response: &Response) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    protocol::write(&mut stdout, response)?;
    stdout.flush()
}

fn hello(device: Option<Device>) -> io::Result<()> {
    let device = device.map(|device| Description(Box::new(device)));
    answer(&Response::Hello { protocol: PROTOCOL, version: version().to_owned(), device })
}

fn compile(program: &Program, device: &Device) -> Result<Compiled, Failure> {
    compile_here(program, device)
}

fn compile_all(
    requests: &Receiver<Request>,
    compile: &dyn Fn(&Program, &Device) -> Result<Compiled, Failure>,
) -> io::Result<()> {
    hello(None)?;
    for request in requests {
        let compiled = match request {
            Request::Compile { program, device } => compile(&program, &device.0),
            _ => Err(Failure::Refused("this worker compiles".to_owned())),
        };
        answer(&Response::Compiled(compiled))?;
    }
    Ok(())
}

fn run_all(requests: &Receiver<Request>, device: &Device, machine: &mut dyn Machine) -> io::Result<()> {
    hello(Some(device.clone()))?;
    let mut subjects: HashMap<u64, Arc<Subject>> = HashMap::new();
    let mut inputs: Vec<Vec<u8>> = Vec::new();
    let unknown = || Failure::Refused("there is no such subject".to_owned());
    for request in requests {
        let response = match request {
            Request::Input { starts, part: Bytes(part) } => {
                match inputs.last_mut().filter(|_| !starts) {
                    Some(input) => input.extend(part),
                    None => inputs.push(part),
                }
                Response::Done(Ok(()))
            }
            Request::Subject { number, subject } => {
                let subject = read(*subject, std::mem::take(&mut inputs));
                Response::Done(subject.map(|subject| {
                    subjects.insert(number, Arc::new(subject));
                }))
            }
            Request::Forget { number } => {
                subjects.remove(&number);
                Response::Done(Ok(()))
            }
            Request::Time { subject, program, timing } => {
                let subject = subjects.get(&subject).ok_or_else(unknown);
                Response::Timed(subject.and_then(|subject| machine.time(subject, &program, &timing)))
            }
            Request::Run { subject, program } => {
                let subject = subjects.get(&subject).ok_or_else(unknown);
                let outputs = subject.and_then(|subject| machine.run(subject, &program));
                Response::Outputs(outputs.map(|outputs| outputs.into_iter().map(Bytes).collect()))
            }
            Request::Compile { .. } => {
                Response::Compiled(Err(Failure::Refused("this worker runs".to_owned())))
            }
        };
        answer(&response)?;
    }
    Ok(())
}

fn read(message: SubjectMessage, inputs: Vec<Vec<u8>>) -> Result<Subject, Failure> {
    let SubjectMessage { pipeline, sizes, params } = message;
    let pipeline = Pipeline::from_json(&pipeline).map_err(|error| Failure::Refused(error.to_string()))?;
    let request = sizes.realise(&pipeline);
    Ok(Subject::from_parts(pipeline, request, inputs, params))
}
