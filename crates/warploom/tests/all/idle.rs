//! Kernels that take most of the time and leave most of the GPU idle are named, with the reason.

use warploom::prelude::*;
use warploom::search::Options;
use warploom::tune::explain::{Explanation, Idle, SerialKind};

/// A pipeline at one size of input and output, as a short search schedules it.
fn explained(output: Func, input: &[i64], extents: &[i64]) -> Explanation {
    let name = "out";
    let pipeline = Pipeline::new("p", [output.named(name)]).expect("it is right");
    let request = Realisation::new(&pipeline)
        .input("image", Region::of_extents(input))
        .output(name, Region::of_extents(extents));
    let options = Options { samples: 1, beam: 2, passes: 1, ..Options::default() };
    let device = Device::preset("h200").expect("it is a preset");
    let scheduled = pipeline.autoschedule_with(&device, request, &options).expect("it is legal");
    scheduled.explanation().clone()
}

/// What is said of its kernels.
fn said(output: Func, input: &[i64], extents: &[i64]) -> Option<Idle> {
    explained(output, input, extents).idle
}

/// All samples of a picture added up, one after the other.
fn total() -> Func {
    let image = Input::f32("image", 2);
    let r = rdom!(rx: (0, image.extent(0)), ry: (0, image.extent(1)));
    func("total", (), 0.0).over(&r, |f| f.add((), image.at((r.x, r.y))))
}

#[test]
fn a_sum_over_a_whole_picture() {
    let idle = said(total(), &[1536, 2560], &[]).expect("one thread does it all");
    assert_eq!((idle.kernel.as_str(), idle.threads, idle.capacity), ("out.1", 1, 132 * 2048));
    assert_eq!((idle.reason.kind, idle.reason.steps), (SerialKind::Reduction, 1536 * 2560));
    assert!(idle.share > 0.9, "{}", idle.share);
    let line = idle.to_string();
    assert!(
        line.contains("but uses only 1 thread of the 270336 that fit: `out.1` reduces 3932160 values"),
        "{line}"
    );
    assert!(!line.contains('\n'));
}

/// The way out that the line shows: rows first, then their sums.
#[test]
fn the_same_sum_in_two_steps() {
    let y = vars!(y);
    let image = Input::f32("image", 2);
    let (rx, ry) = (rdom!(rx: (0, image.extent(0))), rdom!(ry: (0, image.extent(1))));
    let rows = func("rows", y, sum(&rx, image.at((rx.x, y))));
    let total = func("total", (), sum(&ry, rows.at(ry.x)));
    let [slow, fast] = [self::total(), total].map(|total| explained(total, &[1536, 2560], &[]).predicted_us);
    assert!(fast < slow / 50.0, "{fast} and {slow} us");
}

#[test]
fn a_scan_along_few_lines() {
    let (x, y) = vars!(x, y);
    let image = Input::f32("image", 2);
    let r = rdom!(r: (1, image.extent(1) - 1));
    let scan = func("scan", (x, y), undef(Type::F32))
        .update(|f| f.set((x, 0), image.at((x, 0))))
        .over(&r, |f| f.set((x, r.x), f.at((x, r.x - 1)) * 0.5 + image.at((x, r.x))));
    let idle = said(scan.clone(), &[64, 4096], &[64, 4096]).expect("64 threads do it all");
    assert_eq!((idle.reason.kind, idle.reason.steps), (SerialKind::Scan, 4095));
    assert_eq!(idle.threads, 64);
    assert!(idle.to_string().contains("`out.2` is a serial scan of 4095 steps"), "{idle}");
}

#[test]
fn nothing_is_said_of_what_keeps_a_gpu_busy_or_is_small() {
    let (x, y) = vars!(x, y);
    let image = Input::f32("image", 2);
    let twice = func("twice", (x, y), image.at((x, y)) * 2.0);
    assert_eq!(said(twice.clone(), &[1536, 2560], &[1536, 2560]), None);
    assert_eq!(said(twice, &[16, 16], &[16, 16]), None);
    let r = rdom!(rx: (-8, 17));
    let edge = image.repeat_edge();
    let blur = func("blur", (x, y), sum(&r, edge.at((x + r.x, y))));
    assert_eq!(said(blur, &[1536, 2560], &[1536, 2560]), None);
}
