//! Boxes of Funcs at their places: lower bounds as expressions of the kernel, constant extents.
//!
//! The box of a producer follows from the boxes of its consumers, by the spans of `lang::bounds` for the
//! extents and by the same rules on expressions for the lower bounds.

use ahash::{AHashMap, AHashSet};
use warploom_lang::bounds::congruence::gcd;
use warploom_lang::bounds::{Analysis, Congruence, Environment, IntSpan, Span};
use warploom_lang::ir::{NodeKind, Stage};
use warploom_lang::op::{BinaryOp, Op};
use warploom_lang::{ExprId, FuncId, InputId, ParamId, Region, Type, Value};
use warploom_schedule::schedule::StageRef;

use crate::builder::{Bounds, Builder};
use crate::ir::NodeId;
use crate::lower::Context;
use crate::lower::place::Place;

/// A box that moves with the block or thread.
#[derive(Clone, Debug)]
pub(crate) struct Box {
    pub lower: Vec<NodeId>,
    pub extent: Vec<i64>,
}

impl Box {
    /// Number of points.
    pub fn points(&self) -> u64 {
        self.extent.iter().map(|extent| *extent as u64).product()
    }

    /// Elements between neighbours of a dense array over the box.
    pub fn strides(&self) -> Vec<i64> {
        let mut stride = 1;
        let next = |extent: &i64| {
            let own = stride;
            stride *= extent;
            own
        };
        self.extent.iter().map(next).collect()
    }
}

/// The values an index takes at one place of a box.
#[derive(Clone, Copy, Debug)]
struct Interval {
    lower: NodeId,
    upper: NodeId,
    width: i64,
}

/// What is read: a Func or an input.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Read {
    Func(FuncId),
    Input(InputId),
}

/// The boxes that a set of consumers reads, by what is read.
#[derive(Default)]
pub(crate) struct Reads {
    intervals: AHashMap<Read, Vec<Vec<Interval>>>,
    seen: AHashSet<(StageRef, Vec<(NodeId, NodeId)>)>,
}

/// The loops of a stage as intervals.
struct Scope<'a> {
    context: &'a Context<'a>,
    vars: Vec<(Interval, IntSpan)>,
    rvars: Vec<IntSpan>,
}

impl Environment for Scope<'_> {
    fn var(&self, dimension: usize) -> IntSpan {
        self.vars[dimension].1
    }
    fn rvar(&self, index: usize) -> IntSpan {
        self.rvars[index]
    }
    fn param(&self, param: ParamId) -> Span {
        let ty = self.context.pipeline.params()[param].ty;
        self.context.fixed[param].map_or_else(|| Span::of_type(ty), Span::constant)
    }
    fn input_min(&self, input: InputId, dimension: usize) -> i64 {
        self.context.inputs[input][dimension].min
    }
    fn input_extent(&self, input: InputId, dimension: usize) -> i64 {
        self.context.inputs[input][dimension].extent
    }
    fn value(&self, func: FuncId, value: usize, _ty: Type) -> Span {
        self.context.regions.facts.values[func][value]
    }
}

impl Reads {
    /// Adds what a stage reads while its pure variables run over `own`.
    pub fn add(&mut self, context: &Context<'_>, builder: &mut Builder, stage: StageRef, own: &Box) {
        let vars = (0..own.lower.len()).map(|d| variable(builder, own.lower[d], own.extent[d])).collect();
        self.add_stage(context, builder, stage, vars);
    }

    fn add_stage(
        &mut self,
        context: &Context<'_>,
        builder: &mut Builder,
        stage: StageRef,
        vars: Vec<(Interval, IntSpan)>,
    ) {
        let key = vars.iter().map(|(interval, _)| (interval.lower, interval.upper)).collect();
        if !self.seen.insert((stage, key)) {
            return;
        }
        let decl: &Stage = &context.pipeline.funcs()[stage.func].stages[stage.stage];
        let domain = &context.regions.funcs[stage.func].stages[stage.stage].domain;
        let rvars = domain.iter().map(|range| IntSpan::fixed(range.min, range.last())).collect();
        let scope = Scope { context, vars, rvars };
        let exprs = context.pipeline.exprs();
        let analysis = Analysis::new(exprs, &scope, decl.roots());
        let mut intervals = Intervals { scope: &scope, analysis: &analysis, known: AHashMap::new() };
        for id in exprs.reachable(decl.roots()) {
            let node = &exprs[id];
            let read = match node.kind {
                NodeKind::Call(func, _) => Read::Func(func),
                NodeKind::Load(input) => Read::Input(input),
                _ => continue,
            };
            let indices: Vec<Interval> =
                node.args.iter().map(|arg| intervals.interval(builder, *arg)).collect();
            match read {
                Read::Func(func) if context.places.of(func) == Place::Inlined => {
                    let spans = node.args.iter().map(|arg| analysis.int(*arg));
                    let vars = indices.into_iter().zip(spans).collect();
                    self.add_stage(context, builder, StageRef { func, stage: 0 }, vars);
                }
                read => self.intervals.entry(read).or_default().push(indices),
            }
        }
    }

    /// The smallest box that holds everything read of something, inside its root region.
    pub fn union(&self, builder: &mut Builder, read: Read, root: &Region) -> Option<Box> {
        let accesses = self.intervals.get(&read)?;
        let (mut lower, mut extent) = (Vec::new(), Vec::new());
        for d in 0..root.dimensions() {
            let along: Vec<Interval> = accesses.iter().map(|access| access[d]).collect();
            let reach =
                |a: &Interval, b: &Interval| builder.difference(a.lower, b.lower).max.saturating_add(a.width);
            let width = along.iter().flat_map(|a| along.iter().map(move |b| (a, b)));
            let width = width.map(|(a, b)| reach(a, b)).max().unwrap_or(0);
            if width >= root[d].extent - 1 {
                lower.push(builder.int(root[d].min));
                extent.push(root[d].extent);
                continue;
            }
            let least = along.iter().map(|interval| interval.lower).collect::<Vec<_>>();
            let least = least.into_iter().reduce(|a, b| builder.binary(BinaryOp::Min, a, b));
            lower.push(least.unwrap_or_else(|| builder.int(root[d].min)));
            extent.push(width + 1);
        }
        Some(Box { lower, extent })
    }
}

/// A loop variable that takes `extent` values from `lower`.
fn variable(builder: &mut Builder, lower: NodeId, extent: i64) -> (Interval, IntSpan) {
    let width = extent - 1;
    let upper = builder.offset(lower, width);
    let Bounds { min, max } = builder.bounds(lower);
    let span = IntSpan::tile(min, max.saturating_add(width), width, congruence(builder, lower));
    (Interval { lower, upper, width }, span)
}

/// What the linear form of an index says of its remainder.
fn congruence(builder: &Builder, index: NodeId) -> Congruence {
    let linear = builder.linear(index);
    let modulus = linear.terms.iter().fold(0, |modulus, (_, factor)| gcd(modulus, *factor));
    Congruence::new(modulus, linear.constant)
}

/// Intervals of the index expressions of one stage.
struct Intervals<'a, 'b> {
    scope: &'a Scope<'a>,
    analysis: &'a Analysis<'b, Scope<'b>>,
    known: AHashMap<ExprId, Interval>,
}

impl Intervals<'_, '_> {
    fn interval(&mut self, builder: &mut Builder, id: ExprId) -> Interval {
        if let Some(interval) = self.known.get(&id) {
            return *interval;
        }
        let linear = self.analysis.linear(id).clone();
        let is_atom = linear.constant == 0 && matches!(linear.terms.as_slice(), [(atom, 1)] if *atom == id);
        let interval = if is_atom { self.atom(builder, id) } else { self.sum(builder, &linear) };
        self.known.insert(id, interval);
        interval
    }

    fn sum(&mut self, builder: &mut Builder, linear: &warploom_lang::bounds::Linear) -> Interval {
        let constant = builder.int(linear.constant);
        let mut sum = Interval { lower: constant, upper: constant, width: 0 };
        for &(atom, factor) in &linear.terms {
            let part = self.interval(builder, atom);
            let (low, high) = (builder.scale(part.lower, factor), builder.scale(part.upper, factor));
            let (low, high) = if factor < 0 { (high, low) } else { (low, high) };
            sum = Interval {
                lower: builder.add(sum.lower, low),
                upper: builder.add(sum.upper, high),
                width: sum.width.saturating_add(part.width.saturating_mul(factor.abs())),
            };
        }
        sum
    }

    fn atom(&mut self, builder: &mut Builder, id: ExprId) -> Interval {
        let exprs = self.scope.context.pipeline.exprs();
        let node = &exprs[id];
        let span = self.analysis.int(id);
        let moving = match node.kind {
            NodeKind::Var(d) => Some(self.scope.vars[d as usize].0),
            NodeKind::Op(Op::Binary(op @ (BinaryOp::Min | BinaryOp::Max))) => {
                let (a, b) = (self.interval(builder, node.args[0]), self.interval(builder, node.args[1]));
                Some(Interval {
                    lower: builder.binary(op, a.lower, b.lower),
                    upper: builder.binary(op, a.upper, b.upper),
                    width: a.width.max(b.width),
                })
            }
            NodeKind::Op(Op::Binary(BinaryOp::Div)) => {
                self.quotient(builder, node.args[0], node.args[1], |d| d)
            }
            NodeKind::Op(Op::Binary(BinaryOp::Shr)) => {
                self.quotient(builder, node.args[0], node.args[1], |amount| 1 << amount.clamp(0, 31))
            }
            _ => None,
        };
        match moving {
            Some(interval) if interval.width < span.max - span.min => {
                Interval { width: interval.width.min(span.width.max(0)), ..interval }
            }
            _ => {
                let (lower, upper) = (builder.int(span.min), builder.int(span.max));
                Interval { lower, upper, width: span.max - span.min }
            }
        }
    }

    fn quotient(
        &mut self,
        builder: &mut Builder,
        a: ExprId,
        b: ExprId,
        divisor: impl Fn(i64) -> i64,
    ) -> Option<Interval> {
        let divisor = divisor(self.analysis.int(b).singleton()?);
        if divisor <= 0 {
            return None;
        }
        let a = self.interval(builder, a);
        let node = builder.constant(Value::from(divisor as i32));
        let (lower, upper) =
            (builder.binary(BinaryOp::Div, a.lower, node), builder.binary(BinaryOp::Div, a.upper, node));
        // The rounding of both ends may fall differently from place to place.
        let width = builder.difference(upper, lower).max.min(a.width.saturating_add(divisor - 1) / divisor);
        Some(Interval { lower, upper, width })
    }
}
