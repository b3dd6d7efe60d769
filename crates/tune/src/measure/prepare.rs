//! The work of a worker thread: turns a candidate into machine code.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use warploom_codegen::cuda::{Build, describe_in_parts};
use warploom_codegen::ir;
use warploom_runtime::{driver_version, nvrtc};
use warploom_target::Program;

use super::{Candidate, Check, Failure, Setup, at_once, both_builds};
use crate::sample::{KernelUse, Status};
use warploom_codegen::build::CODEGEN;

/// A compiled candidate, or the status that explains why it cannot run.
pub(super) struct Prepared {
    pub candidate: Candidate,
    pub outcome: Result<Program, Status>,
    pub kernels: Vec<KernelUse>,
    pub compile_ms: f64,
    pub checks: Vec<PreparedCheck>,
    /// Set if no program can be compiled any more.
    pub lost: Option<String>,
}

/// Both builds of a schedule at the size of a check.
pub(super) struct PreparedCheck {
    pub check: Arc<Check>,
    pub checking: Program,
    pub timing: Program,
}

/// The versions of Warploom, its code generator, NVRTC and the driver; `?` for one that cannot be
/// determined.
pub fn versions() -> Vec<String> {
    let version = |version: Option<(i32, i32)>| version.map_or("?".into(), |(a, b)| format!("{a}.{b}"));
    vec![
        format!("warploom {}", env!("CARGO_PKG_VERSION")),
        format!("codegen {CODEGEN}"),
        format!("nvrtc {}", version(nvrtc::version().ok())),
        format!("driver {}", version(driver_version().ok())),
    ]
}

/// Lowers and compiles; never panics.
pub(super) fn prepare(setup: &Setup<'_>, candidate: Candidate) -> Prepared {
    let mut prepared = Prepared {
        candidate,
        outcome: Err(Status::NotLowered("the compiler panicked".into())),
        kernels: Vec::new(),
        compile_ms: 0.0,
        checks: Vec::new(),
        lost: None,
    };
    // Lowering must not panic. If it does, the candidate keeps the status set above, and the others
    // continue.
    let _ = catch_unwind(AssertUnwindSafe(|| prepared.fill(setup)));
    prepared
}

impl Prepared {
    fn fill(&mut self, setup: &Setup<'_>) {
        let subject = &self.candidate.subject;
        let lowered = subject.build(&self.candidate.schedule, setup.device);
        let lowered = lowered.map_err(|error| Status::NotLowered(error.to_string()));
        self.outcome = lowered.and_then(|lowered| self.compile(setup, &lowered));
        if self.outcome.is_ok() {
            let checks = self.candidate.checks.iter().collect();
            let prepared = at_once(checks, |check| self.prepare_check(setup, check));
            match prepared.and_then(|checks| checks.into_iter().collect::<Result<Vec<_>, Failure>>()) {
                Ok(checks) => self.checks = checks.into_iter().flatten().collect(),
                Err(failure) => self.outcome = Err(self.failed(failure)),
            }
        }
    }

    /// The status to record for a failure to compile; also notes that compilers are lost.
    fn failed(&mut self, failure: Failure) -> Status {
        if let Failure::Lost(why) = &failure {
            self.lost = Some(why.clone());
        }
        failure.when_compiled()
    }

    /// Compiles the timing build and stores the compiler's resource report.
    fn compile(&mut self, setup: &Setup<'_>, lowered: &ir::Program) -> Result<Program, Status> {
        let source = describe_in_parts(lowered, Build::Timing);
        let compiled = (setup.compile)(&source).map_err(|failure| self.failed(failure))?;
        self.compile_ms = compiled.time.as_secs_f64() * 1e3;
        let shared = |name: &str| source.kernels.iter().find(|kernel| kernel.entry == *name);
        let kernels = compiled.kernels.iter().map(|(name, used)| KernelUse {
            name: name.clone(),
            registers: used.registers,
            spill_stores: used.spill_stores,
            spill_loads: used.spill_loads,
            shared: shared(name).map_or(0, |kernel| kernel.shared_bytes),
        });
        self.kernels = kernels.collect();
        let spilled: u64 = self.kernels.iter().map(KernelUse::spilled_bytes).sum();
        if setup.skip_spilling && spilled > 0 {
            return Err(Status::Spilled(format!("{spilled} bytes of registers are spilled to memory")));
        }
        Ok(compiled.program)
    }

    /// Both builds of the schedule at the size of a check; `None` if the schedule is not legal at
    /// that size.
    fn prepare_check(&self, setup: &Setup<'_>, check: &Arc<Check>) -> Result<Option<PreparedCheck>, Failure> {
        let schedule = &self.candidate.schedule;
        let Ok(lowered) = check.subject.build(schedule, setup.device) else {
            return Ok(None);
        };
        let check = check.rewritten(&schedule.rewrites).map_err(Failure::Refused)?;
        let [checking, timing] = both_builds(&lowered, setup.compile)?;
        Ok(Some(PreparedCheck { check, checking, timing }))
    }
}
