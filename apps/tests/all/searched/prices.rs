//! One schedule has one price, whoever asks for it.

use warploom::cost::{CostModel, Featurizer, Weights};
use warploom::plan::Problem;
use warploom::prelude::{Pipeline, Realisation};
use warploom::randpipe::{self, random_pipeline};
use warploom::schedule::Schedule;
use warploom::search::{Candidate, Options, neighbourhoods};
use warploom::tune::explain::Explanation;
use warploom::tune::one_shot::{one_shot, predicted_us};

use crate::common::{h200, problem, quick_search};

/// The candidates of a search whose prices are compared, and the neighbours of the best.
const CANDIDATES: usize = 12;
const NEIGHBOURS: usize = 40;

/// Checks that everybody predicts the same time as the search did, but for the order of a sum.
fn check(name: &str, problem: &Problem, model: &dyn CostModel, candidate: &Candidate) {
    let Candidate { schedule, cost } = candidate;
    let asked = predicted_us(problem, schedule, model).expect("it was found");
    let planned = problem.planned(schedule.clone()).expect("it was found");
    let explained = Explanation::new(&planned, model).predicted_us;
    let text = || schedule.to_text(problem.pipeline());
    assert!((asked - cost).abs() < 1e-12 * cost, "{name}: {cost} in the search, then {asked} of\n{}", text());
    assert_eq!(asked, explained, "{name}: the explanation of\n{}", text());
}

/// Compares the prices of what a search finds. Returns how many of these schedules hold blocks.
fn compare(name: &str, problem: &Problem, model: &dyn CostModel, options: &Options) -> usize {
    let found = one_shot(problem, model, options, &|_| {});
    let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
    let built = Candidate { schedule: found.planned.schedule.clone(), cost: found.predicted_us };
    check(name, problem, model, &built);
    let candidates = &found.outcome.candidates[..found.outcome.candidates.len().min(CANDIDATES)];
    candidates.iter().for_each(|candidate| check(name, problem, model, candidate));
    candidates.iter().filter(|candidate| holds_blocks(&candidate.schedule)).count()
}

/// Compares the prices of the neighbours of what a search finds.
fn compare_neighbours(name: &str, problem: &Problem, model: &dyn CostModel) {
    let options = quick_search();
    let found = one_shot(problem, model, &options, &|_| {}).unwrap_or_else(|error| panic!("{name}: {error}"));
    let rewritten = problem.rewritten(&found.planned.schedule.rewrites).expect("it was built");
    let near = neighbourhoods(&rewritten, model, &options, &[found.planned.schedule]).remove(0);
    let near = near.unwrap_or_else(|| panic!("{name}: the search found what it cannot make"));
    let cost = found.predicted_us;
    assert!((near.cost - cost).abs() < 1e-12 * cost, "{name}: {} and {cost}", near.cost);
    near.neighbours.iter().take(NEIGHBOURS).for_each(|other| check(name, problem, model, other));
}

fn holds_blocks(schedule: &Schedule) -> bool {
    schedule.kernels().any(|kernel| kernel.numbers.blocks.is_some())
}

fn random_problem(seed: u64) -> Option<Problem> {
    let random = random_pipeline(seed, &randpipe::Options::default());
    let (pipeline, request): (Pipeline, Realisation) = (random.pipeline, random.request);
    Problem::new(&pipeline, &request, &h200()).ok()
}

#[test]
fn a_schedule_of_an_app_has_one_price() {
    let model = warploom::model_for(&h200()).model;
    for app in warploom_apps::APPS.iter() {
        let holding = compare(&app.name, &problem(app, &[]), &*model, &quick_search());
        assert!(app.name != "cuda_mat_mul" || holding > 0, "no schedule of a product holds blocks");
    }
    for name in ["cuda_mat_mul", "unsharp"] {
        let app = warploom_apps::find(name).expect("it is an app");
        compare_neighbours(name, &problem(app, &[]), &*model);
    }
}

#[test]
fn a_schedule_of_an_operator_has_one_price() {
    let model = warploom::model_for(&h200()).model;
    let mut families = Vec::new();
    for operator in warploom_apps::operators::operators() {
        let first = !families.contains(&operator.family);
        // The rows of a family differ in their sizes; without optimisation, one of each has to do.
        if first || !cfg!(debug_assertions) {
            families.push(operator.family);
            let app = operator.app();
            compare(&app.name, &problem(&app, &[]), &*model, &quick_search());
        }
    }
}

#[test]
fn a_schedule_of_a_random_pipeline_has_one_price() {
    let model = warploom::model_for(&h200()).model;
    let problems = (0..).filter_map(|seed| Some((seed, random_problem(seed)?)));
    let options = Options { samples: 1, beam: 2, ..quick_search() };
    for (seed, problem) in problems.take(100) {
        compare(&format!("random {seed}"), &problem, &*model, &options);
    }
}

/// A number of blocks that fit anyway changes nothing that the model sees. One that takes registers away is a decision that
/// weights have to know.
#[test]
fn the_price_of_held_blocks_is_that_of_what_they_hold() {
    let product = problem(warploom_apps::find("cuda_mat_mul").expect("it is an app"), &[]);
    let model = warploom::model_for(&h200()).model;
    let found = one_shot(&product, &*model, &quick_search(), &|_| {}).expect("it can be built");
    let held =
        found.outcome.candidates.iter().map(|candidate| &candidate.schedule).find(|of| holds_blocks(of));
    let held = held.expect("some hold blocks").clone();
    let with = |blocks: Option<u32>| {
        let mut schedule = held.clone();
        let number = blocks.and_then(std::num::NonZeroU32::new);
        schedule.kernels_mut().for_each(|kernel| kernel.numbers.blocks = number);
        schedule
    };
    let price = |schedule: &Schedule| predicted_us(&product, schedule, &*model).expect("no rewrite fails");
    assert_eq!(price(&held), price(&with(None)));
    let registers = |schedule: &Schedule| {
        Featurizer::new(&product).of_schedule(schedule).iter().map(|kernel| kernel.registers).max()
    };
    let fewer = with(Some(32));
    assert!(registers(&fewer) < registers(&held));
    let weights = Weights::from_bytes(warploom::models::MODELS[0].bytes).expect("they are shipped");
    let planned = product.planned(fewer).expect("no rewrite fails");
    let known = Explanation::new(&planned, &*model).basis;
    assert_eq!(known.model, weights.name());
    assert_eq!(known.unknown_decisions, ["blocks"]);
}
