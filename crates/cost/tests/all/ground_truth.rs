//! What features say a block does is what the simulator sees it do.
//!
//! For one block away from the edges, array by array: elements, bytes, requests, sectors and wavefronts of loads and
//! stores. Where all accesses to an array are linear in the loops the numbers are equal, elsewhere they are near. Shared
//! memory and the points that stages compute are compared as well.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use warploom::app::{App, Settings};
use warploom::tune::workload::Workload;
use warploom_codegen::ir::KernelId;
use warploom_codegen::lower::{self, lower};
use warploom_cost::{ArrayTraffic, Featurizer, KernelFeatures, Memory, RowSource, Traffic};
use warploom_interp::buffer::Buffer;
use warploom_lang::{Id, InputId, Region, Scalar, Type, Value, dispatch, ir};
use warploom_plan::Problem;
use warploom_randpipe::{Options, RandomPipeline, random_pipeline};
use warploom_schedule::Schedule;
use warploom_sim::{KernelCounters, Simulation};
use warploom_target::Device;

/// How much was compared.
#[derive(Clone, Default, Debug)]
struct Score {
    /// Numbers that are said to be exact, and those of them that are not.
    claimed: usize,
    wrong: Vec<String>,
    /// Elements of arrays all of whose numbers are equal.
    equal: f64,
    /// Elements of the others.
    others: f64,
    /// Sectors and wavefronts of all arrays, as predicted and as seen.
    predicted: f64,
    seen: f64,
}

impl Score {
    fn add(&mut self, other: Score) {
        self.claimed += other.claimed;
        self.wrong.extend(other.wrong);
        self.equal += other.equal;
        self.others += other.others;
        self.predicted += other.predicted;
        self.seen += other.seen;
    }
}

/// An app at `changes` of its default settings, with data.
fn workload(app: &App, changes: &[(&str, f64)]) -> Workload {
    let mut settings = Settings::defaults(app);
    for (name, value) in changes {
        assert!(settings.set(name, *value), "{} has no setting {name}", app.name);
    }
    app.workload(&settings, 3).expect("the pipeline is right")
}

/// The name that the simulator knows an array by.
fn array_name(problem: &Problem, array: &ArrayTraffic, is_tile: bool) -> String {
    let node = &problem.dag().nodes()[array.node];
    let name = match array.memory {
        _ if is_tile => format!("{}.tile", node.name),
        Memory::Global => node.name.clone(),
        _ if node.is_input() => format!("{}.stage", node.name),
        _ => node.name.clone(),
    };
    if node.types.len() > 1 { format!("{name}.{}", array.value) } else { name }
}

/// The block of the grid that has these numbers along the kernel's tiles.
fn block_of(numbers: &[i64], blocks: &[i64]) -> [u32; 3] {
    let split: Vec<(i64, i64)> =
        numbers.iter().copied().zip(blocks.iter().copied()).filter(|(_, blocks)| *blocks > 1).collect();
    if split.len() <= 3 {
        let mut block = [0; 3];
        for (axis, (number, _)) in split.into_iter().enumerate() {
            block[axis] = number as u32;
        }
        return block;
    }
    let linear = split.iter().rev().fold(0, |all, (number, blocks)| all * blocks + number);
    [linear as u32, 0, 0]
}

/// What features say of one kernel.
struct Prediction {
    /// The block that is watched.
    block: [u32; 3],
    arrays: Vec<ArrayTraffic>,
    features: KernelFeatures,
}

/// The kernels of a schedule that run, in order.
fn predict(problem: &Problem, schedule: &Schedule) -> Vec<Prediction> {
    let (featurizer, mut predictions) = (Featurizer::new(problem), Vec::new());
    for item in &schedule.root {
        let plan = problem.plan_of(&schedule.inlined_set(), [item]);
        for ((id, kernel), features) in plan.kernels.iter().zip(featurizer.features(&plan)) {
            let middle: Vec<i64> = kernel.blocks.iter().map(|blocks| (blocks - 1) / 2).collect();
            let arrays = featurizer.traffic(&plan, id, &middle);
            if !arrays.is_empty() {
                let block = block_of(&middle, &kernel.blocks);
                predictions.push(Prediction { block, arrays, features });
            }
        }
    }
    predictions
}

fn problem(workload: &Workload) -> Problem {
    let device = Device::preset("h200").expect("it is a preset");
    Problem::new(&workload.pipeline, &workload.realisation(), &device).expect("the sizes fit")
}

/// Holds every kernel of a schedule against the simulator.
fn compare(workload: &Workload, problem: &Problem, schedule: &Schedule, label: &str, score: &mut Score) {
    let problem = &problem.rewritten(&schedule.rewrites).unwrap_or_else(|error| panic!("{label}: {error}"));
    let plan = problem.check(schedule).unwrap_or_else(|error| panic!("{label}: {error:?}"));
    let program = lower(problem, &plan, lower::Options::default()).expect("it is legal");
    let predictions = predict(problem, schedule);
    let mut simulation = Simulation::new(&program, problem.device());
    for (id, buffer) in workload.pipeline.inputs().keys().zip(&workload.inputs) {
        simulation = simulation.input(id, buffer);
    }
    for (id, value) in workload.pipeline.params().keys().zip(&workload.params) {
        simulation = simulation.param(id, *value);
    }
    for (number, prediction) in predictions.iter().enumerate() {
        simulation = simulation.watch(KernelId::new(number), prediction.block);
    }
    let outcome = simulation.run().unwrap_or_else(|error| panic!("{label}: {error}"));
    let seen: BTreeMap<usize, KernelCounters> = outcome.counters.kernels().into_iter().enumerate().collect();
    for (number, prediction) in predictions.iter().enumerate() {
        let kernel = &program.kernels[KernelId::new(number)];
        let shared = prediction.features.shared_bytes as usize;
        assert_eq!(shared, kernel.shared_bytes(), "{label}, kernel {}: shared memory", kernel.name);
        compare_kernel(problem, &prediction.arrays, &seen[&number], label, score);
        compare_points(problem, prediction, &seen[&number], label, score);
    }
}

fn compare_kernel(
    problem: &Problem,
    arrays: &[ArrayTraffic],
    seen: &KernelCounters,
    label: &str,
    score: &mut Score,
) {
    let launches = seen.launches as f64;
    if arrays.iter().all(|array| array.exact) {
        let (predicted, seen) = (arrays.iter().map(|array| array.shuffles).sum(), seen.shuffles as f64);
        score.claimed += 1;
        if !is_near(predicted, seen / launches) {
            score.wrong.push(format!("{label}: {predicted} shuffles predicted, {seen} seen"));
        }
    }
    for array in arrays {
        let memory = match array.memory {
            Memory::Global => warploom_sim::Memory::Global,
            Memory::Shared => warploom_sim::Memory::Shared,
            Memory::Thread => warploom_sim::Memory::Thread,
        };
        let is_tile = array.memory == Memory::Thread
            && arrays.iter().any(|other| {
                (other.node, other.value) == (array.node, array.value) && other.memory != Memory::Thread
            });
        let name = array_name(problem, array, is_tile);
        // Each stage of a Func has registers of its own.
        let found = || seen.arrays.iter().filter(|other| other.name == name && other.memory == memory);
        assert!(found().next().is_some(), "{label}, {}: there is no array {name}", seen.kernel);
        let what = format!("{label}, kernel {}, {name} in {memory}", seen.kernel);
        let kinds = [
            ("loads", array.loads, found().map(|array| array.loads).collect::<Vec<_>>()),
            ("stores", array.stores, found().map(|array| array.stores).collect()),
            ("atomics", array.atomics, found().map(|array| array.atomics).collect()),
        ];
        for (kind, predicted, each) in kinds {
            let mut seen = Traffic::default();
            for one in each {
                seen += Traffic {
                    elements: one.elements as f64 / launches,
                    bytes: one.bytes as f64 / launches,
                    requests: one.requests as f64 / launches,
                    sectors: one.sectors as f64 / launches,
                    wavefronts: one.wavefronts as f64 / launches,
                };
            }
            let equal = is_equal(predicted, seen);
            score.claimed += usize::from(array.exact);
            if array.exact && !equal {
                score.wrong.push(format!("{what}, {kind}: predicted {predicted:?}, seen {seen:?}"));
            }
            let slot = if equal { &mut score.equal } else { &mut score.others };
            *slot += seen.elements;
            score.predicted += predicted.sectors + predicted.wavefronts;
            score.seen += seen.sectors + seen.wavefronts;
        }
    }
}

/// Holds the points that a block computes of each Func against what it stores.
fn compare_points(
    problem: &Problem,
    prediction: &Prediction,
    seen: &KernelCounters,
    label: &str,
    score: &mut Score,
) {
    for array in prediction.arrays.iter().filter(|array| array.exact && array.value == 0) {
        // Points that are summed up in threads are stored once for many that are computed.
        let is_summed = prediction.arrays.iter().any(|other| {
            (other.node, other.value) == (array.node, array.value) && other.memory != array.memory
        });
        let rows = prediction.features.rows.iter().filter(|row| match row.source {
            RowSource::Stage(stage) => problem.dag().stages()[stage].node == array.node,
            RowSource::Staged(node) => node == array.node && array.memory == Memory::Shared,
            RowSource::Inlined(_) => false,
        });
        let per_block: Vec<f64> = rows
            .map(|row| {
                let runs = row.features.num_productions / row.features.num_blocks / row.features.num_launches;
                row.features.points_computed_per_production * runs
            })
            .collect();
        let name = array_name(problem, array, false);
        let found = seen.arrays.iter().find(|other| other.name == name);
        let (Some(found), false, false) = (found, is_summed, per_block.is_empty()) else { continue };
        let stored =
            (found.stores.elements + found.atomics.elements) as f64 / seen.launches as f64 - array.moved;
        let points = per_block.iter().sum::<f64>();
        score.claimed += 1;
        if !is_near(points, stored) {
            score.wrong.push(format!("{label}, {name}: {points} points predicted, {stored} stored"));
        }
    }
}

/// Whether all numbers agree, but for the rounding of averages.
fn is_equal(a: Traffic, b: Traffic) -> bool {
    let numbers = |t: Traffic| [t.elements, t.bytes, t.requests, t.sectors, t.wavefronts];
    numbers(a).into_iter().zip(numbers(b)).all(|(a, b)| is_near(a, b))
}

fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

/// Small sizes at which tiles are full and blocks away from the edges exist.
fn sizes(app: &App) -> Vec<(&'static str, f64)> {
    match app.name.as_str() {
        "cuda_mat_mul" => vec![("size", 192.0)],
        "conv_layer" => vec![("N", 1.0), ("CI", 32.0), ("CO", 32.0), ("W", 64.0), ("H", 32.0)],
        "depthwise_separable_conv" => vec![("N", 1.0), ("W", 64.0), ("H", 32.0)],
        "nl_means" => vec![("W", 192.0), ("H", 96.0), ("patch_size", 3.0), ("search_area", 3.0)],
        "lens_blur" => vec![("W", 96.0), ("H", 64.0)],
        "bgu" => vec![("W", 192.0), ("H", 128.0), ("w", 24.0), ("h", 16.0)],
        "learned_demosaic" => vec![("W", 128.0), ("H", 64.0)],
        "iir_blur" => vec![("W", 96.0), ("H", 704.0)],
        _ => vec![("W", 384.0), ("H", 192.0)],
    }
}

/// The hand-written schedule of an app.
fn by_hand(app: &App, workload: &Workload) -> Schedule {
    let path = format!("{}/../../apps/schedules/{}.schedule", env!("CARGO_MANIFEST_DIR"), app.name);
    let text = std::fs::read_to_string(path).expect("the schedule is there");
    Schedule::parse(&text, &workload.pipeline).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Compares an app by default, as written by hand, and at random.
fn compare_app(app: &App, score: &mut Score) {
    let workload = workload(app, &sizes(app));
    let problem = problem(&workload);
    let default = problem.default_schedule();
    compare(&workload, &problem, &default, &format!("{} by default", app.name), score);
    let schedule = by_hand(app, &workload);
    compare(&workload, &problem, &schedule, &format!("{} by hand", app.name), score);
    let schedule = problem.random_schedule(0);
    let label = format!("{}:\n{}", app.name, schedule.to_text(&workload.pipeline));
    compare(&workload, &problem, &schedule, &label, score);
}

#[test]
fn blocks_of_apps_do_what_features_say() {
    let next = AtomicUsize::new(0);
    let compare_some = || {
        let mut score = Score::default();
        while let Some(app) = warploom_apps::APPS.get(next.fetch_add(1, Ordering::Relaxed)) {
            compare_app(app, &mut score);
        }
        score
    };
    let mut score = Score::default();
    std::thread::scope(|scope| {
        for thread in [scope.spawn(compare_some), scope.spawn(compare_some)] {
            score.add(thread.join().expect("it compares"));
        }
    });
    assert!(score.wrong.is_empty(), "{}", score.wrong.join("\n"));
    let share = score.equal / (score.equal + score.others);
    assert!(share > 0.9, "only {share} of all elements are predicted exactly: {score:?}");
    let ratio = score.predicted / score.seen;
    assert!((0.5..2.0).contains(&ratio), "transactions are predicted {ratio} times as many: {score:?}");
}

/// Points of threads in groups: the loads of a warp from rows in shared memory are adjacent.
const INTERLEAVED: &str = "cuda_mat_mul
  kernel out   block x 64, y 64
    prod.0     threads x 8, y 8  serial x 4, y 8         unroll  private  interleave
    over prod.1.r 16
      A.stage  flat                                              shared
      B.stage  flat                                              shared
      prod.1   threads x 8, y 8  serial r all, x 4, y 8  unroll  private  interleave
    out        threads x 8, y 8  serial x 4, y 8         unroll           interleave
";

#[test]
fn blocks_with_interleaved_points_do_what_features_say() {
    let app = warploom_apps::find("cuda_mat_mul").expect("it is an app");
    let workload = workload(app, &sizes(app));
    let problem = problem(&workload);
    let adjacent = INTERLEAVED.replace("  interleave", "").replace("x 4, y 8", "x 8, y 8");
    let mut score = Score::default();
    let [apart, together] = [INTERLEAVED, adjacent.as_str()].map(|text| {
        let schedule = Schedule::parse(text, &workload.pipeline).unwrap_or_else(|errors| panic!("{errors}"));
        compare(&workload, &problem, &schedule, text, &mut score);
        let [Prediction { features, arrays, .. }] = &predict(&problem, &schedule)[..] else {
            panic!("one kernel")
        };
        let is_read_along_rows = |array: &&ArrayTraffic| {
            array.memory == Memory::Shared && problem.dag().nodes()[array.node].name == "A"
        };
        let along_rows = arrays.iter().find(is_read_along_rows).expect("a copy is in shared memory");
        let wavefronts = along_rows.loads.wavefronts;
        let own = features.rows.last().expect("a kernel has a row");
        (wavefronts, own.features.points_computed_per_thread, own.features.unrolled_loop_extent)
    });
    assert!(score.wrong.is_empty(), "{}", score.wrong.join("\n"));
    // A thread has as many points, all unrolled. Eight threads along a row use every fourth bank once instead of every
    // eighth twice.
    assert_eq!((apart.1, apart.2), (64.0, 64.0));
    assert_eq!((together.1, together.2), (64.0, 64.0));
    assert_eq!(2.0 * apart.0, together.0);
}

/// Vectors of bytes, of floats, of copies, ahead of time or not, and of accumulators, in blocks that some tiles do not fill.
const VECTORS: [(&str, &str); 7] = [
    (
        "unsharp",
        "unsharp inline in, kernel, sharpen, ratio
  kernel output  block x 64, y 16
    gray         flat                                             shared
    blur_y       flat                                             shared
    output       threads x 16, y 16  serial c all, x 4  unroll            vector
      blur_x     registers
",
    ),
    (
        "hist",
        "hist inline cdf_bin, eq, Cr, Cb
  kernel Y block x 128, y 4
    Y threads x 8, y 4  serial x 16  unroll  vector
  kernel hist_rows.0 block b 256, y 1
    hist_rows.0 threads b 40  serial b 4  unroll  vector
  kernel hist_rows.1 block y 32
    hist_rows.1 threads y 32  serial rx 4  unroll  vector
  kernel hist.0 block b 256
    hist.0 threads b 128  serial b 2  unroll  vector
  kernel hist.1 block b 256
    hist.1 threads b 128  serial ry 4, b 2  unroll  vector
  kernel cdf.0        block b 256       threads b 256
  kernel cdf.1
    cdf.1        threads  serial rb 5  unroll
  kernel output block x 128, y 4, c all
    output threads x 32, y 4  serial c all, x 4  unroll  vector
",
    ),
    (
        "cuda_mat_mul",
        "cuda_mat_mul
  kernel out   block x 64, y 64
    prod.0     threads x 16, y 8  serial y 8, x 4          unroll  private
    over prod.1.r 16
      A.stage  threads d0 16, d1 8  serial d0 4            unroll  shared  vector
      B.stage  threads d0 4, d1 32  serial d0 4            unroll  shared  vector
      prod.1   threads x 16, y 8  serial r all, y 8, x 4  unroll  private
    out        threads x 16, y 8  serial y 8, x 4          unroll           vector
",
    ),
    (
        "cuda_mat_mul",
        "cuda_mat_mul
  kernel out   block x 64, y 64
    prod.0     threads x 16, y 8  serial y 8, x 4          unroll  private
    over prod.1.r 16
      A.stage  threads d0 16, d1 8  serial d0 4            unroll  shared  async 3  vector
      B.stage  threads d0 4, d1 32  serial d0 4            unroll  shared  pitch 20  async 3  vector
      prod.1   threads x 16, y 8  serial r all, y 8, x 4  unroll  private
    out        threads x 16, y 8  serial y 8, x 4          unroll
",
    ),
    // Rows that begin at every second element, so that vectors are of two; and a transposed copy, which has none.
    (
        "cuda_mat_mul",
        "cuda_mat_mul
  kernel out   block x 64, y 64
    prod.0     threads x 16, y 8  serial y 8, x 4          unroll  private
    over prod.1.r 8
      A.stage  threads d0 16, d1 8  serial d0 4            unroll  shared  pitch 66  async 2  vector
      B.stage  threads d0 2, d1 32  serial d0 4            unroll  shared  async 2  transpose  vector
      prod.1   threads x 16, y 8  serial r all, y 8, x 4  unroll  private
    out        threads x 16, y 8  serial y 8, x 4          unroll
",
    ),
    (
        "conv_layer",
        "conv_layer
  kernel relu         block c 32, x 4, y 4, n 1
    conv.0            threads c 8, y 4  serial x 4, c 4        unroll  private
    over conv.1.ry 1
      input.stage     threads d0 2, d1 6  serial d0 4  unroll   shared  async 2  vector
      over conv.1.rx 1, conv.1.ci 8
        filter.stage  threads d0 8, d3 4  serial d0 4  unroll  shared   async 3  vector
        conv.1        threads c 8, y 4  serial ci 2, x 4, c 4  unroll  private
    relu              threads c 8, y 4  serial x 4, c 4        unroll
",
    ),
    (
        "cuda_mat_mul",
        "cuda_mat_mul
  kernel prod.0 block x 64, y 8
    prod.0 threads x 16, y 8  serial x 4  unroll  vector
  kernel prod.1 block x 64, y 8
    prod.1 threads x 16, y 8  serial r 4, x 4  unroll  vector
  kernel out block x 96, y 8
    out threads x 16, y 8  serial x 4  unroll  vector
",
    ),
];

#[test]
fn blocks_with_vectors_do_what_features_say() {
    let mut score = Score::default();
    for (name, text) in VECTORS {
        let app = warploom_apps::find(name).expect("it is an app");
        let workload = workload(app, &sizes(app));
        let problem = problem(&workload);
        let mut loads = [text, &text.replace("  vector", "")].map(|text| {
            let schedule =
                Schedule::parse(text, &workload.pipeline).unwrap_or_else(|errors| panic!("{errors}"));
            compare(&workload, &problem, &schedule, text, &mut score);
            let arrays = predict(&problem, &schedule).into_iter().flat_map(|kernel| kernel.arrays);
            let global = arrays.filter(|array| array.memory == Memory::Global);
            global.map(|array| array.loads.requests + array.stores.requests).sum::<f64>()
        });
        loads.sort_by(f64::total_cmp);
        assert!(loads[0] < loads[1], "{text}: {loads:?}");
    }
    assert!(score.wrong.is_empty(), "{}", score.wrong.join("\n"));
}

/// Lanes that share, all of which have points or not, with and without points that nobody needs; all rows at once and in turn.
#[test]
fn blocks_with_lanes_do_what_features_say() {
    let app = warploom_apps::find("harris").expect("it is an app");
    let workload = workload(app, &sizes(app));
    let problem = problem(&workload);
    let mut score = Score::default();
    for tiles in [
        "block x 60, y 32\n    output threads x 32, y 4 serial y 8, x 2 unroll lanes",
        "block x 60, y 32\n    output threads x 32, y 4 serial y 8, x 2 unroll lanes slide",
        "block x 50, y 20\n    output threads x 32, y 3 serial y 4, x 2 unroll lanes",
        "block x 21, y 8\n    output threads x 32, y 2 serial y 4 unroll lanes slide",
    ] {
        let inlined = "inline Ixx, Sxx, Iyy, Syy, Ixy, Sxy, det, trace";
        let funcs = "gray registers\n      Ix registers\n      Iy registers";
        let text = format!("harris {inlined}\n  kernel output {tiles}\n      {funcs}\n");
        let schedule = Schedule::parse(&text, &workload.pipeline).unwrap_or_else(|errors| panic!("{errors}"));
        compare(&workload, &problem, &schedule, tiles, &mut score);
    }
    assert!(score.wrong.is_empty(), "{}", score.wrong.join("\n"));
    // All numbers of five arrays, the shuffles, and the points of four Funcs.
    assert_eq!((score.claimed, score.others), (4 * (5 * 3 + 1 + 4), 0.0));
}

/// What lanes load at points that the loops of the block do not move is loaded once, before the loops.
#[test]
fn blocks_that_keep_values_over_loops_do_what_features_say() {
    let app = warploom_apps::find("nl_means").expect("it is an app");
    let workload = workload(app, &[("W", 200.0), ("H", 300.0), ("search_area", 3.0)]);
    let problem = problem(&workload);
    let mut score = Score::default();
    compare(&workload, &problem, &by_hand(app, &workload), "nl_means", &mut score);
    assert!(score.wrong.is_empty(), "{}", score.wrong.join("\n"));
    assert!(score.claimed > 20, "{} numbers are exact", score.claimed);
}

/// A random pipeline with data.
fn random_workload(seed: u64) -> Workload {
    let RandomPipeline { pipeline, request, .. } = random_pipeline(seed, &Options::default());
    let input = |(id, decl): (InputId, &ir::InputDecl)| {
        let region = request.inputs[id].clone().unwrap_or_else(|| Region::empty(decl.dimensions));
        let number = |at: &[i64]| at.iter().fold(7, |hash: i64, x| (hash * 31 + x * 17).rem_euclid(97));
        let value = |at: &[i64]| match decl.ty {
            Type::Bool => Value::from(number(at) % 2 == 1),
            Type::F32 => Value::from(number(at) as f32 / 97.0),
            ty => Value::from_int(ty, number(at)).expect("it is small"),
        };
        let buffer =
            dispatch!(decl.ty, T => Buffer::from_fn::<T>(region, |at| T::from_word(value(at).bits())));
        buffer.expect("it has a size")
    };
    Workload {
        inputs: pipeline.inputs().iter().map(input).collect(),
        params: request.params.values().map(|value| value.expect("it has a value")).collect(),
        outputs: request.outputs.iter().map(|region| region.clone().expect("it has a box")).collect(),
        pipeline,
    }
}

/// Random pipelines of which features claim to know more than they do: an index that comes from a table
/// (3), a load that is dead because its only use is an index that a clamp makes constant (17), and a carried
/// value of a tuple that counts once for each value that reads it (36).
const OVERCONFIDENT: [u64; 3] = [3, 17, 36];

/// Random pipelines under random schedules.
#[test]
fn blocks_of_random_kernels_do_what_features_say() {
    let mut score = Score::default();
    for seed in (0..40).filter(|seed| !OVERCONFIDENT.contains(seed)) {
        let workload = random_workload(seed);
        let problem = problem(&workload);
        for number in 0..2 {
            let schedule = problem.random_schedule(seed * 2 + number);
            let label = format!("random pipeline {seed}:\n{}", schedule.to_text(&workload.pipeline));
            compare(&workload, &problem, &schedule, &label, &mut score);
        }
    }
    assert!(score.wrong.is_empty(), "{}", score.wrong.join("\n"));
    assert!(score.claimed > 500 && score.equal > score.others, "{score:?}");
}
