//! Cases made by hand.

use warploom_fuzz::{Case, Failure};
use warploom_lang::*;
use warploom_plan::Problem;
use warploom_target::Device;

pub fn device() -> Device {
    Device::preset("h200").unwrap()
}

/// The inputs, a Param, a stencil, a pair, a histogram and two outputs over boxes away from the origin.
pub fn pipeline() -> Pipeline {
    let (x, y) = vars!(x, y);
    let (image, mask) = (Input::u8("image", 2), Input::f32("mask", 2));
    let gain = Param::f32("gain");
    let edge = image.repeat_edge();
    let soft = func("soft", (x, y), (edge.at((x - 1, y)).f32() + edge.at((x + 1, y)).f32()) / 2.0);
    let pair = func("pair", (x, y), vec![soft.at((x, y)) * &gain, mask.at((x, y)) - 1.0]);
    let r = rdom([(0, 8), (0, 4)]);
    let histogram = func("histogram", x, 0).over(&r, |f| f.add(edge.at((r.x, r.y)).i32() / 16, 1));
    let value = pair.get(0, (x, y + 1)) + pair.get(1, (x, y));
    let out = func("out", (x, y), value + histogram.at(clamp(x, 0, 15)).f32());
    let other = func("other", (x, y), soft.at((x, y)) % 3.0);
    Pipeline::new("made_up", [out, other]).unwrap()
}

pub fn request(pipeline: &Pipeline) -> Realisation {
    let at = |min: i64, width: i64, height: i64| Region(vec![Range::new(min, width), Range::new(-2, height)]);
    Realisation::new(pipeline)
        .input("image", at(0, 12, 9))
        .input("mask", at(-3, 20, 12))
        .param("gain", 0.3_f32)
        .output("out", at(-1, 13, 7))
        .output("other", at(2, 5, 6))
}

/// A schedule with something of everything.
pub const SCHEDULE: &str = "\
made_up inline image.repeat_edge
  kernel soft         block x 8, y 8  threads x 8, y 4  serial y 2
  kernel histogram.0  block x 8  threads x 8
  kernel histogram.1  threads
  kernel out          block x 8, y 4
    mask.stage        flat                                       shared
    pair              threads x 8, y 1  serial y 2               shared
    out               threads x 4, y 2  serial x 2, y 2  unroll
  kernel other        block x 4, y 4  threads x 4, y 4
";

pub fn case() -> Case {
    let pipeline = pipeline();
    let request = request(&pipeline);
    let schedule = Problem::new(&pipeline, &request, &device()).unwrap().default_schedule();
    Case { pipeline, request, schedule, seed: 5 }
}

/// A failure that a test makes up.
pub fn made_up() -> Failure {
    Failure::Numeric("made up".to_owned())
}
