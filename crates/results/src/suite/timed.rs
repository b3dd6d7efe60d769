//! What came of one pipeline: the part that rows of apps and of operators share.

use serde::Deserialize;
use warploom::app::Subject;
use warploom::cost::{Basis, TimeRange};
use warploom::lang::{Pipeline, Type};
use warploom::show;
use warploom::target::Device;
use warploom::tune::sample::{KernelUse, Status};
use warploom::tune::tuning::Tuned;

report! {
    /// The best schedule of a pipeline, its check and its times.
    #[derive(Clone, Deserialize)]
    pub struct Timed = "timed pipeline" {
        status: String, "`ok`, or what is wrong with the schedule; `none` without a schedule";
        pub message: String, "what went wrong; empty if nothing did";
        #[serde(default)]
        pub notes: Vec<String>, "what the numbers do not say";
        checked_at_full_size: bool, "whether its outputs were compared at the full size";
        pub min_us: Option<f64>, "the shortest time";
        pub median_us: Option<f64>, "the median";
        predicted_us: Option<f64>, "the predicted time";
        #[serde(default)]
        predicted_us_low: Option<f64>,
            "the measured time lies between this and the next for nine of ten pipelines; `null` if the model's errors are not known here";
        #[serde(default)]
        predicted_us_high: Option<f64>, "the other end of the range";
        pub floor_us: Option<f64>, "a lower bound on this GPU";
        pub kernels: usize, "the number of kernels";
        registers: Option<u32>, "the most registers per thread";
        pub spilled_bytes: u64, "what the kernels spill";
        pub compile_seconds: f64, "the time to compile them";
        pub search_seconds: f64, "the time to find the schedule";
        pub schedule: String, "the [schedule](schedules.md); empty if there is none";
    }
}

impl Timed {
    /// What was measured of a schedule that took so many seconds to find.
    pub fn new(asked: &Subject, device: &Device, seconds: f64, schedule: String, timed: &Tuned) -> Timed {
        let mut row = Timed::failed(asked, device, seconds, String::new());
        row.schedule = schedule;
        let Some(trial) = timed.shown.first() else { return row };
        let sample = &trial.sample;
        sample.status.kind().clone_into(&mut row.status);
        row.message = sample.status.message().to_owned();
        row.checked_at_full_size = timed.winner.as_ref().is_some_and(|winner| winner.checked_at_full_size);
        let times = sample.times.filter(|_| sample.status == Status::Measured);
        row.min_us = trial.time_us();
        row.median_us = times.map(|times| times.median.max(trial.time_us().unwrap_or(0.0)));
        row.predicted_us = trial.predicted_us;
        row.kernels = sample.kernels.len();
        row.registers = sample.kernels.iter().map(|kernel| kernel.registers).max();
        row.spilled_bytes = sample.kernels.iter().map(KernelUse::spilled_bytes).sum();
        row.compile_seconds = sample.compile_ms / 1e3;
        row
    }

    /// A pipeline for which no schedule was found.
    pub fn failed(asked: &Subject, device: &Device, seconds: f64, why: String) -> Timed {
        Timed {
            status: "none".to_owned(),
            message: why,
            notes: no_tensor_cores(&asked.pipeline).map(str::to_owned).into_iter().collect(),
            checked_at_full_size: false,
            min_us: None,
            median_us: None,
            predicted_us: None,
            predicted_us_low: None,
            predicted_us_high: None,
            floor_us: Some(asked.floor_us(device)),
            kernels: 0,
            registers: None,
            spilled_bytes: 0,
            compile_seconds: 0.0,
            search_seconds: seconds,
            schedule: String::new(),
        }
    }

    /// Sets the range of the predicted time.
    pub fn set_range(&mut self, range: Option<TimeRange>) {
        self.predicted_us_low = range.map(|range| range.low_us);
        self.predicted_us_high = range.map(|range| range.high_us);
    }

    /// Notes that the predicted time is in part that of another model, if it is.
    pub fn note_basis(&mut self, basis: Option<Basis>) {
        let partly = basis.filter(|basis| basis.analytic_kernels > 0);
        self.notes.extend(partly.map(|basis| format!("predicted by {basis}")));
    }

    fn range(&self) -> Option<TimeRange> {
        Some(TimeRange { low_us: self.predicted_us_low?, high_us: self.predicted_us_high? })
    }

    /// Whether there is a valid schedule.
    pub fn is_ok(&self) -> bool {
        self.status == "ok"
    }

    /// The time, or why there is none.
    pub fn brief(&self) -> String {
        self.min_us.map_or(self.status.clone(), |time| format!("{time:.2} us"))
    }

    /// The cell of the predicted time.
    pub fn predicted(&self) -> String {
        self.predicted_us.map_or("-".to_owned(), |time| show::with_range(time, self.range()))
    }

    /// The cell of the lower bound as a share of the time.
    pub fn of_the_floor(&self) -> String {
        let share = self.min_us.zip(self.floor_us).map(|(time, floor)| 1e2 * floor / time);
        share.map_or("-".to_owned(), |share| format!("{share:.0} %"))
    }

    /// The cell of the registers per thread.
    pub fn most_registers(&self) -> String {
        self.registers.map_or("-".to_owned(), |count| count.to_string())
    }

    /// The cell that says how the outputs were checked.
    pub fn check(&self) -> &str {
        match (self.status.as_str(), self.checked_at_full_size) {
            ("ok", true) => "ok",
            ("ok", false) => "small size only",
            (status, _) => status,
        }
    }

    /// What went wrong and what else there is to say.
    pub fn sentences(&self, name: &str) -> Vec<String> {
        let wrong = Some(&self.message).filter(|message| !message.is_empty());
        wrong.into_iter().chain(&self.notes).map(|text| format!("{name}: {text}")).collect()
    }
}

/// What to say below a table about the ranges of its predicted times.
pub(crate) fn ranges<'a>(mut all: impl Iterator<Item = &'a Timed>) -> &'static str {
    if all.any(|timed| timed.range().is_some()) { show::BRACKETS } else { "" }
}

/// A cell of microseconds.
pub(crate) fn us(time: Option<f64>) -> String {
    time.map_or("-".to_owned(), |time| format!("{time:.1}"))
}

/// A cell of a ratio.
pub(crate) fn times(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}x"))
}

/// Says so if a pipeline reduces floats of 16 bits, for which libraries use tensor cores.
fn no_tensor_cores(pipeline: &Pipeline) -> Option<&'static str> {
    let half = pipeline.inputs().values().any(|input| matches!(input.ty, Type::F16 | Type::BF16));
    let reduces = pipeline.funcs().values().any(|func| func.stages.len() > 1);
    (half && reduces).then_some("no tensor cores are used, which libraries have for floats of 16 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_halves_are_noted() {
        let noted = |ty: &str, body: &str| {
            let text = format!("def t({ty}(M,K) A, {ty}(K,N) B) -> (O) {{ {body} }}");
            let t = warploom::tensor::parse("t.tc", &text).unwrap().define(None).unwrap();
            no_tensor_cores(&t.realise(&[("M", 2), ("K", 3), ("N", 4)]).unwrap().0).is_some()
        };
        let product = "O(i,j) +=! A(i,k) * B(k,j)";
        assert!(noted("float16", product));
        assert!(!noted("float", product) && !noted("float16", "O(i,k,j) = A(i,k) * B(k,j)"));
    }
}
