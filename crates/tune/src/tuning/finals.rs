//! The final rounds: the best candidates are checked and timed against each other.

use std::collections::VecDeque;

use warploom_lang::rewrite::Rewrite;
use warploom_runtime::TimingOptions;
use warploom_schedule::Schedule;
use warploom_target::Program;

use super::session::Session;
use super::{Ended, Event, FinalRounds, TuneError};
use crate::measure::{Failure, MeasureError, at_once, both_builds, compare_builds};
use crate::records::Trial;
use crate::sample::Status;

/// Number of timing rounds. The median of the rounds' shortest times counts.
const ROUNDS: usize = 5;

/// A compiled finalist.
struct Finalist {
    trial: Trial,
    rewrites: Vec<Rewrite>,
    checking: Program,
    timing: Program,
    shortest: Vec<f64>,
}

impl Session<'_, '_> {
    /// Runs the final rounds against noise, except after a failure. If the user stopped the run, only
    /// checks the best schedule.
    pub fn finals_after(&mut self, ended: &Ended, finalists: usize) -> Result<(), TuneError> {
        match ended {
            Ended::Failed(_) => Ok(()),
            Ended::Stopped => self.finals(1, false),
            Ended::Finished | Ended::TimeLimit => self.finals(finalists, true),
        }
    }

    /// Checks the `count` best trials at the full size. If `rounds` is set, also times them in
    /// interleaved rounds. The results go to the records.
    pub fn finals(&mut self, count: usize, rounds: bool) -> Result<(), TuneError> {
        if self.bench.crew.is_some() {
            self.order_finals(FinalRounds { count, retime: rounds })?;
            return self.note_best();
        }
        // A finalist that fails is replaced by the next best trial.
        loop {
            let entered = self.enter(count)?;
            let before = entered.len();
            let mut finalists = Vec::new();
            for finalist in entered {
                if self.is_right(&finalist)? {
                    finalists.push(finalist);
                }
            }
            if finalists.len() < before {
                continue;
            }
            if rounds && finalists.len() > 1 {
                self.tell(&Event::Retiming { finalists: finalists.len() });
                self.retime(finalists)?;
            }
            return self.note_best();
        }
    }

    fn note_best(&mut self) -> Result<(), TuneError> {
        let best = self.records().best(self.id, 1)?;
        self.progress.best_us = best.first().and_then(Trial::time_us);
        Ok(())
    }

    /// Recompiles the `count` best trials. Unusable ones are replaced by the next best.
    fn enter(&mut self, count: usize) -> Result<Vec<Finalist>, TuneError> {
        let mut best = VecDeque::from(self.records().best(self.id, usize::MAX)?);
        let mut finalists = Vec::new();
        while finalists.len() < count && !best.is_empty() {
            let mut next = Vec::new();
            while let Some(trial) = best.pop_front() {
                next.extend(self.read(&trial).map(|schedule| (trial, schedule)));
                if finalists.len() + next.len() == count {
                    break;
                }
            }
            finalists.extend(self.recompile(next)?);
        }
        self.tell_unusable();
        Ok(finalists)
    }

    /// Recompiles trials, and notes those that an earlier version may have recorded.
    fn recompile(&mut self, trials: Vec<(Trial, Schedule)>) -> Result<Vec<Finalist>, MeasureError> {
        let (subject, compile, device) = (&self.task.subject, self.bench.compile, self.bench.device);
        let enter = |(trial, schedule): (Trial, Schedule)| {
            let lowered = match subject.build(&schedule, device) {
                Ok(lowered) => lowered,
                Err(error) => return Err(Box::new((trial, Failure::Refused(error.to_string())))),
            };
            match both_builds(&lowered, compile) {
                Ok([checking, timing]) => Ok(Finalist {
                    trial,
                    rewrites: schedule.rewrites,
                    checking,
                    timing,
                    shortest: Vec::new(),
                }),
                Err(failure) => Err(Box::new((trial, failure))),
            }
        };
        let entered = at_once(trials, enter).map_err(|failure| MeasureError::Lost(failure.to_string()))?;
        let mut finalists = Vec::new();
        for entered in entered {
            match entered.map_err(|failed| *failed) {
                Ok(finalist) => finalists.push(finalist),
                Err((_, Failure::Lost(why))) => return Err(MeasureError::Lost(why)),
                Err((trial, failure)) => self.unusable.note(&trial, &failure.to_string()),
            }
        }
        Ok(finalists)
    }

    /// Whether a finalist's outputs are correct at the full size. If not, the failure is recorded.
    fn is_right(&mut self, finalist: &Finalist) -> Result<bool, TuneError> {
        let schedule = &finalist.trial.sample.schedule;
        if self.full.has_passed(schedule) {
            return Ok(true);
        }
        let Some(check) = self.full_check(&finalist.rewrites)? else { return Ok(true) };
        let compared = compare_builds(&check, &finalist.checking, &finalist.timing, self.bench.machine);
        let status = compared.or_else(failed)?;
        if status == Status::Measured {
            self.full.pass(schedule);
            return Ok(true);
        }
        self.tell(&Event::Note(format!(
            "the best schedule so far is {} at the full size: {}",
            status.kind(),
            status.message()
        )));
        self.records().set_status(finalist.trial.id, &status)?;
        Ok(false)
    }

    fn retime(&mut self, mut finalists: Vec<Finalist>) -> Result<(), TuneError> {
        let timing = TimingOptions::quick();
        for round in 0..ROUNDS {
            let count = finalists.len();
            // The order rotates, because the first candidate of a round may find a cooler GPU.
            for position in (0..count).map(|position| (position + round) % count) {
                let finalist = &mut finalists[position];
                match self.bench.machine.time(&self.task.subject, &finalist.timing, &timing) {
                    Ok(timed) => finalist.shortest.push(timed.times.min),
                    Err(failure) => {
                        let status = failed(failure)?;
                        self.records().set_status(finalist.trial.id, &status)?;
                    }
                }
            }
        }
        let factor = self.factor;
        let times = finalists.into_iter().filter_map(|Finalist { trial, mut shortest, .. }| {
            shortest.sort_by(f64::total_cmp);
            Some((trial.id, *shortest.get(shortest.len() / 2)? * factor))
        });
        Ok(self.records().set_retimed(&times.collect::<Vec<_>>())?)
    }
}

/// The status to record for a finalist that fails to run; an error if nothing can run any more.
fn failed(failure: Failure) -> Result<Status, MeasureError> {
    match failure {
        Failure::Lost(why) => Err(MeasureError::Lost(why)),
        Failure::Fault(why) => Err(MeasureError::Fault(why)),
        other => Ok(other.when_run()),
    }
}
