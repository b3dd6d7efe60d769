//! Where a Func can be computed.

use std::sync::Arc;

use warploom_lang::FuncId;
use warploom_plan::decisions::atomic_shares;
use warploom_schedule::{
    BlockItem, Item, Kernel, LoopKind, Loops, Nest, NodeSet, RootItem, Site, Size, StageRef, ThreadTiles,
    Tile,
};

use crate::cooperative::{StageExtents, cooperative_tilings};
use crate::evaluate::Evaluator;
use crate::propagate::{own_loops, propagated, reader_loops};
use crate::reductions::{Variant, in_threads};
use crate::sampling::KernelOption;
use crate::space::{SearchSpace, Span};
use crate::state::{EvaluatedKernel, Sketch, State};
use crate::statistics::{Refusal, Statistics};

/// Groups of options per site: flat, with thread tiles, private.
const GROUPS: u64 = 3;

/// The largest mean number of blocks that compute a point, in kernels that own their producers: the last rows of blocks
/// may overlap.
const MOST_SHARED: f64 = 1.25;

/// A change that inlines a Func or computes it at root.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub func: FuncId,
    /// Whether its kernels are removed.
    pub goes: bool,
    /// The new kernels.
    pub kernels: Vec<RootItem>,
    /// The Funcs that are inlined after the change.
    pub inlined: NodeSet,
}

/// The places of one Func in one state.
pub(crate) struct Places<'a> {
    space: &'a SearchSpace<'a>,
    state: &'a State,
    func: FuncId,
    /// The inlined Funcs, without this one.
    pub inlined: NodeSet,
}

/// The kernel that contains all readers of a Func.
struct Home<'a> {
    item: &'a RootItem,
    kernel: &'a Kernel,
    /// Which of its nests read the Func.
    readers: Vec<bool>,
}

impl<'a> Places<'a> {
    pub fn new(space: &'a SearchSpace<'a>, state: &'a State, func: FuncId) -> Places<'a> {
        let mut inlined = state.inlined.clone();
        inlined.remove(space.dag.func_node(func));
        Places { space, state, func, inlined }
    }

    /// Recomputes it at every use, if it can be inlined.
    pub fn inline(&self) -> Option<Change> {
        let node = self.space.dag.func_node(self.func);
        if self.space.is_output(self.func) || self.space.dag.nodes()[node].has_updates() {
            return None;
        }
        let mut inlined = self.inlined.clone();
        inlined.insert(node);
        Some(Change { func: self.func, goes: true, kernels: Vec::new(), inlined })
    }

    /// Whether inlining is the only option worth trying: the Func only permutes or shifts indices, or is pointwise
    /// between pointwise Funcs.
    pub fn must_inline(&self) -> bool {
        let dag = self.space.dag;
        let node = &dag.nodes()[dag.func_node(self.func)];
        if node.is_boundary_condition || node.is_wrapper {
            return true;
        }
        let [edge] = node.consumers.as_slice() else { return false };
        let consumer = &dag.nodes()[dag.stages()[dag.edges()[*edge].consumer].node];
        let stages = node.stages.iter().flat_map(|stage| &dag.stages()[*stage].producers);
        let mut producers = stages.map(|edge| &dag.nodes()[dag.edges()[*edge].producer]);
        node.is_pointwise
            && producers.all(|producer| producer.is_pointwise)
            && (consumer.is_pointwise || consumer.is_boundary_condition)
    }

    /// One kernel per stage: the existing ones, or new ones.
    pub fn root(&self) -> Change {
        let missing = self.space.stages_of(self.func).filter(|stage| self.state.kernel_of(*stage).is_none());
        let kernels = missing.map(|stage| self.space.default_kernel(stage)).collect();
        Change { func: self.func, goes: false, kernels, inlined: self.inlined.clone() }
    }

    /// Computes it in the kernel that reads it, if there is only one.
    pub fn fused(&self, evaluator: &Evaluator<'_>, counts: &mut Statistics) -> Vec<KernelOption> {
        let Some(home) = self.home() else { return Vec::new() };
        let sites = home.kernel.sites(&home.readers);
        let mut options = Vec::new();
        let mut points = f64::INFINITY;
        for (number, site) in sites.iter().enumerate() {
            let group = GROUPS * number as u64;
            let Some(flat) = self.flat(&home, site) else { continue };
            let Some(evaluated) = self.judged(&flat, evaluator, counts) else { continue };
            let here = self.points(&evaluated);
            if here >= points {
                counts.refuse(Refusal::NoSmaller);
                continue;
            }
            points = here;
            let threaded = self.threaded(&home, site, &evaluated).into_iter();
            // Weights that do not know atomics leave their cost to the analytic model. That is good enough here: the
            // alternative is one thread per histogram.
            let atomic = self.atomic(&home, site, &evaluated).into_iter();
            options.extend(threaded.chain(atomic).map(|item| (group + 1, evaluated.sketch.with_tiles(item))));
            options.push((group, flat));
        }
        options.extend(self.private(&home, &sites));
        options.extend(self.registers(&home).map(|sketch| (u64::MAX, sketch)));
        options.into_iter().map(|(group, sketch)| KernelOption { sketch, group, secondary: false }).collect()
    }

    /// The kernel of `owner` with the Func in shared memory, if nothing else reads the Func and no two blocks compute a
    /// point of it.
    pub fn owned(
        &self,
        owner: StageRef,
        evaluator: &Evaluator<'_>,
        counts: &mut Statistics,
    ) -> Option<Arc<EvaluatedKernel>> {
        let home = self.home().filter(|home| home.kernel.stage == owner)?;
        let sites = home.kernel.sites(&home.readers);
        let site = sites.first()?;
        let flat = self.judged(&self.flat(&home, site)?, evaluator, counts)?;
        let atomic = self.atomic(&home, site, &flat).into_iter().map(|item| flat.sketch.with_tiles(item));
        let atomic = evaluator.judge(atomic.collect(), counts).into_iter().flatten();
        let evaluated = atomic
            .fold(flat, |best, evaluated| if evaluated.cost() < best.cost() { evaluated } else { best });
        let own = self.space.stage(owner);
        let blocks = home.kernel.block.iter().filter_map(|tile| {
            let span = own.pure.iter().find(|span| span.dim == tile.dim)?;
            Some((span.extent as f64 / tile.size.of(span.extent) as f64).ceil())
        });
        let blocks: f64 = blocks.product();
        let once = self.extents(&evaluated).into_iter().all(|(stage, extents)| {
            let along = |span: &Span| match span.dim {
                LoopKind::Pure(d) => extents[d] as f64 / span.extent as f64,
                LoopKind::Reduction(_) => 1.0,
            };
            self.space.stage(stage).pure.iter().map(along).product::<f64>() * blocks <= MOST_SHARED
        });
        once.then_some(evaluated)
    }

    /// The only kernel that reads the Func.
    fn home(&self) -> Option<Home<'a>> {
        let node = self.space.dag.func_node(self.func);
        let reads = |evaluated: &&Arc<EvaluatedKernel>| {
            let sketch = &evaluated.sketch;
            sketch.own.func != self.func && (sketch.reads.contains(node) || sketch.inlined.contains(node))
        };
        let mut kernels = self.state.kernels.iter().filter(reads);
        let (Some(evaluated), None) = (kernels.next(), kernels.next()) else { return None };
        if self.space.is_output(self.func) {
            return None;
        }
        let item = &*evaluated.sketch.item;
        let kernel = item.kernels().next()?;
        let readers = kernel.nests().map(|nest| self.space.reads(nest, &self.inlined).0.contains(node));
        Some(Home { item, kernel, readers: readers.collect() })
    }

    /// The home kernel with items inserted at a site.
    fn put(home: &Home<'_>, site: &Site, items: Vec<BlockItem>) -> RootItem {
        home.item.with(|kernel| site.insert(kernel, items))
    }

    fn sketch(&self, item: RootItem) -> Option<Sketch> {
        Sketch::new(self.space, item, &self.inlined)
    }

    fn flat(&self, home: &Home<'_>, site: &Site) -> Option<Sketch> {
        let items = self.space.stages_of(self.func).map(|stage| Nest::shared(stage).into());
        self.sketch(Self::put(home, site, items.collect()))
    }

    /// The home kernel after a change, if it is accepted.
    fn judged(
        &self,
        sketch: &Sketch,
        evaluator: &Evaluator<'_>,
        counts: &mut Statistics,
    ) -> Option<Arc<EvaluatedKernel>> {
        match evaluator.judge(vec![sketch.clone()], counts).pop()? {
            Ok(kernel) => Some(kernel),
            Err(reason) => {
                counts.refuse(reason);
                None
            }
        }
    }

    /// The number of points of the Func inside a kernel, summed over its stages.
    fn points(&self, kernel: &EvaluatedKernel) -> f64 {
        let extents = self.extents(kernel).into_iter();
        extents.map(|(_, extents)| extents.iter().map(|extent| *extent as f64).product::<f64>()).sum()
    }

    /// The extents of each of the Func's stages inside a kernel.
    fn extents(&self, kernel: &EvaluatedKernel) -> StageExtents {
        let own = kernel.sketch.item.nests().zip(&kernel.extents).filter_map(|(nest, extents)| {
            let stage = nest.item.stage().filter(|stage| stage.func == self.func)?;
            Some((stage, extents.clone()))
        });
        own.collect()
    }

    /// Shared nests with thread tiles. `kernel` is that with flat nests.
    fn threaded(&self, home: &Home<'_>, site: &Site, kernel: &EvaluatedKernel) -> Vec<RootItem> {
        let stages = self.extents(kernel);
        let shared =
            |(stage, tiles): (&(StageRef, Vec<i64>), ThreadTiles)| Nest::shared(stage.0).mapped(tiles).into();
        let tilings = cooperative_tilings(self.space, &stages).into_iter();
        tilings.map(|tiles| Self::put(home, site, stages.iter().zip(tiles).map(shared).collect())).collect()
    }

    /// Shared nests whose last stage is an atomic update, after flat ones.
    fn atomic(&self, home: &Home<'_>, site: &Site, kernel: &EvaluatedKernel) -> Vec<RootItem> {
        let mut stages = self.extents(kernel);
        let Some((last, extents)) = stages.pop() else { return Vec::new() };
        let flat = || stages.iter().map(|(stage, _)| Nest::shared(*stage).into());
        let ways = atomic_shares(self.space.problem, last, &extents).into_iter();
        ways.map(|nest| Self::put(home, site, flat().chain([nest.into()]).collect())).collect()
    }

    /// In private memory of each thread, with the tiles of the nest that reads it.
    fn private(&self, home: &Home<'_>, sites: &[Site]) -> Vec<(u64, Sketch)> {
        let mut nests = home.kernel.nests().zip(&home.readers);
        let Some((reader, _)) = nests.find(|(_, reads)| **reads) else { return Vec::new() };
        let Some(tiles) = reader.mapping.tiles() else { return Vec::new() };
        if reader.item == Item::Stage(home.kernel.stage) && self.in_rounds(home.kernel, tiles) {
            return Vec::new();
        }
        let Some(reader_loops) = reader_loops(self.space, reader, self.func, &self.inlined) else {
            return Vec::new();
        };
        let several = tiles.threads.iter().filter(|tile| tile.size != Size::Of(1));
        if !several.into_iter().all(|tile| reader_loops.contains(&Some(tile.dim))) {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (number, site) in sites.iter().enumerate() {
            for variant in self.variants() {
                let items = self.private_items(tiles, &reader_loops, &variant);
                // Loops over the block pay off only once something is placed inside them, so their
                // variants form their own groups.
                let loops = variant.over.len() as u64;
                let group = GROUPS * (number as u64 + sites.len() as u64 * loops) + 2;
                found.extend(self.sketch(Self::put(home, site, items)).map(|sketch| (group, sketch)));
            }
        }
        found
    }

    /// Whether the threads of a kernel's own nest need several rounds. Rounds are not unrolled, so values that live
    /// across them spill to local memory.
    fn in_rounds(&self, kernel: &Kernel, tiles: &ThreadTiles) -> bool {
        let size = |all: &[Tile], dim: LoopKind, extent: i64| {
            all.iter().find(|tile| tile.dim == dim).map_or(1, |tile| tile.size.of(extent))
        };
        self.space.stage(kernel.stage).pure.iter().any(|span| {
            let Span { dim, extent } = *span;
            size(&tiles.threads, dim, extent) * size(&tiles.serial, dim, extent)
                < size(&kernel.block, dim, extent)
        })
    }

    /// The variants of the reduction loops of the Func's last stage that has any.
    fn variants(&self) -> Vec<Variant> {
        match self.reducing() {
            Some(stage) => in_threads(self.space.stage(stage)),
            None => vec![Variant::default()],
        }
    }

    fn reducing(&self) -> Option<StageRef> {
        self.space.stages_of(self.func).filter(|stage| !self.space.stage(*stage).reductions.is_empty()).last()
    }

    pub fn private_items(
        &self,
        tiles: &ThreadTiles,
        reader_loops: &[Option<LoopKind>],
        variant: &Variant,
    ) -> Vec<BlockItem> {
        let stages: Vec<StageRef> = self.space.stages_of(self.func).collect();
        let varied = self.reducing();
        // From the last stage to the first, each with the tiles of the next one.
        let mut items: Vec<BlockItem> = Vec::new();
        let (mut tiles, mut reader_loops) = (tiles.clone(), reader_loops.to_vec());
        for stage in stages.into_iter().rev() {
            let plain = Variant::default();
            let variant = if varied == Some(stage) { variant } else { &plain };
            let own = propagated(self.space.stage(stage), &tiles, &reader_loops, &variant.inner);
            items.push(Loops::holding(variant.over.clone(), Nest::private(stage).mapped(own.clone())));
            if self.space.stage(stage).pure.len() == reader_loops.len() {
                reader_loops = own_loops(self.space, self.func);
                tiles = own;
            }
        }
        items.reverse();
        items
    }

    /// In registers of the only nest that reads it.
    fn registers(&self, home: &Home<'_>) -> Option<Sketch> {
        let mut readers = (0..home.readers.len()).filter(|number| home.readers[*number]);
        let (Some(reader), None) = (readers.next(), readers.next()) else { return None };
        self.sketch(home.item.with(|kernel| {
            if let Some(nest) = kernel.nests_mut().nth(reader) {
                // Funcs that read it there come after it.
                nest.registers.insert(0, self.func);
            }
        }))
    }
}
