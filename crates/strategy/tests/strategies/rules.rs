//! What holds for all strategies.

use crate::made_up::{Gemm, Mixed, Steps, best, run};
use std::collections::BTreeSet;
use warploom_strategy::{Axis, Coordinate, Error, Point, Space, Verdict, make, names, space};

/// Settings that make training short.
fn quick(name: &str) -> &'static str {
    match name {
        "n-a2c" => "hidden=8,updates=1,samples=4",
        "anneal-q" => "hidden=8,epochs=1",
        _ => "",
    }
}

fn gemm(name: &str, seed: u64, most: usize, trials: usize) -> Steps {
    let space = Gemm::new(512);
    let mut strategy = make(name, trials, seed, "").expect("there is such a strategy");
    run(strategy.as_mut(), &space, |point| space.verdict(point), trials, most)
}

#[test]
fn the_same_seed_asks_the_same() {
    for name in names() {
        let first = gemm(name, 3, 16, 120);
        assert_eq!(first, gemm(name, 3, 16, 120), "{name}");
        assert_ne!(first, gemm(name, 4, 16, 120), "{name}");
    }
}

/// All but N-A2C, whose batches are as large as they may be.
#[test]
fn the_size_of_questions_makes_no_difference() {
    for name in names().into_iter().filter(|name| *name != "n-a2c") {
        assert_eq!(gemm(name, 3, 16, 120), gemm(name, 3, 1, 120), "{name}");
    }
}

#[test]
fn no_refused_point_is_asked_for_and_no_trial_is_left() {
    for name in names() {
        let steps = gemm(name, 1, 16, 150);
        assert_eq!(steps.len(), 150, "{name}");
        assert!(steps.iter().all(|(_, verdict)| *verdict != Verdict::Refused), "{name}");
    }
}

#[test]
fn a_small_space_is_searched_to_the_end() {
    let space = Mixed::new();
    let legal: BTreeSet<Point> =
        space::points(&space).filter(|point| space.refusal(point).is_none()).collect();
    assert!(legal.len() < space::size(&space) as usize);
    for name in names() {
        let settings = if name == "g-bfs" { "rho=all" } else { quick(name) };
        let mut strategy = make(name, 400, 1, settings).expect("the settings are right");
        let steps = run(strategy.as_mut(), &space, |point| space.verdict(point), 10_000, 16);
        assert_eq!(steps.iter().map(|(point, _)| point.clone()).collect::<BTreeSet<_>>(), legal, "{name}");
        assert_eq!(best(&steps), 5.0, "{name}");
        assert!(strategy.ask(&space, 16).is_empty(), "{name}");
    }
}

#[test]
fn failures_and_late_refusals_stop_no_strategy() {
    let space = Mixed::new();
    let rarely = |point: &Point| match (point.template, &point.at[0]) {
        (1, Coordinate::Factors(factors)) if factors[2] == 4 => Verdict::Time(7.0),
        (1, _) => Verdict::Failed,
        _ => Verdict::Refused,
    };
    for name in names() {
        let never = |_: &Point| Verdict::Failed;
        let mut strategy = make(name, 100, 0, quick(name)).expect("the settings are right");
        assert_eq!(run(strategy.as_mut(), &space, never, 100, 8).len(), 100, "{name}");
        let mut strategy = make(name, 100, 0, quick(name)).expect("the settings are right");
        assert_eq!(best(&run(strategy.as_mut(), &space, rarely, 100, 8)), 7.0, "{name}");
    }
}

/// Numbers from 0 to 40, of which 10 to 14 are refused. The last is the fastest.
struct Wall([Axis; 1]);

impl Space for Wall {
    fn templates(&self) -> usize {
        1
    }

    fn axes(&self, _: u16) -> &[Axis] {
        &self.0
    }

    fn origin(&self, _: u16) -> Point {
        Point { template: 0, at: vec![Coordinate::Index(0)] }
    }

    fn refusal(&self, point: &Point) -> Option<String> {
        let Coordinate::Index(at) = point.at[0] else { return None };
        (10..15).contains(&at).then(|| "the wall".to_owned())
    }
}

/// The two that start on the wrong side.
#[test]
fn local_searches_pass_through_refused_points() {
    let space = Wall([Axis::Numbers { name: "number".to_owned(), values: (0..41).collect() }]);
    let verdict = |point: &Point| match point.at[0] {
        Coordinate::Index(at) => Verdict::Time(50.0 - f64::from(at)),
        _ => Verdict::Failed,
    };
    for name in ["g-bfs", "n-a2c"] {
        let mut strategy = make(name, 36, 0, quick(name)).expect("the settings are right");
        let steps = run(strategy.as_mut(), &space, verdict, 36, 4);
        assert_eq!(best(&steps), 10.0, "{name}");
    }
}

#[test]
fn mistakes_in_settings_are_explained() {
    let error = |name: &str, settings: &str| match make(name, 100, 0, settings) {
        Ok(strategy) => panic!("{} was made", strategy.key()),
        Err(error) => error.to_string(),
    };
    assert_eq!(
        error("magic", ""),
        "there is no strategy `magic`; there are random, genetic, opevo, g-bfs, n-a2c, anneal-q"
    );
    assert_eq!(error("opevo", "p=1"), "there is no setting `p`; there are parents, children, q, hop");
    assert_eq!(error("random", "q=1"), "there is no setting `q`; this strategy has none");
    assert_eq!(error("opevo", "q"), "`q` is no setting: write name=value, with commas between several");
    assert_eq!(error("opevo", "q=0.3,q=0.4"), "`q` is set twice");
    assert_eq!(error("opevo", "q=1.5"), "`q` cannot be `1.5`: expected a number from 0 to 0.99");
    assert_eq!(error("opevo", "q=NaN"), "`q` cannot be `NaN`: expected a number from 0 to 0.99");
    assert_eq!(error("g-bfs", "rho=0"), "`rho` cannot be `0`: expected a whole number from 1, or all");
    assert_eq!(error("g-bfs", "moves=up"), "`moves` cannot be `up`: expected one of prime, double, divisor");
    assert_eq!(error("anneal-q", "method=r"), "`method` cannot be `r`: expected one of q, p");
    assert_eq!(
        error("genetic", "population=5,elites=5"),
        "`elites` cannot be `5`: expected less than the population, 5"
    );
    assert!(matches!(make("g-bfs", 1, 0, "rho=-1"), Err(Error::Value { .. })));
}

#[test]
fn keys_name_everything_that_can_be_set() {
    let made = make("opevo", 1000, 7, "q=0.3, parents=20").expect("the settings are right");
    assert_eq!(made.key(), "opevo parents=20 children=8 q=0.3 hop=0.1 seed=7");
    for name in names() {
        let key = make(name, 1000, 7, "").expect("there is such a strategy").key();
        let settings = key.trim_start_matches(name).trim_end_matches("seed=7");
        assert_eq!(make(name, 50, 7, settings).expect("a key holds settings").key(), key);
    }
}

#[test]
fn first_points_are_at_most_a_tenth_of_the_trials() {
    let key = |name: &str, trials: usize| make(name, trials, 0, "").expect("there is such a strategy").key();
    assert!(key("genetic", 200).contains("population=20 elites=2 "));
    assert!(key("genetic", 5000).contains("population=100 elites=10 "));
    assert!(key("opevo", 50).contains("parents=5 "));
    assert!(key("opevo", 500).contains("parents=8 "));
    assert!(key("anneal-q", 300).contains("warmup=30 "));
}

/// The page shows the keys of all strategies at 1,000 trials.
#[test]
fn the_page_has_the_defaults() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/strategies.md");
    let page = std::fs::read_to_string(file).expect("the page is there");
    for name in names() {
        let key = make(name, 1000, 0, "").expect("there is such a strategy").key();
        let settings = key.trim_start_matches(name).trim_end_matches("seed=0").split_whitespace();
        for setting in settings {
            let (setting, value) = setting.split_once('=').expect("a key holds settings");
            let row = format!("| {name} | `{setting}` | {value} |");
            assert!(page.contains(&row), "docs/strategies.md has no row {row}");
        }
    }
}
