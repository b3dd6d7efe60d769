//! The points of Funcs that are touched at any sizes.

use crate::bounds::analysis::Analysis;
use crate::bounds::regions::Given;
use crate::bounds::span::IntSpan;
use crate::bounds::values::{Values, value_spans};
use crate::ids::{ExprId, FuncId, IdVec};
use crate::ir::NodeKind;
use crate::pipeline::Pipeline;
use crate::region::{Range, Region};
use crate::types::Type;

/// For each Func, a box with every point that its readers and its own updates touch, whatever the sizes and
/// Params are. A dimension without limits has all indices of 32 bits.
pub(crate) fn accessed_boxes(pipeline: &Pipeline) -> IdVec<FuncId, Region> {
    let given = Given::any(pipeline);
    let values = value_spans(pipeline, &given);
    let empty = pipeline.funcs.values().map(|func| Region::empty(func.dims.len()));
    let mut boxes: IdVec<FuncId, Region> = empty.collect();
    let every = IntSpan::of_type(Type::I32);
    for output in &pipeline.outputs {
        boxes[*output] = Region(vec![Range::inclusive(every.min, every.max); boxes[*output].dimensions()]);
    }
    for id in pipeline.funcs.keys().rev() {
        for number in (0..pipeline.funcs[id].stages.len()).rev() {
            add_stage(pipeline, &given, &values, (id, number), &mut boxes);
        }
    }
    boxes
}

/// Adds the accesses of one stage, if it runs over the points that are touched after it.
fn add_stage(
    pipeline: &Pipeline,
    given: &Given,
    values: &Values,
    (id, number): (FuncId, usize),
    boxes: &mut IdVec<FuncId, Region>,
) {
    let (exprs, stage) = (&pipeline.exprs, &pipeline.funcs[id].stages[number]);
    let (vars, domain) = (boxes[id].clone(), given.domain(pipeline, stage));
    if vars.is_empty() || domain.iter().any(|range| range.is_empty()) {
        return;
    }
    let environment = given.environment(values, &vars.0, &domain);
    let analysis = Analysis::new(exprs, &environment, stage.roots());
    let range = |index: &ExprId| {
        let span = analysis.int(*index);
        Range::inclusive(span.min, span.max)
    };
    let mut add = |func: FuncId, indices: &[ExprId]| {
        boxes[func] = boxes[func].union(&Region(indices.iter().map(range).collect()));
    };
    add(id, &stage.indices);
    for node in exprs.reachable(stage.roots()).into_iter().map(|node| &exprs[node]) {
        if let NodeKind::Call(callee, _) = node.kind {
            add(callee, &node.args);
        }
    }
}
