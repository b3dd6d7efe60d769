//! Tuning with the workers of a farm in place of a GPU.

use std::time::Instant;

use warploom::app::{App, Tunable};
use warploom::farm::worker::{ProposeError, Proposed, Site};
use warploom::target::{Device, Program};
use warploom::tune::measure::{Compiled, Failure};
use warploom::tune::records::Trial;
use warploom::tune::tuning::{Ended, Event, Nobody, TuneError, Tuned};
use warploom::tune::worker::Bench;

use super::{Arguments, Start};
use crate::error::Error;

impl Arguments {
    /// The error that every worker would find in the arguments.
    pub(crate) fn check(&self, apps: &[App]) -> Result<(), Error> {
        self.plan(&self.which.realise(apps)?).map(drop)
    }

    /// What is tuned, on a device.
    pub(crate) fn tunable(&self, apps: &[App], device: &Device) -> Result<Tunable, Error> {
        Ok(Tunable::new(&self.which.realise(apps)?, device, self.seed)?)
    }

    /// Proposes what `warploom tune` would measure.
    pub(crate) fn in_farm(&self, apps: &[App], site: Site<'_>) -> Result<Proposed, ProposeError> {
        let Site { device, versions, mut records, crew, stop, age, .. } = site;
        let failed = |error: Error| ProposeError::Task(error.to_string());
        let begin = Instant::now();
        let asked = self.which.realise(apps).map_err(failed)?;
        let plan = self.plan(&asked).map_err(failed)?;
        let start = Start::new(&self.first, device).map_err(failed)?;
        let tunable = Tunable::new(&asked, device, self.seed).map_err(|error| failed(error.into()))?;
        let deadline = self.time_limit.map(|limit| begin + limit.saturating_sub(age));
        let task = tunable.task(&*start.model, self.search_options(), deadline, stop);
        let compile = |_: &Program| -> Result<Compiled, Failure> {
            Err(Failure::Lost("nothing is compiled where schedules are proposed".to_owned()))
        };
        let mut bench = Bench {
            device,
            compile: &compile,
            machine: &mut Nobody,
            others: Vec::new(),
            threads: 1,
            versions: versions.to_vec(),
            crew: Some(crew),
        };
        let mut hear = |event: &Event<'_>| {
            if let Event::Note(note) = event {
                tracing::info!("{}: {note}", asked.name);
            }
        };
        let initial = start.weights.clone();
        let (found, _) =
            self.run(plan, &task, &mut bench, &mut records, initial, &mut hear).map_err(trouble)?;
        outcome(found.tuned)
    }
}

/// How a run of the tuner ended, in a farm's words.
fn outcome(tuned: Tuned) -> Result<Proposed, ProposeError> {
    let Tuned { winner, ended, .. } = tuned;
    match ended {
        Ended::Failed(error) => return Err(trouble(error)),
        Ended::Stopped => return Ok(Proposed::Interrupted),
        Ended::Finished | Ended::TimeLimit => {}
    }
    let time = winner.as_ref().and_then(|winner| Trial::time_us(&winner.trial));
    Ok(Proposed::Finished(time.map_or_else(
        || "no schedule is valid".to_owned(),
        |time| format!("the fastest schedule takes {time:.2} us"),
    )))
}

fn trouble(error: TuneError) -> ProposeError {
    match error {
        TuneError::Records(error) => ProposeError::Records(error),
        error => ProposeError::Task(error.to_string()),
    }
}
