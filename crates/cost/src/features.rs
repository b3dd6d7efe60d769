//! The features of kernels.
//!
//! | file | contents |
//! | --- | --- |
//! | `block` | the features of one kernel: the parts of its body in order |
//! | `row` | the features of one stage |
//! | `traffic` | requests, sectors and wavefronts of accesses |
//! | `rounded` | the same where indices are rounded |
//! | `transactions` | sectors of global memory, wavefronts of shared memory |
//! | `reads` | footprints of a stage's reads |
//! | `merged` | which accesses the points of a thread share |
//! | `atomics` | atomics, and how many meet at one element |
//! | `arrays` | the accesses of one block to each array |

mod arrays;
mod atomics;
mod block;
mod merged;
mod reads;
mod rounded;
mod row;
mod traffic;
mod transactions;

use warploom_plan::body::Bodies;
use warploom_plan::{KernelId, Plan, Problem};
use warploom_schedule::Schedule;

use crate::kernel::{ArrayTraffic, KernelFeatures};
use crate::model::CostModel;

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
    bodies: Bodies,
}

impl Featurizer {
    /// Makes a featurizer with an empty cache of flattened stages.
    pub fn new(problem: &Problem) -> Featurizer {
        Featurizer { bodies: Bodies::new(problem) }
    }

    /// The problem whose kernels it describes.
    pub fn problem(&self) -> &Problem {
        self.bodies.problem()
    }

    /// The features of each kernel of a plan, in order.
    pub fn features(&self, plan: &Plan) -> Vec<KernelFeatures> {
        plan.kernels.keys().map(|id| self.of_kernel(plan, id)).collect()
    }

    fn of_kernel(&self, plan: &Plan, id: KernelId) -> KernelFeatures {
        match self.problem().is_idle(plan.kernels[id].kernel.stage) {
            true => KernelFeatures::default(),
            false => block::of_body(self.problem(), plan, id, &self.bodies.body(plan, id)),
        }
    }

    /// The features of every kernel of a schedule, in order; none if the problem cannot be rewritten as
    /// the schedule says.
    pub fn of_schedule(&self, schedule: &Schedule) -> Vec<KernelFeatures> {
        if schedule.rewrites != self.problem().pipeline().rewrites() {
            let rewritten = self.problem().rewritten(&schedule.rewrites);
            return rewritten.map_or_else(|_| Vec::new(), |it| Featurizer::new(&it).of_schedule(schedule));
        }
        self.features(&self.problem().plan(schedule))
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
        model.costs(self.problem().dag(), &features.iter().collect::<Vec<_>>(), &mut costs);
        costs.iter().sum()
    }

    /// The accesses of one block of a kernel to each array, averaged over the launches. The block has these numbers along the
    /// tiles of the kernel.
    pub fn traffic(&self, plan: &Plan, id: KernelId, block: &[i64]) -> Vec<ArrayTraffic> {
        let kernel = &plan.kernels[id];
        if self.problem().is_idle(kernel.kernel.stage) {
            return Vec::new();
        }
        let body = self.bodies.body(plan, id).of_block(block, &kernel.blocks);
        arrays::of_body(self.problem(), plan, id, &body)
    }
}
