//! Threads that compile candidates.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread;

use warploom_target::{Device, Program};
use warploom_tune::measure::{Compiled, Failure};
use warploom_tune::sample::Status;
use warploom_tune::tuning::{build_assigned, refused_by_compiler};
use warploom_tune::worker::Compilers;

use super::WorkError;
use super::agent::{Agent, Order, Share, lock, start_scoped};
use crate::queue::candidates::{Done, Stage, Taken};
use crate::queue::code;

/// Compilers by the fingerprints of the devices that they compile for.
type Kinds = Mutex<HashMap<String, Arc<Compilers>>>;

/// Compiles until the worker ends.
pub(super) fn compile(agent: &Agent<'_>) -> Result<(), WorkError> {
    let (share, kinds) = (Share::default(), Kinds::default());
    thread::scope(|scope| {
        let (share, kinds) = (&share, &kinds);
        let threads = (0..agent.options.threads.max(1)).map(|_| {
            start_scoped(scope, move || -> Result<(), WorkError> {
                while let Some(taken) = share.next(agent, Stage::Compile)? {
                    // It may have been freed since, if the connection broke.
                    if agent.queue().start(taken.id, taken.claim)? {
                        one(agent, kinds, taken).inspect_err(|_| agent.end())?;
                    }
                }
                Ok(())
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().try_for_each(|thread| thread?.join().unwrap_or(Err(WorkError::Panicked)))
    })
}

/// Compiles one candidate and passes it on.
fn one(agent: &Agent<'_>, kinds: &Kinds, taken: Taken) -> Result<(), WorkError> {
    let Some(order) = agent.order(taken.run)? else { return Ok(()) };
    let assigned = match agent.assigned(&taken, &order) {
        Ok(assigned) => assigned,
        Err(status) => return agent.refuse(taken, &order, status),
    };
    let compilers = compilers(agent, kinds, &order)?;
    let compile = |program: &Program| -> Result<Compiled, Failure> { compilers.compile(program) };
    let task = order.task(&agent.ending);
    let built = build_assigned(&task, &assigned, &order.device, &compile, &agent.versions);
    if let Some(why) = built.lost() {
        return Err(WorkError::Lost(why.to_owned()));
    }
    if let Some(Status::Crashed(_)) = built.refusal() {
        return Ok(agent.queue().lose(&taken)?);
    }
    match refused_by_compiler(&task, &assigned, &order.device, &agent.versions, built) {
        Ok(trial) => agent.record(&[Done { taken, trial, factor: 1.0 }]),
        Err(built) => {
            let packed = code::pack(*built).map_err(|error| WorkError::Lost(error.to_string()))?;
            if agent.queue().compiled(agent.id, &taken, &packed)? {
                agent.count_compiled();
            }
            Ok(())
        }
    }
}

/// The compilers for the device of a run.
fn compilers(agent: &Agent<'_>, kinds: &Kinds, order: &Order) -> Result<Arc<Compilers>, WorkError> {
    let device: &Device = &order.device;
    let mut kinds = lock(kinds);
    if let Some(known) = kinds.get(&device.fingerprint()) {
        return Ok(known.clone());
    }
    let options = agent.options;
    let (program, fake) = (options.program.clone(), options.fake.clone());
    let started = Compilers::start(program, device.clone(), fake, options.patience, options.threads.max(1))?;
    let started = Arc::new(started);
    kinds.insert(device.fingerprint(), started.clone());
    Ok(started)
}
