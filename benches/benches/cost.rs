//! What a schedule costs: features of its kernels, and the network's predictions from them.
#![allow(missing_docs, reason = "criterion's macros")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use warploom::cost::{CostModel, KernelFeatures, Network, Subject, Weights};
use warploom::prelude::infer;
use warploom::schedule::schedule::{Footprints, Schedule};
use warploom::target::Device;
use warploom_benches::{schedule, workload};

/// Kernels that a batch of the search has.
const BATCH: usize = 1024;

/// Kernels a second, their footprints known.
fn featurise(criterion: &mut Criterion) {
    let device = Device::preset("h200").expect("it is a preset");
    let mut group = criterion.benchmark_group("featurise");
    for name in ["copy", "blur", "unsharp", "harris", "camera_pipe", "local_laplacian"] {
        let workload = workload(name, 1536, 1024);
        let schedule = schedule(&workload.pipeline);
        let regions = infer(&workload.pipeline, &workload.realisation()).expect("the sizes fit");
        let subject = Subject::new(&workload.pipeline, &regions, &device);
        let footprints = |item| {
            let alone = Schedule { inlined: schedule.inlined.clone(), root: vec![item] };
            Footprints::new(&alone, &workload.pipeline, &regions)
        };
        let footprints: Vec<Footprints> = schedule.root.iter().cloned().map(footprints).collect();
        group.throughput(Throughput::Elements(subject.of_schedule(&schedule).len() as u64));
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| {
                let items = schedule.root.iter().zip(&footprints);
                let features = items.map(|(item, known)| subject.features(&schedule.inlined, item, known));
                features.map(|kernels| kernels.len()).sum::<usize>()
            });
        });
    }
}

/// Rows a second, in a batch and one kernel at a time.
fn infer_costs(criterion: &mut Criterion) {
    let device = Device::preset("h200").expect("it is a preset");
    let workload = workload("harris", 1536, 1024);
    let regions = infer(&workload.pipeline, &workload.realisation()).expect("the sizes fit");
    let subject = Subject::new(&workload.pipeline, &regions, &device);
    let kernels = subject.of_schedule(&schedule(&workload.pipeline));
    let batch: Vec<&KernelFeatures> = kernels.iter().cycle().take(BATCH).collect();
    let network = Network::new(&Weights::random(1), &device);
    let mut costs = Vec::with_capacity(BATCH);

    let mut group = criterion.benchmark_group("infer");
    group.throughput(Throughput::Elements(batch.iter().map(|kernel| kernel.rows.len() as u64).sum()));
    for size in [BATCH, 1] {
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| {
                costs.clear();
                for kernels in batch.chunks(size) {
                    network.costs(subject.dag(), kernels, &mut costs);
                }
                costs.iter().sum::<f64>()
            });
        });
    }
}

criterion_group!(benches, featurise, infer_costs);
criterion_main!(benches);
