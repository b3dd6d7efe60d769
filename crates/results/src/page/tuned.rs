//! Tuning problems of a records database as sections of the page.

use warploom::app::{App, Settings, Subject};
use warploom::lang::Pipeline;
use warploom::schedule::{Change, Schedule};
use warploom::show;
use warploom::tune::records::{FinishedIteration, Problem, Records, Trial};
use warploom::tune::sample::{Origin, Sizes};
use warploom_report::{self as page, Fact, Iteration, Kernel, Listing, RunnerUp, Tuned};

use super::days;
use super::nests::{Explained, Nests, Wanted, without};
use super::source::{Source, Tried};
use crate::error::ResultsError;
use crate::trials::trial_table;

/// How many of the best trials have a row.
const SHOWN: usize = 500;

pub(super) fn section(
    apps: &[App],
    source: &Source,
    records: &Records,
    tried: &Tried,
    nests: &mut Nests,
) -> Result<Tuned, ResultsError> {
    let Tried { problem, trials } = tried;
    let finished = records.iterations(problem.id)?;
    let mut best: Vec<&Trial> = trials.iter().filter(|trial| trial.time_us().is_some()).collect();
    let time = |trial: &Trial| trial.time_us().unwrap_or(f64::INFINITY);
    best.sort_by(|a, b| time(a).total_cmp(&time(b)));
    let winner = best.first().copied();
    let number = winner.map(|trial| trial.id);
    let device = Wanted { name: problem.device.clone(), fingerprint: problem.fingerprint.clone() };
    let pipeline = winner.map(|winner| pipeline(records, winner));
    let explained = winner.zip(pipeline.as_ref()).map(|(winner, pipeline)| {
        let pipeline = pipeline.as_ref().map_err(Clone::clone)?;
        let request = problem.sizes.realise(pipeline);
        nests.explained(pipeline, &request, &device, &sizes(problem), &winner.sample.schedule)
    });
    let known = explained.as_ref().and_then(|explained| explained.as_ref().ok());
    let default = best.iter().find(|trial| trial.sample.origin == Origin::Default);
    let runner_up = winner.zip(best.get(1)).zip(pipeline.as_ref());
    let floor = pipeline.as_ref().and_then(|pipeline| pipeline.as_ref().ok());
    Ok(Tuned {
        title: title(problem),
        facts: facts(source, tried, finished.len()),
        trials: trials.iter().map(trial).collect(),
        winner: number,
        iterations: finished.iter().map(|finished| iteration(finished, trials)).collect(),
        best: trial_table(best.iter().copied().take(SHOWN), number, None),
        default_us: default.and_then(|trial| trial.time_us()),
        predicted_speedup: known.and_then(predicted_speedup),
        floor_us: floor.and_then(|pipeline| floor_of(apps, pipeline, problem, &device, nests)),
        kernels: known.map(kernels).unwrap_or_default(),
        runner_up: runner_up.map(|((winner, second), pipeline)| compared(winner, second, pipeline)),
        listing: winner.zip(explained).map(|(winner, explained)| listing(winner, explained)),
    })
}

/// The pipeline and its sizes.
pub(super) fn title(problem: &Problem) -> String {
    format!("{}{}", problem.name, sizes(problem))
}

/// The pipeline of a trial, or why there is none.
fn pipeline(records: &Records, trial: &Trial) -> Result<Pipeline, String> {
    match records.pipeline(trial.sample.pipeline) {
        Ok(Some(pipeline)) => Ok(pipeline),
        Ok(None) => Err("The database does not hold the pipeline.".to_owned()),
        // The measurements are worth showing even if the pipeline is in an older format that no
        // longer parses.
        Err(error) => Err(without(&error.to_string())),
    }
}

/// How many times as fast as the default schedule the winner is predicted to be.
fn predicted_speedup(explained: &Explained) -> Option<f64> {
    Some(explained.default_us? / explained.explanation.predicted_us)
}

/// The kernels that are launched. Several kernels of one stage are numbered.
fn kernels(explained: &Explained) -> Vec<Kernel> {
    let launched: Vec<_> =
        explained.explanation.kernels.iter().filter(|kernel| kernel.launches > 0.0).collect();
    let name = |at: usize| {
        let stage = &launched[at].stage;
        let same = |kernels: &[&warploom::tune::explain::KernelExplanation]| {
            kernels.iter().filter(|kernel| kernel.stage == *stage).count()
        };
        match same(&launched) {
            1 => stage.clone(),
            _ => format!("{stage} ({})", same(&launched[..=at])),
        }
    };
    let kernel = |at: usize| Kernel { name: name(at), predicted_us: launched[at].predicted_us };
    (0..launched.len()).map(kernel).collect()
}

/// The lower bound on the time of a pipeline. The operations of an app count if its sizes can be told from the boxes.
fn floor_of(
    apps: &[App],
    pipeline: &Pipeline,
    problem: &Problem,
    device: &Wanted,
    nests: &mut Nests,
) -> Option<f64> {
    let file = || {
        let app = App::of_pipeline(pipeline, &problem.sizes.realise(pipeline));
        Subject::new(&app, Settings::defaults(&app)).ok()
    };
    let subject = app_of(apps, pipeline, problem).or_else(file)?;
    Some(subject.floor_us(nests.device(device)?))
}

/// The app of a problem, at the sizes that give the problem's boxes.
fn app_of(apps: &[App], pipeline: &Pipeline, problem: &Problem) -> Option<Subject> {
    let app = apps.iter().find(|app| app.name == problem.name)?;
    let defaults = Settings::defaults(app);
    let regions = problem.sizes.outputs.iter().chain(&problem.sizes.inputs);
    let of_extents = regions.filter_map(|region| {
        let mut settings = defaults.clone();
        let mut sizes = app.sizes.iter().zip(region.extents());
        sizes.all(|(size, extent)| settings.set(&size.name, extent as f64)).then_some(settings)
    });
    let subjects = std::iter::once(defaults.clone()).chain(of_extents);
    subjects.filter_map(|settings| Subject::new(app, settings).ok()).find(|subject| {
        let sizes = Sizes::of(&subject.request);
        subject.pipeline.structural_hash() == pipeline.structural_hash()
            && (&sizes.inputs, &sizes.outputs) == (&problem.sizes.inputs, &problem.sizes.outputs)
    })
}

/// The winner against the second best.
fn compared(winner: &Trial, second: &Trial, pipeline: &Result<Pipeline, String>) -> RunnerUp {
    let (from, to) = (&second.sample.schedule, &winner.sample.schedule);
    RunnerUp {
        number: second.id,
        us: second.time_us().unwrap_or(f64::NAN),
        decisions: pipeline.as_ref().map_err(Clone::clone).and_then(|pipeline| decisions(pipeline, from, to)),
        schedule: from.clone(),
        best: to.clone(),
    }
}

/// The decisions that lead from one schedule to another.
fn decisions(pipeline: &Pipeline, from: &str, to: &str) -> Result<Vec<String>, String> {
    let unknown = |why: &str| format!("The decisions are not known: {why}.");
    let parse = |text: &str| Schedule::parse(text, pipeline).map_err(|error| unknown(&error.to_string()));
    let (from, to) = (parse(from)?, parse(to)?);
    if from.rewrites != to.rewrites {
        return Err(unknown("the two schedules rewrite the pipeline in different ways"));
    }
    let mut rewritten = pipeline.clone();
    for rewrite in &to.rewrites {
        rewritten = rewrite.apply(&rewritten).map_err(|error| unknown(&error.to_string()))?;
    }
    Ok(Change::between(&from, &to).iter().map(|change| change.to_text(&rewritten)).collect())
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

fn listing(winner: &Trial, explained: Result<Explained, String>) -> Listing {
    Listing {
        title: format!("The winner, trial {}: loop nests and schedule", winner.id),
        nest: explained.map(|explained| explained.nest),
        schedule: winner.sample.schedule.clone(),
    }
}
