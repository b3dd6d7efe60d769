//! A member of a crew: builds, checks and times single candidates of a task, and runs final rounds.

use std::sync::Arc;

use warploom_runtime::TimingOptions;
use warploom_schedule::Schedule;
use warploom_target::{Device, Program};

use super::crew::{FinalRounds, Finals};
use super::full_check::FullCheck;
use super::session::Session;
use super::{Event, Task, TuneError};
use crate::measure::{
    Built, Candidate, Check, Compile, Contest, Failure, Machine, MeasureError, Measured, Setup, Subject,
    Timed, at_once, build, run,
};
use crate::records::{Records, RecordsError, Trial};
use crate::sample::{Origin, Status};
use crate::worker::Bench;

/// A schedule for a member of a crew, with options.
#[derive(Clone, Debug)]
pub struct Assigned {
    /// The schedule.
    pub schedule: Schedule,
    /// How it was found.
    pub origin: Origin,
    /// Predicted time, in microseconds.
    pub predicted_us: Option<f64>,
    /// Whether results are compared at the full size.
    pub at_full_size: bool,
    /// Whether it is recorded without being run if it spills registers.
    pub skip_spilling: bool,
    /// How it is timed.
    pub timing: TimingOptions,
}

/// Builds an assigned schedule for timing and for all its checks.
pub fn build_assigned(
    task: &Task<'_>,
    assigned: &Assigned,
    device: &Device,
    compile: Compile<'_>,
    versions: &[String],
) -> Built {
    let setup = Setup {
        versions: versions.to_vec(),
        skip_spilling: assigned.skip_spilling,
        ..Setup::new(device, compile, assigned.timing.clone())
    };
    let full = assigned.at_full_size.then_some(&task.subject);
    let small = task.small.as_ref().map(|small| &small.subject);
    let checks: Vec<&Arc<Subject>> = full.into_iter().chain(small).collect();
    build(&setup, &task.subject, &assigned.schedule, &checks)
}

/// The trial of a schedule that cannot run.
pub fn refused(
    task: &Task<'_>,
    assigned: &Assigned,
    device: &Device,
    versions: &[String],
    status: Status,
) -> Trial {
    trial_of(task, assigned, device, versions, Built::not(status))
}

/// The trial of a schedule whose compiled builds show that it cannot run.
pub fn refused_by_compiler(
    task: &Task<'_>,
    assigned: &Assigned,
    device: &Device,
    versions: &[String],
    built: Built,
) -> Result<Trial, Box<Built>> {
    match built.refusal() {
        Some(_) => Ok(trial_of(task, assigned, device, versions, built)),
        None => Err(Box::new(built)),
    }
}

fn trial_of(
    task: &Task<'_>,
    assigned: &Assigned,
    device: &Device,
    versions: &[String],
    built: Built,
) -> Trial {
    let none = |_: &Program| Err(Failure::Lost(String::new()));
    let setup = Setup { versions: versions.to_vec(), ..Setup::new(device, &none, assigned.timing.clone()) };
    let candidate = assigned.candidate(task, Vec::new());
    let (measured, _) = run(&setup, candidate, built, &mut Nobody, f64::INFINITY);
    trial(measured)
}

fn trial(measured: Measured) -> Trial {
    let Measured { candidate, sample, spread, .. } = measured;
    Trial::new(sample, candidate.predicted_us, spread)
}

impl Assigned {
    /// The competition of a candidate. Samples for training compete with nothing: times of slow schedules matter as
    /// much as those of fast ones.
    fn contest(&self, best_us: Option<f64>) -> Option<Contest> {
        (self.timing != TimingOptions::collection()).then_some(Contest { best_us })
    }

    fn candidate(&self, task: &Task<'_>, checks: Vec<Arc<Check>>) -> Candidate {
        let Assigned { schedule, origin, predicted_us, .. } = self.clone();
        Candidate { subject: task.subject.clone(), schedule, origin, predicted_us, checks }
    }
}

/// A machine that is never used.
pub struct Nobody;

impl Machine for Nobody {
    fn time(&mut self, _: &Arc<Subject>, _: &Program, _: &TimingOptions) -> Result<Timed, Failure> {
        Err(Failure::Lost("there is no GPU here".to_owned()))
    }

    fn run(&mut self, _: &Arc<Subject>, _: &Program) -> Result<Vec<Vec<u8>>, Failure> {
        Err(Failure::Lost("there is no GPU here".to_owned()))
    }

    fn restore(&mut self) {}
}

/// The state of a member with a GPU for one task.
pub struct Member {
    full: FullCheck,
    /// A session needs records, but nothing in them is kept.
    records: Records,
}

impl Member {
    /// A member that has not done anything yet.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn new() -> Result<Member, RecordsError> {
        Ok(Member { full: FullCheck::default(), records: Records::in_memory()? })
    }

    /// Checks and times a schedule that was built elsewhere. Also returns the failure, if there was one,
    /// and messages for the user. `best_us` is the shortest time so far.
    ///
    /// # Errors
    /// If nothing can be measured here any more.
    pub fn run(
        &mut self,
        task: &Task<'_>,
        assigned: &Assigned,
        mut built: Built,
        best_us: Option<f64>,
        bench: &mut Bench<'_>,
    ) -> Result<(Trial, Option<Failure>, Vec<String>), TuneError> {
        let mut notes = Vec::new();
        let mut checks: Vec<Arc<Check>> = task.small.iter().cloned().collect();
        if assigned.at_full_size && built.refusal().is_none() {
            let rewrites = &assigned.schedule.rewrites;
            match self.in_session(task, bench, &mut notes, |session| session.full_check(rewrites))? {
                Some(full) => {
                    built.checks.truncate(1);
                    checks = vec![full];
                }
                None => drop(built.checks.remove(0)),
            }
        }
        let setup = Setup {
            versions: bench.versions.clone(),
            contest: assigned.contest(best_us),
            ..Setup::new(bench.device, bench.compile, assigned.timing.clone())
        };
        let candidate = assigned.candidate(task, checks);
        let best = best_us.unwrap_or(f64::INFINITY);
        let (measured, failure) = run(&setup, candidate, built, bench.machine, best);
        Ok((trial(measured), failure, notes))
    }

    /// The time of the default schedule, in microseconds; `None` if it cannot run here.
    ///
    /// # Errors
    /// If nothing can be measured here any more.
    pub fn default_us(&mut self, task: &Task<'_>, bench: &mut Bench<'_>) -> Result<Option<f64>, TuneError> {
        let problem = task.subject.problem(bench.device)?;
        let assigned = Assigned {
            schedule: problem.default_schedule(),
            origin: Origin::Default,
            predicted_us: None,
            at_full_size: false,
            skip_spilling: false,
            timing: TimingOptions::quick(),
        };
        let unchecked =
            Task { small: None, subject: task.subject.clone(), search: task.search.clone(), ..*task };
        // The compiler may recurse deeply.
        let (compile, device, versions) = (bench.compile, bench.device, bench.versions.clone());
        let build = |()| build_assigned(&unchecked, &assigned, device, compile, &versions);
        let built = at_once(vec![()], build).map_err(|failure| MeasureError::Lost(failure.to_string()))?;
        let Some(built) = built.into_iter().next() else { return Ok(None) };
        if let Some(why) = built.lost() {
            return Err(MeasureError::Lost(why.to_owned()).into());
        }
        let (trial, failure, _) = self.run(&unchecked, &assigned, built, None, bench)?;
        match failure {
            Some(Failure::Lost(why)) => Err(MeasureError::Lost(why).into()),
            _ => Ok(trial.time_us()),
        }
    }

    /// Runs the final rounds of a problem on the trials in some records. Their times are multiplied by
    /// `factor`.
    ///
    /// # Errors
    /// If the records cannot be used, or nothing can be measured here any more.
    pub fn finals(
        &mut self,
        task: &Task<'_>,
        rounds: FinalRounds,
        factor: f64,
        bench: &mut Bench<'_>,
        records: &mut Records,
    ) -> Result<Finals, TuneError> {
        let mut notes = Vec::new();
        let mut passed = Vec::new();
        std::mem::swap(&mut self.records, records);
        let done = self.in_session(task, bench, &mut notes, |session| {
            session.factor = factor;
            session.finals(rounds.count, rounds.retime)?;
            passed = session.full.passed().map(str::to_owned).collect();
            Ok(())
        });
        std::mem::swap(&mut self.records, records);
        done.map(|()| Finals { passed, notes })
    }

    /// Does something in a session that has the checks of earlier ones.
    fn in_session<T>(
        &mut self,
        task: &Task<'_>,
        bench: &mut Bench<'_>,
        notes: &mut Vec<String>,
        work: impl FnOnce(&mut Session<'_, '_>) -> Result<T, TuneError>,
    ) -> Result<T, TuneError> {
        let mut hear = |event: &Event<'_>| {
            if let Event::Note(note) = event {
                notes.push(note.clone());
            }
        };
        let mut bench = Bench {
            device: bench.device,
            compile: bench.compile,
            machine: &mut *bench.machine,
            others: Vec::new(),
            threads: bench.threads,
            versions: bench.versions.clone(),
            crew: None,
        };
        let mut session = Session::new(task, &mut bench, &mut self.records, &mut hear)?;
        session.full = std::mem::take(&mut self.full);
        let done = work(&mut session);
        self.full = std::mem::take(&mut session.full);
        done
    }
}
