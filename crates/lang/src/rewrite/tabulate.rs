//! `tabulate f`: a Func of constants as a table.

use crate::bounds::everywhere::accessed_boxes;
use crate::draft::Draft;
use crate::ids::{ExprId, FuncId, TableId};
use crate::ir::{Exprs, Node, NodeKind, Stage};
use crate::op::{BinaryOp, Op};
use crate::pipeline::Pipeline;
use crate::region::Region;
use crate::rewrite::RewriteError;
use crate::rewrite::evaluate::Evaluation;
use crate::rewrite::fold::folded;
use crate::table::TableDecl;
use crate::types::{Type, Value};

/// The maximum number of points of a Func that becomes a table.
const MAX_POINTS: u64 = 4096;

/// The maximum number of operations of its evaluation.
const MAX_WORK: u64 = 1 << 22;

pub(super) fn tabulate(draft: &mut Draft, pipeline: &Pipeline, func: FuncId) -> Result<(), RewriteError> {
    let decl = &pipeline.funcs[func];
    let refused = |why: String| RewriteError::NotConstant { func: decl.name.clone(), why };
    if pipeline.outputs.contains(&func) {
        return Err(refused("it is an output".to_string()));
    }
    if decl.stages[0].values.is_empty() {
        return Err(RewriteError::Undefined { func: decl.name.clone() });
    }
    if let Some(on) = dependence(pipeline, func) {
        return Err(refused(on));
    }
    let region = small_box(pipeline, func).map_err(refused)?;
    let evaluation = Evaluation::new(&pipeline.exprs, func, decl, &region);
    if evaluation.work() > MAX_WORK {
        return Err(refused(format!("its evaluation takes more than {MAX_WORK} operations")));
    }
    let outside = |_| refused("it reads beyond the end of a table at some of its points".to_string());
    let values = evaluation.run().map_err(outside)?;
    let extents: Vec<usize> = region.0.iter().map(|range| range.extent as usize).collect();
    let tables = decl.value_names().into_iter().zip(&decl.types).zip(&values).map(|((name, ty), values)| {
        draft.exprs.intern_table(&TableDecl::new(name, *ty, extents.clone(), values.clone()))
    });
    let tables: Vec<TableId> = tables.collect();
    draft.rebuild_all(&mut |exprs, _, node| match node.kind {
        NodeKind::Call(read, value) if read == func => match extents.is_empty() {
            true => exprs.constant_node(values[value as usize][0]),
            false => element(exprs, tables[value as usize], &region, node),
        },
        _ => exprs.intern(node),
    });
    Ok(())
}

/// The reason why a Func is not constant, as a clause.
fn dependence(pipeline: &Pipeline, func: FuncId) -> Option<String> {
    let roots = pipeline.funcs[func].stages.iter().flat_map(Stage::all_roots);
    let kinds = pipeline.exprs.reachable(roots).into_iter().map(|id| pipeline.exprs[id].kind);
    kinds.into_iter().find_map(|kind| match kind {
        NodeKind::Load(input) => Some(format!("it reads the input `{}`", pipeline.inputs[input].name)),
        NodeKind::InputMin(input, _) | NodeKind::InputExtent(input, _) => {
            Some(format!("it depends on the size of the input `{}`", pipeline.inputs[input].name))
        }
        NodeKind::Param(param) => Some(format!("it depends on the Param `{}`", pipeline.params[param].name)),
        NodeKind::Call(read, _) if read != func => {
            Some(format!("it reads `{}`, which is no table", pipeline.funcs[read].name))
        }
        _ => None,
    })
}

/// The points of a Func that are touched, if they are few at all sizes; otherwise the reason, as a clause.
fn small_box(pipeline: &Pipeline, func: FuncId) -> Result<Region, String> {
    let region = accessed_boxes(pipeline)[func].clone();
    if region.is_empty() {
        return Err("no point of it is read".to_string());
    }
    let wide = region.0.iter().position(|range| range.extent as u64 > MAX_POINTS);
    if let Some(d) = wide {
        let dim = &pipeline.funcs[func].dims[d];
        return Err(format!(
            "its readers must keep to {MAX_POINTS} points along `{dim}` at all sizes; clamp the index"
        ));
    }
    match region.points() {
        Some(points) if points <= MAX_POINTS => Ok(region),
        _ => Err(format!("it has more than {MAX_POINTS} points")),
    }
}

/// A read of a Func as a read of its table, which starts at 0.
fn element(exprs: &mut Exprs, table: TableId, region: &Region, node: Node) -> ExprId {
    let mut shifted = |index: &ExprId, min: i64| -> ExprId {
        let Some(min) = i32::try_from(min).ok().filter(|min| *min != 0) else { return *index };
        let op = if min > 0 { BinaryOp::Sub } else { BinaryOp::Add };
        let args = [*index, exprs.constant_node(Value::from(min.abs()))].into_iter().collect();
        folded(exprs, Node { kind: NodeKind::Op(Op::Binary(op)), ty: Type::I32, args })
    };
    let args = node.args.iter().zip(&region.0).map(|(index, range)| shifted(index, range.min)).collect();
    folded(exprs, Node { kind: NodeKind::Table(table), args, ..node })
}
