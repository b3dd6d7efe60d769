//! Edits that shrink pipelines: fewer Funcs, stages, values and variables, simpler expressions.

use std::collections::BTreeMap;

use warploom_lang::draft::Draft;
use warploom_lang::ir::{InputDecl, Node, NodeKind};
use warploom_lang::op::Op;
use warploom_lang::{ExprId, FuncId, Id, InputId, ParamId, Pipeline, Regions, Type, Value};
use warploom_schedule::StageRef;

use crate::case::Case;
use crate::reduce::adapt::{Carried, Lost, carry};

/// An edit of a pipeline.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum PipelineEdit {
    /// Makes one Func the only output.
    OnlyOutput(FuncId),
    /// Drops one output.
    DropOutput(FuncId),
    /// Replaces a Func by inputs.
    ToInput(FuncId),
    /// Replaces a Func by 0.
    ToZero(FuncId),
    /// Inlines a Func into its readers.
    Unfold(FuncId),
    /// Removes an update stage.
    DropStage(StageRef),
    /// Replaces an undefined initial value by 0.
    Define(FuncId),
    /// Replaces a reduction variable by its first value.
    DropVar(StageRef, usize),
    /// Halves the extent of a reduction variable.
    HalveVar(StageRef, usize),
    /// Removes the predicate of an update.
    DropPredicate(StageRef),
    /// Removes a value from a tuple.
    DropValue(FuncId, usize),
    /// Replaces a Param by its value.
    FixParam(ParamId),
    /// Stores an input with the first dimension fastest.
    NaturalOrder(InputId),
    /// Replaces a node of a stage's expressions by one of its operands.
    ToOperand(StageRef, ExprId, usize),
    /// Replaces a node of a stage's expressions by a constant.
    ToConstant(StageRef, ExprId, Value),
}

/// Edits of Funcs and outputs, the most effective first.
pub(crate) fn func_edits(pipeline: &Pipeline) -> Vec<PipelineEdit> {
    let funcs = || pipeline.funcs().keys();
    let is_inner = |func: &FuncId| !pipeline.outputs().contains(func);
    let mut edits: Vec<PipelineEdit> = funcs().map(PipelineEdit::OnlyOutput).collect();
    if pipeline.outputs().len() > 1 {
        edits.extend(pipeline.outputs().iter().map(|output| PipelineEdit::DropOutput(*output)));
    }
    edits.extend(funcs().rev().filter(is_inner).map(PipelineEdit::ToInput));
    edits.extend(funcs().rev().filter(is_inner).map(PipelineEdit::ToZero));
    edits.extend(funcs().rev().filter(is_inner).map(PipelineEdit::Unfold));
    edits
}

/// Edits of stages, domains, values, Params and inputs.
pub(crate) fn stage_edits(pipeline: &Pipeline) -> Vec<PipelineEdit> {
    let mut edits = Vec::new();
    for (func, decl) in pipeline.funcs().iter() {
        edits.extend(
            (1..decl.stages.len()).rev().map(|stage| PipelineEdit::DropStage(StageRef { func, stage })),
        );
        if decl.stages[0].values.is_empty() {
            edits.push(PipelineEdit::Define(func));
        }
        if decl.types.len() > 1 {
            edits.extend((0..decl.types.len()).map(|value| PipelineEdit::DropValue(func, value)));
        }
        for (number, stage) in decl.stages.iter().enumerate() {
            let at = StageRef { func, stage: number };
            edits.extend((0..stage.domain.len()).map(|var| PipelineEdit::DropVar(at, var)));
            edits.extend((0..stage.domain.len()).map(|var| PipelineEdit::HalveVar(at, var)));
            edits.extend(stage.predicate.map(|_| PipelineEdit::DropPredicate(at)));
        }
    }
    edits.extend(pipeline.params().keys().map(PipelineEdit::FixParam));
    edits.extend(pipeline.inputs().keys().map(PipelineEdit::NaturalOrder));
    edits
}

/// Edits of single nodes, the outermost first.
pub(crate) fn expression_edits(pipeline: &Pipeline) -> Vec<PipelineEdit> {
    let exprs = pipeline.exprs();
    let mut edits = Vec::new();
    let stages = pipeline.funcs().iter().flat_map(|(func, decl)| {
        let stages = decl.stages.iter().enumerate();
        stages.map(move |(stage, decl)| (StageRef { func, stage }, decl))
    });
    for (stage, decl) in stages {
        for id in exprs.reachable(decl.roots()).into_iter().rev() {
            let Node { ty, args, kind } = &exprs[id];
            edits.extend(simplest(*ty).map(|value| PipelineEdit::ToConstant(stage, id, value)));
            if let NodeKind::Op(_) = kind {
                let fitting = (0..args.len()).filter(|arg| exprs[args[*arg]].ty == *ty);
                edits.extend(fitting.map(|arg| PipelineEdit::ToOperand(stage, id, arg)));
            }
        }
    }
    edits
}

/// The constants used as replacements: 0 and 1.
pub(crate) fn simplest(ty: Type) -> [Value; 2] {
    [Value::zero(ty), Value::from_int(ty, 1).unwrap_or(Value::zero(ty))]
}

impl PipelineEdit {
    /// The case with this edit applied and its schedule and boxes adapted; `None` if the pipeline
    /// would be invalid.
    pub fn apply(self, case: &Case, regions: &Regions) -> Option<Case> {
        let mut draft = Draft::of(&case.pipeline);
        let mut carried = Carried::default();
        match self {
            PipelineEdit::OnlyOutput(func) => draft.outputs = vec![func],
            PipelineEdit::DropOutput(func) => draft.outputs.retain(|output| *output != func),
            PipelineEdit::ToInput(func) => carried.boxes = to_inputs(&mut draft, func, regions),
            PipelineEdit::ToZero(func) => draft.rebuild_all(&mut |exprs, _, node| match node.kind {
                NodeKind::Call(called, _) if called == func => exprs.intern(zero(node.ty)),
                _ => exprs.intern(node),
            }),
            PipelineEdit::Unfold(func) => unfold(&mut draft, func)?,
            PipelineEdit::DropStage(stage) => {
                draft.funcs[stage.func].stages.remove(stage.stage);
                carried.lost = Lost::Stage(stage);
            }
            PipelineEdit::Define(func) => {
                let types = draft.funcs[func].types.clone();
                let zeros = types.into_iter().map(|ty| draft.constant(Value::zero(ty))).collect();
                draft.funcs[func].stages[0].values = zeros;
            }
            PipelineEdit::DropVar(stage, var) => {
                drop_var(&mut draft, stage, var);
                carried.lost = Lost::Var(stage, var);
            }
            PipelineEdit::HalveVar(stage, var) => {
                let extent = regions.funcs[stage.func].stages[stage.stage].domain[var].extent;
                let half = draft.constant(Value::from((extent / 2) as i32));
                draft.stage_mut(stage).domain[var].extent = half;
            }
            PipelineEdit::DropPredicate(stage) => draft.stage_mut(stage).predicate = None,
            PipelineEdit::DropValue(func, value) => drop_value(&mut draft, func, value),
            PipelineEdit::FixParam(param) => {
                let value = case.request.params[param]?;
                draft.rebuild_all(&mut |exprs, _, node| match node.kind {
                    NodeKind::Param(found) if found == param => exprs.intern(constant(value)),
                    _ => exprs.intern(node),
                });
            }
            PipelineEdit::NaturalOrder(input) => draft.inputs[input].storage_order.sort_unstable(),
            PipelineEdit::ToOperand(stage, id, arg) => draft.rebuild(stage, &mut |exprs, old, node| {
                if old == id { node.args[arg] } else { exprs.intern(node) }
            }),
            PipelineEdit::ToConstant(stage, id, value) => draft.rebuild(stage, &mut |exprs, old, node| {
                exprs.intern(if old == id { constant(value) } else { node })
            }),
        }
        carry(case, regions, draft.finish().ok()?, &carried)
    }
}

fn constant(value: Value) -> Node {
    Node { kind: NodeKind::Op(Op::Const(value)), ty: value.ty(), args: Default::default() }
}

fn zero(ty: Type) -> Node {
    constant(Value::zero(ty))
}

/// Replaces every value of a Func by an input over its required region. Returns the boxes of these
/// inputs.
fn to_inputs(draft: &mut Draft, func: FuncId, regions: &Regions) -> BTreeMap<String, warploom_lang::Region> {
    let decl = draft.funcs[func].clone();
    let mut boxes = BTreeMap::new();
    let first = draft.inputs.len();
    for (value, ty) in decl.types.iter().enumerate() {
        let name = match decl.types.len() {
            1 => decl.name.clone(),
            _ => format!("{}_{value}", decl.name),
        };
        boxes.insert(name.clone(), regions.funcs[func].region.clone());
        let dimensions = decl.dims.len();
        draft.inputs.push(InputDecl { name, ty: *ty, dimensions, storage_order: (0..dimensions).collect() });
    }
    draft.rebuild_all(&mut |exprs, _, node| match node.kind {
        NodeKind::Call(called, value) if called == func => {
            let kind = NodeKind::Load(InputId::new(first + value as usize));
            exprs.intern(Node { kind, ..node })
        }
        _ => exprs.intern(node),
    });
    boxes
}

/// Inlines a Func with a single definition wherever it is read.
fn unfold(draft: &mut Draft, func: FuncId) -> Option<()> {
    let [only] = draft.funcs[func].stages.as_slice() else { return None };
    if only.values.is_empty() {
        return None;
    }
    let whole = draft.clone();
    draft.rebuild_all(&mut |exprs, _, node| match node.kind {
        NodeKind::Call(called, value) if called == func => {
            whole.unfolded(exprs, func, value as usize, &node.args)
        }
        _ => exprs.intern(node),
    });
    Some(())
}

fn drop_var(draft: &mut Draft, stage: StageRef, var: usize) {
    let first = draft.stage(stage).domain[var].min;
    draft.rebuild(stage, &mut |exprs, _, node| match node.kind {
        NodeKind::RVar(found) if found as usize == var => first,
        NodeKind::RVar(found) if found as usize > var => {
            exprs.intern(Node { kind: NodeKind::RVar(found - 1), ..node })
        }
        _ => exprs.intern(node),
    });
    draft.stage_mut(stage).domain.remove(var);
}

/// Removes a value from a tuple; its readers read 0 instead.
fn drop_value(draft: &mut Draft, func: FuncId, value: usize) {
    draft.rebuild_all(&mut |exprs, _, node| match node.kind {
        NodeKind::Call(called, found) if called == func && found as usize == value => {
            exprs.intern(zero(node.ty))
        }
        NodeKind::Call(called, found) if called == func && found as usize > value => {
            exprs.intern(Node { kind: NodeKind::Call(called, found - 1), ..node })
        }
        _ => exprs.intern(node),
    });
    draft.funcs[func].types.remove(value);
    for stage in draft.funcs[func].stages.iter_mut().filter(|stage| !stage.values.is_empty()) {
        stage.values.remove(value);
    }
}
