//! A run's view of all workers.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use warploom_tune::records::{ProblemId, Records, RecordsError, Trial, schedule_hash};
use warploom_tune::tuning::{Crew, FinalRounds, Finals, Order, Progress, Wanted};

use super::agent::Agent;
use crate::fairness;
use crate::queue::candidates::Options;
use crate::queue::fence::Fenced;
use crate::queue::runs::Run;

/// Pauses between two looks for trials: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(200));

/// How often the run looks whether a candidate got lost, and says what it expects.
const REVIEW: Duration = Duration::from_secs(2);

/// The workers of a farm, as one run sees them.
pub(super) struct FarmCrew<'a> {
    agent: &'a Agent<'a>,
    run: &'a Run,
    fingerprint: String,
    /// The times of the run's trials in order.
    times: Vec<Option<f64>>,
    problem: Option<ProblemId>,
    reviewed: Instant,
    /// To look for trials with; opened when it is first needed.
    records: Option<Records>,
}

impl<'a> FarmCrew<'a> {
    pub fn new(agent: &'a Agent<'a>, run: &'a Run, fingerprint: String) -> FarmCrew<'a> {
        let (times, problem) = (Vec::new(), None);
        FarmCrew { agent, run, fingerprint, times, problem, reviewed: Instant::now(), records: None }
    }

    /// The trials of a problem after the one with a number.
    fn trials_after(&mut self, problem: ProblemId, last: i64) -> Result<Vec<Trial>, RecordsError> {
        let records = match self.records.take() {
            Some(records) => records,
            None => Records::over(Fenced::open(&self.agent.options.address, self.run.fence())?),
        };
        self.records.insert(records).trials_after(problem, last)
    }

    /// Notes the problem of the run, once.
    fn begin(&mut self, problem: ProblemId) -> Result<(), RecordsError> {
        if self.problem != Some(problem) {
            self.agent.queue().set_problem(self.run, problem)?;
            self.problem = Some(problem);
        }
        Ok(())
    }

    /// Puts wanted schedules into the queue that are neither there nor have trials.
    fn put(&self, order: &Order, wanted: &HashMap<String, &Wanted>) -> Result<(), RecordsError> {
        let options = Options {
            at_full_size: order.at_full_size,
            skip_spilling: order.skip_spilling,
            timing: order.timing.clone(),
            finals: None,
        };
        // In the order of their promise.
        let wanted: Vec<&Wanted> = order
            .wanted
            .iter()
            .filter(|wants| wanted.contains_key(&schedule_hash(&wants.schedule)))
            .collect();
        self.agent.queue().put(self.run, order.problem, &self.fingerprint, &options, &wanted).map(drop)
    }

    /// Now and then, makes sure that all that is wanted is in the queue: another run of the same
    /// problem may have been stopped, with candidates that this one waits for.
    fn review(
        &mut self,
        order: &Order,
        left: &HashMap<String, &Wanted>,
        progress: Progress,
    ) -> Result<(), RecordsError> {
        if self.reviewed.elapsed() < REVIEW {
            return Ok(());
        }
        self.reviewed = Instant::now();
        self.agent.queue().set_outlook(self.run, progress.expected, fairness::gain(&self.times))?;
        let pending = self.agent.queue().pending(order.problem)?;
        let lost = left.iter().filter(|(hash, _)| !pending.contains(*hash));
        let lost: HashMap<String, &Wanted> = lost.map(|(hash, wants)| (hash.clone(), *wants)).collect();
        if lost.is_empty() { Ok(()) } else { self.put(order, &lost) }
    }

    fn is_ended(&self, ended: &dyn Fn() -> bool) -> bool {
        ended() || self.agent.is_ending()
    }
}

impl Crew for FarmCrew<'_> {
    fn measure(
        &mut self,
        order: &Order,
        ended: &dyn Fn() -> bool,
        heard: &mut dyn FnMut(&Trial) -> Progress,
    ) -> Result<(), RecordsError> {
        self.begin(order.problem)?;
        let hashed = order.wanted.iter().map(|wants| (schedule_hash(&wants.schedule), wants));
        let mut left: HashMap<String, &Wanted> = hashed.collect();
        // Those that have trials are no candidates; other runs may measure some at this moment.
        let mut last = 0;
        for trial in self.trials_after(order.problem, 0)? {
            last = trial.id;
            left.remove(&schedule_hash(&trial.sample.schedule));
        }
        self.put(order, &left)?;
        let mut progress = Progress { expected: self.times.len() + left.len(), ..Progress::default() };
        self.reviewed = Instant::now();
        self.agent.queue().set_outlook(self.run, progress.expected, fairness::gain(&self.times))?;
        let mut pause = PAUSES.0;
        while !left.is_empty() && !self.is_ended(ended) {
            let new = self.trials_after(order.problem, last)?;
            if new.is_empty() {
                self.agent.pause_at_most(&mut pause, PAUSES.1);
            } else {
                pause = PAUSES.0;
            }
            for trial in new {
                last = trial.id;
                if left.remove(&schedule_hash(&trial.sample.schedule)).is_some() {
                    self.times.push(trial.time_us());
                    progress = heard(&trial);
                }
            }
            self.review(order, &left, progress)?;
        }
        if !left.is_empty() && !self.agent.is_ending() {
            // The time limit has passed. If this process ends, another one will go on.
            self.agent.queue().withdraw(self.run)?;
        }
        Ok(())
    }

    fn finals(
        &mut self,
        problem: ProblemId,
        rounds: FinalRounds,
        ended: &dyn Fn() -> bool,
    ) -> Result<Option<Finals>, RecordsError> {
        self.begin(problem)?;
        let candidate = self.agent.queue().put_finals(self.run, problem, &self.fingerprint, rounds)?;
        let mut pause = PAUSES.0;
        while !self.is_ended(ended) {
            let done = self.agent.queue().finals(self.run, candidate)?;
            match done {
                Some(Ok(finals)) => return Ok(Some(finals)),
                Some(Err(why)) => {
                    let notes = vec![format!("the final rounds failed: {why}")];
                    return Ok(Some(Finals { passed: Vec::new(), notes }));
                }
                None => self.agent.pause_at_most(&mut pause, PAUSES.1),
            }
        }
        Ok(None)
    }
}
