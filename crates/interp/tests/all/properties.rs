//! Random pipelines: either the evaluator agrees with the naive one bit for bit, or bounds
//! inference rejects the pipeline.
//!
//! A pipeline is built from lists of numbers, so a failing case shrinks with its lists. `PROPTEST_CASES`
//! raises the number of cases.

mod edges;
mod maker;

use maker::Maker;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use warploom_interp::Evaluation;
use warploom_interp::buffer::Buffer;
use warploom_lang::*;

use crate::naive::Naive;

/// Evaluations that visit more points than this are skipped.
const MAX_WORK: u64 = 300_000;

/// A pipeline with its inputs, Params and requested boxes.
struct Case {
    pipeline: Pipeline,
    images: Vec<Buffer>,
    params: Vec<Value>,
    outputs: Vec<Region>,
}

/// The outcome of a case.
#[derive(PartialEq, Debug)]
enum Outcome {
    Evaluated,
    Refused,
    TooMuch,
}

/// Gives a [`Realisation`] or an [`Evaluation`] everything that belongs to a case.
macro_rules! given {
    ($case:expr, $start:expr, $image:expr) => {{
        let (case, mut request) = ($case, $start);
        for (input, image) in case.pipeline.inputs().values().zip(&case.images) {
            request = request.input(&input.name, $image(image));
        }
        for (decl, value) in case.pipeline.params().values().zip(&case.params) {
            request = request.param(&decl.name, *value);
        }
        for (id, region) in case.pipeline.outputs().iter().zip(&case.outputs) {
            request = request.output(&case.pipeline.funcs()[*id].name, region.clone());
        }
        request
    }};
}

impl Case {
    fn request(&self) -> Realisation {
        given!(self, Realisation::new(&self.pipeline), |image: &Buffer| image.region().clone())
    }

    /// Whether bounds inference accepts the case, and whether it is small enough.
    fn outlook(&self) -> Outcome {
        match infer(&self.pipeline, &self.request()) {
            Err(
                BoundsError::Unbounded { .. }
                | BoundsError::FarIndex { .. }
                | BoundsError::Position { .. }
                | BoundsError::LeavesInput { .. }
                | BoundsError::TooLarge { .. },
            ) => Outcome::Refused,
            Err(other) => panic!("{other}"),
            Ok(regions) => {
                let work = regions.funcs.values().map(|func| {
                    let visits =
                        |stage: &StageRegions| stage.domain.iter().map(|r| r.extent as u64).product::<u64>();
                    func.region.points().unwrap() * func.stages.iter().map(visits).sum::<u64>()
                });
                if work.sum::<u64>() > MAX_WORK { Outcome::TooMuch } else { Outcome::Evaluated }
            }
        }
    }

    /// Compares the evaluators. The error describes the first difference.
    fn check(&self) -> Result<(), String> {
        let evaluation = given!(self, Evaluation::new(&self.pipeline), |image| image);
        let mut buffers = evaluation.run().map_err(|error| error.to_string())?.into_iter();
        let mut naive = Naive::new(&self.pipeline, self.images.iter().collect(), self.params.clone());
        for (&id, region) in self.pipeline.outputs().iter().zip(&self.outputs) {
            let func = &self.pipeline.funcs()[id];
            let found: Vec<Vec<Value>> = buffers.by_ref().take(func.types.len()).map(samples).collect();
            for (point, expected) in naive.values(id, region).into_iter().enumerate() {
                let got: Vec<Value> =
                    found.iter().filter_map(|samples| samples.get(point).copied()).collect();
                if got.len() != expected.len() || !got.iter().zip(&expected).all(|(a, b)| same(*a, *b)) {
                    return Err(format!("point {point} of `{}` is {got:?}, not {expected:?}", func.name));
                }
            }
        }
        Ok(())
    }
}

/// All samples, first coordinate fastest.
fn samples(buffer: Buffer) -> Vec<Value> {
    dispatch!(buffer.ty(), T => {
        let stored = buffer.as_slice::<T>().unwrap();
        buffer.offsets().map(|offset| Value::from(stored[offset])).collect()
    })
}

/// Whether the bits are equal or both are NaN.
fn same(a: Value, b: Value) -> bool {
    a == b || (a.ty() == b.ty() && a.as_f64().is_nan() && b.as_f64().is_nan())
}

/// The choices for the inputs, the outputs and each Func. They print on one line.
struct Plan(Vec<Vec<u32>>);

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

fn plans() -> impl Strategy<Value = Plan> {
    vec(vec(any::<u32>(), 10..200), 4..=8).prop_map(Plan)
}

fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = default.cases.max(2000);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 20_000, ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn evaluators_agree(plan in plans()) {
        let case = Maker::case(plan);
        if case.outlook() == Outcome::Evaluated {
            let found = case.check();
            prop_assert!(found.is_ok(), "{}\n{}\n{:?}", found.unwrap_err(), case.pipeline, case.request());
        }
    }
}

#[test]
fn most_pipelines_evaluate() {
    let mut runner = TestRunner::deterministic();
    let count = 400;
    let outcomes: Vec<Outcome> =
        (0..count).map(|_| Maker::case(plans().new_tree(&mut runner).unwrap().current()).outlook()).collect();
    let evaluated = outcomes.iter().filter(|outcome| **outcome == Outcome::Evaluated).count();
    assert!(evaluated * 5 > count * 4, "{evaluated} of {count}: {outcomes:?}");
}
