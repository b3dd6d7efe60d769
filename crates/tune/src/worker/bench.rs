//! The test bench: the devices and compilers that candidates are measured with.

use std::num::NonZero;
use std::thread::available_parallelism;

use warploom_runtime::Gpu;
use warploom_target::Device;

use super::{Compilers, Fake, Patience, ProcessMachine, WorkerError, WorkerProgram};
use crate::measure::{Compile, GpuMachine, Machine, compile_here, versions};
use crate::tuning::Crew;

/// Options of a test bench.
#[derive(Clone, Debug, Default)]
pub struct BenchOptions {
    /// The executable to start as workers. `None` stands for this program, if it has called
    /// [`entry`](super::entry).
    pub worker: Option<WorkerProgram>,
    /// Device numbers of the GPUs, which must be of the same kind. If empty, the first GPU is used.
    pub gpus: Vec<usize>,
    /// A fake device to use in place of each GPU, for tests.
    pub fake: Option<Fake>,
    /// Time limits of workers.
    pub patience: Patience,
    /// Number of candidates compiled in parallel. 0 stands for one less than the number of cores.
    pub threads: usize,
}

/// An open test bench: devices that are ready, and compilers for them.
pub struct OpenBench {
    device: Device,
    threads: usize,
    versions: Vec<String>,
    backing: Backing,
}

enum Backing {
    Processes { compilers: Box<Compilers>, machine: Box<ProcessMachine>, others: Vec<ProcessMachine> },
    Here { gpu: Box<Gpu> },
}

/// A test bench, borrowed from an [`OpenBench`] or assembled by hand.
pub struct Bench<'a> {
    /// Description of the device; all machines are of this kind.
    pub device: &'a Device,
    /// Compiles kernels for the device.
    pub compile: Compile<'a>,
    /// The main machine. It alone runs the final rounds.
    pub machine: &'a mut dyn Machine,
    /// More machines of the same kind, which measure candidates in parallel.
    pub others: Vec<&'a mut dyn Machine>,
    /// Number of compiling threads.
    pub threads: usize,
    /// The versions recorded with every trial.
    pub versions: Vec<String>,
    /// Processes elsewhere that measure in place of the machines.
    pub crew: Option<&'a mut dyn Crew>,
}

/// The versions of trials on a GPU, or on a fake device.
pub fn versions_of(fake: bool) -> Vec<String> {
    let mut versions = versions();
    if fake {
        versions.truncate(2);
        versions.push("fake".to_owned());
    }
    versions
}

impl Bench<'_> {
    /// The main machine and all others.
    pub fn machines(&mut self) -> Vec<&mut dyn Machine> {
        let mut machines: Vec<&mut dyn Machine> = vec![&mut *self.machine];
        for machine in &mut self.others {
            machines.push(&mut **machine);
        }
        machines
    }
}

impl OpenBench {
    /// Opens devices and compilers: in worker processes if there is an executable for them,
    /// otherwise in this process, with one GPU.
    ///
    /// # Errors
    /// If there is no GPU or no kernel compiler, if the GPUs differ or one is named twice, or if no
    /// process can be started.
    pub fn open(options: &BenchOptions) -> Result<OpenBench, WorkerError> {
        let BenchOptions { gpus, fake, patience, .. } = options.clone();
        if let Some(gpu) = (1..gpus.len()).find(|n| gpus[..*n].contains(&gpus[*n])).map(|n| gpus[n]) {
            return Err(WorkerError::Repeated { gpu });
        }
        let (gpu, more) = gpus.split_first().map_or((0, &[][..]), |(gpu, more)| (*gpu, more));
        let cores = available_parallelism().map_or(2, NonZero::get);
        let threads = if options.threads > 0 { options.threads } else { cores.saturating_sub(1).max(1) };
        let versions = versions_of(fake.is_some());
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
                gpu.arch().map_err(unable)?;
                (gpu.device().clone(), Backing::Here { gpu: Box::new(gpu) })
            }
        };
        Ok(OpenBench { device, threads, versions, backing })
    }

    /// Description of the device; all GPUs are of this kind.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Number of GPUs.
    pub fn gpus(&self) -> usize {
        match &self.backing {
            Backing::Processes { others, .. } => 1 + others.len(),
            Backing::Here { .. } => 1,
        }
    }

    /// The versions recorded with every trial.
    pub fn versions(&self) -> &[String] {
        &self.versions
    }

    /// A note for the user if this process itself compiles and runs.
    pub fn note(&self) -> Option<&'static str> {
        match self.backing {
            Backing::Processes { .. } => None,
            Backing::Here { .. } => Some(
                "measuring in this process: a kernel that fails ends the run; call worker_entry() first in main to \
                 measure in separate processes",
            ),
        }
    }

    /// Borrows the bench to `measure`.
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
                crew: None,
            }),
            Backing::Here { gpu } => measure(&mut Bench {
                device,
                compile: &|program| compile_here(program, gpu.device()),
                machine: &mut GpuMachine::new(&**gpu),
                others: Vec::new(),
                threads,
                versions,
                crew: None,
            }),
        }
    }
}

/// Rejects GPUs of different kinds, because their times are not comparable.
fn check_kind(first: &Device, other: &Device) -> Result<(), WorkerError> {
    if first.fingerprint() == other.fingerprint() {
        return Ok(());
    }
    let (first, other) = (&first.name, &other.name);
    Err(WorkerError::Unable(format!("the GPUs differ ({first}, {other}); tune on one kind at a time")))
}
