//! Fuzzing with schedules of the search, with a compiler, and on a GPU.

mod compiled;
pub mod mutants;
pub mod replay;
pub mod report;
mod searched;

use std::path::Path;
use std::time::Duration;

use warploom::check::run_build;
use warploom::codegen::ir::Program;
use warploom::codegen::printer::Build;
use warploom::fuzz::{Case, CaseError, Checker, Failure, FailureKind, Found, Run, Seen, Verdict, reduce};
use warploom::runtime::Gpu;
use warploom::target::Device;
use warploom::tune::workload::Workload;

use report::Written;

pub use compiled::{Compiler, Counts as Compiled};
pub use searched::{Counts as Searched, Searcher};

/// Checks cases on a GPU or in the simulator.
pub struct Machine {
    /// The GPU that kernels are built for.
    pub device: Device,
    /// `None` for the simulator.
    pub gpu: Option<Gpu>,
    /// What also compiles the kernels that are only simulated.
    pub compiler: Option<Compiler>,
    /// Whether kernels are built for ranges of sizes.
    pub dynamic: bool,
}

impl Machine {
    /// Checks a case.
    ///
    /// # Errors
    /// If it fails.
    pub fn check(&self, case: &Case) -> Result<Verdict, Failure> {
        match &self.gpu {
            None if self.dynamic => case.check_dynamic(&self.device, &|program| self.compile(program)),
            None => case.check_with(|run| self.simulate(run).map(|()| Verdict::Passed)),
            Some(gpu) => case.check_with(|run| on_gpu(gpu, run)),
        }
    }

    fn simulate(&self, run: &Run<'_>) -> Result<(), Failure> {
        for program in run.case.programs(&self.device)? {
            run.simulate(&program, &self.device)?;
            self.compile(&program)?;
        }
        Ok(())
    }

    fn compile(&self, program: &Program) -> Result<(), Failure> {
        self.compiler.as_ref().map_or(Ok(()), |compiler| compiler.compile(program))
    }
}

/// What reduces failures and writes them to files.
pub struct Reducing<'a> {
    /// The GPU that kernels are built for.
    pub device: &'a Device,
    /// What checks cases.
    pub check: &'a Checker<'a>,
    /// The source of schedules; `None` for random ones.
    pub searcher: Option<&'a Searcher<'a>>,
    /// The time for one failure.
    pub time: Duration,
    /// The folder of the files.
    pub folder: &'a Path,
}

impl Reducing<'_> {
    /// Reduces a failure to a smaller case and writes it to a file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn written(&self, found: Found) -> Result<Written, CaseError> {
        let Found { pipeline_seed, schedule_seed, case, failure } = found;
        let Some(case) = case else {
            return Ok(Written::unmade(pipeline_seed, schedule_seed, &failure));
        };
        let funcs = case.pipeline.funcs().len();
        let searched = self.searcher.filter(|_| failure.kind() == FailureKind::Panic);
        let reduced = reduce(case, failure, &|case| self.check_again(case, searched), self.time);
        let name = format!("{}-{schedule_seed:016x}.json", reduced.failure.kind());
        let file = self.folder.join(name);
        reduced.case.save(&Seen::failed(&self.device.name, &reduced.failure), &file)?;
        Ok(Written::new(pipeline_seed, schedule_seed, &reduced, funcs, file))
    }

    /// Checks a case again. With a searcher, also checks that a search for its pipeline succeeds.
    fn check_again(&self, case: &Case, searcher: Option<&Searcher<'_>>) -> Result<Verdict, Failure> {
        let verdict = (self.check)(case)?;
        searcher.map_or(Ok(verdict), |searcher| searcher.check(case))
    }
}

/// Reorders the failures: the first with each symptom, then the second with each symptom, and so
/// on.
pub fn most_telling(failures: Vec<Found>) -> Vec<Found> {
    let symptoms: Vec<String> = failures.iter().map(|found| found.failure.symptom()).collect();
    let earlier =
        |number: usize| symptoms[..number].iter().filter(|symptom| **symptom == symptoms[number]).count();
    let mut ranked: Vec<(usize, Found)> =
        failures.into_iter().enumerate().map(|(number, found)| (earlier(number), found)).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, found)| found).collect()
}

/// Checks each program: the checking build must match the reference bit for bit, the timing build
/// within its tolerance.
fn on_gpu(gpu: &Gpu, run: &Run<'_>) -> Result<Verdict, Failure> {
    let mut verdict = Verdict::Passed;
    for program in run.case.programs(gpu.device())? {
        let found = both_builds(gpu, run, &program)?;
        verdict = if verdict == Verdict::Passed { found } else { verdict };
    }
    Ok(verdict)
}

fn both_builds(gpu: &Gpu, run: &Run<'_>, program: &Program) -> Result<Verdict, Failure> {
    let workload = Workload::new(&run.case.pipeline, &run.case.request, run.inputs.clone());
    let outputs =
        |build| run_build(gpu, &workload, program, build).map_err(|error| Failure::Device(error.to_string()));
    run.compare(&outputs(Build::Checking)?)?;
    run.judge(&outputs(Build::Timing)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_symptom_has_its_turn() {
        let found = |schedule_seed, failure| Found { pipeline_seed: 0, schedule_seed, case: None, failure };
        let device = |seed| found(seed, Failure::Device("made up".to_owned()));
        let numeric = |seed| found(seed, Failure::Numeric("made up".to_owned()));
        let order = most_telling(vec![device(0), device(1), device(2), numeric(3), numeric(4)]);
        let order: Vec<u64> = order.iter().map(|found| found.schedule_seed).collect();
        assert_eq!(order, [0, 3, 1, 4, 2]);
    }
}
