//! Integer expressions as linear combinations of atoms, so that equal terms cancel.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::ids::ExprId;

/// `constant + Σ factor · atom`. Atoms are nodes that are not sums themselves. Each atom appears
/// once, in increasing order.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Linear<A = ExprId> {
    /// The constant term.
    pub constant: i64,
    /// Atoms with their non-zero factors.
    pub terms: SmallVec<[(A, i64); 4]>,
}

impl<A> Default for Linear<A> {
    fn default() -> Linear<A> {
        Linear { constant: 0, terms: SmallVec::new() }
    }
}

impl<A: Copy + Ord> Linear<A> {
    /// A constant, without atoms.
    pub fn constant(value: i64) -> Linear<A> {
        Linear { constant: value, terms: SmallVec::new() }
    }

    /// One atom with factor 1.
    pub fn atom(id: A) -> Linear<A> {
        Linear { constant: 0, terms: SmallVec::from_iter([(id, 1)]) }
    }

    /// Whether there are no atoms.
    pub fn is_constant(&self) -> bool {
        self.terms.is_empty()
    }

    /// `self + factor * other`, or `None` on overflow.
    pub fn add_scaled(&self, other: &Linear<A>, factor: i64) -> Option<Linear<A>> {
        let constant = self.constant.checked_add(other.constant.checked_mul(factor)?)?;
        let mut terms: SmallVec<[(A, i64); 4]> = SmallVec::new();
        let (mut left, mut right) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let next = match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some(_), None) => left.next().copied(),
                (Some(a), Some(b)) if a.0 < b.0 => left.next().copied(),
                (Some(a), Some(b)) if a.0 == b.0 => {
                    let sum = a.1.checked_add(b.1.checked_mul(factor)?)?;
                    right.next();
                    left.next().map(|(id, _)| (*id, sum))
                }
                _ => match right.next() {
                    Some(&(id, f)) => Some((id, f.checked_mul(factor)?)),
                    None => None,
                },
            };
            terms.extend(next.filter(|(_, factor)| *factor != 0));
        }
        Some(Linear { constant, terms })
    }

    /// `factor * self`, or `None` on overflow.
    pub fn scale(&self, factor: i64) -> Option<Linear<A>> {
        Linear::default().add_scaled(self, factor)
    }
}
