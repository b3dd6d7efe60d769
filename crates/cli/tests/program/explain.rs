//! `warploom explain`: what it says of schedules.

use std::fs;

use crate::place::Place;

const UNSHARP: &str = "unsharp inline in, kernel, sharpen, ratio
  kernel output  block x 64, y 16
    gray         flat                                          shared
    blur_y       flat                                          shared
    output       threads x 64, y 4  serial y 4, c all  unroll
      blur_x     registers
";

/// The words of the line of a stage.
fn line<'a>(text: &'a str, stage: &str) -> &'a str {
    let starts = |line: &&str| line.split_whitespace().next() == Some(stage);
    text.lines().find(starts).unwrap_or_else(|| panic!("no line of {stage} in\n{text}"))
}

#[test]
fn a_schedule_is_explained() {
    let place = Place::new();
    fs::write(place.path("unsharp.schedule"), UNSHARP).unwrap();
    let ran = place.run("explain unsharp --schedule unsharp.schedule");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let text = ran.out;
    assert!(text.starts_with("unsharp at W=1536, H=2560 for H200 (sm_90): "), "{text}");
    let kernel = line(&text, "kernel");
    assert!(kernel.starts_with("kernel output   grid 24x160x1, 256 threads, 10.6 KB shared, ~"), "{kernel}");
    assert!(text.contains("\n  block x 64, y 16\n"), "{text}");
    let gray = line(&text, "gray");
    assert!(
        gray.contains("flat") && gray.contains("shared 70x22, 6.2 KB") && gray.contains("1.49x"),
        "{gray}"
    );
    let output = line(&text, "output");
    assert!(output.contains("threads x 64, y 4, serial y 4, c 3, unrolled   global"), "{output}");
    assert!(line(&text, "blur_x").contains("registers 1x4, 16 B"), "{text}");
    assert!(line(&text, "sharpen").contains("inline"), "{text}");
    let terms = line(&text, "launch");
    assert!(["DRAM", "L2", "SMs", "latency"].iter().all(|term| terms.contains(term)), "{terms}");
}

#[test]
fn loops_are_counted() {
    let place = Place::new();
    let schedule = "cuda_mat_mul
  kernel out   block x 128, y 64
    prod.0     threads x 32, y 8  serial x 4, y 8         unroll  private
    over prod.1.r 32
      A.stage  flat                                               shared
      prod.1   threads x 32, y 8  serial r all, x 4, y 8  unroll  private
    out        threads x 32, y 8  serial x 4, y 8         unroll
";
    fs::write(place.path("mine.schedule"), schedule).unwrap();
    let ran = place.run("explain cuda_mat_mul --size 256 --schedule mine.schedule");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let over = line(&ran.out, "over");
    assert!(over.contains("over prod.1.r 32   8 iterations"), "{over}");
    assert!(line(&ran.out, "A.stage").contains("shared 128x32, 16.4 KB"), "{}", ran.out);
    assert!(line(&ran.out, "prod.1").contains("private 4x8, 128 B"), "{}", ran.out);
}

#[test]
fn an_explanation_is_data() {
    let place = Place::new();
    let report = place.json("explain blur --size 256x128 --schedule default --json");
    assert_eq!((&report["schema"], &report["model"]), (&"warploom.explain/1".into(), &"h200".into()));
    let kernels = report["kernels"].as_array().unwrap();
    let sum: f64 = kernels.iter().map(|kernel| kernel["predicted_us"].as_f64().unwrap()).sum();
    assert!((sum - report["predicted_us"].as_f64().unwrap()).abs() < 1e-9 * sum);
    let line = &kernels[0]["lines"][0];
    assert_eq!((&line["memory"]["kind"], &line["redundancy"]), (&"global".into(), &1.0.into()));
    assert!(line["terms"].as_array().unwrap().iter().all(|term| term["us"].as_f64().unwrap() >= 0.0));
}

#[test]
fn what_cannot_be_explained_is_said() {
    let place = Place::new();
    let illegal = "copy\n  kernel output block x 4096, y 4096 threads x 64, y 64\n";
    fs::write(place.path("illegal.schedule"), illegal).unwrap();
    let ran = place.run("explain copy --schedule illegal.schedule");
    assert_eq!((ran.code, ran.out.as_str()), (3, ""));
    assert!(ran.err.contains("the schedule cannot be used: "), "{}", ran.err);
    assert!(ran.err.contains("4096 threads"), "{}", ran.err);
    assert_eq!(place.run("explain copy").code, 2);
    assert_eq!(place.run("explain copy --schedule nothing.schedule").code, 2);
}
