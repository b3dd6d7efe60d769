//! What a second schedule does otherwise than a first one, and what that costs, in words.

use std::collections::BTreeMap;

use warploom::show;
use warploom::tune::explain::{Explanation, KernelExplanation, Line, microseconds};

/// The relative difference from which two numbers count as different.
const NOTABLE: f64 = 0.01;

/// The most kernels whose times are compared.
const KERNELS: usize = 4;

report! {
    /// A number of both schedules.
    pub struct Cost = "compared number" {
        what: String,
            "what it is: `launches`, `read from global memory`, `written to global memory`, or the predicted time of one of the kernels that differ most";
        unit: &'static str, "`us`, `bytes`, or empty for a count";
        first: Option<f64>, "that of the schedule of `--schedule`; `null` if it has no such kernel";
        second: Option<f64>, "that of the schedule of `--against`";
    }
}

/// A stage, or a copy of an input, in a kernel.
struct Place<'a> {
    kernel: &'a KernelExplanation,
    line: &'a Line,
}

/// What the second schedule does otherwise, stage by stage in its order.
pub(super) fn differences(first: &Explanation, second: &Explanation) -> Vec<String> {
    let (before, after) = (places(first), places(second));
    let mut differences = Vec::new();
    for (name, places) in &after {
        match before.iter().find(|(other, _)| other == name) {
            Some((_, others)) => differences.extend(difference(name, others, places)),
            None => {
                differences.push(format!("{name}: {}; the other schedule has no such stage", all(places)))
            }
        }
    }
    let lost = before.iter().filter(|(name, _)| after.iter().all(|(other, _)| other != name));
    differences.extend(lost.map(|(name, places)| format!("{name}: left out, not {}", all(places))));
    differences
}

/// The numbers that differ: what both do as a whole, then the kernels with the largest differences.
pub(super) fn costs(first: &Explanation, second: &Explanation) -> Vec<Cost> {
    let sum = |explanation: &Explanation, of: fn(&KernelExplanation) -> f64| -> f64 {
        explanation.kernels.iter().map(of).sum()
    };
    let both = |what: &str, unit, of: fn(&KernelExplanation) -> f64| Cost {
        what: what.to_owned(),
        unit,
        first: Some(sum(first, of)),
        second: Some(sum(second, of)),
    };
    let mut costs = vec![
        both("launches", "", |kernel| kernel.launches),
        both("read from global memory", "bytes", |kernel| kernel.read_bytes),
        both("written to global memory", "bytes", |kernel| kernel.written_bytes),
    ];
    let times = |explanation: &Explanation| -> BTreeMap<String, f64> {
        let mut times = BTreeMap::new();
        for kernel in &explanation.kernels {
            *times.entry(kernel.stage.clone()).or_default() += kernel.predicted_us;
        }
        times
    };
    let (before, after) = (times(first), times(second));
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    let mut kernels: Vec<Cost> = names
        .map(|name| Cost {
            what: format!("kernel {name}"),
            unit: "us",
            first: before.get(name).copied(),
            second: after.get(name).copied(),
        })
        .collect();
    kernels.sort_by(|a, b| b.difference().total_cmp(&a.difference()));
    costs.extend(kernels.into_iter().take(KERNELS));
    costs.retain(Cost::is_notable);
    costs
}

impl Cost {
    fn difference(&self) -> f64 {
        (self.second.unwrap_or(0.0) - self.first.unwrap_or(0.0)).abs()
    }

    fn is_notable(&self) -> bool {
        let largest = self.first.unwrap_or(0.0).max(self.second.unwrap_or(0.0));
        self.difference() > NOTABLE * largest && (self.unit != "us" || self.difference() >= 0.05)
    }

    /// As in `written to global memory: 25.2 MB, not 12.6 MB`.
    pub(super) fn text(&self) -> String {
        let number = |value: f64| match self.unit {
            "us" => microseconds(value),
            "bytes" => show::bytes(value as u64),
            _ => show::number(value),
        };
        match (self.first, self.second) {
            (Some(first), Some(second)) => {
                format!("{}: {}, not {}", self.what, number(second), number(first))
            }
            (None, Some(second)) => format!("{}: {}, which the other has not", self.what, number(second)),
            (first, _) => format!("{}: left out, which saves {}", self.what, number(first.unwrap_or(0.0))),
        }
    }
}

/// Every stage and copy with all its places, in the order of the kernels.
fn places(explanation: &Explanation) -> Vec<(&str, Vec<Place<'_>>)> {
    let mut all: Vec<(&str, Vec<Place<'_>>)> = Vec::new();
    for kernel in &explanation.kernels {
        // Loops have neither memory nor points.
        let is_stage =
            |line: &&Line| line.memory.is_some() || line.redundancy.is_some() || line.per_point.is_some();
        for line in kernel.lines.iter().filter(is_stage) {
            let place = Place { kernel, line };
            match all.iter_mut().find(|(name, _)| *name == line.name) {
                Some((_, places)) => places.push(place),
                None => all.push((&line.name, vec![place])),
            }
        }
    }
    all
}

/// What is different about a stage; `None` if nothing is.
fn difference(name: &str, before: &[Place<'_>], after: &[Place<'_>]) -> Option<String> {
    let (was, is) = (all(before), all(after));
    if was != is {
        return Some(format!("{name}: {is}, not {was}"));
    }
    let ([was], [is]) = (before, after) else { return None };
    let mut parts = Vec::new();
    if was.is_kernel() && is.is_kernel() {
        let blocks = |place: &Place<'_>| {
            let kernel = place.kernel;
            let block = if kernel.block.is_empty() { "one point".to_owned() } else { kernel.block.clone() };
            format!("blocks of {block} with {}", show::count(kernel.threads as usize, "thread"))
        };
        parts.extend((blocks(was) != blocks(is)).then(|| format!("{}, not {}", blocks(is), blocks(was))));
    }
    parts.extend((was.line.how != is.line.how).then(|| format!("{}, not {}", is.line.how, was.line.how)));
    let times = |place: &Place<'_>| place.line.redundancy.or(place.line.per_point);
    if let (Some(before), Some(after)) = (times(was), times(is)) {
        let is_notable = (after - before).abs() > NOTABLE * before.max(after);
        parts.extend(
            is_notable
                .then(|| format!("computed {after:.2} times as often as it is needed, not {before:.2}")),
        );
    }
    (!parts.is_empty()).then(|| format!("{name}: {}", parts.join("; ")))
}

/// Where a stage is, in words.
fn all(places: &[Place<'_>]) -> String {
    let mut words: Vec<String> = Vec::new();
    for place in places {
        let word = place.words();
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(" and ")
}

impl Place<'_> {
    /// Whether the kernel is that of the stage.
    fn is_kernel(&self) -> bool {
        self.kernel.stage == self.line.name
            && self.line.memory.as_ref().is_some_and(|memory| memory.kind == "global")
    }

    fn words(&self) -> String {
        let kernel = &self.kernel.stage;
        let Some(memory) = &self.line.memory else {
            return match &self.line.consumer {
                Some(consumer) => format!("inlined into {consumer}"),
                None => "inlined".to_owned(),
            };
        };
        match memory.kind {
            "global" if self.is_kernel() => "in a kernel of its own".to_owned(),
            "global" => format!("in global memory, written by the kernel {kernel}"),
            "shared" => format!("in shared memory of the kernel {kernel}"),
            "registers" => format!("in registers of the kernel {kernel}"),
            "lanes" => format!("in registers that the threads of a warp of the kernel {kernel} exchange"),
            kind => format!("in {kind} memory of the kernel {kernel}"),
        }
    }
}
