//! The reference evaluator, in output samples per second.
#![allow(missing_docs, reason = "criterion's macros")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use warploom_benches::workload;

fn evaluator(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("evaluator");
    for name in ["unsharp", "harris", "hist", "local_laplacian"] {
        let workload = workload(name, 512, 256);
        let samples = workload.outputs.iter().filter_map(|region| region.points()).sum();
        group.throughput(Throughput::Elements(samples));
        group.sample_size(20).bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| workload.reference());
        });
    }
}

criterion_group!(benches, evaluator);
criterion_main!(benches);
