//! A GPU that keeps recently used inputs in device memory.

use std::sync::{Arc, Weak};

use warploom_runtime::{DeviceBuffer, Error, Executable, Gpu, TimingOptions};
use warploom_target::Program;

use super::{Failure, Machine, Subject, Timed};
use crate::sample::Times;

/// Limit in bytes, applied separately to the uploaded inputs and to the free memory kept for the
/// next program.
const KEPT: usize = 24 << 30;

/// A GPU, driven from this process, on which candidates are measured.
pub struct GpuMachine<'a> {
    gpu: &'a Gpu,
    uploaded: Vec<Uploaded>,
}

/// The uploaded inputs of a subject. They are kept as long as the subject is alive.
struct Uploaded {
    subject: Weak<Subject>,
    inputs: Vec<DeviceBuffer>,
}

impl Uploaded {
    fn bytes(&self) -> usize {
        self.inputs.iter().map(DeviceBuffer::bytes).sum()
    }
}

impl<'a> GpuMachine<'a> {
    /// A machine for `gpu`, with no inputs uploaded.
    pub fn new(gpu: &'a Gpu) -> GpuMachine<'a> {
        GpuMachine { gpu, uploaded: Vec::new() }
    }

    /// The inputs of a subject in device memory, uploaded if necessary.
    fn inputs(&mut self, subject: &Arc<Subject>) -> Result<Vec<DeviceBuffer>, Error> {
        self.uploaded.retain(|uploaded| uploaded.subject.strong_count() > 0);
        let known = |uploaded: &&Uploaded| std::ptr::eq(uploaded.subject.as_ptr(), Arc::as_ptr(subject));
        if let Some(uploaded) = self.uploaded.iter().find(known) {
            return Ok(uploaded.inputs.clone());
        }
        while self.uploaded.iter().map(Uploaded::bytes).sum::<usize>() > KEPT {
            self.uploaded.remove(0);
        }
        if self.gpu.kept_bytes() > KEPT {
            self.gpu.trim()?;
        }
        let names = subject.pipeline().inputs().values().map(|decl| decl.name.as_str());
        let inputs = names.zip(subject.inputs()).map(|(name, bytes)| self.gpu.upload(name, bytes));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        self.uploaded.push(Uploaded { subject: Arc::downgrade(subject), inputs: inputs.clone() });
        Ok(inputs)
    }

    fn load(&mut self, subject: &Arc<Subject>, program: &Program) -> Result<Executable, Error> {
        let inputs = self.inputs(subject)?;
        let mut executable = self.gpu.load_with(program, &inputs)?;
        executable.set_params(subject.params())?;
        Ok(executable)
    }
}

impl Machine for GpuMachine<'_> {
    fn time(
        &mut self,
        subject: &Arc<Subject>,
        program: &Program,
        timing: &TimingOptions,
    ) -> Result<Timed, Failure> {
        let timing = self.load(subject, program)?.time(timing)?;
        let timed = timing.best().map(|best| {
            let times = Times { min: best.min_us, median: best.median_us, runs: best.runs as u32 };
            Timed { times, spread: best.spread }
        });
        timed.ok_or_else(|| Failure::Refused("it was not timed in any mode".to_owned()))
    }

    fn run(&mut self, subject: &Arc<Subject>, program: &Program) -> Result<Vec<Vec<u8>>, Failure> {
        Ok(self.load(subject, program)?.run_over_poison()?)
    }

    fn restore(&mut self) {
        self.uploaded.clear();
    }
}
