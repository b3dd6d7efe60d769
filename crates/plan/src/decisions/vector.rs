//! `vector`: vector loads and stores.

use std::num::NonZeroU32;

use smallvec::SmallVec;
use thiserror::Error;
use warploom_schedule::{Item, LoopKind, Nest, RootItem, Size, StageId, StageRef, ThreadTiles, Tile};
use warploom_target::VECTOR_BYTES;

use crate::body::{self, Access, AccessKind, Builder, Memory, Moves, Part, Place};
use crate::decisions::{Decision, Edit, Facts, Line, Refusals, Tree};
use crate::plan::NestPlan;
use crate::random::{Generator, Turn, WORD};

/// The probability that a copy ahead of time is made by vectors if its rows have an even number of points.
const BY_VECTORS: f64 = 0.5;

/// The most threads along a dimension of such a copy, and the most dimensions with threads.
const MOST_THREADS: i64 = 8;
const MOST_DIMENSIONS: usize = 2;

/// Accesses buffers several elements at a time.
pub(super) struct Vector;

/// Why a nest cannot access several elements at a time.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Error)]
pub enum VectorRefusal {
    /// A thread has no two unrolled points that could be accessed together.
    #[error(
        "`{item}` has no use for `vector`: that takes an even number of unrolled points along a variable of `serial`; change the tiles, or remove `vector`"
    )]
    Points {
        /// The stage or staged input.
        item: String,
    },
    /// Its lanes share, or it computes row by row.
    #[error("`{item}` cannot be both `{other}` and `vector`; remove one of them")]
    With {
        /// The stage or staged input.
        item: String,
        /// The other word.
        other: &'static str,
    },
}

impl Decision for Vector {
    fn facts(&self) -> Facts {
        Facts {
            word: "vector",
            about: "vector loads and stores of unrolled points, up to 16 bytes",
            excludes: &["lanes", "slide"],
            of_points: true,
            edits: &[Edit::Nest(vectored), Edit::Nest(copied)],
            ..Facts::PLAIN
        }
    }

    /// Nothing is known to be aligned where sizes are given at launch, and all points run unless a condition decides which.
    fn apply(&self, part: &mut Part<'_>, builder: &Builder<'_, '_>) {
        let problem = builder.problem;
        let is_guarded = |stage: StageId| {
            let stage = &problem.dag().stages()[stage];
            problem.pipeline().funcs()[stage.func].stages[stage.number].predicate.is_some()
        };
        if !part.around.numbers.vector || problem.sizes().is_some() || part.stage().is_some_and(is_guarded) {
            return;
        }
        let all: SmallVec<[_; 8]> = part.accesses.iter().map(|access| vectors(part, access)).collect();
        part.accesses.iter_mut().zip(all).for_each(|(access, vectors)| access.vectors = vectors);
    }

    /// A thread has adjacent unrolled points in tiles that start at multiples of their number.
    fn refusals(&self, at: &Line<'_>) -> Refusals {
        let Some(nest) = at.nest.filter(|nest| nest.nest.numbers.vector) else { return Vec::new() };
        match self.facts().excludes.iter().find(|word| at.has(word)) {
            Some(other) => at.refuse(VectorRefusal::With { item: at.item(), other }),
            None if !has_pairs(&nest.nest) => at.refuse(VectorRefusal::Points { item: at.item() }),
            None => Vec::new(),
        }
    }

    fn is_possible(&self, at: &Line<'_>) -> bool {
        at.nest.is_some_and(has_vectors)
    }

    fn draw(&self, generator: &mut Generator<'_>, turn: Turn) {
        if let Turn::Last = turn {
            generator.vectors();
            generator.vector_copies();
        }
    }
}

/// Whether a thread has unrolled points in pairs, at any size of the pipeline.
fn has_pairs(nest: &Nest) -> bool {
    let is_even = |tile: &Tile| match tile.size {
        Size::Of(points) => points % 2 == 0,
        Size::All => true,
    };
    nest.mapping.tiles().is_some_and(|tiles| tiles.unroll && tiles.serial.iter().any(is_even))
}

fn has_vectors(nest: &NestPlan) -> bool {
    nest.footprint.as_ref().is_some_and(|nest| nest.vector_points() > 1)
}

impl Generator<'_> {
    /// Accesses buffers several elements at a time in some nests.
    fn vectors(&mut self) {
        let plan = self.facts.problem.plan(&self.schedule);
        let place = |info: &NestPlan| (plan.kernels[info.kernel].kernel.stage, info.nest.item);
        let nests = plan.nests.values().filter(|nest| has_vectors(nest));
        for (stage, item) in nests.map(place).collect::<Vec<(StageRef, Item)>>() {
            if self.draw.chance(WORD) {
                self.change(stage, item, |nest| nest.numbers.vector = true);
            }
        }
    }

    /// Makes some copies ahead of time by vectors.
    fn vector_copies(&mut self) {
        let plan = self.facts.problem.plan(&self.schedule);
        let is_even = |extents: &Vec<i64>| extents.first().is_some_and(|extent| extent % 2 == 0);
        let place = |info: &NestPlan| {
            let extents = info.footprint.as_ref()?.points.extents();
            let place = (plan.kernels[info.kernel].kernel.stage, info.nest.item);
            Some((place, Some(extents).filter(is_even)?))
        };
        let ahead = plan.nests.values().filter(|info| !plan.ahead_of(info).is_empty());
        for ((kernel, item), extents) in ahead.filter_map(place).collect::<Vec<_>>() {
            if self.draw.chance(BY_VECTORS) {
                let tiles = self.vector_tiles(&extents);
                self.change(kernel, item, |nest| {
                    nest.mapping = tiles.clone().into();
                    (nest.numbers.vector, nest.numbers.interleave) = (true, false);
                });
            }
        }
    }

    /// Tiles of two or four points along the first dimension.
    fn vector_tiles(&mut self, extents: &[i64]) -> ThreadTiles {
        let width = if extents[0] % 4 == 0 && self.draw.chance(0.7) { 4 } else { 2 };
        let mut threads = Vec::new();
        for (d, extent) in extents.iter().enumerate() {
            let tiles = if d == 0 { extent / width } else { *extent };
            let number = self.draw.between(1, tiles.min(MOST_THREADS));
            threads.push(Tile { dim: LoopKind::Pure(d), size: Size::Of(number as u32) });
        }
        threads.truncate(MOST_DIMENSIONS);
        let serial = vec![Tile { dim: LoopKind::Pure(0), size: Size::Of(width as u32) }];
        ThreadTiles { threads, serial, unroll: true }
    }
}

/// The kernel with one nest that accesses buffers by vectors along the dimension that is adjacent in memory, which becomes its
/// innermost loop; or without vectors, if it has them. None if its points along that dimension are not unrolled.
fn vectored(tree: &Tree<'_>, number: usize) -> Vec<RootItem> {
    let Some(adjacent) = tree.node(number).and_then(|node| node.storage_order.first()) else {
        return Vec::new();
    };
    let adjacent = LoopKind::Pure(*adjacent);
    let tiles = tree.nest(number).and_then(|nest| nest.mapping.tiles()).filter(|tiles| tiles.unroll);
    if !tiles.is_some_and(|tiles| tiles.serial.iter().any(|tile| tile.dim == adjacent)) {
        return Vec::new();
    }
    let changed = tree.with(number, |nest| {
        nest.numbers.vector = !nest.numbers.vector;
        if let Some(tiles) = nest.mapping.tiles_mut().filter(|_| nest.numbers.vector) {
            // The order of the others stays.
            tiles.serial.sort_by_key(|tile| tile.dim == adjacent);
        }
    });
    vec![changed]
}

/// The kernel with one copy in shared memory whose threads have as many adjacent points as make a vector. Asynchronous copies are
/// stored as they are read, in rows that begin at vectors. None if the points make no vectors, or the copy has them.
fn copied(tree: &Tree<'_>, number: usize) -> Vec<RootItem> {
    by_vectors(tree, number).into_iter().collect()
}

fn by_vectors(tree: &Tree<'_>, number: usize) -> Option<RootItem> {
    let nest = tree.shared(number)?;
    (nest.item.stage().is_none() || tree.is_copy(nest)).then_some(())?;
    let node = tree.node(number)?;
    let copied = Copied { extents: &tree.extents[number], adjacent: *node.storage_order.first()? };
    let own = tree.item.kernels().next()?.nests().last()?;
    let count = |tile: &Tile| match tile.size {
        Size::Of(threads) => i64::from(threads),
        Size::All => 1,
    };
    let threads: i64 = own.mapping.tiles()?.threads.iter().map(count).product();
    let (bytes, points) = (node.bytes_per_point as i64, copied.extents[copied.adjacent]);
    let widths = [VECTOR_BYTES as i64, VECTOR_BYTES as i64 / 2].map(|vector| vector / bytes).into_iter();
    let mut widths = widths.filter(|width| *width > 1 && points % width == 0);
    let width = widths.next().filter(|_| !nest.numbers.vector)?;
    Some(tree.with(number, |nest| {
        nest.mapping = copied.tiles(width, threads).into();
        nest.numbers.vector = true;
        if nest.numbers.depth.is_some() {
            let begins = |pitch: &NonZeroU32| i64::from(pitch.get()) % width == 0;
            nest.numbers.pitch = nest.numbers.pitch.filter(|pitch| begins(pitch) && !nest.numbers.transpose);
            nest.numbers.transpose = false;
        }
    }))
}

/// What a nest copies to shared memory.
struct Copied<'a> {
    /// The extents of its points.
    extents: &'a [i64],
    /// The dimension along which points are adjacent in global memory.
    adjacent: usize,
}

impl Copied<'_> {
    /// Tiles of so many adjacent points for at most so many threads.
    fn tiles(&self, width: i64, threads: i64) -> ThreadTiles {
        let others = (0..self.extents.len()).filter(|d| *d != self.adjacent).map(|d| (d, self.extents[d]));
        let vectors = (self.adjacent, self.extents[self.adjacent] / width);
        let (mut left, mut tiles) = (threads, Vec::new());
        for (d, extent) in [vectors].into_iter().chain(others) {
            let taken = even_part(extent, left);
            if taken > 1 {
                tiles.push(Tile { dim: LoopKind::Pure(d), size: Size::Of(taken as u32) });
            }
            left /= taken;
        }
        let serial = vec![Tile { dim: LoopKind::Pure(self.adjacent), size: Size::Of(width as u32) }];
        ThreadTiles { threads: tiles, serial, unroll: true }
    }
}

/// At most so many threads for a number of points: a divisor, unless that leaves more than half of the threads idle.
fn even_part(points: i64, threads: i64) -> i64 {
    let most = points.min(threads).max(1);
    let divisors = (1..=most).rev().filter(|part| points % part == 0);
    divisors.take(1).find(|part| 2 * part > most).unwrap_or(most)
}

/// The vectors of an access where it can have some: nothing else in the loop accesses what it writes.
fn vectors(part: &Part<'_>, access: &Access) -> SmallVec<[Option<body::Vector>; 4]> {
    let (group, place) = (part.group(access), &part.arrays[access.array]);
    let reads_own = || part.flat.loads.iter().any(|load| load.own) && part.stage().is_some();
    let is_alone = !group.own || part.accumulates || !reads_own();
    if matches!(access.kind, AccessKind::Atomic | AccessKind::Update) || !is_alone {
        return SmallVec::new();
    }
    let most = match (part.copies_ahead(), place.memory) {
        (true, _) => copied_at_once(part),
        (false, Memory::Global) => body::VECTOR_BYTES,
        (false, _) => 1,
    };
    if most == 1 {
        return SmallVec::new();
    }
    let moves = Moves::new(part.walk_of(access), group);
    let runs = access.runs;
    let vectors = moves.elements(place).map(|of| moves.vectors(&of, place, |kind| runs.repeats(kind), most));
    vectors.unwrap_or_default()
}

/// The elements of an asynchronous copy, as many as both sides allow.
fn copied_at_once(part: &Part<'_>) -> i64 {
    let [load, store] = &part.accesses[..] else { return 1 };
    let width = |access: &Access| {
        let (moves, place): (_, &Place) =
            (Moves::new(&part.walk, part.group(access)), &part.arrays[access.array]);
        let vectors = moves.elements(place).map(|of| moves.vectors(&of, place, |_| true, body::VECTOR_BYTES));
        vectors.iter().flatten().map(|of| of.map_or(1, |of| of.width)).min().unwrap_or(1)
    };
    width(load).min(width(store))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_points_evenly_where_that_keeps_them_busy() {
        let parts = [(32, 256), (16, 4), (22, 8), (12, 8), (1, 8), (7, 1)].map(|(n, of)| even_part(n, of));
        assert_eq!(parts, [32, 4, 8, 6, 1, 1]);
    }
}
