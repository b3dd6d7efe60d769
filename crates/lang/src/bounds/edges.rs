//! The part of each Func beyond which its values repeat.
//!
//! Past the edge of a picture, repeat-edge data is constant, and so are values computed from it alone. A pyramid over a
//! clamped picture therefore needs few points beyond the picture's own size, however far its stencils reach.
//!
//! A Func repeats from `t` on along a dimension if its values there do not depend on the variable of that dimension.
//! [`Walk`] decides this for one range of the variable: the range decides clamps and comparisons, and reads of another
//! Func beyond its core repeat. Bisection finds the smallest such `t`, and likewise the largest index up to which the
//! Func repeats.

use ahash::AHashMap;

use crate::bounds::analysis::Analysis;
use crate::bounds::regions::{Facts, Regions, StageEnvironment};
use crate::bounds::span::IntSpan;
use crate::ids::{ExprId, FuncId, IdVec};
use crate::ir::{Exprs, Node, NodeKind, Stage};
use crate::op::{BinaryOp, Op, UnaryOp};
use crate::pipeline::Pipeline;
use crate::region::{Range, Region};
use crate::types::Type;

/// The core of each Func, a part of its region: the value at any point of the region is the value at the
/// nearest point of the core. The regions must be those of fixed sizes.
///
/// ```
/// use warploom_lang::*;
/// let x = vars!(x);
/// let edge = Input::f32("input", 1).repeat_edge();
/// let half = func("half", x, edge.at(2 * x) + edge.at(2 * x + 1));
/// let wide = func("wide", x, half.at(x - 100) + half.at(x + 100));
/// let pipeline = Pipeline::new("p", [wide])?;
/// let request = Realisation::new(&pipeline)
///     .input("input", Region::of_extents(&[20]))
///     .output("wide", Region::of_extents(&[10]));
/// let regions = infer(&pipeline, &request)?;
/// let half = pipeline.func_named("half").unwrap();
/// assert_eq!(regions.funcs[half].region.to_string(), "[-100, 110)");
/// assert_eq!(cores(&pipeline, &regions)[half].to_string(), "[-1, 11)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn cores(pipeline: &Pipeline, regions: &Regions) -> IdVec<FuncId, Region> {
    let mut edges = Edges { pipeline, regions, cores: IdVec::new() };
    // Producers come before their consumers.
    for (func, decl) in pipeline.funcs.iter() {
        let stages: Vec<Nodes> = decl.stages.iter().map(|stage| Nodes::of(&pipeline.exprs, stage)).collect();
        let core = (0..decl.dims.len()).map(|dimension| edges.core(Along { func, dimension }, &stages));
        let core = Region(core.collect());
        edges.cores.push(core);
    }
    edges.cores
}

/// A dimension of a Func.
#[derive(Clone, Copy)]
struct Along {
    func: FuncId,
    dimension: usize,
}

/// The nodes of a stage.
struct Nodes {
    /// All of them, operands first.
    all: Vec<ExprId>,
    /// Indices, and integers that are compared: only their ranges matter.
    ranged: Vec<ExprId>,
}

impl Nodes {
    fn of(exprs: &Exprs, stage: &Stage) -> Nodes {
        let all = exprs.reachable(stage.roots());
        let has_ranged = |node: &&Node| match node.kind {
            NodeKind::Call(..) | NodeKind::Load(_) | NodeKind::Table(_) => true,
            NodeKind::Op(Op::Binary(op)) => op.is_comparison() && exprs[node.args[0]].ty.is_int(),
            _ => false,
        };
        let ranged = all.iter().map(|id| &exprs[*id]).filter(has_ranged);
        Nodes { ranged: ranged.flat_map(|node| node.args.iter().copied()).collect(), all }
    }
}

/// The cores found so far.
struct Edges<'a> {
    pipeline: &'a Pipeline,
    regions: &'a Regions,
    cores: IdVec<FuncId, Region>,
}

/// How the value of a node depends on the variable of a dimension.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fact {
    /// It may change with the variable.
    Varies,
    /// It is the same wherever the variable is in its range.
    Same,
    /// A condition that holds everywhere, or nowhere.
    Is(bool),
}

impl Fact {
    fn same(is_same: bool) -> Fact {
        if is_same { Fact::Same } else { Fact::Varies }
    }
}

impl Edges<'_> {
    fn core(&self, along: Along, stages: &[Nodes]) -> Range {
        let whole = self.regions.funcs[along.func].region[along.dimension];
        if whole.extent < 2 || !self.is_pure(along) {
            return whole;
        }
        let (first, last) = (whole.min, whole.last());
        let repeats = |from: i64, to: i64| {
            let part = Range::inclusive(from, to);
            stages.iter().enumerate().all(|(number, nodes)| self.stage_repeats(along, number, nodes, part))
        };
        let from = least(first, last, |from| repeats(from, last));
        let to = -least(-last, -first, |to| repeats(first, -to));
        // If the two parts meet, all values are equal.
        if to < from { Range::inclusive(to, from) } else { Range::new(first, 1) }
    }

    /// Whether all stages run once for each point along the dimension, so that no point depends on another.
    fn is_pure(&self, Along { func, dimension }: Along) -> bool {
        let regions = &self.regions.funcs[func];
        let mut stages = self.pipeline.funcs[func].stages.iter().zip(&regions.stages);
        stages.all(|(stage, loops)| {
            stage.is_pure(&self.pipeline.exprs, dimension)
                && loops.needed[dimension] == regions.region[dimension]
        })
    }

    /// Whether a stage computes the same values at all points of `part` along a dimension.
    fn stage_repeats(&self, along: Along, number: usize, nodes: &Nodes, part: Range) -> bool {
        let stage = &self.pipeline.funcs[along.func].stages[number];
        let loops = &self.regions.funcs[along.func].stages[number];
        if loops.is_idle() {
            return true;
        }
        // Other stages may write where this one is not needed, and such points count too.
        let mut vars = self.regions.funcs[along.func].region.0.clone();
        vars[along.dimension] = part;
        let Facts { inputs, varying, params, values } = &self.regions.facts;
        let rvars = &loops.domain;
        let environment = StageEnvironment { inputs, varying, params, values, vars: &vars, rvars };
        let analysis = Analysis::new(&self.pipeline.exprs, &environment, nodes.ranged.iter().copied());
        let mut walk = Walk { edges: self, along, part, analysis, known: AHashMap::new() };
        for id in &nodes.all {
            let fact = walk.node(*id);
            walk.known.insert(*id, fact);
        }
        let indices = stage.indices.iter().enumerate().filter(|(d, _)| *d != along.dimension);
        let roots = indices.map(|(_, index)| index).chain(&stage.values).chain(&stage.predicate);
        roots.into_iter().all(|id| walk.is_same(*id))
    }

    /// Whether reads at these coordinates all return the same value, whatever the other coordinates are.
    fn is_beyond(&self, func: FuncId, dimension: usize, at: IntSpan) -> bool {
        let core = self.cores[func][dimension];
        core.last() <= at.min || at.max <= core.min
    }
}

/// The facts about the nodes of one stage while the variable of one dimension is in `part`.
struct Walk<'a> {
    edges: &'a Edges<'a>,
    along: Along,
    part: Range,
    analysis: Analysis<'a, StageEnvironment<'a>>,
    known: AHashMap<ExprId, Fact>,
}

impl Walk<'_> {
    fn is_same(&self, id: ExprId) -> bool {
        self.known[&id] != Fact::Varies
    }

    fn node(&self, id: ExprId) -> Fact {
        let node = &self.edges.pipeline.exprs[id];
        let is_own = |d: usize| d == self.along.dimension;
        let mut args = node.args.iter().copied().enumerate();
        match node.kind {
            NodeKind::Var(d) => Fact::same(!is_own(d as usize) || self.part.extent == 1),
            // The points of its own Func that a stage reads have the same variable.
            NodeKind::Call(func, _) if func == self.along.func => Fact::same(args.all(|(d, arg)| {
                let kind = self.edges.pipeline.exprs[arg].kind;
                if is_own(d) { kind == NodeKind::Var(d as u32) } else { self.is_same(arg) }
            })),
            NodeKind::Call(func, _) => {
                Fact::same(args.all(|(d, arg)| {
                    self.is_same(arg) || self.edges.is_beyond(func, d, self.analysis.int(arg))
                }))
            }
            NodeKind::Op(op) => {
                let decided = self.single(id).or_else(|| self.decided(op, &node.args));
                decided.unwrap_or_else(|| Fact::same(args.all(|(_, arg)| self.is_same(arg))))
            }
            _ => Fact::same(args.all(|(_, arg)| self.is_same(arg))),
        }
    }

    /// The fact of an index whose range is a single number.
    fn single(&self, id: ExprId) -> Option<Fact> {
        let ty = self.edges.pipeline.exprs[id].ty;
        if ty.is_float() || !self.analysis.contains(id) {
            return None;
        }
        let value = self.analysis.int(id).singleton()?;
        Some(if ty == Type::Bool { Fact::Is(value != 0) } else { Fact::Same })
    }

    /// The fact of an operation with conditions that hold everywhere or nowhere.
    fn decided(&self, op: Op, args: &[ExprId]) -> Option<Fact> {
        let fact = |i: usize| self.known[&args[i]];
        let condition = |i: usize| match fact(i) {
            Fact::Is(value) => Some(value),
            _ => None,
        };
        match op {
            Op::Const(value) if value.ty() == Type::Bool => Some(Fact::Is(value.bits() != 0)),
            Op::Select => condition(0).map(|holds| fact(if holds { 1 } else { 2 })),
            Op::Unary(UnaryOp::Not) => condition(0).map(|holds| Fact::Is(!holds)),
            Op::Binary(op @ (BinaryOp::And | BinaryOp::Or)) => {
                // `false` decides a conjunction, `true` a disjunction; the neutral value leaves the result to the other
                // operand.
                let decides = op == BinaryOp::Or;
                let (one, other) = (condition(0), condition(1));
                match (one, other) {
                    _ if one == Some(decides) || other == Some(decides) => Some(Fact::Is(decides)),
                    (Some(_), _) => Some(fact(1)),
                    (_, Some(_)) => Some(fact(0)),
                    _ => None,
                }
            }
            Op::Binary(op) => self.compared(op, args[0], args[1]),
            _ => None,
        }
    }

    /// The result of a comparison, minimum or maximum of two integers, if their ranges decide it.
    fn compared(&self, op: BinaryOp, a: ExprId, b: ExprId) -> Option<Fact> {
        let is_ranged = |id| self.edges.pipeline.exprs[id].ty.is_int() && self.analysis.contains(id);
        if !is_ranged(a) || !is_ranged(b) {
            return None;
        }
        let difference = self.analysis.linear(a).add_scaled(self.analysis.linear(b), -1)?;
        let IntSpan { min, max, .. } = self.analysis.span_of_linear(&difference);
        match op {
            BinaryOp::Lt if max < 0 || min >= 0 => Some(Fact::Is(max < 0)),
            BinaryOp::Le if max <= 0 || min > 0 => Some(Fact::Is(max <= 0)),
            BinaryOp::Eq | BinaryOp::Ne if max < 0 || min > 0 => Some(Fact::Is(op == BinaryOp::Ne)),
            BinaryOp::Min if max <= 0 => Some(self.known[&a]),
            BinaryOp::Min if min >= 0 => Some(self.known[&b]),
            BinaryOp::Max if max <= 0 => Some(self.known[&b]),
            BinaryOp::Max if min >= 0 => Some(self.known[&a]),
            _ => None,
        }
    }
}

/// The smallest number from which on a property holds, found by bisection. It holds at `last`.
fn least(mut first: i64, mut last: i64, holds: impl Fn(i64) -> bool) -> i64 {
    // Most Funcs do not repeat at all. Two points suffice to show that.
    if first == last || !holds(last - 1) {
        return last;
    }
    last -= 1;
    while first < last {
        let middle = first + (last - first) / 2;
        if holds(middle) { last = middle } else { first = middle + 1 }
    }
    last
}
