//! What the search finds for every app: what its kernels compute in the simulator is what the evaluator computes,
//! bit for bit, and threads change nothing.

mod prices;

use warploom::app::App;
use warploom::codegen::printer::{Build, PRINTER};
use warploom::cost::Analytic;
use warploom::plan::Problem;
use warploom::schedule::Schedule;
use warploom::search::Options;
use warploom::tune::explain::{Explanation, Idle};
use warploom::tune::one_shot::{OneShot, one_shot};

use crate::common::{check_simulated, h200, is_simulated, problem, quick_search, tiny, workload};

/// What is found for an app at some settings. Everything that is found can be built.
fn found(app: &App, problem: &Problem, options: &Options) -> OneShot {
    let found = one_shot(problem, &Analytic::new(problem.device()), options, &|_| {});
    let found = found.unwrap_or_else(|error| panic!("{}: {error}", app.name));
    assert!(!found.outcome.fallback, "{}", app.name);
    assert!(found.refused.is_empty(), "{}: {}", app.name, found.refused[0]);
    assert_eq!(found.outcome.statistics.dropped, 0, "{}", app.name);
    found
}

/// The best, the middle and the last of what was found.
fn some(found: OneShot) -> Vec<Schedule> {
    let candidates = found.outcome.candidates;
    let mut positions = vec![0, candidates.len() / 2, candidates.len() - 1];
    positions.dedup();
    positions.into_iter().map(|position| candidates[position].schedule.clone()).collect()
}

/// The kernel of a schedule that takes most of the time and leaves most of the device idle.
fn idle(problem: &Problem, schedule: &Schedule) -> Option<Idle> {
    let planned = problem.planned(schedule.clone()).expect("it is legal");
    Explanation::new(&planned, &Analytic::new(problem.device())).idle
}

/// A few samples do not find the atomics of hist; as many as usual do.
#[test]
fn a_usual_search_of_hist_leaves_nothing_idle() {
    let app = warploom_apps::find("hist").expect("the app is in the suite");
    let problem = problem(app, &[]);
    let found = found(app, &problem, &Options::default());
    assert_eq!(idle(&problem, &found.planned.schedule), None);
}

/// Simulates, at small sizes and the smallest, what is found for small ones and for those that are benchmarked.
fn check_app(name: &str, structure: &[(&str, f64)], sizes: &[(&str, f64)]) {
    let app = warploom_apps::find(name).expect("the app is in the suite");
    let small = workload(app, &[structure, sizes].concat());
    let large = problem(app, structure);
    assert_eq!(large.pipeline().to_json(), small.pipeline.to_json(), "{name}");
    let tiny = tiny(app, structure, &small);
    let of_small = Problem::new(&small.pipeline, &small.realisation(), &h200()).expect("the sizes fit");
    // Other sizes than the schedule's own, and how many of them its rewrites do not fit.
    let (mut tried, mut left_out) = (0, 0);
    let mut count = |is_simulated: bool| {
        tried += 1;
        left_out += usize::from(!is_simulated);
    };
    for (of, problem) in [("small", &of_small), ("large", &large)] {
        let found = found(app, problem, &quick_search());
        assert!(name == "hist" || idle(problem, &found.planned.schedule).is_none(), "{name}");
        let schedules = some(found);
        for (number, schedule) in schedules.iter().enumerate() {
            let label = format!("{name}, schedule {number} of those for {of} sizes");
            match of {
                "small" => check_simulated(&small, schedule, &label),
                _ => count(is_simulated(&small, schedule, &label)),
            }
            for (sizes, tiny) in &tiny {
                count(is_simulated(tiny, schedule, &format!("{label}, at {sizes}")));
            }
        }
    }
    assert!(left_out * 4 <= tried, "{name}: {left_out} of {tried} left out");
}

macro_rules! apps {
    ($($name:ident : [$($setting:literal = $value:literal),*] at [$($size:literal = $extent:literal),*];)*) => {
        $(#[test]
        fn $name() {
            check_app(
                stringify!($name),
                &[$(($setting, f64::from($value))),*],
                &[$(($size, f64::from($extent))),*],
            );
        })*

        /// The apps that are tested here.
        const TESTED: &[&str] = &[$(stringify!($name)),*];
    };
}

apps! {
    unsharp: [] at ["W" = 75, "H" = 53];
    harris: [] at ["W" = 75, "H" = 53];
    stencil_chain: ["stencils" = 6] at ["W" = 45, "H" = 37];
    max_filter: ["radius" = 9] at ["W" = 45, "H" = 37];
    learned_demosaic: ["K" = 3] at ["W" = 34, "H" = 18];
    camera_pipe: [] at ["W" = 75, "H" = 53];
    hist: [] at ["W" = 75, "H" = 53];
    bilateral_grid: [] at ["W" = 75, "H" = 53];
    iir_blur: [] at ["W" = 75, "H" = 53];
    bgu: ["s_sigma" = 3, "r_sigma" = 0.4] at ["W" = 23, "H" = 17, "w" = 7, "h" = 5];
    local_laplacian: ["pyramid_levels" = 3, "levels" = 4] at ["W" = 45, "H" = 37];
    interpolate: ["levels" = 5] at ["W" = 45, "H" = 37];
    lens_blur: ["slices" = 2, "focus_depth" = 1, "aperture_samples" = 3] at ["W" = 129, "H" = 130];
    nl_means: ["patch_size" = 3, "search_area" = 3] at ["W" = 29, "H" = 17];
    conv_layer: [] at ["N" = 1, "CI" = 3, "CO" = 5, "W" = 11, "H" = 9];
    cuda_mat_mul: [] at ["size" = 37];
    depthwise_separable_conv: [] at ["N" = 2, "CI" = 3, "CO" = 5, "W" = 11, "H" = 9, "FW" = 5, "FH" = 3];
}

#[test]
fn all_apps_are_tested() {
    for app in warploom_apps::APPS.iter() {
        assert!(TESTED.contains(&app.name.as_str()), "{} is not tested", app.name);
    }
}

/// At the sizes that are benchmarked: the schedule and the CUDA text, byte for byte.
fn check_threads(app: &App, usual: &Options) {
    let problem = problem(app, &[]);
    let texts = [1, 2, 8].map(|threads| {
        let options = Options { threads, ..usual.clone() };
        let found = found(app, &problem, &options);
        found.planned.schedule.to_text(problem.pipeline()) + &PRINTER.print(&found.program, Build::Timing)
    });
    assert!(texts[1..].iter().all(|text| *text == texts[0]), "{}: threads change what is found", app.name);
}

#[test]
fn threads_change_nothing() {
    for name in ["unsharp", "harris", "hist", "cuda_mat_mul"] {
        check_threads(warploom_apps::find(name).expect("it is an app"), &quick_search());
    }
}

#[test]
#[ignore = "takes minutes"]
fn threads_change_nothing_for_any_app() {
    for app in warploom_apps::APPS.iter() {
        check_threads(app, &Options { samples: 8, beam: 8, passes: 3, ..Options::default() });
    }
}
