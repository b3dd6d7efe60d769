//! Searches, measures, retrains the model and repeats: for long runs.

use warploom_cost::{CostModel, Network, Weights};
use warploom_schedule::Schedule;
use warploom_search as search;

use crate::records::{Records, RunKey, RunState};
use crate::retrain::{Retrain, regret};
use crate::tuning::{Ended, Event, Observer, Proposal, Session, Task, TuneError, Tuned};
use crate::worker::Bench;

/// Number of fastest schedules whose neighbours are tried in each iteration.
pub(crate) const BASES: usize = 4;

/// Options of autotuning.
#[derive(Clone, Debug)]
pub struct AutotuneOptions {
    /// Number of iterations, each with one search.
    pub iterations: usize,
    /// Number of schedules measured per iteration.
    pub samples: usize,
    /// Number of the best schedules that are timed against each other at the end.
    pub finalists: usize,
    /// Initial weights for training: those of the task's model. `None` means training from scratch.
    pub initial: Option<Weights>,
}

impl Default for AutotuneOptions {
    fn default() -> AutotuneOptions {
        AutotuneOptions { iterations: 20, samples: 80, finalists: 5, initial: None }
    }
}

/// The result of autotuning.
#[derive(Debug)]
pub struct Autotuned {
    /// The best schedule, and why tuning ended.
    pub tuned: Tuned,
    /// The most recently trained weights; `None` if none were trained.
    pub weights: Option<Weights>,
    /// Number of finished iterations, including those of earlier runs.
    pub iterations: usize,
}

/// Searches repeatedly, each time with a different seed. If `retrain` is given, each search uses a
/// model trained on all trials so far. An interrupted run resumes where it stopped: recorded trials
/// and iterations are not repeated. Several processes that tune the same problem share the work.
///
/// # Errors
/// If tuning cannot start. Later failures are in [`Tuned::ended`], along with the results measured
/// before.
pub fn autotune(
    task: &Task<'_>,
    options: &AutotuneOptions,
    bench: &mut Bench<'_>,
    records: &mut Records,
    retrain: Option<&mut dyn Retrain>,
    observer: Observer<'_>,
) -> Result<Autotuned, TuneError> {
    let mut session = Session::new(task, bench, records, observer)?;
    let mut run = AutotuneRun {
        options,
        key: RunKey(key(task.model, &task.search, options.samples, retrain.is_some())),
        retrain,
        weights: None,
        finished: 0,
        last_trial: 0,
    };
    let ended = run.resume(&mut session).and_then(|()| run.iterate(&mut session));
    let ended = ended.unwrap_or_else(Ended::Failed);
    let ended = match session.finals_after(&ended, options.finalists) {
        Ok(()) => ended,
        Err(error) => Ended::Failed(error),
    };
    let shown = session.records().best(session.id, options.finalists);
    let tuned = session.conclude(ended, shown);
    Ok(Autotuned { tuned, weights: run.weights, iterations: run.finished })
}

/// The key of a run with `samples` schedules per iteration: everything that determines which candidates it tries.
pub(crate) fn key(
    model: &dyn CostModel,
    options: &search::Options,
    measured: usize,
    retrains: bool,
) -> String {
    let search::Options { seed, beam, passes, samples, sampling, freezing, .. } = options;
    let model = model.name();
    format!("{model} {retrains} {measured} {seed} {beam} {passes} {samples} {sampling} {freezing}")
}

/// The proposals of an iteration, the most promising first: the neighbours of the fastest schedules so far, given with
/// their times, and the results of a search. The first iteration also proposes the default schedule.
pub(crate) fn proposals(
    session: &Session<'_, '_>,
    model: &dyn CostModel,
    options: &search::Options,
    iteration: usize,
    fastest: &[(Schedule, f64)],
) -> Result<(Vec<Proposal>, Vec<Proposal>), TuneError> {
    let seed = options.seed.wrapping_add((iteration as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let options = search::Options { seed, ..options.clone() };
    let mut found = session.search(model, &options);
    if iteration == 0 {
        found.push(session.default());
    }
    Ok((session.near(model, &options, fastest)?, found))
}

/// The candidates chosen for an iteration.
struct IterationSamples {
    /// Last trial of the previous iterations.
    last_trial: i64,
    samples: Vec<Proposal>,
    /// Number of proposals that earlier iterations measured.
    before: usize,
    /// Number of samples that already have a trial from an interrupted run of this iteration.
    done: usize,
}

impl IterationSamples {
    /// Adds proposals that no earlier iteration measured, until there are `most` samples.
    fn add(
        &mut self,
        session: &Session<'_, '_>,
        proposals: Vec<Proposal>,
        most: usize,
    ) -> Result<(), TuneError> {
        for proposal in proposals {
            if self.samples.len() >= most {
                break;
            }
            match session.find(&proposal)? {
                Some(trial) if trial.id <= self.last_trial => self.before += 1,
                trial => {
                    self.done += usize::from(trial.is_some());
                    self.samples.push(proposal);
                }
            }
        }
        Ok(())
    }
}

struct AutotuneRun<'a, 'r> {
    options: &'a AutotuneOptions,
    key: RunKey,
    retrain: Option<&'r mut (dyn Retrain + 'r)>,
    /// The most recently trained weights.
    weights: Option<Weights>,
    finished: usize,
    /// The last trial before the current iteration.
    last_trial: i64,
}

impl AutotuneRun<'_, '_> {
    /// Resumes where an earlier run ended.
    fn resume(&mut self, session: &mut Session<'_, '_>) -> Result<(), TuneError> {
        let problem = session.id;
        let state = session.records().run(problem, &self.key)?;
        self.go_to(session, state);
        if self.finished > 0 {
            let of = self.options.iterations;
            let finished = self.finished.min(of);
            session.tell(&Event::Note(format!("continuing after {finished} of {of} recorded iterations")));
        }
        Ok(())
    }

    fn go_to(&mut self, session: &mut Session<'_, '_>, state: RunState) {
        let RunState { finished, weights, last_trial } = state;
        self.finished = finished;
        self.last_trial = last_trial;
        match weights {
            Some(Ok(weights)) => self.weights = Some(weights),
            Some(Err(error)) => {
                let note = format!("weights of an earlier run can no longer be used: {error}");
                session.tell(&Event::Note(note));
            }
            None => {}
        }
    }

    fn iterate(&mut self, session: &mut Session<'_, '_>) -> Result<Ended, TuneError> {
        let AutotuneOptions { iterations, samples, .. } = *self.options;
        while self.finished < iterations {
            let iteration = self.finished;
            session.progress.expected = session.progress.done + (iterations - iteration) * samples;
            session.tell(&Event::Searching { iteration, of: iterations });
            self.one(session, iteration)?;
            if let Some(ended) = session.ended() {
                return Ok(ended);
            }
            self.learn(session);
            let (problem, weights) = (session.id, self.weights.as_ref());
            let state = session.records().finish_iteration(problem, &self.key, iteration + 1, weights)?;
            self.go_to(session, state);
        }
        Ok(Ended::Finished)
    }

    /// Runs one iteration: measures new schedules from a search. Once there are measured schedules,
    /// up to half of the samples are neighbours of the fastest ones.
    fn one(&self, session: &mut Session<'_, '_>, iteration: usize) -> Result<(), TuneError> {
        let task = session.task;
        let network = self.network(session);
        let model: &dyn CostModel = network.as_ref().map_or(task.model, |network| network);
        let fastest = self.fastest(session)?;
        let (near, found) = proposals(session, model, &task.search, iteration, &fastest)?;
        let mut chosen =
            IterationSamples { last_trial: self.last_trial, samples: Vec::new(), before: 0, done: 0 };
        let half = if fastest.is_empty() { 0 } else { self.options.samples / 2 };
        chosen.add(session, near, half)?;
        chosen.add(session, found, self.options.samples)?;
        let IterationSamples { samples, before, done, .. } = chosen;
        session.tell(&Event::Planned { candidates: samples.len() - done, known: before + done });
        session.measure(samples, false)
    }

    /// The fastest schedules from before the current iteration, with their times. A resumed run selects the same ones.
    fn fastest(&self, session: &mut Session<'_, '_>) -> Result<Vec<(Schedule, f64)>, TuneError> {
        let best = session.records().best(session.id, usize::MAX)?;
        let before = best.into_iter().filter(|trial| trial.id <= self.last_trial);
        let timed = before.filter_map(|trial| Some((session.read(&trial)?, trial.time_us()?)));
        let fastest = timed.take(BASES).collect();
        session.tell_unusable();
        Ok(fastest)
    }

    fn network(&self, session: &Session<'_, '_>) -> Option<Network> {
        self.weights.as_ref().map(|weights| Network::new(weights, session.bench.device))
    }

    /// Trains on all trials in the records. Errors do not end the run.
    fn learn(&mut self, session: &mut Session<'_, '_>) {
        let before = self.network(session);
        let device = session.bench.device;
        let Some(retrain) = &mut self.retrain else { return };
        let initial = self.weights.as_ref().or(self.options.initial.as_ref());
        let shard = session.records().shard(None);
        let trained = shard.map_err(Into::into).and_then(|shard| retrain.retrain(&shard, device, initial));
        let weights = match trained {
            Ok(weights) => weights,
            Err(error) => {
                return session.tell(&Event::Note(format!("the model was not trained: {error}")));
            }
        };
        let trials = session.records().trials(Some(session.id));
        let trials = trials.unwrap_or_else(|error| {
            session.tell(&Event::Note(format!("the regret of the model is unknown: {error}")));
            Vec::new()
        });
        let of = |model: &dyn CostModel| regret(model, &session.problem, &trials);
        let before = of(before.as_ref().map_or(session.task.model, |network| network));
        let after = of(&Network::new(&weights, device));
        self.weights = Some(weights);
        if after.unusable > 0 {
            let note = "timed trials whose schedules cannot be used any more, left out of the regret";
            session.tell(&Event::Note(format!("{note}: {}", after.unusable)));
        }
        session.tell(&Event::Retrained { before: before.ratio, after: after.ratio });
    }
}
