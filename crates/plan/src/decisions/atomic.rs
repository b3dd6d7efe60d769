//! `atomic`: threads and blocks that update one point at once.

use thiserror::Error;
use warploom_schedule::{Item, LoopKind, Nest, RootItem, Size, StageRef, ThreadTiles, Tile};

use crate::axes::is_pure;
use crate::body::{AccessKind, Builder, Part};
use crate::decisions::{Decision, Edit, Facts, Line, Refusals, Tree};
use crate::problem::Problem;
use crate::random::tiles::{self, Span};
use crate::random::{Generator, Turn};

/// The probability that an update is atomic if it can be.
const DRAWN: f64 = 0.5;

/// The probability that blocks share its reduction variables, if it is the kernel's own stage.
const ON_BLOCKS: f64 = 0.9;

/// Threads along the reduction variable of an atomic update.
const ATOMIC_THREADS: [i64; 4] = [32, 64, 128, 256];

/// Updates each point by one atomic operation.
pub(super) struct Atomic;

/// Why a stage cannot be updated by atomics.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Error)]
pub enum AtomicRefusal {
    /// It is not an update that an atomic operation can make.
    #[error(
        "`{item}` cannot be `atomic`: that takes an update f(..) = f(..) op term of one 32-bit integer, with one of + min max & | ^ for op, and f nowhere else; remove it"
    )]
    Form {
        /// The stage or staged input.
        item: String,
    },
    /// It is private.
    #[error(
        "`{stage}` is private, so no other thread updates its points; write `shared`, or remove `atomic`"
    )]
    Private {
        /// The name of the stage.
        stage: String,
    },
}

impl Decision for Atomic {
    fn facts(&self) -> Facts {
        Facts {
            word: "atomic",
            about: "several threads or blocks update one point at once, by atomics: 32-bit integers with `+ min max & | ^` only",
            // An update is no copy.
            excludes: &["async"],
            of_points: true,
            edits: &[Edit::Sharing(shared)],
            ..Facts::PLAIN
        }
    }

    /// An update that is exact in any order, in memory that threads share.
    fn refusals(&self, at: &Line<'_>) -> Refusals {
        let Some(nest) = at.nest.filter(|nest| nest.nest.numbers.atomic) else { return Vec::new() };
        let update = nest.stage().and_then(|stage| at.problem.atomic_update(stage));
        match update {
            None => at.refuse(AtomicRefusal::Form { item: at.item() }),
            Some(_) if nest.nest.storage.is_private() => {
                at.refuse(AtomicRefusal::Private { stage: at.item() })
            }
            Some(_) => Vec::new(),
        }
    }

    fn is_possible(&self, at: &Line<'_>) -> bool {
        at.nest.is_some_and(|nest| at.problem.can_be_atomic(&nest.nest))
    }

    /// Each store is an update in memory, and what it updates is not loaded.
    fn apply(&self, part: &mut Part<'_>, _: &Builder<'_, '_>) {
        if part.nest.is_some_and(|nest| nest.numbers.atomic) {
            for number in 0..part.accesses.len() {
                let own = part.group(&part.accesses[number]).own;
                let kind = &mut part.accesses[number].kind;
                *kind = match *kind {
                    AccessKind::Store => AccessKind::Atomic,
                    AccessKind::Load if own => AccessKind::Update,
                    other => other,
                };
            }
        }
    }

    fn draw(&self, generator: &mut Generator<'_>, turn: Turn) {
        let Turn::Updates(kernel) = turn else { return };
        for stage in generator.updates(kernel) {
            if generator.draw.chance(DRAWN)
                && generator.change(kernel, stage.into(), |nest| nest.numbers.atomic = true)
            {
                if kernel == stage && generator.draw.chance(ON_BLOCKS) {
                    generator.split_reductions(stage);
                }
                generator.spread(kernel, Item::Stage(stage));
            }
        }
    }
}

impl Problem {
    /// Whether atomics could update the points of a nest.
    pub(crate) fn can_be_atomic(&self, nest: &Nest) -> bool {
        let update = nest.item.stage().and_then(|stage| self.atomic_update(stage));
        update.is_some() && !nest.storage.is_private()
    }
}

impl Generator<'_> {
    /// The updates of a kernel that can be atomic.
    fn updates(&self, kernel: StageRef) -> Vec<StageRef> {
        let kernel = self.schedule.kernels().find(|own| own.stage == kernel);
        let nests = kernel.into_iter().flat_map(|kernel| kernel.nests());
        nests
            .filter(|nest| self.facts.problem.can_be_atomic(nest))
            .filter_map(|nest| nest.item.stage())
            .collect()
    }

    /// Lets the blocks of a kernel share reduction variables of its stage that no loop takes.
    fn split_reductions(&mut self, stage: StageRef) {
        let span = |(var, extent): (usize, i64)| {
            let dim = LoopKind::Reduction(var);
            Span { dim, extent, shared: extent > 1, exchanged: true }
        };
        let spans: Vec<Span> = self.facts.domain(stage).into_iter().enumerate().map(span).collect();
        for tile in tiles::block(&spans, &mut self.draw) {
            let mut next = self.schedule.clone();
            next.kernel_mut(stage).into_iter().for_each(|kernel| kernel.block.push(tile));
            self.keep(next);
        }
    }
}

/// The kernel with one nest in shared memory whose threads share a reduction variable by atomics.
fn shared(tree: &Tree<'_>, number: usize) -> Vec<RootItem> {
    let Some((nest, stage)) = tree.shared(number).and_then(|nest| Some((nest, nest.item.stage()?))) else {
        return Vec::new();
    };
    let all = atomic_shares(tree.problem, stage, &tree.extents[number]).into_iter();
    let others =
        all.filter(|other| (&other.mapping, other.numbers.atomic) != (&nest.mapping, nest.numbers.atomic));
    let with =
        |other: Nest| tree.with(number, |nest| (nest.mapping, nest.numbers.atomic) = (other.mapping, true));
    others.map(with).collect()
}

/// The nests in shared memory of an update whose fastest reduction variable threads share by atomics,
/// with the rest of the threads along its last dimension. None if it cannot be atomic, or writes its own
/// points only: a rewrite divides such a reduction without atomics.
pub fn atomic_shares(problem: &Problem, stage: StageRef, extents: &[i64]) -> Vec<Nest> {
    let loops = problem.loops(stage.into());
    let pure = || loops.iter().copied().filter(|dim| is_pure(*dim));
    if pure().count() == extents.len() || problem.atomic_update(stage).is_none() {
        return Vec::new();
    }
    let reductions = loops.iter().copied().filter(|dim| !is_pure(*dim));
    let mut long = reductions.map(|dim| (dim, problem.loop_range(stage.into(), dim).extent));
    let Some((fastest, extent)) = long.find(|(_, extent)| *extent > 1) else { return Vec::new() };
    let last = pure().next_back().map(|dim| match dim {
        LoopKind::Pure(d) => (dim, extents.get(d).copied().unwrap_or(1)),
        LoopKind::Reduction(_) => (dim, 1),
    });
    let most = i64::from(problem.device().threads.per_block);
    let size = |threads: i64| Size::Of(threads as u32);
    let mut nests = Vec::new();
    for along in ATOMIC_THREADS.into_iter().filter(|threads| *threads <= extent) {
        let mut others = 1;
        while others * along <= most && last.map_or(others == 1, |(_, extent)| others <= extent) {
            let mut threads = vec![Tile { dim: fastest, size: size(along) }];
            let last = last.filter(|_| others > 1);
            threads.extend(last.map(|(dim, _)| Tile { dim, size: size(others) }));
            let mut nest = Nest::shared(stage).mapped(ThreadTiles { threads, ..ThreadTiles::default() });
            nest.numbers.atomic = true;
            nests.push(nest);
            others *= 2;
        }
    }
    nests
}
