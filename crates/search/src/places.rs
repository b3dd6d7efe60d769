//! Where a Func can be computed.

use std::sync::Arc;

use warploom_lang::FuncId;
use warploom_schedule::LoopKind;
use warploom_schedule::schedule::{
    BlockItem, Item, Kernel, Mapping, Nest, RootItem, Size, StageRef, Storage, ThreadTiles, Tile,
};

use crate::bits::Bits;
use crate::edit::{Site, kernel, nest, nests, nests_mut, over_block, sites, with_kernel};
use crate::evaluate::Evaluator;
use crate::follow::{along, at_itself, following};
use crate::hash::Hashes;
use crate::reductions::{Variant, in_threads};
use crate::space::{Space, StageFacts};
use crate::state::{Kern, Sketch, State};
use crate::statistics::{Refusal, Statistics};
use crate::tiles::{Bounds, thread_tilings};

/// Vector dimensions are at least this long.
const MIN_VECTOR: i64 = 16;

/// A part of a reduction variable that is written out in a shared nest.
const CHUNK: u32 = 8;

/// Something to be done to a state.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// Kernels that are new, or take the place of those of the same stages.
    pub kernels: Vec<(Arc<RootItem>, Hashes)>,
    /// The Func whose kernels go, if they are not among the new ones.
    pub gone: Option<FuncId>,
    /// What is inlined afterwards.
    pub inlined: Bits,
    /// Whether it is a last resort.
    pub secondary: bool,
}

impl Change {
    /// The hash of what changes, at a depth.
    pub fn hash(&self, depth: usize) -> u64 {
        let mut words: Vec<u64> = self.kernels.iter().map(|(_, hashes)| hashes.at(depth)).collect();
        words.extend(self.inlined.words());
        crate::hash::of_words(&words)
    }
}

/// The places of one Func in one state.
pub(crate) struct Places<'a> {
    space: &'a Space<'a>,
    state: &'a State,
    func: FuncId,
    /// What is inlined beside the Func.
    inlined: Bits,
}

/// The kernel that holds all readers of a Func.
struct Home<'a> {
    item: &'a RootItem,
    kernel: &'a Kernel,
    /// Which of its nests read the Func.
    readers: Vec<bool>,
}

impl<'a> Places<'a> {
    pub fn new(space: &'a Space<'a>, state: &'a State, func: FuncId) -> Places<'a> {
        let mut inlined = state.inlined.clone();
        inlined.remove(space.dag.func_node(func));
        Places { space, state, func, inlined }
    }

    /// Computing it wherever it is used, if it can be.
    pub fn inline(&self) -> Option<Change> {
        let node = self.space.dag.func_node(self.func);
        if self.space.is_output(self.func) || self.space.dag.nodes()[node].has_updates() {
            return None;
        }
        let mut inlined = self.inlined.clone();
        inlined.insert(node);
        Some(Change { kernels: Vec::new(), gone: Some(self.func), inlined, secondary: false })
    }

    /// Whether nothing but inlining is worth a thought: the Func only moves indices, or stands between Funcs that are
    /// computed point by point.
    pub fn must_inline(&self) -> bool {
        let dag = &self.space.dag;
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

    /// A kernel for each of its stages: those it has, or new ones.
    pub fn root(&self) -> Change {
        let missing = self.space.stages_of(self.func).filter(|stage| self.state.kernel_of(*stage).is_none());
        let kernels = missing.map(|stage| hashed(self.space.default_kernel(stage))).collect();
        Change { kernels, gone: None, inlined: self.inlined.clone(), secondary: false }
    }

    /// Computing it in the kernel that reads it, if that is only one.
    pub fn fused(&self, evaluator: &Evaluator<'_>, counts: &mut Statistics) -> Vec<Change> {
        let Some(home) = self.home() else { return Vec::new() };
        let sites = sites(home.kernel, &home.readers);
        let mut changes = Vec::new();
        let mut points = f64::INFINITY;
        for site in &sites {
            let flat = self.flat(&home, site);
            let Some(kern) = self.judged(&flat, evaluator, counts) else { continue };
            let here = self.points(&kern);
            if here >= points {
                counts.refuse(Refusal::NoSmaller);
                continue;
            }
            points = here;
            changes.extend(self.threaded(&home, site, &kern));
            changes.push(flat);
        }
        changes.extend(self.private(&home, &sites));
        changes.extend(self.registers(&home));
        changes
    }

    /// The only kernel that reads the Func.
    fn home(&self) -> Option<Home<'a>> {
        let node = self.space.dag.func_node(self.func);
        let reads = |kern: &&Arc<Kern>| {
            let sketch = &kern.sketch;
            sketch.own.func != self.func && (sketch.reads.contains(node) || sketch.inlined.contains(node))
        };
        let mut kernels = self.state.kernels.iter().filter(reads);
        let (Some(kern), None) = (kernels.next(), kernels.next()) else { return None };
        if self.space.is_output(self.func) {
            return None;
        }
        let item = &*kern.sketch.item;
        let kernel = kernel(item)?;
        let nests = nests(&kernel.body).into_iter();
        let readers = nests.map(|nest| self.space.reads(nest, &self.inlined).0.contains(node)).collect();
        Some(Home { item, kernel, readers })
    }

    /// The change that puts items into the home kernel.
    fn put(&self, home: &Home<'_>, site: &Site, items: Vec<BlockItem>) -> Change {
        let item = with_kernel(home.item, |kernel| site.insert(kernel, items));
        self.home_becomes(item)
    }

    fn home_becomes(&self, item: RootItem) -> Change {
        let inlined = self.inlined.clone();
        Change { kernels: vec![hashed(item)], gone: Some(self.func), inlined, secondary: false }
    }

    fn flat(&self, home: &Home<'_>, site: &Site) -> Change {
        let stages = self.space.stages_of(self.func);
        let items =
            stages.map(|stage| BlockItem::Nest(nest(Item::Stage(stage), Storage::Shared, Mapping::Flat)));
        self.put(home, site, items.collect())
    }

    /// The home kernel after a change, if that is accepted.
    fn judged(
        &self,
        change: &Change,
        evaluator: &Evaluator<'_>,
        counts: &mut Statistics,
    ) -> Option<Arc<Kern>> {
        let (item, hashes) = change.kernels.first()?;
        let sketch = Sketch::new(self.space, item.clone(), *hashes, &change.inlined)?;
        match evaluator.judge(vec![sketch], counts).pop()? {
            Ok(kern) => Some(kern),
            Err(reason) => {
                counts.refuse(reason);
                None
            }
        }
    }

    /// The points of the Func at its place in a kernel, all stages together.
    fn points(&self, kern: &Kern) -> f64 {
        let extents = self.extents(kern).into_iter();
        extents.map(|(_, extents)| extents.iter().map(|extent| *extent as f64).product::<f64>()).sum()
    }

    /// The extents of each of the Func's stages at its place in a kernel.
    fn extents(&self, kern: &Kern) -> Vec<(StageRef, Vec<i64>)> {
        let Some(kernel) = kernel(&kern.sketch.item) else { return Vec::new() };
        let all = nests(&kernel.body).into_iter().zip(&kern.extents);
        let own = all.filter_map(|(nest, extents)| match nest.item {
            Item::Stage(stage) if stage.func == self.func => Some((stage, extents.clone())),
            _ => None,
        });
        own.collect()
    }

    /// Shared nests whose threads have tiles, where `kern` is the kernel with flat ones.
    fn threaded(&self, home: &Home<'_>, site: &Site, kern: &Kern) -> Vec<Change> {
        let stages = self.extents(kern);
        let Some((first, extents)) = stages.first() else { return Vec::new() };
        let dims: Vec<LoopKind> = self.space.stage(*first).pure.iter().map(|span| span.dim).collect();
        let of = |kind: &LoopKind, extents: &[i64]| match kind {
            LoopKind::Pure(d) => extents.get(*d).copied().unwrap_or(1),
            LoopKind::Reduction(_) => 1,
        };
        let sizes: Vec<i64> = dims.iter().map(|kind| of(kind, extents)).collect();
        let vector = sizes.iter().position(|extent| *extent >= MIN_VECTOR).unwrap_or(0);
        let block = i64::from(self.space.device.threads.per_block);
        let bounds = Bounds { vector: 64, other: 16, block, dims: 3 };
        let mut changes = Vec::new();
        for threads in thread_tilings(&sizes, vector, dims.len() == 1, &[], bounds) {
            for &unrolled in self.unrolled_updates(&stages) {
                let items = stages.iter().map(|(stage, extents)| {
                    let extent = |kind: &LoopKind| of(kind, extents);
                    let tiles = self.shares(*stage, &dims, &threads, vector, extent, unrolled)?;
                    let mapping = Mapping::Threads(tiles);
                    Some(BlockItem::Nest(nest(Item::Stage(*stage), Storage::Shared, mapping)))
                });
                let items: Option<Vec<BlockItem>> = items.collect();
                changes.extend(items.map(|items| self.put(home, site, items)));
            }
        }
        changes
    }

    /// Whether reduction loops of shared nests are written out in parts, too.
    fn unrolled_updates(&self, stages: &[(StageRef, Vec<i64>)]) -> &'static [bool] {
        let reduces = stages.iter().any(|(stage, _)| !self.space.stage(*stage).reductions.is_empty());
        if reduces { &[false, true] } else { &[false] }
    }

    /// The tiles of a stage that so many threads share, unless too much is left for each.
    fn shares(
        &self,
        stage: StageRef,
        dims: &[LoopKind],
        threads: &[i64],
        vector: usize,
        extent: impl Fn(&LoopKind) -> i64,
        unrolled: bool,
    ) -> Option<ThreadTiles> {
        let limits = &self.space.options.limits;
        let facts = self.space.stage(stage);
        let known = |kind: &LoopKind| facts.pure.iter().any(|span| span.dim == *kind);
        let order = std::iter::once(vector).chain((0..dims.len()).filter(|d| *d != vector));
        let order: Vec<usize> = order.filter(|d| *d < dims.len() && known(&dims[*d])).collect();
        let shared = order.iter().filter(|d| threads[**d] > 1);
        let shared = shared.map(|d| Tile { dim: dims[*d], size: size(threads[*d]) }).collect();
        let mut serial = if unrolled { chunk(facts) } else { Vec::new() };
        let mut points = 1;
        for d in order.iter().rev() {
            let share = (extent(&dims[*d]) + threads[*d] - 1) / threads[*d];
            points *= share;
            if share > limits.block_serial || points > limits.serial_points {
                return None;
            }
            if share > 1 {
                serial.push(Tile { dim: dims[*d], size: size(share) });
            }
        }
        Some(ThreadTiles { threads: shared, unroll: !serial.is_empty(), serial })
    }

    /// In memory of each thread's own, with the tiles of the nest that reads it.
    fn private(&self, home: &Home<'_>, sites: &[Site]) -> Vec<Change> {
        let all = nests(&home.kernel.body);
        let mut readers = all.iter().zip(&home.readers).filter(|(_, reads)| **reads);
        let Some((reader, _)) = readers.next() else { return Vec::new() };
        let Mapping::Threads(tiles) = &reader.mapping else { return Vec::new() };
        let Some(along) = along(self.space, reader, self.func, &self.inlined) else { return Vec::new() };
        let several = tiles.threads.iter().filter(|tile| tile.size != Size::Of(1));
        if !several.into_iter().all(|tile| along.contains(&Some(tile.dim))) {
            return Vec::new();
        }
        let mut changes = Vec::new();
        for site in sites {
            for variant in self.variants() {
                let items = self.private_items(tiles, &along, &variant);
                changes.push(self.put(home, site, items));
            }
        }
        changes
    }

    /// The ways to run the reduction loops of the Func's last update that has any.
    fn variants(&self) -> Vec<Variant> {
        match self.reducing() {
            Some(stage) => in_threads(self.space.stage(stage)),
            None => vec![Variant::default()],
        }
    }

    fn reducing(&self) -> Option<StageRef> {
        self.space.stages_of(self.func).filter(|stage| !self.space.stage(*stage).reductions.is_empty()).last()
    }

    fn private_items(
        &self,
        tiles: &ThreadTiles,
        along: &[Option<LoopKind>],
        variant: &Variant,
    ) -> Vec<BlockItem> {
        let stages: Vec<StageRef> = self.space.stages_of(self.func).collect();
        let varied = self.reducing();
        // From the last stage back, each with the tiles of the next one.
        let mut items: Vec<BlockItem> = Vec::new();
        let (mut tiles, mut along) = (tiles.clone(), along.to_vec());
        for stage in stages.into_iter().rev() {
            let plain = Variant::default();
            let variant = if varied == Some(stage) { variant } else { &plain };
            let own = following(self.space, stage, &tiles, &along, &variant.inner);
            let mapping = Mapping::Threads(own.clone());
            items.push(over_block(variant.over.clone(), nest(Item::Stage(stage), Storage::Private, mapping)));
            if self.space.stage(stage).pure.len() == along.len() {
                along = at_itself(self.space, self.func);
                tiles = own;
            }
        }
        items.reverse();
        items
    }

    /// In registers of the only nest that reads it.
    fn registers(&self, home: &Home<'_>) -> Option<Change> {
        let mut readers = (0..home.readers.len()).filter(|number| home.readers[*number]);
        let (Some(reader), None) = (readers.next(), readers.next()) else { return None };
        let item = with_kernel(home.item, |kernel| {
            let mut nests: Vec<&mut Nest> = nests_mut(&mut kernel.body);
            // What reads it there comes behind it.
            nests[reader].registers.insert(0, self.func);
        });
        Some(self.home_becomes(item))
    }
}

/// A kernel with its hashes.
pub(crate) fn hashed(item: RootItem) -> (Arc<RootItem>, Hashes) {
    let hashes = Hashes::of(&item);
    (Arc::new(item), hashes)
}

/// A part of the fastest reduction variable.
fn chunk(facts: &StageFacts) -> Vec<Tile> {
    let fastest = facts.reductions.iter().find(|span| span.extent > 1);
    fastest.map(|span| Tile { dim: span.dim, size: Size::Of(CHUNK) }).into_iter().collect()
}

fn size(size: i64) -> Size {
    u32::try_from(size).map_or(Size::All, Size::Of)
}
