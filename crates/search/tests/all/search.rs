//! The search on real and random pipelines: always legal, never worse than the default, the same at any number of threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use warploom_cost::Analytic;
use warploom_lang::{
    Expr, Input, Operand, Pipeline, Realisation, Region, Type, clamp, exp, func, maximum, rdom, select, sum,
    undef, vars,
};
use warploom_plan::Problem;
use warploom_randpipe::random_pipeline;
use warploom_schedule::Schedule;
use warploom_search::{
    Event, Fixed, FixedError, Options, Outcome, Refusal, StopReason, neighbourhoods, search,
};
use warploom_target::Device;

use crate::common::{h200, named, of_app, searched};

/// A small search, for many pipelines.
fn quick() -> Options {
    Options { beam: 4, passes: 3, samples: 4, ..Options::default() }
}

fn assert_sound(problem: &Problem, outcome: &Outcome) {
    let name = problem.pipeline().name();
    assert!(!outcome.fallback, "{name}");
    assert_eq!(outcome.statistics.dropped, 0, "{name}");
    assert_eq!(outcome.best, outcome.candidates[0].schedule, "{name}");
    for candidate in &outcome.candidates {
        let rewritten = problem.rewritten(&candidate.schedule.rewrites).expect("the search could");
        assert_eq!(rewritten.check(&candidate.schedule).err(), None, "{name}");
    }
    assert!(outcome.candidates.windows(2).all(|pair| pair[0].cost <= pair[1].cost), "{name}");
    let default = problem.default_schedule();
    let of_default = outcome
        .candidates
        .iter()
        .find(|candidate| candidate.schedule == default)
        .expect("it is always there");
    assert!(outcome.candidates[0].cost <= of_default.cost, "{name}");
}

#[test]
fn small_pipelines_get_better_than_the_default() {
    for app in warploom_apps::BASICS.iter() {
        let problem = of_app(app, &[]);
        assert_sound(&problem, &searched(&problem, &quick()));
    }
}

#[test]
fn apps_are_searched_soundly() {
    for name in ["unsharp", "harris", "hist", "cuda_mat_mul", "max_filter", "iir_blur"] {
        let problem = named(name);
        let outcome = searched(&problem, &quick());
        assert_sound(&problem, &outcome);
        assert_ne!(outcome.best, problem.default_schedule(), "{name}");
    }
}

/// The kernels of products copy what they read ahead of time, if the device has asynchronous copies.
#[test]
fn products_copy_ahead() {
    for (device, can) in [("h200", true), ("t4", false)] {
        let device = Device::preset(device).expect("it is a preset");
        let problem = named("cuda_mat_mul").on(&device).expect("the sizes are right");
        let outcome = searched(&problem, &quick());
        assert_sound(&problem, &outcome);
        let ahead = outcome.best.nests().any(|nest| nest.numbers.depth.is_some());
        assert_eq!(ahead, can, "{}: {}", device.name, outcome.best.to_text(problem.pipeline()));
    }
}

/// Among the neighbours of a product are those with a copy whose threads move 16 bytes each, ahead of time or not.
#[test]
fn neighbours_copy_by_vectors() {
    let problem = named("cuda_mat_mul");
    let model = Analytic::new(&h200());
    for (ahead, transposed) in [("", "pitch 68 transpose"), ("async 2", "pitch 68 async 2 transpose")] {
        let text = format!(
            "cuda_mat_mul
  kernel out block x 128, y 64
    prod.0 threads x 16, y 8 serial x 4, y 8 unroll private interleave
    over prod.1.r 16
      A.stage flat shared {ahead}
      B.stage flat shared {transposed}
      prod.1 threads x 16, y 8 serial r all, x 4, y 8 unroll private interleave
    out threads x 16, y 8 serial x 4, y 8 unroll interleave
"
        );
        let schedule = Schedule::parse(&text, problem.pipeline()).expect("it is a schedule");
        let near = neighbourhoods(&problem, &model, &quick(), &[schedule]).remove(0).expect("it is near");
        let texts: Vec<String> =
            near.neighbours.iter().map(|other| other.schedule.to_text(problem.pipeline())).collect();
        let one_line = |text: &String| text.split_whitespace().collect::<Vec<&str>>().join(" ");
        let lines: Vec<String> = texts.iter().map(one_line).collect();
        // What is copied ahead of time is stored as it was read.
        let of_b =
            if ahead.is_empty() { "shared pitch 68 transpose vector" } else { "shared async 2 vector" };
        let of_a = if ahead.is_empty() { "shared vector" } else { "shared async 2 vector" };
        for copy in [
            format!("A.stage threads d0 32, d1 4 serial d0 4 unroll {of_a}"),
            format!("B.stage threads d0 4, d1 32 serial d0 4 unroll {of_b}"),
        ] {
            assert!(lines.iter().any(|line| line.contains(&copy)), "{copy}\n{}", texts.join("\n"));
        }
    }
}

/// The histograms of 64 bands of an image have work for few threads, unless these share the pixels.
#[test]
fn histograms_are_counted_by_atomics() {
    let (b, band) = vars!(b, band);
    let (image, r) = (Input::u8("image", 2), rdom!(rx: (0, 2048), ry: (0, 16)));
    let part =
        func("part", (b, band), 0).over(&r, |f| f.add((image.at((r.x, 16 * band + r.y)).i32(), band), 1));
    let share = func("share", (b, band), part.at((b, band)).f32() / 32768.0);
    let pipeline = Pipeline::new("bands", [share]).expect("the pipeline is right");
    let request = Realisation::new(&pipeline)
        .input("image", Region::of_extents(&[2048, 1024]))
        .output("share", Region::of_extents(&[256, 64]));
    let problem = Problem::new(&pipeline, &request, &h200()).expect("the sizes are right");
    let outcome = searched(&problem, &Options { rewrites: 0, ..quick() });
    assert_sound(&problem, &outcome);
    assert!(outcome.best.nests().any(|nest| nest.numbers.atomic), "{}", outcome.best.to_text(&pipeline));
}

/// The schedule that a quick search finds for a pipeline with a picture as input and output, and its kernels.
fn best_of(pipeline: &Pipeline, [width, height]: [i64; 2]) -> (String, usize) {
    let picture = Region::of_extents(&[width, height]);
    let request = Realisation::new(pipeline).input("image", picture.clone()).output("output", picture);
    let problem = Problem::new(pipeline, &request, &h200()).expect("the sizes are right");
    let outcome = searched(&problem, &quick());
    assert_sound(&problem, &outcome);
    let rewritten = problem.rewritten(&outcome.best.rewrites).expect("the search could");
    (outcome.best.to_text(rewritten.pipeline()), outcome.best.kernels().count())
}

/// Stencils of integers are two passes; floats keep their order.
#[test]
fn stencils_of_integers_are_separated() {
    let (x, y) = vars!(x, y);
    for (ty, separated) in [(Type::U16, true), (Type::F32, false)] {
        let edge = Input::new("image", ty, 2).repeat_edge().named("edge");
        let taps = (-3..=3).flat_map(|i| (-3..=3).map(move |j| (i, j)));
        let term = |(i, j): (i32, i32)| edge.at((x + i, y + j)) * Expr::from((i + 4) * (j + 4)).cast(ty);
        let sum = taps.map(term).reduce(|sum, term| sum + term).expect("there are taps");
        let pipeline =
            Pipeline::new("stencil", [func("output", (x, y), sum)]).expect("the pipeline is right");
        let (text, _) = best_of(&pipeline, [1536, 1024]);
        assert_eq!(text.contains("separate output along x"), separated, "{text}");
    }
}

/// The four steps of a softmax share a kernel whose blocks own whole rows, at few rows and at many.
#[test]
fn a_softmax_of_rows_is_one_kernel() {
    let (x, y) = vars!(x, y);
    let (image, r) = (Input::f32("image", 2), rdom!(rx: (0, 1000)));
    let highest = func("highest", y, maximum(&r, image.at((r.x, y))));
    let e = func("e", (x, y), exp(image.at((x, y)) - highest.at(y)));
    let output = func("output", (x, y), e.at((x, y)) / sum(&r, e.at((r.x, y))));
    let pipeline = Pipeline::new("softmax", [output]).expect("the pipeline is right");
    for rows in [300, 100_000] {
        let (text, kernels) = best_of(&pipeline, [1000, rows]);
        assert_eq!(kernels, 1, "{text}");
        assert!(text.contains("block x all"), "{text}");
    }
}

/// Sums along rows are scanned in blocks that own a row, sums along columns in chunks.
/// A convolution of `c` channels to 64 over a picture of `side` x `side`, padded with zeros, in any order.
fn padded_convolution(side: i64, c: i64) -> Problem {
    let (x, y, f, ch) = vars!(x, y, f, ch);
    let (input, kernel) = (Input::f32("I", 3), Input::f32("K", 4));
    let inside = |v: &warploom_lang::Var| (*v).ge(1) & (*v).le(side as i32);
    let clamped = |v: &warploom_lang::Var| clamp(*v - 1, 0, side as i32 - 1);
    let read = input.at((clamped(&x), clamped(&y), ch));
    let padded = func("P", (x, y, ch), select(inside(&x) & inside(&y), read, 0.0_f32));
    let r = rdom!(kx: (0, 3), ky: (0, 3), kc: (0, c as i32));
    let term = padded.at((x + r.x, y + r.y, r.z)) * kernel.at((r.x, r.y, r.z, f));
    let conv = func("conv", (x, y, f), 0.0_f32).over(&r, |of| of.add((x, y, f), term)).reassociate();
    let pipeline =
        Pipeline::new("convolution", [func("out", (x, y, f), conv.at((x, y, f)))]).expect("it is a pipeline");
    let request = Realisation::new(&pipeline)
        .input("I", Region::of_extents(&[side, side, c]))
        .input("K", Region::of_extents(&[3, 3, c, 64]))
        .output("out", Region::of_extents(&[side, side, 64]));
    Problem::new(&pipeline, &request, &h200()).expect("the request fits")
}

/// Threads with eight points along a row have them in two groups, where loads from shared memory are the bottleneck.
#[test]
fn products_have_points_in_groups() {
    let problem = named("cuda_mat_mul");
    let outcome = searched(&problem, &Options::default());
    assert_sound(&problem, &outcome);
    let texts = outcome.candidates.iter().map(|found| found.schedule.to_text(problem.pipeline()));
    let in_threads = texts.filter(|text| text.contains("private"));
    let grouped: Vec<String> = in_threads.filter(|text| text.contains("interleave")).collect();
    assert!(!grouped.is_empty());
    for text in grouped {
        // An accumulator in the threads and what reads it have the same groups.
        assert_eq!(text.matches("interleave").count(), 3, "{text}");
    }
}

#[test]
fn convolutions_are_tiled_and_divided() {
    let text = |problem: &Problem| {
        let outcome = searched(problem, &Options::default());
        assert_sound(problem, &outcome);
        outcome.best.to_text(problem.pipeline())
    };
    // Points enough for all SMs: a tile per block, a loop over channels with copies of picture and kernel inside.
    let large = text(&padded_convolution(224, 64));
    for part in ["over conv.1.", "P ", "K.stage", "unroll  private"] {
        assert!(large.contains(part), "{part}: {large}");
    }
    // Few points and many channels: blocks share the channels.
    let small = text(&padded_convolution(14, 1024));
    assert!(small.contains("factor conv.1.") && small.contains("over conv.part.cut.1."), "{small}");
}

#[test]
fn scans_are_divided() {
    let (x, y) = vars!(x, y);
    let image = Input::new("image", Type::U32, 2);
    let rx = rdom!(rx: (1, image.extent(0) - 1));
    let rows = func("rows", (x, y), undef(Type::U32))
        .update(|f| f.set((0, y), image.at((0, y))))
        .over(&rx, |f| f.set((rx.x, y), f.at((rx.x - 1, y)) + image.at((rx.x, y))));
    let ry = rdom!(ry: (1, image.extent(1) - 1));
    let table = func("table", (x, y), undef(Type::U32))
        .update(|f| f.set((x, 0), rows.at((x, 0))))
        .over(&ry, |f| f.set((x, ry.x), f.at((x, ry.x - 1)) + rows.at((x, ry.x))));
    let output = func("output", (x, y), table.at((x, y)));
    let pipeline = Pipeline::new("summed", [output]).expect("the pipeline is right");
    let (text, _) = best_of(&pipeline, [3840, 2160]);
    assert!(text.contains("kernel rows ") && text.contains("block x all, y 1"), "{text}");
    assert!(text.contains("chunk rows.2.rx") && text.contains("chunk table.2.ry"), "{text}");
}

#[test]
fn neighbours_are_legal_others_and_contain_what_is_better() {
    let model = Analytic::new(&h200());
    for name in ["unsharp", "cuda_mat_mul", "hist"] {
        let problem = named(name);
        let default = problem.default_schedule();
        let best = searched(&problem, &Options { rewrites: 0, ..quick() }).best;
        let near = |threads| {
            let options = Options { threads, ..quick() };
            neighbourhoods(&problem, &model, &options, &[default.clone(), best.clone()])
        };
        let found = near(2);
        assert_eq!(found, near(1), "{name}");
        for (near, schedule) in found.iter().flatten().zip([&default, &best]) {
            assert!(near.neighbours.len() >= 20, "{name}: {}", near.neighbours.len());
            assert!(near.neighbours.iter().all(|other| other.schedule != *schedule), "{name}");
            for other in &near.neighbours {
                assert_eq!(problem.check(&other.schedule).err(), None, "{name}");
            }
        }
        // From the default there is a way down.
        let of_default = found[0].as_ref().expect("a search makes it");
        assert!(of_default.neighbours[0].cost < of_default.cost, "{name}");
    }
}

#[test]
fn threads_do_not_change_the_result() {
    let problem = named("unsharp");
    let outcome = |threads| searched(&problem, &Options { threads, ..quick() });
    let one = outcome(1);
    for threads in [2, 8] {
        let other = outcome(threads);
        assert_eq!(one.candidates, other.candidates);
        assert_eq!(one.statistics.enumerated, other.statistics.enumerated);
    }
}

#[test]
fn the_memo_does_not_change_the_result() {
    let problem = named("blur");
    let with = searched(&problem, &quick());
    let without = searched(&problem, &Options { memo: 0, ..quick() });
    let little = searched(&problem, &Options { memo: 1 << 20, ..quick() });
    assert_eq!(with.candidates, without.candidates);
    assert_eq!(with.candidates, little.candidates);
    assert!(with.statistics.memo_hits > 0 && without.statistics.memo_hits == 0);
    assert!(with.statistics.kernels < without.statistics.kernels);
}

#[test]
fn seeds_draw_other_options() {
    let problem = named("unsharp");
    let outcome = |seed| searched(&problem, &Options { seed, ..quick() });
    assert_eq!(outcome(1).candidates, outcome(1).candidates);
    assert_ne!(outcome(1).candidates, outcome(2).candidates);
}

#[test]
fn without_sampling_all_options_are_looked_at() {
    let problem = named("copy");
    let all = searched(&problem, &Options { sampling: false, ..quick() });
    let some = searched(&problem, &quick());
    assert!(some.statistics.sampled_away > 0);
    assert!(all.statistics.kernels > some.statistics.kernels);
    assert!(all.candidates[0].cost <= some.candidates[0].cost);
}

#[test]
fn freezing_leaves_cheap_funcs_alone() {
    let problem = named("max_filter");
    let frozen = searched(&problem, &quick()).statistics;
    let free = searched(&problem, &Options { freezing: false, ..quick() }).statistics;
    assert!(frozen.frozen > 0 && free.frozen == 0);
    assert!(frozen.decisions < free.decisions);
}

#[test]
fn a_search_that_has_no_time_still_answers() {
    let problem = named("harris");
    let options = Options { time_limit: Some(Duration::ZERO), ..Options::default() };
    let outcome = searched(&problem, &options);
    assert_eq!(outcome.stop, StopReason::TimeLimit);
    assert_sound(&problem, &outcome);
    let enough = Options { time_limit: Some(Duration::from_secs(600)), ..quick() };
    assert_eq!(searched(&problem, &enough).stop, StopReason::Finished);
}

#[test]
fn a_device_that_cannot_run_anything_gets_the_default() {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let output = func("output", (x, y), input.at((x, y)) * 2.0);
    let pipeline = Pipeline::new("twice", [output]).unwrap();
    let request = Realisation::new(&pipeline)
        .input("input", Region::of_extents(&[64, 64]))
        .output("output", Region::of_extents(&[64, 64]));
    let mut device = h200();
    device.threads.grid_dims = [1, 1, 1];
    device.threads.per_block = 1;
    let problem = Problem::new(&pipeline, &request, &device).unwrap();
    let outcome = search(&problem, &Analytic::new(&device), &quick(), &|_| {});
    assert!(outcome.fallback && outcome.candidates.is_empty());
    assert_eq!(outcome.best, problem.default_schedule());
}

#[test]
fn the_observer_hears_of_every_step() {
    let problem = named("blur");
    let (passes, samples, decided) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let options = quick();
    search(&problem, &Analytic::new(problem.device()), &options, &|event| {
        let counter = match event {
            Event::SearchStarted { .. } | Event::PassStarted { .. } => return,
            Event::PassFinished { .. } => &passes,
            Event::Decided { .. } => &decided,
            Event::SampleFinished { .. } => &samples,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(passes.load(Ordering::Relaxed), options.passes);
    assert_eq!(samples.load(Ordering::Relaxed), options.samples);
    assert!(decided.load(Ordering::Relaxed) > 0);
}

#[test]
fn the_observer_knows_how_much_work_there_is() {
    let problem = named("hist");
    let started = Mutex::new(Vec::new());
    let options = Options { rewrites: 2, ..quick() };
    search(&problem, &Analytic::new(problem.device()), &options, &|event| {
        if let Event::SearchStarted { before, steps, of } = event {
            started.lock().unwrap().push((before, steps, of));
        }
    });
    let started = started.into_inner().unwrap();
    assert!(started.len() > 1, "{started:?}");
    assert_eq!(started[0].0, 0);
    for pair in started.windows(2) {
        let [(before, steps, of), next] = pair else { unreachable!() };
        assert_eq!((before + steps, *of), (next.0, next.2), "{started:?}");
        assert!(next.0 + next.1 <= *of, "{started:?}");
    }
}

#[test]
fn limits_prune() {
    let problem = named("unsharp");
    let mut options = quick();
    options.limits.recompute = 1.0;
    options.limits.register_array_bytes = 0;
    let statistics = searched(&problem, &options).statistics;
    assert!(statistics.refused_for(Refusal::Recompute) > 0);
    assert!(statistics.refused_for(Refusal::RegisterArrays) > 0);
}

#[test]
fn random_pipelines_are_searched_soundly() {
    let options = Options { beam: 2, passes: 2, samples: 2, ..Options::default() };
    for seed in 0..25 {
        let random = random_pipeline(seed, &warploom_randpipe::Options::default());
        let problem = Problem::new(&random.pipeline, &random.request, &h200()).unwrap();
        assert_sound(&problem, &searched(&problem, &options));
    }
}

#[test]
fn fixed_decisions_are_kept() {
    let problem = named("unsharp");
    let text = "\
unsharp          inline kernel, sharpen, ratio
  kernel output  block x 48, y 12
    blur_y       flat                                          shared
    output       threads x 48, y 4  serial y 3, c all  unroll
      blur_x     registers
";
    let part = Schedule::parse(text, problem.pipeline()).unwrap();
    let fixed = Fixed::new(&problem, part.clone()).unwrap();
    assert_eq!(fixed.funcs().len(), 6);
    let outcome = searched(&problem, &Options { fixed: Some(fixed), ..quick() });
    assert!(!outcome.fallback && outcome.candidates.len() > 1);
    let wanted = part.kernels().next().unwrap();
    for candidate in &outcome.candidates {
        assert_eq!(problem.check(&candidate.schedule).err(), None);
        let kernel = candidate.schedule.kernels().last().unwrap();
        assert_eq!(kernel.block, wanted.block);
        assert!(wanted.body.iter().all(|item| kernel.body.contains(item)));
    }
}

#[test]
fn a_fixed_contraction_is_neither_tiled_again_nor_given_blocks() {
    let problem = named("cuda_mat_mul");
    let text = "\
cuda_mat_mul
  kernel out   block x 128, y 64
    prod.0     threads x 32, y 8  serial x 4, y 8         unroll  private
    over prod.1.r 32
      A.stage  flat                                               shared
      B.stage  flat                                               shared
      prod.1   threads x 32, y 8  serial r all, x 4, y 8  unroll  private
    out        threads x 32, y 8  serial x 4, y 8         unroll
";
    let part = Schedule::parse(text, problem.pipeline()).unwrap();
    let fixed = Fixed::new(&problem, part.clone()).unwrap();
    let outcome = searched(&problem, &Options { fixed: Some(fixed), ..quick() });
    assert!(!outcome.candidates.is_empty());
    for candidate in &outcome.candidates {
        assert_eq!(candidate.schedule.root, part.root);
    }
}

#[test]
fn fixed_decisions_that_contradict_are_refused() {
    let problem = named("blur");
    let part = Schedule::parse("blur inline output", problem.pipeline()).unwrap();
    let error = Fixed::new(&problem, part).unwrap_err();
    assert!(matches!(&error, FixedError::Conflict(violations) if !violations.is_empty()));
    assert!(error.to_string().contains("output"), "{error}");
}
