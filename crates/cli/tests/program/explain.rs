//! `warploom explain`: what it says of schedules.

use std::fs;

use warploom::lang::{Input, Operand, Pipeline, Type, func, rdom, undef, vars};

use crate::place::Place;

pub const UNSHARP: &str = "unsharp inline in, kernel, sharpen, ratio
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
    let ran = place.run("explain unsharp --schedule unsharp.schedule --device h200");
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
    let blur_x = line(&text, "blur_x");
    assert!(
        blur_x.contains("registers 1x4, 16 B") && blur_x.contains("0.33 per point of output"),
        "{blur_x}"
    );
    let sharpen = line(&text, "sharpen");
    assert!(sharpen.contains("inline") && sharpen.contains("1 per point of output"), "{sharpen}");
    let terms = line(&text, "launch");
    assert!(["DRAM", "L2", "SMs", "latency"].iter().all(|term| terms.contains(term)), "{terms}");
    let limit = line(&text, "reads");
    assert!(limit.starts_with("  reads 47.2 MB, writes 47.2 MB; limited by "), "{limit}");
}

/// A folder with a pipeline that adds up whole pictures, and one that reads what was never written.
fn place_with_faults() -> Place {
    let place = Place::new();
    let c = vars!(c);
    let image = Input::f32("image", 3);
    let r = rdom!(rx: (0, image.extent(0)), ry: (0, image.extent(1)));
    let total = func("total", c, 0.0).over(&r, |f| f.add(c, image.at((r.x, r.y, c.expr()))));
    let pipeline = Pipeline::new("total", [total]).unwrap();
    fs::write(place.path("total.json"), pipeline.to_json()).unwrap();
    let r = rdom!(r: (1, 15));
    let scan = func("scan", c, undef(Type::F32)).over(&r, |f| f.set(r.x, f.at(r.x - 1) + 1.0));
    let pipeline = Pipeline::new("scan", [scan]).unwrap();
    fs::write(place.path("scan.json"), pipeline.to_json()).unwrap();
    place
}

#[test]
fn an_idle_gpu_is_explained() {
    let place = place_with_faults();
    let sizes = "--size image=1536x2560x3,total=3 --schedule default";
    for command in ["explain", "compile"] {
        let ran = place.run(&format!("{command} total.json {sizes}"));
        assert_eq!(ran.code, 0, "{}", ran.err);
        let said = ran.said();
        let note = said.split("note: ").nth(1).unwrap_or_default();
        assert!(
            note.contains("`total.1` takes") && note.contains("uses only 3 threads of the 270336"),
            "{note}"
        );
        let report = place.json(&format!("{command} total.json {sizes} --json"));
        assert_eq!(
            (&report["idle"]["threads"], &report["idle"]["reason"]["kind"]),
            (&3.into(), &"reduction".into())
        );
    }
    assert!(place.json("explain blur --schedule default --json")["idle"].is_null());
}

#[test]
fn what_has_no_value_is_warned_of() {
    let place = place_with_faults();
    for command in ["explain scan.json --schedule default", "compile scan.json --schedule default"] {
        let ran = place.run(&format!("{command} --size 16 --device h200"));
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(
            ran.err.starts_with("warning: `scan` has no value at [0, 1), which `scan.1` reads"),
            "{}",
            ran.err
        );
        let quiet = place.run(&format!("{command} --size 16 -q"));
        assert_eq!((quiet.code, quiet.err.as_str()), (0, ""));
    }
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
    let ran = place.run("explain cuda_mat_mul --size 256 --schedule mine.schedule --device h200");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let over = line(&ran.out, "over");
    assert!(over.contains("over prod.1.r 32   8 iterations"), "{over}");
    let said = ran.said();
    assert!(said.contains("A.stage flat shared 128x32, 16.4 KB"), "{}", ran.out);
    assert!(said.contains("serial x 4, y 8, r 32, unrolled private 4x8, 128 B"), "{}", ran.out);
}

#[test]
fn an_explanation_is_data() {
    let place = Place::new();
    let report = place.json("explain blur --size 256x128 --schedule default --json");
    assert_eq!((&report["schema"], &report["model"]), (&"warploom.explain/2".into(), &"h200".into()));
    let kernels = report["kernels"].as_array().unwrap();
    let sum: f64 = kernels.iter().map(|kernel| kernel["predicted_us"].as_f64().unwrap()).sum();
    assert!((sum - report["predicted_us"].as_f64().unwrap()).abs() < 1e-9 * sum);
    let line = &kernels[0]["lines"][0];
    assert_eq!((&line["memory"]["kind"], &line["redundancy"]), (&"global".into(), &1.0.into()));
    assert!(line["terms"].as_array().unwrap().iter().all(|term| term["us"].as_f64().unwrap() >= 0.0));
}

#[test]
fn a_predicted_time_has_a_range_where_one_is_known() {
    let place = Place::new();
    let explain = "explain blur --schedule default";
    let times = |arguments: &str| {
        let report: serde_json::Value =
            serde_json::from_str(&place.run(&format!("{explain} {arguments} --json")).out).unwrap();
        ["predicted_us", "predicted_us_low", "predicted_us_high"].map(|name| report[name].as_f64())
    };
    let [Some(predicted), Some(low), Some(high)] = times("--device h200") else { panic!("it is known") };
    assert!(low < predicted && predicted < high, "{low} {predicted} {high}");
    let text = place.run(&format!("{explain} --device h200")).said();
    let words = format!("; {low:.0} to {high:.0} for nine of ten pipelines; 1 kernel ");
    assert!(low > 10.0 && text.contains(&words), "{words}: {text}");
    // The analytic model was fitted to nothing, the weights are for another device, or nothing as short was measured.
    for arguments in ["--device h200 --model analytic", "--device v100", "--device h200 --size 64x64"] {
        assert!(matches!(times(arguments), [Some(_), None, None]), "{arguments}");
        let text = place.run(&format!("{explain} {arguments}")).said();
        assert!(text.contains(" model; range unknown; 1 kernel "), "{text}");
    }
    let compiled = place.json("compile blur --schedule default --device h200 --json");
    assert_eq!(compiled["predicted_us_low"].as_f64(), Some(low));
    assert_eq!(compiled["predicted_us_high"].as_f64(), Some(high));
}

#[test]
fn what_cannot_be_explained_is_said() {
    let place = Place::new();
    let illegal = "copy\n  kernel output block x 4096, y 4096 threads x 64, y 64\n";
    fs::write(place.path("illegal.schedule"), illegal).unwrap();
    let ran = place.run("explain copy --schedule illegal.schedule");
    assert_eq!((ran.code, ran.out.as_str()), (3, ""));
    assert!(ran.err.contains("the schedule is illegal: "), "{}", ran.err);
    assert!(ran.err.contains("4096 threads"), "{}", ran.err);
    assert_eq!(place.run("explain copy --schedule nothing.schedule").code, 2);
}

#[test]
fn without_a_schedule_it_is_what_compile_finds() {
    let place = Place::new();
    let found = place.json("explain blur --size 640x480 --device h200 --json");
    assert_eq!(found["searched"], true);
    let compiled = place.json("compile blur --size 640x480 --device h200 --json");
    assert_eq!(found["predicted_us"], compiled["predicted_us"]);
    let stages = |json: &serde_json::Value, key: &str| -> Vec<String> {
        json["kernels"].as_array().unwrap().iter().map(|kernel| kernel[key].to_string()).collect()
    };
    assert_eq!(stages(&found, "grid"), stages(&compiled, "grid"));
    let given = place.json("explain blur --size 640x480 --device h200 --schedule default --json");
    assert_eq!(given["searched"], false);
}

#[test]
fn loops_bytes_and_limits_are_data() {
    let place = Place::new();
    fs::write(place.path("unsharp.schedule"), UNSHARP).unwrap();
    let report = place.json("explain unsharp --schedule unsharp.schedule --device h200 --json");
    let kernel = &report["kernels"][0];
    let line = |name: &str| {
        let lines = kernel["lines"].as_array().unwrap();
        lines.iter().find(|line| line["name"] == name).unwrap().clone()
    };
    // 70 x 22 points are six rounds of 256 threads, and four points.
    let flat = serde_json::json!([{
        "kind": "flat", "variable": "x, y", "count": 7, "step": 256, "leftover": { "points": 4, "of": 256 },
    }]);
    assert_eq!(line("gray")["loops"], flat);
    assert_eq!((&kernel["loops"][1]["kind"], &kernel["loops"][1]["count"]), (&"blocks".into(), &160.into()));
    let inlined = line("in");
    assert_eq!((&inlined["per_point"], &inlined["consumer"]), (&3.0.into(), &"gray".into()));
    assert!(inlined["redundancy"].is_null() && inlined["traffic"].is_null(), "{inlined}");
    assert!((line("gray")["redundancy"].as_f64().unwrap() - 1.49).abs() < 0.01);
    assert!(line("gray")["traffic"]["shared_written_bytes"].as_f64().unwrap() > 0.0);
    let picture = 1536.0 * 2560.0 * 3.0 * 4.0;
    assert_eq!((&kernel["read_bytes"], &kernel["written_bytes"]), (&picture.into(), &picture.into()));
    let limit = &kernel["bottleneck"];
    assert!(["launch", "dram", "l2", "sms", "latency"].contains(&limit["kind"].as_str().unwrap()), "{limit}");
    assert!(limit["sentence"].as_str().unwrap().starts_with("limited by "), "{limit}");
}

#[test]
fn two_schedules_are_compared() {
    let place = Place::new();
    fs::write(place.path("unsharp.schedule"), UNSHARP).unwrap();
    let command = "explain unsharp --schedule unsharp.schedule --against default --device h200";
    let ran = place.run(command);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let (text, said) = (&ran.out, ran.said());
    assert!(
        text.contains("\nagainst default: ") && said.contains(" 5 kernels, 5 of them different: gray, "),
        "{text}"
    );
    assert!(
        said.contains("unsharp.schedule is predicted to be ") && said.contains(" faster than default: "),
        "{text}"
    );
    for line in [
        "what default does otherwise:",
        "  gray: in a kernel of its own, not in shared memory of the kernel output",
        "what that costs:",
        "  launches: 5, not 1",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
    }
    assert!(text.contains("  written to global memory: ") && text.contains("\n  kernel "), "{text}");
    assert!(text.contains("\nplace kernel\n") && text.contains("put 4\n  kernel output "), "{text}");
    assert!(!text.contains("(overlapped)"), "the kernels are not listed");
    let report = place.json(&format!("{command} --json"));
    let against = &report["against"];
    assert_eq!((&against["schedule"], &against["kernels"]), (&"default".into(), &5.into()));
    assert!(against["predicted_us"].as_f64() > report["predicted_us"].as_f64(), "{against}");
    assert!(against["changes"].as_array().unwrap().len() > 3);
    assert!(against["differences"].as_array().unwrap().len() > 3, "{against}");
    let launches = &against["costs"][0];
    assert_eq!((&launches["first"], &launches["second"]), (&1.0.into(), &5.0.into()), "{launches}");

    let same = place.run("explain blur --schedule default --against default");
    assert!(same.out.ends_with("\nBoth are predicted to take the same time.\n"), "{}", same.out);
    assert_eq!(place.run(&format!("{command} --decisions")).code, 2);
    assert_eq!(place.run("explain unsharp --schedule default --against nothing.schedule").code, 2);
}

#[test]
fn rewrites_are_compared_as_a_whole() {
    let place = Place::new();
    let found = place.run("explain iir_blur --against default --size 64x64 --device h200");
    assert_eq!(found.code, 0, "{}", found.err);
    assert!(found.out.contains("against default: "), "{}", found.out);
}

#[test]
fn a_page_is_written() {
    let place = Place::new();
    fs::write(place.path("unsharp.schedule"), UNSHARP).unwrap();
    let command = "explain unsharp --schedule unsharp.schedule --device h200 --html page.html";
    let ran = place.run(command);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.starts_with("page.html: 1 kernel, "), "{}", ran.out);
    let html = fs::read_to_string(place.path("page.html")).unwrap();
    let parts = [
        "<h1>unsharp at W=1536, H=2560</h1>",
        "<dd>H200 (sm_90)</dd>",
        "<li>7 rounds of 256 threads over x, y; the last has 4 points</li>",
        "<li>24 blocks along x, 64 points each</li>",
        "It is limited by ",
        "<title>ratio: inline</title>",
        "<title>gray: kernel 1</title>",
        "__global__",
        "computed 3 per point of gray",
    ];
    for part in parts {
        assert!(html.contains(part), "{part}");
    }
    let json = place.json(&format!("{command} --json"));
    assert_eq!((&json["schema"], &json["file"]), (&"warploom.explain-page/1".into(), &"page.html".into()));
    assert_eq!(json["bytes"], html.len());
    let ran = place.run("explain unsharp --schedule default --device h200 --html nowhere/page.html");
    assert!(ran.code == 2 && ran.err.starts_with("error: cannot write nowhere/page.html: "), "{}", ran.err);
}

#[test]
fn every_stage_has_code_and_pages_are_small() {
    let place = Place::new();
    // The default schedule has the most kernels.
    for app in ["local_laplacian", "cuda_mat_mul", "iir_blur", "hist", "bgu"] {
        let ran = place.run(&format!("explain {app} --schedule default --device h200 --html {app}.html"));
        assert_eq!(ran.code, 0, "{app}: {}", ran.err);
        let html = fs::read_to_string(place.path(&format!("{app}.html"))).unwrap();
        assert!(html.len() < 2_000_000, "{app}: {} bytes", html.len());
        for kernel in html.split("<details class=\"kernel\"").skip(1) {
            let numbers: Vec<&str> =
                kernel.split("class=\"line\" tabindex=\"0\" data-n=\"").skip(1).collect();
            let runs: Vec<&str> = kernel.split("class=\"run\" tabindex=\"0\" data-n=\"").skip(1).collect();
            for number in numbers.iter().map(|rest| rest.split('"').next().unwrap()) {
                let belongs = |run: &&str| run.split('"').next().unwrap().split(' ').any(|of| of == number);
                assert!(runs.iter().any(belongs), "{app}: line {number} of {}", &kernel[..60]);
            }
        }
    }
}
