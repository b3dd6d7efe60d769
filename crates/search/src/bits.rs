//! Sets of nodes as bit vectors, which are cheap to copy and hash.

use smallvec::SmallVec;
use warploom_lang::Id;
use warploom_schedule::NodeId;

const WORD: usize = u64::BITS as usize;

/// A set of nodes of one graph. All sets of a graph have the same number of words, so equal sets
/// compare equal.
#[derive(PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Bits(SmallVec<[u64; 2]>);

/// The derived clone would copy one word at a time.
impl Clone for Bits {
    fn clone(&self) -> Bits {
        Bits(SmallVec::from_slice(&self.0))
    }
}

impl Bits {
    /// The empty set for a graph with `nodes` nodes.
    pub fn none(nodes: usize) -> Bits {
        Bits(SmallVec::from_elem(0, nodes.div_ceil(WORD)))
    }

    pub fn insert(&mut self, node: NodeId) {
        self.0[node.index() / WORD] |= 1 << (node.index() % WORD);
    }

    pub fn remove(&mut self, node: NodeId) {
        self.0[node.index() / WORD] &= !(1 << (node.index() % WORD));
    }

    pub fn contains(&self, node: NodeId) -> bool {
        self.0[node.index() / WORD] >> (node.index() % WORD) & 1 == 1
    }

    pub fn extend(&mut self, other: &Bits) {
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }

    /// Removes all members of another set.
    pub fn subtract(&mut self, other: &Bits) {
        for (word, less) in self.0.iter_mut().zip(&other.0) {
            *word &= !less;
        }
    }

    /// The members that another set does not have.
    pub fn without(&self, other: &Bits) -> Bits {
        let mut left = self.clone();
        left.subtract(other);
        left
    }

    pub fn intersects(&self, other: &Bits) -> bool {
        self.0.iter().zip(&other.0).any(|(word, other)| word & other != 0)
    }

    pub fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.0.iter().enumerate().flat_map(|(i, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.checked_sub(1)?;
                Some(NodeId::new(i * WORD + bit))
            })
        })
    }

    /// The words, for hashing.
    pub fn words(&self) -> &[u64] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_was_put_in() {
        let mut set = Bits::none(130);
        for i in [0, 63, 64, 129] {
            set.insert(NodeId::new(i));
        }
        assert_eq!(set.iter().map(Id::index).collect::<Vec<_>>(), [0, 63, 64, 129]);
        let mut other = Bits::none(130);
        other.insert(NodeId::new(64));
        set.subtract(&other);
        set.remove(NodeId::new(0));
        assert!(!set.contains(NodeId::new(64)) && set.contains(NodeId::new(63)));
        assert_eq!(set.iter().map(Id::index).collect::<Vec<_>>(), [63, 129]);
    }
}
