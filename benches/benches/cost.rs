//! The cost model: features of kernels, and the network's predictions from them.
#![allow(missing_docs, reason = "criterion's macros")]

use std::hint::black_box;
use std::time::Instant;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use warploom::cost::{CostModel, Featurizer, KernelFeatures, Network, Weights};
use warploom::plan::{Plan, Problem};
use warploom::target::Device;
use warploom_benches::{schedule, workload};

/// The number of kernels in a typical batch of the search.
const BATCH: usize = 1024;

/// Featurised kernels per second, with known plans.
fn featurise(criterion: &mut Criterion) {
    let device = Device::preset("h200").expect("it is a preset");
    let mut group = criterion.benchmark_group("featurise");
    for name in ["copy", "blur", "unsharp", "harris", "camera_pipe", "local_laplacian"] {
        let workload = workload(name, 1536, 1024);
        let schedule = schedule(&workload.pipeline);
        let problem = Problem::new(&workload.pipeline, &workload.realisation(), &device);
        let featurizer = Featurizer::new(&problem.expect("the sizes fit"));
        let inlined = schedule.inlined_set();
        let plans = schedule.root.iter().map(|item| featurizer.problem().plan_of(&inlined, [item]));
        let plans: Vec<Plan> = plans.collect();
        group.throughput(Throughput::Elements(featurizer.of_schedule(&schedule).len() as u64));
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| {
                let features = plans.iter().map(|plan| featurizer.features(plan));
                features.map(|kernels| kernels.len()).sum::<usize>()
            });
        });
    }
}

/// The network's time per stage, in kernels with many stages and in kernels with one.
fn infer_costs(criterion: &mut Criterion) {
    let device = Device::preset("h200").expect("it is a preset");
    let network = Network::new(&Weights::random(1), &device);
    let mut group = criterion.benchmark_group("infer");
    for (name, stages) in [("harris", 12), ("copy", 1)] {
        let workload = workload(name, 1536, 1024);
        let problem = Problem::new(&workload.pipeline, &workload.realisation(), &device);
        let featurizer = Featurizer::new(&problem.expect("the sizes fit"));
        let kernels = featurizer.of_schedule(&schedule(&workload.pipeline));
        let batch: Vec<&KernelFeatures> = kernels.iter().cycle().take(BATCH).collect();
        let rows: usize = batch.iter().map(|kernel| kernel.rows.len()).sum();
        assert_eq!(rows, BATCH * stages, "the name of the benchmark says how many stages a kernel has");
        let mut costs = Vec::with_capacity(BATCH);
        group.bench_function(format!("a stage of {stages}"), |bencher| {
            bencher.iter_custom(|stages| {
                let rounds = stages.div_ceil(rows as u64);
                let start = Instant::now();
                for _ in 0..rounds {
                    costs.clear();
                    network.costs(featurizer.problem().dag(), black_box(&batch), &mut costs);
                    black_box(&costs);
                }
                start.elapsed().mul_f64(stages as f64 / (rounds * rows as u64) as f64)
            });
        });
    }
}

criterion_group!(benches, featurise, infer_costs);
criterion_main!(benches);
