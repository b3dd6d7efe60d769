//! The work of a worker thread: turns a candidate into machine code.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use warploom_codegen::build::CODEGEN;
use warploom_codegen::ir;
use warploom_codegen::printer::{Build, PRINTER};
use warploom_runtime::{compiler, driver_version};
use warploom_schedule::Schedule;
use warploom_target::Program;

use super::{Candidate, Failure, Setup, Subject, at_once, both_builds};
use crate::sample::{KernelUse, Status};

/// A candidate and its compiled builds.
pub(super) struct Prepared {
    /// Its checks are those of its rewritten pipeline.
    pub candidate: Candidate,
    pub built: Built,
}

/// The compiled builds of a schedule, or the status that explains why it cannot run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Built {
    pub(crate) outcome: Result<Program, Status>,
    pub(crate) kernels: Vec<KernelUse>,
    pub(crate) compile_ms: f64,
    /// The checking and the timing build at the size of each check; `None` if the schedule is not
    /// legal there.
    pub(crate) checks: Vec<Option<[Program; 2]>>,
    /// Set if no program can be compiled any more.
    pub(crate) lost: Option<String>,
}

/// The versions of Warploom, its code generator, NVRTC and the driver; `?` for one that cannot be
/// determined.
pub fn versions() -> Vec<String> {
    let version = |version: Option<(i32, i32)>| version.map_or("?".into(), |(a, b)| format!("{a}.{b}"));
    vec![
        format!("warploom {}", env!("CARGO_PKG_VERSION")),
        format!("codegen {CODEGEN}"),
        format!("nvrtc {}", version(compiler::version().ok())),
        format!("driver {}", version(driver_version().ok())),
    ]
}

/// Lowers and compiles, and rewrites the checks as the schedule does; never panics.
pub(super) fn prepare(setup: &Setup<'_>, candidate: Candidate) -> Prepared {
    let subjects: Vec<&Arc<Subject>> = candidate.checks.iter().map(|check| &check.subject).collect();
    let built = build(setup, &candidate.subject, &candidate.schedule, &subjects);
    rewritten(candidate, built)
}

/// Replaces the checks of a candidate by those of its rewritten pipeline.
pub(super) fn rewritten(mut candidate: Candidate, mut built: Built) -> Prepared {
    let rewrites = &candidate.schedule.rewrites;
    let made = candidate.checks.iter().zip(&built.checks).map(|(check, builds)| match builds {
        Some(_) => check.rewritten(rewrites),
        None => Ok(check.clone()),
    });
    match made.collect() {
        Ok(checks) => candidate.checks = checks,
        Err(why) => {
            if built.outcome.is_ok() {
                built.outcome = Err(Failure::Refused(why).when_compiled());
            }
            built.checks = Vec::new();
        }
    }
    Prepared { candidate, built }
}

/// Lowers and compiles a schedule for a subject, and for the sizes at which it is checked; never
/// panics.
pub fn build(
    setup: &Setup<'_>,
    subject: &Arc<Subject>,
    schedule: &Schedule,
    checks: &[&Arc<Subject>],
) -> Built {
    let mut built = Built {
        outcome: Err(Status::NotLowered("the compiler panicked".into())),
        kernels: Vec::new(),
        compile_ms: 0.0,
        checks: Vec::new(),
        lost: None,
    };
    // Lowering must not panic. If it does, the candidate keeps the status set above, and the others
    // continue.
    let _ = catch_unwind(AssertUnwindSafe(|| built.fill(setup, subject, schedule, checks)));
    built
}

impl Built {
    /// The result of a candidate that cannot be built, for a known reason.
    pub fn not(status: Status) -> Built {
        Built { outcome: Err(status), kernels: Vec::new(), compile_ms: 0.0, checks: Vec::new(), lost: None }
    }

    /// The status of a schedule that cannot run.
    pub fn refusal(&self) -> Option<&Status> {
        self.outcome.as_ref().err()
    }

    /// Why no program can be compiled any more, if so.
    pub fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// The programs that will run: for timing first, then those of the checks.
    pub fn programs_mut(&mut self) -> impl Iterator<Item = &mut Program> {
        let checks = self.checks.iter_mut().flatten().flatten();
        self.outcome.as_mut().ok().into_iter().chain(checks)
    }

    fn fill(
        &mut self,
        setup: &Setup<'_>,
        subject: &Arc<Subject>,
        schedule: &Schedule,
        checks: &[&Arc<Subject>],
    ) {
        let lowered = subject.build(schedule, setup.device);
        let lowered = lowered.map_err(|error| Status::NotLowered(error.to_string()));
        self.outcome = lowered.and_then(|lowered| self.compile(setup, &lowered));
        if self.outcome.is_ok() {
            let built = at_once(checks.to_vec(), |check| for_check(setup, check, schedule));
            match built.and_then(|checks| checks.into_iter().collect::<Result<Vec<_>, Failure>>()) {
                Ok(checks) => self.checks = checks,
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
        let source = PRINTER.describe_in_parts(lowered, Build::Timing);
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
}

/// Both builds of a schedule at the size of a check; `None` if it is not legal at that size.
fn for_check(
    setup: &Setup<'_>,
    subject: &Subject,
    schedule: &Schedule,
) -> Result<Option<[Program; 2]>, Failure> {
    let Ok(lowered) = subject.build(schedule, setup.device) else {
        return Ok(None);
    };
    both_builds(&lowered, setup.compile).map(Some)
}
