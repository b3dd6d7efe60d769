//! Measures how hard a case is to understand.

use warploom_lang::ir::{FuncDecl, NodeKind};
use warploom_lang::op::Op;
use warploom_lang::{Pipeline, Realisation, Region, Value};
use warploom_schedule::{Loops, Nest, NodeMut, ReductionTile, Schedule, Size, StageRef, ThreadTiles, Tile};

use crate::case::Case;
use crate::reduce::pipelines::simplest;

/// A number that decreases whenever a case gets simpler. The weights define the trade-offs: for
/// instance, an extra kernel is better than a Func inside a block.
pub(crate) fn size(case: &Case) -> u64 {
    pipeline_size(&case.pipeline) + request_size(&case.request) + schedule_size(&case.schedule)
}

fn pipeline_size(pipeline: &Pipeline) -> u64 {
    let exprs = pipeline.exprs();
    let nodes = exprs.nodes().values().map(|node| match node.kind {
        NodeKind::Op(Op::Const(value)) => value_size(value),
        NodeKind::Var(_) | NodeKind::RVar(_) => 10,
        _ => 20,
    });
    // Also count the nodes of each stage, because stages share nodes.
    let uses = |func: &FuncDecl| -> u64 {
        func.stages.iter().map(|stage| exprs.reachable(stage.roots()).len() as u64).sum()
    };
    let funcs = pipeline.funcs().values().map(|func| {
        let vars: usize = func.stages.iter().map(|stage| stage.domain.len()).sum();
        let predicates = func.stages.iter().filter(|stage| stage.predicate.is_some()).count();
        let undefined = func.stages.iter().filter(|stage| stage.values.is_empty()).count();
        let parts = 400 * func.stages.len() + 200 * func.types.len() + 100 * vars;
        1000 + (parts + 100 * predicates + 50 * undefined) as u64 + uses(func)
    });
    let orders = pipeline.inputs().values().filter(|input| !input.storage_order.is_sorted()).count();
    let tables = 300 * pipeline.inputs().len() + 100 * pipeline.params().len() + 10 * orders;
    let outputs = 300 * pipeline.outputs().len();
    nodes.chain(funcs).sum::<u64>() + (tables + outputs) as u64
}

fn request_size(request: &Realisation) -> u64 {
    let points = |region: &Region| -> u64 {
        region.0.iter().map(|range| range.extent as u64 + 2 * u64::from(range.min != 0)).sum()
    };
    let boxes = request.inputs.values().chain(&request.outputs).flatten().map(points);
    boxes.chain(request.params.values().flatten().map(|value| value_size(*value))).sum()
}

fn value_size(value: Value) -> u64 {
    match simplest(value.ty()).iter().position(|simple| *simple == value) {
        Some(position) => 1 + position as u64,
        None => 5,
    }
}

fn schedule_size(schedule: &Schedule) -> u64 {
    let mut size = 10 * schedule.inlined.len() as u64;
    let mut own = None;
    schedule.clone().edit(|node, _| {
        size += match node {
            NodeMut::Around(Loops { loops, .. }) | NodeMut::Over(Loops { loops, .. }) => loops_size(loops),
            NodeMut::Kernel(kernel) => {
                own = Some(kernel.stage);
                40 + tiles_size(&kernel.block) + 20 * kernel.numbers.given().count() as u64
            }
            NodeMut::Nest(nest) => nest_size(nest, own),
        };
        true
    });
    size
}

fn loops_size(loops: &[ReductionTile]) -> u64 {
    80 + loops.iter().map(|tile| 40 + bits(tile.size)).sum::<u64>()
}

fn nest_size(nest: &Nest, own: Option<StageRef>) -> u64 {
    let inside = if nest.item.stage() == own { 0 } else { 120 };
    let mapping = nest.mapping.tiles().map_or(0, |ThreadTiles { threads, serial, unroll }| {
        3 + tiles_size(threads) + tiles_size(serial) + 10 * u64::from(*unroll)
    });
    inside + mapping + (100 * nest.registers.len() + 20 * nest.numbers.given().count()) as u64
}

fn tiles_size(tiles: &[Tile]) -> u64 {
    tiles.iter().map(|tile| 4 + bits(tile.size)).sum()
}

fn bits(size: Size) -> u64 {
    match size {
        Size::Of(number) => u64::from(number.max(1).ilog2()),
        Size::All => 1,
    }
}
