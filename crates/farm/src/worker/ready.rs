//! Prepares the next candidate for a GPU while the GPU is busy.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use warploom_tune::measure::Built;
use warploom_tune::tuning::{Assigned, FinalRounds};

use super::WorkError;
use super::agent::{Agent, Order, Share};
use crate::queue::candidates::{Stage, Taken};
use crate::queue::code::{self, Packed};

/// A prepared candidate.
pub(super) struct Ready {
    pub taken: Taken,
    pub order: Arc<Order>,
    pub job: Job,
    /// The shortest time of its problem so far, in microseconds.
    pub best_us: Option<f64>,
    /// The times of all GPUs for the default schedule of its problem.
    pub paces: Vec<f64>,
}

/// A job for a GPU.
pub(super) enum Job {
    /// To check and time a schedule.
    Trial(Box<(Assigned, Built)>),
    /// To run the final rounds of a problem.
    Finals(FinalRounds),
}

/// Prepares candidates until the worker ends, or nobody takes them any more. The GPU takes one when it is free, so at
/// most one is prepared at a time.
pub(super) fn make_ready(
    agent: &Agent<'_>,
    share: &Share,
    stage: Stage<'_>,
    ready: &SyncSender<Ready>,
) -> Result<(), WorkError> {
    while let Some(taken) = share.next(agent, stage)? {
        if let Some(one) = one(agent, taken)?
            && ready.send(one).is_err()
        {
            break;
        }
    }
    Ok(())
}

/// `None` if the candidate cannot be run, which is recorded.
fn one(agent: &Agent<'_>, taken: Taken) -> Result<Option<Ready>, WorkError> {
    let Some(order) = agent.order(taken.run)? else { return Ok(None) };
    let job = match taken.options.finals {
        Some(rounds) => Job::Finals(rounds),
        None => {
            let assigned = match agent.assigned(&taken, &order) {
                Ok(assigned) => assigned,
                Err(status) => return agent.refuse(taken, &order, status).map(|()| None),
            };
            let packed = Packed {
                built: taken.built.clone().unwrap_or_default(),
                code: agent.queue().code(taken.id)?,
            };
            let Ok(Some(built)) = code::unpack(&packed) else {
                // A crash of the server empties the table of machine code.
                agent.queue().give_back(&[taken], true)?;
                return Ok(None);
            };
            Job::Trial(Box::new((assigned, built)))
        }
    };
    let best_us = agent.queue().best_us(taken.problem)?;
    let paces = agent.queue().paces(taken.problem)?;
    Ok(Some(Ready { taken, order, job, best_us, paces }))
}
