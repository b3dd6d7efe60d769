//! Compiles the kernels of every case.

use std::sync::{Mutex, PoisonError};

use warploom::codegen::ir::Program;
use warploom::codegen::printer::{Build, PRINTER};
use warploom::fuzz::Failure;
use warploom::runtime;
use warploom::runtime::compiler::{self, Arch};
use warploom::target::Device;

/// Compiles kernels with NVRTC and counts spilled registers.
pub struct Compiler {
    arch: Arch,
    counts: Mutex<Counts>,
}

report! {
    /// Statistics of all compilations.
    #[derive(Clone, Default)]
    pub struct Counts = "fuzz compiled" {
        programs: u64, "the compiled programs";
        kernels: u64, "their kernels";
        spilling_kernels: u64, "the kernels that spill registers";
        spilled_bytes: u64, "what they spill";
        longest_seconds: f64, "the longest compilation";
    }
}

impl Compiler {
    /// A compiler for a device.
    ///
    /// # Errors
    /// If NVRTC is missing.
    pub fn new(device: &Device) -> Result<Compiler, runtime::Error> {
        let arch = Arch::for_device(device)?;
        Ok(Compiler { arch, counts: Mutex::default() })
    }

    /// Compiles the timing build of the kernels.
    ///
    /// # Errors
    /// If NVRTC refuses them.
    pub fn compile(&self, program: &Program) -> Result<(), Failure> {
        let compiled = compiler::compile_program(&PRINTER.describe(program, Build::Timing), self.arch);
        let (_, image) = compiled.map_err(|error| Failure::Device(error.to_string()))?;
        if let Some(image) = image {
            self.counts.lock().unwrap_or_else(PoisonError::into_inner).add(&image);
        }
        Ok(())
    }

    /// The statistics so far.
    pub fn counts(&self) -> Counts {
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

    /// The statistics for a terminal.
    pub fn text(&self) -> String {
        let Counts { programs, kernels, spilling_kernels, spilled_bytes, longest_seconds } = self;
        format!(
            "{programs} programs of {kernels} kernels compiled; {spilling_kernels} kernels spill {spilled_bytes} bytes; \
             the longest compilation took {longest_seconds:.1} s\n"
        )
    }
}
