//! Threads that propose candidates for runs.

use std::time::Duration;

use warploom_target::Device;
use warploom_tune::records::{Records, RecordsError};

use super::agent::Agent;
use super::crew::FarmCrew;
use super::{News, ProposeError, Proposed, Site, WorkError};
use crate::queue::fence::Fenced;
use crate::queue::runs::{Run, RunEnd};

/// Pause before looking again for a run, or for a GPU.
const PAUSE: Duration = Duration::from_millis(200);

/// Proposes candidates for one run after the other until the worker ends.
pub(super) fn propose(agent: &Agent<'_>) -> Result<(), WorkError> {
    let mut pause = PAUSE;
    while !agent.is_ending() {
        let taken = agent.queue().take_run()?;
        match taken {
            None => agent.pause(&mut pause),
            Some(run) => {
                pause = PAUSE;
                let (id, name, before) = (run.id, run.name.clone(), run.epoch - 1);
                (agent.hear)(&News::Proposing { run: id, name: name.clone(), before });
                let how = one(agent, &run)?;
                (agent.hear)(&News::Ended { run: id, name, how });
            }
        }
    }
    Ok(())
}

/// Proposes candidates for a run, and ends it or leaves it to others. Returns the result.
fn one(agent: &Agent<'_>, run: &Run) -> Result<String, WorkError> {
    let proposed = proposed(agent, run);
    let (end, message) = match proposed {
        Ok(Proposed::Finished(message)) => (RunEnd::Finished, message),
        Err(ProposeError::Task(message)) => (RunEnd::Failed, message),
        Ok(Proposed::Interrupted) => {
            agent.queue().give_run_back(run)?;
            return Ok("goes on elsewhere".to_owned());
        }
        Err(ProposeError::Records(RecordsError::Overtaken { .. })) => {
            return Ok("was stopped, or goes on elsewhere".to_owned());
        }
        Err(ProposeError::Records(error)) => return Err(error.into()),
    };
    match agent.queue().end_run(run, end, &message) {
        Ok(()) => Ok(message),
        Err(RecordsError::Overtaken { .. }) => Ok("was stopped, or goes on elsewhere".to_owned()),
        Err(error) => Err(error.into()),
    }
}

fn proposed(agent: &Agent<'_>, run: &Run) -> Result<Proposed, ProposeError> {
    let Some(device) = device(agent, run)? else { return Ok(Proposed::Interrupted) };
    let device = Device::from_json(&device).map_err(|error| ProposeError::Task(error.to_string()))?;
    let records = Records::over(Fenced::open(&agent.options.address, run.fence())?);
    let mut crew = FarmCrew::new(agent, run, device.fingerprint());
    let mut settle = |task: &str| agent.queue().set_task(run, task);
    let site = Site {
        device: &device,
        versions: &agent.versions,
        records,
        crew: &mut crew,
        settle: &mut settle,
        stop: &agent.ending,
        age: Duration::from_secs(run.age),
    };
    agent.workshop.propose(&run.task, site)
}

/// The target device of a run: its own or, by default, the kind of GPU that most workers have; waits for one. `None` if
/// the worker ends.
fn device(agent: &Agent<'_>, run: &Run) -> Result<Option<String>, RecordsError> {
    if let Some(device) = &run.device {
        return Ok(Some(device.clone()));
    }
    let mut pause = PAUSE;
    while !agent.is_ending() {
        let device = agent.queue().most_common_device()?;
        if let Some(device) = device {
            agent.queue().set_device(run, &device)?;
            return Ok(Some(device));
        }
        agent.pause(&mut pause);
    }
    Ok(None)
}
