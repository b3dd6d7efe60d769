//! Sets of nodes.

use smallvec::SmallVec;
use warploom_lang::Id;

use crate::ids::NodeId;

/// A set of nodes, stored as one bit per node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct NodeSet(SmallVec<[u64; 2]>);

const BITS: usize = u64::BITS as usize;

impl NodeSet {
    /// Adds a node; does nothing if it is already in the set.
    pub fn insert(&mut self, node: NodeId) {
        let word = node.index() / BITS;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (node.index() % BITS);
    }

    /// Removes a node; does nothing if it is not in the set.
    pub fn remove(&mut self, node: NodeId) {
        if let Some(word) = self.0.get_mut(node.index() / BITS) {
            *word &= !(1 << (node.index() % BITS));
        }
    }

    /// Whether the set contains a node.
    pub fn contains(&self, node: NodeId) -> bool {
        self.0.get(node.index() / BITS).is_some_and(|word| word >> (node.index() % BITS) & 1 == 1)
    }

    /// Adds all nodes of another set.
    pub fn extend(&mut self, other: &NodeSet) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }

    /// Whether the two sets have a node in common.
    pub fn intersects(&self, other: &NodeSet) -> bool {
        self.0.iter().zip(&other.0).any(|(word, other)| word & other != 0)
    }

    /// The nodes in increasing order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.0.len() * BITS).map(NodeId::new).filter(|node| self.contains(*node))
    }

    /// The number of nodes in the set.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the set has no nodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_was_put_in() {
        let (mut low, mut high) = (NodeSet::default(), NodeSet::default());
        low.insert(NodeId::new(3));
        high.insert(NodeId::new(64));
        assert!(!low.contains(NodeId::new(64)) && high.contains(NodeId::new(64)));
        low.extend(&high);
        assert_eq!(low.iter().map(Id::index).collect::<Vec<_>>(), [3, 64]);
        assert_eq!(low.len(), 2);
        assert!(low.intersects(&high) && !NodeSet::default().intersects(&high));
        low.remove(NodeId::new(64));
        low.remove(NodeId::new(128));
        assert_eq!(low.iter().map(Id::index).collect::<Vec<_>>(), [3]);
        assert!(NodeSet::default().is_empty());
    }
}
