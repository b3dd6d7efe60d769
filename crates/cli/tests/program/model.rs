//! `warploom train`, `warploom evaluate` and `--model`.

use std::fs;

use crate::documented::Documented;
use crate::place::Place;

/// A shard of the repository: 31 schedules of harris and blur.
const SHARD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../training/data/h200-2026-11-15-c.samples");

fn with_samples() -> Place {
    let place = Place::new();
    fs::create_dir(place.path("data")).unwrap();
    fs::copy(SHARD, place.path("data/c.samples")).unwrap();
    place
}

#[test]
fn weights_are_trained_scored_and_used() {
    let place = with_samples();
    let trained = place.json("train --data data --out small.bin --epochs 2 --json");
    assert_eq!(trained["schema"], "warploom.train/1");
    let page = Documented::read();
    page.check(&trained);
    assert_eq!((&trained["device"], &trained["weights"][0]["epoch"]), (&"H200".into(), &2.into()));

    let scores = place.json("evaluate --data data --model small.bin --svg plots --json");
    assert_eq!(scores["schema"], "warploom.evaluate/1");
    page.check(&scores);
    let harris = &scores["apps"][0];
    assert_eq!(harris["name"], "harris");
    assert!(harris["learned"]["top1"].as_f64().unwrap() >= 1.0);
    assert!(fs::read_to_string(place.path("plots/model-harris.svg")).unwrap().contains("<circle"));
    let text = place.run("evaluate --data data");
    assert!(text.out.contains("all apps"), "{}", text.out);

    let explained = place.run("explain harris --schedule default --model small.bin");
    assert!(explained.said().contains("predicted by the small model"), "{}", explained.out);
    let elsewhere = place.run("explain harris --schedule default --model small.bin --device v100");
    assert_eq!(elsewhere.code, 0);
    assert!(elsewhere.err.starts_with("note: the weights are for H200"), "{}", elsewhere.err);
}

#[test]
fn an_app_can_be_held_out() {
    let place = with_samples();
    let trained = place.json("train --data data --out one.bin --epochs 1 --hold-out harris --json");
    assert_eq!(trained["weights"][0]["held_out"], "harris");
    assert_eq!(trained["weights"][0]["groups"], 1);
}

#[test]
fn what_cannot_be_used_is_said_in_a_sentence() {
    let place = with_samples();
    fs::write(place.path("picture.bin"), "P5 640 480 255 a picture").unwrap();
    fs::create_dir(place.path("empty")).unwrap();
    fs::create_dir(place.path("odd")).unwrap();
    fs::write(place.path("odd/x.samples"), "a picture").unwrap();
    for (arguments, expected) in [
        (
            "explain harris --device h200 --schedule default --model picture.bin",
            "picture.bin: this is not a weights file",
        ),
        (
            "explain harris --device h200 --schedule default --model none.bin",
            "there is no file none.bin; check its path",
        ),
        ("evaluate --data data --model picture.bin", "picture.bin: this is not a weights file"),
        ("evaluate --data data --hold-out empty", "there is no file empty/unsharp.bin; check its path"),
        ("train --data nowhere --out x.bin", "cannot read nowhere: "),
        ("train --data empty --out x.bin", "there are no .samples files in empty; "),
        ("train --data odd --out x.bin", "odd/x.samples is not a samples file"),
        ("train --data data --out x.bin --hold-out hariss", "there is no app `hariss`"),
        ("train --data data --out no/folder/x.bin --epochs 1", "cannot write no/folder/x.bin: "),
        ("train --data data --out x.bin --init picture.bin", "picture.bin: this is not a weights file"),
    ] {
        let ran = place.run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments}: {}", ran.err);
        assert!(ran.err.starts_with(&format!("error: {expected}")), "{arguments}: {}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{arguments}: {}", ran.err);
    }
}
