//! The simulator, in lane-operations per second: operations, loads and stores, counted once per
//! active thread.
#![allow(missing_docs, reason = "criterion's macros")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use warploom::codegen::build::build;
use warploom::plan::Problem;
use warploom::target::Device;
use warploom_benches::{schedule, workload};

fn simulator(criterion: &mut Criterion) {
    let device = Device::preset("h200").expect("it is a preset");
    let mut group = criterion.benchmark_group("simulator");
    for name in ["copy", "blur", "unsharp", "harris"] {
        let workload = workload(name, 512, 256);
        let problem = Problem::new(&workload.pipeline, &workload.realisation(), &device);
        let program = build(&problem.expect("the sizes fit"), &schedule(&workload.pipeline));
        let program = program.expect("the schedule is legal");
        let outcome = workload.simulate(&program, &device, 0).expect("the kernels are right");
        group.throughput(Throughput::Elements(outcome.counters.lane_operations()));
        group.bench_with_input(BenchmarkId::from_parameter(name), &program, |bencher, program| {
            bencher.iter(|| workload.simulate(program, &device, 0));
        });
    }
}

criterion_group!(benches, simulator);
criterion_main!(benches);
