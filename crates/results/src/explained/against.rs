//! Two schedules of one pipeline: how they differ.

use warploom::schedule::Change;
use warploom::show;
use warploom::tune::explain::{KernelExplanation, microseconds};

use super::words::{Cost, costs, differences};
use super::{Explained, predicted};

report! {
    /// The schedule of `--against`.
    pub struct Against = "compared schedule" {
        schedule: String, "where it comes from, as on the command line";
        predicted_us: f64, "the predicted time of its kernels";
        kernels: usize, "how many it has";
        differing_kernels: Vec<String>, "those that the other schedule does not have, by their stages";
        pub(super) differences: Vec<String>, "what it does otherwise than the other schedule, in words, by stage";
        costs: Vec<Cost>, "what that costs or saves";
        pub(super) changes: Vec<String>, "the changes that lead to it, as schedules write them";
        #[serde(skip)]
        sentence: String;
        #[serde(skip)]
        predicted: String;
    }
}

impl Against {
    /// Compares the second schedule with the first.
    pub fn new(first: &Explained, second: &Explained) -> Against {
        let (kernels, others) = (&second.explanation.kernels, &first.explanation.kernels);
        let differing = kernels.iter().filter(|kernel| differs(kernel, others));
        Against {
            schedule: second.source.clone(),
            predicted_us: second.explanation.predicted_us,
            kernels: kernels.len(),
            differing_kernels: differing.map(|kernel| kernel.stage.clone()).collect(),
            differences: differences(&first.explanation, &second.explanation),
            costs: costs(&first.explanation, &second.explanation),
            changes: changes(first, second),
            sentence: sentence(first, second),
            predicted: predicted(&second.explanation),
        }
    }

    /// Every number that differs, as in `written to global memory: 25.2 MB, not 12.6 MB`.
    pub(super) fn costs(&self) -> Vec<String> {
        self.costs.iter().map(Cost::text).collect()
    }

    /// The differences for a terminal.
    pub fn text(&self) -> String {
        let Against { schedule, predicted, sentence, differences, changes, .. } = self;
        let kernels = show::count(self.kernels, "kernel");
        let differing = match self.differing_kernels.len() {
            0 => String::new(),
            number => format!(", {number} of them different: {}", self.differing_kernels.join(", ")),
        };
        let head = format!("against {schedule}: {predicted}, {kernels}{differing}\n{sentence}\n");
        let list = |title: &str, lines: &[String]| match lines {
            [] => String::new(),
            lines => {
                format!("\n{title}:\n{}", lines.iter().map(|line| format!("  {line}\n")).collect::<String>())
            }
        };
        let changes: String = changes.iter().map(|change| format!("{change}\n")).collect();
        let changes = if changes.is_empty() { changes } else { format!("\n{changes}") };
        head + &list(&format!("what {schedule} does otherwise"), differences)
            + &list("what that costs", &self.costs())
            + &changes
    }
}

/// Whether a kernel is not among those of the other schedule.
pub(super) fn differs(kernel: &KernelExplanation, others: &[KernelExplanation]) -> bool {
    let text = kernel.to_string();
    others.iter().all(|other| other.stage != kernel.stage || other.to_string() != text)
}

/// Which of two schedules is predicted to be faster.
pub(super) fn sentence(first: &Explained, second: &Explained) -> String {
    let (a, b) = (first.explanation.predicted_us, second.explanation.predicted_us);
    let (faster, slower) = if a <= b { (first, second) } else { (second, first) };
    let (least, most) = (a.min(b), a.max(b));
    if most - least < 0.05 {
        return "Both are predicted to take the same time.".to_owned();
    }
    format!(
        "{} is predicted to be {} faster than {}: {:.2} times as fast.",
        faster.source,
        microseconds(most - least),
        slower.source,
        most / least
    )
}

/// The changes that lead from the first schedule to the second. Schedules that rewrite the pipeline in different ways
/// describe different pipelines, so only their rewrites are compared.
fn changes(first: &Explained, second: &Explained) -> Vec<String> {
    let (from, to) = (&first.schedule, &second.schedule);
    if from.rewrites == to.rewrites {
        let changes = Change::between(from, to);
        return changes.iter().map(|change| change.to_text(second.problem.pipeline())).collect();
    }
    let without = from.rewrites.iter().filter(|rewrite| !to.rewrites.contains(rewrite));
    let with = to.rewrites.iter().filter(|rewrite| !from.rewrites.contains(rewrite));
    let without = without.map(|rewrite| format!("without {rewrite}"));
    let rewrites = without.chain(with.map(ToString::to_string));
    rewrites.chain(["all kernels: the rewritten pipelines differ".to_owned()]).collect()
}
