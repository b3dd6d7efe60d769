//! Random nests whose lanes share Funcs in registers, and nests that slide.

use warploom_schedule::{Item, LoopKind, Mapping, Nest, Size, StageRef, ThreadTiles, Tile};
use warploom_target::WARP;

use crate::random::Generator;

/// The probability that a nest with Funcs in registers gets rows of threads whose lanes share them.
const LANES: f64 = 0.7;

/// The probability that such a nest slides.
const SLIDE: f64 = 0.5;

/// How often to draw tiles of such a nest.
const TRIES: usize = 4;

/// The maximum number of adjacent points of a lane, and of rows of a thread.
const MAX_POINTS: i64 = 3;

/// The maximum number of threads beyond those of one warp, in warps.
const MAX_WARPS: i64 = 4;

/// The maximum number of points by which a block has less than the lanes of a warp.
const MAX_RIM: i64 = 12;

impl Generator<'_> {
    /// Lets the lanes of some nests share Funcs in registers, and lets some slide.
    pub(super) fn lanes(&mut self) {
        let kernels: Vec<StageRef> = self.schedule.kernels().map(|kernel| kernel.stage).collect();
        for kernel in kernels {
            for item in self.with_registers(kernel) {
                for _ in 0..TRIES {
                    if !self.draw.chance(LANES) || self.rows_of_threads(kernel, item) {
                        break;
                    }
                }
                if self.draw.chance(SLIDE) {
                    self.change(kernel, item, |nest| nest.numbers.slide = true);
                }
            }
        }
    }

    /// The nests of a kernel that have Funcs in registers.
    fn with_registers(&self, stage: StageRef) -> Vec<Item> {
        let kernel = self.schedule.kernels().find(|kernel| kernel.stage == stage);
        let nests = kernel.into_iter().flat_map(|kernel| kernel.nests());
        nests.filter(|nest| !nest.registers.is_empty()).map(|nest| nest.item).collect()
    }

    /// Changes a nest, if that is legal.
    fn change(&mut self, kernel: StageRef, item: Item, change: impl Fn(&mut Nest)) -> bool {
        let mut next = self.schedule.clone();
        let nest = next.kernel_mut(kernel).and_then(|kernel| kernel.nest_mut(item));
        nest.into_iter().for_each(change);
        self.keep(next)
    }

    /// Gives a nest rows of threads, each a warp, with lanes that share what the nest has in registers.
    fn rows_of_threads(&mut self, kernel: StageRef, item: Item) -> bool {
        let loops = self.facts.problem.loops(item).into_iter();
        let mut dims: Vec<LoopKind> = loops.filter(|dim| matches!(dim, LoopKind::Pure(_))).collect();
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
