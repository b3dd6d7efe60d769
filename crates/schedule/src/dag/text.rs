//! The human-readable listing of a [`Dag`].

use std::fmt::Write;

use warploom_lang::Range;
use warploom_lang::affine::lcm;

use crate::dag::access::{AccessMap, Index, Load, Target, is_zero, merged};
use crate::dag::{Dag, Edge, Loop, Node, Stage};
use crate::ids::NodeId;
use crate::rational::Rational;

/// Lines longer than this are broken between accesses.
const WIDTH: usize = 100;
/// Headings up to this width are aligned.
const ALIGNED: usize = 40;

impl Dag {
    /// Lists every node with its types and properties, then the reads of each stage, as in
    ///
    /// ```text
    /// blur_x(x, y)  f32
    ///     <- gray[x-1..x+1, y] (3)
    /// ```
    ///
    /// Accesses that move alike are grouped, with their count; `x-1..x+1` covers their constants. A
    /// legend at the end explains the signs in use.
    pub fn to_text(&self) -> String {
        let funcs = self.nodes().len() - self.inputs;
        let mut text = format!(
            "graph {}: {}, {}, {}, {}\n\n",
            self.name(),
            counted(self.inputs, "input"),
            counted(funcs, "Func"),
            counted(self.stages().len(), "stage"),
            counted(self.edges().len(), "edge"),
        );
        let headings: Vec<String> = self.nodes().values().map(heading).collect();
        let types: Vec<String> = self.nodes().values().map(types).collect();
        let aligned = |texts: &[String], most: usize| {
            texts.iter().map(String::len).filter(|len| *len <= most).max().unwrap_or(0)
        };
        let (name_width, type_width) = (aligned(&headings, ALIGNED), aligned(&types, ALIGNED / 2));
        for ((id, node), (heading, types)) in self.nodes().iter().zip(headings.iter().zip(&types)) {
            let line = format!("{heading:name_width$}  {types:type_width$}  {}", kinds(node));
            text.push_str(line.trim_end());
            text.push('\n');
            self.write_stages(&mut text, id);
        }
        text.push_str(&self.legend());
        text
    }

    fn write_stages(&self, text: &mut String, node: NodeId) {
        let node = &self.nodes()[node];
        for stage in node.stages.iter().map(|id| &self.stages()[*id]) {
            let mut indent = "    ";
            if node.has_updates() {
                text.push_str(&stage_line(stage));
                indent = "      ";
            }
            for edge in stage.producers.iter().map(|id| &self.edges()[*id]) {
                self.write_edge(text, indent, stage, edge);
            }
            let own = stage.accesses.iter().filter(|access| access.target == Target::Itself);
            write_loads(text, indent, &node.name, stage, &merged(own.map(|access| &access.map)));
        }
    }

    fn write_edge(&self, text: &mut String, indent: &str, stage: &Stage, edge: &Edge) {
        write_loads(text, indent, &self.nodes()[edge.producer].name, stage, &edge.loads);
    }

    /// The legend of the signs that the listing uses.
    fn legend(&self) -> String {
        let mut used = Signs::default();
        for stage in self.stages().values() {
            let stored = stage.is_update().then_some(&stage.store);
            for index in
                stage.accesses.iter().map(|access| &access.map).chain(stored).flat_map(AccessMap::rows)
            {
                used = used.or(Signs::of(index));
            }
        }
        let lines = [
            (used.clamped, "~x    x, clamped\n"),
            (used.unknown, "?(x)  moves with x, not evenly\n"),
            (used.fixed, "_     fixed by sizes, Params or data\n"),
            (used.rounded, "x@2   x, rounded in steps of 2\n"),
        ];
        let lines: String = lines.iter().filter(|(used, _)| *used).map(|(_, line)| *line).collect();
        if lines.is_empty() { lines } else { format!("\n{lines}") }
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// `blur(x, y)`
pub(crate) fn heading(node: &Node) -> String {
    format!("{}({})", node.name, node.dims.join(", "))
}

/// `f32`, or `(i32, f32)` if there are several values.
pub(crate) fn types(node: &Node) -> String {
    let names: Vec<&str> = node.types.iter().map(|ty| ty.name()).collect();
    if let [name] = names[..] { name.to_string() } else { format!("({})", names.join(", ")) }
}

/// The properties of a node, in words.
fn kinds(node: &Node) -> String {
    let mut kinds: Vec<String> = Vec::new();
    let mut is = |holds: bool, kind: &str| kinds.extend(holds.then(|| kind.to_string()));
    is(node.is_input(), "input");
    is(node.is_output, "output");
    is(node.is_boundary_condition, "boundary condition");
    is(node.is_wrapper, "copy");
    is(node.is_pointwise && !node.is_wrapper && !node.is_input(), "pointwise");
    if node.has_updates() {
        kinds.push(counted(node.stages.len() - 1, "update"));
    }
    if node.is_input() && !node.storage_order.is_sorted() {
        kinds.push(format!("stored {:?}", node.storage_order));
    }
    kinds.join(", ")
}

/// `  .1 over rx, x (where ...) writes [x, rx]`
fn stage_line(stage: &Stage) -> String {
    let mut line = format!("  .{}", stage.number);
    if !stage.loops.is_empty() {
        let _ = write!(line, " over {}", stage.loop_names().join(", "));
    }
    if stage.has_predicate {
        line.push_str(" where ...");
    }
    if stage.values == 0 {
        line.push_str(" undefined");
    }
    if stage.is_update() && !stage.store.rows().is_empty() {
        let _ = write!(line, " writes {}", map_text(&stage.store, &stage.loops));
    }
    line.push('\n');
    line
}

fn write_loads(text: &mut String, indent: &str, name: &str, stage: &Stage, loads: &[Load]) {
    let mut line = format!("{indent}<-");
    for (i, load) in loads.iter().enumerate() {
        let mut part = format!(" {name}{}", map_text(&load.map, &stage.loops));
        if load.count > 1 {
            let _ = write!(part, " ({})", load.count);
        }
        if i + 1 < loads.len() {
            part.push(',');
        }
        if i > 0 && line.len() + part.len() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = format!("{indent}  ");
        }
        line.push_str(&part);
    }
    if !loads.is_empty() {
        let _ = writeln!(text, "{line}");
    }
}

/// `[x-1, ~y, ?(r)]`, or an empty string without dimensions.
fn map_text(map: &AccessMap, loops: &[Loop]) -> String {
    if map.rows().is_empty() {
        return String::new();
    }
    let rows: Vec<String> = map.rows().iter().map(|row| index_text(row, loops)).collect();
    format!("[{}]", rows.join(", "))
}

/// The signs that an index needs.
#[derive(Clone, Copy, Default)]
struct Signs {
    clamped: bool,
    unknown: bool,
    fixed: bool,
    rounded: bool,
}

impl Signs {
    fn of(index: &Index) -> Signs {
        let unknown = index.slopes.iter().any(Option::is_none);
        let mut denominators = index.slopes.iter().flatten().map(|slope| slope.denominator());
        let period = denominators.try_fold(1, lcm);
        Signs {
            clamped: index.clamped,
            unknown,
            // The fixed part of a clamped or unknown index carries little information.
            fixed: index.origin.is_none() && !unknown && (!index.clamped || index.is_fixed()),
            rounded: period != Some(index.period),
        }
    }

    fn or(self, other: Signs) -> Signs {
        Signs {
            clamped: self.clamped || other.clamped,
            unknown: self.unknown || other.unknown,
            fixed: self.fixed || other.fixed,
            rounded: self.rounded || other.rounded,
        }
    }
}

/// The text of one index; [`Dag::legend`] explains the signs.
fn index_text(index: &Index, loops: &[Loop]) -> String {
    let signs = Signs::of(index);
    let mut columns: Vec<usize> = (0..index.slopes.len().min(loops.len())).collect();
    // Pure variables come first, as in ordinary notation.
    columns.sort_by_key(|column| loops[*column].kind);
    let mut moving = String::new();
    let mut unknown: Vec<&str> = Vec::new();
    let mut terms = 0;
    for column in columns {
        let name = loops[column].name.as_str();
        match index.slopes[column] {
            slope if is_zero(slope) => {}
            None => unknown.push(name),
            Some(slope) => {
                push_term(&mut moving, slope, name);
                terms += 1;
            }
        }
    }
    if signs.rounded {
        let _ = write!(moving, "@{}", index.period);
    }
    if signs.unknown {
        let plus = if terms > 0 { "+" } else { "" };
        let _ = write!(moving, "{plus}?({})", unknown.join(", "));
    }
    let fixed = match (signs.fixed, moving.is_empty()) {
        (false, _) => "",
        (true, true) => "_",
        (true, false) => "+_",
    };
    match index.origin {
        Some(origin) if !signs.clamped && !signs.unknown => with_origin(&moving, terms, origin),
        Some(origin) if moving.is_empty() => format!("~{}", with_origin(&moving, 0, origin)),
        _ => format!("{}{moving}{fixed}", if signs.clamped { "~" } else { "" }),
    }
}

/// Appends `2x`, `-x/2`, ... to a sum.
fn push_term(sum: &mut String, slope: Rational, name: &str) {
    let sign = match (slope < Rational::ZERO, sum.is_empty()) {
        (true, _) => "-",
        (false, false) => "+",
        (false, true) => "",
    };
    let _ = match slope.numerator().unsigned_abs() {
        1 => write!(sum, "{sign}{name}"),
        factor => write!(sum, "{sign}{factor}{name}"),
    };
    if slope.denominator() > 1 {
        let _ = write!(sum, "/{}", slope.denominator());
    }
}

fn with_origin(moving: &str, terms: usize, origin: Range) -> String {
    let (first, last) = (origin.min, origin.last());
    let at = |constant: i64| match (terms, constant) {
        (0, _) => constant.to_string(),
        (_, 0) => moving.to_string(),
        _ => format!("{moving}{constant:+}"),
    };
    if first == last {
        at(first)
    } else if terms < 2 {
        format!("{}..{}", at(first), at(last))
    } else {
        format!("{moving}+({first}..{last})")
    }
}
