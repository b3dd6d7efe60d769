//! Explanations of schedules as data.

use warploom_cost::Analytic;
use warploom_lang::*;
use warploom_plan::Problem;
use warploom_schedule::Schedule;
use warploom_target::Device;
use warploom_tune::explain::{Explanation, Leftover, Limit, Line, Loop, LoopUse};

/// A blur of rows, then of columns, of a picture with its edge repeated.
fn blur() -> Pipeline {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let edge = func("edge", (x, y), input.at((clamp(x, 0, 4095), clamp(y, 0, 4095))));
    let row = edge.at((x - 1, y)) + edge.at((x, y)) + edge.at((x + 1, y));
    let blur_x = func("blur_x", (x, y), row / 3.0);
    let column = blur_x.at((x, y - 1)) + blur_x.at((x, y)) + blur_x.at((x, y + 1));
    Pipeline::new("blur", [func("output", (x, y), column / 3.0)]).unwrap()
}

fn explained(pipeline: &Pipeline, extents: [i64; 2], schedule: &str) -> Explanation {
    let device = Device::preset("h200").unwrap();
    let request = Realisation::new(pipeline)
        .input("input", Region::of_extents(&[4096, 4096]))
        .output("output", Region::of_extents(&extents));
    let problem = Problem::new(pipeline, &request, &device).unwrap();
    let schedule = Schedule::parse(schedule, pipeline).unwrap();
    Explanation::new(&problem.planned(schedule).unwrap(), &Analytic::new(&device))
}

fn line<'a>(explanation: &'a Explanation, name: &str) -> &'a Line {
    explanation.kernels.iter().flat_map(|kernel| &kernel.lines).find(|line| line.name == name).unwrap()
}

fn shape(loops: &[Loop]) -> Vec<(LoopUse, &str, i64)> {
    loops.iter().map(|each| (each.kind, each.variable.as_str(), each.count)).collect()
}

#[test]
fn every_loop_and_its_last_round() {
    let tiles = "blur inline edge
  kernel output  block x 64, y 16
    blur_x       flat                                   shared
    output       threads x 64, y 4  serial y 4  unroll
";
    let explanation = explained(&blur(), [4096, 1000], tiles);
    let kernel = &explanation.kernels[0];
    assert_eq!(shape(&kernel.loops), [(LoopUse::Blocks, "x", 64), (LoopUse::Blocks, "y", 63)]);
    assert_eq!(
        [kernel.loops[0].leftover, kernel.loops[1].leftover],
        [None, Some(Leftover { points: 8, of: 16 })]
    );
    // 64 x 18 points are 1152: four rounds of 256 threads, and a half.
    let flat = &line(&explanation, "blur_x").loops;
    assert_eq!(shape(flat), [(LoopUse::Flat, "x, y", 5)]);
    assert_eq!(flat[0].leftover, Some(Leftover { points: 128, of: 256 }));
    let own = &line(&explanation, "output").loops;
    let threads = [(LoopUse::Threads, "x", 64), (LoopUse::Threads, "y", 4), (LoopUse::Unrolled, "y", 4)];
    assert_eq!(shape(own), threads);
    assert!(own.iter().all(|each| each.leftover.is_none()));

    let rounds =
        "blur inline edge, blur_x\n  kernel output  block x 96, y 24  threads x 32, y 8  serial x 2\n";
    let explanation = explained(&blur(), [4096, 4096], rounds);
    let own = &line(&explanation, "output").loops;
    let of = |kind| {
        own.iter()
            .filter(|each| each.kind == kind)
            .map(|each| (each.count, each.leftover))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(LoopUse::Rounds), [(3, None), (2, Some(Leftover { points: 32, of: 64 }))]);
    assert_eq!(of(LoopUse::Serial), [(2, None)]);

    let interleaved = "blur inline edge, blur_x
  kernel output  block x 96, y 24
    output       threads x 32, y 8  serial x 2  unroll  interleave
";
    let explanation = explained(&blur(), [4096, 4096], interleaved);
    let own = &line(&explanation, "output").loops;
    let kinds: Vec<LoopUse> = own.iter().map(|each| each.kind).collect();
    use LoopUse::{Interleaved, Threads, Unrolled};
    assert_eq!(kinds, [Threads, Threads, Interleaved, Interleaved, Unrolled]);
    assert_eq!(own[3].to_string(), "2 rounds along x, unrolled, 64 points each; the last has 32");
}

#[test]
fn recomputation_is_counted_where_it_happens() {
    let registers = "blur inline edge
  kernel output  block x 64, y 16
    output       threads x 64, y 4  serial y 4  unroll
      blur_x     registers
";
    let explanation = explained(&blur(), [4096, 4096], registers);
    let held = line(&explanation, "blur_x");
    // Each thread computes six points of `blur_x` for four of `output`.
    assert_eq!((held.redundancy, held.consumer.as_deref()), (None, Some("output")));
    assert!((held.per_point.unwrap() - 1.5).abs() < 0.01, "{held:?}");
    assert_eq!(shape(&held.loops), [(LoopUse::Unrolled, "y", 6)]);
    let edge = line(&explanation, "edge");
    assert_eq!((edge.per_point, edge.consumer.as_deref()), (Some(3.0), Some("blur_x")));
    assert_eq!((edge.redundancy, edge.traffic), (None, None));
    let output = line(&explanation, "output");
    assert_eq!((output.redundancy, output.per_point), (Some(1.0), None));

    let inlined = "blur inline edge, blur_x\n  kernel output  block x 64, y 16  threads x 64, y 4\n";
    let explanation = explained(&blur(), [4096, 4096], inlined);
    assert_eq!(line(&explanation, "blur_x").per_point, Some(3.0));
    let edge = line(&explanation, "edge");
    assert_eq!((edge.per_point, edge.recomputation().as_str()), (Some(9.0), "9 per point of output"));
}

#[test]
fn bytes_are_counted() {
    let inlined = "blur inline edge, blur_x\n  kernel output  block x 64, y 16  threads x 64, y 4\n";
    let explanation = explained(&blur(), [4096, 4096], inlined);
    let (kernel, picture) = (&explanation.kernels[0], 4096.0 * 4096.0 * 4.0);
    assert_eq!(kernel.written_bytes, picture);
    assert!((kernel.read_bytes / picture - 1.0).abs() < 0.01, "{}", kernel.read_bytes);
    let traffic = line(&explanation, "output").traffic.unwrap();
    assert_eq!(traffic.global_written_bytes, picture);
    // Each block also reads the rim of its tile.
    assert!(
        traffic.global_read_bytes > 1.1 * picture && traffic.global_read_bytes < 1.5 * picture,
        "{traffic:?}"
    );
    assert_eq!((traffic.shared_read_bytes, traffic.shared_written_bytes), (0.0, 0.0));
}

#[test]
fn the_bottleneck_is_the_longest_part() {
    let schedule = "blur inline edge, blur_x\n  kernel output  block x 64, y 16  threads x 64, y 4\n";
    for extents in [[4096, 4096], [64, 16]] {
        let explanation = explained(&blur(), extents, schedule);
        let kernel = &explanation.kernels[0];
        let bottleneck = kernel.bottleneck.as_ref().unwrap();
        let longest = kernel.terms.iter().max_by(|a, b| a.us.total_cmp(&b.us)).unwrap();
        assert_eq!((bottleneck.us, bottleneck.of_us), (longest.us, kernel.predicted_us));
        let named = match &bottleneck.limit {
            Limit::Launch { launches } => ("launch", *launches == 1.0),
            Limit::Dram { bytes, .. } => ("DRAM", *bytes == kernel.read_bytes + kernel.written_bytes),
            Limit::L2 { bytes } => ("L2", *bytes > 0.0),
            Limit::Sms { stage, .. } => ("SMs", ["output", "blur_x", "edge"].contains(&stage.as_str())),
            Limit::Latency { warps_per_sm, .. } => ("latency", *warps_per_sm > 0),
        };
        assert_eq!(named, (longest.what, true), "{bottleneck:?}");
        assert!(explanation.to_string().contains(&bottleneck.sentence), "{explanation}");
    }
    let small = explained(&blur(), [64, 16], schedule);
    let limit = &small.kernels[0].bottleneck.as_ref().unwrap().limit;
    assert!(matches!(limit, Limit::Launch { .. } | Limit::Latency { blocks: 1, .. }), "{limit:?}");
}
