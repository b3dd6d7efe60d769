//! Builds the [`Dag`] of a pipeline.

use warploom_lang::ir::{self, NodeKind, stage_name};
use warploom_lang::{FuncId, Id, IdVec, InputId, Pipeline};

use crate::branching::branching;
use crate::dag::access::{Access, Target, merged};
use crate::dag::derivative::Derivatives;
use crate::dag::{Dag, Edge, Loop, LoopKind, Node, Source, Stage, shape};
use crate::id_set::NodeSet;
use crate::ids::{NodeId, StageId};

pub(crate) fn build(pipeline: &Pipeline) -> Dag {
    let mut dag = Dag {
        name: pipeline.name().to_string(),
        inputs: pipeline.inputs().len(),
        nodes: IdVec::new(),
        stages: IdVec::new(),
        edges: IdVec::new(),
    };
    for id in pipeline.inputs().keys() {
        dag.nodes.push(input_node(pipeline, id));
    }
    for id in pipeline.funcs().keys() {
        let node = dag.nodes.push(func_node(pipeline, id));
        for number in 0..pipeline.funcs()[id].stages.len() {
            add_stage(&mut dag, pipeline, node, id, number);
        }
    }
    dag
}

fn input_node(pipeline: &Pipeline, id: InputId) -> Node {
    let input = &pipeline.inputs()[id];
    Node {
        source: Source::Input(id),
        name: input.name.clone(),
        dims: (0..input.dimensions).map(|d| format!("d{d}")).collect(),
        storage_order: input.storage_order.clone(),
        types: vec![input.ty],
        bytes_per_point: input.ty.bytes(),
        is_output: false,
        is_wrapper: false,
        is_pointwise: true,
        is_boundary_condition: false,
        stages: Vec::new(),
        consumers: Vec::new(),
    }
}

fn func_node(pipeline: &Pipeline, id: FuncId) -> Node {
    let (func, exprs) = (&pipeline.funcs()[id], pipeline.exprs());
    Node {
        source: Source::Func(id),
        name: func.name.clone(),
        dims: func.dims.clone(),
        storage_order: func.storage_order(),
        types: func.types.clone(),
        bytes_per_point: func.bytes_per_point(),
        is_output: pipeline.outputs().contains(&id),
        is_wrapper: shape::is_wrapper(exprs, func),
        is_pointwise: shape::is_pointwise(exprs, func),
        is_boundary_condition: shape::is_boundary_condition(exprs, func),
        stages: Vec::new(),
        consumers: Vec::new(),
    }
}

/// Adds a stage. Its producers and the earlier stages of its Func must already be in the graph.
fn add_stage(dag: &mut Dag, pipeline: &Pipeline, node: NodeId, func: FuncId, number: usize) {
    let (decl, exprs) = (&pipeline.funcs()[func], pipeline.exprs());
    let definition = &decl.stages[number];
    let loops = loops(pipeline, decl, definition);
    let derivatives = Derivatives::new(exprs, func, definition, &loops);
    let accesses = accesses(pipeline, func, definition, &derivatives);
    let store = derivatives.map(&definition.indices);
    let mut stage = Stage {
        node,
        func,
        number,
        name: stage_name(decl, number),
        branching: branching(exprs, definition, |_| None),
        loops,
        accesses,
        store,
        values: definition.values.len(),
        has_predicate: definition.predicate.is_some(),
        producers: Vec::new(),
        dependencies: NodeSet::default(),
    };
    if let Some(&earlier) = dag.nodes[node].stages.last() {
        stage.dependencies = dag.stages[earlier].dependencies.clone();
        stage.dependencies.insert(node);
    }
    let consumer = StageId::new(dag.stages.len());
    for edge in edges(dag, &stage, consumer) {
        stage.dependencies.insert(edge.producer);
        // The last stage of a producer depends on everything that the earlier stages depend on.
        if let Some(&last) = dag.nodes[edge.producer].stages.last() {
            stage.dependencies.extend(&dag.stages[last].dependencies);
        }
        let producer = edge.producer;
        let id = dag.edges.push(edge);
        stage.producers.push(id);
        dag.nodes[producer].consumers.push(id);
    }
    dag.nodes[node].stages.push(consumer);
    dag.stages.push(stage);
}

/// Reduction variables, then pure dimensions, each group fastest first.
fn loops(pipeline: &Pipeline, func: &ir::FuncDecl, stage: &ir::Stage) -> Vec<Loop> {
    let reductions = stage.domain.iter().enumerate();
    let reductions = reductions.map(|(r, var)| Loop { name: var.name.clone(), kind: LoopKind::Reduction(r) });
    let pure = func.dims.iter().enumerate().filter(|(d, _)| stage.is_pure(pipeline.exprs(), *d));
    let pure = pure.map(|(d, name)| Loop { name: name.clone(), kind: LoopKind::Pure(d) });
    reductions.chain(pure).collect()
}

fn accesses(
    pipeline: &Pipeline,
    func: FuncId,
    stage: &ir::Stage,
    derivatives: &Derivatives<'_>,
) -> Vec<Access> {
    let exprs = pipeline.exprs();
    let mut found = Vec::new();
    for expr in exprs.reachable(stage.roots()) {
        let node = &exprs[expr];
        let (target, value) = match node.kind {
            NodeKind::Load(input) => (Target::Input(input), 0),
            NodeKind::Call(callee, value) if callee == func => (Target::Itself, value as usize),
            NodeKind::Call(callee, value) => (Target::Func(callee), value as usize),
            _ => continue,
        };
        found.push(Access { expr, target, value, map: derivatives.map(&node.args) });
    }
    found
}

/// One edge per node that the stage reads, in producer order.
fn edges(dag: &Dag, stage: &Stage, consumer: StageId) -> Vec<Edge> {
    let producer = |access: &Access| match access.target {
        Target::Input(input) => Some(dag.input_node(input)),
        Target::Func(func) => Some(dag.func_node(func)),
        Target::Itself => None,
    };
    let mut producers: Vec<NodeId> = stage.accesses.iter().filter_map(producer).collect();
    producers.sort_unstable();
    producers.dedup();
    let edge = |node: NodeId| {
        let read = stage.accesses.iter().filter(|access| producer(access) == Some(node));
        let loads = merged(read.map(|access| &access.map));
        let calls = loads.iter().map(|load| load.count).sum();
        Edge { producer: node, consumer, loads, calls }
    };
    producers.into_iter().map(edge).collect()
}
