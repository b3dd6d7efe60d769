//! From a schedule to kernels: legality check, lowering and verification.
#![allow(missing_docs, reason = "criterion's macros")]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use warploom::codegen::build::build;
use warploom::plan::Problem;
use warploom::target::Device;
use warploom_benches::{schedule, workload};

fn lowering(criterion: &mut Criterion) {
    let device = Device::preset("h200").expect("it is a preset");
    let mut group = criterion.benchmark_group("lowering");
    for name in ["copy", "blur", "unsharp", "harris"] {
        let workload = workload(name, 1530, 1000);
        let schedule = schedule(&workload.pipeline);
        let problem = Problem::new(&workload.pipeline, &workload.realisation(), &device);
        let problem = problem.expect("the sizes fit");
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| build(&problem, &schedule));
        });
    }
}

criterion_group!(benches, lowering);
criterion_main!(benches);
