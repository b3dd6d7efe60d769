//! A pipeline with mutable tables, for passes that turn one pipeline into another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use crate::error::PipelineError;
use crate::ids::{ExprId, FuncId, Id, IdVec, InputId, ParamId};
use crate::ir::{Exprs, FuncDecl, InputDecl, Node, NodeKind, ParamDecl, Stage, StageRef};
use crate::pipeline::Pipeline;
use crate::rewrite::Rewrite;
use crate::types::Value;
use crate::validate::validate;

/// The mutable tables of a pipeline. Funcs may be added at the end, whoever reads them; [`Draft::finish`] puts
/// producers first and drops unused entries.
#[derive(Clone)]
pub struct Draft {
    /// The pipeline's name.
    pub name: String,
    /// The inputs, which may outnumber those that are still read.
    pub inputs: IdVec<InputId, InputDecl>,
    /// The Params, which may outnumber those that are still used.
    pub params: IdVec<ParamId, ParamDecl>,
    /// The Funcs, in any order.
    pub funcs: IdVec<FuncId, FuncDecl>,
    /// The output Funcs.
    pub outputs: Vec<FuncId>,
    /// The nodes of all expressions, which may outnumber those that are still used.
    pub exprs: Exprs,
    /// The rewrites so far.
    pub(crate) rewrites: Vec<Rewrite>,
}

impl Draft {
    /// The tables of a pipeline.
    pub fn of(pipeline: &Pipeline) -> Draft {
        Draft {
            name: pipeline.name.clone(),
            inputs: pipeline.inputs.clone(),
            params: pipeline.params.clone(),
            funcs: pipeline.funcs.clone(),
            outputs: pipeline.outputs.clone(),
            exprs: pipeline.exprs.clone(),
            rewrites: pipeline.rewrites.clone(),
        }
    }

    /// One definition of a Func.
    pub fn stage(&self, stage: StageRef) -> &Stage {
        &self.funcs[stage.func].stages[stage.stage]
    }

    /// One definition of a Func, for modification.
    pub fn stage_mut(&mut self, stage: StageRef) -> &mut Stage {
        &mut self.funcs[stage.func].stages[stage.stage]
    }

    /// All definitions of all Funcs.
    pub fn stages(&self) -> Vec<StageRef> {
        let of = |(func, decl): (FuncId, &FuncDecl)| {
            (0..decl.stages.len()).map(move |stage| StageRef { func, stage })
        };
        self.funcs.iter().flat_map(of).collect()
    }

    /// A constant as an expression.
    pub fn constant(&mut self, value: Value) -> ExprId {
        self.exprs.constant_node(value)
    }

    /// Rebuilds the expressions of a stage, operands first. `change` receives the id of each old
    /// node and its copy with rebuilt operands, and returns the replacement.
    pub fn rebuild(&mut self, stage: StageRef, change: &mut dyn FnMut(&mut Exprs, ExprId, Node) -> ExprId) {
        let roots = self.stage(stage).all_roots().collect();
        let made = self.rebuilt(roots, change);
        replace_roots(self.stage_mut(stage), &made);
    }

    /// A copy of a stage with rebuilt expressions; see [`Draft::rebuild`].
    pub fn rebuilt_stage(
        &mut self,
        stage: &Stage,
        change: &mut dyn FnMut(&mut Exprs, ExprId, Node) -> ExprId,
    ) -> Stage {
        let made = self.rebuilt(stage.all_roots().collect(), change);
        let mut stage = stage.clone();
        replace_roots(&mut stage, &made);
        stage
    }

    /// Rebuilds the expressions of all stages.
    pub fn rebuild_all(&mut self, change: &mut dyn FnMut(&mut Exprs, ExprId, Node) -> ExprId) {
        for stage in self.stages() {
            self.rebuild(stage, change);
        }
    }

    /// Rebuilds some expressions as [`Draft::rebuild`] does, and returns the replacement of each node.
    pub fn rebuilt(
        &mut self,
        roots: Vec<ExprId>,
        change: &mut dyn FnMut(&mut Exprs, ExprId, Node) -> ExprId,
    ) -> BTreeMap<ExprId, ExprId> {
        let mut made = BTreeMap::new();
        for id in self.exprs.reachable(roots) {
            let node = with_operands(&self.exprs[id], &made);
            made.insert(id, change(&mut self.exprs, id, node));
        }
        made
    }

    /// Inlines the only definition of a Func: its value at a point.
    pub fn unfolded(&self, exprs: &mut Exprs, func: FuncId, value: usize, at: &[ExprId]) -> ExprId {
        let root = self.funcs[func].stages[0].values[value];
        let made = copied(&self.exprs, exprs, vec![root], &mut |exprs, _, node| match node.kind {
            NodeKind::Var(d) => at[d as usize],
            _ => exprs.intern(node),
        });
        made[&root]
    }

    /// The pipeline with everything that the outputs need, if it is valid.
    pub fn finish(self) -> Result<Pipeline, PipelineError> {
        let funcs = Numbering::of_list(self.needed_funcs());
        let stages = || funcs.kept.iter().flat_map(|func| &self.funcs[*func].stages);
        let roots: Vec<ExprId> = stages().flat_map(Stage::all_roots).collect();
        let kinds = self.exprs.reachable(roots).into_iter().map(|id| self.exprs[id].kind);
        let kinds: Vec<NodeKind> = kinds.collect();
        let inputs = Numbering::of_set(kinds.iter().filter_map(|kind| match kind {
            NodeKind::Load(input) | NodeKind::InputMin(input, _) | NodeKind::InputExtent(input, _) => {
                Some(*input)
            }
            _ => None,
        }));
        let params = Numbering::of_set(kinds.iter().filter_map(|kind| match kind {
            NodeKind::Param(param) => Some(*param),
            _ => None,
        }));
        let tables = Numbering::of_set(kinds.iter().filter_map(|kind| match kind {
            NodeKind::Table(table) => Some(*table),
            _ => None,
        }));
        let renumbered = |kind: NodeKind| match kind {
            NodeKind::Load(input) => NodeKind::Load(inputs.of(input)),
            NodeKind::InputMin(input, d) => NodeKind::InputMin(inputs.of(input), d),
            NodeKind::InputExtent(input, d) => NodeKind::InputExtent(inputs.of(input), d),
            NodeKind::Param(param) => NodeKind::Param(params.of(param)),
            NodeKind::Call(func, value) => NodeKind::Call(funcs.of(func), value),
            NodeKind::Table(table) => NodeKind::Table(tables.of(table)),
            other => other,
        };
        let kept = tables.kept.iter().map(|table| self.exprs.tables()[*table].clone());
        let mut exprs = Exprs::with_tables(kept.collect());
        let renewed = |func: &FuncId| {
            let mut decl = self.funcs[*func].clone();
            for stage in &mut decl.stages {
                let roots = stage.all_roots().collect();
                let made = copied(&self.exprs, &mut exprs, roots, &mut |exprs, _, node| {
                    exprs.intern(Node { kind: renumbered(node.kind), ..node })
                });
                replace_roots(stage, &made);
            }
            decl
        };
        let pipeline = Pipeline {
            name: self.name.clone(),
            funcs: funcs.kept.iter().map(renewed).collect(),
            inputs: inputs.kept.iter().map(|input| self.inputs[*input].clone()).collect(),
            params: params.kept.iter().map(|param| self.params[*param].clone()).collect(),
            outputs: self.outputs.iter().map(|output| funcs.of(*output)).collect(),
            exprs,
            rewrites: self.rewrites,
            by_name: OnceLock::new(),
        };
        validate(&pipeline)?;
        Ok(pipeline)
    }

    /// The Funcs that the outputs depend on, producers first, otherwise in the order of the table.
    fn needed_funcs(&self) -> Vec<FuncId> {
        let needed: BTreeSet<FuncId> = self.producers_first(self.outputs.clone()).into_iter().collect();
        self.producers_first(needed.into_iter().collect())
    }

    /// Some Funcs and their transitive producers, producers first.
    pub(crate) fn producers_first(&self, funcs: Vec<FuncId>) -> Vec<FuncId> {
        enum Visit {
            Enter(FuncId),
            Leave(FuncId),
        }
        let (mut order, mut entered) = (Vec::new(), BTreeSet::new());
        let mut visits: Vec<Visit> = funcs.into_iter().rev().map(Visit::Enter).collect();
        while let Some(visit) = visits.pop() {
            match visit {
                Visit::Enter(func) if entered.insert(func) => {
                    visits.push(Visit::Leave(func));
                    visits.extend(self.callees(func).into_iter().rev().map(Visit::Enter));
                }
                Visit::Enter(_) => {}
                Visit::Leave(func) => order.push(func),
            }
        }
        order
    }

    /// The Funcs that a Func calls, itself excluded.
    pub fn callees(&self, func: FuncId) -> BTreeSet<FuncId> {
        let nodes = self.exprs.reachable(self.funcs[func].stages.iter().flat_map(Stage::all_roots));
        let called = nodes.into_iter().filter_map(|id| match self.exprs[id].kind {
            NodeKind::Call(called, _) if called != func => Some(called),
            _ => None,
        });
        called.collect()
    }
}

/// Renumbers the entries of a table that are kept.
struct Numbering<K> {
    kept: Vec<K>,
    numbers: BTreeMap<K, usize>,
}

impl<K: Id + Ord> Numbering<K> {
    fn of_list(kept: Vec<K>) -> Numbering<K> {
        let numbers = kept.iter().enumerate().map(|(number, id)| (*id, number)).collect();
        Numbering { kept, numbers }
    }

    fn of_set(kept: impl IntoIterator<Item = K>) -> Numbering<K> {
        let kept: BTreeSet<K> = kept.into_iter().collect();
        Numbering::of_list(kept.into_iter().collect())
    }

    /// The new id of a kept entry.
    fn of(&self, old: K) -> K {
        K::new(self.numbers.get(&old).copied().unwrap_or_default())
    }
}

fn replace_roots(stage: &mut Stage, made: &BTreeMap<ExprId, ExprId>) {
    let bounds = stage.domain.iter_mut().flat_map(|var| [&mut var.min, &mut var.extent]);
    let roots = stage.indices.iter_mut().chain(&mut stage.values).chain(&mut stage.predicate);
    roots.chain(bounds).for_each(|root| *root = made[root]);
}

/// Copies expressions from one table to another; see [`Draft::rebuild`].
pub(crate) fn copied(
    from: &Exprs,
    to: &mut Exprs,
    roots: Vec<ExprId>,
    change: &mut dyn FnMut(&mut Exprs, ExprId, Node) -> ExprId,
) -> BTreeMap<ExprId, ExprId> {
    let mut made = BTreeMap::new();
    for id in from.reachable(roots) {
        made.insert(id, change(to, id, with_operands(&from[id], &made)));
    }
    made
}

/// A node with its operands replaced.
fn with_operands(node: &Node, made: &BTreeMap<ExprId, ExprId>) -> Node {
    Node { args: node.args.iter().map(|arg| made[arg]).collect(), ..node.clone() }
}
