//! Inlines boundary conditions that are read at indices without useful bounds.
//!
//! `edge.at(x + flow)` may need any point of `edge`, so no finite box of `edge` is enough. The
//! definition of `edge` reads the image at a clamped index, which is bounded. Inlined into the
//! reader, it needs nothing beyond the image.
//!
//! Sizes and Params are not known yet, so sample values are tried. An index without useful bounds for some sample
//! counts as unbounded.

use std::sync::OnceLock;

use ahash::{AHashMap, AHashSet};
use smallvec::SmallVec;

use crate::bounds::regions::{Given, MAX_INDEX};
use crate::bounds::values::{Values, value_spans};
use crate::bounds::{Analysis, IntSpan};
use crate::ids::{ExprId, FuncId, Id, IdVec};
use crate::ir::{Exprs, FuncDecl, Node, NodeKind, ParamDecl, ReductionVar, Stage};
use crate::op::{BinaryOp, Op};
use crate::pipeline::Pipeline;
use crate::region::Range;
use crate::types::{Type, Value};

/// The extent assumed for all unknown sizes. Distances that follow from sizes then stay far below [`FAR`].
const EXTENT: i64 = 16;

/// An index that depends on loaded data and can move this far has no useful bounds. 16 bits of data are enough to reach
/// it.
const FAR: i64 = 1 << 15;

/// A large extent: an index that is unbounded at this extent would be refused.
const LARGE_EXTENT: i64 = 1 << 14;

/// The nodes of each stage where a boundary condition is to be inlined.
type Places = AHashMap<(FuncId, usize), AHashSet<ExprId>>;

/// The pipeline with boundary conditions inlined at reads without useful bounds; `None` if there are
/// no such reads.
pub(crate) fn write_out(pipeline: &Pipeline, boundaries: &AHashSet<FuncId>) -> Option<Pipeline> {
    let mut changed: Option<Pipeline> = None;
    // An inlined definition may itself read another boundary condition, which comes before it.
    for _ in 0..boundaries.len() {
        let current = changed.as_ref().unwrap_or(pipeline);
        let places = far_reads(current, boundaries);
        if places.is_empty() {
            break;
        }
        let all = current.funcs.keys().map(Some).collect();
        changed = Some(Copier::new(current, &places, all).pipeline());
    }
    let changed = changed?;
    let used = used(&changed);
    Some(Copier::new(&changed, &Places::default(), used).pipeline())
}

/// Reads of boundary conditions at indices without useful bounds.
fn far_reads(pipeline: &Pipeline, boundaries: &AHashSet<FuncId>) -> Places {
    let suspects = suspects(pipeline, boundaries);
    let mut places = Places::default();
    if suspects.is_empty() {
        return places;
    }
    for params in [Sample::Low, Sample::High, Sample::Negative, Sample::Endless] {
        Trial::new(pipeline, EXTENT, params).add_far(&suspects, &mut places, |index, span| {
            index == Index::Loaded && span.max.saturating_sub(span.min) >= FAR
        });
        // Bounds inference refuses an index that reaches this far.
        Trial::new(pipeline, LARGE_EXTENT, params)
            .add_far(&suspects, &mut places, |_, span| span.min < -MAX_INDEX || span.max > MAX_INDEX);
    }
    places
}

/// The kinds of expressions in an index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Index {
    /// Variables, sizes and constants, by operations that keep them small.
    Plain,
    /// Any expression without data.
    Computed,
    /// Data: samples of inputs, tables and Funcs.
    Loaded,
}

/// The reads of boundary conditions at indices that are not plain.
fn suspects(pipeline: &Pipeline, boundaries: &AHashSet<FuncId>) -> AHashMap<ExprId, Index> {
    use BinaryOp::{Add, Div, Max, Min, Mod, Sub};
    let mut indices: IdVec<ExprId, Index> = IdVec::new();
    let mut found = AHashMap::new();
    for (id, node) in pipeline.exprs.nodes().iter() {
        let below = node.args.iter().map(|arg| indices[*arg]).max().unwrap_or(Index::Plain);
        let own = match node.kind {
            NodeKind::Var(_) | NodeKind::RVar(_) => Index::Plain,
            NodeKind::InputMin(..) | NodeKind::InputExtent(..) => Index::Plain,
            NodeKind::Op(Op::Const(value)) => match value.as_int() {
                Some(value) if value.unsigned_abs() < LARGE_EXTENT as u64 => Index::Plain,
                _ => Index::Computed,
            },
            NodeKind::Op(Op::Binary(Add | Sub | Min | Max | Div | Mod)) if node.ty == Type::I32 => {
                Index::Plain
            }
            NodeKind::Load(_) | NodeKind::Table(_) | NodeKind::Call(..) => Index::Loaded,
            NodeKind::Op(_) | NodeKind::Param(_) => Index::Computed,
        };
        if let NodeKind::Call(func, _) = node.kind
            && boundaries.contains(&func)
            && below > Index::Plain
        {
            found.insert(id, below);
        }
        indices.push(own.max(below));
    }
    found
}

/// Values to try for Params.
#[derive(Clone, Copy, PartialEq)]
enum Sample {
    /// The low end of the range; without a range, 0.
    Low,
    /// The high end of the range; without a range, 1, which cancels no term and makes none huge.
    High,
    /// -1 for Params without a range: coefficients of both signs show where a divisor can be 0.
    Negative,
    /// Infinity for floats without a range.
    Endless,
}

impl Sample {
    fn value(self, param: &ParamDecl) -> Value {
        let ty = param.ty;
        let (low, high) = param.range.unwrap_or((Value::zero(ty), Value::one(ty)));
        match self {
            Sample::Negative if param.range.is_none() => Value::from_int(ty, -1).unwrap_or(high),
            Sample::Endless if param.range.is_none() && ty.is_float() => Value::largest(ty),
            Sample::Low | Sample::Negative => low,
            Sample::High | Sample::Endless => high,
        }
    }
}

/// A pipeline at some sizes and values of Params.
struct Trial<'a> {
    pipeline: &'a Pipeline,
    extent: i64,
    params: Sample,
    given: Given,
    values: Values,
}

impl<'a> Trial<'a> {
    fn new(pipeline: &'a Pipeline, extent: i64, params: Sample) -> Trial<'a> {
        let given = Given::nominal(pipeline, extent, |param| params.value(param));
        let values = value_spans(pipeline, &given);
        Trial { pipeline, extent, params, given, values }
    }

    /// Adds the reads with an index that is far.
    fn add_far(
        &self,
        suspects: &AHashMap<ExprId, Index>,
        places: &mut Places,
        is_far: impl Fn(Index, IntSpan) -> bool,
    ) {
        let exprs = &self.pipeline.exprs;
        for (id, func) in self.pipeline.funcs.iter() {
            for (number, stage) in func.stages.iter().enumerate() {
                let mut reads = exprs.reachable(stage.roots());
                reads.retain(|read| match suspects.get(read) {
                    Some(index) => self.spans(stage, &exprs[*read].args).any(|span| is_far(*index, span)),
                    None => false,
                });
                if !reads.is_empty() {
                    places.entry((id, number)).or_default().extend(reads);
                }
            }
        }
    }

    /// The spans of some indices of a stage.
    fn spans(&self, stage: &Stage, indices: &[ExprId]) -> impl Iterator<Item = IntSpan> {
        // A reduction runs over at least one point, and not over an unbounded number of them.
        let usual = |range: Range| match self.params {
            Sample::Endless => Range::new(0, self.extent),
            _ => Range::new(range.min, range.extent.max(1)),
        };
        let domain = self.given.domain(self.pipeline, stage).into_iter().map(usual);
        let domain: Vec<Range> = domain.collect();
        let vars = vec![Range::new(0, self.extent); stage.indices.len()];
        let environment = self.given.environment(&self.values, &vars, &domain);
        let analysis = Analysis::new(&self.pipeline.exprs, &environment, indices.iter().copied());
        let spans: Vec<IntSpan> = indices.iter().map(|index| analysis.int(*index)).collect();
        spans.into_iter()
    }
}

/// The Funcs that the outputs need, with their new numbers.
fn used(pipeline: &Pipeline) -> IdVec<FuncId, Option<FuncId>> {
    let mut needed: AHashSet<FuncId> = pipeline.outputs.iter().copied().collect();
    for id in pipeline.funcs.keys().rev() {
        let stages = if needed.contains(&id) { pipeline.funcs[id].stages.as_slice() } else { &[] };
        for stage in stages {
            for node in pipeline.exprs.reachable(stage.roots()) {
                if let NodeKind::Call(callee, _) = pipeline.exprs[node].kind {
                    needed.insert(callee);
                }
            }
        }
    }
    let mut next = 0;
    let number = |id: FuncId| {
        needed.contains(&id).then(|| {
            next += 1;
            FuncId::new(next - 1)
        })
    };
    pipeline.funcs.keys().map(number).collect()
}

/// Copies some Funcs of a pipeline and inlines boundary conditions.
struct Copier<'a> {
    from: &'a Pipeline,
    places: &'a Places,
    /// The new number of each copied Func.
    numbers: IdVec<FuncId, Option<FuncId>>,
    exprs: Exprs,
}

impl<'a> Copier<'a> {
    fn new(from: &'a Pipeline, places: &'a Places, numbers: IdVec<FuncId, Option<FuncId>>) -> Copier<'a> {
        Copier { from, places, numbers, exprs: Exprs::with_tables(from.tables().clone()) }
    }

    fn pipeline(mut self) -> Pipeline {
        let from = self.from;
        let mut funcs = IdVec::new();
        for (id, func) in from.funcs.iter() {
            if self.numbers[id].is_some() {
                let stages = (0..func.stages.len()).map(|number| self.stage(id, number)).collect();
                funcs.push(FuncDecl { stages, ..func.clone() });
            }
        }
        let outputs = from.outputs.iter().filter_map(|id| self.numbers[*id]).collect();
        Pipeline {
            name: from.name.clone(),
            inputs: from.inputs.clone(),
            params: from.params.clone(),
            funcs,
            outputs,
            exprs: self.exprs,
            rewrites: from.rewrites.clone(),
            by_name: OnceLock::new(),
        }
    }

    fn stage(&mut self, id: FuncId, number: usize) -> Stage {
        let stage = &self.from.funcs[id].stages[number];
        let nowhere = AHashSet::new();
        let places = self.places.get(&(id, number)).unwrap_or(&nowhere);
        let mut copies = |ids: &[ExprId]| -> Vec<ExprId> {
            let known = self.copy(ids, None, places);
            ids.iter().map(|id| known[id]).collect()
        };
        let (indices, values) = (copies(&stage.indices), copies(&stage.values));
        let domain = stage.domain.iter().map(|var| {
            let bounds = copies(&[var.min, var.extent]);
            ReductionVar { name: var.name.clone(), min: bounds[0], extent: bounds[1] }
        });
        let domain = domain.collect();
        let predicate = stage.predicate.map(|predicate| copies(&[predicate])[0]);
        Stage { indices, values, domain, predicate, ..stage.clone() }
    }

    /// Copies expressions. Replaces variables by other expressions, and inlines boundary conditions
    /// at some nodes.
    fn copy(
        &mut self,
        roots: &[ExprId],
        variables: Option<&[ExprId]>,
        places: &AHashSet<ExprId>,
    ) -> AHashMap<ExprId, ExprId> {
        let from = self.from;
        let mut known: AHashMap<ExprId, ExprId> = AHashMap::new();
        for id in from.exprs.reachable(roots.iter().copied()) {
            let node = &from.exprs[id];
            let args: SmallVec<[ExprId; 3]> = node.args.iter().map(|arg| known[arg]).collect();
            let copy = match (node.kind, variables) {
                (NodeKind::Var(d), Some(variables)) => variables[d as usize],
                (NodeKind::Call(func, value), _) if places.contains(&id) => {
                    let value = from.funcs[func].stages[0].values[value as usize];
                    self.copy(&[value], Some(&args), &AHashSet::new())[&value]
                }
                (kind, _) => {
                    let kind = self.renumbered(kind);
                    self.exprs.intern(Node { kind, ty: node.ty, args })
                }
            };
            known.insert(id, copy);
        }
        known
    }

    fn renumbered(&self, kind: NodeKind) -> NodeKind {
        match kind {
            NodeKind::Call(func, value) => NodeKind::Call(self.numbers[func].unwrap_or(func), value),
            kind => kind,
        }
    }
}
