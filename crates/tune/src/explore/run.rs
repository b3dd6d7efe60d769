//! A run of a strategy: asks, measures, records and tells.

use warploom_search::points::Schedules;
use warploom_strategy::{Point, Strategy, Verdict};
use xxhash_rust::xxh3::xxh3_64;

use super::{Count, ExploreOptions};
use crate::records::{RunKey, Step, StepOutcome, schedule_hash};
use crate::sample::Origin;
use crate::tuning::{Ended, Event, Proposal, Session, TuneError};

/// The state of a run.
pub(super) struct Run<'a> {
    options: &'a ExploreOptions,
    space: &'a Schedules,
    pub key: RunKey,
    pub count: Count,
    pub exhausted: bool,
}

/// A point with its step and, if it is legal, its schedule.
struct Asked {
    point: Point,
    step: Step,
    proposal: Option<Proposal>,
}

impl<'a> Run<'a> {
    pub fn new(
        session: &Session<'_, '_>,
        options: &'a ExploreOptions,
        space: &'a Schedules,
        strategy: &str,
    ) -> Run<'a> {
        let pipeline = session.task.subject.pipeline();
        let origins = space.all().iter().map(|template| template.origin().to_text(pipeline));
        let templates = xxh3_64(format!("{:?} {:?}", options.open, origins.collect::<Vec<_>>()).as_bytes());
        let spilling = if options.run_spilling { " spilling" } else { "" };
        let key = format!("{strategy} trials={} templates={templates:016x}{spilling}", options.trials);
        let count = Count::new(options.trials);
        Run { options, space, key: RunKey(key), count, exhausted: false }
    }

    /// Measures the default schedule, then lets the strategy ask until the run ends. Where the records have steps, they
    /// answer.
    pub fn go(
        &mut self,
        session: &mut Session<'_, '_>,
        strategy: &mut dyn Strategy,
    ) -> Result<Ended, TuneError> {
        let recorded = session.records().steps(session.id, &self.key)?.len();
        let templates = self.space.all().len();
        session.tell(&Event::Exploring { run: &self.key.0, templates, recorded });
        if recorded > 0 {
            session.tell(&Event::Note(format!("continuing after {recorded} recorded steps")));
        }
        session.measure(vec![session.default()], false)?;
        while self.count.next() > 0 {
            if let Some(ended) = session.ended() {
                return Ok(ended);
            }
            let points = strategy.ask(self.space, self.count.next());
            if points.is_empty() || self.count.is_idle() {
                self.exhausted = true;
                session.tell(&Event::Note("the strategy has nothing left to ask".to_owned()));
                break;
            }
            let Some(results) = self.answer(session, points)? else {
                return Ok(session.ended().unwrap_or(Ended::Finished));
            };
            strategy.tell(self.space, &results);
            session.tell(&Event::Stepped { tally: self.count.tally, of: self.options.trials });
        }
        Ok(Ended::Finished)
    }

    /// The verdicts on the points of a question; `None` if the run ends before all are known.
    fn answer(
        &mut self,
        session: &mut Session<'_, '_>,
        points: Vec<Point>,
    ) -> Result<Option<Vec<(Point, Verdict)>>, TuneError> {
        let (problem, first) = (session.id, self.count.tally.steps);
        let mut asked = self.plan(session, points)?;
        let steps: Vec<Step> = asked.iter().map(|asked| asked.step.clone()).collect();
        let stored = session.records().ask_steps(problem, &self.key, first, &steps)?;
        self.adopt(&mut asked, stored)?;
        if is_open(&asked) {
            self.measure(session, &mut asked)?;
            let steps: Vec<Step> = asked.iter().map(|asked| asked.step.clone()).collect();
            let stored = session.records().answer_steps(problem, &self.key, first, &steps)?;
            self.adopt(&mut asked, stored)?;
            if is_open(&asked) {
                return Ok(None);
            }
        }
        Ok(Some(asked.into_iter().map(|Asked { point, step, .. }| (point, self.count.add(&step))).collect()))
    }

    /// What is known of points without measuring anything.
    fn plan(&self, session: &Session<'_, '_>, points: Vec<Point>) -> Result<Vec<Asked>, TuneError> {
        let pipeline = session.task.subject.pipeline();
        let mut asked: Vec<Asked> = Vec::with_capacity(points.len());
        for point in points {
            let schedule = match self.space.schedule(&point) {
                Ok(schedule) => schedule,
                Err(refusal) => {
                    let message = refusal.to_string();
                    let step = Step::new(point.to_string(), None, StepOutcome::Refused);
                    asked.push(Asked { point, step: Step { message, ..step }, proposal: None });
                    continue;
                }
            };
            let hash = Some(schedule_hash(&schedule.to_text(pipeline)));
            let repeated = hash.as_ref().is_some_and(|hash| self.count.knows(hash))
                || asked.iter().any(|earlier| earlier.step.schedule_hash == hash);
            let outcome = if repeated { StepOutcome::Repeated } else { StepOutcome::Asked };
            let mut step = Step::new(point.to_string(), hash, outcome);
            let proposal = Proposal { schedule, origin: Origin::Strategy, predicted_us: None };
            if !repeated && let Some(trial) = session.find(&proposal)? {
                step = step.of_trial(&trial, false);
            }
            asked.push(Asked { point, step, proposal: Some(proposal) });
        }
        Ok(asked)
    }

    /// Takes the steps as they are stored, which must be those of the same points.
    fn adopt(&self, asked: &mut [Asked], stored: Vec<Step>) -> Result<(), TuneError> {
        for (number, (asked, step)) in asked.iter_mut().zip(stored).enumerate() {
            if asked.step.point != step.point || asked.step.schedule_hash != step.schedule_hash {
                return Err(TuneError::Diverged { step: self.count.tally.steps + number });
            }
            asked.step = step;
        }
        Ok(())
    }

    /// Measures the points that have no outcome. If the run ends before, some still have none.
    fn measure(&self, session: &mut Session<'_, '_>, asked: &mut [Asked]) -> Result<(), TuneError> {
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

/// Whether a point has no outcome yet.
fn is_open(asked: &[Asked]) -> bool {
    asked.iter().any(|asked| asked.step.outcome == StepOutcome::Asked)
}
