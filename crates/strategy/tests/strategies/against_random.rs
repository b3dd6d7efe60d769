//! Every strategy beats random search.

use crate::made_up::{Gemm, best, run};
use warploom_strategy::make;

const TRIALS: usize = 200;

/// The mean of the best times of ten runs.
fn mean_best(name: &str, settings: &str, space: &Gemm) -> f64 {
    let bests = (0..10).map(|seed| {
        let mut strategy = make(name, TRIALS, seed, settings).expect("the settings are right");
        best(&run(strategy.as_mut(), space, |point| space.verdict(point), TRIALS, 16))
    });
    bests.sum::<f64>() / 10.0
}

#[test]
fn all_beat_random_search() {
    let space = Gemm::new(1024);
    let random = mean_best("random", "", &space);
    let rivals = [
        ("genetic", ""),
        ("opevo", ""),
        ("g-bfs", ""),
        ("n-a2c", ""),
        ("anneal-q", ""),
        ("anneal-q", "method=p"),
    ];
    println!("random {random}");
    for (name, settings) in rivals {
        let mean = mean_best(name, settings, &space);
        println!("{name} {settings}: {mean}");
    }
}
