//! Taps: terms of a sum that are the same expression at different points.

use std::collections::BTreeMap;

use crate::draft::Draft;
use crate::ids::ExprId;
use crate::ir::{Exprs, NodeKind, StageRef};
use crate::op::{BinaryOp, Op};
use crate::rewrite::separate::outer::{Factors, factors};
use crate::rewrite::separate::sums::{Sum, binary, weighted};
use crate::rewrite::separate::{Reading, Refusal, access_of, cast};
use crate::types::{Type, Value};

/// Larger boxes must have all their taps.
const MOST_WEIGHTS: usize = 1 << 16;

/// A term that reads one point.
pub(super) struct Tap {
    pub term: ExprId,
    weight: Value,
    /// The read in it.
    access: ExprId,
    /// The constants in the indices of the read.
    offsets: Vec<i64>,
}

/// Taps that differ only in the constants of their indices and in their weights.
pub(super) struct Group {
    pub taps: Vec<Tap>,
}

/// The taps among the terms of a sum, in groups.
pub(super) fn groups(draft: &mut Draft, sum: &Sum) -> Vec<Group> {
    let found = sum.terms.iter().filter_map(|(term, weight)| {
        let access = access_of(&draft.exprs, *term)?;
        Some((*term, *weight, access))
    });
    let found: Vec<(ExprId, Value, ExprId)> = found.collect();
    let indices = found.iter().flat_map(|(_, _, access)| draft.exprs[*access].args.to_vec());
    let indices: Vec<ExprId> = indices.collect();
    let places = places(draft, &indices);
    let zero = draft.int(0);
    let bases = found.iter().map(|(_, _, access)| {
        let indices = &draft.exprs[*access].args;
        (*access, indices.iter().map(|index| places[index].base.unwrap_or(zero)).collect::<Vec<_>>())
    });
    let bases: BTreeMap<ExprId, Vec<ExprId>> = bases.collect();
    let shapes = draft.rebuilt(found.iter().map(|(term, ..)| *term).collect(), &mut |exprs, id, mut node| {
        if let Some(bases) = bases.get(&id) {
            node.args = bases.iter().copied().collect();
        }
        exprs.intern(node)
    });
    let mut groups: BTreeMap<ExprId, Group> = BTreeMap::new();
    for (term, weight, access) in found {
        let offsets = draft.exprs[access].args.iter().map(|index| places[index].offset).collect();
        let group = groups.entry(shapes[&term]).or_insert(Group { taps: Vec::new() });
        group.taps.push(Tap { term, weight, access, offsets });
    }
    groups.into_values().collect()
}

/// An index as a sum of a moving part and a constant.
#[derive(Clone, Copy)]
struct BaseOffset {
    /// `None` for a constant.
    base: Option<ExprId>,
    offset: i64,
}

/// The places of some indices and of their subexpressions, operands first.
fn places(draft: &mut Draft, indices: &[ExprId]) -> BTreeMap<ExprId, BaseOffset> {
    let mut places: BTreeMap<ExprId, BaseOffset> = BTreeMap::new();
    for id in draft.exprs.reachable(indices.iter().copied()) {
        let place = place(draft, &places, id).unwrap_or(BaseOffset { base: Some(id), offset: 0 });
        places.insert(id, place);
    }
    places
}

/// The place of a constant, sum, difference or multiple; `None` for everything else, and where constants overflow.
fn place(draft: &mut Draft, places: &BTreeMap<ExprId, BaseOffset>, id: ExprId) -> Option<BaseOffset> {
    let node = draft.exprs[id].clone();
    if let Some(offset) = draft.exprs.constant(id).and_then(Value::get::<i32>) {
        return Some(BaseOffset { base: None, offset: i64::from(offset) });
    }
    let (NodeKind::Op(Op::Binary(op)), Type::I32, [a, b]) = (node.kind, node.ty, &node.args[..]) else {
        return None;
    };
    let (a, b) = (places[a], places[b]);
    let (base, offset) = match (op, a.base, b.base) {
        (BinaryOp::Add, None, base) | (BinaryOp::Add, base, None) => (base, a.offset.checked_add(b.offset)?),
        (BinaryOp::Sub, base, None) => (base, a.offset.checked_sub(b.offset)?),
        (BinaryOp::Add | BinaryOp::Sub, Some(left), Some(right)) => {
            let offset = match op {
                BinaryOp::Add => a.offset.checked_add(b.offset)?,
                _ => a.offset.checked_sub(b.offset)?,
            };
            (Some(draft.binary(op, left, right)), offset)
        }
        (BinaryOp::Mul, Some(base), None) | (BinaryOp::Mul, None, Some(base)) => {
            let constant = if a.base.is_none() { a } else { b };
            let factor = draft.int(i32::try_from(constant.offset).ok()?);
            let moved = if a.base.is_none() { b } else { a };
            (Some(draft.binary(op, base, factor)), moved.offset.checked_mul(constant.offset)?)
        }
        _ => return None,
    };
    Some(BaseOffset { base, offset })
}

/// A group of taps as two passes.
pub(super) struct Split<'g> {
    reading: Reading,
    /// One tap for each position along the dimension, and one for each of the others.
    rows: Vec<&'g Tap>,
    columns: Vec<&'g Tap>,
    factors: Factors,
}

impl Group {
    /// The taps as two passes, the first along a dimension.
    pub fn split(&self, exprs: &Exprs, dim: usize) -> Result<Split<'_>, Refusal> {
        let first = self.taps.first().ok_or(Refusal::NoTaps)?;
        let differs = |d: usize| self.taps.iter().any(|tap| tap.offsets[d] != first.offsets[d]);
        let reading = Reading::new(exprs, &exprs[first.access].args, dim, differs)?;
        let along = |tap: &Tap, wanted: bool| -> Vec<i64> {
            let offsets = tap.offsets.iter().zip(&reading.along);
            offsets.filter(|(_, along)| **along == wanted).map(|(offset, _)| *offset).collect()
        };
        let taps = || self.taps.iter();
        let rows: BTreeMap<Vec<i64>, &Tap> = taps().map(|tap| (along(tap, true), tap)).collect();
        let columns: BTreeMap<Vec<i64>, &Tap> = taps().map(|tap| (along(tap, false), tap)).collect();
        if rows.len() * columns.len() > self.taps.len().max(MOST_WEIGHTS) {
            return Err(Refusal::NotAProduct);
        }
        // Indices may be written in several ways, so two taps may read one point.
        let zero = Value::zero(first.weight.ty());
        let mut weights: BTreeMap<(Vec<i64>, Vec<i64>), Value> = BTreeMap::new();
        for tap in taps() {
            let weight = weights.entry((along(tap, true), along(tap, false))).or_insert(zero);
            *weight = binary(BinaryOp::Add, *weight, tap.weight);
        }
        let row = |row: &Vec<i64>| -> Vec<Value> {
            let column = |column: &Vec<i64>| weights.get(&(row.clone(), column.clone())).copied();
            columns.keys().map(|at| column(at).unwrap_or(zero)).collect()
        };
        let matrix: Vec<Vec<Value>> = rows.keys().map(row).collect();
        let factors = factors(&matrix).ok_or(Refusal::NotAProduct)?;
        let (rows, columns) = (rows.into_values().collect(), columns.into_values().collect());
        Ok(Split { reading, rows, columns, factors })
    }
}

impl Split<'_> {
    /// Adds the first pass, and returns the terms of the second.
    pub fn emit(&self, draft: &mut Draft, at: StageRef, ty: Type) -> Vec<(ExprId, Value)> {
        let terms: Vec<ExprId> = self.rows.iter().map(|tap| cast(draft, tap.term, ty)).collect();
        let accesses = self.rows.iter().map(|tap| tap.access).collect();
        let terms = self.reading.moved(draft, &terms, &accesses, &[]);
        let terms: Vec<(ExprId, Value)> = terms.into_iter().zip(self.factors.rows.iter().copied()).collect();
        let value = weighted(draft, &terms, Value::zero(ty));
        let pass = self.reading.add_pass(draft, at, ty, value);
        let columns = self.columns.iter().zip(&self.factors.columns);
        columns.map(|(tap, weight)| (self.reading.read_pass(draft, pass, tap.access), *weight)).collect()
    }
}
