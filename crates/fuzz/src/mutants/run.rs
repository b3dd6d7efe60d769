//! Mutates the kernels of many random pipelines.

use rayon::prelude::*;
use warploom_randpipe::{RandomPipeline, random_pipeline};
use warploom_schedule::schedule::Problem;
use warploom_target::Device;

use super::MutatedKernel;
use crate::case::Case;
use crate::check::Failure;
use crate::driver::{Options, Scheduler, pipeline_seed, schedule_seed};

/// Number of pipelines between counts of the kernels; a constant, so that results do not depend on the number of
/// threads.
const BATCH: u64 = 8;

/// The mutants of a run.
#[derive(Debug, Default)]
pub struct Mutated {
    /// Number of pipelines that were tried.
    pub pipelines: u64,
    /// The kernels that have something to mutate.
    pub kernels: Vec<FoundKernel>,
    /// Pairs that fail unchanged: the seed of the schedule, and what is wrong.
    pub failures: Vec<(u64, Failure)>,
}

/// A kernel of a random pipeline under a random schedule, and its mutants.
#[derive(Clone, Debug)]
pub struct FoundKernel {
    /// The pipeline and the schedule. The case's seed is that of the pipeline.
    pub case: Case,
    /// Seed of the schedule if it is a random one; otherwise just an identifier.
    pub schedule_seed: u64,
    /// The kernel with its mutants.
    pub mutated: MutatedKernel,
}

/// Mutates the first `kernels` kernels with barriers or atomics that [`fuzz`](crate::fuzz()) checks with these
/// options, and checks every mutant in the simulator. There are fewer if the pipelines have fewer.
///
/// The results depend only on the options and on `schedules`, not on threads or time. After every pipeline,
/// `progress` is called with the number of its kernels, from any thread.
///
/// # Errors
/// If the threads cannot be started.
pub fn mutate(
    kernels: usize,
    options: &Options,
    device: &Device,
    schedules: &Scheduler<'_>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Mutated, rayon::ThreadPoolBuildError> {
    options.on_threads(|| {
        let mut all = Mutated::default();
        while all.pipelines < options.pipelines && all.kernels.len() < kernels {
            let end = (all.pipelines + BATCH).min(options.pipelines);
            let batch = (all.pipelines..end).into_par_iter().map(|number| {
                let pairs = pairs(pipeline_seed(options.seed, number), options, device, schedules);
                progress(pairs.iter().map(|(.., mutated)| mutated.as_ref().map_or(0, Vec::len) as u64).sum());
                pairs
            });
            let batch: Vec<Vec<Pair>> = batch.collect();
            batch.into_iter().flatten().for_each(|pair| all.add(pair));
            all.pipelines = end;
        }
        all.kernels.truncate(kernels);
        all
    })
}

/// A pipeline under a schedule, the schedule's seed, and the mutants.
type Pair = (Case, u64, Result<Vec<MutatedKernel>, Failure>);

impl Mutated {
    fn add(&mut self, (case, schedule_seed, mutated): Pair) {
        match mutated {
            Ok(kernels) => self.kernels.extend(kernels.into_iter().map(|mutated| FoundKernel {
                case: case.clone(),
                schedule_seed,
                mutated,
            })),
            Err(failure) => self.failures.push((schedule_seed, failure)),
        }
    }
}

fn pairs(seed: u64, options: &Options, device: &Device, schedules: &Scheduler<'_>) -> Vec<Pair> {
    let RandomPipeline { pipeline, request, .. } = random_pipeline(seed, &options.random);
    let Ok(problem) = Problem::new(&pipeline, &request, device) else { return Vec::new() };
    let pair = |(number, schedule)| {
        let case = Case { pipeline: pipeline.clone(), request: request.clone(), schedule, seed };
        let mutated = case.mutate(device);
        (case, schedule_seed(seed, number), mutated)
    };
    (0..).zip(schedules(&problem, seed)).map(pair).collect()
}
