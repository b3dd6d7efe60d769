//! Random pipelines under other roundings.

use warploom_fuzz::{Case, Failure, Options, Run, Verdict, fuzz};
use warploom_interp::compare::{Tolerance, compare};
use warploom_lang::rounding;
use warploom_schedule::schedule::Schedule;

/// A run whose roundings no judge has seen.
const UNSEEN: u64 = 1_000_000;

fn rounded_otherwise(run: &Run<'_>) -> Result<Vec<warploom_interp::buffer::Buffer>, Failure> {
    let outputs = run.case.evaluation(&run.inputs).perturbed(UNSEEN).run();
    outputs.map_err(|error| Failure::Reference(Box::new(error)))
}

/// What no rounding reaches keeps its bits.
fn is_exact_where_it_must(run: &Run<'_>) -> Result<Verdict, Failure> {
    let reached = rounding::reached(&run.case.pipeline);
    let reached = run.case.pipeline.outputs().iter().flat_map(|id| reached[*id].clone());
    let outputs = rounded_otherwise(run)?;
    for ((reached, actual), expected) in reached.zip(&outputs).zip(&run.expected) {
        let compared = compare(actual, expected, &Tolerance::default()).unwrap();
        if !reached && !compared.identical {
            return Err(Failure::Numeric(compared.to_string()));
        }
    }
    Ok(Verdict::Passed)
}

fn tried(
    seed: u64,
    pipelines: u64,
    check: fn(&Run<'_>) -> Result<Verdict, Failure>,
) -> warploom_fuzz::Summary {
    let options = Options { pipelines, seed, max_failures: 1000, ..Options::default() };
    let default =
        |subject: &warploom_fuzz::Subject<'_>| vec![Schedule::default_for(subject.pipeline, subject.regions)];
    fuzz(&options, &default, &|case: &Case| case.check_with(check), &|_| ()).unwrap()
}

#[test]
fn what_no_rounding_reaches_does_not_change() {
    let summary = tried(5, 150, is_exact_where_it_must);
    assert_eq!(summary.failures.len(), 0, "{:?}", summary.failures.first().map(|found| &found.failure));
}

/// The judge knows other seeds than this run's, and lets it pass.
#[test]
fn other_roundings_are_no_failures() {
    let summary = tried(5, 60, |run| run.judge(&rounded_otherwise(run)?));
    let failures: Vec<String> = summary.failures.iter().map(|found| found.failure.to_string()).collect();
    assert_eq!(failures.len(), 0, "{failures:#?}");
}

/// On a GPU these gave findings that were called numeric: a sample of 0.806 in place of 0.660.
#[test]
fn pipelines_that_make_much_of_little_are_named() {
    let summary = tried(31337, 40, |run| run.judge(&rounded_otherwise(run)?));
    let failures: Vec<String> = summary.failures.iter().map(|found| found.failure.to_string()).collect();
    assert_eq!(failures.len(), 0, "{failures:#?}");
    assert!(!summary.ill_conditioned.is_empty());
}
