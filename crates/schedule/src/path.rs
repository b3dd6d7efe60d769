//! Positions in a schedule's tree.

use std::fmt;

use smallvec::SmallVec;

/// The position of a node in a schedule's tree: the child number at each level, starting at the root.
///
/// The children of the root are kernels and loops around kernels. Their children are the items of their
/// bodies, and the children of a nest are its Funcs in registers.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Path(SmallVec<[u32; 4]>);

impl Path {
    /// The root: the schedule itself.
    pub const ROOT: Path = Path(SmallVec::new_const());

    /// The path of the child with this number.
    #[must_use]
    pub fn child(&self, number: usize) -> Path {
        Path(self.0.iter().copied().chain([number as u32]).collect())
    }

    /// The path of the parent; the root is its own parent.
    #[must_use]
    pub fn parent(&self) -> Path {
        Path(SmallVec::from_slice(&self.0[..self.0.len().saturating_sub(1)]))
    }

    /// The number of the child of the root that is this node or encloses it; `None` for the root.
    pub fn root_child(&self) -> Option<usize> {
        self.0.first().map(|number| *number as usize)
    }

    /// The same position below another child of the root.
    #[must_use]
    pub fn below(&self, root_child: usize) -> Path {
        Path([root_child as u32].into_iter().chain(self.0.iter().skip(1).copied()).collect())
    }

    /// The number of levels below the root.
    pub fn depth(&self) -> usize {
        self.0.len()
    }

    /// Whether `other` is this node or one of its descendants.
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
