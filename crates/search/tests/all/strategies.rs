//! Strategies that know the search through its public seam alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rayon::prelude::*;
use warploom_cost::Analytic;
use warploom_search::{Event, Options, Outcome, Refusal, Sampling, Search, State, StopReason, explore};

use crate::common::named;

fn explored(app: &str, options: &Options, strategy: impl FnOnce(&Search<'_>, &Arc<State>) + Send) -> Outcome {
    let problem = named(app);
    let model = Analytic::new(problem.device());
    let outcome = explore(&problem, &model, options, &|_| {}, strategy);
    for candidate in &outcome.candidates {
        assert_eq!(problem.check(&candidate.schedule).err(), None, "{app}");
    }
    outcome
}

/// How many times as fast as the default schedule the best one is.
fn gain(app: &str, outcome: &Outcome) -> f64 {
    let default = named(app).default_schedule();
    let of_default = outcome.candidates.iter().find(|candidate| candidate.schedule == default);
    of_default.expect("it is always there").cost / outcome.candidates[0].cost
}

fn next(random: u64) -> u64 {
    random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f)
}

/// Walks that take any option of each decision, side by side.
fn walks(search: &Search<'_>, start: &Arc<State>) {
    let decisions = search.decisions(&search.frozen(start));
    (0..8).into_par_iter().for_each(|number| {
        let mut random = next(search.options().seed ^ number);
        let mut expander = search.expander(Sampling { seed: random, depth: 1, coarse: false });
        let mut state = start.clone();
        for decision in decisions.iter().take_while(|_| !search.is_over()) {
            let children = expander.expand(&state, *decision);
            random = next(random);
            state = children[(random >> 32) as usize % children.len()].state();
        }
        search.keep([state]);
    });
}

/// The cheapest step of a kernel, as long as there is one that helps.
fn descent(search: &Search<'_>, start: &Arc<State>) {
    let mut state = start.clone();
    loop {
        search.say(Event::SampleFinished { sample: 0, best: state.cost() });
        let steps = search.steps(&state);
        let cheapest = steps.iter().min_by(|a, b| a.cost().total_cmp(&b.cost()));
        let Some(child) = cheapest.filter(|child| child.cost() < state.cost()) else { break };
        assert_ne!(child.identity(), state.identity());
        state = child.state();
    }
    search.keep([state]);
}

#[test]
fn random_walks_beat_the_default_on_any_number_of_threads() {
    for app in ["unsharp", "harris"] {
        let outcome = |threads| explored(app, &Options { threads, ..Options::default() }, walks);
        let one = outcome(1);
        assert!(!one.fallback && gain(app, &one) > 1.2, "{app}: {}", gain(app, &one));
        for threads in [2, 8] {
            assert_eq!(one.candidates, outcome(threads).candidates, "{app}");
        }
    }
}

#[test]
fn steps_of_kernels_go_downhill() {
    let problem = named("cuda_mat_mul");
    let said = AtomicUsize::new(0);
    let observer = |_: Event| {
        said.fetch_add(1, Ordering::Relaxed);
    };
    let (model, options) = (Analytic::new(problem.device()), Options::default());
    let outcome = explore(&problem, &model, &options, &observer, descent);
    assert!(gain("cuda_mat_mul", &outcome) > 1.2, "{}", gain("cuda_mat_mul", &outcome));
    assert!(said.into_inner() > 2);
}

#[test]
fn whole_schedules_are_evaluated_once() {
    let problem = named("unsharp");
    let draw = |search: &Search<'_>, start: &Arc<State>| {
        assert_eq!(search.evaluate(&search.schedule(start)).map(|state| state.cost()), Ok(start.cost()));
        for seed in 0..40 {
            let schedule = problem.random_schedule(seed);
            let first = search.evaluate(&schedule);
            let kernels = search.statistics().kernels;
            let again = search.evaluate(&schedule);
            assert_eq!(search.statistics().kernels, kernels, "seed {seed}");
            let what = |state: &Arc<State>| (state.identity(), state.cost().to_bits());
            assert_eq!(first.as_ref().map(what), again.as_ref().map(what), "seed {seed}");
            search.keep(first.ok());
        }
    };
    let outcome = explored("unsharp", &Options::default(), draw);
    assert!(outcome.candidates.len() > 2 && outcome.statistics.memo_hits > 0);
}

#[test]
fn schedules_that_break_a_rule_as_a_whole_are_refused() {
    let lacking = |search: &Search<'_>, start: &Arc<State>| {
        let mut schedule = search.schedule(start);
        schedule.root.remove(0);
        assert_eq!(search.evaluate(&schedule).err(), Some(Refusal::Illegal));
    };
    let outcome = explored("iir_blur", &Options::default(), lacking);
    assert_eq!((outcome.candidates.len(), outcome.statistics.refused_for(Refusal::Illegal)), (1, 1));
}

#[test]
fn strategies_end_when_the_time_is_up() {
    let options = Options { time_limit: Some(Duration::ZERO), ..Options::default() };
    let outcome = explored("unsharp", &options, |search, start| {
        assert!(search.is_over());
        assert!(search.frozen(start).is_empty());
        walks(search, start);
    });
    assert_eq!((outcome.stop, outcome.fallback), (StopReason::TimeLimit, false));
}
