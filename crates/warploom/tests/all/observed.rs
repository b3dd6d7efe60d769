//! What an observer of the simulator is told: every access, with the points of Funcs and inputs that it touches.

use std::collections::{BTreeMap, BTreeSet};

use warploom::codegen::build::build_with_points;
use warploom::codegen::ir::KernelId;
use warploom::codegen::points::{Held, Points};
use warploom::plan::Problem;
use warploom::prelude::*;
use warploom::schedule::{Schedule, Source};
use warploom::sim::{Observed, Observer, Outcome, Simulation};

type At = Vec<i32>;

/// Everything that is reported.
#[derive(Default)]
struct Log {
    points: Points,
    kernel: Option<KernelId>,
    /// What each thread has read since its last store.
    open: BTreeMap<u32, BTreeSet<(Held, At)>>,
    /// Stores in order: what, where, the bits, and what was read for them.
    stores: Vec<Store>,
    reads: u64,
}

struct Store {
    held: Held,
    at: At,
    bits: u64,
    read: BTreeSet<(Held, At)>,
}

impl Observer for Log {
    fn launch(&mut self, kernel: KernelId, _: &[u32]) {
        self.kernel = Some(kernel);
        self.open.clear();
    }

    fn block(&mut self, _: [u32; 3]) {
        self.open.clear();
    }

    fn access(&mut self, access: &Observed<'_>) {
        let held = self.points.kernels[self.kernel.unwrap()].arrays[access.array].unwrap();
        for (number, &thread) in access.threads.iter().enumerate() {
            let at = access.points[number * access.dimensions..][..access.dimensions].to_vec();
            match access.values.get(number) {
                None => {
                    self.open.entry(thread).or_default().insert((held, at));
                    self.reads += 1;
                }
                Some(bits) => {
                    let read = self.open.remove(&thread).unwrap_or_default();
                    self.stores.push(Store { held, at, bits: *bits, read });
                }
            }
        }
    }
}

/// A pipeline with an input, at a size.
struct Subject {
    problem: Problem,
    input: Buffer,
}

impl Subject {
    fn new(pipeline: &Pipeline, output: &[i64]) -> Subject {
        Subject::with_image(pipeline, &[9, 7], output)
    }

    fn with_image(pipeline: &Pipeline, image: &[i64], output: &[i64]) -> Subject {
        let image = Region::of_extents(image);
        let output_name = pipeline.funcs()[pipeline.outputs()[0]].name.clone();
        let request = Realisation::new(pipeline)
            .input("input", image.clone())
            .output(&output_name, Region::of_extents(output));
        let problem = Problem::new(pipeline, &request, &Device::preset("h200").unwrap()).unwrap();
        let input = Buffer::from_fn(image, |at| (at[0] * 37 + at[1] * 101) as f32 % 64.0).unwrap();
        Subject { problem, input }
    }

    fn observe(&self, schedule: &Schedule) -> (Log, Outcome, Outcome) {
        let (program, points) = build_with_points(&self.problem.planned(schedule.clone()).unwrap()).unwrap();
        let simulation = Simulation::new(&program, self.problem.device()).input("input", &self.input);
        let mut log = Log { points: points.clone(), ..Log::default() };
        let observed = simulation.observe(&points, &mut log).unwrap();
        (log, observed, simulation.run().unwrap())
    }
}

fn blur() -> Pipeline {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let edge = input.repeat_edge().named("edge");
    let row = edge.at((x - 1, y)) + edge.at((x, y)) + edge.at((x + 1, y));
    let blur_x = func("blur_x", (x, y), row / 3.0);
    let column = blur_x.at((x, y - 1)) + blur_x.at((x, y)) + blur_x.at((x, y + 1));
    Pipeline::new("blur", [func("output", (x, y), column / 3.0)]).unwrap()
}

const TILED: &str = "blur inline edge
  kernel output block x 4, y 4
    blur_x flat shared
    output threads x 4, y 4
";

#[test]
fn a_blur_reads_what_its_definition_says() {
    let pipeline = blur();
    let subject = Subject::new(&pipeline, &[9, 7]);
    let schedule = Schedule::parse(TILED, &pipeline).unwrap();
    let (log, observed, plain) = subject.observe(&schedule);
    assert_eq!(observed, plain, "an observer changes neither results nor counters");

    let of = |name: &str| Held { source: Source::Func(pipeline.func_named(name).unwrap()), value: 0 };
    let input = Held { source: Source::Input(pipeline.input_named("input").unwrap()), value: 0 };
    let (mut outputs, mut rows) = (BTreeMap::new(), BTreeMap::new());
    for Store { held, at, read, .. } in &log.stores {
        let (x, y) = (at[0], at[1]);
        let expected: BTreeSet<(Held, At)> = if *held == of("output") {
            *outputs.entry((x, y)).or_insert(0) += 1;
            (-1..=1).map(|dy| (of("blur_x"), vec![x, y + dy])).collect()
        } else {
            assert_eq!(*held, of("blur_x"));
            *rows.entry((x, y)).or_insert(0) += 1;
            (-1..=1).map(|dx| (input, vec![(x + dx).clamp(0, 8), y.clamp(0, 6)])).collect()
        };
        assert_eq!(*read, expected, "{held:?} {at:?}");
    }
    // Every point of the output once; rows that two blocks read, twice.
    assert_eq!(outputs.len(), 63);
    assert!(outputs.values().all(|times| *times == 1));
    assert_eq!(rows.len(), 9 * 9);
    assert!(rows.iter().all(|((_, y), times)| *times == if [3, 4].contains(y) { 2 } else { 1 }));

    // Nothing is left out.
    let arrays = || plain.counters.kernels().into_iter().flat_map(|kernel| kernel.arrays);
    assert_eq!(log.stores.len() as u64, arrays().map(|array| array.stores.elements).sum::<u64>());
    assert_eq!(log.reads, arrays().map(|array| array.loads.elements).sum::<u64>());
}

/// Rows that are summed, and a scan.
fn updates() -> (Pipeline, Vec<Pipeline>) {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let r = rdom!(r: (0, 9));
    let sums = func("sums", (x, y), 0.0f32).over(&r, |f| f.add((x, y), input.at((r.x, y)) * x.expr().f32()));
    let s = rdom!(s: (1, 6));
    let scan = func("scan", (x, y), sums.at((x, y)))
        .over(&s, |f| f.set((x, s.x), f.at((x, s.x - 1)) + sums.at((x, s.x))));
    let output = func("output", (x, y), scan.at((x, y)) - sums.at((x, y)));
    let inner = |name: &str, func: &Func| Pipeline::new(name, [func.clone()]).unwrap();
    (Pipeline::new("updates", [output]).unwrap(), vec![inner("sums", &sums), inner("scan", &scan)])
}

/// The last value that is stored at each point of a Func, by coordinates.
fn last_stored(log: &Log, held: Held) -> BTreeMap<At, u64> {
    let own = log.stores.iter().filter(|store| store.held == held);
    own.map(|store| (store.at.clone(), store.bits)).collect()
}

#[test]
fn coordinates_are_those_of_the_func_under_any_schedule() {
    let (pipeline, inner) = updates();
    let subject = Subject::new(&pipeline, &[5, 7]);
    let region = Region::of_extents(&[5, 7]);
    for seed in 0..60 {
        let schedule = subject.problem.random_schedule(seed);
        if !schedule.rewrites.is_empty() {
            continue;
        }
        let (log, observed, _) = subject.observe(&schedule);
        let mut expected = vec![("output", observed.outputs[0].clone())];
        for pipeline in &inner {
            let evaluation = Evaluation::new(pipeline).input("input", &subject.input);
            let values = evaluation.output(pipeline.name(), region.clone()).run().unwrap();
            expected.push((pipeline.name(), values[0].clone()));
        }
        for (name, values) in expected {
            let held = Held { source: Source::Func(pipeline.func_named(name).unwrap()), value: 0 };
            for (at, bits) in last_stored(&log, held) {
                let at: Vec<i64> = at.into_iter().map(i64::from).collect();
                let value =
                    values.get(&at).unwrap_or_else(|| panic!("seed {seed}: {name} has no point {at:?}"));
                assert_eq!(value.bits(), bits, "seed {seed}: {name} at {at:?}");
            }
        }
        assert_eq!(
            last_stored(&log, Held { source: Source::Func(pipeline.outputs()[0]), value: 0 }).len(),
            35
        );
    }
}

/// Copies of four elements at once are told element by element, each with what it was read from.
#[test]
fn copies_by_vectors_are_told_point_by_point() {
    let x = vars!(x);
    let input = Input::f32("input", 2);
    let r = rdom!(r: (0, 6));
    let sum = func("sum", x, 0.0f32).over(&r, |f| f.add(x, input.at((x, r.x))));
    let pipeline = Pipeline::new("columns", [func("output", x, sum.at(x))]).unwrap();
    let image = Region::of_extents(&[8, 6]);
    let request = Realisation::new(&pipeline).input("input", image.clone());
    let request = request.output("output", Region::of_extents(&[8]));
    let problem = Problem::new(&pipeline, &request, &Device::preset("h200").unwrap()).unwrap();
    let input = Buffer::from_fn(image, |at| (at[0] + 8 * at[1]) as f32).unwrap();
    let subject = Subject { problem, input };
    let text = "columns
  kernel output block x 8
    sum.0 threads x 8 private
    over sum.1.r 2
      input.stage threads d0 2, d1 2 serial d0 4 unroll shared async 2 vector
      sum.1 threads x 8 private
    output threads x 8
";
    let (log, observed, plain) = subject.observe(&Schedule::parse(text, &pipeline).unwrap());
    assert_eq!(observed, plain);
    let held = Held { source: Source::Input(pipeline.input_named("input").unwrap()), value: 0 };
    let copies: Vec<&Store> = log.stores.iter().filter(|store| store.held == held).collect();
    assert_eq!(copies.len(), 48);
    for Store { at, bits, read, .. } in copies {
        assert_eq!(*bits, u64::from(((at[0] + 8 * at[1]) as f32).to_bits()));
        assert_eq!(*read, BTreeSet::from([(held, at.clone())]));
    }
}

/// Coordinates that are loaded, also where the loads are vectors.
#[test]
fn loaded_coordinates_are_those_of_the_func() {
    let (b, y) = vars!(b, y);
    let input = Input::f32("input", 2);
    let r = rdom!(rx: (0, 8));
    let bin = clamp(input.at((r.x, y)).i32(), 0, 63);
    let bins = func("bins", (b, y), 0).over(&r, |f| f.add((bin.clone(), y), 1));
    let pipeline = Pipeline::new("bins", [bins]).unwrap();
    let subject = Subject::with_image(&pipeline, &[8, 4], &[64, 4]);
    for update in ["threads y 4 serial rx 4 unroll", "threads rx 2, y 4 serial rx 4 unroll atomic"] {
        for vector in ["", " vector"] {
            let text = format!(
                "bins\n  kernel bins.0 block b 64, y 1 threads b 64\n  kernel bins.1 block y 4\n    bins.1 {update}{vector}\n"
            );
            let schedule = Schedule::parse(&text, &pipeline).unwrap();
            let (log, observed, _) = subject.observe(&schedule);
            assert_eq!(log.stores.len(), 64 * 4 + 8 * 4, "{text}");
            let held = Held { source: Source::Func(pipeline.outputs()[0]), value: 0 };
            for (at, bits) in last_stored(&log, held) {
                let point: Vec<i64> = at.iter().copied().map(i64::from).collect();
                assert_eq!(observed.outputs[0].get(&point).unwrap().bits(), bits, "{text}{at:?}");
            }
        }
    }
}
