//! Sets of ids as bit vectors, which are cheap to copy and hash.

use std::marker::PhantomData;

use smallvec::SmallVec;
use warploom_lang::{FuncId, Id};

use crate::ids::NodeId;

/// A set of nodes.
pub type NodeSet = IdSet<NodeId>;

/// A set of Funcs.
pub type FuncSet = IdSet<FuncId>;

const WORD: usize = u64::BITS as usize;

/// A set of ids, stored as one bit per id of the table. Sets of one table that were made with [`IdSet::none`] have the same number of
/// words, so equal ones compare equal.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct IdSet<K>(SmallVec<[u64; 2]>, PhantomData<K>);

/// The derived clone would copy one word at a time.
impl<K> Clone for IdSet<K> {
    fn clone(&self) -> IdSet<K> {
        IdSet(SmallVec::from_slice(&self.0), PhantomData)
    }
}

/// The empty set, which grows on demand.
impl<K> Default for IdSet<K> {
    fn default() -> IdSet<K> {
        IdSet(SmallVec::new(), PhantomData)
    }
}

impl<K: Id> IdSet<K> {
    /// The empty set for a table of `ids` ids.
    pub fn none(ids: usize) -> IdSet<K> {
        IdSet(SmallVec::from_elem(0, ids.div_ceil(WORD)), PhantomData)
    }

    /// Adds an id; does nothing if it is already in the set.
    pub fn insert(&mut self, id: K) {
        let word = id.index() / WORD;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (id.index() % WORD);
    }

    /// Removes an id; does nothing if it is not in the set.
    pub fn remove(&mut self, id: K) {
        if let Some(word) = self.0.get_mut(id.index() / WORD) {
            *word &= !(1 << (id.index() % WORD));
        }
    }

    /// Whether the set contains an id.
    pub fn contains(&self, id: K) -> bool {
        self.0.get(id.index() / WORD).is_some_and(|word| word >> (id.index() % WORD) & 1 == 1)
    }

    /// Adds all members of another set.
    pub fn extend(&mut self, other: &IdSet<K>) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }

    /// Removes all members of another set.
    pub fn subtract(&mut self, other: &IdSet<K>) {
        for (word, less) in self.0.iter_mut().zip(&other.0) {
            *word &= !less;
        }
    }

    /// The members that another set does not have.
    #[must_use]
    pub fn without(&self, other: &IdSet<K>) -> IdSet<K> {
        let mut left = self.clone();
        left.subtract(other);
        left
    }

    /// Whether the two sets have a member in common.
    pub fn intersects(&self, other: &IdSet<K>) -> bool {
        self.0.iter().zip(&other.0).any(|(word, other)| word & other != 0)
    }

    /// The members in increasing order.
    pub fn iter(&self) -> impl Iterator<Item = K> + '_ {
        self.0.iter().enumerate().flat_map(|(i, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.checked_sub(1)?;
                Some(K::new(i * WORD + bit))
            })
        })
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the set has no members.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The words, for hashing.
    pub fn words(&self) -> &[u64] {
        &self.0
    }
}

impl<K: Id> FromIterator<K> for IdSet<K> {
    fn from_iter<I: IntoIterator<Item = K>>(ids: I) -> IdSet<K> {
        let mut set = IdSet::default();
        ids.into_iter().for_each(|id| set.insert(id));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indices(set: &NodeSet) -> Vec<usize> {
        set.iter().map(Id::index).collect()
    }

    #[test]
    fn holds_what_was_put_in() {
        let (mut low, mut high) = (NodeSet::default(), NodeSet::none(130));
        low.insert(NodeId::new(3));
        [0, 63, 64, 129].into_iter().for_each(|i| high.insert(NodeId::new(i)));
        assert_eq!((indices(&low), indices(&high)), (vec![3], vec![0, 63, 64, 129]));
        assert!(!low.contains(NodeId::new(64)) && high.contains(NodeId::new(64)));
        assert!(!low.intersects(&high) && low.without(&high) == low);
        low.extend(&high);
        assert_eq!((indices(&low), low.len()), (vec![0, 3, 63, 64, 129], 5));
        assert!(low.intersects(&high));
        low.subtract(&high);
        low.remove(NodeId::new(500));
        assert_eq!(indices(&low), [3]);
        low.remove(NodeId::new(3));
        assert!(low.is_empty() && !low.contains(NodeId::new(500)));
    }
}
