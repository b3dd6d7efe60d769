//! Threads that own a GPU: they check and time candidates, and run final rounds.

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use warploom_target::Device;
use warploom_tune::measure::{Built, Compile, Failure, Machine, MeasureError};
use warploom_tune::records::{ProblemId, Records, RecordsError, Trial};
use warploom_tune::sample::Status;
use warploom_tune::tuning::{Assigned, FinalRounds, Finals, Member, TuneError};
use warploom_tune::worker::{Bench, OpenBench};

use super::WorkError;
use super::agent::{Agent, Order, Share, start_scoped};
use super::ready::{self, Job, Ready};
use super::record::{self, Entry};
use crate::queue::candidates::{Done, Stage, Taken};
use crate::queue::fence::Fenced;
use crate::queue::paces::factor;

/// The maximum number of waiting entries.
const ENTRIES: usize = 64;

/// The maximum number of tasks whose checks at the full size a GPU keeps.
const KEPT: usize = 4;

/// Runs candidates on all GPUs until the worker ends.
pub(super) fn run(agent: &Agent<'_>, bench: &mut OpenBench) -> Result<(), WorkError> {
    bench.with(|bench| {
        let Bench { device, compile, machine, others, threads, .. } = bench;
        let (device, compile, threads): (&Device, Compile<'_>, usize) = (device, compile, *threads);
        let mut machines: Vec<&mut dyn Machine> = vec![&mut **machine];
        machines.extend(others.iter_mut().map(|machine| &mut **machine as &mut dyn Machine));
        let (share, fingerprint) = (Share::default(), device.fingerprint());
        let stage = Stage::Run { fingerprint: &fingerprint };
        thread::scope(|scope| {
            let share = &share;
            let (entries, written) = mpsc::sync_channel(ENTRIES);
            let mut started =
                vec![start_scoped(scope, move || agent.guarded(|| record::record(agent, &written)))];
            for (number, machine) in machines.into_iter().enumerate() {
                // The channel holds nothing: the prepared candidate is the one that its sender holds.
                let (sender, ready) = mpsc::sync_channel(0);
                started.push(start_scoped(scope, move || {
                    agent.guarded(|| ready::make_ready(agent, share, stage, &sender))
                }));
                let entries = entries.clone();
                started.push(start_scoped(scope, move || {
                    let versions = agent.versions.clone();
                    let bench =
                        Bench { device, compile, machine, others: Vec::new(), threads, versions, crew: None };
                    let mut gpu =
                        Gpu { agent, number, bench, entries, members: Vec::new(), paces: HashMap::new() };
                    agent.guarded(|| gpu.work(&ready))
                }));
            }
            drop(entries);
            let ended = started.into_iter().map(|thread| thread?.join().unwrap_or(Err(WorkError::Panicked)));
            ended.collect::<Vec<_>>().into_iter().collect()
        })
    })
}

/// A GPU of this worker.
struct Gpu<'a, 'b> {
    agent: &'a Agent<'a>,
    number: usize,
    bench: Bench<'b>,
    /// The channel to the writer.
    entries: SyncSender<Entry>,
    /// The state of runs, the latest last.
    members: Vec<(i64, Member)>,
    /// The times of default schedules; `None` for those that cannot run.
    paces: HashMap<ProblemId, Option<f64>>,
}

impl Gpu<'_, '_> {
    fn work(&mut self, candidates: &Receiver<Ready>) -> Result<(), WorkError> {
        let (mut waited, mut worked, mut done) = (Duration::ZERO, Duration::ZERO, 0);
        let mut since = Instant::now();
        while let Ok(ready) = candidates.recv()
            && !self.agent.is_ending()
        {
            let begin = Instant::now();
            waited += begin - since;
            self.one(ready)?;
            since = Instant::now();
            (worked, done) = (worked + (since - begin), done + 1);
        }
        let number = self.number;
        tracing::info!(
            "GPU {number} worked {worked:.1?} on {done} candidates, and waited {waited:.1?} for them"
        );
        Ok(())
    }

    fn one(&mut self, ready: Ready) -> Result<(), WorkError> {
        let Ready { taken, order, job, best_us, paces } = ready;
        self.write(Entry::Begun { candidate: taken.id, claim: taken.claim })?;
        let run = taken.run;
        let mut member = self.member(run)?;
        let factor = self.factor(&mut member, &order, &taken, &paces)?;
        let done = match job {
            Job::Finals(rounds) => self.finals(&mut member, &order, &taken, rounds, factor),
            Job::Trial(trial) => {
                let best_us = best_us.map(|best| best / factor);
                self.trial(&mut member, &order, taken, *trial, best_us, factor)
            }
        };
        self.members.push((run, member));
        done
    }

    fn write(&self, entry: Entry) -> Result<(), WorkError> {
        // The writing thread reports itself why it has ended.
        self.entries.send(entry).map_err(|_| WorkError::Lost("trials cannot be recorded any more".to_owned()))
    }

    /// This GPU's state of a run.
    fn member(&mut self, run: i64) -> Result<Member, WorkError> {
        if let Some(at) = self.members.iter().position(|(known, _)| *known == run) {
            return Ok(self.members.remove(at).1);
        }
        if self.members.len() >= KEPT {
            self.members.remove(0);
        }
        Ok(Member::new()?)
    }

    /// Checks and times a candidate.
    fn trial(
        &mut self,
        member: &mut Member,
        order: &Order,
        taken: Taken,
        (assigned, built): (Assigned, Built),
        best_us: Option<f64>,
        factor: f64,
    ) -> Result<(), WorkError> {
        let agent = self.agent;
        let task = order.task(&agent.ending);
        let (trial, failure, notes) = member.run(&task, &assigned, built, best_us, &mut self.bench)?;
        for note in notes.into_iter().collect::<HashSet<_>>() {
            agent.queue().note(Some(taken.run), Some(agent.id), &note)?;
        }
        if let Some(Failure::Lost(why) | Failure::Fault(why)) = failure {
            return Err(WorkError::Lost(why));
        }
        if let Status::Crashed(_) = trial.sample.status {
            return Ok(agent.queue().lose(&taken)?);
        }
        self.write(Entry::Done(Box::new(Done { taken, trial: scaled(trial, factor), factor })))
    }

    /// The factor that makes times of this GPU comparable with those of others. The first call takes a measurement.
    fn factor(
        &mut self,
        member: &mut Member,
        order: &Order,
        taken: &Taken,
        paces: &[f64],
    ) -> Result<f64, WorkError> {
        let (agent, problem) = (self.agent, taken.problem);
        if let Some(own) = self.paces.get(&problem) {
            return Ok(own.map_or(1.0, |own| factor(paces, own)));
        }
        let task = order.task(&agent.ending);
        let own = member.default_us(&task, &mut self.bench)?;
        self.paces.insert(problem, own);
        let Some(own) = own else { return Ok(1.0) };
        let mut queue = agent.queue();
        queue.set_pace(problem, agent.id, self.number, own)?;
        let factor = factor(&queue.paces(problem)?, own);
        if factor != 1.0 {
            queue.note_pace(taken.run, agent.id, self.number, factor)?;
        }
        Ok(factor)
    }

    /// Runs the final rounds of a problem.
    fn finals(
        &mut self,
        member: &mut Member,
        order: &Order,
        taken: &Taken,
        rounds: FinalRounds,
        factor: f64,
    ) -> Result<(), WorkError> {
        let agent = self.agent;
        let task = order.task(&agent.ending);
        let mut records = Records::over(Fenced::open(&agent.options.address, taken.fence())?);
        let done: Result<Finals, String> =
            match member.finals(&task, rounds, factor, &mut self.bench, &mut records) {
                Ok(finals) => Ok(finals),
                Err(TuneError::Records(RecordsError::Overtaken { .. })) => return Ok(()),
                Err(error @ (TuneError::Records(_) | TuneError::Measure(MeasureError::Lost(_)))) => {
                    return Err(error.into());
                }
                Err(error) => Err(error.to_string()),
            };
        agent.queue().end_finals(taken, &done)?;
        Ok(())
    }
}

/// A trial with times scaled to those of most GPUs.
fn scaled(mut trial: Trial, factor: f64) -> Trial {
    if let Some(times) = &mut trial.sample.times {
        times.min *= factor;
        times.median *= factor;
    }
    trial
}
