//! What users get for their mistakes: one sentence and an exit code, never a panic.

use std::fs;

use crate::place::Place;
use warploom::interp::buffer::Buffer;
use warploom::interp::{npy, picture};
use warploom::lang::{Region, Type};

/// The answers to some command lines, as one text.
fn answers(place: &Place, commands: &[&str]) -> String {
    let mut text = String::new();
    for command in commands {
        let ran = place.run(command);
        let (start, said, silent) = match command.ends_with("--json") {
            true => ("{\"schema\":\"warploom.error/1\"", ran.out, ran.err),
            false => ("error: ", ran.err, ran.out),
        };
        assert_eq!(silent, "", "{command}");
        assert!(said.starts_with(start), "{command}: {said}");
        text += &format!("$ warploom {command}\n{}exit {}\n\n", without_places(&said), ran.code);
    }
    text
}

/// The same text with nothing about lines of the apps' sources, which may move.
fn without_places(text: &str) -> String {
    let lines = text.lines().map(|line| if line.starts_with("  --> ") { "  --> PLACE" } else { line });
    lines.map(|line| format!("{line}\n")).collect()
}

/// Compares the answers to some command lines with what they were before.
macro_rules! assert_answers {
    ($place:expr, $commands:expr) => {
        insta::with_settings!({ omit_expression => true }, {
            insta::assert_snapshot!(answers($place, $commands));
        });
    };
}

#[test]
fn unknown_names() {
    let place = Place::new();
    assert_answers!(
        &place,
        &[
            "run haris",
            "graph no_such_app",
            "run harris --size V=5",
            "run bgu --size Q=5",
            "run harris --param sigma=1",
            "run nl_means --param sigm=1",
            "run unsharp --param sigma=1",
            "run local_laplacian --set alpha=1",
            "graph unsharp --set signa=2",
            "run harris --input image=a.png",
            "run harris --size 8x8 -o result=a.png",
        ]
    );
}

#[test]
fn sizes_that_are_none() {
    let place = Place::new();
    assert_answers!(
        &place,
        &[
            "run harris --size 0x5",
            "run harris --size W=-1",
            "run harris --size -1x8",
            "run harris --size W=1.5",
            "run harris --size W=",
            "run harris --size Wx8",
            "run harris --size 99999999999x5",
            "run harris --size 99999999999999999999x5",
            "run harris --size 5",
            "run harris --size 5x5x5",
            "run harris --size W=8,W=9",
            "run cuda_mat_mul --size 8x8",
            "run harris --size 6x6",
        ]
    );
}

#[test]
fn sizes_that_do_not_fit_in_memory() {
    for (command, expected) in [
        ("harris --size 10000000x10000000", "`harris` at W=10000000, H=10000000 need 1.6 PB"),
        ("cuda_mat_mul --size 1073741824", "`cuda_mat_mul` at size=1073741824 need 13.8 EB"),
    ] {
        let ran = Place::new().run(&format!("run {command}"));
        assert_eq!((ran.code, ran.out.as_str()), (2, ""));
        let (start, end) = ran.err.split_once(", but only ").unwrap();
        assert_eq!(start, format!("error: the inputs and outputs of {expected}"));
        assert!(end.ends_with(" is free; use smaller sizes\n"), "{end}");
    }
}

#[test]
fn values_that_are_none() {
    let place = Place::new();
    assert_answers!(
        &place,
        &[
            "run nl_means --param sigma=much",
            "run nl_means --param sigma=nan",
            "run nl_means --param sigma=1e300",
            "run nl_means --param sigma",
            "run nl_means --param sigma=1 --param sigma=2",
            "run nl_means --param patch_size=2.5",
            "run nl_means --param patch_size=3000000000",
            "run lens_blur --param slices=100",
            "run nl_means --param patch_size=2000000000",
            "run local_laplacian --set pyramid_levels=0",
            "run local_laplacian --set pyramid_levels=-3",
            "run local_laplacian --set pyramid_levels=2.5",
            "run local_laplacian --set pyramid_levels=1e9",
            "run local_laplacian --set pyramid_levels=64 --size 8x8",
            "run unsharp --set sigma=inf",
            "run bilateral_grid --param r_sigma=0",
        ]
    );
}

#[test]
fn files_that_cannot_be_read() {
    let place = Place::new();
    let image = Buffer::zeros(Type::F32, Region::of_extents(&[16, 12, 3])).unwrap();
    npy::write(place.path("good.npy"), &image).unwrap();
    let bytes = fs::read(place.path("good.npy")).unwrap();
    fs::write(place.path("cut.npy"), &bytes[..bytes.len() / 2]).unwrap();
    fs::write(place.path("text.npy"), "not an array").unwrap();
    fs::write(place.path("text.png"), "not a picture").unwrap();
    fs::write(place.path("empty.png"), "").unwrap();
    fs::write(place.path("photo.jpg"), "").unwrap();
    fs::create_dir(place.path("folder.npy")).unwrap();
    assert_answers!(
        &place,
        &[
            "run harris --input missing.png",
            "run harris --input cut.npy",
            "run harris --input text.npy",
            "run harris --input text.png",
            "run harris --input empty.png",
            "run harris --input photo.jpg",
            "run harris --input good.npy --input good.npy",
            "run harris --input input=good.npy --input input=good.npy",
        ]
    );
    assert_eq!(place.run("run harris --input folder.npy").code, 2);
}

#[test]
fn files_that_do_not_fit() {
    let place = Place::new();
    let zeros = |ty, extents: &[i64]| Buffer::zeros(ty, Region::of_extents(extents)).unwrap();
    npy::write(place.path("u8.npy"), &zeros(Type::U8, &[16, 12, 3])).unwrap();
    npy::write(place.path("flat.npy"), &zeros(Type::F32, &[16])).unwrap();
    npy::write(place.path("tiny.npy"), &zeros(Type::U16, &[8, 8])).unwrap();
    npy::write(place.path("long.npy"), &zeros(Type::F32, &[9, 8])).unwrap();
    npy::write(place.path("good.npy"), &zeros(Type::F32, &[16, 12, 3])).unwrap();
    let colours = Buffer::from_fn(Region::of_extents(&[16, 12, 3]), |at| at[2] as u8).unwrap();
    picture::write(place.path("colours.png"), &colours).unwrap();
    picture::write(place.path("clear.png"), &zeros(Type::U8, &[16, 12, 4])).unwrap();
    assert_answers!(
        &place,
        &[
            "run harris --input u8.npy",
            "run harris --input flat.npy",
            "run blur --input colours.png",
            "run harris --input clear.png",
            "run blur --input clear.png:blue",
            "run harris --input good.npy --size 16x13",
            "run camera_pipe --input tiny.npy",
            "run cuda_mat_mul --input long.npy",
        ]
    );
}

#[test]
fn files_that_cannot_be_written() {
    let place = Place::new();
    assert_answers!(
        &place,
        &[
            "run harris --size 8x8 -o out.jpg",
            "run harris --size 8x8 -o out",
            "run harris --size 8x8 -o no/such/folder/out.png",
            "run harris --size 8x8 -o a.npy -o b.npy",
            "run cuda_mat_mul --size 8 -o out.ppm",
            "run conv_layer --size 8x8,CI=2,CO=2,N=1 -o out.png",
        ]
    );
    assert!(!place.path("a.npy").exists());
}

#[test]
fn reference_data_that_is_none() {
    let place = Place::new();
    fs::create_dir(place.path("empty")).unwrap();
    fs::write(place.path("file"), "").unwrap();
    place.copy_golden(&["harris", "hist"]);
    let with_params = |name: &str, text: &str| {
        fs::create_dir(place.path(name)).unwrap();
        fs::write(place.path(name).join("params.json"), text).unwrap();
    };
    let harris = fs::read_to_string(place.path("golden/harris/params.json")).unwrap();
    let unknown_app = harris.replace("\"harris\"", "\"haris\"");
    let negative = harris
        .replace("\"harris\"", "\"interpolate\"")
        .replace("\"generator_params\": {}", "\"generator_params\": {\"levels\": -3}");
    let unknown_param = harris.replace("\"generator_params\": {}", "\"generator_params\": {\"levels\": 3}");
    with_params("damaged", "{ \"app\": \"harris\", ");
    with_params("lacking", "{ \"app\": \"harris\" }");
    with_params("unknown_app", &unknown_app);
    with_params("unknown_param", &unknown_param);
    with_params("negative", &negative);
    with_params("wrong_arrays", &harris);
    fs::copy(place.path("golden/hist/input.npy"), place.path("wrong_arrays/input.npy")).unwrap();
    with_params("arrays_missing", &harris);
    assert_answers!(
        &place,
        &[
            "verify nowhere",
            "verify file",
            "verify empty",
            "verify golden --app haris",
            "verify golden --app unsharp",
            "verify golden --on cuda",
            "verify damaged",
            "verify lacking",
            "verify unknown_app",
            "verify unknown_param --json",
            "verify negative --json",
            "verify wrong_arrays --json",
            "verify arrays_missing --json",
        ]
    );
}

#[test]
fn arguments_that_are_none() {
    let place = Place::new();
    for command in ["run", "fly", "run harris --seed -1", "run harris --seed x", "apps harris", "verify"] {
        let ran = place.run(command);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{command}");
        assert!(ran.err.starts_with("error: "), "{}", ran.err);
    }
    assert_eq!(place.run("graph harris --dot --json").code, 2);
    assert_eq!(place.run_with(["run", ""]).code, 2);
}

#[cfg(not(feature = "train"))]
#[test]
fn what_a_feature_would_add_names_it() {
    let place = Place::new();
    assert_answers!(
        &place,
        &["train --data samples", "help collect", "tune harris --retrain", "suite --retrain"]
    );
    let unknown = place.run("compile harris --retrain");
    assert!(unknown.code == 2 && !unknown.err.contains("feature"), "{}", unknown.err);
}
