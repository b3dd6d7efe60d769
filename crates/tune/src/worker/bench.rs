//! Everything that candidates are measured with.

use std::num::NonZero;
use std::thread::available_parallelism;

use warploom_runtime::Gpu;
use warploom_runtime::nvrtc::Arch;
use warploom_target::Device;

use super::{Compilers, Fake, Patience, ProcessMachine, WorkerError, WorkerProgram};
use crate::measure::{Compile, GpuMachine, Machine, compile_here, versions};

/// What to measure with.
#[derive(Clone, Debug, Default)]
pub struct BenchOptions {
    /// The program whose processes compile and run; this program, if none is given and it has called
    /// [`entry`](super::entry).
    pub worker: Option<WorkerProgram>,
    /// The numbers of the GPUs, which are of one kind; the first, if there are none.
    pub gpus: Vec<usize>,
    /// A made-up device in place of each GPU.
    pub fake: Option<Fake>,
    /// How long processes may take.
    pub patience: Patience,
    /// How many candidates are compiled at a time; one less than there are cores, if it is 0.
    pub threads: usize,
}

/// Devices that are ready, and compilers for them.
pub struct OpenBench {
    device: Device,
    threads: usize,
    versions: Vec<String>,
    backing: Backing,
}

enum Backing {
    Processes { compilers: Box<Compilers>, machine: Box<ProcessMachine>, others: Vec<ProcessMachine> },
    Here { gpu: Box<Gpu>, arch: Arch },
}

/// What candidates are measured with, borrowed from an [`OpenBench`] or put together by hand.
pub struct Bench<'a> {
    /// The device.
    pub device: &'a Device,
    /// What compiles.
    pub compile: Compile<'a>,
    /// What runs, and times the best against each other.
    pub machine: &'a mut dyn Machine,
    /// More of the same kind, to measure several candidates at a time.
    pub others: Vec<&'a mut dyn Machine>,
    /// How many threads compile.
    pub threads: usize,
    /// The versions that are recorded.
    pub versions: Vec<String>,
}

impl Bench<'_> {
    /// Everything that runs.
    pub fn machines(&mut self) -> Vec<&mut dyn Machine> {
        let mut machines: Vec<&mut dyn Machine> = vec![&mut *self.machine];
        for machine in &mut self.others {
            machines.push(&mut **machine);
        }
        machines
    }
}

impl OpenBench {
    /// Makes devices and compilers ready: in processes if there is a program for that, else in this one, with the first GPU.
    ///
    /// # Errors
    /// If there is no GPU or no kernel compiler, GPUs differ, or no process can be started.
    pub fn open(options: &BenchOptions) -> Result<OpenBench, WorkerError> {
        let BenchOptions { gpus, fake, patience, .. } = options.clone();
        if let Some(gpu) = (1..gpus.len()).find(|n| gpus[..*n].contains(&gpus[*n])).map(|n| gpus[n]) {
            return Err(WorkerError::Repeated { gpu });
        }
        let (gpu, more) = gpus.split_first().map_or((0, &[][..]), |(gpu, more)| (*gpu, more));
        let cores = available_parallelism().map_or(2, NonZero::get);
        let threads = if options.threads > 0 { options.threads } else { cores.saturating_sub(1).max(1) };
        let mut versions = versions();
        if fake.is_some() {
            versions.truncate(2);
            versions.push("fake".to_owned());
        }
        let worker = options.worker.clone().or_else(WorkerProgram::this);
        let (device, backing) = match worker {
            Some(program) => {
                let machine = ProcessMachine::start(program.clone(), gpu, fake.clone(), patience)?;
                let device = machine.device().clone();
                let start =
                    |gpu: &usize| ProcessMachine::start(program.clone(), *gpu, fake.clone(), patience);
                let others = more.iter().map(start).collect::<Result<Vec<_>, _>>()?;
                others.iter().try_for_each(|other| check_kind(&device, other.device()))?;
                let compilers = Compilers::start(program, device.clone(), fake, patience, threads)?;
                let (compilers, machine) = (Box::new(compilers), Box::new(machine));
                (device, Backing::Processes { compilers, machine, others })
            }
            None => {
                let unable = |error: warploom_runtime::Error| WorkerError::Unable(error.to_string());
                let gpu = Gpu::new(gpu).map_err(unable)?;
                let arch = gpu.arch().map_err(unable)?;
                (gpu.device().clone(), Backing::Here { gpu: Box::new(gpu), arch })
            }
        };
        Ok(OpenBench { device, threads, versions, backing })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The versions that are recorded with every trial.
    pub fn versions(&self) -> &[String] {
        &self.versions
    }

    /// What a user should know: that this process itself compiles and runs.
    pub fn note(&self) -> Option<&'static str> {
        match self.backing {
            Backing::Processes { .. } => None,
            Backing::Here { .. } => Some(
                "measuring in this process: a kernel that fails ends the run; call worker_entry() first in main to \
                 measure in processes that may fail",
            ),
        }
    }

    /// Measures something.
    pub fn with<T>(&mut self, measure: impl FnOnce(&mut Bench<'_>) -> T) -> T {
        let OpenBench { device, threads, versions, backing } = self;
        let (threads, versions) = (*threads, versions.clone());
        match backing {
            Backing::Processes { compilers, machine, others } => measure(&mut Bench {
                device,
                compile: &|program| compilers.compile(program),
                machine: &mut **machine,
                others: others.iter_mut().map(|machine| machine as &mut dyn Machine).collect(),
                threads,
                versions,
            }),
            Backing::Here { gpu, arch } => measure(&mut Bench {
                device,
                compile: &|program| compile_here(program, *arch),
                machine: &mut GpuMachine::new(gpu),
                others: Vec::new(),
                threads,
                versions,
            }),
        }
    }
}

/// Refuses GPUs whose times mean different things.
fn check_kind(first: &Device, other: &Device) -> Result<(), WorkerError> {
    if first.fingerprint() == other.fingerprint() {
        return Ok(());
    }
    let (first, other) = (&first.name, &other.name);
    Err(WorkerError::Unable(format!("the GPUs differ ({first}, {other}); tune on one kind at a time")))
}
