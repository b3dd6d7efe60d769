//! A tuning run over one problem.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use warploom_cost::CostModel;
use warploom_lang::rewrite::Rewrite;
use warploom_plan::Problem;
use warploom_runtime::TimingOptions;
use warploom_schedule::Schedule;
use warploom_search::{self as search, Neighbourhood, Options};

use super::full_check::FullCheck;
use super::unusable::{Unusable, read_back};
use super::{Ended, Event, Observer, Progress, Task, TuneError, Tuned, Winner};
use crate::measure::{Candidate, Check, Contest, Feed, Measured, Setup, measure};
use crate::records::{Claim, ProblemId, Records, RecordsError, Trial};
use crate::sample::Origin;
use crate::worker::Bench;

/// Polling interval while another process measures schedules that it claimed.
const WAITING: Duration = Duration::from_millis(200);

/// A schedule to try.
#[derive(Clone)]
pub(crate) struct Proposal {
    pub schedule: Schedule,
    pub origin: Origin,
    pub predicted_us: Option<f64>,
}

impl Proposal {
    fn found(found: search::Candidate, origin: Origin) -> Proposal {
        Proposal { schedule: found.schedule, origin, predicted_us: Some(found.cost) }
    }
}

/// The state of a tuning run over one problem.
pub(crate) struct Session<'a, 'b> {
    pub task: &'a Task<'a>,
    pub bench: &'a mut Bench<'b>,
    pub problem: Problem,
    /// The problem in the records.
    pub id: ProblemId,
    pub progress: Progress,
    pub full: FullCheck,
    pub unusable: Unusable,
    /// Whether candidates that spill registers are not run.
    pub skip_spilling: bool,
    /// How candidates are timed.
    pub timing: TimingOptions,
    /// The factor on times of final rounds that makes them comparable with those of other GPUs.
    pub factor: f64,
    pub(super) observer: Observer<'a>,
    records: Mutex<&'a mut Records>,
}

impl<'a, 'b> Session<'a, 'b> {
    pub fn new(
        task: &'a Task<'a>,
        bench: &'a mut Bench<'b>,
        records: &'a mut Records,
        observer: Observer<'a>,
    ) -> Result<Session<'a, 'b>, TuneError> {
        let subject = &task.subject;
        let problem = subject.problem(bench.device)?;
        let id = records.problem(subject.pipeline(), subject.request(), bench.device, &bench.versions)?;
        let best = records.best(id, 1)?;
        let progress = Progress { best_us: best.first().and_then(Trial::time_us), ..Progress::default() };
        let (full, records) = (FullCheck::default(), Mutex::new(records));
        Ok(Session {
            task,
            bench,
            problem,
            id,
            progress,
            full,
            unusable: Unusable::default(),
            skip_spilling: true,
            timing: TimingOptions::quick(),
            factor: 1.0,
            observer,
            records,
        })
    }

    pub fn records(&self) -> MutexGuard<'_, &'a mut Records> {
        lock(&self.records)
    }

    pub fn tell(&mut self, event: &Event<'_>) {
        (self.observer)(event);
    }

    /// The reason to stop now, if there is one.
    pub fn ended(&self) -> Option<Ended> {
        self.task.ended()
    }

    /// Limits the search to the time left in the run.
    fn within_time(&self, options: &Options) -> Options {
        let left = self.task.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let time_limit = [options.time_limit, left].into_iter().flatten().min();
        Options { time_limit, ..options.clone() }
    }

    /// The schedules of a search, best predicted first.
    pub fn search(&self, model: &dyn CostModel, options: &Options) -> Vec<Proposal> {
        let options = self.within_time(options);
        let found = search::search(&self.problem, model, &options, &|_| {});
        found.candidates.into_iter().map(|found| Proposal::found(found, Origin::Search)).collect()
    }

    /// The neighbours of measured schedules, which are given with their times, most promising first. The estimate
    /// scales the measured time of the base schedule by the predicted ratio of neighbour to base.
    pub fn near(
        &self,
        model: &dyn CostModel,
        options: &Options,
        fastest: &[(Schedule, f64)],
    ) -> Result<Vec<Proposal>, TuneError> {
        let options = self.within_time(options);
        let mut known: BTreeMap<Vec<Rewrite>, (Vec<Schedule>, Vec<f64>)> = BTreeMap::new();
        for (schedule, time) in fastest {
            let (schedules, times) = known.entry(schedule.rewrites.clone()).or_default();
            schedules.push(schedule.clone());
            times.push(*time);
        }
        let mut promising: Vec<(f64, search::Candidate)> = Vec::new();
        for (rewrites, (schedules, times)) in known {
            let problem = self.problem.rewritten(&rewrites).map_err(|error| {
                let why = error.to_string();
                TuneError::Unusable { count: schedules.len(), why }
            })?;
            let found = search::neighbourhoods(&problem, model, &options, &schedules);
            for (near, time) in found.into_iter().zip(times) {
                let Some(Neighbourhood { cost, neighbours }) = near else { continue };
                promising.extend(neighbours.into_iter().map(|found| (time * found.cost / cost, found)));
            }
        }
        promising.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        Ok(promising.into_iter().map(|(_, found)| Proposal::found(found, Origin::Near)).collect())
    }

    /// The default schedule, as a proposal.
    pub fn default(&self) -> Proposal {
        let schedule = self.problem.default_schedule();
        Proposal { schedule, origin: Origin::Default, predicted_us: None }
    }

    /// The recorded trial of a proposal, if any.
    pub fn find(&self, proposal: &Proposal) -> Result<Option<Trial>, RecordsError> {
        let text = proposal.schedule.to_text(self.task.subject.pipeline());
        self.records().find(self.id, &text)
    }

    /// Measures the proposals that have no trial yet, with a check at the full size if requested.
    /// Waits for those that another process is measuring.
    pub fn measure(&mut self, proposals: Vec<Proposal>, at_full_size: bool) -> Result<(), TuneError> {
        let mut left = self.distinct(proposals)?;
        if self.bench.crew.is_some() {
            return self.order(left, at_full_size);
        }
        let mut full = HashMap::new();
        for proposal in left.iter().filter(|_| at_full_size) {
            if let Some(check) = self.full_check(&proposal.schedule.rewrites)? {
                full.insert(proposal.schedule.rewrites.clone(), check);
            }
        }
        while !left.is_empty() && self.ended().is_none() {
            let measured = self.measure_once(&left, &full);
            self.records().release_claims()?;
            left = measured?;
            if !left.is_empty() {
                thread::sleep(WAITING);
            }
        }
        Ok(())
    }

    /// Removes duplicates; a schedule may be found in more than one way. The records store schedules as text, so each
    /// text must read back to its schedule.
    fn distinct(&self, proposals: Vec<Proposal>) -> Result<Vec<Proposal>, TuneError> {
        let mut known = HashSet::new();
        let mut distinct = Vec::new();
        let pipeline = self.task.subject.pipeline();
        for proposal in proposals {
            let text = proposal.schedule.to_text(pipeline);
            if !known.contains(&text) {
                read_back(&text, &proposal.schedule, pipeline)?;
                known.insert(text);
                distinct.push(proposal);
            }
        }
        Ok(distinct)
    }

    /// Measures the proposals that this process can claim; returns those claimed by other
    /// processes.
    fn measure_once(
        &mut self,
        proposals: &[Proposal],
        full_size: &FullSize,
    ) -> Result<Vec<Proposal>, TuneError> {
        let Session { task, bench, id, progress, records, observer, full, skip_spilling, timing, .. } = self;
        let setup = Setup {
            versions: bench.versions.clone(),
            deadline: task.deadline,
            stop: Some(task.stop),
            skip_spilling: *skip_spilling,
            contest: Some(Contest { best_us: progress.best_us }),
            ..Setup::new(bench.device, bench.compile, timing.clone())
        };
        let line = Line {
            task,
            id: *id,
            full_size,
            records,
            queue: Mutex::new(proposals.iter().cloned().collect()),
            taken: Mutex::default(),
            failed: Mutex::default(),
        };
        let feeds = (0..bench.threads).map(|_| line.feed()).collect();
        let mut recorded = Ok(());
        let measured = measure(&setup, feeds, bench.machines(), &mut |measured: Measured| {
            let Measured { candidate, sample, spread, .. } = measured;
            let trial = Trial::new(sample, candidate.predicted_us, spread);
            recorded = lock(records).record(*id, &trial).map(|_| ());
            if recorded.is_err() {
                return ControlFlow::Break(());
            }
            let checked = full_size.contains_key(&candidate.schedule.rewrites);
            if checked && trial.time_us().is_some() {
                full.pass(&trial.sample.schedule);
            }
            progress.add(&trial);
            tracing::debug!(
                status = trial.sample.status.kind(),
                time_us = trial.time_us(),
                predicted_us = trial.predicted_us,
                why = trial.sample.status.message(),
                "measured a schedule"
            );
            observer(&Event::Measured { trial: &trial, progress: *progress });
            ControlFlow::Continue(())
        });
        recorded?;
        let Line { taken, failed, .. } = line;
        if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error.into());
        }
        measured?;
        Ok(taken.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Assembles the result. `shown` are the trials to show to the user.
    pub fn conclude(&mut self, ended: Ended, shown: Result<Vec<Trial>, RecordsError>) -> Tuned {
        let (mut shown, ended) = match (shown, ended) {
            (Ok(shown), ended) => (shown, ended),
            (Err(_), ended @ Ended::Failed(_)) => (Vec::new(), ended),
            (Err(error), _) => (Vec::new(), Ended::Failed(error.into())),
        };
        shown.sort_by(|a, b| {
            let time = |trial: &Trial| trial.time_us().unwrap_or(f64::INFINITY);
            time(a).total_cmp(&time(b))
        });
        let (winner, ended) = match (self.winner(), ended) {
            (Ok(winner), ended) => (winner, ended),
            (Err(_), ended @ Ended::Failed(_)) => (None, ended),
            (Err(error), _) => (None, Ended::Failed(error)),
        };
        Tuned { winner, shown, progress: self.progress, ended }
    }

    fn winner(&mut self) -> Result<Option<Winner>, TuneError> {
        let trials = self.records().best(self.id, usize::MAX)?;
        let (count, first) = (trials.len(), trials.first().cloned());
        for trial in trials {
            if let Some(schedule) = self.read(&trial) {
                self.tell_unusable();
                let checked_at_full_size = self.full.has_passed(&trial.sample.schedule);
                return Ok(Some(Winner { schedule, trial, checked_at_full_size }));
            }
        }
        match first.and_then(|first| self.unusable.why(&first).map(str::to_owned)) {
            Some(why) => Err(TuneError::Unusable { count, why }),
            None => Ok(None),
        }
    }
}

impl Progress {
    pub(super) fn add(&mut self, trial: &Trial) {
        self.done += 1;
        self.expected = self.expected.max(self.done);
        match trial.time_us() {
            Some(time) => self.best_us = Some(self.best_us.map_or(time, |best| best.min(time))),
            None => self.invalid += 1,
        }
    }
}

/// The checks at the full size, by the rewrites of the schedules that they are for.
type FullSize = HashMap<Vec<Rewrite>, Arc<Check>>;

/// The queue of proposals to claim.
struct Line<'a, 'r> {
    task: &'a Task<'a>,
    id: ProblemId,
    full_size: &'a FullSize,
    records: &'a Mutex<&'r mut Records>,
    queue: Mutex<VecDeque<Proposal>>,
    /// Proposals that other processes are measuring.
    taken: Mutex<Vec<Proposal>>,
    failed: Mutex<Option<RecordsError>>,
}

impl Line<'_, '_> {
    fn feed(&self) -> Feed<'_> {
        Box::new(std::iter::from_fn(|| {
            loop {
                let proposal = lock(&self.queue).pop_front()?;
                let text = proposal.schedule.to_text(self.task.subject.pipeline());
                let claim = lock(self.records).claim(self.id, &text);
                match claim {
                    Ok(Claim::Granted) => return Some(self.candidate(proposal)),
                    Ok(Claim::Finished) => {}
                    Ok(Claim::Taken) => lock(&self.taken).push(proposal),
                    Err(error) => {
                        lock(&self.failed).get_or_insert(error);
                        lock(&self.queue).clear();
                        return None;
                    }
                }
            }
        }))
    }

    fn candidate(&self, proposal: Proposal) -> Candidate {
        let Proposal { schedule, origin, predicted_us } = proposal;
        // The reference at the full size is itself checked at the small one.
        let full = self.full_size.get(&schedule.rewrites);
        let checks = full.or(self.task.small.as_ref()).cloned().into_iter().collect();
        let subject = self.task.subject.clone();
        Candidate { subject, schedule, origin, predicted_us, checks }
    }
}

/// Ignores lock poisoning: the data is consistent even if a thread panicked while holding the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
