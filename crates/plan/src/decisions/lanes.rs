//! `lanes`: registers shared by the lanes of a warp.

use thiserror::Error;
use warploom_lang::FuncId;
use warploom_schedule::{Item, LoopKind, Mapping, Names, RootItem, Size, StageRef, ThreadTiles, Tile};
use warploom_target::WARP;

use crate::axes::is_pure;
use crate::decisions::{Decision, Edit, Facts, Line, Refusals, Tree};
use crate::footprint::{NestFootprint, RegisterFootprint};
use crate::lanes::Unshared;
use crate::plan::NestPlan;
use crate::random::{Generator, Turn};

/// The probability that a nest with Funcs in registers gets rows of threads whose lanes share them.
const DRAWN: f64 = 0.7;

/// How often to draw tiles of such a nest.
const TRIES: usize = 4;

/// The maximum number of adjacent points of a lane, and of rows of a thread.
const MAX_POINTS: i64 = 3;

/// The maximum number of threads beyond those of one warp, in warps.
const MAX_WARPS: i64 = 4;

/// The maximum number of points by which a block has less than the lanes of a warp.
const MAX_RIM: i64 = 12;

/// Shares Funcs in registers among the threads of a warp, a row of 32 along the first dimension of the threads.
pub(super) struct Lanes;

/// Why the lanes of a nest cannot share what is in registers.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Error)]
pub enum LanesRefusal {
    /// There are no Funcs in registers.
    #[error("`{item}` has no Funcs in registers that `lanes` could share; remove `lanes`")]
    Funcs {
        /// The stage or staged input.
        item: String,
    },
    /// The warps are not rows of threads.
    #[error(
        "`{item}` cannot use `lanes`: the first of its thread loops must be a dimension with exactly {warp} threads; write `threads x {warp}`, or remove `lanes`"
    )]
    Threads {
        /// The stage or staged input.
        item: String,
        /// The number of threads in a warp.
        warp: u32,
    },
    /// The threads of a warp do not cover the points at once.
    #[error(
        "`{item}` cannot use `lanes`: its {points} points along `{variable}` are more than the {most} that {warp} threads have at once; make the block smaller, or the serial tile larger"
    )]
    Rounds {
        /// The stage.
        item: String,
        /// The dimension of the lanes.
        variable: String,
        /// The points along it.
        points: i64,
        /// The points that the threads of a warp have.
        most: i64,
        /// The number of threads in a warp.
        warp: u32,
    },
    /// The block does not consist of whole warps.
    #[error(
        "`{item}` cannot use `lanes`: the block has {threads} threads, which is not a multiple of {warp}"
    )]
    Block {
        /// The stage.
        item: String,
        /// Threads per block.
        threads: u64,
        /// The number of threads in a warp.
        warp: u32,
    },
    /// The points of a Func do not follow the lanes.
    #[error(
        "the lanes of `{item}` cannot share `{func}`: what they read of it does not move by a constant number of points per lane along one dimension; place `{func}` elsewhere, or remove `lanes`"
    )]
    Index {
        /// The stage.
        item: String,
        /// The Func in registers.
        func: String,
    },
    /// A Func has updates.
    #[error(
        "the lanes of `{item}` cannot share `{func}`, because it has updates; place it elsewhere, or remove `lanes`"
    )]
    Stages {
        /// The stage.
        item: String,
        /// The Func in registers.
        func: String,
    },
    /// A Func has elements that are too small.
    #[error(
        "the lanes of `{item}` cannot share `{func}`: a shuffle exchanges 4 or 8 bytes, and its elements have {bytes}; place it elsewhere, or remove `lanes`"
    )]
    Bytes {
        /// The stage.
        item: String,
        /// The Func in registers.
        func: String,
        /// The bytes of an element.
        bytes: usize,
    },
    /// A Func in registers reads a private Func.
    #[error(
        "`{item}` cannot use `lanes`: `{func}` reads `{private}`, which is private to the threads that have points; place one of them elsewhere, or remove `lanes`"
    )]
    Private {
        /// The stage.
        item: String,
        /// The Func in registers.
        func: String,
        /// The private Func.
        private: String,
    },
    /// The lanes of a warp do not hold all points of a Func.
    #[error(
        "the lanes of `{item}` need {extent} points of `{func}` along `{variable}`, more than the {most} that they hold; make the block smaller, or the serial tile larger"
    )]
    Extent {
        /// The stage.
        item: String,
        /// The Func in registers.
        func: String,
        /// The dimension of the Func.
        variable: String,
        /// The points that a block needs along it.
        extent: i64,
        /// The points that the lanes hold.
        most: i64,
    },
}

impl Decision for Lanes {
    fn facts(&self) -> Facts {
        Facts {
            word: "lanes",
            about: "registers shared by a warp: each lane computes its part, and reads the rest from its neighbours by shuffles",
            edits: &[Edit::Neighbour(shared)],
            ..Facts::PLAIN
        }
    }

    fn refusals(&self, at: &Line<'_>) -> Refusals {
        match at.nest.filter(|nest| nest.nest.numbers.lanes) {
            Some(nest) => refusals(at, nest),
            None => Vec::new(),
        }
    }

    /// Whether the warps of a nest are rows of threads, and more than one lane has points.
    fn is_possible(&self, at: &Line<'_>) -> bool {
        let with_registers = at.nest.filter(|nest| !nest.nest.registers.is_empty());
        let footprint = with_registers.and_then(|nest| nest.footprint.as_ref());
        let Some([first, ..]) = footprint.and_then(|nest| nest.threads.as_deref()) else { return false };
        let is_row = is_pure(first.dim) && first.threads == i64::from(WARP);
        is_row && first.serial < first.extent && first.extent <= first.threads * first.serial
    }

    fn draw(&self, generator: &mut Generator<'_>, turn: Turn) {
        let Turn::Registers(kernel, item) = turn else { return };
        for _ in 0..TRIES {
            if !generator.draw.chance(DRAWN) || generator.rows_of_threads(kernel, item) {
                break;
            }
        }
    }
}

fn refusals(at: &Line<'_>, nest: &NestPlan) -> Refusals {
    let item = || at.item();
    if nest.nest.registers.is_empty() {
        return at.refuse(LanesRefusal::Funcs { item: item() });
    }
    let shuffled = at.problem.device().features().shuffle_lanes;
    if shuffled == 0 {
        return at.refuse(at.problem.no_feature(item(), "lanes", "shuffles among threads"));
    }
    let Some(footprint) = &nest.footprint else { return Vec::new() };
    let Some(lane) = footprint.lanes.filter(|_| shuffled == WARP) else {
        return at.refuse(LanesRefusal::Threads { item: item(), warp: WARP });
    };
    let (points, most) = (footprint.extent(lane), i64::from(WARP) * footprint.share(lane).1);
    if points > most {
        let variable = Names::new(at.problem.pipeline()).of_loop(nest.nest.item, lane);
        return at.refuse(LanesRefusal::Rounds { item: item(), variable, points, most, warp: WARP });
    }
    let threads = at.kernel.threads;
    if !threads.is_multiple_of(WARP.into()) {
        return at.refuse(LanesRefusal::Block { item: item(), threads, warp: WARP });
    }
    let funcs = nest.nest.registers.iter().enumerate();
    let broken = funcs.filter_map(|(i, func)| {
        let refusal = of_func(at, footprint, lane, *func)?;
        Some((nest.path.child(i), refusal.into()))
    });
    broken.collect()
}

/// What keeps lanes from sharing a Func.
fn of_func(at: &Line<'_>, footprint: &NestFootprint, lane: LoopKind, id: FuncId) -> Option<LanesRefusal> {
    let RegisterFootprint { thread, block, .. } = footprint.registers.get(&id)?;
    let names = Names::new(at.problem.pipeline());
    let (item, func) = (at.item(), names.of_func(id).to_string());
    if let Some(private) = private_read(at, id) {
        return Some(LanesRefusal::Private { item, func, private: names.of_func(private).to_string() });
    }
    let spread = match at.problem.spread(id, lane, &thread.points.dims, &at.plan.lowest) {
        Err(Unshared::Index) => return Some(LanesRefusal::Index { item, func }),
        Err(Unshared::Stages) => return Some(LanesRefusal::Stages { item, func }),
        Err(Unshared::Bytes(bytes)) => return Some(LanesRefusal::Bytes { item, func, bytes }),
        Ok(spread) => spread?,
    };
    if !spread.starts_with_block(thread, &block.points) {
        return Some(LanesRefusal::Index { item, func });
    }
    let (extent, most) = (block.points.dims[spread.dim].extent(), i64::from(WARP) * spread.step);
    (extent > most).then(|| {
        let of = Item::Stage(StageRef { func: id, stage: 0 });
        let variable = names.of_loop(of, LoopKind::Pure(spread.dim));
        LanesRefusal::Extent { item, func, variable, extent, most }
    })
}

/// A private Func that a Func in registers reads. Lanes without points have none of it.
fn private_read(at: &Line<'_>, func: FuncId) -> Option<FuncId> {
    let stages = at.problem.stages_of(func);
    let reads = at.problem.reads_through(stages, |func| at.plan.inlined.contains(func)).outside;
    let is_private = |read: &FuncId| at.plan.computing(*read).any(|(_, nest)| nest.nest.storage.is_private());
    reads.into_iter().find(is_private)
}

impl Generator<'_> {
    /// Gives a nest rows of threads, each a warp, with lanes that share what the nest has in registers.
    fn rows_of_threads(&mut self, kernel: StageRef, item: Item) -> bool {
        let loops = self.facts.problem.loops(item).into_iter();
        let mut dims: Vec<LoopKind> = loops.filter(|dim| is_pure(*dim)).collect();
        if dims.is_empty() {
            return false;
        }
        let lane = dims.remove(self.draw.position(dims.len()));
        let points = self.draw.between(1, MAX_POINTS);
        let tile = |dim: LoopKind, size: i64| Tile { dim, size: Size::Of(size as u32) };
        let (mut threads, mut serial) = (vec![tile(lane, WARP.into())], vec![tile(lane, points)]);
        if let Some(rows) = dims.first() {
            threads.push(tile(*rows, self.draw.power_of_two(MAX_WARPS)));
            serial.push(tile(*rows, self.draw.between(1, MAX_POINTS)));
            self.draw.shuffle(&mut serial);
        }
        let unroll = self.draw.chance(0.7);
        let width = i64::from(WARP) * points - self.draw.between(0, MAX_RIM);
        let mut next = self.schedule.clone();
        let Some(tree) = next.kernel_mut(kernel) else { return false };
        if item == Item::Stage(kernel) {
            tree.block.retain(|tile| tile.dim != lane);
            tree.block.insert(0, tile(lane, width));
        }
        if let Some(nest) = tree.nest_mut(item) {
            nest.mapping = Mapping::Threads(ThreadTiles { threads, serial, unroll });
            nest.numbers.lanes = true;
        }
        self.keep(next)
    }
}

/// The kernel with one nest whose lanes share what it has in registers, or no longer do.
fn shared(tree: &Tree<'_>, number: usize) -> Vec<RootItem> {
    if tree.nest(number).is_none_or(|nest| nest.registers.is_empty()) {
        return Vec::new();
    }
    vec![tree.with(number, |nest| nest.numbers.lanes = !nest.numbers.lanes)]
}
