//! A run's view of all workers.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use warploom_tune::records::{ProblemId, Records, RecordsError, Trial, schedule_hash};
use warploom_tune::tuning::{Crew, FinalRounds, Finals, Order, Progress, Wanted};

use super::agent::Agent;
use crate::fairness;
use crate::queue::candidates::Options;
use crate::queue::fence::Fenced;
use crate::queue::runs::Run;

/// The first pause between two polls for trials.
const PAUSE: Duration = Duration::from_millis(20);

/// The interval in which the run checks for lost candidates, and updates its outlook.
const REVIEW: Duration = Duration::from_secs(2);

/// The workers of a farm, as one run sees them.
pub(super) struct FarmCrew<'a> {
    agent: &'a Agent<'a>,
    run: &'a Run,
    fingerprint: String,
    problem: Option<ProblemId>,
    /// The last trial of the problem that was read, and the hashes of all schedules with trials so far.
    last: i64,
    tried: HashSet<String>,
    /// The times of the run's trials in order, and the expected number of trials.
    times: Vec<Option<f64>>,
    expected: usize,
    reviewed: Instant,
    /// For polling trials; opened on first use.
    records: Option<Records>,
}

impl<'a> FarmCrew<'a> {
    pub fn new(agent: &'a Agent<'a>, run: &'a Run, fingerprint: String) -> FarmCrew<'a> {
        FarmCrew {
            agent,
            run,
            fingerprint,
            problem: None,
            last: 0,
            tried: HashSet::new(),
            times: Vec::new(),
            expected: 0,
            reviewed: Instant::now(),
            records: None,
        }
    }

    /// The trials of a problem since the last poll.
    fn new_trials(&mut self, problem: ProblemId) -> Result<Vec<Trial>, RecordsError> {
        let records = match self.records.take() {
            Some(records) => records,
            None => Records::over(Fenced::open(&self.agent.options.address, self.run.fence())?),
        };
        let new = self.records.insert(records).trials_after(problem, self.last)?;
        self.last = new.last().map_or(self.last, |trial| trial.id);
        self.tried.extend(new.iter().map(|trial| schedule_hash(&trial.sample.schedule)));
        Ok(new)
    }

    /// Sets the problem of the run, and reads its earlier trials, once.
    fn begin(&mut self, problem: ProblemId) -> Result<(), RecordsError> {
        if self.problem != Some(problem) {
            let before = self.agent.queue().set_problem(self.run, problem)?;
            self.problem = Some(problem);
            (self.last, self.tried) = (0, HashSet::new());
            // Another process may have proposed for the run until now.
            let own = self.new_trials(problem)?.into_iter().filter(|trial| trial.id > before);
            self.times = own.map(|trial| trial.time_us()).collect();
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
        // In order of promise.
        let wanted: Vec<&Wanted> = order
            .wanted
            .iter()
            .filter(|wants| wanted.contains_key(&schedule_hash(&wants.schedule)))
            .collect();
        self.agent.queue().put(self.run, order.problem, &self.fingerprint, &options, &wanted).map(drop)
    }

    /// Occasionally checks that all wanted schedules are in the queue: another run of the same problem may have been
    /// stopped, with candidates that this one waits for.
    fn review(&mut self, order: &Order, left: &HashMap<String, &Wanted>) -> Result<(), RecordsError> {
        if self.reviewed.elapsed() < REVIEW {
            return Ok(());
        }
        self.set_outlook()?;
        let pending = self.agent.queue().pending(order.problem)?;
        let lost = left.iter().filter(|(hash, _)| !pending.contains(*hash));
        let lost: HashMap<String, &Wanted> = lost.map(|(hash, wants)| (hash.clone(), *wants)).collect();
        if lost.is_empty() { Ok(()) } else { self.put(order, &lost) }
    }

    /// Updates the run's outlook.
    fn set_outlook(&mut self) -> Result<(), RecordsError> {
        self.reviewed = Instant::now();
        self.agent.queue().set_outlook(self.run, self.expected, fairness::gain(&self.times))
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
        // Schedules with trials are not candidates; other runs may measure some at this moment.
        self.new_trials(order.problem)?;
        left.retain(|hash, _| !self.tried.contains(hash));
        self.put(order, &left)?;
        self.expected = self.expected.max(self.times.len() + left.len());
        self.set_outlook()?;
        let mut pause = PAUSE;
        while !left.is_empty() && !self.is_ended(ended) {
            let new = self.new_trials(order.problem)?;
            if new.is_empty() {
                self.agent.pause(&mut pause);
            } else {
                pause = PAUSE;
            }
            for trial in new {
                if left.remove(&schedule_hash(&trial.sample.schedule)).is_some() {
                    self.times.push(trial.time_us());
                    // The session only knows the trials since it began.
                    let Progress { done, expected, .. } = heard(&trial);
                    self.expected = self.times.len() + expected.saturating_sub(done);
                }
            }
            self.review(order, &left)?;
        }
        if !left.is_empty() && !self.agent.is_ending() {
            // The time limit has passed. If this process ends, another one will continue.
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
        let mut pause = PAUSE;
        while !self.is_ended(ended) {
            let done = self.agent.queue().finals(self.run, candidate)?;
            match done {
                Some(Ok(finals)) => return Ok(Some(finals)),
                Some(Err(why)) => {
                    let notes = vec![format!("the final rounds failed: {why}")];
                    return Ok(Some(Finals { passed: Vec::new(), notes }));
                }
                None => self.agent.pause(&mut pause),
            }
        }
        Ok(None)
    }
}
