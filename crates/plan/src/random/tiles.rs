//! Random tiles: the part of a stage that a block computes, and how threads share it.

use warploom_schedule::{LoopKind, Size, ThreadTiles, Tile};

use crate::random::MAX_UNROLLED;
use crate::random::draw::Draw;

/// The number of blocks above which more blocks test nothing new, unless there are many points.
const MANY_BLOCKS: i64 = 4096;

/// The minimum number of points per block if there are more than [`MANY_BLOCKS`] blocks.
const SMALL_BLOCK: i64 = 16;

/// A loop of a stage at its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub dim: LoopKind,
    pub extent: i64,
    /// Whether blocks and threads may share the loop. False if the values of a reduction variable
    /// depend on each other.
    pub shared: bool,
    /// Whether this is a reduction variable that may run inside those that are defined inside it.
    pub exchanged: bool,
}

impl Span {
    fn is_pure(self) -> bool {
        matches!(self.dim, LoopKind::Pure(_))
    }

    /// A tile of `size` values, sometimes written as `all` if that is the same.
    fn tile(self, size: i64, draw: &mut Draw) -> Tile {
        let whole = size == self.extent && draw.chance(0.5);
        let size = if whole { Size::All } else { u32::try_from(size).map_or(Size::All, Size::Of) };
        Tile { dim: self.dim, size }
    }
}

/// Kinds of tile sizes.
#[derive(Clone, Copy)]
enum SizeKind {
    PowerOfTwo,
    Odd,
    One,
    Whole,
    Beyond,
}

/// The part of a stage that a block computes.
pub(crate) fn block(spans: &[Span], draw: &mut Draw) -> Vec<Tile> {
    let mut chosen: Vec<Span> = spans.iter().copied().filter(|span| span.shared).collect();
    // Keep a reduction variable inside the block fairly often, and sometimes keep everything inside.
    chosen.retain(|span| draw.chance(if span.is_pure() { 0.85 } else { 0.6 }));
    if draw.chance(0.15) {
        chosen.clear();
    }
    if draw.chance(0.3) {
        draw.shuffle(&mut chosen);
    }
    let mut sizes: Vec<i64> = chosen.iter().map(|span| block_size(span.extent, draw)).collect();
    let points = product(chosen.iter().map(|span| span.extent));
    let most = MANY_BLOCKS.max(points / SMALL_BLOCK);
    let count = |(span, size): (&Span, &i64)| (span.extent + size - 1) / size;
    while product(chosen.iter().zip(&sizes).map(count)) > most {
        let smallest = (0..sizes.len()).max_by_key(|i| count((&chosen[*i], &sizes[*i])));
        let Some(smallest) = smallest else { break };
        sizes[smallest] *= 2;
    }
    chosen.iter().zip(sizes).map(|(span, size)| span.tile(size, draw)).collect()
}

fn product(values: impl Iterator<Item = i64>) -> i64 {
    values.fold(1, i64::saturating_mul)
}

fn block_size(extent: i64, draw: &mut Draw) -> i64 {
    let kinds = [
        (SizeKind::PowerOfTwo, 0.45),
        (SizeKind::Odd, 0.25),
        (SizeKind::One, 0.1),
        (SizeKind::Whole, 0.12),
        (SizeKind::Beyond, 0.08),
    ];
    match draw.pick(&kinds) {
        Some(SizeKind::PowerOfTwo) => draw.power_of_two(extent.clamp(2, 128)),
        Some(SizeKind::Odd) => draw.between(2, extent.clamp(3, 48)),
        Some(SizeKind::One) => 1,
        Some(SizeKind::Beyond) => extent + draw.between(1, 9),
        Some(SizeKind::Whole) | None => extent,
    }
}

/// How at most `limit` threads share a stage whose loops at its place are `spans`, pure loops first.
pub(super) fn threads_and_serial(spans: &[Span], limit: i64, draw: &mut Draw) -> ThreadTiles {
    let threads = threads(spans, limit, draw);
    let serial = serial(spans, &threads, draw);
    let extent = |tile: &Tile| spans.iter().find(|span| span.dim == tile.dim).map_or(1, |span| span.extent);
    let written = product(serial.iter().map(|tile| tile.size.of(extent(tile))));
    let unroll = written <= MAX_UNROLLED as i64 && draw.chance(if written > 1 { 0.6 } else { 0.05 });
    ThreadTiles { threads, serial, unroll }
}

/// Threads along up to three loops.
fn threads(spans: &[Span], limit: i64, draw: &mut Draw) -> Vec<Tile> {
    let mut chosen: Vec<Span> = spans.iter().copied().filter(|span| span.shared).collect();
    chosen.retain(|span| span.is_pure() || draw.chance(0.7));
    if draw.chance(0.4) {
        draw.shuffle(&mut chosen);
    }
    // Mostly prefer loops with more than one value.
    if draw.chance(0.9) {
        chosen.sort_by_key(|span| span.extent <= 1);
    }
    let count = draw.pick(&[(1, 0.25), (2, 0.4), (3, 0.35)]).unwrap_or(1);
    chosen.truncate(count);
    let mut left = limit.min(1 << draw.between(2, 10));
    let mut tiles = Vec::new();
    for (position, span) in chosen.iter().enumerate() {
        // Leave some threads for the remaining loops.
        let most = (left >> (chosen.len() - position - 1)).max(1);
        let size = thread_count(span.extent, most, draw).clamp(1, most);
        left /= size;
        tiles.push(span.tile(size, draw));
    }
    tiles
}

fn thread_count(extent: i64, most: i64, draw: &mut Draw) -> i64 {
    let kinds = [
        (SizeKind::PowerOfTwo, 0.4),
        (SizeKind::Odd, 0.25),
        (SizeKind::One, 0.03),
        (SizeKind::Whole, 0.17),
        (SizeKind::Beyond, 0.15),
    ];
    match draw.pick(&kinds) {
        Some(SizeKind::PowerOfTwo) => draw.power_of_two((extent as u64).next_power_of_two() as i64).max(2),
        // Fewer threads than points, so that all threads continue with the next points.
        Some(SizeKind::Odd) => draw.between(2, (extent - 1).min(most)),
        Some(SizeKind::One) => 1,
        Some(SizeKind::Beyond) => extent + draw.between(1, 8),
        Some(SizeKind::Whole) | None => extent,
    }
}

/// The points of each thread, outermost loop first.
fn serial(spans: &[Span], threads: &[Tile], draw: &mut Draw) -> Vec<Tile> {
    let shared = |span: &Span| threads.iter().any(|tile| tile.dim == span.dim);
    let mut pure = Vec::new();
    for span in spans.iter().filter(|span| span.is_pure()) {
        if draw.chance(if shared(span) { 0.35 } else { 0.5 }) {
            let size = serial_size(span.extent, draw);
            pure.push(span.tile(size, draw));
        }
    }
    let mut tiles = reductions(spans, draw);
    match draw.chance(0.5) {
        // Reduction loops run outside the points.
        true => tiles.extend(pure),
        false => {
            let mut all: Vec<Option<Tile>> = tiles.iter().map(|_| None).collect();
            all.extend(pure.into_iter().map(Some));
            draw.shuffle(&mut all);
            // Reduction loops keep their relative order.
            let mut reductions = tiles.into_iter();
            tiles = all.into_iter().filter_map(|tile| tile.or_else(|| reductions.next())).collect();
        }
    }
    tiles
}

fn serial_size(extent: i64, draw: &mut Draw) -> i64 {
    let kinds =
        [(SizeKind::PowerOfTwo, 0.45), (SizeKind::Odd, 0.25), (SizeKind::One, 0.05), (SizeKind::Whole, 0.25)];
    match draw.pick(&kinds) {
        Some(SizeKind::PowerOfTwo) => 2 << draw.between(0, 2),
        Some(SizeKind::Odd) => draw.between(2, 7),
        Some(SizeKind::One) => 1,
        _ => extent,
    }
}

/// Reduction variables among the serial loops, outermost first.
pub(super) fn reductions(spans: &[Span], draw: &mut Draw) -> Vec<Tile> {
    let variables: Vec<Span> = spans.iter().copied().filter(|span| !span.is_pure()).collect();
    if variables.is_empty() || draw.chance(0.25) {
        return Vec::new();
    }
    let inward: Vec<usize> = (1..variables.len()).filter(|i| variables[*i].exchanged).collect();
    let mut named = variables;
    if !inward.is_empty() && draw.chance(0.4) {
        let from = inward[draw.position(inward.len())];
        let to = draw.position(from);
        named[to..=from].rotate_right(1);
    } else {
        // Keep the fastest variables; those that are not named run outside.
        named.truncate(1 + draw.position(named.len()));
    }
    named.reverse();
    let tile = |(position, span): (usize, &Span)| {
        // Inside a divided variable, the others run in full, which keeps their order.
        let size = if position == 0 { serial_size(span.extent, draw) } else { span.extent };
        span.tile(size, draw)
    };
    named.iter().enumerate().map(tile).collect()
}
