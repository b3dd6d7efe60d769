//! Versions of a block that hold under conditions on sizes and on the block's position.

use ahash::AHashMap;
use warploom_lang::affine::{Interval, Linear};
use warploom_lang::op::{BinaryOp, Op};
use warploom_lang::{Type, Value};

use super::Builder;
use crate::ir::{NodeId, NodeKind};

/// Conditions on block indices and sizes, under which a version of a block needs fewer guards and clamps.
#[derive(Clone, Default)]
pub struct Assumptions {
    /// The range of each uniform leaf in typical blocks.
    pub typical: AHashMap<NodeId, Interval>,
    /// The leaves of scalars, by position.
    pub scalars: AHashMap<u32, NodeId>,
    /// Sums of such leaves that must be at most 0.
    pub made: Vec<Linear<NodeId>>,
}

impl Assumptions {
    /// Adds a condition. Of two conditions that differ by a constant, the stronger one is kept.
    fn assume(&mut self, condition: Linear<NodeId>) {
        match self.made.iter_mut().find(|known| known.terms == condition.terms) {
            Some(known) => known.constant = known.constant.max(condition.constant),
            None => self.made.push(condition),
        }
    }
}

impl Builder {
    /// Records that a scalar holds the trip count of a loop.
    pub fn limit(&mut self, var: NodeId, scalar: Option<u32>) {
        if let Some(position) = scalar {
            self.limited.insert(var, position);
        }
    }

    /// Whether `a <= b`, as a guard: where [assumptions](Assumptions) are made, it is assumed to hold.
    pub fn guard(&mut self, a: NodeId, b: NodeId) -> NodeId {
        let known = self.binary(BinaryOp::Le, a, b);
        match self.known(known).is_none() && self.assume_le(a, b) {
            true => self.constant(Value::from(true)),
            false => known,
        }
    }

    /// A condition as a guard: the comparisons of indices in it are assumed to hold, as in [`Builder::guard`].
    pub fn guarded(&mut self, condition: NodeId) -> NodeId {
        let node = &self.exprs[condition];
        let (NodeKind::Op(Op::Binary(op)), [a, b]) = (node.kind, &node.args[..]) else { return condition };
        let (a, b) = (*a, *b);
        match op {
            BinaryOp::And => {
                let (a, b) = (self.guarded(a), self.guarded(b));
                self.binary(BinaryOp::And, a, b)
            }
            // Comparisons of indices have this form; `a + 1 <= b` for others would overflow.
            BinaryOp::Le if self.ty(a) == Type::I32 => self.guard(a, b),
            _ => condition,
        }
    }

    /// Assumes `a <= b` in all threads of the block, if it holds in typical blocks.
    pub(super) fn assume_le(&mut self, a: NodeId, b: NodeId) -> bool {
        let Some(condition) = self.assumable(a, b) else { return false };
        if let Some(assumptions) = &mut self.assumptions
            && !condition.is_constant()
        {
            assumptions.assume(condition);
        }
        true
    }

    /// Assumes that a scalar is 1, if it is 1 at typical sizes.
    pub fn assume_once(&mut self, position: u32) -> bool {
        let Some(assumptions) = &self.assumptions else { return false };
        let Some(&scalar) = assumptions.scalars.get(&position) else { return false };
        if assumptions.typical.get(&scalar) != Some(&Interval::new(1, 1)) {
            return false;
        }
        let one = self.int(1);
        self.assume_le(one, scalar) && self.assume_le(scalar, one)
    }

    /// A sum of uniform leaves that is at most 0 only where `a <= b`; `None` if it is positive in a typical block.
    fn assumable(&self, a: NodeId, b: NodeId) -> Option<Linear<NodeId>> {
        let assumptions = self.assumptions.as_ref()?;
        let difference = self.linear(a).add_scaled(&self.linear(b), -1)?;
        let mut condition = Linear::constant(difference.constant);
        for (atom, factor) in &difference.terms {
            // The last step of a loop is its trip count minus one.
            let steps = self.limited.get(atom).filter(|_| *factor > 0);
            let steps = steps.and_then(|position| assumptions.scalars.get(position));
            let most = if assumptions.typical.contains_key(atom) {
                Linear::atom(*atom).scale(*factor)?
            } else if let Some(steps) = steps {
                Linear { constant: -1, ..Linear::atom(*steps) }.scale(*factor)?
            } else {
                Linear::constant(self.bounds(*atom).times(*factor).max)
            };
            condition = condition.add_scaled(&most, 1)?;
        }
        let most = condition.terms.iter().fold(condition.constant, |sum, (leaf, factor)| {
            sum.saturating_add(assumptions.typical[leaf].times(*factor).max)
        });
        (most <= 0 && self.is_index(&condition)).then_some(condition)
    }

    /// `a mod b` without a division, where `a` is assumed to lie within one `b` of the result.
    pub(super) fn assumed_remainder(&mut self, a: NodeId, b: NodeId) -> Option<NodeId> {
        let (zero, one) = (self.int(0), self.int(1));
        let (last, lowest) = (self.offset(b, -1), self.scale(b, -1));
        let highest = self.add(b, last);
        let below = !self.assume_le(zero, a);
        let above = !self.assume_le(a, last);
        let near = self.assume_le(one, b)
            && (!below || self.assume_le(lowest, a))
            && (!above || self.assume_le(a, highest));
        if !near {
            return None;
        }
        let mut rest = a;
        if below {
            let (is_below, raised) = (self.binary(BinaryOp::Le, zero, rest), self.add(rest, b));
            rest = self.op(Op::Select, &[is_below, rest, raised]);
        }
        if above {
            let (is_inside, lowered) = (self.binary(BinaryOp::Le, rest, last), self.sub(rest, b));
            rest = self.op(Op::Select, &[is_inside, rest, lowered]);
        }
        Some(rest)
    }

    /// The conjunction of all assumptions. Ends the assuming.
    pub fn take_assumptions(&mut self) -> NodeId {
        let made = self.assumptions.take().unwrap_or_default().made;
        let conditions: Vec<NodeId> = made
            .iter()
            .map(|sum| {
                let sides = self.sides(sum);
                self.raw(NodeKind::Op(Op::Binary(BinaryOp::Le)), Type::Bool, sides)
            })
            .collect();
        self.all(conditions)
    }
}
