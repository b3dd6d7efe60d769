//! Comparisons of indices.

use smallvec::SmallVec;
use warploom_lang::affine::{Interval, Linear, gcd};
use warploom_lang::op::BinaryOp;

use super::Builder;
use crate::ir::NodeId;

impl Builder {
    /// `a <= b` without the terms that never change the result, with the smallest constant that gives the same result.
    /// `8 * thread + point <= 31` is `thread <= 3` for all points below 8, so that the points of a thread share one
    /// guard. `None` if `a <= b` has this form already.
    pub(super) fn coarse_le(&mut self, a: NodeId, b: NodeId) -> Option<NodeId> {
        let sum = self.linear(a).add_scaled(&self.linear(b), -1)?;
        let mut by_size = sum.terms.clone();
        by_size.sort_by_key(|(_, factor)| factor.abs());
        let (fine, constant) = (0..by_size.len()).rev().find_map(|fine| {
            let (fine, coarse) = by_size.split_at(fine);
            Some((fine, self.without(fine, coarse, sum.constant)?))
        })?;
        let mut coarse = Linear { constant, terms: sum.terms.clone() };
        coarse.terms.retain(|term| !fine.contains(term));
        if let [(_, factor)] = &mut coarse.terms[..] {
            coarse.constant /= factor.abs();
            *factor = factor.signum();
        }
        (coarse != sum && self.is_index(&coarse)).then(|| {
            let [left, right] = self.sides(&coarse);
            self.binary(BinaryOp::Le, left, right)
        })
    }

    /// The largest `c` for which `coarse + c <= 0` is equivalent to `coarse + fine + constant <= 0`.
    fn without(&self, fine: &[(NodeId, i64)], coarse: &[(NodeId, i64)], constant: i64) -> Option<i64> {
        let step = coarse.iter().fold(0, |step, (_, factor)| gcd(step, *factor));
        let Interval { min, max } = self.linear_bounds(&Linear { constant, terms: SmallVec::from(fine) });
        // The coarse terms are a multiple of the step.
        let [most, least] = [min, max].map(|rest| rest.saturating_neg().div_euclid(step));
        (most == least).then(|| most.saturating_mul(step).saturating_neg())
    }

    /// Two indices, the first at most the second exactly if the sum is at most 0. Terms are on the side on which they
    /// are positive.
    pub(super) fn sides(&mut self, sum: &Linear<NodeId>) -> [NodeId; 2] {
        let (positive, negative): (SmallVec<[_; 4]>, SmallVec<[_; 4]>) =
            sum.terms.iter().copied().partition(|(_, factor)| *factor > 0);
        let mut left = Linear { constant: 0, terms: positive };
        let mut right = Linear { constant: 0, terms: negative }.scale(-1).unwrap_or_default();
        match left.is_constant() {
            true => left.constant = sum.constant,
            false => right.constant = -sum.constant,
        }
        [&left, &right].map(|side| self.sum_node(side))
    }
}

#[cfg(test)]
mod tests {
    use warploom_lang::{Id, Type, Value};

    use super::*;
    use crate::ir::{Leaf, NodeKind};

    /// A builder with variables in these ranges.
    fn vars(ranges: &[(i64, i64)]) -> (Builder, Vec<NodeId>) {
        let mut builder = Builder::default();
        let leaves = ranges.iter().map(|&(min, max)| {
            let var = builder.var("v");
            builder.leaf(Leaf::Var(var), Type::I32, Some(Interval::new(min, max)))
        });
        let leaves = leaves.collect();
        (builder, leaves)
    }

    /// `sum of factors times variables <= last`.
    fn compare(builder: &mut Builder, vars: &[NodeId], factors: &[i64], last: i64) -> NodeId {
        let zero = builder.int(0);
        let sum = vars.iter().zip(factors).fold(zero, |sum, (var, factor)| {
            let term = builder.scale(*var, *factor);
            builder.add(sum, term)
        });
        let last = builder.int(last);
        builder.binary(BinaryOp::Le, sum, last)
    }

    fn value(builder: &Builder, node: NodeId, values: &[i64]) -> Value {
        let found = &builder.exprs[node];
        let args: Vec<Value> = found.args.iter().map(|arg| value(builder, *arg, values)).collect();
        match found.kind {
            NodeKind::Leaf(Leaf::Var(var)) => {
                Value::from_int(Type::I32, values[var.index()]).expect("it is small")
            }
            NodeKind::Op(op) => op.eval(&args),
            _ => panic!("there is no other node"),
        }
    }

    #[test]
    fn the_points_of_a_thread_have_one_guard() {
        let (mut builder, vars) = vars(&[(0, 15), (0, 7)]);
        let whole = compare(&mut builder, &vars[..1], &[8], 31);
        assert_eq!(compare(&mut builder, &vars, &[8, 1], 31), whole);
        assert_eq!(compare(&mut builder, &vars[..1], &[1], 3), whole);
        assert_ne!(compare(&mut builder, &vars, &[8, 1], 30), whole, "the last point of one is outside");
    }

    #[test]
    fn comparisons_keep_their_answers() {
        let ranges = [(0, 3), (-2, 2), (0, 5)];
        let factors = [-12, -6, -4, -1, 1, 2, 3, 4, 8];
        let mut shorter = 0;
        let three = (0..81).map(|n: usize| [n % 9, n / 9, n * n % 9].map(|n| factors[n]));
        for [a, b, c] in three {
            for last in -30..30 {
                let (mut builder, vars) = vars(&ranges);
                let answer = compare(&mut builder, &vars, &[a, b, c], last);
                let sides = builder.exprs[answer].args.iter();
                let terms: usize = sides.map(|side| builder.linear(*side).terms.len()).sum();
                shorter += usize::from((1..3).contains(&terms));
                for x in 0..=3 {
                    for y in -2..=2 {
                        for z in 0..=5 {
                            let expected = Value::from(a * x + b * y + c * z <= last);
                            assert_eq!(value(&builder, answer, &[x, y, z]), expected, "{a} {b} {c} {last}");
                        }
                    }
                }
            }
        }
        assert!(shorter > 200, "{shorter}");
    }
}
