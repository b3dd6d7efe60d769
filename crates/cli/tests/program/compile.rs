//! `warploom compile`: which files it writes, and what it says.

use std::fs;

use serde_json::json;
use warploom::runtime::testing;

use crate::place::Place;

#[test]
fn files_are_written_and_listed_with_or_without_nvrtc() {
    let place = Place::new();
    let report = place.json("compile brighten --size 64x48 --schedule default -o a/b --json");
    assert_eq!(report["schema"], "warploom.compile/2");
    assert_eq!((&report["app"], &report["launches"]), (&json!("brighten"), &json!(1)));
    let files: Vec<&str> =
        report["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap()).collect();
    let compiled = !report["arch"].is_null();
    assert_eq!(files.len(), if compiled { 7 } else { 5 });
    assert_eq!(report["notes"] == json!([]), compiled, "{}", report["notes"]);
    assert!(files.iter().all(|file| place.path(file).is_file()), "{files:?}");

    let read = |name: &str| fs::read_to_string(place.path("a/b").join(name)).unwrap();
    assert!(read("brighten.schedule").starts_with("brighten "));
    assert!(read("brighten.cu").contains("__global__"));
    let manifest: serde_json::Value = serde_json::from_str(&read("brighten.json")).unwrap();
    assert_eq!(manifest["schema"], "warploom.manifest/2");
    assert_eq!(manifest["params"][0]["value"], 1.5);
    assert_eq!(manifest["code"].as_array().unwrap().is_empty(), !compiled);
}

#[test]
fn a_written_schedule_compiles_again_to_the_same() {
    let place = Place::new();
    let first = place.run("compile harris --size 64x48 --schedule default --device h200 -o one");
    assert_eq!(first.code, 0, "{}", first.err);
    assert!(first.out.starts_with("harris at W=64, H=48 for H200 (sm_90): "), "{}", first.out);
    let again = place.run("compile harris --size 64x48 --schedule one --device h200 -o two");
    assert_eq!(again.code, 0, "{}", again.err);
    for extension in ["cu", "schedule", "json", "h", "c"] {
        let read = |folder: &str| fs::read(place.path(folder).join(format!("harris.{extension}"))).unwrap();
        assert!(read("one") == read("two"), "{extension}");
    }
}

#[test]
fn own_files_are_replaced_and_others_stay_with_or_without_nvrtc() {
    let place = Place::new();
    let others = ["mine.cubin", "blur.txt", "blur.mine.cubin", "blur.sm_x.cubin"];
    for name in ["blur.cu", "blur.cubin", "blur.sm_75.cubin", "blur.ptx"].iter().chain(&others) {
        fs::write(place.path(name), "old").unwrap();
    }
    let report = place.json("compile blur --size 64x48 --schedule default -o . --json");
    let read = |name: &str| fs::read(place.path(name)).ok();
    assert_ne!(read("blur.cu").unwrap(), b"old");
    // Old machine code belongs to old kernels.
    assert_eq!((read("blur.cubin"), read("blur.sm_75.cubin")), (None, None));
    assert_eq!(read("blur.ptx").is_some(), !report["arch"].is_null());
    assert_ne!(read("blur.ptx"), Some(b"old".to_vec()));
    assert!(others.iter().all(|name| read(name) == Some(b"old".to_vec())));
}

#[test]
fn nvrtc_machine_code_is_written_and_embedded() {
    if !testing::has_nvrtc("nvrtc_machine_code_is_written_and_embedded") {
        return;
    }
    let place = Place::new();
    let report = place.json("compile blur --size 64x48 --schedule default -o . --json");
    assert_eq!((&report["arch"], &report["notes"]), (&json!("sm_90"), &json!([])));
    assert!(report["kernels"][0]["registers"].as_u64().unwrap() > 0);
    let cubin = fs::read(place.path("blur.sm_90.cubin")).unwrap();
    assert!(cubin.starts_with(b"\x7fELF"));
    let source = fs::read_to_string(place.path("blur.c")).unwrap();
    let embedded = |name: &str| -> Vec<u8> {
        let array = source.split_once(&format!("{name}[] = {{")).unwrap().1.split_once("};").unwrap().0;
        array.split(',').filter_map(|byte| byte.trim().parse().ok()).collect()
    };
    assert_eq!(embedded("code_sm_90"), cubin);
    let ptx = fs::read_to_string(place.path("blur.ptx")).unwrap();
    assert!(ptx.contains(".visible .entry blur_output"));
    assert_eq!(embedded("code_compute_90"), [ptx.as_bytes(), &[0]].concat());
}

#[test]
fn nvrtc_a_package_has_code_for_several_devices() {
    if !testing::has_nvrtc("nvrtc_a_package_has_code_for_several_devices") {
        return;
    }
    let place = Place::new();
    let report = place
        .json("compile blur --size 64x48 --schedule default --device h200,a100,h100,rtx4090 --name soft -o . --json");
    assert_eq!((&report["device"], &report["arch"]), (&json!("H200"), &json!("sm_90")));
    let files: Vec<&str> =
        report["code"].as_array().unwrap().iter().map(|code| code["file"].as_str().unwrap()).collect();
    assert_eq!(files, ["soft.sm_90.cubin", "soft.sm_89.cubin", "soft.sm_80.cubin", "soft.ptx"]);
    assert!(files.iter().all(|file| place.path(file).is_file()));
    let ptx = fs::read_to_string(place.path("soft.ptx")).unwrap();
    assert!(ptx.contains(".target sm_80") && ptx.contains(".visible .entry soft_output"));
    let header = fs::read_to_string(place.path("soft.h")).unwrap();
    assert!(
        header.contains("for H200 (sm_90), A100 (sm_80), H100 (sm_90), RTX 4090 (sm_89), at"),
        "{header}"
    );
    assert!(header.contains(" *     compute_80: PTX for other GPUs from 8.0 on"), "{header}");
}

#[test]
fn lists_of_devices_that_cannot_be_served_are_refused() {
    let place = Place::new();
    let said = |arguments: &str| {
        let ran = place.run(arguments);
        (ran.code, ran.err)
    };
    let blur = "compile blur --size 64x48 --schedule default";
    let (code, err) = said(&format!("{blur} --device h200,h2000 -o out"));
    assert!(code == 2 && err.contains("unknown device `h2000` (did you mean `H200`?)"), "{err}");
    let (code, err) = said(&format!("{blur} --device h200,a100,H200 -o out"));
    assert_eq!((code, err.as_str()), (2, "error: --device lists H200 twice; list each device once\n"));
    let several = "`--device h200,a100` lists several devices, which only the package of `compile -o` without --emit is";
    for one in [&format!("{blur} --emit cuda -o out"), blur, "explain blur --schedule default"] {
        let (code, err) = said(&format!("{one} --device h200,a100"));
        assert!(code == 2 && err.contains(several), "{err}");
    }
    // The default schedule has 256 threads per block.
    let mut small = warploom::target::Device::preset("h200").unwrap();
    small.name = "small".to_owned();
    small.threads.per_block = 64;
    fs::write(place.path("small.json"), small.to_json().unwrap()).unwrap();
    let large = blur.replace("64x48", "640x480");
    let (code, err) = said(&format!("{large} --device h200,small.json -o out"));
    assert!(
        code == 3 && err.contains("the schedule, which was made for H200, does not fit small; list small"),
        "{err}"
    );
    assert!(!place.path("out").exists());
}

/// Arrays of 3.6e9 elements, whose indices have 64 bits.
#[test]
fn a_large_image_compiles() {
    let place = Place::new();
    let compiled = place.run("compile unsharp --size 60000x60000 --schedule default -o .");
    assert_eq!(compiled.code, 0, "{}", compiled.err);
    let text = fs::read_to_string(place.path("unsharp.cu")).unwrap();
    assert!(text.contains("(long long)") && !text.contains("(unsigned)-"), "{text}");
    let manifest: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(place.path("unsharp.json")).unwrap()).unwrap();
    let bytes: Vec<u64> = manifest["buffers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|buffer| buffer["bytes"].as_u64().unwrap())
        .collect();
    assert!(bytes.contains(&(3 * 60_000 * 60_000 * 4)), "{bytes:?}");
}

#[test]
fn mistakes_are_said() {
    let place = Place::new();
    fs::write(place.path("file"), "").unwrap();
    fs::write(place.path("bad.schedule"), "blur\n  kernel nothing\n").unwrap();
    let said = |arguments: &str| {
        let ran = place.run(arguments);
        (ran.code, ran.err)
    };
    let (code, err) = said("compile blur --schedule default --samples 3");
    assert!(code == 2 && err.contains("--schedule <FILE>") && err.contains("--samples <N>"), "{err}");
    let (code, err) = said("compile blur --time-limit soon");
    assert!(code == 2 && err.contains("`soon` is not a time; write it as 10s, 2m or 500ms"), "{err}");
    let (code, err) = said("compile blur --emit kernels");
    assert!(code == 2 && err.contains("schedule, nest, cuda, features"), "{err}");
    let (code, err) = said("compile blur --schedule search:x");
    assert!(code == 2 && err.contains("as in search:7"), "{err}");
    let (code, err) = said("compile blur --size 64x48 --schedule default -o file");
    assert!(
        code == 2 && err.contains("error: cannot write to the folder file: file is not a folder"),
        "{err}"
    );
    let (code, err) = said("compile blur --schedule bad.schedule -o out");
    assert!(code == 3 && err.contains("bad.schedule is not a schedule of this pipeline"), "{err}");
    let (code, err) = said("compile blur --schedule default --device h2000 -o out");
    assert!(code == 2 && err.contains("h2000"), "{err}");
    let (code, err) = said("compile lens_blur --param slices=65 --schedule default -o out");
    assert!(code == 3 && err.contains("slices"), "{err}");
    assert!(!place.path("out").exists());
}
