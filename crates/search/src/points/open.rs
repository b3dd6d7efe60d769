//! The axes that a space leaves open.

/// The properties in which the points of a space may differ. The tiles of kernels and of their reductions are always
/// open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Open {
    /// Whether extents are rounded up so that they have factors. Otherwise tiles divide extents.
    pub padding: bool,
    /// Whether the threads of a block may have several rounds over its points. Otherwise a tile of a block has as many points
    /// as its threads have.
    pub rounds: bool,
    /// Whether a thread may run a reduction inside a loop over the block in parts, each unrolled. Otherwise it unrolls
    /// a whole iteration.
    pub parts: bool,
    /// Whether the order of loops over blocks, threads and in a thread is open.
    pub orders: bool,
    /// Whether everything else is open: unrolling, interleaving, blocks per SM, how threads share other stages, copies
    /// of inputs and the pitch of their rows.
    pub rest: bool,
}

impl Open {
    /// Everything that a template can leave open.
    pub const ALL: Open = Open { padding: true, rounds: true, parts: true, orders: true, rest: true };

    /// Tiles alone, whose sizes divide extents: four factors for each dimension and two for a reduction.
    pub const TILES: Open = Open { padding: false, rounds: true, parts: false, orders: false, rest: false };

    /// The same without rounds: three factors for each dimension and two for a reduction.
    pub const FEW_TILES: Open = Open { rounds: false, ..Open::TILES };
}

impl Default for Open {
    fn default() -> Open {
        Open::ALL
    }
}
