//! `warploom run` on generated inputs, arrays and pictures.

use std::path::Path;

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
    let ran = place.run("run harris --size 64x48 --generate");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.starts_with("harris at W=64, H=48: "), "{}", ran.out);
    assert!(ran.out.contains("output  58x42  f32 "), "{}", ran.out);
}

#[test]
fn the_seed_decides() {
    let place = Place::new();
    let mean = |seed: u32| {
        let report = place.json(&format!("run unsharp --size 24x16 --generate --seed {seed} --json"));
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
fn inputs_are_made_up_only_if_that_is_asked_for() {
    let place = Place::new();
    let answer = |arguments: &str| {
        let ran = place.run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments}: {}", ran.err);
        ran.err
    };
    assert_eq!(
        answer("run harris --size 64x48"),
        "error: `harris` lacks 1 input: `input`; give files, as in --input input=FILE, or add --generate for made-up data\n"
    );
    npy::write(place.path("a.npy"), &ramp(&[8, 8, 3])).unwrap();
    let both = answer("run bgu --size 33x17,w=5,h=3 -o out.png");
    assert!(both.contains("lacks 3 inputs: `") && both.contains("`, `"), "{both}");
    assert!(answer("run blur --size 8x8 --trace page.html").contains("add --generate"));
    let some = Buffer::zeros(Type::F32, Region::of_extents(&[5, 3, 3, 3])).unwrap();
    npy::write(place.path("filter.npy"), &some).unwrap();
    let one = answer("run conv_layer --input filter=filter.npy");
    assert!(one.contains("lacks 2 inputs: `bias`, `input`"), "{one}");
    picture::write(place.path("in.png"), &ramp(&[31, 17, 3])).unwrap();
    assert_eq!(
        answer("run unsharp --input in.png --generate"),
        "error: --generate has no effect here: every input has a file; remove it\n"
    );
    assert!(!place.path("out.png").exists() && !place.path("page.html").exists());
}

#[test]
fn pictures_get_the_channels_of_the_input() {
    let place = Place::new();
    let colours =
        Buffer::from_fn(Region::of_extents(&[9, 7, 3]), |at| (20 * at[0] + 60 * at[2]) as u8).unwrap();
    picture::write(place.path("grey.png"), &ramp(&[9, 7])).unwrap();
    picture::write(place.path("rgb.png"), &colours).unwrap();
    let opaque = picture::with_channels(&colours, 4, picture::Loss::Nothing).unwrap();
    picture::write(place.path("opaque.png"), &opaque).unwrap();
    let mut clear = opaque.clone();
    *clear.as_mut_slice::<u8>().unwrap().last_mut().unwrap() = 7;
    picture::write(place.path("clear.png"), &clear).unwrap();
    let repeated = picture::with_channels(&ramp(&[9, 7]), 3, picture::Loss::Nothing).unwrap();
    picture::write(place.path("repeated.png"), &repeated).unwrap();
    let luma = picture::with_channels(&colours, 1, picture::Loss::Colours).unwrap();
    picture::write(place.path("luma.png"), &luma).unwrap();
    let output = |app: &str, input: &str| {
        let ran = place.run(&format!("run {app} --input {input} -o out.npy"));
        assert_eq!(ran.code, 0, "{app} {input}: {}", ran.err);
        npy::read(place.path("out.npy")).unwrap()
    };
    for (app, input, same) in [
        ("unsharp", "opaque.png", "rgb.png"),
        ("unsharp", "clear.png:rgb", "rgb.png"),
        ("unsharp", "grey.png", "repeated.png"),
        ("copy", "repeated.png", "grey.png"),
        ("copy", "rgb.png:grey", "luma.png"),
        ("copy", "clear.png:gray", "luma.png"),
    ] {
        assert_eq!(output(app, input), output(app, same), "{app} {input}");
    }
    let refused = place.run("run copy --input rgb.png -o other.png");
    assert_eq!(
        (refused.code, refused.err.as_str()),
        (
            2,
            "error: input `input` of `copy` takes 1 channel, and converting rgb.png would lose the colours; write \
             rgb.png:grey to convert it all the same\n"
        )
    );
    assert!(place.run("run unsharp --input clear.png").err.contains("write clear.png:rgb"));
}

/// A pipeline of a file has no size before its input is read.
#[test]
fn pictures_and_arrays_of_files_say_what_they_need() {
    let place = Place::new();
    assert_eq!(place.run("apps --export unsharp.json").code, 0);
    picture::write(place.path("grey.png"), &ramp(&[9, 7])).unwrap();
    let zeros = |extents: &[i64]| Buffer::zeros(Type::F32, Region::of_extents(extents)).unwrap();
    npy::write(place.path("last.npy"), &zeros(&[3, 64, 48])).unwrap();
    npy::write(place.path("first.npy"), &zeros(&[64, 48, 3])).unwrap();
    let refused = |arguments: &str, said: &str| {
        let ran = place.run(&format!("run unsharp.json -o out.npy {arguments}"));
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments}: {}", ran.err);
        assert!(ran.err.contains(said), "{arguments}: {}", ran.err);
        assert!(!place.path("out.npy").exists());
    };
    refused(
        "--input grey.png",
        "is a grey picture, but input `input` of `unsharp` has 3 dimensions; write grey.png:rgb",
    );
    refused(
        "--input last.npy",
        "last.npy has extents 3x64x48, so its last axis may be the channels, and nothing says what size input `input` of \
         `unsharp` has; transpose the array, array.transpose(2, 0, 1), or give --size input=3x64x48 to take it as it is",
    );
    refused(
        "--input last.npy --size 64x48x3",
        "transpose the array, array.transpose(2, 0, 1), or declare the input",
    );
    let size = |arguments: &str| {
        let ran = place.run(&format!("run unsharp.json {arguments} -o out.npy"));
        assert_eq!(ran.code, 0, "{arguments}: {}", ran.err);
        npy::read(place.path("out.npy")).unwrap().region().extents()
    };
    assert_eq!(size("--input last.npy --size input=3x64x48"), [3, 64, 48]);
    assert_eq!(size("--input first.npy"), [64, 48, 3]);
    assert_eq!(size("--input grey.png:rgb"), [9, 7, 3]);
    assert_eq!(size("--input grey.png --size 9x7x3"), [9, 7, 3]);
}

#[cfg(feature = "pictures")]
#[test]
fn common_pictures_are_inputs() {
    let place = Place::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../interp/tests/pictures");
    for name in ["rgb.jpg", "progressive.jpg", "rgb.tif", "rgb.webp", "rgb.bmp", "grey16.tif", "rgba.tif:rgb"]
    {
        let file = folder.join(name).display().to_string();
        let ran = place.run(&format!("run unsharp --input {file} -o out.png"));
        assert_eq!(ran.code, 0, "{name}: {}", ran.err);
        assert_eq!(picture::read(place.path("out.png")).unwrap().region().extents(), [21, 13, 3], "{name}");
    }
}

#[cfg(not(feature = "pictures"))]
#[test]
fn pictures_that_are_left_out_are_named() {
    let place = Place::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../interp/tests/pictures/rgb.jpg");
    let ran = place.run(&format!("run unsharp --input {} -o out.png", file.display()));
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("it is JPEG, which this program was built without (the feature `pictures`)"),
        "{}",
        ran.err
    );
}

#[test]
fn an_array_is_what_it_was() {
    let place = Place::new();
    let ran = place.run("run hist --size 19x23 --generate -o output=out.npy");
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
    let report = place.json("run conv_layer --input filter=filter.npy --input in.npy --generate --json");
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
        let report = place.json(&format!("run {arguments} --generate --json"));
        assert!(report["outputs"][0]["max"].is_number(), "{arguments}: {report}");
    }
}
