//! Tests how often an attempt is discarded.

use super::*;

/// The fraction of first attempts that are discarded.
fn refused(scale: Scale, seeds: u64) -> f64 {
    let options = Options { scale, ..Options::default() };
    let mut refused = 0;
    for seed in 0..seeds {
        match attempt_pipeline(seed, 0, &options) {
            Ok(_) => {}
            Err(Refusal::Pipeline(mistake)) => panic!("seed {seed}: {mistake}"),
            Err(_) => refused += 1,
        }
    }
    f64::from(refused) / seeds as f64
}

#[test]
fn few_attempts_are_refused() {
    for (scale, seeds) in
        [(Scale::Tiny, 2000), (Scale::Small, 300), (Scale::Medium, 300), (Scale::Benchmark, 300)]
    {
        let refused = refused(scale, seeds);
        println!("{scale:?}: {:.2} % refused", 100.0 * refused);
        assert!(refused < 0.05, "{scale:?}: {refused}");
    }
}

#[test]
fn a_refused_seed_gives_the_next_attempt() {
    let options = Options::default();
    let refused = (0..).find(|seed| attempt_pipeline(*seed, 0, &options).is_err()).unwrap();
    let attempts = (1..).map(|attempt| attempt_pipeline(refused, attempt, &options));
    let first = attempts.flatten().next().unwrap();
    assert_eq!(random_pipeline(refused, &options).pipeline.to_json(), first.pipeline.to_json());
}

#[test]
fn kinds_follow_one_another_with_probabilities() {
    for kind in StageKind::ALL {
        let weights = kind.next_weights();
        assert_eq!(weights.len(), StageKind::ALL.len());
        assert!(
            (weights.iter().sum::<f64>() - 1.0).abs() < 1e-9 && weights.iter().all(|weight| *weight > 0.0)
        );
    }
}
