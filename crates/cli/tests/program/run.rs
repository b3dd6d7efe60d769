//! `warploom run` on generated inputs, arrays and pictures.

use crate::place::Place;
use serde_json::json;
use warploom::interp::buffer::Buffer;
use warploom::interp::{npy, picture};
use warploom::lang::{Region, Type};

/// A picture with a ramp in each channel.
fn ramp(extents: &[i64]) -> Buffer {
    Buffer::from_fn(Region::of_extents(extents), |at| (40 + 3 * at[0] + 2 * at[1]) as u8).unwrap()
}

#[test]
fn a_generated_input_is_run() {
    let place = Place::new();
    let ran = place.run("run harris --size 64x48");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.starts_with("harris at W=64, H=48: "), "{}", ran.out);
    assert!(ran.out.contains("output  58x42  f32 "), "{}", ran.out);
}

#[test]
fn the_seed_decides() {
    let place = Place::new();
    let mean = |seed: u32| {
        let report = place.json(&format!("run unsharp --size 24x16 --seed {seed} --json"));
        assert_eq!(report["seed"], seed);
        report["outputs"][0]["mean"].clone()
    };
    assert_eq!(mean(1), mean(1));
    assert_ne!(mean(1), mean(2));
}

#[test]
fn a_picture_becomes_a_picture() {
    let place = Place::new();
    picture::write(place.path("in.png"), &ramp(&[31, 17, 3])).unwrap();
    let report = place.json("run unsharp --input in.png -o out.png --json");
    assert_eq!(report["schema"], "warploom.run/1");
    assert_eq!(report["settings"], json!({ "W": 31.0, "H": 17.0, "sigma": 1.5 }));
    assert_eq!(report["inputs"][0]["file"], "in.png");
    assert_eq!(report["outputs"][0]["file"], "out.png");

    let sharpened = picture::read(place.path("out.png")).unwrap();
    assert_eq!((sharpened.ty(), sharpened.region().extents()), (Type::U8, vec![31, 17, 3]));
    // A ramp has no detail to add, apart from what a kernel with a sum below 1 leaves.
    let (before, after) = (ramp(&[31, 17, 3]).get(&[15, 8, 1]), sharpened.get(&[15, 8, 1]));
    let ratio = after.unwrap().as_f64() / before.unwrap().as_f64();
    assert!((1.0..1.1).contains(&ratio), "{ratio}");
}

#[test]
fn an_array_is_what_it_was() {
    let place = Place::new();
    let ran = place.run("run hist --size 19x23 -o output=out.npy");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let first = npy::read(place.path("out.npy")).unwrap();
    assert_eq!(first.region().extents(), [19, 23, 3]);

    let ran = place.run("run hist --input input=out.npy -o again.npy");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_eq!(npy::read(place.path("again.npy")).unwrap().region(), first.region());
}

#[test]
fn sizes_leave_room_for_the_border_of_a_file() {
    let place = Place::new();
    let raw = Buffer::zeros(Type::U16, Region::of_extents(&[51, 45])).unwrap();
    npy::write(place.path("raw.npy"), &raw).unwrap();
    let report = place.json("run camera_pipe --input raw.npy --param gamma=2.2 --json");
    assert_eq!((&report["settings"]["W"], &report["settings"]["H"]), (&json!(19.0), &json!(21.0)));
    assert_eq!(report["settings"]["gamma"], 2.2);
    assert_eq!(report["inputs"][1]["file"], json!(null), "the matrices are the app's own");
}

#[test]
fn every_size_follows_from_files() {
    let place = Place::new();
    let zeros = |extents: &[i64]| Buffer::zeros(Type::F32, Region::of_extents(extents)).unwrap();
    npy::write(place.path("in.npy"), &zeros(&[3, 9, 7, 2])).unwrap();
    npy::write(place.path("filter.npy"), &zeros(&[5, 3, 3, 3])).unwrap();
    let report = place.json("run conv_layer --input filter=filter.npy --input in.npy --json");
    assert_eq!(report["settings"], json!({ "N": 2.0, "CI": 3.0, "CO": 5.0, "W": 7.0, "H": 5.0 }));
}

#[test]
fn odd_sizes_run() {
    let place = Place::new();
    let runs = [
        "bilateral_grid --size 37x23",
        "local_laplacian --size 5x3 --set pyramid_levels=3",
        "interpolate --size 13x1 --set levels=4",
        "stencil_chain --size 1x1 --set stencils=2",
        "max_filter --size 9x7 --set radius=3",
        "nl_means --size 11x6 --param search_area=4",
        "cuda_mat_mul --size 7",
        "harris --size W=7,H=9",
        "bgu --size 33x17,w=5,h=3",
    ];
    for arguments in runs {
        let report = place.json(&format!("run {arguments} --json"));
        assert!(report["outputs"][0]["max"].is_number(), "{arguments}: {report}");
    }
}
