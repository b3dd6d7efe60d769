//! Random exchanges within warps: blocks of one warp, in which each thread has one point of a Func.

use warploom_schedule::{Item, Kernel, LoopKind, Size, StageRef, ThreadTiles, Tile};
use warploom_target::WARP;

use crate::footprint::NestFootprint;
use crate::plan::NestPlan;
use crate::random::Generator;

/// The probability that a kernel with Funcs in shared memory has blocks of one warp.
const ONE_WARP: f64 = 0.2;

impl Generator<'_> {
    /// Gives some kernels with Funcs in shared memory blocks of one warp.
    pub(super) fn warps(&mut self) {
        let exchanges = |kernel: &&Kernel| {
            kernel.nests().any(|nest| nest.storage.is_shared() && nest.item.stage().is_some())
        };
        let kernels: Vec<StageRef> =
            self.schedule.kernels().filter(exchanges).map(|kernel| kernel.stage).collect();
        for kernel in kernels {
            if self.draw.chance(ONE_WARP) && self.one_warp_per_block(kernel) {
                self.one_point_per_thread(kernel);
            }
        }
    }

    /// Gives a kernel blocks with as many points as a warp has threads, or fewer.
    fn one_warp_per_block(&mut self, kernel: StageRef) -> bool {
        let (mut block, mut threads, mut left) = (Vec::new(), Vec::new(), i64::from(WARP));
        for dim in self.facts.problem.loops(Item::Stage(kernel)) {
            if let LoopKind::Pure(_) = dim {
                let size = self.draw.power_of_two(left);
                left /= size;
                block.push(Tile { dim, size: Size::Of(size as u32) });
            }
        }
        // Threads without a point fill up the warp.
        for (position, &Tile { dim, size }) in block.iter().enumerate() {
            let idle = if position + 1 == block.len() { left } else { 1 };
            threads.push(Tile { dim, size: Size::Of((size.of(i64::MAX) * idle) as u32) });
        }
        let mut next = self.schedule.clone();
        if let Some(kernel) = next.kernel_mut(kernel) {
            kernel.block.retain(|tile| matches!(tile.dim, LoopKind::Reduction(_)));
            kernel.block.extend(block);
            let own = kernel.nest_mut(Item::Stage(kernel.stage));
            own.into_iter().for_each(|nest| nest.mapping = one_point_each(threads.clone()).into());
        }
        self.keep(next)
    }

    /// Gives every thread one point of the Funcs in shared memory that have as many points as a warp has threads, or
    /// fewer.
    fn one_point_per_thread(&mut self, kernel: StageRef) {
        let plan = self.facts.problem.plan(&self.schedule);
        let small = |(info, nest): &(&NestPlan, &NestFootprint)| {
            let of_kernel = plan.kernels[info.kernel].kernel.stage == kernel;
            of_kernel && info.nest.storage.is_shared() && nest.points.points() <= WARP.into()
        };
        let sized = plan.nests.values().filter_map(|info| Some((info, info.footprint.as_ref()?)));
        let mut tiles: Vec<(Item, Vec<Tile>)> = Vec::new();
        for (info, nest) in sized.filter(small) {
            let loops = self.facts.problem.loops(info.nest.item);
            let pure = loops.into_iter().filter(|dim| matches!(dim, LoopKind::Pure(_)));
            let tile = |dim: LoopKind| Tile { dim, size: Size::Of(nest.extent(dim) as u32) };
            tiles.push((info.nest.item, pure.map(tile).collect()));
        }
        for (item, threads) in tiles {
            let mut next = self.schedule.clone();
            let nest = next.kernel_mut(kernel).and_then(|kernel| kernel.nest_mut(item));
            nest.into_iter().for_each(|nest| nest.mapping = one_point_each(threads.clone()).into());
            self.keep(next);
        }
    }
}

fn one_point_each(threads: Vec<Tile>) -> ThreadTiles {
    ThreadTiles { threads, ..ThreadTiles::default() }
}
