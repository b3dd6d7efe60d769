//! The features of kernels.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `form` | linear forms of loop variables |
//! | `value` | expressions as such forms, away from edges |
//! | `flatten` | the accesses of a stage once inlined Funcs are written out |
//! | `operations` | arithmetic by class |
//! | `walk` | the loops of a nest, and where its variables are in them |
//! | `warps` | what the threads of a warp access at once |
//! | `traffic` | requests, sectors and wavefronts of accesses |
//! | `reads` | how much of what it reads a stage touches |
//! | `row` | the features of one stage |
//! | `block` | the nests of one kernel in order, and what they share |

mod block;
mod flatten;
mod form;
mod operations;
mod reads;
mod row;
mod traffic;
mod value;
mod walk;
mod warps;

use std::collections::BTreeSet;
use std::sync::Arc;

use ahash::RandomState;
use dashmap::DashMap;
use smallvec::SmallVec;
use warploom_lang::{FuncId, Pipeline, Regions};
use warploom_schedule::schedule::{Footprints, Geometry, RootItem, Schedule};
use warploom_schedule::{Dag, NodeSet, Source, StageId};
use warploom_target::Device;

use crate::features::block::Items;
use crate::features::flatten::{Flat, Flattening};
use crate::kernel::{ArrayTraffic, KernelFeatures};

/// The Funcs that are inlined into a stage, directly or through each other, in order.
type Inlined = SmallVec<[FuncId; 8]>;

/// One pipeline at one size on one device: what features are computed from.
///
/// Features of a kernel depend on the kernel and on the Funcs inlined into it, so that threads can share a subject.
///
/// ```
/// use warploom_cost::Subject;
/// use warploom_lang::*;
/// use warploom_schedule::schedule::Schedule;
/// use warploom_target::Device;
/// let (x, y) = vars!(x, y);
/// let input = Input::f32("input", 2);
/// let half = func("half", (x, y), input.at((x, y)) * 0.5);
/// let pipeline = Pipeline::new("halves", [half])?;
/// let request = Realisation::new(&pipeline)
///     .input("input", Region::of_extents(&[256, 256]))
///     .output("half", Region::of_extents(&[256, 256]));
/// let (regions, device) = (infer(&pipeline, &request)?, Device::preset("h200")?);
///
/// let subject = Subject::new(&pipeline, &regions, &device);
/// let text = "halves\n  kernel half block x 32, y 8 threads x 32, y 8\n";
/// let kernels = subject.of_schedule(&Schedule::parse(text, &pipeline)?);
/// let row = &kernels[0].rows[0].features;
/// // Eight warps, each of which reads four sectors.
/// assert_eq!(row.num_global_mem_loads_per_block, 32.0);
/// assert_eq!(kernels[0].blocks, 256.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Subject<'a> {
    pipeline: &'a Pipeline,
    regions: &'a Regions,
    device: &'a Device,
    dag: Dag,
    /// Stages written out, by what is inlined into them.
    flats: DashMap<(StageId, Inlined), Arc<Flat>, RandomState>,
}

impl<'a> Subject<'a> {
    /// A pipeline at the sizes that `regions` were inferred for.
    pub fn new(pipeline: &'a Pipeline, regions: &'a Regions, device: &'a Device) -> Subject<'a> {
        Subject { pipeline, regions, device, dag: Dag::new(pipeline), flats: DashMap::default() }
    }

    /// The pipeline.
    pub fn pipeline(&self) -> &'a Pipeline {
        self.pipeline
    }

    /// The sizes of everything.
    pub fn regions(&self) -> &'a Regions {
        self.regions
    }

    /// The device.
    pub fn device(&self) -> &'a Device {
        self.device
    }

    /// The pipeline's graph.
    pub fn dag(&self) -> &Dag {
        &self.dag
    }

    /// The features of each kernel in `item`, in order. `footprints` are those of exactly this item.
    pub fn features(
        &self,
        inlined: &BTreeSet<FuncId>,
        item: &RootItem,
        footprints: &Footprints,
    ) -> Vec<KernelFeatures> {
        Items::new(self, inlined, footprints, None).kernels(item)
    }

    /// The features of every kernel of a schedule, in order.
    pub fn of_schedule(&self, schedule: &Schedule) -> Vec<KernelFeatures> {
        let geometry = Geometry::new(self.pipeline, self.regions);
        let features = |item: &RootItem| {
            let footprints = geometry.footprints(&schedule.inlined, [item]);
            self.features(&schedule.inlined, item, &footprints)
        };
        schedule.root.iter().flat_map(features).collect()
    }

    /// What one block of each kernel in `item` does with each array, all launches together divided by their number:
    /// the block whose number along each tile is that of the middle of the full ones. It stands beside those tiles.
    pub fn middle_block(
        &self,
        inlined: &BTreeSet<FuncId>,
        item: &RootItem,
        footprints: &Footprints,
    ) -> Vec<(Vec<i64>, Vec<ArrayTraffic>)> {
        let middles: Vec<Vec<i64>> = footprints
            .kernels
            .iter()
            .map(|kernel| kernel.blocks.iter().map(|blocks| (blocks - 1) / 2).collect())
            .collect();
        let mut items = Items::new(self, inlined, footprints, Some(&middles));
        items.kernels(item);
        let arrays = items.arrays;
        middles.into_iter().zip(arrays).collect()
    }

    /// A stage with the Funcs that are inlined into it.
    fn flat(&self, stage: StageId, inlined: &BTreeSet<FuncId>) -> Arc<Flat> {
        let key = (stage, self.inlined_into(stage, inlined));
        if let Some(flat) = self.flats.get(&key) {
            return flat.clone();
        }
        let (pipeline, regions) = (self.pipeline, self.regions);
        let flattening = Flattening { pipeline, regions, dag: &self.dag, inlined: &key.1, stage };
        let flat = Arc::new(flattening.flat());
        self.flats.insert(key, flat.clone());
        flat
    }

    fn inlined_into(&self, stage: StageId, inlined: &BTreeSet<FuncId>) -> Inlined {
        let (mut found, mut seen) = (Inlined::new(), NodeSet::default());
        let mut pending: SmallVec<[StageId; 16]> = SmallVec::from_slice(&[stage]);
        while let Some(stage) = pending.pop() {
            for edge in &self.dag.stages()[stage].producers {
                let producer = self.dag.edges()[*edge].producer;
                let node = &self.dag.nodes()[producer];
                if let Source::Func(func) = node.source
                    && inlined.contains(&func)
                    && !seen.contains(producer)
                {
                    seen.insert(producer);
                    found.push(func);
                    pending.extend(node.stages.iter().copied());
                }
            }
        }
        found.sort_unstable();
        found
    }
}
