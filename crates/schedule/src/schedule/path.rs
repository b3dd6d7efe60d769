//! Places in the tree of a schedule.

use std::fmt;

use smallvec::SmallVec;

/// Where a node stands in a schedule's tree: the number of the child at each level, from the root.
///
/// Below root are kernels and loops around them, below these the items of their bodies, below a nest its
/// Funcs in registers.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Path(SmallVec<[u32; 4]>);

impl Path {
    /// The schedule itself.
    pub const ROOT: Path = Path(SmallVec::new_const());

    /// The child of this number.
    #[must_use]
    pub fn child(&self, number: usize) -> Path {
        Path(self.0.iter().copied().chain([number as u32]).collect())
    }

    /// The node that this one is a child of; root is its own.
    #[must_use]
    pub fn parent(&self) -> Path {
        Path(SmallVec::from_slice(&self.0[..self.0.len().saturating_sub(1)]))
    }

    /// How many levels below root.
    pub fn depth(&self) -> usize {
        self.0.len()
    }

    /// Whether `other` is this node or stands below it.
    pub fn encloses(&self, other: &Path) -> bool {
        other.0.starts_with(&self.0)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u32::to_string).collect();
        write!(f, "/{}", numbers.join("/"))
    }
}
