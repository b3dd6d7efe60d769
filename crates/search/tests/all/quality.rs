//! How good what the search finds is, and how much work it takes.

use warploom_cost::{Analytic, CostModel, Featurizer};
use warploom_plan::Problem;
use warploom_schedule::Schedule;
use warploom_search::Options;

use crate::common::{named, of_app, searched};

/// The hand-written schedule of an app, and what the model says it takes.
fn by_hand(problem: &Problem) -> f64 {
    let name = problem.pipeline().name();
    let path = format!("{}/../../apps/schedules/{name}.schedule", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("every app has one");
    let schedule = Schedule::parse(&text, problem.pipeline()).expect("it is one of the pipeline");
    assert!(problem.is_legal(&schedule), "{name}");
    let features = Featurizer::new(problem).of_schedule(&schedule);
    let mut costs = Vec::new();
    Analytic::new(problem.device()).costs(problem.dag(), &features.iter().collect::<Vec<_>>(), &mut costs);
    costs.iter().sum()
}

/// Asserts that a few samples of each app find nothing much worse than the schedule that was written by hand.
fn assert_as_good_as_by_hand(apps: &[&str]) {
    let mut worse = Vec::new();
    for name in apps {
        let problem = named(name);
        let outcome = searched(&problem, &Options { samples: 24, ..Options::default() });
        let ratio = outcome.candidates[0].cost / by_hand(&problem);
        // The hand-written schedule of hist keeps partial and cumulative histograms inside two kernels, which the search
        // does not find yet.
        if ratio > if *name == "hist" { 1.6 } else { 1.05 } {
            worse.push(format!("{name}: {ratio:.2}"));
        }
    }
    assert!(worse.is_empty(), "{worse:?}");
}

#[test]
fn some_apps_are_as_good_as_by_hand() {
    assert_as_good_as_by_hand(&["unsharp", "cuda_mat_mul", "conv_layer", "hist"]);
}

#[test]
#[ignore = "takes long without optimisation: run it with --release"]
fn all_apps_are_as_good_as_by_hand() {
    let apps: Vec<&str> = warploom_apps::APPS.iter().map(|app| app.name.as_str()).collect();
    assert_as_good_as_by_hand(&apps);
}

#[test]
fn work_grows_little_faster_than_the_pipeline() {
    let options = Options { beam: 8, passes: 3, samples: 1, ..Options::default() };
    let kernels = |stages: f64| {
        let problem = of_app(&warploom_apps::stencil_chain::app(), &[("stencils", stages)]);
        searched(&problem, &options).statistics.kernels as f64
    };
    let counts = [8.0, 16.0, 32.0].map(kernels);
    let most = 2f64.powf(1.3);
    assert!(counts.windows(2).all(|pair| pair[1] <= most * pair[0]), "{counts:?}");
}
