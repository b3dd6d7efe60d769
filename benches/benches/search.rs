//! The search: enumerating the options of one decision, and whole beam searches.
#![allow(missing_docs, reason = "criterion's macros")]

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use warploom::cost::Analytic;
use warploom::plan::Problem;
use warploom::search::{Options, search};
use warploom::target::Device;
use warploom_benches::problem::named;

fn run(problem: &Problem, options: &Options) -> usize {
    let model = Analytic::new(problem.device());
    search(problem, &model, options, &|_| {}).candidates.len()
}

/// Enumerates the tiles of one stage: the pipeline has a single Func, so there is only one
/// decision.
fn enumerate(criterion: &mut Criterion) {
    let device = Device::preset("h200").expect("it is a preset");
    let problem = named("copy", &device);
    let mut group = criterion.benchmark_group("enumerate");
    for sampling in [true, false] {
        let options = Options { passes: 1, samples: 1, threads: 1, sampling, memo: 0, ..Options::default() };
        let name = if sampling { "sampled" } else { "all" };
        group.bench_function(name, |bencher| bencher.iter(|| run(&problem, &options)));
    }
}

/// Whole beam searches on one thread.
fn beam(criterion: &mut Criterion) {
    let device = Device::preset("h200").expect("it is a preset");
    let mut group = criterion.benchmark_group("beam");
    group.sample_size(10).measurement_time(Duration::from_secs(5));
    for name in ["blur", "unsharp", "harris", "cuda_mat_mul", "max_filter", "stencil_chain"] {
        let problem = named(name, &device);
        let options = Options { samples: 1, threads: 1, ..Options::default() };
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| run(&problem, &options));
        });
    }
}

criterion_group!(benches, enumerate, beam);
criterion_main!(benches);
