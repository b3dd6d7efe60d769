//! The check at the full size. The expected outputs are those of the default schedule, which is
//! itself checked against the reference at the small size.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use warploom_codegen::ir::{Program, Role};
use warploom_interp::buffer::Buffer;
use warploom_interp::expected::{Closeness, Conditioning, Expected};
use warploom_lang::rewrite::Rewrite;
use warploom_schedule::Schedule;

use super::session::Session;
use super::{Event, Task, TuneError};
use crate::measure::{Check, Failure, MeasureError, Subject, at_once, both_builds, compare_builds};
use crate::sample::Status;
use crate::workload;

/// The fraction of samples in which the two builds of the default schedule may differ by more than
/// rounding, unless perturbed reference runs differ in more samples at the small size. Beyond this
/// fraction, the builds are useless as a reference.
const WILD: f64 = 0.01;

/// The check at the full size, once requested, and the schedules that passed it.
#[derive(Default)]
pub(crate) struct FullCheck {
    /// The checks, by the rewrites of the schedules.
    made: HashMap<Vec<Rewrite>, Option<Arc<Check>>>,
    passed: HashSet<String>,
}

impl FullCheck {
    pub fn has_passed(&self, schedule: &str) -> bool {
        self.passed.contains(schedule)
    }

    /// The schedules that passed, in no particular order.
    pub fn passed(&self) -> impl Iterator<Item = &str> {
        self.passed.iter().map(String::as_str)
    }

    pub fn pass(&mut self, schedule: &str) {
        self.passed.insert(schedule.to_owned());
    }
}

/// A program, compiled for checks and for timing.
type Built = (Program, [warploom_target::Program; 2]);

/// Why there is no check at the full size.
enum Without {
    /// No program can run any more.
    Lost(String),
    /// The default schedule is not usable as a reference.
    Because(String),
}

impl From<Failure> for Without {
    fn from(failure: Failure) -> Without {
        match failure {
            Failure::Lost(why) => Without::Lost(why),
            other => Without::Because(other.to_string()),
        }
    }
}

impl Session<'_, '_> {
    /// The check at the full size of schedules with some rewrites. `None`, after a note to the user, if the default
    /// schedule of the rewritten pipeline cannot serve as a reference.
    pub fn full_check(&mut self, rewrites: &[Rewrite]) -> Result<Option<Arc<Check>>, TuneError> {
        if let Some(made) = self.full.made.get(rewrites) {
            return Ok(made.clone());
        }
        let made = match self.make(rewrites) {
            Ok(check) => Some(Arc::new(check)),
            Err(Without::Lost(why)) => return Err(MeasureError::Lost(why).into()),
            Err(Without::Because(why)) => {
                self.tell(&Event::Note(format!("results are not compared at the full size: {why}")));
                None
            }
        };
        self.full.made.insert(rewrites.to_vec(), made.clone());
        Ok(made)
    }

    fn make(&mut self, rewrites: &[Rewrite]) -> Result<Check, Without> {
        let task = self.task;
        let problem = self.problem.rewritten(rewrites);
        let problem = problem.map_err(|error| Without::Because(error.to_string()))?;
        let schedule = problem.default_schedule();
        let small = task.small.as_ref().map(|small| small.rewritten(rewrites)).transpose();
        let small = small.map_err(Without::Because)?;
        let subjects = small.iter().map(|small| &small.subject).chain([&task.subject]).collect();
        let mut built = self.built(&schedule, subjects)?;
        let Some((lowered, [checking, timing])) = built.pop() else {
            return Err(Without::Because("nothing was built".to_owned()));
        };
        if let (Some(small), Some((_, [checking, timing]))) = (&small, built.pop()) {
            let status = compare_builds(small, &checking, &timing, self.bench.machine)?;
            if status != Status::Measured {
                return Err(Without::Because(format!("the default schedule gives {}", status.message())));
            }
        }
        let mut run = |program| -> Result<Vec<Buffer>, Without> {
            let outputs = self.bench.machine.run(&task.subject, program)?;
            buffers(&lowered, &outputs).map_err(Without::Because)
        };
        let (checked, timed) = (run(&checking)?, run(&timing)?);
        let expected = of_two_builds(task, checked, timed)?;
        Ok(Check::new(task.subject.clone(), expected))
    }

    /// A schedule in both builds at the sizes of each subject.
    fn built(&self, schedule: &Schedule, subjects: Vec<&Arc<Subject>>) -> Result<Vec<Built>, Without> {
        let (compile, device) = (self.bench.compile, self.bench.device);
        let build = |subject: &Arc<Subject>| -> Result<Built, Without> {
            let lowered = subject.build(schedule, device);
            let lowered = lowered.map_err(|error| Without::Because(error.to_string()))?;
            let builds = both_builds(&lowered, compile)?;
            Ok((lowered, builds))
        };
        at_once(subjects, build)?.into_iter().collect()
    }
}

/// Derives the expected outputs at the full size from the two builds of the default schedule. The
/// tolerance is the stated one, or [four times](warploom_interp::expected::WIDENED) the deviation
/// of its timing build.
fn of_two_builds(task: &Task<'_>, checked: Vec<Buffer>, timed: Vec<Buffer>) -> Result<Expected, Without> {
    let expected = Expected::of_builds(task.subject.pipeline(), checked, timed.clone(), task.tolerance);
    if let Some(fault) = expected.closeness(&timed).iter().find_map(Closeness::sentence) {
        return Err(Without::Because(format!("the timing build of the default schedule gives {fault}")));
    }
    let share = |known: &Conditioning| known.ill_conditioned as f64 / known.samples.max(1) as f64;
    let small = task.small.as_ref().map(|small| small.expected.conditioning()).unwrap_or_default();
    for (position, known) in expected.conditioning().iter().enumerate() {
        let allowed = small.get(position).map_or(WILD, |small| WILD.max(2.0 * share(small)));
        if share(known) > allowed {
            let Conditioning { output, ill_conditioned, samples, .. } = known;
            return Err(Without::Because(format!(
                "the two builds of the default schedule differ by more than rounding explains in {ill_conditioned} of \
                 {samples} samples of `{output}`"
            )));
        }
    }
    Ok(expected)
}

/// Converts output bytes to buffers, in the order of the program's outputs.
fn buffers(program: &Program, outputs: &[Vec<u8>]) -> Result<Vec<Buffer>, String> {
    let found = program.buffers.values().filter_map(|buffer| match buffer.role {
        Role::Output { output, value } => Some(((output, value), buffer)),
        _ => None,
    });
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|(place, _)| *place);
    let made = found.iter().zip(outputs).map(|((_, buffer), bytes)| {
        workload::buffer(buffer.ty, &buffer.region, &buffer.storage_order(), bytes)
            .map_err(|error| error.to_string())
    });
    made.collect()
}
