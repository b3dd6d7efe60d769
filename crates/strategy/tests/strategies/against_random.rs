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

/// The best of the 899,756 points takes 10 us, and the best of random search twice that.
#[test]
fn all_beat_random_search() {
    let space = Gemm::new(1024);
    let random = mean_best("random", "", &space);
    for (name, settings, share) in [
        ("genetic", "", 0.75),
        ("opevo", "", 0.6),
        ("g-bfs", "", 0.6),
        ("n-a2c", "", 0.6),
        ("anneal-q", "", 0.6),
        ("anneal-q", "method=p", 0.75),
    ] {
        let mean = mean_best(name, settings, &space);
        assert!(mean < share * random, "{name} {settings}: {mean} us, random: {random} us");
    }
}
