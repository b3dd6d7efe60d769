//! `chunk f.k.r n`: a scan in chunks of n values, which run in parallel.
//!
//! The value before the first one has position 0, so the usual scan from index 0 has chunks that begin at
//! the multiples of n. A block of n values of `f` then needs one chunk, and can share a kernel with it.
//!
//! | Func | contents |
//! | --- | --- |
//! | `f.start` | the stages before the scan |
//! | `f.ends` | for each chunk but the first, its contribution to the value before it: the last value of a scan that starts from the identity; for the first, its last value |
//! | `f.carry` | for each chunk but the first, the value before it: a scan of the ends |
//! | `f.scan` | for each chunk, its values, computed from its carry in the original order |
//!
//! `f` itself becomes pure: it reads `f.scan` at the positions of the scan, and `f.start` elsewhere. If the stages
//! before define only position 0, it reads only `f.scan`.
//!
//! Both sides of a `select` are evaluated, so the first chunk reads a term for position 0 too: the first term or, at
//! sizes at which the scan has no terms, the term at the value before, usually the start index of the scan. Bounds
//! inference refuses such a size if that index is out of bounds.

use std::num::NonZeroU32;

use crate::draft::Draft;
use crate::ids::{ExprId, FuncId};
use crate::ir::{FuncDecl, NodeKind, ReductionVar, Stage, StageRef};
use crate::op::BinaryOp;
use crate::rewrite::RewriteError;
use crate::rewrite::cut::first_stages;
use crate::rewrite::index::replace_rvars;
use crate::rewrite::operator::identity;
use crate::rewrite::recurrence::{Recurrence, Scan, linear, power};
use crate::types::{Type, Value};

pub(super) fn chunk(draft: &mut Draft, at: StageRef, by: NonZeroU32) -> Result<(), RewriteError> {
    let scan = Scan::of(draft, at)?;
    let stage = draft.stage(at).clone();
    let (index, one) = (stage.indices[scan.dimension], draft.int(1));
    let ReductionVar { min, extent, .. } = stage.domain[0];
    let r_before = draft.binary(BinaryOp::Sub, min, one);
    let before = replace_rvars(draft, &[index], &[r_before])[0];
    let (start, has_other_points) = start(draft, at, scan.dimension, before)?;
    let chunking = Chunking { func: at.func, by, stage, scan, r_before, extent, before, start };
    let ends = chunking.add_ends(draft);
    let carry = chunking.add_carry(draft, ends);
    let chunks = chunking.add_chunks(draft, carry);
    chunking.read(draft, chunks, has_other_points);
    Ok(())
}

/// Adds the Func of the stages before the scan. Also returns whether points other than the one before the scan may be
/// read from it. If the stages define only that point, the Func is pure and has its value everywhere.
fn start(
    draft: &mut Draft,
    at: StageRef,
    dimension: usize,
    before: ExprId,
) -> Result<(FuncId, bool), RewriteError> {
    let FuncDecl { name, dims, types, stages, .. } = &draft.funcs[at.func];
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
            Ok((draft.funcs.push(FuncDecl { name, dims, types, stages, stored: None }), false))
        }
        _ => Ok((first_stages(draft, at.func, at.stage, "start")?, true)),
    }
}

struct Chunking {
    func: FuncId,
    by: NonZeroU32,
    /// The scan as it was.
    stage: Stage,
    scan: Scan,
    /// The number before the first one of the scan's variable.
    r_before: ExprId,
    /// How many values the scan computes: the last position.
    extent: ExprId,
    /// The index of the value before the scan, which has position 0.
    before: ExprId,
    start: FuncId,
}

impl Chunking {
    /// Adds the Func of the ends. They need no predicate: only the last chunk may be partial, and no chunk reads its
    /// end.
    fn add_ends(&self, draft: &mut Draft) -> FuncId {
        let (i, c) = (draft.rvar(0), draft.var(self.scan.dimension));
        let identities = self.identities(draft);
        let values = self.first(draft, 1, c, &identities);
        let indices = self.point(draft, 1, &[c]);
        let start = Stage::pure(indices.clone(), values, self.stage.place);
        let ends = self.add_func(draft, "ends", &["o"], start);
        let (r, previous) = (self.variable_at(draft, i, c), draft.calls(ends, &indices));
        let values = self.moved(draft, 1, r, &previous);
        let others = draft.int(self.by.get() as i32 - 1);
        let domain = vec![self.variable(draft, "i", others)];
        self.add_update(draft, ends, indices, values, domain);
        ends
    }

    /// Adds the Func of the carries. The carry of the first chunk is unused.
    fn add_carry(&self, draft: &mut Draft, ends: FuncId) -> FuncId {
        let (c, one) = (draft.var(self.scan.dimension), draft.int(1));
        let (indices, values) = (self.point(draft, 1, &[c]), self.identities(draft));
        let start = Stage::pure(indices, values, self.stage.place);
        let carry = self.add_func(draft, "carry", &["o"], start);
        let c = draft.rvar(0);
        let last = draft.binary(BinaryOp::Sub, c, one);
        let (indices, last) = (self.point(draft, 1, &[c]), self.point(draft, 1, &[last]));
        let (carries, ends) = (draft.calls(carry, &last), draft.calls(ends, &last));
        let combined = |(step, (carry, end)): (&Recurrence, (ExprId, ExprId))| match step {
            Recurrence::Fold(op) => draft.binary(*op, carry, end),
            Recurrence::Linear(a) => {
                let a = power(draft, *a, self.by.get());
                let product = draft.binary(BinaryOp::Mul, a, carry);
                draft.binary(BinaryOp::Add, product, end)
            }
        };
        let values = self.scan.recurrences.iter().zip(carries.into_iter().zip(ends)).map(combined).collect();
        let others = self.last_chunk(draft);
        let domain = vec![self.variable(draft, "o", others)];
        self.add_update(draft, carry, indices, values, domain);
        carry
    }

    /// Adds the Func of the values in chunks. Two dimensions replace the dimension of the scan: the position in the
    /// chunk and the chunk, so that the storage order is unchanged. Values beyond the end of the scan are unused.
    fn add_chunks(&self, draft: &mut Draft, carry: FuncId) -> FuncId {
        let dimension = self.scan.dimension;
        let (i, c) = (draft.var(dimension), draft.var(dimension + 1));
        let indices = self.point(draft, 2, &[i, c]);
        let start = Stage::pure(indices, Vec::new(), self.stage.place);
        let chunks = self.add_func(draft, "scan", &["i", "o"], start);
        let (i, zero, one) = (draft.rvar(0), draft.int(0), draft.int(1));

        let at = self.point(draft, 2, &[c]);
        let previous = draft.calls(carry, &at);
        let values = self.first(draft, 2, c, &previous);
        let indices = self.point(draft, 2, &[zero, c]);
        self.add_update(draft, chunks, indices, values, Vec::new());

        let last = draft.binary(BinaryOp::Sub, i, one);
        let at = self.point(draft, 2, &[last, c]);
        let (r, previous) = (self.variable_at(draft, i, c), draft.calls(chunks, &at));
        let values = self.moved(draft, 2, r, &previous);
        let indices = self.point(draft, 2, &[i, c]);
        let most = draft.int(self.by.get() as i32 - 1);
        let others = draft.binary(BinaryOp::Min, self.extent, most);
        let domain = vec![self.variable(draft, "i", others)];
        self.add_update(draft, chunks, indices, values, domain);
        chunks
    }

    /// Lets the original Func read the chunks, and the stages before the scan at points that only those define.
    ///
    /// The position is divided before it is clamped to the scan. Bounds inference then sees that n values from a
    /// multiple of n on are one chunk; after the clamp, it could not see their alignment.
    fn read(&self, draft: &mut Draft, chunks: FuncId, has_other_points: bool) {
        let (x, zero) = (draft.var(self.scan.dimension), draft.int(0));
        let (high, low) = if self.scan.forward { (x, self.before) } else { (self.before, x) };
        let position = draft.binary(BinaryOp::Sub, high, low);
        let by = draft.int(self.by.get() as i32);
        let (i, last) = (draft.binary(BinaryOp::Mod, position, by), self.last_chunk(draft));
        let c = draft.binary(BinaryOp::Div, position, by);
        let [i, c] = [(i, self.extent), (c, last)].map(|(at, last)| {
            let at = draft.binary(BinaryOp::Min, at, last);
            draft.binary(BinaryOp::Max, at, zero)
        });
        let (indices, place) = (self.point(draft, 1, &[x]), self.point(draft, 1, &[i, c]));
        let mut values = draft.calls(chunks, &place);
        if has_other_points {
            let begun = draft.binary(BinaryOp::Le, zero, position);
            let going = draft.binary(BinaryOp::Le, position, self.extent);
            let inside = draft.binary(BinaryOp::And, begun, going);
            let started = draft.calls(self.start, &indices);
            let chosen = values.into_iter().zip(started).map(|(a, b)| draft.select(inside, a, b));
            values = chosen.collect();
        }
        draft.funcs[self.func].stages = vec![Stage::pure(indices, values, self.stage.place)];
    }

    /// The initial values of the steps in a chunk whose value before is not known yet.
    fn identities(&self, draft: &mut Draft) -> Vec<ExprId> {
        let types = draft.funcs[self.func].types.clone();
        let identity = |(step, ty): (&Recurrence, Type)| match step {
            Recurrence::Fold(op) => identity(*op, ty),
            Recurrence::Linear(_) => Value::zero(ty),
        };
        self.scan.recurrences.iter().zip(types).map(identity).map(|value| draft.constant(value)).collect()
    }

    /// The first values of chunk `c`, computed from the values before them; in the first chunk, from the values before
    /// the scan.
    fn first(&self, draft: &mut Draft, width: usize, c: ExprId, previous: &[ExprId]) -> Vec<ExprId> {
        let zero = draft.int(0);
        let is_first = draft.binary(BinaryOp::Eq, c, zero);
        let before = self.point(draft, width, &[self.before]);
        let started = draft.calls(self.start, &before);
        let r = self.variable_at(draft, zero, c);
        let next = self.moved(draft, width, r, previous);
        started.into_iter().zip(next).map(|(a, b)| draft.select(is_first, a, b)).collect()
    }

    /// The number of the last chunk.
    fn last_chunk(&self, draft: &mut Draft) -> ExprId {
        let by = draft.int(self.by.get() as i32);
        draft.binary(BinaryOp::Div, self.extent, by)
    }

    /// Adds a Func like the original one, with new dimensions in place of that of the scan.
    fn add_func(&self, draft: &mut Draft, suffix: &str, new: &[&str], start: Stage) -> FuncId {
        let FuncDecl { name, mut dims, types, .. } = draft.funcs[self.func].clone();
        let (dimension, var) = (self.scan.dimension, &self.stage.domain[0].name);
        dims.splice(dimension..=dimension, new.iter().map(|end| format!("{var}{end}")));
        draft.funcs.push(FuncDecl {
            name: format!("{name}.{suffix}"),
            dims,
            types,
            stages: vec![start],
            stored: None,
        })
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

    /// A variable that counts from 1.
    fn variable(&self, draft: &mut Draft, suffix: &str, extent: ExprId) -> ReductionVar {
        let name = format!("{}{suffix}", self.stage.domain[0].name);
        ReductionVar { name, min: draft.int(1), extent }
    }

    /// The value of the scan's variable at position `i` of chunk `c`, for the constant 0 or an `i` from 1 on.
    /// The position before the scan gets the first value, those beyond its end the last one.
    fn variable_at(&self, draft: &mut Draft, i: ExprId, c: ExprId) -> ExprId {
        let by = draft.int(self.by.get() as i32);
        let start = draft.binary(BinaryOp::Mul, c, by);
        let mut position = draft.binary(BinaryOp::Add, i, start);
        if draft.exprs.constant(i).is_some() {
            let one = draft.int(1);
            position = draft.binary(BinaryOp::Max, position, one);
        }
        // No clamp is needed if all chunks are full, and none helps if there is nothing to scan.
        let known = draft.exprs.constant(self.extent).and_then(Value::as_int);
        if known.is_none_or(|extent| extent > 0 && (extent + 1) % i64::from(self.by.get()) != 0) {
            position = draft.binary(BinaryOp::Min, position, self.extent);
        }
        draft.binary(BinaryOp::Add, self.r_before, position)
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

    /// The values that the scan computes for `r` from the `previous` ones, in a Func in which `width`
    /// dimensions stand for the one of the scan.
    fn moved(&self, draft: &mut Draft, width: usize, r: ExprId, previous: &[ExprId]) -> Vec<ExprId> {
        let made = draft.rebuilt(self.stage.values.clone(), &mut |exprs, old, mut node| {
            match node.kind {
                NodeKind::RVar(_) => return r,
                NodeKind::Var(d) if d as usize > self.scan.dimension => {
                    node.kind = NodeKind::Var(d + width as u32 - 1);
                }
                NodeKind::Call(_, value) if self.scan.previous.contains(&old) => {
                    return previous[value as usize];
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
