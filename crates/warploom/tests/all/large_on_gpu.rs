//! Arrays of more than 2^31 elements on a GPU, compared with the reference at their first rows, where 32 bits end, and at
//! their last. Ignored unless asked for: a run takes 5 GB of the host's memory and 10 GB of the GPU's.

use std::ops::Range as Rows;

use warploom::codegen::build::build;
use warploom::codegen::printer::{Build, PRINTER};
use warploom::lang::Range;
use warploom::plan::Problem;
use warploom::prelude::*;
use warploom::runtime::{Driver, Execute, Gpu, testing};
use warploom::schedule::Schedule;

/// Rows that are compared at each place.
const ROWS: i64 = 16;

/// An image without any pattern that a wrong index could meet again.
fn image(width: i64, height: i64) -> Vec<u8> {
    (0..(width * height) as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

fn problem(gpu: &Gpu, pipeline: &Pipeline, size: [i64; 2]) -> Problem {
    let region = Region::of_extents(&size);
    let request = Realisation::new(pipeline).input("input", region.clone()).output("out", region);
    Problem::new(pipeline, &request, gpu.device()).expect("the sizes fit")
}

/// What the reference gives for some rows, from the rows of the image that they need.
fn expected(pipeline: &Pipeline, image: &[u8], width: i64, height: i64, rows: Rows<i64>) -> Vec<u8> {
    let needed = (rows.start - 1).max(0)..(rows.end + 1).min(height);
    let part = image[(needed.start * width) as usize..(needed.end * width) as usize].to_vec();
    let of =
        |rows: &Rows<i64>| Region(vec![Range::new(0, width), Range::new(rows.start, rows.end - rows.start)]);
    let input = Buffer::from_vec(of(&needed), part).expect("it has the size");
    let evaluation = Evaluation::new(pipeline).input("input", &input).output("out", of(&rows));
    let out = evaluation.run().expect("it can be evaluated").remove(0);
    out.as_slice::<u8>().expect("it holds u8").to_vec()
}

/// Runs a pipeline under a schedule in both builds, and compares.
fn check(gpu: &Gpu, problem: &Problem, schedule: &Schedule, image: &[u8], [width, height]: [i64; 2]) {
    let pipeline = problem.pipeline();
    let program = build(problem, schedule).expect("it is legal");
    let largest = program.buffers.values().map(|buffer| buffer.elements()).max();
    assert!(largest > Some(1 << 31), "{largest:?}");
    let boundary = ((1_i64 << 31) / width - ROWS / 2).clamp(0, height - ROWS);
    for build in [Build::Checking, Build::Timing] {
        let mut executable = gpu.load(&PRINTER.describe(&program, build)).expect("there is room");
        executable.upload(0, image).expect("it fits");
        executable.poison().expect("there is a GPU");
        executable.run().expect("it runs");
        let found = executable.download(0, 0).expect("it ran");
        for first in [0, boundary, height - ROWS] {
            let rows = first..first + ROWS;
            let expected = expected(pipeline, image, width, height, rows.clone());
            let found = &found[(rows.start * width) as usize..(rows.end * width) as usize];
            assert!(found == expected, "{} {build:?}: rows from {first}", pipeline.name());
        }
    }
}

#[test]
#[ignore = "takes 10 GB of a GPU"]
fn a_blur_of_more_than_2_31_pixels() {
    let Some(gpu) = testing::gpu("a_blur_of_more_than_2_31_pixels") else { return };
    let (x, y) = vars!(x, y);
    let edge = Input::u8("input", 2).repeat_edge();
    let at = |dx: i32| edge.at((x + dx, y)).u16();
    let row = func("row", (x, y), at(-1) + at(0) + at(1));
    let sum = row.at((x, y - 1)) + row.at((x, y)) + row.at((x, y + 1));
    let pipeline = Pipeline::new("blur", [func("out", (x, y), (sum / 9).u8())]).expect("it is right");
    let size = [46_500, 46_400];
    let problem = problem(&gpu, &pipeline, size);
    let image = image(size[0], size[1]);
    // Rows in memory, 4.3 GB of them; rows in a flat loop; a staged input.
    let schedules = [
        "blur inline input.repeat_edge
  kernel row  block x 64, y 4  threads x 64, y 4
  kernel out  block x 64, y 4  threads x 64, y 4
",
        "blur inline input.repeat_edge
  kernel out  block x 64, y 16
    row  flat  shared
    out  threads x 32, y 8  serial x 2, y 2  unroll
",
        "blur inline input.repeat_edge, row
  kernel out  block x 32, y 16
    input.stage  flat  shared
    out  threads x 32, y 4  serial y 4
",
    ];
    check(&gpu, &problem, &problem.default_schedule(), &image, size);
    for text in schedules {
        let schedule = Schedule::parse(text, &pipeline).expect("it can be read");
        check(&gpu, &problem, &schedule, &image, size);
    }
}

/// The table has 2.26e9 elements, in which each pixel counts its neighbours; the image is small.
#[test]
#[ignore = "takes 3 GB of a GPU"]
fn a_table_of_more_than_2_31_counts() {
    let Some(gpu) = testing::gpu("a_table_of_more_than_2_31_counts") else { return };
    let (x, y, bin) = vars!(x, y, bin);
    let edge = Input::u8("input", 2).repeat_edge();
    let near = rdom([(-1, 3), (-1, 3)]);
    let counts = func("counts", (x, y, bin), 0_u8)
        .over(&near, |f| f.add((x, y, edge.at((x + near.x, y + near.y)).i32()), 1_u8));
    let low = rdom([(0, 100)]);
    let out = func("out", (x, y), counts.at((x, y, 255)))
        .over(&low, |f| f.add((x, y), counts.at((x, y, low.x)) * 3));
    let pipeline = Pipeline::new("counted", [out]).expect("it is right");
    let size = [4096, 2160];
    let problem = problem(&gpu, &pipeline, size);
    check(&gpu, &problem, &problem.default_schedule(), &image(size[0], size[1]), size);
}
