//! A pipeline with mutable tables: the form in which it is reduced.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value as Json;
use warploom_lang::ir::{Exprs, FuncDecl, InputDecl, Node, NodeKind, ParamDecl, Stage};
use warploom_lang::op::Op;
use warploom_lang::{ExprId, FuncId, Id, IdVec, InputId, ParamId, Pipeline, Value};
use warploom_schedule::schedule::StageRef;

/// The mutable tables of a pipeline; [`Draft::finish`] keeps what is still needed.
#[derive(Clone)]
pub(crate) struct Draft {
    pub inputs: IdVec<InputId, InputDecl>,
    pub params: IdVec<ParamId, ParamDecl>,
    pub funcs: IdVec<FuncId, FuncDecl>,
    pub outputs: Vec<FuncId>,
    pub exprs: Exprs,
}

/// The tables in the serialised form of pipelines.
#[derive(Serialize)]
struct Tables {
    inputs: Vec<InputDecl>,
    params: Vec<ParamDecl>,
    funcs: Vec<FuncDecl>,
    outputs: Vec<FuncId>,
    exprs: Vec<Node>,
}

impl Draft {
    pub fn of(pipeline: &Pipeline) -> Draft {
        Draft {
            inputs: pipeline.inputs().clone(),
            params: pipeline.params().clone(),
            funcs: pipeline.funcs().clone(),
            outputs: pipeline.outputs().to_vec(),
            exprs: pipeline.exprs().clone(),
        }
    }

    pub fn stage(&self, stage: StageRef) -> &Stage {
        &self.funcs[stage.func].stages[stage.stage]
    }

    pub fn stage_mut(&mut self, stage: StageRef) -> &mut Stage {
        &mut self.funcs[stage.func].stages[stage.stage]
    }

    pub fn stages(&self) -> Vec<StageRef> {
        let of = |(func, decl): (FuncId, &FuncDecl)| {
            (0..decl.stages.len()).map(move |stage| StageRef { func, stage })
        };
        self.funcs.iter().flat_map(of).collect()
    }

    pub fn constant(&mut self, value: Value) -> ExprId {
        let kind = NodeKind::Op(Op::Const(value));
        self.exprs.intern(Node { kind, ty: value.ty(), args: Default::default() })
    }

    /// Rebuilds the expressions of a stage, operands first. `change` receives the id of each old
    /// node and its copy with rebuilt operands, and returns the replacement.
    pub fn rewrite(&mut self, stage: StageRef, change: &mut dyn FnMut(&mut Exprs, ExprId, Node) -> ExprId) {
        let roots = all_roots(self.stage(stage));
        let old = self.exprs.clone();
        let made = rebuild(&old, &mut self.exprs, roots, change);
        replace_roots(self.stage_mut(stage), &made);
    }

    /// Rebuilds the expressions of all stages.
    pub fn rewrite_all(&mut self, change: &mut dyn FnMut(&mut Exprs, ExprId, Node) -> ExprId) {
        for stage in self.stages() {
            self.rewrite(stage, change);
        }
    }

    /// Inlines the only definition of a Func: its value at a point.
    pub fn unfolded(&self, exprs: &mut Exprs, func: FuncId, value: usize, at: &[ExprId]) -> ExprId {
        let root = self.funcs[func].stages[0].values[value];
        let made = rebuild(&self.exprs, exprs, vec![root], &mut |exprs, _, node| match node.kind {
            NodeKind::Var(d) => at[d as usize],
            _ => exprs.intern(node),
        });
        made[&root]
    }

    /// The pipeline with everything that the outputs need; `None` if it is invalid.
    pub fn finish(self, like: &Pipeline) -> Option<Pipeline> {
        let funcs = Numbering::keeping(self.needed_funcs());
        let stages = || funcs.kept.iter().flat_map(|func| &self.funcs[*func].stages);
        let roots: Vec<ExprId> = stages().flat_map(all_roots).collect();
        let kinds = self.exprs.reachable(roots).into_iter().map(|id| self.exprs[id].kind);
        let kinds: Vec<NodeKind> = kinds.collect();
        let inputs = Numbering::keeping(kinds.iter().filter_map(|kind| match kind {
            NodeKind::Load(input) | NodeKind::InputMin(input, _) | NodeKind::InputExtent(input, _) => {
                Some(*input)
            }
            _ => None,
        }));
        let params = Numbering::keeping(kinds.iter().filter_map(|kind| match kind {
            NodeKind::Param(param) => Some(*param),
            _ => None,
        }));
        let renumbered = |kind: NodeKind| match kind {
            NodeKind::Load(input) => NodeKind::Load(inputs.of(input)),
            NodeKind::InputMin(input, d) => NodeKind::InputMin(inputs.of(input), d),
            NodeKind::InputExtent(input, d) => NodeKind::InputExtent(inputs.of(input), d),
            NodeKind::Param(param) => NodeKind::Param(params.of(param)),
            NodeKind::Call(func, value) => NodeKind::Call(funcs.of(func), value),
            other => other,
        };
        let mut exprs = Exprs::default();
        let renewed = |func: &FuncId| {
            let mut decl = self.funcs[*func].clone();
            for stage in &mut decl.stages {
                let made = rebuild(&self.exprs, &mut exprs, all_roots(stage), &mut |exprs, _, node| {
                    exprs.intern(Node { kind: renumbered(node.kind), ..node })
                });
                replace_roots(stage, &made);
            }
            decl
        };
        let tables = Tables {
            funcs: funcs.kept.iter().map(renewed).collect(),
            inputs: inputs.kept.iter().map(|input| self.inputs[*input].clone()).collect(),
            params: params.kept.iter().map(|param| self.params[*param].clone()).collect(),
            outputs: self.outputs.iter().map(|output| funcs.of(*output)).collect(),
            exprs: exprs.nodes().values().cloned().collect(),
        };
        read(like, &tables)
    }

    /// The Funcs that the outputs depend on.
    fn needed_funcs(&self) -> BTreeSet<FuncId> {
        let mut needed = BTreeSet::new();
        let mut open = self.outputs.clone();
        while let Some(func) = open.pop() {
            if needed.insert(func) {
                let roots = self.funcs[func].stages.iter().flat_map(all_roots);
                open.extend(self.exprs.reachable(roots).into_iter().filter_map(
                    |id| match self.exprs[id].kind {
                        NodeKind::Call(called, _) => Some(called),
                        _ => None,
                    },
                ));
            }
        }
        needed
    }
}

/// Parses tables like a file of the original pipeline, which also validates them.
fn read(like: &Pipeline, tables: &Tables) -> Option<Pipeline> {
    let mut file: Json = like.to_json().parse().ok()?;
    let Json::Object(tables) = serde_json::to_value(tables).ok()? else { return None };
    file.as_object_mut()?.extend(tables);
    Pipeline::from_json(&file.to_string()).ok()
}

/// Renumbers the entries of a table that are kept.
struct Numbering<K> {
    kept: Vec<K>,
}

impl<K: Id + Ord> Numbering<K> {
    fn keeping(kept: impl IntoIterator<Item = K>) -> Numbering<K> {
        let kept: BTreeSet<K> = kept.into_iter().collect();
        Numbering { kept: kept.into_iter().collect() }
    }

    /// The new id of a kept entry.
    fn of(&self, old: K) -> K {
        K::new(self.kept.binary_search(&old).unwrap_or_default())
    }
}

/// All root expressions of a stage, including the bounds of its domain.
fn all_roots(stage: &Stage) -> Vec<ExprId> {
    let bounds = stage.domain.iter().flat_map(|var| [var.min, var.extent]);
    stage.roots().chain(bounds).collect()
}

fn replace_roots(stage: &mut Stage, made: &BTreeMap<ExprId, ExprId>) {
    let bounds = stage.domain.iter_mut().flat_map(|var| [&mut var.min, &mut var.extent]);
    let roots = stage.indices.iter_mut().chain(&mut stage.values).chain(&mut stage.predicate);
    roots.chain(bounds).for_each(|root| *root = made[root]);
}

/// Copies expressions from one table to another; see [`Draft::rewrite`].
fn rebuild(
    from: &Exprs,
    to: &mut Exprs,
    roots: Vec<ExprId>,
    change: &mut dyn FnMut(&mut Exprs, ExprId, Node) -> ExprId,
) -> BTreeMap<ExprId, ExprId> {
    let mut made = BTreeMap::new();
    for id in from.reachable(roots) {
        let mut node = from[id].clone();
        node.args.iter_mut().for_each(|arg| *arg = made[arg]);
        made.insert(id, change(to, id, node));
    }
    made
}
