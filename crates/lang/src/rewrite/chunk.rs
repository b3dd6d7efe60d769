//! `chunk f.k.r n`: a scan in chunks of n values, which run in parallel.
//!
//! | Func | what it holds |
//! | --- | --- |
//! | `f.start` | the stages before the scan |
//! | `f.ends` | for each chunk, what it adds to the value before it: the last value of a scan that starts from the identity |
//! | `f.carry` | for each chunk, the value before it: a scan of the ends |
//! | `f.scan` | for each chunk, its values, computed from its carry in the original order |
//!
//! `f` itself becomes pure: it reads `f.scan` where the scan writes, elsewhere `f.start`.
//!
//! Both sides of that choice are evaluated, so `f.scan` has a first value even at sizes at which the scan
//! has none. It then reads its term at the value before the first, usually the index that the scan starts
//! from; bounds inference refuses such a size if that is out of bounds.

use std::num::NonZeroU32;

use smallvec::SmallVec;

use crate::draft::Draft;
use crate::ids::{ExprId, FuncId};
use crate::ir::{FuncDecl, Node, NodeKind, ReductionVar, Stage, StageRef};
use crate::op::BinaryOp;
use crate::rewrite::RewriteError;
use crate::rewrite::cut::first_stages;
use crate::rewrite::index::{Position, replace_rvars};
use crate::rewrite::operator::identity;
use crate::rewrite::recurrence::{Scan, Step, linear, power};
use crate::types::Value;

pub(super) fn chunk(draft: &mut Draft, at: StageRef, by: NonZeroU32) -> Result<(), RewriteError> {
    let scan = Scan::of(draft, at)?;
    let stage = draft.stage(at).clone();
    let (index, one) = (stage.indices[scan.dimension], draft.int(1));
    let ReductionVar { min, extent, .. } = stage.domain[0];
    let before = draft.binary(BinaryOp::Sub, min, one);
    let [first, before] = [min, before].map(|r| replace_rvars(draft, &[index], &[r])[0]);
    let start = start(draft, at, scan.dimension, before)?;
    let chunking = Chunking { func: at.func, by, stage, scan, min, extent, start };
    let ends = chunking.add_ends(draft);
    let carry = chunking.add_carry(draft, ends, before);
    let chunks = chunking.add_chunks(draft, carry);
    chunking.read(draft, chunks, first);
    Ok(())
}

/// Adds the Func of the stages before the scan. If they define only the value before the first one, the
/// Func has that value everywhere: it is pure, and nothing needs the other points.
fn start(draft: &mut Draft, at: StageRef, dimension: usize, before: ExprId) -> Result<FuncId, RewriteError> {
    let FuncDecl { name, dims, types, stages } = &draft.funcs[at.func];
    let (exprs, place) = (&draft.exprs, stages[0].place);
    let is_value_before = |stage: &Stage| {
        (0..dims.len()).all(|d| match d == dimension {
            true => linear(exprs, stage.indices[d]) == linear(exprs, before),
            false => stage.is_pure(exprs, d),
        })
    };
    match &stages[..at.stage] {
        [undefined, only]
            if undefined.values.is_empty()
                && only.domain.is_empty()
                && only.predicate.is_none()
                && is_value_before(only)
                && !exprs.reads(at.func, only.values.iter().copied()) =>
        {
            let (name, dims, types) = (format!("{name}.start"), dims.clone(), types.clone());
            let values = only.values.clone();
            let stages = vec![draft.pure_stage(dims.len(), values, place)];
            Ok(draft.funcs.push(FuncDecl { name, dims, types, stages }))
        }
        _ => first_stages(draft, at.func, at.stage, "start"),
    }
}

struct Chunking {
    func: FuncId,
    by: NonZeroU32,
    /// The scan as it was.
    stage: Stage,
    scan: Scan,
    min: ExprId,
    extent: ExprId,
    start: FuncId,
}

impl Chunking {
    /// Adds the Func of the ends. They need no predicate: only the last chunk may be cut, and nothing
    /// follows it that would read its end.
    fn add_ends(&self, draft: &mut Draft) -> FuncId {
        let (i, c) = (draft.rvar(0), draft.var(self.scan.dimension));
        let types = draft.funcs[self.func].types.clone();
        let identities = self.scan.steps.iter().zip(types).map(|(step, ty)| match step {
            Step::Fold(op) => identity(*op, ty),
            Step::Linear(_) => Value::zero(ty),
        });
        let values = identities.map(|value| draft.constant(value)).collect();
        let indices = self.point(draft, 1, &[c]);
        let start = Stage::pure(indices.clone(), values, self.stage.place);
        let ends = self.add_func(draft, "ends", &["o"], start);
        let r = self.variable_at(draft, i, c);
        let values = self.moved(draft, 1, r, ends, &indices);
        let count = draft.int(self.by.get() as i32);
        let domain = vec![self.variable(draft, "i", 0, count)];
        self.add_update(draft, ends, indices, values, domain);
        ends
    }

    /// Adds the Func of the carries.
    fn add_carry(&self, draft: &mut Draft, ends: FuncId, before: ExprId) -> FuncId {
        let (c, one) = (draft.var(self.scan.dimension), draft.int(1));
        let indices = self.point(draft, 1, &[c]);
        let first = self.point(draft, 1, &[before]);
        let values = draft.calls(self.start, &first);
        let start = Stage::pure(indices, values, self.stage.place);
        let carry = self.add_func(draft, "carry", &["o"], start);
        let c = draft.rvar(0);
        let last = draft.binary(BinaryOp::Sub, c, one);
        let (indices, last) = (self.point(draft, 1, &[c]), self.point(draft, 1, &[last]));
        let (carries, ends) = (draft.calls(carry, &last), draft.calls(ends, &last));
        let combined = |(step, (carry, end)): (&Step, (ExprId, ExprId))| match step {
            Step::Fold(op) => draft.binary(*op, carry, end),
            Step::Linear(a) => {
                let a = power(draft, *a, self.by.get());
                let product = draft.binary(BinaryOp::Mul, a, carry);
                draft.binary(BinaryOp::Add, product, end)
            }
        };
        let values = self.scan.steps.iter().zip(carries.into_iter().zip(ends)).map(combined).collect();
        let chunks = draft.groups(self.extent, self.by);
        let others = draft.binary(BinaryOp::Sub, chunks, one);
        let domain = vec![self.variable(draft, "o", 1, others)];
        self.add_update(draft, carry, indices, values, domain);
        carry
    }

    /// Adds the Func of the values in chunks. Two dimensions stand for the one of the scan: the position in
    /// the chunk and the chunk, so that values are stored in the same order as before. Values beyond the
    /// end of the scan are never read.
    fn add_chunks(&self, draft: &mut Draft, carry: FuncId) -> FuncId {
        let dimension = self.scan.dimension;
        let (i, c) = (draft.var(dimension), draft.var(dimension + 1));
        let indices = self.point(draft, 2, &[i, c]);
        let start = Stage::pure(indices, Vec::new(), self.stage.place);
        let chunks = self.add_func(draft, "scan", &["i", "o"], start);
        let (i, zero, one) = (draft.rvar(0), draft.int(0), draft.int(1));

        let (r, before) = (self.variable_at(draft, zero, c), self.point(draft, 2, &[c]));
        let values = self.moved(draft, 2, r, carry, &before);
        let indices = self.point(draft, 2, &[zero, c]);
        self.add_update(draft, chunks, indices, values, Vec::new());

        let r = self.variable_at(draft, i, c);
        let last = draft.binary(BinaryOp::Sub, i, one);
        let before = self.point(draft, 2, &[last, c]);
        let values = self.moved(draft, 2, r, chunks, &before);
        let indices = self.point(draft, 2, &[i, c]);
        let by = draft.int(self.by.get() as i32);
        let count = draft.binary(BinaryOp::Min, self.extent, by);
        let others = draft.binary(BinaryOp::Sub, count, one);
        let domain = vec![self.variable(draft, "i", 1, others)];
        self.add_update(draft, chunks, indices, values, domain);
        chunks
    }

    /// Lets the original Func read the chunks where the scan writes.
    fn read(&self, draft: &mut Draft, chunks: FuncId, first: ExprId) {
        let (x, zero, one) = (draft.var(self.scan.dimension), draft.int(0), draft.int(1));
        let (high, low) = if self.scan.forward { (x, first) } else { (first, x) };
        let position = draft.binary(BinaryOp::Sub, high, low);
        let begun = draft.binary(BinaryOp::Le, zero, position);
        let going = draft.binary(BinaryOp::Lt, position, self.extent);
        let inside = draft.binary(BinaryOp::And, begun, going);
        let last = draft.binary(BinaryOp::Sub, self.extent, one);
        let position = draft.binary(BinaryOp::Min, position, last);
        let position = draft.binary(BinaryOp::Max, position, zero);
        let by = draft.int(self.by.get() as i32);
        let i = draft.binary(BinaryOp::Mod, position, by);
        let c = draft.binary(BinaryOp::Div, position, by);
        let (indices, place) = (self.point(draft, 1, &[x]), self.point(draft, 1, &[i, c]));
        let (scanned, started) = (draft.calls(chunks, &place), draft.calls(self.start, &indices));
        let chosen = scanned.into_iter().zip(started).map(|(a, b)| draft.select(inside, a, b)).collect();
        draft.funcs[self.func].stages = vec![Stage::pure(indices, chosen, self.stage.place)];
    }

    /// Adds a Func like the original one, in which new dimensions stand for the one of the scan.
    fn add_func(&self, draft: &mut Draft, suffix: &str, new: &[&str], start: Stage) -> FuncId {
        let FuncDecl { name, mut dims, types, .. } = draft.funcs[self.func].clone();
        let (dimension, var) = (self.scan.dimension, &self.stage.domain[0].name);
        dims.splice(dimension..=dimension, new.iter().map(|end| format!("{var}{end}")));
        draft.funcs.push(FuncDecl { name: format!("{name}.{suffix}"), dims, types, stages: vec![start] })
    }

    fn add_update(
        &self,
        draft: &mut Draft,
        func: FuncId,
        indices: Vec<ExprId>,
        values: Vec<ExprId>,
        domain: Vec<ReductionVar>,
    ) {
        draft.funcs[func].stages.push(Stage { indices, values, domain, ..self.stage.clone() });
    }

    fn variable(&self, draft: &mut Draft, suffix: &str, min: i32, extent: ExprId) -> ReductionVar {
        let name = format!("{}{suffix}", self.stage.domain[0].name);
        ReductionVar { name, min: draft.int(min), extent }
    }

    /// The value of the scan's variable at position `i` of chunk `c`, or the last one.
    fn variable_at(&self, draft: &mut Draft, i: ExprId, c: ExprId) -> ExprId {
        let position = Position::new(draft, i, c, self.by, self.extent);
        draft.binary(BinaryOp::Add, self.min, position.index)
    }

    /// Indices that differ from the variables of a Func only where the scan runs. In that Func, `width`
    /// dimensions stand for the one of the scan.
    fn point(&self, draft: &mut Draft, width: usize, at: &[ExprId]) -> Vec<ExprId> {
        let (dimension, count) = (self.scan.dimension, self.stage.indices.len());
        let mut indices: Vec<ExprId> = (0..dimension).map(|d| draft.var(d)).collect();
        indices.extend(at);
        indices.extend((dimension + 1..count).map(|d| draft.var(d + width - 1)));
        indices
    }

    /// The values that the scan computes for `r`, from those of `before` at `at`, in a Func in which
    /// `width` dimensions stand for the one of the scan.
    fn moved(
        &self,
        draft: &mut Draft,
        width: usize,
        r: ExprId,
        before: FuncId,
        at: &[ExprId],
    ) -> Vec<ExprId> {
        let made = draft.rebuilt(self.stage.values.clone(), &mut |exprs, old, mut node| {
            match node.kind {
                NodeKind::RVar(_) => return r,
                NodeKind::Var(d) if d as usize > self.scan.dimension => {
                    node.kind = NodeKind::Var(d + width as u32 - 1);
                }
                NodeKind::Call(_, value) if self.scan.previous.contains(&old) => {
                    let kind = NodeKind::Call(before, value);
                    node = Node { kind, args: SmallVec::from_slice(at), ..node };
                }
                NodeKind::Call(func, value) if func == self.func => {
                    node.kind = NodeKind::Call(self.start, value);
                }
                _ => {}
            }
            exprs.intern(node)
        });
        self.stage.values.iter().map(|value| made[value]).collect()
    }
}
