//! Copies ahead of time: what features say of them, and what the analytic model makes of it.

use warploom_cost::{Analytic, Featurizer, KernelFeatures};
use warploom_lang::{Input, Pipeline, Realisation, Region, func, rdom, vars};
use warploom_plan::Problem;
use warploom_schedule::Schedule;
use warploom_target::Device;

fn product() -> Problem {
    let (x, y) = vars!(x, y);
    let (a, b, r) = (Input::f32("a", 2), Input::f32("b", 2), rdom!(r: (0, 1024)));
    let prod = func("prod", (x, y), 0.0).over(&r, |f| f.add((x, y), a.at((x, r.x)) * b.at((r.x, y))));
    let pipeline = Pipeline::new("product", [func("out", (x, y), prod.at((x, y)))]).expect("it is right");
    let square = Region::of_extents(&[1024, 1024]);
    let request = Realisation::new(&pipeline).input("a", square.clone()).input("b", square.clone());
    let device = Device::preset("h200").expect("it is a preset");
    Problem::new(&pipeline, &request.output("out", square), &device).expect("the sizes fit")
}

/// The kernel of a product in slices of 8 values, with so many of them at once.
fn kernel(problem: &Problem, depth: u32) -> KernelFeatures {
    let copied = if depth > 1 { format!("async {depth}") } else { String::new() };
    let text = format!(
        "product
  kernel out block x 128, y 64
    prod.0 threads x 32, y 8 serial x 4, y 8 unroll private
    over prod.1.r 8
      a.stage flat shared {copied}
      b.stage flat shared {copied}
      prod.1 threads x 32, y 8 serial r all, x 4, y 8 unroll private
    out threads x 32, y 8 serial x 4, y 8 unroll
"
    );
    let schedule = Schedule::parse(&text, problem.pipeline()).expect("it is a schedule");
    let plan = problem.check(&schedule).expect("it is legal");
    Featurizer::new(problem).features(&plan).remove(0)
}

#[test]
fn features_tell_copies_ahead_from_others() {
    let problem = product();
    let [plain, ahead] = [1, 3].map(|depth| kernel(&problem, depth));
    let slices = |kernel: &KernelFeatures| -> Vec<f64> {
        kernel.rows.iter().map(|row| row.features.copied_slices).collect()
    };
    assert_eq!(slices(&plain), [0.0; 5]);
    assert_eq!(slices(&ahead), [0.0, 3.0, 3.0, 0.0, 0.0]);
    assert_eq!(ahead.shared_bytes, 3 * plain.shared_bytes);
    // One barrier an iteration instead of two.
    assert_eq!((plain.barriers, ahead.barriers), (256.0, 128.0));
}

/// A block that waits less is faster alone, the more so the further ahead it copies. Nothing else gets slower.
#[test]
fn waiting_is_hidden_behind_work() {
    let problem = product();
    let model = Analytic::new(problem.device());
    let parts: Vec<_> = (1..=4).map(|depth| model.parts(&kernel(&problem, depth))).collect();
    assert!(parts[1].latency < 0.9 * parts[0].latency, "{parts:#?}");
    assert!(parts[1..].windows(2).all(|pair| pair[1].latency <= pair[0].latency), "{parts:#?}");
    assert!(parts[1].sm <= parts[0].sm && parts[1].dram == parts[0].dram, "{parts:#?}");
}
