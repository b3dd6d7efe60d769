//! Threads that own a GPU: they check and time candidates, and run final rounds.

use std::collections::{HashMap, HashSet};
use std::thread;

use warploom_target::Device;
use warploom_tune::measure::{Compile, Failure, Machine, MeasureError};
use warploom_tune::records::{ProblemId, Records, RecordsError, Trial};
use warploom_tune::sample::Status;
use warploom_tune::tuning::{FinalRounds, Finals, Member, TuneError};
use warploom_tune::worker::{Bench, OpenBench};

use super::WorkError;
use super::agent::{Agent, Order, Share, start_scoped};
use crate::queue::candidates::{Done, Stage, Taken};
use crate::queue::code::{self, Packed};
use crate::queue::fence::Fenced;

/// The most tasks whose checks at the full size a GPU keeps.
const KEPT: usize = 4;

/// Runs candidates on all GPUs until the worker ends.
pub(super) fn run(agent: &Agent<'_>, bench: &mut OpenBench) -> Result<(), WorkError> {
    bench.with(|bench| {
        let Bench { device, compile, machine, others, threads, .. } = bench;
        let (device, compile, threads): (&Device, Compile<'_>, usize) = (device, compile, *threads);
        let mut machines: Vec<&mut dyn Machine> = vec![&mut **machine];
        machines.extend(others.iter_mut().map(|machine| &mut **machine as &mut dyn Machine));
        let share = Share::default();
        thread::scope(|scope| {
            let share = &share;
            let gpus = machines.into_iter().enumerate().map(|(number, machine)| {
                start_scoped(scope, move || -> Result<(), WorkError> {
                    let versions = agent.versions.clone();
                    let bench =
                        Bench { device, compile, machine, others: Vec::new(), threads, versions, crew: None };
                    let mut gpu = Gpu { agent, number, bench, members: Vec::new(), paces: HashMap::new() };
                    gpu.work(share).inspect_err(|_| agent.end())
                })
            });
            let gpus: Vec<_> = gpus.collect();
            gpus.into_iter().try_for_each(|gpu| gpu?.join().unwrap_or(Err(WorkError::Panicked)))
        })
    })
}

/// A GPU of this worker.
struct Gpu<'a, 'b> {
    agent: &'a Agent<'a>,
    number: usize,
    bench: Bench<'b>,
    /// What it keeps of runs, the latest last.
    members: Vec<(i64, Member)>,
    /// The times of default schedules.
    paces: HashMap<ProblemId, f64>,
}

impl Gpu<'_, '_> {
    fn work(&mut self, share: &Share) -> Result<(), WorkError> {
        let fingerprint = self.bench.device.fingerprint();
        let stage = Stage::Run { fingerprint: &fingerprint };
        while let Some(taken) = share.next(self.agent, stage)? {
            self.one(taken)?;
        }
        Ok(())
    }

    fn one(&mut self, taken: Taken) -> Result<(), WorkError> {
        let Some(order) = self.agent.order(taken.run)? else { return Ok(()) };
        let mut member = self.member(taken.run)?;
        let done = match taken.options.finals {
            Some(rounds) => self.finals(&mut member, &order, &taken, rounds),
            None => self.trial(&mut member, &order, &taken),
        };
        self.members.push((taken.run, member));
        done
    }

    /// What this GPU keeps of a run.
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
    fn trial(&mut self, member: &mut Member, order: &Order, taken: &Taken) -> Result<(), WorkError> {
        let agent = self.agent;
        let assigned = match agent.assigned(taken, order) {
            Ok(assigned) => assigned,
            Err(status) => return agent.refuse(taken.clone(), order, status),
        };
        let packed =
            Packed { built: taken.built.clone().unwrap_or_default(), code: agent.queue().code(taken.id)? };
        let Ok(Some(built)) = code::unpack(&packed) else {
            // A crash of the server empties the table of machine code.
            return Ok(agent.queue().give_back(std::slice::from_ref(taken), true)?);
        };
        let task = order.task(&agent.ending);
        let factor = self.factor(member, order, taken)?;
        let best_us = agent.queue().best_us(taken.problem)?.map(|best| best / factor);
        let (trial, failure, notes) = member.run(&task, &assigned, built, best_us, &mut self.bench)?;
        for note in notes.into_iter().collect::<HashSet<_>>() {
            agent.queue().note(Some(taken.run), Some(agent.id), &note)?;
        }
        if let Some(Failure::Lost(why) | Failure::Fault(why)) = failure {
            return Err(WorkError::Lost(why));
        }
        if let Status::Crashed(_) = trial.sample.status {
            return Ok(agent.queue().lose(taken)?);
        }
        agent.record(Done { taken: taken.clone(), trial: scaled(trial, factor), factor })
    }

    /// The factor that makes times of this GPU comparable with those of others. The first time, this
    /// takes a measurement.
    fn factor(&mut self, member: &mut Member, order: &Order, taken: &Taken) -> Result<f64, WorkError> {
        let (agent, problem) = (self.agent, taken.problem);
        if let Some(own) = self.paces.get(&problem) {
            return Ok(agent.queue().factor(problem, *own)?);
        }
        let task = order.task(&agent.ending);
        let Some(own) = member.default_us(&task, &mut self.bench)? else { return Ok(1.0) };
        self.paces.insert(problem, own);
        let mut queue = agent.queue();
        queue.set_pace(problem, agent.id, self.number, own)?;
        let factor = queue.factor(problem, own)?;
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
    ) -> Result<(), WorkError> {
        let agent = self.agent;
        let factor = self.factor(member, order, taken)?;
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

/// A trial with times as they would be on most GPUs.
fn scaled(mut trial: Trial, factor: f64) -> Trial {
    if let Some(times) = &mut trial.sample.times {
        times.min *= factor;
        times.median *= factor;
    }
    trial
}
