//! Inlines boundary conditions that are read at data-dependent indices.
//!
//! `edge.at(x + flow)` may need any point of `edge`, so no finite box of `edge` is enough. The
//! definition of `edge` reads the image at a clamped index, which is bounded. Inlined into the
//! reader, it needs nothing beyond the image.

use std::sync::OnceLock;

use ahash::{AHashMap, AHashSet};
use smallvec::SmallVec;

use crate::bounds::Analysis;
use crate::bounds::regions::Given;
use crate::bounds::values::{Values, value_spans};
use crate::ids::{ExprId, FuncId, Id, IdVec};
use crate::ir::{Exprs, FuncDecl, Node, NodeKind, ReductionVar, Stage};
use crate::pipeline::Pipeline;
use crate::region::Range;
use crate::specialise::nodes_that_load;

/// The extent assumed for everything whose size is not known yet. Distances that follow from sizes
/// then stay far below [`FAR`].
const EXTENT: i64 = 16;

/// An index that can move this far has no useful bounds. 16 bits of data are enough to reach it.
const FAR: i64 = 1 << 15;

/// The nodes of each stage where a boundary condition is to be inlined.
type Places = AHashMap<(FuncId, usize), AHashSet<ExprId>>;

/// The pipeline with boundary conditions inlined at data-dependent reads; `None` if there are no
/// such reads.
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

/// Reads of boundary conditions far from the point being computed.
fn far_reads(pipeline: &Pipeline, boundaries: &AHashSet<FuncId>) -> Places {
    let exprs = &pipeline.exprs;
    let loading = nodes_that_load(exprs);
    let suspect = |node: &Node| match node.kind {
        NodeKind::Call(func, _) => boundaries.contains(&func) && node.args.iter().any(|arg| loading[*arg]),
        _ => false,
    };
    let mut places = Places::default();
    if !exprs.nodes().values().any(suspect) {
        return places;
    }
    let given = Given::nominal(pipeline, EXTENT);
    let values = value_spans(pipeline, &given);
    for (id, func) in pipeline.funcs.iter() {
        for (number, stage) in func.stages.iter().enumerate() {
            let mut calls = exprs.reachable(stage.roots());
            calls.retain(|call| suspect(&exprs[*call]));
            calls.retain(|call| is_far(pipeline, &given, &values, stage, &exprs[*call].args));
            if !calls.is_empty() {
                places.insert((id, number), calls.into_iter().collect());
            }
        }
    }
    places
}

/// Whether any of these indices of a stage has no useful bounds.
fn is_far(pipeline: &Pipeline, given: &Given, values: &Values, stage: &Stage, indices: &[ExprId]) -> bool {
    let at_least_one = |range: Range| Range::new(range.min, range.extent.max(1));
    let domain: Vec<Range> = given.domain(pipeline, stage).into_iter().map(at_least_one).collect();
    let vars = vec![Range::new(0, EXTENT); stage.indices.len()];
    let environment = given.environment(values, &vars, &domain);
    let analysis = Analysis::new(&pipeline.exprs, &environment, indices.iter().copied());
    let spans = indices.iter().map(|index| analysis.int(*index));
    spans.into_iter().any(|span| span.max.saturating_sub(span.min) >= FAR)
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
