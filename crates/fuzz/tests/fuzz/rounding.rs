//! Random pipelines under other roundings.

use warploom_fuzz::{Case, Failure, Options, Run, Summary, Verdict, fuzz};
use warploom_interp::buffer::Buffer;
use warploom_interp::compare::{Tolerance, compare};
use warploom_lang::*;
use warploom_plan::Problem;

use crate::support::device;

/// The run that fuses every product that it can.
const FUSED: u64 = 0;

/// Seeds of runs whose roundings no judge has seen.
const UNSEEN: std::ops::Range<u64> = 1_000_000..1_000_008;

fn rounded_otherwise(run: &Run<'_>, seed: u64) -> Result<Vec<Buffer>, Failure> {
    let outputs = run.case.evaluation(&run.inputs).perturbed(seed).run();
    outputs.map_err(|error| Failure::Reference(Box::new(error)))
}

/// What no rounding reaches keeps its bits.
fn is_exact_where_it_must(run: &Run<'_>) -> Result<Verdict, Failure> {
    let reached = rounding::reached(&run.case.pipeline, rounding::Rounding::Timing);
    let reached = run.case.pipeline.outputs().iter().flat_map(|id| reached[*id].clone());
    let outputs = rounded_otherwise(run, UNSEEN.start)?;
    for ((reached, actual), expected) in reached.zip(&outputs).zip(&run.expected) {
        let compared = compare(actual, expected, &Tolerance::default()).unwrap();
        if !reached && !compared.identical {
            return Err(Failure::Numeric(compared.to_string()));
        }
    }
    Ok(Verdict::Passed)
}

fn tried(seed: u64, pipelines: u64, check: fn(&Run<'_>) -> Result<Verdict, Failure>) -> Summary {
    let options = Options { pipelines, seed, max_failures: 1000, ..Options::default() };
    let default = |problem: &Problem, _: u64| vec![problem.default_schedule()];
    fuzz(&options, &device(), &default, &|case: &Case| case.check_with(check), &|_| ()).unwrap()
}

fn failures(summary: &Summary) -> Vec<String> {
    summary.failures.iter().map(|found| found.failure.to_string()).collect()
}

#[test]
fn what_no_rounding_reaches_does_not_change() {
    let failures = failures(&tried(5, 150, is_exact_where_it_must));
    assert_eq!(failures.len(), 0, "{failures:#?}");
}

/// What the judge says of several runs that it does not know: the first that is not passed.
fn judged(run: &Run<'_>) -> Result<Verdict, Failure> {
    for seed in UNSEEN {
        let verdict = run.judge(&rounded_otherwise(run, seed)?)?;
        if verdict != Verdict::Passed {
            return Ok(verdict);
        }
    }
    Ok(Verdict::Passed)
}

#[test]
fn other_roundings_are_no_failures() {
    let failures = failures(&tried(5, 60, judged));
    assert_eq!(failures.len(), 0, "{failures:#?}");
}

/// What the judge says of the run that fuses products.
fn fused(run: &Run<'_>) -> Result<Verdict, Failure> {
    run.judge(&rounded_otherwise(run, FUSED)?)
}

#[test]
fn fused_products_are_no_failures() {
    let failures = failures(&tried(31337, 40, fused));
    assert_eq!(failures.len(), 0, "{failures:#?}");
}

/// The remainder of 1e9 cancels: a unit in the last place of the quotient moves it by 64, and it becomes an index. On a GPU,
/// such a pipeline was called numeric.
#[test]
fn pipelines_that_make_much_of_little_are_named() {
    let x = vars!(x);
    let input = Input::f32("input", 1);
    let rest = func("rest", x, (input.at(x) * 1e9) % (input.at(x) + 0.5));
    let read = func("read", x, input.at(clamp((rest.at(x) * 32.0).i32(), 0, 31)));
    let pipeline = Pipeline::new("remainder", [read]).unwrap();
    let all = Region::of_extents(&[32]);
    let request = Realisation::new(&pipeline).input("input", all.clone()).output("read", all);
    let schedule = Problem::new(&pipeline, &request, &device()).unwrap().default_schedule();
    let verdict = Case { pipeline, request, schedule, seed: 5 }.check_with(fused).unwrap();
    assert!(matches!(&verdict, Verdict::IllConditioned(why) if why.starts_with("`read`:")), "{verdict:?}");
}
