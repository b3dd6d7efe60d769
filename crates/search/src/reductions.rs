//! Where the reduction loops of a stage may run.

use warploom_schedule::{LoopKind, ReductionTile, Size, Tile};

use crate::space::{SearchSpace, Span, StageFacts};

/// Chunk sizes of a reduction variable that are unrolled.
const CHUNKS: [i64; 4] = [4, 8, 16, 32];

/// Chunk sizes of a reduction variable per iteration over the block.
const STEPS: [i64; 3] = [8, 16, 32];

/// Reduction variables with at most this total extent are fully unrolled.
const WHOLE: i64 = 32;

/// Steps of a reduction for which a copy of its operands is usually best.
const STEPS_PER_COPY: f64 = 24.0;

/// The most ways to run a reduction with copies of its operands.
const MOST_TILED: usize = 12;

/// One way to run the reduction loops of a stage.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Variant {
    /// Loops around the kernel, outermost first.
    pub around: Vec<ReductionTile>,
    /// Loops over the block, outermost first.
    pub over: Vec<ReductionTile>,
    /// Variables that are split among blocks and threads.
    pub shared: Vec<Span>,
    /// Chunks in a thread's serial loops, outermost first.
    pub inner: Vec<Tile>,
}

impl Variant {
    /// The number of unrolled values of reduction variables.
    pub fn unrolled(&self, facts: &StageFacts) -> i64 {
        let size = |tile: &Tile| {
            let extent =
                facts.reductions.iter().find(|span| span.dim == tile.dim).map_or(1, |span| span.extent);
            tile.size.of(self.left(tile.dim, extent))
        };
        self.inner.iter().map(size).fold(1, i64::saturating_mul)
    }

    /// The extent of a variable that the loops over the block leave to each iteration.
    fn left(&self, dim: LoopKind, extent: i64) -> i64 {
        let taken = self.over.iter().find(|tile| LoopKind::Reduction(tile.var) == dim);
        taken.map_or(extent, |tile| tile.size.of(extent))
    }
}

/// The variants in which all reduction loops run in each thread, with or without loops over the
/// block.
pub(crate) fn in_threads(facts: &StageFacts) -> Vec<Variant> {
    let mut variants = vec![Variant::default()];
    let several: Vec<Span> = facts.reductions.iter().copied().filter(|span| span.extent > 1).collect();
    let Some(fastest) = several.first() else { return variants };
    let named = |inner: Vec<Tile>| Variant { inner, ..Variant::default() };
    for chunk in CHUNKS.into_iter().filter(|chunk| *chunk < fastest.extent) {
        variants.push(named(vec![tile(fastest.dim, chunk)]));
    }
    variants.extend(whole(&several).into_iter().map(named));
    variants.extend(over_block(facts, &several));
    variants
}

/// Lists of the fastest variables to unroll fully: one, two, ... as long as their extent is small
/// enough, outermost first.
fn whole(several: &[Span]) -> Vec<Vec<Tile>> {
    let mut lists = Vec::new();
    for count in 1..=several.len() {
        let taken = &several[..count];
        if steps(taken) <= WHOLE {
            lists.push(taken.iter().rev().map(|span| Tile { dim: span.dim, size: Size::All }).collect());
        }
    }
    lists
}

/// Loops over the block: the outermost variables one value at a time, the next one in steps.
fn over_block(facts: &StageFacts, several: &[Span]) -> Vec<Variant> {
    let mut variants = Vec::new();
    for fixed in 0..=several.len() {
        let (left, outer) = several.split_at(several.len() - fixed);
        let singles: Vec<ReductionTile> =
            outer.iter().rev().filter_map(|span| step(facts, span.dim, 1)).collect();
        if fixed > 0 {
            variants.push(Variant { over: singles.clone(), ..Variant::default() });
            if let Some(inner) = whole(left).pop() {
                variants.push(Variant { over: singles.clone(), inner, ..Variant::default() });
            }
        }
        // Only the last loop takes several values at once. Otherwise the loops inside would run in
        // parts.
        let [.., next] = left else { continue };
        if left.len() > 1 && fixed + 1 < several.len() {
            continue;
        }
        for size in STEPS.into_iter().filter(|size| *size < next.extent) {
            let mut over = singles.clone();
            over.extend(step(facts, next.dim, size));
            let all = vec![Tile { dim: next.dim, size: Size::All }];
            for inner in [Vec::new(), vec![tile(next.dim, 4)], all] {
                variants.push(Variant { over: over.clone(), inner, ..Variant::default() });
            }
        }
    }
    variants
}

/// Steps of a thread that are unrolled if the operands of the whole reduction are copied at once.
const UNROLLED: i64 = 8;

/// The ways to run a reduction with operands copied to shared memory for a few steps at a time, those with about
/// [`STEPS_PER_COPY`] steps first.
pub(crate) fn tiled(facts: &StageFacts) -> Vec<Variant> {
    let several: Vec<Span> = facts.reductions.iter().copied().filter(|span| span.extent > 1).collect();
    let whole_list = |spans: &[Span]| whole(spans).pop().unwrap_or_default();
    let mut found = vec![(steps(&several), Variant { inner: whole_list(&several), ..Variant::default() })];
    if let [only] = several[..]
        && only.extent > UNROLLED
    {
        let inner = vec![tile(only.dim, UNROLLED)];
        found.push((only.extent, Variant { inner, ..Variant::default() }));
    }
    for fixed in 0..several.len() {
        let (left, outer) = several.split_at(several.len() - fixed);
        let [rest @ .., next] = left else { continue };
        let singles: Vec<ReductionTile> =
            outer.iter().rev().filter_map(|span| step(facts, span.dim, 1)).collect();
        for size in [1, 2, 4, 8, 16, 32].into_iter().filter(|size| *size < next.extent) {
            let mut over = singles.clone();
            over.extend(step(facts, next.dim, size));
            let inners = match rest {
                [] => vec![vec![Tile { dim: next.dim, size: Size::All }], vec![tile(next.dim, 4)]],
                rest => vec![whole_list(rest)],
            };
            let variant = |inner| {
                (
                    steps(rest).saturating_mul(size),
                    Variant { over: over.clone(), inner, ..Variant::default() },
                )
            };
            found.extend(inners.into_iter().map(variant));
        }
    }
    let far = |steps: i64| (steps as f64 / STEPS_PER_COPY).ln().abs();
    // The sort is stable.
    found.sort_by(|(a, _), (b, _)| far(*a).total_cmp(&far(*b)));
    found.truncate(MOST_TILED);
    found.into_iter().map(|(_, variant)| variant).collect()
}

/// All variants for a stage that has its own kernel: the reduction loops run in threads, or
/// variables with independent values are split among blocks and threads.
pub(crate) fn at_root(space: &SearchSpace<'_>, facts: &StageFacts) -> Vec<Variant> {
    let mut variants = in_threads(facts);
    let free = |span: &&Span| matches!(span.dim, LoopKind::Reduction(var) if facts.freedom[var].always);
    let shared: Vec<Span> = facts.reductions.iter().filter(free).copied().collect();
    if !shared.is_empty() {
        variants.push(Variant { shared, ..Variant::default() });
    }
    for (var, span) in facts.reductions.iter().enumerate() {
        let freedom = facts.freedom[var];
        if !freedom.under_outer || freedom.always {
            continue;
        }
        let outer = facts.reductions[var + 1..].iter().filter(|span| span.extent > 1);
        let launches = outer.clone().map(|span| span.extent).fold(1, i64::saturating_mul);
        if launches <= space.options.limits.launches {
            let around = outer.rev().filter_map(|span| step(facts, span.dim, 1)).collect();
            variants.push(Variant { around, shared: vec![*span], ..Variant::default() });
        }
    }
    variants
}

/// The steps of some variables together.
pub(crate) fn steps(spans: &[Span]) -> i64 {
    spans.iter().fold(1, |steps, span| steps.saturating_mul(span.extent))
}

fn tile(dim: LoopKind, size: i64) -> Tile {
    Tile { dim, size: u32::try_from(size).map_or(Size::All, Size::Of) }
}

fn step(facts: &StageFacts, dim: LoopKind, size: i64) -> Option<ReductionTile> {
    match dim {
        LoopKind::Reduction(var) => Some(ReductionTile { stage: facts.at, var, size: tile(dim, size).size }),
        LoopKind::Pure(_) => None,
    }
}
