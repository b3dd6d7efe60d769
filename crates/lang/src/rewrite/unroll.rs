//! `unroll f.1.r`: the values of a reduction variable as Funcs of their own. The order does not change.

use std::collections::BTreeMap;

use crate::draft::Draft;
use crate::ids::{ExprId, FuncId};
use crate::ir::{Exprs, FuncDecl, Node, NodeKind, ReductionVar, Stage, StageRef};
use crate::op::BinaryOp;
use crate::rewrite::cut::first_stages;
use crate::rewrite::fold::folded;
use crate::rewrite::{RewriteError, StageName};
use crate::types::Value;

/// The maximum number of values of a variable that is unrolled; each becomes a Func.
const MAX_VALUES: i32 = 64;

pub(super) fn unroll(draft: &mut Draft, at: StageRef, var: usize) -> Result<(), RewriteError> {
    let refused = |why| RewriteError::NotUnrollable { stage: StageName::of(draft, at), why };
    let stage = draft.stage(at).clone();
    if var + 1 != stage.domain.len() {
        return Err(refused("the variable must be the last one of its domain, which is the slowest"));
    }
    let range = values(&draft.exprs, &stage.domain[var])
        .ok_or_else(|| refused("the variable must have a constant start and at most 64 values"))?;
    let mut written = (0..stage.indices.len()).filter(|d| moves_with(&draft.exprs, &stage, *d, var));
    let dimension =
        written.next().ok_or_else(|| refused("it must write at an index like r + 1 along one dimension"))?;
    let start = first_stages(draft, at.func, at.stage, "start")?;
    let mut slices = Slices { at, stage, var, dimension, start, funcs: BTreeMap::new() };
    for value in range {
        slices.add(draft, value)?;
    }
    slices.choose(draft);
    Ok(())
}

/// The values of a variable, if they are constants and not too many.
fn values(exprs: &Exprs, var: &ReductionVar) -> Option<std::ops::Range<i32>> {
    let int = |id: ExprId| exprs.constant(id).and_then(Value::get::<i32>);
    let (min, extent) = (int(var.min)?, int(var.extent)?);
    (extent <= MAX_VALUES).then_some(min..min.checked_add(extent)?)
}

/// Whether the index along a dimension depends only on this variable.
fn moves_with(exprs: &Exprs, stage: &Stage, dimension: usize, var: usize) -> bool {
    let kinds = || exprs.reachable([stage.indices[dimension]]).into_iter().map(|id| exprs[id].kind);
    let own = NodeKind::RVar(var as u32);
    kinds().any(|kind| kind == own) && kinds().all(|kind| kind == own || matches!(kind, NodeKind::Op(_)))
}

/// The Funcs of an unrolled update, by the slice that they hold along a dimension of the original Func.
struct Slices {
    at: StageRef,
    /// The update before the rewrite.
    stage: Stage,
    /// The unrolled variable.
    var: usize,
    /// The dimension along which the slices lie.
    dimension: usize,
    /// The Func to read at slices that are not written yet.
    start: FuncId,
    funcs: BTreeMap<i32, FuncId>,
}

impl Slices {
    /// Adds the Func of one value of the variable: a pure one if the update is pure apart from the slice,
    /// otherwise one that starts from the values before the update.
    fn add(&mut self, draft: &mut Draft, value: i32) -> Result<(), RewriteError> {
        let stage = with_value(draft, &self.stage, self.var, value);
        let position = draft.exprs.constant(stage.indices[self.dimension]).and_then(Value::get::<i32>);
        let position = position.filter(|at| *at >= 0 && !self.funcs.contains_key(at)).ok_or_else(|| {
            self.refused(draft, "it must write each slice once, at an index that is not negative")
        })?;
        let pure = stage.domain.is_empty()
            && stage.predicate.is_none()
            && (0..stage.indices.len()).all(|d| d == self.dimension || stage.is_pure(&draft.exprs, d));
        if pure {
            let stage = self.within(draft, &stage)?;
            self.add_slice(draft, position, stage);
        } else {
            let start = self.start_of(draft, position);
            let slice = self.add_slice(draft, position, start);
            let update = self.within(draft, &stage)?;
            draft.funcs[slice].stages.push(update);
        }
        Ok(())
    }

    /// Adds the Func of a slice with its pure definition. Later stages that read the slice read this Func.
    fn add_slice(&mut self, draft: &mut Draft, position: i32, stage: Stage) -> FuncId {
        let FuncDecl { name, mut dims, types, .. } = draft.funcs[self.at.func].clone();
        dims.remove(self.dimension);
        let (name, stages) = (format!("{name}.at{position}"), vec![stage]);
        let slice = draft.funcs.push(FuncDecl { name, dims, types, stages, stored: None });
        self.funcs.insert(position, slice);
        slice
    }

    /// The pure definition of a slice with the values before the update.
    fn start_of(&self, draft: &mut Draft, position: i32) -> Stage {
        let dimensions = self.stage.indices.len() - 1;
        let mut at: Vec<ExprId> = (0..dimensions).map(|d| draft.var(d)).collect();
        at.insert(self.dimension, draft.int(position));
        let values = draft.calls(self.start, &at);
        draft.pure_stage(dimensions, values, self.stage.place)
    }

    /// A stage of a slice: without the dimension of the slices, reading the slices written so far.
    fn within(&self, draft: &mut Draft, stage: &Stage) -> Result<Stage, RewriteError> {
        let mut unknown = false;
        let mut stage = draft.rebuilt_stage(stage, &mut |exprs, _, mut node| match node.kind {
            NodeKind::Var(d) => {
                let kind = NodeKind::Var(d - u32::from(d as usize > self.dimension));
                exprs.intern(Node { kind, ..node })
            }
            NodeKind::Call(func, value) if func == self.at.func => {
                let position = exprs.constant(node.args[self.dimension]).and_then(Value::get::<i32>);
                unknown |= position.is_none();
                let written = position.and_then(|position| self.funcs.get(&position));
                node.kind = NodeKind::Call(*written.unwrap_or(&self.start), value);
                if written.is_some() {
                    node.args.remove(self.dimension);
                }
                exprs.intern(node)
            }
            _ => exprs.intern(node),
        });
        stage.indices.remove(self.dimension);
        match unknown {
            true => {
                Err(self.refused(draft, "it must read itself at indices like r - 1 along that dimension"))
            }
            false => Ok(stage),
        }
    }

    /// Lets the original Func choose the slice of each point.
    fn choose(&self, draft: &mut Draft) {
        let mut at: Vec<ExprId> = (0..self.stage.indices.len()).map(|d| draft.var(d)).collect();
        let mut values = draft.calls(self.start, &at);
        let var = at.remove(self.dimension);
        for (position, slice) in &self.funcs {
            let position = draft.int(*position);
            let here = draft.binary(BinaryOp::Eq, var, position);
            let written = draft.calls(*slice, &at);
            let pairs = written.into_iter().zip(values);
            values = pairs.map(|(written, before)| draft.select(here, written, before)).collect();
        }
        let stage = draft.pure_stage(self.stage.indices.len(), values, self.stage.place);
        draft.funcs[self.at.func].stages.splice(..=self.at.stage, [stage]);
    }

    fn refused(&self, draft: &Draft, why: &'static str) -> RewriteError {
        RewriteError::NotUnrollable { stage: StageName::of(draft, self.at), why }
    }
}

/// A stage at one value of its last reduction variable, with folded constants.
fn with_value(draft: &mut Draft, stage: &Stage, var: usize, value: i32) -> Stage {
    let value = draft.int(value);
    let mut stage = draft.rebuilt_stage(stage, &mut |exprs, _, node| match node.kind {
        NodeKind::RVar(number) if number as usize == var => value,
        _ => folded(exprs, node),
    });
    stage.domain.truncate(var);
    stage
}
