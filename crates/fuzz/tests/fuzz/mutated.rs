//! Case files that were changed are refused, or checked like any other.

use std::fs;
use std::path::Path;

use warploom_fuzz::{Case, Failure, Mutator, Verdict};
use warploom_lang::Regions;
use warploom_plan::Problem;

use crate::support::device;

/// How many inputs are tried; about one in thirty is a case still.
const INPUTS: u64 = 20_000;
/// Larger cases take too long.
const POINTS: u64 = 100_000;

fn recorded() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| fs::read(path).unwrap()).collect()
}

fn points(regions: &Regions) -> u64 {
    let points = regions.funcs.values().map(|func| func.region.points().unwrap_or(u64::MAX));
    points.fold(0, u64::saturating_add)
}

/// The compiler is right about all of them: what fails is the schedule's fault, or the pipeline's under any schedule.
#[test]
fn changed_cases_find_no_mistake_of_the_compiler() {
    let mutator = Mutator::new(1, recorded());
    let (mut passed, mut refused, mut unreadable, mut vast, mut skipped, mut undefined) = (0, 0, 0, 0, 0, 0);
    for number in 0..INPUTS {
        let Ok((case, _)) = Case::parse(&String::from_utf8_lossy(&mutator.input(number))) else {
            unreadable += 1;
            continue;
        };
        let problem = Problem::new(&case.pipeline, &case.request, &device()).unwrap();
        if points(problem.regions()) > POINTS {
            vast += 1;
            continue;
        }
        match case.check(&device()) {
            Ok(Verdict::Passed) => passed += 1,
            Ok(_) => skipped += 1,
            Err(Failure::Illegal(_)) => refused += 1,
            Err(failure) => {
                let plain = Case { schedule: problem.default_schedule(), ..case.clone() };
                let plain = plain.check(&device()).err().and_then(|other| other.undefined(&case.pipeline));
                assert!(
                    plain.is_some() && plain == failure.undefined(&case.pipeline),
                    "input {number}: {failure}"
                );
                undefined += 1;
            }
        }
    }
    println!(
        "{passed} passed, {refused} refused, {unreadable} unreadable, {vast} too large, {skipped} skipped, {undefined} undefined"
    );
    assert!(passed > 100 && refused > 0 && vast <= 100 && skipped <= 20);
}
