//! How compile time grows with the pipeline: from a hundred to ten thousand Funcs, in four shapes
//! of graph.
#![allow(missing_docs, reason = "criterion's macros")]

use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use warploom::codegen::build::build;
use warploom::lang::infer;
use warploom::plan::Problem;
use warploom::randpipe::Shape;
use warploom::schedule::Schedule;
use warploom::target::Device;

const FUNCS: [usize; 3] = [100, 1_000, 10_000];

/// A large pipeline and its default schedule.
struct Large {
    problem: Problem,
    schedule: Schedule,
}

impl Large {
    fn new(shape: Shape, funcs: usize) -> Large {
        let (pipeline, request) = shape.pipeline(funcs).expect("the language allows it");
        let device = Device::preset("h200").expect("it is a preset");
        let problem = Problem::new(&pipeline, &request, &device).expect("the sizes fit");
        let schedule = problem.default_schedule();
        Large { problem, schedule }
    }
}

/// Measures a function for each shape and number of Funcs, as time and as Funcs per second.
fn measure<T>(criterion: &mut Criterion, name: &str, run: impl Fn(&Large) -> T) {
    let mut group: BenchmarkGroup<'_, WallTime> = criterion.benchmark_group(name);
    group.sample_size(10).warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_secs(1));
    for shape in Shape::ALL {
        for funcs in FUNCS {
            let large = Large::new(shape, funcs);
            group.throughput(Throughput::Elements(funcs as u64));
            group.bench_function(BenchmarkId::new(shape.name(), funcs), |bencher| {
                bencher.iter(|| run(&large));
            });
        }
    }
}

fn growth(criterion: &mut Criterion) {
    measure(criterion, "bounds", |large| infer(large.problem.pipeline(), large.problem.request()));
    measure(criterion, "default", |large| large.problem.default_schedule());
    measure(criterion, "check", |large| large.problem.check(&large.schedule).is_ok());
    measure(criterion, "build", |large| {
        build(&large.problem, &large.schedule).expect("it is legal").kernels.len()
    });
}

criterion_group!(benches, growth);
criterion_main!(benches);
