//! The smallest and largest value of an integer expression, as formulas of the sizes.

use ahash::AHashMap;

use crate::affine::Linear;
use crate::bounds::{Analysis, Environment};
use crate::dynamic::formula::{Formula, Formulas};
use crate::dynamic::request::FormulaRange;
use crate::ids::{ExprId, IdVec, InputId};
use crate::ir::{Exprs, NodeKind};
use crate::op::{BinaryOp, Op, UnaryOp};

/// Up to this magnitude, `f32` division rounds quotients of integers to the right integer, even with an error of a few
/// units in the last place.
const EXACT: i64 = 1 << 20;

/// The ranges of a stage's variables and inputs.
pub(super) struct Ranges<'a> {
    pub vars: &'a [FormulaRange],
    pub rvars: &'a [FormulaRange],
    pub inputs: &'a IdVec<InputId, Vec<FormulaRange>>,
}

/// Finds the ends of some expressions. `analysis` must cover all sizes; it decides where formulas cannot.
pub(super) struct Ends<'a, E> {
    pub exprs: &'a Exprs,
    pub analysis: &'a Analysis<'a, E>,
    pub formulas: &'a mut Formulas,
    pub ranges: Ranges<'a>,
    known: AHashMap<ExprId, FormulaRange>,
}

impl<'a, E: Environment> Ends<'a, E> {
    pub fn new(
        exprs: &'a Exprs,
        analysis: &'a Analysis<'a, E>,
        formulas: &'a mut Formulas,
        ranges: Ranges<'a>,
    ) -> Ends<'a, E> {
        Ends { exprs, analysis, formulas, ranges, known: AHashMap::new() }
    }

    /// The ends of an integer expression; `None` on overflow.
    pub fn of(&mut self, root: ExprId) -> Option<FormulaRange> {
        for id in self.exprs.reachable([root]) {
            if !self.known.contains_key(&id) && !self.exprs[id].ty.is_float() {
                let ends = self.node(id)?;
                self.known.insert(id, ends);
            }
        }
        self.known.get(&root).cloned()
    }

    fn node(&mut self, id: ExprId) -> Option<FormulaRange> {
        let linear = self.analysis.linear(id).clone();
        match linear.terms[..] == [(id, 1)] {
            true => self.atom(id),
            false => self.sum(&linear),
        }
    }

    fn sum(&mut self, linear: &Linear) -> Option<FormulaRange> {
        let start = Formula::constant(linear.constant);
        let mut sum = FormulaRange { first: start.clone(), last: start };
        for (atom, factor) in &linear.terms {
            let FormulaRange { first, last } = self.known.get(atom)?;
            let (low, high) = if *factor < 0 { (last, first) } else { (first, last) };
            let (low, high) = (sum.first.add_scaled(low, *factor)?, sum.last.add_scaled(high, *factor)?);
            sum = FormulaRange { first: low, last: high };
        }
        Some(sum)
    }

    fn atom(&mut self, id: ExprId) -> Option<FormulaRange> {
        let node = &self.exprs[id];
        let NodeKind::Op(op) = node.kind else { return self.leaf(id) };
        let constant = |id: ExprId| self.analysis.int(id).singleton();
        match (op, node.args.as_slice()) {
            (Op::Binary(BinaryOp::Div), &[a, b]) if constant(b).is_some_and(|divisor| divisor > 0) => {
                self.quotient(a, constant(b)?)
            }
            (Op::Binary(BinaryOp::Shr), &[a, b]) if constant(b).is_some() => {
                // The shift amount counts modulo the width.
                self.quotient(a, 1 << (constant(b)? & (8 * node.ty.bytes() as i64 - 1)).min(62))
            }
            (Op::Binary(BinaryOp::Mod), &[a, b]) if constant(b).is_none() => self.remainder(id, a, b),
            (Op::Binary(op @ (BinaryOp::Min | BinaryOp::Max)), &[a, b]) => self.limited(op, a, b),
            (Op::Unary(UnaryOp::Abs), &[a]) => self.magnitude(id, a),
            (Op::Select, &[condition, a, b]) => match constant(condition) {
                Some(chosen) => self.known.get(if chosen == 0 { &b } else { &a }).cloned(),
                None => {
                    let (a, b) = (self.known.get(&a)?.clone(), self.known.get(&b)?.clone());
                    union(self.formulas, &a, &b)
                }
            },
            (Op::SaturatingCast(ty), &[a]) if !self.exprs[a].ty.is_float() => {
                let (low, high) = ty.int_range()?;
                let (low, high) = (Formula::constant(low), Formula::constant(high));
                let FormulaRange { first, last } = self.known.get(&a)?.clone();
                let mut clamp = |value: &Formula| {
                    let above = self.formulas.max(value, &low)?;
                    self.formulas.min(&above, &high)
                };
                Some(FormulaRange { first: clamp(&first)?, last: clamp(&last)? })
            }
            (Op::Cast(_), &[a]) if self.exprs[a].ty.is_float() => {
                Some(self.whole(a).unwrap_or_else(|| self.fallback(id)))
            }
            _ => Some(self.fallback(id)),
        }
    }

    /// The ends of a floating-point expression whose values are integers small enough for exact arithmetic: as in
    /// `floor(x.f32() / factor.f32())`, which maps a pixel to a picture of another size.
    fn whole(&mut self, id: ExprId) -> Option<FormulaRange> {
        let node = &self.exprs[id];
        let NodeKind::Op(op) = node.kind else { return None };
        let ends = match (op, node.args.as_slice()) {
            (Op::Cast(_), &[a]) if !self.exprs[a].ty.is_float() => self.known.get(&a)?.clone(),
            (Op::Unary(rounding @ (UnaryOp::Floor | UnaryOp::Ceil)), &[quotient]) => {
                let (NodeKind::Op(Op::Binary(BinaryOp::Div)), &[a, b]) =
                    (self.exprs[quotient].kind, self.exprs[quotient].args.as_slice())
                else {
                    return None;
                };
                let (over, under) = (self.whole(a)?, self.whole(b)?);
                let mut ratio = |over: &Formula, under: &Formula| {
                    let up = match rounding {
                        UnaryOp::Ceil => under.add_scaled(&Formula::constant(1), -1)?,
                        _ => Formula::default(),
                    };
                    let quotient = self.formulas.ratio(&over.add_scaled(&up, 1)?, under)?;
                    // The range of a quotient does not show that it is at least 1.
                    let positive = rounding == UnaryOp::Ceil && self.formulas.range(over).min >= 1;
                    self.formulas.max(&quotient, &Formula::constant(positive.into()))
                };
                let first = ratio(&over.first, &under.last)?;
                FormulaRange { first, last: ratio(&over.last, &under.first)? }
            }
            (Op::Binary(op @ (BinaryOp::Min | BinaryOp::Max)), &[a, b]) => {
                let (a, b) = (self.whole(a)?, self.whole(b)?);
                let mut of = |a: &Formula, b: &Formula| match op {
                    BinaryOp::Min => self.formulas.min(a, b),
                    _ => self.formulas.max(a, b),
                };
                let first = of(&a.first, &b.first)?;
                FormulaRange { first, last: of(&a.last, &b.last)? }
            }
            _ => return None,
        };
        let small =
            self.formulas.range(&ends.first).min >= -EXACT && self.formulas.range(&ends.last).max <= EXACT;
        small.then_some(ends)
    }

    fn leaf(&self, id: ExprId) -> Option<FormulaRange> {
        Some(match self.exprs[id].kind {
            NodeKind::Var(d) => self.ranges.vars[d as usize].clone(),
            NodeKind::RVar(r) => self.ranges.rvars[r as usize].clone(),
            NodeKind::InputMin(input, d) => {
                let first = &self.ranges.inputs[input][d as usize].first;
                FormulaRange { first: first.clone(), last: first.clone() }
            }
            NodeKind::InputExtent(input, d) => {
                let extent = extent(&self.ranges.inputs[input][d as usize])?;
                FormulaRange { first: extent.clone(), last: extent }
            }
            _ => self.fallback(id),
        })
    }

    /// Ends that hold at all sizes.
    fn fallback(&self, id: ExprId) -> FormulaRange {
        let span = self.analysis.int(id);
        FormulaRange { first: Formula::constant(span.min), last: Formula::constant(span.max) }
    }

    fn quotient(&mut self, a: ExprId, divisor: i64) -> Option<FormulaRange> {
        let FormulaRange { first, last } = self.known.get(&a)?.clone();
        let (first, last) =
            (self.formulas.quotient(&first, divisor)?, self.formulas.quotient(&last, divisor)?);
        Some(FormulaRange { first, last })
    }

    /// `a mod b`, where `b` depends on the sizes.
    fn remainder(&mut self, id: ExprId, a: ExprId, b: ExprId) -> Option<FormulaRange> {
        let (a, b) = (self.known.get(&a)?.clone(), self.known.get(&b)?.clone());
        let (zero, one) = (Formula::default(), Formula::constant(1));
        if !self.formulas.surely_le(&zero, &b.first) {
            return Some(self.fallback(id));
        }
        let smallest = b.first.add_scaled(&one, -1)?;
        let inside = self.formulas.surely_le(&zero, &a.first) && self.formulas.surely_le(&a.last, &smallest);
        if inside {
            return Some(a);
        }
        let last = self.formulas.max(&b.last.add_scaled(&one, -1)?, &zero)?;
        Some(FormulaRange { first: zero, last })
    }

    /// The smaller or larger of two values. The smaller one is at most half their sum, the larger one at least.
    fn limited(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> Option<FormulaRange> {
        let (left, right) = (self.known.get(&a)?.clone(), self.known.get(&b)?.clone());
        let sum = self.analysis.linear(a).add_scaled(self.analysis.linear(b), 1);
        // If the variables do not cancel, or there are none, the sum adds no information.
        let exact = |range: &FormulaRange| range.first == range.last;
        let helps = |sum: &FormulaRange| exact(sum) && !(exact(&left) && exact(&right));
        let sum = sum.and_then(|sum| self.sum(&sum)).filter(helps);
        let formulas = &mut *self.formulas;
        if op == BinaryOp::Min {
            let mut last = formulas.min(&left.last, &right.last)?;
            if let Some(half) = sum.and_then(|sum| formulas.quotient(&sum.last, 2)) {
                last = formulas.min(&last, &half)?;
            }
            return Some(FormulaRange { first: formulas.min(&left.first, &right.first)?, last });
        }
        let mut first = formulas.max(&left.first, &right.first)?;
        if let Some(half) = sum.and_then(|sum| {
            let up = sum.first.add_scaled(&Formula::constant(1), 1)?;
            formulas.quotient(&up, 2)
        }) {
            first = formulas.max(&first, &half)?;
        }
        Some(FormulaRange { first, last: formulas.max(&left.last, &right.last)? })
    }

    fn magnitude(&mut self, id: ExprId, a: ExprId) -> Option<FormulaRange> {
        let FormulaRange { first, last } = self.known.get(&a)?.clone();
        let zero = Formula::default();
        if self.formulas.surely_le(&zero, &first) {
            return Some(FormulaRange { first, last });
        }
        // The smallest value of the type may have no magnitude in it.
        if self.analysis.int(a).min <= i64::from(i32::MIN) {
            return Some(self.fallback(id));
        }
        let largest = self.formulas.max(&last, &first.scale(-1)?)?;
        Some(FormulaRange { first: zero, last: largest })
    }
}

/// The number of integers of a range; `None` on overflow.
pub(super) fn extent(range: &FormulaRange) -> Option<Formula> {
    range.last.add_scaled(&range.first, -1)?.add_scaled(&Formula::constant(1), 1)
}

/// The smallest range that covers both; `None` on overflow.
pub(super) fn union(formulas: &mut Formulas, a: &FormulaRange, b: &FormulaRange) -> Option<FormulaRange> {
    Some(FormulaRange { first: formulas.min(&a.first, &b.first)?, last: formulas.max(&a.last, &b.last)? })
}
