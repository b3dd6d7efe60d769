//! The driver: the same on any number of threads, and nothing wrong.

use std::sync::atomic::{AtomicU64, Ordering};

use warploom_fuzz::{Case, Options, Summary, Verdict, fuzz, random_schedules};
use warploom_plan::Problem;
use warploom_schedule::Schedule;

use crate::support::*;

fn options(threads: usize) -> Options {
    Options { pipelines: 80, threads: Some(threads), max_failures: 5, ..Options::default() }
}

/// What was found, without times.
fn found(summary: &Summary) -> Vec<String> {
    let text = |case: &Option<Case>| {
        case.as_ref().map(|case| case.pipeline.to_json() + &case.schedule.to_text(&case.pipeline))
    };
    summary.failures.iter().map(|found| format!("{} {:?}", found.failure, text(&found.case))).collect()
}

#[test]
fn threads_change_nothing() {
    let check = |case: &Case| {
        if case.pipeline.funcs().len().is_multiple_of(4) { Err(made_up()) } else { Ok(Verdict::Passed) }
    };
    let run = |threads| {
        let calls = AtomicU64::new(0);
        let count = |_| {
            calls.fetch_add(1, Ordering::Relaxed);
        };
        let summary = fuzz(&options(threads), &device(), &random_schedules(2), &check, &count).unwrap();
        assert_eq!(
            (calls.load(Ordering::Relaxed), summary.pairs),
            (summary.pipelines, summary.pipelines * 2)
        );
        summary
    };
    let (one, three) = (run(1), run(3));
    // There are enough failures in the first batch.
    assert!(one.stopped && one.pipelines == 64 && one.failures.len() > 5, "{}", one.failures.len());
    assert_eq!(found(&one), found(&three));
    assert_eq!((one.pairs, one.skipped), (three.pairs, three.skipped));
    assert_eq!(one.coverage.to_string(), three.coverage.to_string());
}

#[test]
fn a_panic_of_the_checker_is_not_swallowed() {
    let check = |case: &Case| case.check_with(|_| panic!("made up"));
    let options = Options { pipelines: 1, ..Options::default() };
    let summary = fuzz(&options, &device(), &random_schedules(1), &check, &|_| ()).unwrap();
    assert_eq!(summary.failures[0].failure.to_string(), "panic: made up");
}

/// The pipeline is kept, so that somebody can find out why.
#[test]
fn a_panic_while_schedules_are_made_is_a_failure() {
    let schedules = |_: &Problem, _: u64| -> Vec<Schedule> { panic!("made up") };
    let options = Options { pipelines: 2, ..Options::default() };
    let summary = fuzz(&options, &device(), &schedules, &|_| Ok(Verdict::Passed), &|_| ()).unwrap();
    assert_eq!((summary.pipelines, summary.pairs, summary.failures.len()), (2, 2, 2));
    assert_eq!(summary.failures[1].failure.to_string(), "panic: made up");
    let case = summary.failures[1].case.as_ref().expect("there is a pipeline");
    assert_eq!(case.check(&device()).unwrap(), Verdict::Passed);
}

#[test]
fn a_pipeline_may_get_any_number_of_schedules() {
    let schedules =
        |problem: &Problem, seed: u64| vec![problem.default_schedule(); usize::try_from(seed % 3).unwrap()];
    let checked = AtomicU64::new(0);
    let check = |_: &Case| {
        checked.fetch_add(1, Ordering::Relaxed);
        Ok(Verdict::Passed)
    };
    let options = Options { pipelines: 20, ..Options::default() };
    let summary = fuzz(&options, &device(), &schedules, &check, &|_| ()).unwrap();
    assert_eq!((summary.pipelines, summary.pairs), (20, checked.load(Ordering::Relaxed)));
    assert!((1..40).contains(&summary.pairs), "{}", summary.pairs);
}

#[test]
fn simulator_and_reference_agree() {
    let device = device();
    let options = Options { pipelines: 12, ..Options::default() };
    let check = |case: &Case| case.check(&device);
    let summary = fuzz(&options, &device, &random_schedules(2), &check, &|_| ()).unwrap();
    let failures: Vec<String> = summary.failures.iter().map(|found| found.failure.to_string()).collect();
    assert_eq!((summary.pairs, failures), (24, Vec::new()));
}

/// Every decision is taken for every kind of stage that it can be taken for, often enough to be tested.
#[test]
fn schedules_cover_every_decision() {
    let options = Options { pipelines: 500, seed: 6, ..Options::default() };
    let summary = fuzz(&options, &device(), &random_schedules(3), &|_| Ok(Verdict::Passed), &|_| ()).unwrap();
    let rare = summary.coverage.rare(0.05, 200);
    assert!(rare.is_empty(), "{rare:?}\n{}", summary.coverage);
    for (word, share) in summary.coverage.numbers() {
        assert!(share.taken >= 20, "{word}: {share:?}");
    }
    assert!(summary.coverage.levels().part() >= 0.7, "{}", summary.coverage);
    assert!(summary.coverage.shuffles().taken >= 20, "{}", summary.coverage);
    assert!(summary.coverage.edges().part() >= 0.05, "{}", summary.coverage);
}
