//! `warploom fuzz --compile`: compiles the kernels of every case.

use std::sync::{Mutex, PoisonError};

use warploom::codegen::ir::Program;
use warploom::codegen::printer::{Build, PRINTER};
use warploom::fuzz::Failure;
use warploom::runtime::compiler::{self, Arch};
use warploom::target::Device;

use crate::error::Error;

/// Compiles kernels with NVRTC and counts spilled registers.
pub(super) struct Compiler {
    arch: Arch,
    counts: Mutex<Counts>,
}

report! {
    /// Statistics of all compilations.
    #[derive(Clone, Default)]
    pub(super) struct Counts = "fuzz compiled" {
        programs: u64, "the compiled programs";
        kernels: u64, "their kernels";
        spilling_kernels: u64, "the kernels that spill registers";
        spilled_bytes: u64, "what they spill";
        longest_seconds: f64, "the longest compilation";
    }
}

impl Compiler {
    /// Returns an error if NVRTC is missing.
    pub(super) fn new(device: &Device) -> Result<Compiler, Error> {
        let arch = Arch::for_device(device).map_err(|error| Error::Gpu(error.to_string()))?;
        Ok(Compiler { arch, counts: Mutex::default() })
    }

    /// Compiles the timing build of the kernels.
    pub(super) fn compile(&self, program: &Program) -> Result<(), Failure> {
        let compiled = compiler::compile_program(&PRINTER.describe(program, Build::Timing), self.arch);
        let (_, image) = compiled.map_err(|error| Failure::Device(error.to_string()))?;
        if let Some(image) = image {
            self.counts.lock().unwrap_or_else(PoisonError::into_inner).add(&image);
        }
        Ok(())
    }

    /// The statistics so far.
    pub(super) fn counts(&self) -> Counts {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Counts {
    fn add(&mut self, image: &compiler::Image) {
        self.programs += 1;
        self.kernels += image.kernels.len() as u64;
        let spills = image.kernels.values().filter(|kernel| kernel.spill_stores + kernel.spill_loads > 0);
        self.spilling_kernels += spills.count() as u64;
        self.spilled_bytes += image.spilled_bytes();
        self.longest_seconds = self.longest_seconds.max(image.time.as_secs_f64());
    }

    pub(super) fn text(&self) -> String {
        let Counts { programs, kernels, spilling_kernels, spilled_bytes, longest_seconds } = self;
        format!(
            "{programs} programs of {kernels} kernels compiled; {spilling_kernels} kernels spill {spilled_bytes} bytes; \
             the longest compilation took {longest_seconds:.1} s\n"
        )
    }
}
