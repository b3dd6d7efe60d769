//! Tuning problems of a records database as sections of the page.

use warploom::tune::records::{FinishedIteration, Problem, Records, Trial};
use warploom_report::{self as page, Fact, Iteration, Listing, Table, Tuned};

use super::nests::{Nests, Wanted, without};
use super::source::{Source, Tried};
use super::{columns, days};
use crate::error::Error;
use crate::show;
use crate::tune::{TRIAL_TITLES, trial_cells};

/// How many of the best trials to show.
const SHOWN: usize = 10;

pub(super) fn section(
    source: &Source,
    records: &Records,
    tried: &Tried,
    nests: &mut Nests,
) -> Result<Tuned, Error> {
    let Tried { problem, trials } = tried;
    let finished = records.iterations(problem.id)?;
    let mut best: Vec<&Trial> = trials.iter().filter(|trial| trial.time_us().is_some()).collect();
    let time = |trial: &Trial| trial.time_us().unwrap_or(f64::INFINITY);
    best.sort_by(|a, b| time(a).total_cmp(&time(b)));
    let winner = best.first().copied();
    let number = winner.map(|trial| trial.id);
    let shown: Vec<Trial> = best.iter().take(SHOWN).map(|trial| (*trial).clone()).collect();
    let listing = winner.map(|winner| listing(records, problem, winner, nests));
    Ok(Tuned {
        title: format!("{}{}", problem.name, sizes(problem)),
        facts: facts(source, tried, finished.len()),
        trials: trials.iter().map(trial).collect(),
        winner: number,
        iterations: finished.iter().map(|finished| iteration(finished, trials)).collect(),
        best: Table { columns: columns(&TRIAL_TITLES), rows: trial_cells(&shown, number) },
        listing,
    })
}

/// The extents of the outputs, as in ` at 1536x2560`.
fn sizes(problem: &Problem) -> String {
    let outputs: Vec<String> = problem.sizes.outputs.iter().map(show::extents).collect();
    if outputs.is_empty() { String::new() } else { format!(" at {}", outputs.join(", ")) }
}

fn facts(source: &Source, tried: &Tried, iterations: usize) -> Vec<Fact> {
    let Problem { device, fingerprint, versions, sizes, .. } = &tried.problem;
    let inputs: Vec<String> = sizes.inputs.iter().map(show::extents).collect();
    let valid = tried.trials.iter().filter(|trial| trial.time_us().is_some()).count();
    let mut trials = format!("{}, {valid} valid", tried.trials.len());
    if iterations > 0 {
        trials += &format!(", {}", show::count(iterations, "finished iteration"));
    }
    vec![
        Fact::new("trials", trials),
        Fact::new("device", format!("{device}, fingerprint {fingerprint}")),
        Fact::new("versions", versions.join(", ")),
        Fact::new("inputs", if inputs.is_empty() { "none".to_owned() } else { inputs.join(", ") }),
        Fact::new("measured", days(&tried.dates())),
        Fact::new("database", &source.file),
    ]
}

fn trial(trial: &Trial) -> page::Trial {
    let valid = trial.time_us().is_some();
    page::Trial {
        number: trial.id,
        status: trial.sample.status.kind().to_owned(),
        message: trial.sample.status.message().to_owned(),
        predicted_us: trial.predicted_us,
        measured_us: trial.sample.times.filter(|_| valid).map(|times| times.min),
        retimed_us: trial.retimed_us,
    }
}

fn iteration(finished: &FinishedIteration, trials: &[Trial]) -> Iteration {
    let before = trials.iter().filter(|trial| trial.id <= finished.last_trial).count();
    Iteration { name: finished.number.to_string(), trials: before }
}

fn listing(records: &Records, problem: &Problem, winner: &Trial, nests: &mut Nests) -> Listing {
    let device = Wanted { name: problem.device.clone(), fingerprint: problem.fingerprint.clone() };
    let schedule = winner.sample.schedule.clone();
    let nest = match records.pipeline(winner.sample.pipeline) {
        Ok(Some(pipeline)) => {
            let request = problem.sizes.realise(&pipeline);
            nests.explained(&pipeline, &request, &device, &sizes(problem), &schedule)
        }
        Ok(None) => Err("The database does not hold the pipeline.".to_owned()),
        // The measurements are worth showing even if the pipeline is in an older format that no
        // longer parses.
        Err(error) => Err(without(&error.to_string())),
    };
    Listing { title: format!("The winner, trial {}: loop nests and schedule", winner.id), nest, schedule }
}
