//! The axes of a nest: how threads share its loops, and which loops are left in each thread.

use warploom_schedule::{LoopKind, Nest, Size, ThreadTiles, Tile};

use crate::footprint::{Axis, AxisKind, ThreadLoop};
use crate::reach::{Reach, blocks};

/// The loops of a nest at its place.
pub(super) struct NestLoops<'a> {
    pub nest: &'a Nest,
    /// The loops of the stage or copy.
    pub loops: &'a [LoopKind],
    /// How threads share them; `None` for a flat loop.
    pub threads: Option<&'a [ThreadLoop]>,
    pub dims: &'a [Reach],
    pub domain: &'a [Reach],
}

impl NestLoops<'_> {
    /// The digits of the thread number, fastest first, then the loops, outermost first.
    pub fn axes(&self) -> Vec<Axis> {
        match (self.threads, self.nest.mapping.tiles()) {
            (Some(threads), Some(tiles)) => self.in_threads(threads, tiles),
            _ => self.flat(),
        }
    }

    fn flat(&self) -> Vec<Axis> {
        let whole = |kind: AxisKind, dim: LoopKind| {
            let extent = self.extent(dim);
            Axis { kind, dim, extent, count: extent, step: 1, unrolled: false }
        };
        let lanes = self.pure().map(|dim| whole(AxisKind::Lane, dim));
        lanes.chain(self.reductions().rev().map(|dim| whole(AxisKind::Reduce, dim))).collect()
    }

    fn in_threads(&self, threads: &[ThreadLoop], tiles: &ThreadTiles) -> Vec<Axis> {
        let interleaves = self.nest.interleaves();
        let is_named = |dim: LoopKind| tiles.serial.iter().any(|tile| tile.dim == dim);
        let several = || threads.iter().filter(|own| own.threads > 1);
        let mut axes = Vec::with_capacity(8);
        axes.extend(several().map(lane));
        // Rounds of shared reduction variables first, then of dimensions; the other reduction variables are
        // inside.
        axes.extend(several().filter(|own| !is_pure(own.dim)).map(|own| self.round(own.dim)));
        axes.extend(self.pure().rev().filter(|_| !interleaves).map(|dim| self.round(dim)));
        let in_thread = self.reductions().rev().filter(|dim| self.share(*dim).0 == 1);
        axes.extend(in_thread.map(|dim| self.parts(dim)));
        // Where points interleave, the rounds along a dimension are just outside the points of one round.
        let unnamed = self.pure().rev().filter(|dim| interleaves && !is_named(*dim));
        axes.extend(unnamed.map(|dim| self.round(dim)));
        for tile in &tiles.serial {
            axes.extend((interleaves && is_pure(tile.dim)).then(|| self.round(tile.dim)));
            axes.push(self.points(tile.dim));
        }
        axes
    }

    fn pure(&self) -> impl DoubleEndedIterator<Item = LoopKind> {
        self.loops.iter().copied().filter(|dim| is_pure(*dim))
    }

    fn reductions(&self) -> impl DoubleEndedIterator<Item = LoopKind> {
        self.loops.iter().copied().filter(|dim| !is_pure(*dim))
    }

    fn shared(&self, dim: LoopKind) -> Option<&ThreadLoop> {
        self.threads?.iter().find(|own| own.dim == dim)
    }

    /// The number of threads along a loop, and the adjacent points of each.
    fn share(&self, dim: LoopKind) -> (i64, i64) {
        self.shared(dim).map_or((1, 1), |own| (own.threads, own.serial))
    }

    fn extent(&self, dim: LoopKind) -> i64 {
        match (self.shared(dim), dim) {
            (Some(own), _) => own.extent,
            (None, LoopKind::Pure(d)) => self.dims[d].extent(),
            (None, LoopKind::Reduction(r)) => self.domain[r].extent(),
        }
    }

    /// The rounds of all threads along a loop. They are unrolled with the points if these interleave.
    fn round(&self, dim: LoopKind) -> Axis {
        let ((threads, serial), extent) = (self.share(dim), self.extent(dim));
        let (step, unrolled) = (threads * serial, self.nest.interleaves() && is_pure(dim));
        Axis { kind: AxisKind::Round, dim, extent, count: blocks(extent, step), step, unrolled }
    }

    /// The parts of a reduction variable that each thread runs.
    fn parts(&self, dim: LoopKind) -> Axis {
        let (step, extent) = (self.share(dim).1, self.extent(dim));
        Axis { kind: AxisKind::Reduce, dim, extent, count: blocks(extent, step), step, unrolled: false }
    }

    /// The adjacent points of a thread.
    fn points(&self, dim: LoopKind) -> Axis {
        let (count, extent) = (self.share(dim).1, self.extent(dim));
        Axis { kind: AxisKind::Serial, dim, extent, count, step: 1, unrolled: self.nest.mapping.unrolls() }
    }
}

fn lane(own: &ThreadLoop) -> Axis {
    let ThreadLoop { dim, threads, serial, extent } = *own;
    Axis { kind: AxisKind::Lane, dim, extent, count: threads, step: serial, unrolled: false }
}

pub(super) fn is_pure(kind: LoopKind) -> bool {
    matches!(kind, LoopKind::Pure(_))
}

/// Each loop that threads share or that runs in a thread. The listed thread loops come first, in order.
pub(super) fn thread_loops(tiles: &ThreadTiles, dims: &[Reach], domain: &[Reach]) -> Vec<ThreadLoop> {
    let extent = |kind: LoopKind| match kind {
        LoopKind::Pure(d) => dims.get(d).map_or(1, Reach::extent),
        LoopKind::Reduction(r) => domain.get(r).map_or(1, Reach::extent),
    };
    let size =
        |list: &[Tile], kind: LoopKind| list.iter().find(|tile| tile.dim == kind).map(|tile| tile.size);
    let mut kinds: Vec<LoopKind> = tiles.threads.iter().map(|tile| tile.dim).collect();
    for tile in &tiles.serial {
        if !kinds.contains(&tile.dim) {
            kinds.push(tile.dim);
        }
    }
    let thread_loop = |dim: LoopKind| {
        let extent = extent(dim);
        let threads = match size(&tiles.threads, dim) {
            Some(Size::Of(threads)) => i64::from(threads.max(1)),
            Some(Size::All) => extent,
            None => 1,
        };
        let serial = match size(&tiles.serial, dim) {
            Some(Size::Of(serial)) => i64::from(serial).clamp(1, extent.max(1)),
            Some(Size::All) => blocks(extent, threads),
            None => 1,
        };
        ThreadLoop { dim, threads, serial, extent }
    };
    kinds.into_iter().map(thread_loop).collect()
}
