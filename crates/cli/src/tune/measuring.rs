//! The flags for measuring on GPUs.

use std::ffi::OsString;
use std::time::Duration;

use warploom::target::Device;
use warploom::tune::worker::{BenchOptions, Fake, OpenBench, Patience, WorkerError, WorkerProgram};

use crate::device;
use crate::error::Error;
use crate::report::Format;
use crate::search::duration;

/// The GPU and the processes that use it.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Measuring")]
pub(crate) struct Measuring {
    /// The number of the GPU, or the numbers of several identical GPUs, as 0,1
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_values_t = [0])]
    gpu: Vec<usize>,
    /// Number of processes that compile (default: one less than there are cores)
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    threads: usize,
    /// Time limit for compiling one program
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s")]
    compile_timeout: Duration,
    /// Time limit for running and timing one program
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    run_timeout: Duration,
    /// A fake device that replaces the GPU, and its faults
    #[arg(long, value_name = "DEVICE", hide = true)]
    pub(crate) fake: Option<Fake>,
}

impl Measuring {
    /// The device that would be measured on. Without a GPU, the one that kernels are generated for by default.
    pub(crate) fn device(&self, format: Format) -> Result<Device, Error> {
        match self.open() {
            Ok(bench) => Ok(bench.device().clone()),
            Err(Error::NoGpu(_)) => device::find(device::AUTO, format),
            Err(error) => Err(error),
        }
    }

    /// The number of processes that compile; `None` if it is not said.
    pub(crate) fn threads(&self) -> Option<usize> {
        (self.threads > 0).then_some(self.threads)
    }

    /// The time limits of compiling and running.
    pub(crate) fn patience(&self) -> Patience {
        Patience { compile: self.compile_timeout, run: self.run_timeout, ..Patience::default() }
    }

    /// Starts the worker processes that own the GPU and compile for it.
    pub(crate) fn open(&self) -> Result<OpenBench, Error> {
        self.open_on(&self.gpu)
    }

    /// The same on other GPUs than those of the command line.
    pub(crate) fn open_on(&self, gpus: &[usize]) -> Result<OpenBench, Error> {
        let program = std::env::current_exe()?;
        let options = BenchOptions {
            worker: Some(WorkerProgram::new(program, [OsString::from("worker")])),
            gpus: gpus.to_vec(),
            fake: self.fake.clone(),
            patience: self.patience(),
            threads: self.threads,
        };
        OpenBench::open(&options).map_err(|error| match error {
            WorkerError::Unable(why) => Error::NoGpu(why),
            WorkerError::Repeated { gpu } => Error::RepeatedGpu { gpu },
            error => Error::Gpu(error.to_string()),
        })
    }
}
