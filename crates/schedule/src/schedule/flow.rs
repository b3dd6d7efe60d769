//! What a stage reads while its variables run over what they reach.

use ahash::AHashMap;
use warploom_lang::bounds::{Analysis, Environment, IntSpan, Linear, Span};
use warploom_lang::ir::NodeKind;
use warploom_lang::op::{BinaryOp, Op};
use warploom_lang::{ExprId, Facts, FuncId, InputId, ParamId, Pipeline, Regions, Type};

use crate::schedule::reach::{Reach, Symbols};
use crate::schedule::tree::StageRef;

/// Where the variables of a stage are.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub vars: Vec<Reach>,
    pub rvars: Vec<Reach>,
}

/// What is read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Read {
    Func(FuncId),
    Input(InputId),
}

/// Spans of a stage's variables, and the facts of a realisation.
pub(crate) struct Spans<'a> {
    pub facts: &'a Facts,
    pub vars: Vec<IntSpan>,
    pub rvars: Vec<IntSpan>,
}

impl Environment for Spans<'_> {
    fn var(&self, dimension: usize) -> IntSpan {
        self.vars[dimension]
    }
    fn rvar(&self, index: usize) -> IntSpan {
        self.rvars[index]
    }
    fn param(&self, param: ParamId) -> Span {
        self.facts.params[param]
    }
    fn input_min(&self, input: InputId, dimension: usize) -> i64 {
        self.facts.inputs[input][dimension].min
    }
    fn input_extent(&self, input: InputId, dimension: usize) -> i64 {
        self.facts.inputs[input][dimension].extent
    }
    fn value(&self, func: FuncId, value: usize, _ty: Type) -> Span {
        self.facts.values[func][value]
    }
}

/// The boxes that a stage touches.
pub(crate) struct Touched {
    /// What it reads of other Funcs and of inputs, each access for itself.
    pub reads: Vec<(Read, Vec<Reach>)>,
    /// What it writes and reads of its own Func.
    pub own: Vec<Vec<Reach>>,
}

/// What a stage touches.
pub(crate) fn touched(
    pipeline: &Pipeline,
    regions: &Regions,
    symbols: &mut Symbols,
    stage: StageRef,
    scope: &Scope,
) -> Touched {
    let exprs = pipeline.exprs();
    let decl = &pipeline.funcs()[stage.func].stages[stage.stage];
    let span = |reaches: &[Reach]| reaches.iter().map(Reach::span).collect();
    let spans = Spans { facts: &regions.facts, vars: span(&scope.vars), rvars: span(&scope.rvars) };
    let analysis = Analysis::new(exprs, &spans, decl.roots());
    let mut indices = Indices { pipeline, analysis: &analysis, scope, symbols, known: AHashMap::new() };
    let mut touched = Touched { reads: Vec::new(), own: vec![indices.all(&decl.indices)] };
    for node in exprs.reachable(decl.roots()).into_iter().map(|id| &exprs[id]) {
        match node.kind {
            NodeKind::Call(func, _) if func == stage.func => touched.own.push(indices.all(&node.args)),
            NodeKind::Call(func, _) => touched.reads.push((Read::Func(func), indices.all(&node.args))),
            NodeKind::Load(input) => touched.reads.push((Read::Input(input), indices.all(&node.args))),
            _ => {}
        }
    }
    touched.reads.dedup();
    touched
}

/// The index expressions of one stage.
struct Indices<'a> {
    pipeline: &'a Pipeline,
    analysis: &'a Analysis<'a, Spans<'a>>,
    scope: &'a Scope,
    symbols: &'a mut Symbols,
    known: AHashMap<ExprId, Reach>,
}

impl Indices<'_> {
    fn all(&mut self, ids: &[ExprId]) -> Vec<Reach> {
        ids.iter().map(|id| self.reach(*id)).collect()
    }

    fn reach(&mut self, id: ExprId) -> Reach {
        if let Some(reach) = self.known.get(&id) {
            return reach.clone();
        }
        let span = self.analysis.int(id);
        let linear = self.analysis.linear(id).clone();
        let is_atom = linear.constant == 0 && matches!(linear.terms.as_slice(), [(atom, 1)] if *atom == id);
        let reach = if is_atom { self.atom(id) } else { self.sum(&linear) };
        let reach = reach.map(|reach| reach.within(span.min, span.max));
        let reach = reach.unwrap_or_else(|| Reach::unknown(span.min, span.max));
        self.known.insert(id, reach.clone());
        reach
    }

    fn sum(&mut self, linear: &Linear) -> Option<Reach> {
        let mut sum = Reach::fixed(linear.constant, linear.constant);
        for (atom, factor) in &linear.terms {
            let part = self.reach(*atom).scale(*factor)?;
            sum = match sum.add(&part) {
                Some(sum) => sum,
                None => {
                    let (sum, part) = (sum.plain(self.symbols), part.plain(self.symbols));
                    sum.add(&part)?
                }
            };
        }
        Some(sum)
    }

    /// A node that is no sum.
    fn atom(&mut self, id: ExprId) -> Option<Reach> {
        let node = &self.pipeline.exprs()[id];
        let analysis = self.analysis;
        let constant = |id: ExprId| analysis.int(id).singleton();
        let op = match node.kind {
            NodeKind::Var(d) => return Some(self.scope.vars[d as usize].clone()),
            NodeKind::RVar(r) => return Some(self.scope.rvars[r as usize].clone()),
            NodeKind::Op(op) => op,
            _ => return None,
        };
        let whole = (i64::MIN, i64::MAX);
        match (op, node.args.as_slice()) {
            (Op::Binary(BinaryOp::Div), [a, b]) => {
                let divisor = constant(*b).filter(|divisor| *divisor > 0)?;
                self.reach(*a).floor_div(divisor)
            }
            (Op::Binary(BinaryOp::Shr), [a, b]) if node.ty.bytes() == 4 => {
                let amount = constant(*b).filter(|amount| (0..=31).contains(amount))?;
                self.reach(*a).floor_div(1 << amount)
            }
            (Op::Binary(op @ (BinaryOp::Min | BinaryOp::Max)), [a, b]) => {
                let (a, limit) = match (constant(*a), constant(*b)) {
                    (_, Some(limit)) => (*a, limit),
                    (Some(limit), _) => (*b, limit),
                    _ => return None,
                };
                let (low, high) = if op == BinaryOp::Min { (whole.0, limit) } else { (limit, whole.1) };
                Some(self.reach(a).clamped(low, high))
            }
            (Op::SaturatingCast(ty), [a]) if self.pipeline.exprs()[*a].ty.is_int() => {
                let (low, high) = ty.int_range()?;
                Some(self.reach(*a).clamped(low, high))
            }
            (Op::Select, [condition, a, b]) => match constant(*condition) {
                Some(0) => Some(self.reach(*b)),
                Some(_) => Some(self.reach(*a)),
                None => {
                    let both = [self.reach(*a), self.reach(*b)];
                    Reach::hull(&both, self.symbols)
                }
            },
            // What counts by its own range alone, and whose range comes from constants.
            (Op::Binary(BinaryOp::Mod | BinaryOp::And), _) => {
                let span = self.analysis.int(id);
                (span.width == span.max - span.min).then(|| Reach::fixed(span.min, span.max))
            }
            _ => None,
        }
    }
}
