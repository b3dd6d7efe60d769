//! An explanation as a page: with the graph of the pipeline, and the code beside the loop nests.

use std::collections::BTreeMap;

use warploom::codegen::ir::PlanPart;
use warploom::codegen::printer::{Build, LineOrigin, Listing, PRINTER};
use warploom::lang::{FuncId, Id};
use warploom::plan::{Plan, Problem};
use warploom::schedule::{Item, Schedule, Source};
use warploom::schedule_file::{ScheduleFileError, build_program};
use warploom::show;
use warploom::target::Device;
use warploom::tune::explain::{KernelExplanation, Line, Traffic, amount, microseconds};
use warploom_report::Fact;
use warploom_report::explained::{
    self as view, Graph, GraphNode, KernelView, NestLine, Part, Role, SourceLine,
};

use super::against::{Against, differs, sentence};
use super::{Explained, predicted};

/// The page of one schedule, or of two. `sizes` starts with ` at`.
///
/// # Errors
/// If kernels cannot be built.
pub fn page(
    app: &str,
    sizes: &str,
    device: &Device,
    first: &Explained,
    second: Option<&Explained>,
) -> Result<view::Explained, ScheduleFileError> {
    let facts = vec![
        Fact::new("pipeline", app),
        Fact::new("sizes", sizes.trim_start_matches(" at ")),
        Fact::new("device", format!("{} ({})", device.name, device.arch())),
        Fact::new("predicted by", first.explanation.basis.to_string()),
        Fact::new("made by", format!("warploom {}", env!("CARGO_PKG_VERSION"))),
    ];
    let mut versions = vec![version(first, second)?];
    if let Some(second) = second {
        versions.push(version(second, Some(first))?);
    }
    let comparison = second.map(|second| {
        let against = Against::new(first, second);
        view::Comparison {
            sentence: sentence(first, second),
            costs: against.costs(),
            differences: against.differences,
            changes: against.changes,
        }
    });
    Ok(view::Explained { title: format!("{app}{sizes}"), facts, comparison, versions })
}

/// One schedule. Kernels that the other one does not have are marked.
fn version(explained: &Explained, other: Option<&Explained>) -> Result<view::Version, ScheduleFileError> {
    let Explained { source, schedule, problem, explanation } = explained;
    let plan = problem.plan(schedule);
    let listing = PRINTER.print_lines(&build_program(problem, schedule)?, Build::Timing);
    // Kernels are generated in launch order, except for those that compute nothing.
    let made = plan.kernels.values().map(|kernel| !problem.is_idle(kernel.kernel.stage));
    let mut numbers = 0..;
    let mut kernels = Vec::new();
    for (kernel, made) in explanation.kernels.iter().zip(made) {
        let number = if made { numbers.next() } else { None };
        let differs = other.is_some_and(|other| differs(kernel, &other.explanation.kernels));
        kernels.push(KernelView {
            source: source_of(kernel, number, &listing),
            differs,
            ..kernel_view(kernel)
        });
    }
    let shown = numbers.start;
    let headline =
        format!("{}, {}", predicted(explanation), show::count(explanation.kernels.len(), "kernel"));
    Ok(view::Version {
        name: source.clone(),
        headline,
        notes: explanation.idle.iter().map(ToString::to_string).collect(),
        graph: graph(problem, schedule, &plan),
        kernels,
        schedule: schedule.to_text(problem.pipeline()),
        other_source: other_source(&listing, shown),
    })
}

fn kernel_view(kernel: &KernelExplanation) -> KernelView {
    let [x, y, z] = kernel.grid;
    let mut facts = vec![
        Fact::new("grid", format!("{x} x {y} x {z} blocks")),
        Fact::new("threads per block", kernel.threads.to_string()),
        Fact::new("shared memory per block", amount(kernel.shared_bytes)),
        Fact::new("registers per thread, estimated", kernel.registers.to_string()),
        Fact::new("blocks per SM", kernel.blocks_per_sm.to_string()),
    ];
    facts.extend((kernel.launches > 1.0).then(|| Fact::new("launches", kernel.launches.to_string())));
    facts.extend(kernel.numbers.iter().map(|(word, number)| Fact::new(word, number.to_string())));
    let time =
        |name: &str, us: f64| Part { name: format!("{name}, us"), value: us, text: format!("{us:.1}") };
    let bytes = |name: &str, bytes: f64| {
        let (name, text) = (name.to_owned(), amount(bytes as u64));
        Part { name, value: bytes, text }
    };
    KernelView {
        name: kernel.stage.clone(),
        us: kernel.predicted_us,
        time: microseconds(kernel.predicted_us),
        facts,
        bottleneck: kernel.bottleneck.as_ref().map(|limit| format!("It is {limit}.")).unwrap_or_default(),
        limited_by: kernel.bottleneck.as_ref().map(|of| of.limit.name().to_owned()).unwrap_or_default(),
        parts: kernel.terms.iter().map(|term| time(term.what, term.us)).collect(),
        memory: vec![bytes("reads", kernel.read_bytes), bytes("writes", kernel.written_bytes)],
        loops: kernel.loops.iter().map(ToString::to_string).collect(),
        lines: kernel.lines.iter().map(nest_line).collect(),
        ..KernelView::default()
    }
}

fn nest_line(line: &Line) -> NestLine {
    let memory = line.memory.iter().map(ToString::to_string);
    let computed = Some(line.recomputation()).filter(|computed| !computed.is_empty());
    let computed = computed.map(|computed| format!("computed {computed}"));
    let moved = line.traffic.iter().flat_map(moved);
    let times = line.terms.iter().filter(|term| term.us >= 0.05);
    let times: Vec<String> = times.map(|term| format!("{} {:.1}", term.what, term.us)).collect();
    let times = (!times.is_empty()).then(|| format!("{} us", times.join(", ")));
    NestLine {
        depth: line.depth,
        name: line.name.clone(),
        how: line.how.clone(),
        loops: line.loops.iter().map(ToString::to_string).collect(),
        remarks: memory.chain(computed).chain(moved).chain(times).collect(),
    }
}

/// The bytes that a stage moves, in words.
fn moved(traffic: &Traffic) -> Option<String> {
    let each = [
        ("reads", "global", traffic.global_read_bytes),
        ("writes", "global", traffic.global_written_bytes),
        ("reads", "shared", traffic.shared_read_bytes),
        ("writes", "shared", traffic.shared_written_bytes),
    ];
    let each = each.iter().filter(|(.., bytes)| *bytes > 0.0);
    let each: Vec<String> =
        each.map(|(does, memory, bytes)| format!("{does} {} {memory}", amount(*bytes as u64))).collect();
    (!each.is_empty()).then(|| each.join(", "))
}

/// The code of a kernel, with the lines of its nest that each line belongs to.
fn source_of(kernel: &KernelExplanation, number: Option<usize>, listing: &Listing) -> Vec<SourceLine> {
    let Some(number) = number else { return Vec::new() };
    let lines = listing.text.lines().zip(&listing.lines);
    let lines = lines.filter(|(_, origin)| origin.kernel.is_some_and(|kernel| kernel.index() == number));
    lines
        .map(|(text, origin)| SourceLine { text: text.to_owned(), of: belongs(origin, &kernel.lines) })
        .collect()
}

/// The lines of a nest that a line of code belongs to: the nest, the stages of the Func in its registers that the code
/// computes, and the Funcs inlined into either.
fn belongs(origin: &LineOrigin, lines: &[Line]) -> Vec<usize> {
    let Some(place) = origin.place.filter(|place| *place != PlanPart::Block) else { return Vec::new() };
    let here = || lines.iter().enumerate().filter(move |(_, line)| line.place == Some(place));
    let inside = || here().skip(1);
    let writes = |line: &Line| origin.array.as_ref().is_some_and(|array| is_of(array, &line.name));
    let held: Vec<(usize, &Line)> =
        inside().filter(|(_, line)| line.memory.is_some() && writes(line)).collect();
    let mut consumers: Vec<&str> = held.iter().map(|(_, line)| line.name.as_str()).collect();
    if consumers.is_empty() {
        consumers.extend(here().next().map(|(_, line)| line.name.as_str()));
    }
    let is_inlined = |line: &Line| {
        line.memory.is_none() && line.consumer.as_deref().is_some_and(|of| consumers.contains(&of))
    };
    let inlined = inside().filter(|(_, line)| is_inlined(line));
    here().take(1).chain(held.iter().copied()).chain(inlined).map(|(at, _)| at).collect()
}

/// Whether an array is that of a stage. Arrays of tuples, and stages after the first, have a number after their name.
fn is_of(array: &str, stage: &str) -> bool {
    let without_number = |name: &str| match name.rsplit_once('.') {
        Some((name, number)) if number.parse::<u32>().is_ok() => name.to_owned(),
        _ => name.to_owned(),
    };
    array == stage || without_number(array) == without_number(stage)
}

/// The code outside of the first `shown` kernels.
fn other_source(listing: &Listing, shown: usize) -> String {
    let lines = listing.text.lines().zip(&listing.lines);
    let lines = lines.filter(|(_, origin)| origin.kernel.is_none_or(|kernel| kernel.index() >= shown));
    let mut lines: Vec<&str> = lines.map(|(text, _)| text).collect();
    // Only one of several empty lines remains.
    lines.dedup_by(|next, before| next.is_empty() && before.is_empty());
    lines.join("\n").trim_end().to_owned()
}

/// The graph of the pipeline, with the kernel of each Func.
fn graph(problem: &Problem, schedule: &Schedule, plan: &Plan) -> Graph {
    let dag = problem.dag();
    let mut kernels: BTreeMap<FuncId, usize> = BTreeMap::new();
    for nest in plan.nests.values() {
        let own = match nest.nest.item {
            Item::Stage(stage) => Some(stage.func),
            Item::Input(_) => None,
        };
        for func in nest.nest.registers.iter().copied().chain(own) {
            kernels.insert(func, nest.kernel.index() + 1);
        }
    }
    let role = |source: Source| match source {
        Source::Input(_) => Role::Input,
        Source::Func(func) if schedule.inlined.contains(&func) => Role::Inline,
        Source::Func(func) => kernels.get(&func).map_or(Role::Unused, |kernel| Role::Kernel(*kernel)),
    };
    let nodes =
        dag.nodes().values().map(|node| GraphNode { name: node.name.clone(), role: role(node.source) });
    let edges = dag.edges().values();
    let edges = edges.map(|edge| (edge.producer.index(), dag.stages()[edge.consumer].node.index()));
    let mut edges: Vec<(usize, usize)> = edges.collect();
    edges.sort_unstable();
    edges.dedup();
    Graph { nodes: nodes.collect(), edges }
}
