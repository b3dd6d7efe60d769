//! Tensor Comprehensions as kernels: what they compute in the simulator is what the evaluator computes, bit for bit.

#[path = "../../../tensor/tests/all/reference.rs"]
#[expect(dead_code, reason = "the results of NumPy are compared with the evaluator elsewhere")]
mod reference;

use reference::{Folder, Reference};
use warploom::codegen::build::build;
use warploom::codegen::ir::Program;
use warploom::codegen::verify::verify;
use warploom::cost::Analytic;
use warploom::interp::compare::{Tolerance, compare};
use warploom::lang::rewrite::Rewrite;
use warploom::plan::Problem;
use warploom::prelude::*;
use warploom::schedule::Schedule;
use warploom::search::Options;
use warploom::tensor::parse;
use warploom::tune::one_shot::one_shot;
use warploom::tune::workload::Workload;

/// Random schedules per case.
const RANDOM: u64 = 5;

/// Kernels for larger sizes than this are built, not simulated.
const SMALL: i64 = 150;

fn h200() -> Device {
    Device::preset("h200").unwrap()
}

fn problem(workload: &Workload) -> Problem {
    Problem::new(&workload.pipeline, &workload.realisation(), &h200()).unwrap()
}

fn of_reference(example: &Reference) -> Workload {
    Workload {
        pipeline: example.pipeline.clone(),
        inputs: example.inputs.clone(),
        params: example.params.clone(),
        outputs: example.request.outputs.iter().map(|region| region.clone().unwrap()).collect(),
    }
}

fn built(problem: &Problem, schedule: &Schedule, label: &str) -> Program {
    let program = build(problem, schedule).unwrap_or_else(|error| panic!("{label}: {error}"));
    verify(&program).unwrap_or_else(|error| panic!("{label}: {error}"));
    program
}

/// Simulates a schedule. What its rewrites make of the pipeline decides what is right.
fn check(workload: &Workload, schedule: &Schedule, label: &str) {
    let pipeline = workload.pipeline.rewritten(&schedule.rewrites).unwrap().into_owned();
    let text = schedule.to_text(&pipeline);
    let problem = problem(workload);
    let program = built(&problem, schedule, label);
    let simulated = workload.simulate(&program, problem.device(), 5);
    let simulated = simulated.unwrap_or_else(|error| panic!("{label}: {error}\n{text}"));
    let expected = Workload { pipeline, ..workload.clone() }.reference().unwrap();
    assert_eq!(simulated.outputs.len(), expected.len(), "{label}");
    for (got, expected) in simulated.outputs.iter().zip(&expected) {
        let found = compare(got, expected, &Tolerance::default()).unwrap();
        assert!(found.identical, "{label} differs: {:?}\n{text}", found.first);
    }
}

/// What a short search finds.
fn searched(problem: &Problem, label: &str) -> Schedule {
    let options = Options { samples: 2, beam: 4, passes: 2, ..Options::default() };
    let found = one_shot(problem, &Analytic::new(problem.device()), &options, &|_| {});
    let found = found.unwrap_or_else(|error| panic!("{label}: {error}"));
    assert!(found.refused.is_empty(), "{label}: {}", found.refused[0]);
    found.planned.schedule
}

fn check_all(folder: Folder) {
    for example in folder.references() {
        let (name, workload) = (&example.name, of_reference(&example));
        let problem = problem(&workload);
        check(&workload, &problem.default_schedule(), &format!("{name}, by default"));
        check(&workload, &searched(&problem, name), &format!("{name}, as found"));
        for seed in 0..RANDOM {
            let schedule = problem.random_schedule(seed);
            check(&workload, &schedule, &format!("{name}, random schedule {seed}"));
        }
    }
}

#[test]
fn examples_under_default_random_and_searched_schedules() {
    check_all(Folder::Examples);
}

#[test]
fn operators_under_default_random_and_searched_schedules() {
    check_all(Folder::Operators);
}

/// The schedule in the document, for one example, and a variant with the gathered values in registers.
#[test]
fn gathers_in_two_steps() {
    let document =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tensor.md")).unwrap();
    let (_, rest) = document.split_once("```text\nlut\n").expect("the document has a schedule for it");
    let (text, _) = rest.split_once("```").unwrap();
    let in_shared = format!("lut\n{text}");
    let in_registers = "lut
  kernel O block j 7, i 3
    O.sum.0 threads j 7, i 3 private
    I.stage flat shared
    O.sum.1 threads j 7, i 3 serial k all unroll private
      T.gathered registers
    O threads j 7, i 3
";
    let all = Folder::Examples.references();
    let workload = of_reference(all.iter().find(|example| example.name == "lut").unwrap());
    for text in [in_shared.as_str(), in_registers] {
        let schedule = Schedule::parse(text, &workload.pipeline).unwrap_or_else(|errors| panic!("{errors}"));
        let printed = schedule.to_text(&workload.pipeline);
        assert_eq!(Schedule::parse(&printed, &workload.pipeline).unwrap(), schedule, "{printed}");
        check(&workload, &schedule, text);
    }
}

/// A generator of pseudo-random numbers (xorshift).
struct Draw(u64);

impl Draw {
    fn between(&mut self, low: i64, high: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        low + (self.0 % (high - low + 1) as u64) as i64
    }
}

/// A definition at some sizes, with made-up floats.
fn made_up(text: &str, sizes: &[(&str, i64)], draw: &mut Draw) -> Workload {
    let (pipeline, request) =
        parse("made_up.tc", text).unwrap().define(None).unwrap().realise(sizes).unwrap();
    let inputs = request.inputs.values().map(|region| region.clone().unwrap());
    let inputs = inputs
        .map(|region| Buffer::from_fn(region, |_| draw.between(-999, 999) as f32 / 500.0).unwrap())
        .collect();
    let params = pipeline.params().values().map(|_| Value::from(0.375_f32)).collect();
    let outputs = request.outputs.into_iter().map(|region| region.unwrap()).collect();
    Workload { pipeline, inputs, params, outputs }
}

/// Builds the default schedule, and what is found for these sizes; simulates both if the sizes are small.
fn check_at(name: &str, text: &str, sizes: &[(&str, i64)], draw: &mut Draw) {
    let workload = made_up(text, sizes, draw);
    let problem = problem(&workload);
    let label = format!("{name} at {sizes:?}");
    for (how, schedule) in
        [("by default", problem.default_schedule()), ("as found", searched(&problem, &label))]
    {
        let label = format!("{label}, {how}");
        match sizes.iter().all(|(_, size)| *size <= SMALL) {
            true => check(&workload, &schedule, &label),
            false => drop(built(&problem, &schedule, &label)),
        }
    }
}

#[test]
fn attention_at_any_sizes() {
    let text = Folder::Examples.text("attention.tc");
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
    for number in 0..16 {
        let mut size = |name, most| (name, draw.between(1, most));
        let sizes = match number % 4 {
            0 => [size("Q", 700), size("D", 70), size("T", 1000), size("V", 70)],
            _ => [size("Q", 40), size("D", 20), size("T", 150), size("V", 20)],
        };
        check_at("attention", &text, &sizes, &mut draw);
    }
}

/// Sums and maxima of rows are shared by threads, although the products of matrices beside them stay as they are.
#[test]
fn rows_of_attention_are_shared() {
    let sizes = [("Q", 512), ("D", 64), ("T", 777), ("V", 64)];
    let workload = made_up(&Folder::Examples.text("attention.tc"), &sizes, &mut Draw(1));
    let found = searched(&problem(&workload), "attention");
    let factored = found.rewrites.iter().filter_map(|rewrite| match rewrite {
        Rewrite::Factor { var, .. } => Some(var.stage.func.as_str()),
        _ => None,
    });
    let mut factored: Vec<&str> = factored.collect();
    factored.sort_unstable();
    assert_eq!(factored, ["highest.max", "total.sum"]);
}

#[test]
fn strided_pooling_at_any_sizes() {
    let mut draw = Draw(0x2545_f491_4f6c_dd1d);
    for _ in 0..12 {
        let [y, x] = [0; 2].map(|_| draw.between(1, 4));
        let [height, width] = [0; 2].map(|_| draw.between(1, 5));
        let text = format!(
            "def pool(float(N,H,W) I) -> (O) {{
                O(n,h,w) max=! I(n,{y}*h + u,{x}*w + v) where u in 0:{height}, v in 0:{width}
            }}"
        );
        let sizes =
            [("N", draw.between(1, 3)), ("H", draw.between(height, 60)), ("W", draw.between(width, 90))];
        check_at(&format!("pooling by {y}, {x} of {height}, {width}"), &text, &sizes, &mut draw);
    }
}
