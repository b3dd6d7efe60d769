//! Mutates the kernels of many random pipelines.

use std::collections::BTreeMap;

use rayon::prelude::*;
use warploom_plan::Problem;
use warploom_randpipe::{RandomPipeline, random_pipeline};
use warploom_target::Device;

use super::MutatedKernel;
use crate::case::Case;
use crate::check::{Failure, Verdict};
use crate::driver::{Options, Scheduler, pipeline_seed, schedule_seed};
use crate::skip::Reason;

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
    /// Number of pairs with nothing to check, by reason.
    pub skipped: BTreeMap<Reason, u64>,
    /// Pairs that fail unchanged: the seed of the schedule, and the failure.
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
                let kernels =
                    |pair: &Pair| pair.mutated.as_ref().map_or(0, |(kernels, _)| kernels.len() as u64);
                progress(pairs.iter().flatten().map(kernels).sum());
                pairs
            });
            let batch: Vec<Pairs> = batch.collect();
            for pairs in batch {
                match pairs {
                    Ok(pairs) => pairs.into_iter().for_each(|pair| all.add(pair)),
                    Err(reason) => *all.skipped.entry(reason).or_insert(0) += 1,
                }
            }
            all.pipelines = end;
        }
        all.kernels.truncate(kernels);
        all
    })
}

/// A pipeline under a schedule, with its mutants.
struct Pair {
    case: Case,
    schedule_seed: u64,
    mutated: Result<(Vec<MutatedKernel>, Verdict), Failure>,
}

/// The pairs of a pipeline, or why it has none.
type Pairs = Result<Vec<Pair>, Reason>;

impl Mutated {
    fn add(&mut self, Pair { case, schedule_seed, mutated }: Pair) {
        match mutated {
            Ok((kernels, verdict)) => {
                if let Verdict::Skipped(skip) = verdict {
                    *self.skipped.entry(skip.reason).or_insert(0) += 1;
                }
                let found = |mutated| FoundKernel { case: case.clone(), schedule_seed, mutated };
                self.kernels.extend(kernels.into_iter().map(found));
            }
            Err(failure) => self.failures.push((schedule_seed, failure)),
        }
    }
}

fn pairs(seed: u64, options: &Options, device: &Device, schedules: &Scheduler<'_>) -> Pairs {
    let RandomPipeline { pipeline, request, .. } = random_pipeline(seed, &options.random);
    let problem = Problem::new(&pipeline, &request, device).map_err(|_| Reason::Sizes)?;
    let pair = |(number, schedule)| {
        let case = Case { pipeline: pipeline.clone(), request: request.clone(), schedule, seed };
        let mutated = case.mutated(device);
        Pair { case, schedule_seed: schedule_seed(seed, number), mutated }
    };
    Ok((0..).zip(schedules(&problem, seed)).map(pair).collect())
}
