//! A device that keeps recently used inputs in its memory.

use std::sync::{Arc, Weak};

use warploom_runtime::{Driver, Error, Execute, Gpu, TimingOptions};
use warploom_target::Program;

use super::{Failure, Machine, Subject, Timed};
use crate::sample::Times;

/// Limit in bytes, applied separately to the uploaded inputs and to the free memory kept for the
/// next program.
const KEPT: usize = 24 << 30;

/// A device of any driver, used from this process, on which candidates are measured.
pub struct GpuMachine<'a, D: Driver = Gpu> {
    driver: &'a D,
    uploaded: Vec<Uploaded<D::Buffer>>,
}

/// The uploaded inputs of a subject. They are kept as long as the subject is alive.
struct Uploaded<B> {
    subject: Weak<Subject>,
    inputs: Vec<B>,
    bytes: usize,
}

impl<'a, D: Driver> GpuMachine<'a, D> {
    /// A machine for a device, with no inputs uploaded.
    pub fn new(driver: &'a D) -> GpuMachine<'a, D> {
        GpuMachine { driver, uploaded: Vec::new() }
    }

    /// The inputs of a subject in device memory, uploaded if necessary.
    fn inputs(&mut self, subject: &Arc<Subject>) -> Result<Vec<D::Buffer>, Error> {
        self.uploaded.retain(|uploaded| uploaded.subject.strong_count() > 0);
        let known = |uploaded: &&Uploaded<_>| std::ptr::eq(uploaded.subject.as_ptr(), Arc::as_ptr(subject));
        if let Some(uploaded) = self.uploaded.iter().find(known) {
            return Ok(uploaded.inputs.clone());
        }
        while self.uploaded.iter().map(|uploaded| uploaded.bytes).sum::<usize>() > KEPT {
            self.uploaded.remove(0);
        }
        self.driver.trim_beyond(KEPT)?;
        let names = subject.pipeline().inputs().values().map(|decl| decl.name.as_str());
        let inputs = names.zip(subject.inputs()).map(|(name, bytes)| self.driver.upload(name, bytes));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        let bytes = subject.inputs().iter().map(Vec::len).sum();
        self.uploaded.push(Uploaded { subject: Arc::downgrade(subject), inputs: inputs.clone(), bytes });
        Ok(inputs)
    }

    fn load(&mut self, subject: &Arc<Subject>, program: &Program) -> Result<D::Executable, Error> {
        let inputs = self.inputs(subject)?;
        let mut executable = self.driver.load_with(program, &inputs)?;
        executable.set_params(subject.params())?;
        Ok(executable)
    }
}

impl<D: Driver<Buffer: Send> + Sync> Machine for GpuMachine<'_, D> {
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
