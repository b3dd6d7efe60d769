//! A run: measures, records and counts the points that are asked for.

use warploom_strategy::Verdict;

use super::{Count, ExploreOptions};
use crate::records::{RunKey, RunStep, StepOutcome, schedule_hash};
use crate::tuning::{Event, Proposal, Session, TuneError};

/// The state of a run.
pub(super) struct ExploreRun<'a> {
    pub options: &'a ExploreOptions,
    pub key: RunKey,
    pub count: Count,
    pub exhausted: bool,
}

/// A step with its schedule, unless the rules refuse it.
pub(super) struct AskedStep {
    step: RunStep,
    proposal: Option<Proposal>,
}

impl AskedStep {
    /// The schedule, if it is yet to be measured.
    pub fn open(&mut self) -> Option<&mut Proposal> {
        self.proposal.as_mut().filter(|_| self.step.outcome == StepOutcome::Asked)
    }
}

impl<'a> ExploreRun<'a> {
    /// `asks` is the key of the source of questions, and names everything that its questions depend on.
    pub fn new(options: &'a ExploreOptions, asks: &str) -> ExploreRun<'a> {
        let spilling = if options.run_spilling { " spilling" } else { "" };
        let (key, count) = (RunKey(format!("{asks}{spilling}")), Count::new(options.trials));
        ExploreRun { options, key, count, exhausted: false }
    }

    /// Announces the run and measures the default schedule.
    pub fn begin(&self, session: &mut Session<'_, '_>, templates: usize) -> Result<(), TuneError> {
        let recorded = session.records().steps(session.id, &self.key)?.len();
        session.tell(&Event::Exploring { run: &self.key.0, templates, recorded });
        if recorded > 0 {
            session.tell(&Event::Note(format!("continuing after {recorded} recorded steps")));
        }
        session.measure(vec![session.default()], false)
    }

    /// Whether an earlier step has the schedule of this text.
    pub fn knows(&self, schedule: &str) -> bool {
        self.count.knows(&schedule_hash(schedule))
    }

    /// Everything known of schedules without measuring. Each has the name under which its step is recorded. A refused
    /// point has the reason instead of a schedule.
    pub fn plan(
        &self,
        session: &Session<'_, '_>,
        named: Vec<(String, Result<Proposal, String>)>,
    ) -> Result<Vec<AskedStep>, TuneError> {
        let pipeline = session.task.subject.pipeline();
        let mut asked: Vec<AskedStep> = Vec::with_capacity(named.len());
        for (name, proposal) in named {
            let proposal = match proposal {
                Ok(proposal) => proposal,
                Err(message) => {
                    let step = RunStep::new(name, None, StepOutcome::Refused);
                    asked.push(AskedStep { step: RunStep { message, ..step }, proposal: None });
                    continue;
                }
            };
            let hash = Some(schedule_hash(&proposal.schedule.to_text(pipeline)));
            let repeated = hash.as_ref().is_some_and(|hash| self.count.knows(hash))
                || asked.iter().any(|earlier| earlier.step.schedule_hash == hash);
            let outcome = if repeated { StepOutcome::Repeated } else { StepOutcome::Asked };
            let mut step = RunStep::new(name, hash, outcome);
            if !repeated && let Some(trial) = session.find(&proposal)? {
                step = step.of_trial(&trial, false);
            }
            asked.push(AskedStep { step, proposal: Some(proposal) });
        }
        Ok(asked)
    }

    /// The verdicts on a question; `None` if the run ends before all are known. Steps in the records are answered from
    /// there.
    pub fn answer(
        &mut self,
        session: &mut Session<'_, '_>,
        mut asked: Vec<AskedStep>,
    ) -> Result<Option<Vec<Verdict>>, TuneError> {
        let (problem, first) = (session.id, self.count.tally.steps);
        let steps: Vec<RunStep> = asked.iter().map(|asked| asked.step.clone()).collect();
        let stored = session.records().ask_steps(problem, &self.key, first, &steps)?;
        self.adopt(&mut asked, stored)?;
        if is_open(&asked) {
            self.measure(session, &mut asked)?;
            let steps: Vec<RunStep> = asked.iter().map(|asked| asked.step.clone()).collect();
            let stored = session.records().answer_steps(problem, &self.key, first, &steps)?;
            self.adopt(&mut asked, stored)?;
            if is_open(&asked) {
                return Ok(None);
            }
        }
        Ok(Some(asked.iter().map(|asked| self.count.add(&asked.step)).collect()))
    }

    /// Takes over the steps as they are stored; they must be the same.
    fn adopt(&self, asked: &mut [AskedStep], stored: Vec<RunStep>) -> Result<(), TuneError> {
        for (number, (asked, step)) in asked.iter_mut().zip(stored).enumerate() {
            if asked.step.point != step.point || asked.step.schedule_hash != step.schedule_hash {
                return Err(TuneError::Diverged { step: self.count.tally.steps + number });
            }
            asked.step = step;
        }
        Ok(())
    }

    /// Measures steps without an outcome. If the run ends before, some stay without one.
    fn measure(&self, session: &mut Session<'_, '_>, asked: &mut [AskedStep]) -> Result<(), TuneError> {
        let open = || asked.iter().filter(|asked| asked.step.outcome == StepOutcome::Asked);
        let proposals: Vec<Proposal> = open().filter_map(|asked| asked.proposal.clone()).collect();
        let known = asked.iter().filter(|asked| asked.step.outcome == StepOutcome::Known).count();
        let left = self.options.trials.saturating_sub(self.count.tally.trials + known);
        session.progress.expected = session.progress.done + left;
        session.tell(&Event::Planned { candidates: proposals.len(), known });
        session.measure(proposals, false)?;
        for asked in asked.iter_mut().filter(|asked| asked.step.outcome == StepOutcome::Asked) {
            let trial = asked.proposal.as_ref().map(|proposal| session.find(proposal)).transpose()?;
            if let Some(trial) = trial.flatten() {
                asked.step = asked.step.clone().of_trial(&trial, true);
            }
        }
        Ok(())
    }
}

/// Whether any step has no outcome yet.
fn is_open(asked: &[AskedStep]) -> bool {
    asked.iter().any(|asked| asked.step.outcome == StepOutcome::Asked)
}
