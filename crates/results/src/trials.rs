//! Trials as reports show them.

use warploom::app::Subject;
use warploom::cost::{Basis, CostModel, TimeRange};
use warploom::schedule::Schedule;
use warploom::schedule_file::problem;
use warploom::show;
use warploom::target::Device;
use warploom::tune::one_shot::basis;
use warploom::tune::records::Trial;
use warploom::tune::sample::{KernelUse, Origin, Status};
use warploom::tune::tuning::Ended;
use warploom_report::{Table, dash};

/// Why a run that tried so many schedules or points has no result.
pub fn why_nothing(ended: &Ended, tried: usize, thing: &str, name: &str) -> String {
    match (ended, tried) {
        (Ended::TimeLimit, 0) => {
            format!(
                "the time limit ended the run before any {thing} of `{name}` was measured; give it more time"
            )
        }
        (Ended::Stopped, 0) => format!("the run was stopped before any {thing} of `{name}` was measured"),
        (_, 0) => format!("no {thing} of `{name}` could be tried"),
        (_, 1) => format!("1 {thing} of `{name}` was tried and is not valid"),
        _ => format!("{} of `{name}` were tried and none is valid", show::count(tried, thing)),
    }
}

report! {
    /// A trial, as reports show it.
    pub struct TrialReport = "trial" {
        id: Option<i64>, "its number in the records; `null` if it was just measured";
        status: &'static str,
            "`ok`, or why it has no valid time: `not_lowered`, `not_compiled`, `spilled`, `failed`, `wrong`, `numeric`, `timeout` or `crashed`";
        message: String, "what went wrong; empty if nothing did";
        verified: bool, "whether its outputs were compared with the reference";
        predicted_us: Option<f64>, "the time that the cost model predicted";
        predicted_us_low: Option<f64>,
            "the measured time lies between this and the next for nine of ten pipelines; `null` if the model's errors are not known here";
        predicted_us_high: Option<f64>, "the other end of the range";
        min_us: Option<f64>, "the shortest measured time";
        median_us: Option<f64>, "the median";
        spread: f64 ["share"], "interquartile range of the times, as a share of the median";
        retimed_us: Option<f64>, "the time from the final round, in which the best are timed in turns";
        registers: Option<u32>, "the most registers per thread of its kernels";
        spilled_bytes: Option<u64>, "what its kernels spill, stores plus loads";
        shared_bytes: Option<u32>, "the most shared memory per block of its kernels";
        kernels: usize, "the number of kernels";
        compile_ms: f64, "the time to compile them";
        origin: &'static str, "where the schedule is from: `search`, `near`, `given`, `default`, `random`, `strategy`";
        schedule: String, "the [schedule](schedules.md)";
    }
}

impl TrialReport {
    /// `model` predicted the times of the trials; `None` if that is not known.
    pub fn new(trial: &Trial, model: Option<&dyn CostModel>) -> TrialReport {
        let (sample, range) = (&trial.sample, range_of(trial, model));
        TrialReport {
            id: (trial.id > 0).then_some(trial.id),
            status: sample.status.kind(),
            message: sample.status.message().to_owned(),
            verified: sample.verified,
            predicted_us: trial.predicted_us,
            predicted_us_low: range.map(|range| range.low_us),
            predicted_us_high: range.map(|range| range.high_us),
            min_us: sample.times.map(|times| times.min),
            median_us: sample.times.map(|times| times.median),
            spread: trial.spread,
            retimed_us: trial.retimed_us,
            registers: most_registers(&sample.kernels),
            spilled_bytes: spilled_bytes(&sample.kernels),
            shared_bytes: sample.kernels.iter().map(|kernel| kernel.shared).max(),
            kernels: sample.kernels.len(),
            compile_ms: sample.compile_ms,
            origin: sample.origin.name(),
            schedule: sample.schedule.clone(),
        }
    }
}

/// The range of a trial's predicted time. The prediction for a neighbour of a measured schedule starts from its time, and
/// is more accurate than the ranges of the model say.
pub fn range_of(trial: &Trial, model: Option<&dyn CostModel>) -> Option<TimeRange> {
    let found = trial.sample.origin == Origin::Search;
    model?.range(trial.predicted_us.filter(|_| found)?)
}

/// What the predicted time of a schedule is computed from; `None` if the pipeline has no schedule at these sizes.
pub fn basis_of(
    asked: &Subject,
    device: &Device,
    schedule: &Schedule,
    model: &dyn CostModel,
) -> Option<Basis> {
    basis(&problem(&asked.pipeline, &asked.request, device).ok()?, schedule, model).ok()
}

fn most_registers(kernels: &[KernelUse]) -> Option<u32> {
    kernels.iter().map(|kernel| kernel.registers).max()
}

fn spilled_bytes(kernels: &[KernelUse]) -> Option<u64> {
    (!kernels.is_empty()).then(|| kernels.iter().map(KernelUse::spilled_bytes).sum())
}

/// A table of trials; the one with number `best` is marked. `model` predicted the times; `None` if that is not known.
pub fn trial_table<'t>(
    trials: impl IntoIterator<Item = &'t Trial>,
    best: Option<i64>,
    model: Option<&'t dyn CostModel>,
) -> Table {
    let predicted = move |trial: &Trial| {
        dash(trial.predicted_us.map(|time| show::with_range(time, range_of(trial, model))))
    };
    let measured = |trial: &Trial| {
        dash(trial.sample.times.map(|times| {
            format!("{:.2} ± {:.2}", trial.retimed_us.unwrap_or(times.min), trial.spread * times.median)
        }))
    };
    let check = |trial: &Trial| match (&trial.sample.status, trial.sample.verified) {
        (Status::Measured, false) => "not checked".to_owned(),
        (status, _) => status.kind().to_owned(),
    };
    let mark = move |trial: &Trial| if best == Some(trial.id) { "best".to_owned() } else { String::new() };
    Table::of(trials)
        .right("trial", |trial| trial.id.to_string())
        .right("predicted us", predicted)
        .right("measured us", measured)
        .right("registers", |trial| dash(most_registers(&trial.sample.kernels)))
        .right("spilled bytes", |trial| dash(spilled_bytes(&trial.sample.kernels)))
        .right("kernels", |trial| trial.sample.kernels.len().to_string())
        .left("check", check)
        .left("", mark)
        .done()
}

#[cfg(test)]
mod tests {
    use warploom::tune::sample::{Sample, Sizes, Times};

    use super::*;

    fn trial(origin: Origin) -> Trial {
        let sample = Sample {
            pipeline: 1,
            sizes: Sizes { inputs: Vec::new(), outputs: Vec::new(), params: Vec::new() },
            schedule: String::new(),
            origin,
            device: "H200".to_owned(),
            fingerprint: String::new(),
            versions: Vec::new(),
            status: Status::Measured,
            verified: true,
            times: Some(Times { min: 40.0, median: 40.0, runs: 1 }),
            kernels: Vec::new(),
            compile_ms: 1.0,
        };
        Trial::new(sample, Some(30.0), 0.0)
    }

    #[test]
    fn predictions_of_searches_have_a_range_if_their_model_is_known() {
        let model = warploom::model_for(&Device::preset("h200").unwrap()).model;
        let (search, near) = (trial(Origin::Search), trial(Origin::Near));
        let report = TrialReport::new(&search, Some(&*model));
        let (low, high) = (report.predicted_us_low.unwrap(), report.predicted_us_high.unwrap());
        assert!(low < 30.0 && high > 40.0, "{low} {high}");
        let cells = trial_table([&search, &near], None, Some(&*model)).rows;
        assert_eq!([&cells[0][1], &cells[1][1]], [&format!("30.0 ({low:.0} to {high:.0})"), "30.0"]);
        assert_eq!(TrialReport::new(&near, Some(&*model)).predicted_us_low, None);
        assert_eq!(TrialReport::new(&search, None).predicted_us_high, None);
    }
}
