//! Sums over a domain: `f(x, y) = f(x, y) + a(rx) * b(ry) * g(x + rx, y + ry)`.

use std::collections::BTreeSet;

use crate::draft::Draft;
use crate::ids::ExprId;
use crate::ir::{Exprs, NodeKind, ReductionVar, Stage, StageRef};
use crate::op::{BinaryOp, Op};
use crate::rewrite::operator::{Reduction, is_exact};
use crate::rewrite::separate::{Reading, Refusal, access_of, vars_of};
use crate::types::{Type, Value};

/// Terms with more factors are not separated.
const MOST_FACTORS: usize = 64;

/// Separates an update that is a sum: the first pass runs over the reduction variables that move its reads along a
/// dimension, the update over the rest.
pub(super) fn separate(draft: &mut Draft, at: StageRef, dim: usize) -> Result<(), Refusal> {
    let stage = draft.stage(at).clone();
    let term = term(draft, at, &stage).ok_or(Refusal::NoTaps)?;
    let ty = draft.exprs[term].ty;
    let split = Split::new(&draft.exprs, &stage, term, dim)?;
    if !is_exact(BinaryOp::Add, ty) && !stage.reassociate {
        return Err(Refusal::Order(ty));
    }
    split.emit(draft, at, stage, ty);
    Ok(())
}

/// The term that an update adds to each point, if it adds one to every point of its domain.
fn term(draft: &Draft, at: StageRef, stage: &Stage) -> Option<ExprId> {
    let reduction = Reduction::of(&draft.exprs, at.func, stage)?;
    let pure = (0..stage.indices.len()).all(|d| stage.is_pure(&draft.exprs, d));
    match (&reduction.ops[..], &reduction.terms[..]) {
        ([BinaryOp::Add], [term]) if pure && stage.predicate.is_none() => Some(*term),
        _ => None,
    }
}

/// A sum as two.
struct Split {
    reading: Reading,
    access: ExprId,
    /// The factor with the read, and the weights that depend on the position along the dimension.
    first: Vec<ExprId>,
    /// The other weights.
    second: Vec<ExprId>,
    /// The reduction variables of the first pass.
    along: BTreeSet<u32>,
}

impl Split {
    fn new(exprs: &Exprs, stage: &Stage, term: ExprId, dim: usize) -> Result<Split, Refusal> {
        let factors = factors(exprs, term).ok_or(Refusal::NoTaps)?;
        let (reads, weights): (Vec<ExprId>, Vec<ExprId>) =
            factors.into_iter().partition(|factor| !vars_of(exprs, *factor).is_empty());
        let [read] = reads[..] else { return Err(Refusal::NoTaps) };
        let access = access_of(exprs, read).ok_or(Refusal::NoTaps)?;
        let indices = &exprs[access].args;
        let rvars: Vec<BTreeSet<u32>> = indices.iter().map(|index| rvars_of(exprs, *index)).collect();
        let reading = Reading::new(exprs, indices, dim, |d| !rvars[d].is_empty())?;
        let moved = |d: &usize| reading.along[*d];
        let along: BTreeSet<u32> = (0..indices.len()).filter(moved).flat_map(|d| rvars[d].clone()).collect();
        if reading.across.iter().any(|(d, _)| !rvars[*d].is_disjoint(&along)) {
            return Err(Refusal::Entangled);
        }
        if along.len() == stage.domain.len() {
            return Err(Refusal::OneLine);
        }
        let mut split = Split { reading, access, first: vec![read], second: Vec::new(), along };
        for weight in weights {
            let own = rvars_of(exprs, weight);
            match own.is_disjoint(&split.along) {
                true => split.second.push(weight),
                false if own.is_subset(&split.along) => split.first.push(weight),
                false => return Err(Refusal::NotAProduct),
            }
        }
        Ok(split)
    }

    /// Adds the first pass and lets the update sum its results.
    fn emit(&self, draft: &mut Draft, at: StageRef, stage: Stage, ty: Type) {
        let (numbers, along, across) = self.domains(&stage);
        let first = self.reading.moved(draft, &self.first, &BTreeSet::from([self.access]), &numbers);
        let zero = draft.constant(Value::zero(ty));
        let pass = self.reading.add_pass(draft, at, ty, zero);
        let read = self.reading.read_pass(draft, pass, self.access);
        let mut second = vec![read];
        second.extend(&self.second);
        let made = draft.rebuilt(second.clone(), &mut |exprs, _, mut node| {
            if let NodeKind::RVar(var) = &mut node.kind {
                *var = numbers[*var as usize];
            }
            exprs.intern(node)
        });
        let second: Vec<ExprId> = second.iter().map(|factor| made[factor]).collect();
        let indices: Vec<ExprId> = (0..self.reading.vars.len()).map(|d| draft.var(d)).collect();
        for (func, factors, indices, domain) in
            [(pass, first, indices, along), (at.func, second, stage.indices.clone(), across)]
        {
            let old = draft.call(func, 0, &indices);
            let product =
                factors.into_iter().reduce(|a, b| draft.binary(BinaryOp::Mul, a, b)).unwrap_or(zero);
            let values = vec![draft.binary(BinaryOp::Add, old, product)];
            let stage = Stage { indices, values, domain, ..stage.clone() };
            match func == pass {
                true => draft.funcs[pass].stages.push(stage),
                false => *draft.stage_mut(at) = stage,
            }
        }
    }

    /// The new number of each reduction variable, and the domains of both passes.
    fn domains(&self, stage: &Stage) -> (Vec<u32>, Vec<ReductionVar>, Vec<ReductionVar>) {
        let (mut numbers, mut domains) = (Vec::new(), [Vec::new(), Vec::new()]);
        for (number, var) in stage.domain.iter().enumerate() {
            let domain = &mut domains[usize::from(!self.along.contains(&(number as u32)))];
            numbers.push(domain.len() as u32);
            domain.push(var.clone());
        }
        let [along, across] = domains;
        (numbers, along, across)
    }
}

/// The factors of a product; `None` if there are too many.
fn factors(exprs: &Exprs, product: ExprId) -> Option<Vec<ExprId>> {
    let (mut left, mut factors) = (vec![product], Vec::new());
    while let Some(id) = left.pop() {
        match exprs[id].kind {
            NodeKind::Op(Op::Binary(BinaryOp::Mul)) => left.extend(exprs[id].args.iter().rev()),
            _ => factors.push(id),
        }
        if left.len() + factors.len() > MOST_FACTORS {
            return None;
        }
    }
    Some(factors)
}

fn rvars_of(exprs: &Exprs, id: ExprId) -> BTreeSet<u32> {
    let kinds = exprs.reachable([id]).into_iter().map(|id| exprs[id].kind);
    kinds.filter_map(|kind| if let NodeKind::RVar(var) = kind { Some(var) } else { None }).collect()
}
