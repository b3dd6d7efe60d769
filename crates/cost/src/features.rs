//! The features of kernels.
//!
//! | file | contents |
//! | --- | --- |
//! | `form` | linear forms of loop variables |
//! | `value` | expressions as linear forms, away from the edges |
//! | `flatten` | the accesses of a stage after inlining |
//! | `operations` | arithmetic operations by class |
//! | `walk` | the loops of a nest, and its variables as functions of them |
//! | `warps` | simultaneous accesses of the threads of a warp |
//! | `traffic` | requests, sectors and wavefronts of accesses |
//! | `reads` | footprints of a stage's reads |
//! | `merged` | which accesses the points of a thread share |
//! | `registers` | Funcs that a nest has in registers, also those that lanes share |
//! | `atomics` | atomics, and how many meet at one element |
//! | `arrays` | the accesses of one block to each array |
//! | `row` | the features of one stage |
//! | `block` | the nests of one kernel in order, and the state that they share |

mod arrays;
mod atomics;
mod block;
mod flatten;
mod form;
mod keep;
mod live;
mod merged;
mod operations;
mod reads;
mod registers;
mod rounded;
mod row;
mod traffic;
mod value;
mod vectors;
mod walk;
mod warps;

use std::sync::Arc;

use ahash::RandomState;
use dashmap::DashMap;
use smallvec::SmallVec;
use warploom_lang::{FuncId, IdVec};
use warploom_plan::{KernelId, KernelPlan, Plan, Problem};
use warploom_schedule::{FuncSet, NodeSet, Schedule, Source, StageId};

use crate::features::block::Items;
use crate::features::flatten::{Flat, Flattening};
use crate::kernel::{ArrayTraffic, KernelFeatures};
use crate::model::CostModel;

/// The Funcs that are inlined into a stage, directly or through each other, in order.
type Inlined = SmallVec<[FuncId; 8]>;

/// Computes the features of kernels of one problem.
///
/// The features of a kernel depend only on the kernel and on the Funcs inlined into it. Threads can
/// share a featurizer.
///
/// ```
/// use warploom_cost::Featurizer;
/// use warploom_lang::*;
/// use warploom_plan::Problem;
/// use warploom_schedule::Schedule;
/// use warploom_target::Device;
/// let (x, y) = vars!(x, y);
/// let input = Input::f32("input", 2);
/// let half = func("half", (x, y), input.at((x, y)) * 0.5);
/// let pipeline = Pipeline::new("halves", [half])?;
/// let request = Realisation::new(&pipeline)
///     .input("input", Region::of_extents(&[256, 256]))
///     .output("half", Region::of_extents(&[256, 256]));
/// let problem = Problem::new(&pipeline, &request, &Device::preset("h200")?)?;
///
/// let text = "halves\n  kernel half block x 32, y 8 threads x 32, y 8\n";
/// let kernels = Featurizer::new(&problem).of_schedule(&Schedule::parse(text, &pipeline)?);
/// let row = &kernels[0].rows[0].features;
/// // Eight warps, each of which reads four sectors.
/// assert_eq!(row.num_global_mem_loads_per_block, 32.0);
/// assert_eq!(kernels[0].blocks, 256.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Featurizer {
    problem: Problem,
    /// Flattened stages, by stage, the Funcs inlined into it, and whether all points are away from the edges.
    flats: DashMap<(StageId, Inlined, bool), Arc<Flat>, RandomState>,
}

impl Featurizer {
    /// Makes a featurizer with an empty cache of flattened stages.
    pub fn new(problem: &Problem) -> Featurizer {
        Featurizer { problem: problem.clone(), flats: DashMap::default() }
    }

    /// The problem whose kernels it describes.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The features of each kernel of a plan, in order.
    pub fn features(&self, plan: &Plan) -> Vec<KernelFeatures> {
        Items::new(self, plan, None).kernels()
    }

    /// The features of every kernel of a schedule, in order; none if the problem cannot be rewritten as
    /// the schedule says.
    pub fn of_schedule(&self, schedule: &Schedule) -> Vec<KernelFeatures> {
        if schedule.rewrites != self.problem.pipeline().rewrites() {
            let rewritten = self.problem.rewritten(&schedule.rewrites);
            return rewritten.map_or_else(|_| Vec::new(), |it| Featurizer::new(&it).of_schedule(schedule));
        }
        self.features(&self.problem.plan(schedule))
    }

    /// The predicted time of all kernels of a schedule, in microseconds.
    pub fn cost(&self, schedule: &Schedule, model: &dyn CostModel) -> f64 {
        self.cost_of_kernels(&self.of_schedule(schedule), model)
    }

    /// The predicted time of all kernels of a plan, in microseconds.
    pub fn cost_of(&self, plan: &Plan, model: &dyn CostModel) -> f64 {
        self.cost_of_kernels(&self.features(plan), model)
    }

    fn cost_of_kernels(&self, features: &[KernelFeatures], model: &dyn CostModel) -> f64 {
        let mut costs = Vec::with_capacity(features.len());
        model.costs(self.problem.dag(), &features.iter().collect::<Vec<_>>(), &mut costs);
        costs.iter().sum()
    }

    /// For each kernel of a plan, the accesses of one block to each array, averaged over the
    /// launches. The block is the middle one along each tile; its indices come first in the result.
    pub fn middle_block(&self, plan: &Plan) -> Vec<(Vec<i64>, Vec<ArrayTraffic>)> {
        let middle = |kernel: &KernelPlan| -> Vec<i64> {
            kernel.blocks.iter().map(|blocks| (blocks - 1) / 2).collect()
        };
        let middles: IdVec<KernelId, Vec<i64>> = plan.kernels.values().map(middle).collect();
        let mut items = Items::new(self, plan, Some(&middles));
        items.kernels();
        middles.values().cloned().zip(items.arrays).collect()
    }

    /// A stage flattened with the Funcs that are inlined into it, at points `inside` the edges that decide choices between
    /// reads or at all points.
    fn flat(&self, stage: StageId, inlined: &FuncSet, inside: bool) -> Arc<Flat> {
        let key = (stage, self.inlined_into(stage, inlined), inside);
        if let Some(flat) = self.flats.get(&key) {
            return flat.clone();
        }
        let (pipeline, regions) = (self.problem.pipeline(), self.problem.regions());
        let dag = self.problem.dag();
        let flattening = Flattening { pipeline, regions, dag, inlined: &key.1, stage, inside };
        let flat = Arc::new(flattening.flat());
        self.flats.insert(key, flat.clone());
        flat
    }

    fn inlined_into(&self, stage: StageId, inlined: &FuncSet) -> Inlined {
        let dag = self.problem.dag();
        let (mut found, mut seen) = (Inlined::new(), NodeSet::default());
        let mut pending: SmallVec<[StageId; 16]> = SmallVec::from_slice(&[stage]);
        while let Some(stage) = pending.pop() {
            for edge in &dag.stages()[stage].producers {
                let producer = dag.edges()[*edge].producer;
                let node = &dag.nodes()[producer];
                if let Source::Func(func) = node.source
                    && inlined.contains(func)
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
