//! Runs the tests of a binary whose main is also a worker's.

use std::time::Instant;

/// Runs the tests whose names contain one of the program's arguments, or all where there is none, one after the other.
pub fn run(tests: &[(&str, fn())]) {
    let filters: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let chosen = |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter));
    for (name, test) in tests.iter().filter(|(name, _)| chosen(name)) {
        let started = Instant::now();
        test();
        println!("{name} ... ok, {:.1} s", started.elapsed().as_secs_f64());
    }
}
