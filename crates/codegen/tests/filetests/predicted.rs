//! What the cost model is told of a schedule, and what the search tries next from it, as text.

use std::collections::BTreeSet;

use warploom_cost::{Analytic, FEATURES, Feature, Featurizer, RowSource};
use warploom_plan::Planned;
use warploom_search::{Options, neighbourhoods};

/// The features of each kernel: those of the whole, then those of each stage that count what a block does and are not 0.
pub fn features(planned: &Planned) -> String {
    let dag = planned.problem.dag();
    let mut text = String::new();
    for kernel in Featurizer::new(&planned.problem).features(&planned.plan) {
        let (blocks, threads, barriers) = (number(kernel.blocks), kernel.threads, number(kernel.barriers));
        text += &format!(
            "kernel: {blocks} blocks of {threads} threads, {barriers} barriers, {} bytes shared, {} registers\n",
            kernel.shared_bytes, kernel.registers
        );
        let (read, written) = (number(kernel.read_bytes), number(kernel.written_bytes));
        text += &format!("  reads {read} bytes, writes {written}; {} nodes\n", number(kernel.nodes));
        for row in &kernel.rows {
            let name = match row.source {
                RowSource::Stage(stage) => dag.stages()[stage].name.clone(),
                RowSource::Inlined(stage) => format!("{} inline", dag.stages()[stage].name),
                RowSource::Staged(node) => format!("{}.stage", dag.nodes()[node].name),
            };
            text += &format!("  {name}\n");
            let values = FEATURES.iter().zip(row.features.values());
            for (feature, value) in values.filter(|(feature, value)| *value != 0.0 && is_count(feature)) {
                text += &format!("    {} {} {}\n", feature.name, number(value), feature.unit);
            }
        }
    }
    text
}

/// Whether a feature counts what a block does, or how many points a nest has.
fn is_count(feature: &Feature) -> bool {
    let of_nest =
        ["points_computed_per_production", "points_computed_per_thread", "num_active_warps_per_block"];
    let counted = ["requests", "sectors", "wavefronts", "updates", "elements", "slices", "operations"];
    of_nest.contains(&feature.name) || counted.contains(&feature.unit)
}

/// A count as it is, anything else with four digits.
fn number(value: f64) -> String {
    match value.fract() == 0.0 && value.abs() < 1e15 {
        true => format!("{value}"),
        false => format!("{value:.4}"),
    }
}

/// One line for each neighbour: the lines of its text that the schedule does not have. In the order of the text, which no model
/// changes.
pub fn neighbours(planned: &Planned) -> String {
    let Planned { problem, schedule, .. } = planned;
    let lines = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    let own = lines(&schedule.to_text(problem.pipeline()));
    let model = Analytic::new(problem.device());
    let found =
        neighbourhoods(problem, &model, &Options::default(), std::slice::from_ref(schedule)).remove(0);
    let Some(found) = found else { return "no search can make this schedule\n".to_owned() };
    let other = |text: String| -> String {
        let new = lines(&text).into_iter().filter(|line| !own.contains(line));
        new.collect::<Vec<_>>().join("; ")
    };
    let texts = found.neighbours.iter().map(|near| other(near.schedule.to_text(problem.pipeline())));
    texts.collect::<BTreeSet<String>>().into_iter().map(|line| line + "\n").collect()
}
