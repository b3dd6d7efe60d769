//! Recorded trials whose schedules are not usable: an earlier version accepted them, or their pipeline had other names
//! for inner Funcs and variables, which the records do not distinguish.

use std::collections::BTreeMap;

use warploom_lang::Pipeline;
use warploom_lang::brief::{quoted, shown};
use warploom_schedule::Schedule;

use super::{Event, Session, TuneError};
use crate::records::Trial;

/// Why trials are left out, by their numbers.
#[derive(Default)]
pub(crate) struct Unusable {
    reasons: BTreeMap<i64, String>,
    /// The number of these that the user was told of.
    told: usize,
}

impl Unusable {
    pub fn note(&mut self, trial: &Trial, why: &str) {
        self.reasons.entry(trial.id).or_insert_with(|| quoted(why).replace('\n', " "));
    }

    pub fn why(&self, trial: &Trial) -> Option<&str> {
        self.reasons.get(&trial.id).map(String::as_str)
    }
}

/// The schedule of a text, if its text reads back to the same schedule.
pub(crate) fn read_back(text: &str, schedule: &Schedule, pipeline: &Pipeline) -> Result<(), TuneError> {
    let why = match Schedule::parse(text, pipeline) {
        Ok(read) if read == *schedule => return Ok(()),
        Ok(_) => "as another schedule".to_owned(),
        Err(errors) => errors.to_string(),
    };
    Err(TuneError::NotReadBack { text: text.to_owned(), why })
}

impl Session<'_, '_> {
    /// The schedule of a trial; `None` after noting why it cannot be used.
    pub fn read(&mut self, trial: &Trial) -> Option<Schedule> {
        if self.unusable.why(trial).is_some() {
            return None;
        }
        let schedule = Schedule::parse(&trial.sample.schedule, self.task.subject.pipeline());
        let usable = schedule.map_err(|errors| errors.to_string()).and_then(|schedule| {
            let problem = self.problem.rewritten(&schedule.rewrites).map_err(|error| error.to_string())?;
            let checked = problem.check(&schedule).map(drop);
            checked.map(|()| schedule).map_err(|violations| shown(&violations, " "))
        });
        usable.map_err(|why| self.unusable.note(trial, &why)).ok()
    }

    /// Tells the user about trials that were left out since the last time.
    pub fn tell_unusable(&mut self) {
        let Unusable { reasons, told } = &mut self.unusable;
        let count = reasons.len() - *told;
        let Some((trial, why)) = reasons.last_key_value().filter(|_| count > 0) else { return };
        *told = reasons.len();
        let note = format!(
            "recorded schedules that cannot be used any more are left out: {count}; one is that of trial {trial}: {why}"
        );
        self.tell(&Event::Note(note));
    }
}
