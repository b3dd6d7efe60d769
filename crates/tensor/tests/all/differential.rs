//! Mutated programs that are still programs compute what loops over their trees compute.

use warploom_tensor::parse;

use crate::mutate::Mutator;
use crate::naive::{Ranges, harness};

/// The most points that a statement may visit.
const MOST_POINTS: i64 = 20_000;

/// Compares a text, if it can be realised. The ranges are those of the crate.
fn compared(text: &str) -> bool {
    let Ok(program) = parse("mutated.tc", text) else { return false };
    let Ok(definition) = program.define(None) else { return false };
    let sizes: Vec<(&str, i64)> =
        definition.sizes().iter().enumerate().map(|(i, name)| (*name, 3 + (i as i64 * 7) % 4)).collect();
    let Ok(found) = definition.ranges(&sizes) else { return false };
    let ranges: Vec<Ranges> = found
        .iter()
        .map(|all| all.iter().map(|one| (one.index.clone(), one.range.min, one.range.end())).collect())
        .collect();
    let points = |ranges: &Ranges| ranges.iter().map(|(_, low, high)| high - low).product::<i64>();
    if ranges.iter().any(|ranges| points(ranges) > MOST_POINTS) || definition.realise(&sizes).is_err() {
        return false;
    }
    if let Err(difference) = harness::compare(&definition, &sizes, &ranges, 2e-3) {
        panic!("{text}\n{difference}");
    }
    true
}

fn compare_many(count: usize, seed: u64) -> usize {
    let mut mutator = Mutator::new(seed);
    (0..count).filter(|_| compared(&mutator.text())).count()
}

#[test]
fn mutated_programs_compute_what_they_say() {
    let compared = compare_many(4_000, 0x5851_f42d_4c95_7f2d);
    assert!(compared > 100, "only {compared} texts were compared");
}

#[test]
#[ignore = "takes minutes"]
fn many_mutated_programs_compute_what_they_say() {
    let compared = compare_many(200_000, 0x1405_7b7e_f767_814f);
    println!("{compared} texts were compared");
    assert!(compared > 5_000, "only {compared} texts were compared");
}
