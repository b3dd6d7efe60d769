//! `warploom run --trace`.

use std::fs;

use crate::place::Place;

/// Where the schedules of the apps are.
const SCHEDULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../apps/schedules");

/// The most bytes of a page.
const MOST: usize = 2_000_000;

fn traced(place: &Place, arguments: &str) -> String {
    let report = place.json(&format!("run {arguments} --generate --device h200 --trace out.html --json"));
    let html = fs::read_to_string(place.path("out.html")).unwrap();
    assert_eq!((&report["schema"], &report["on"]), (&"warploom.run/1".into(), &"sim".into()));
    assert_eq!(report["trace"]["file"], "out.html");
    assert_eq!(report["trace"]["bytes"], html.len());
    assert!(html.contains(&format!("data-count=\"{}\"", report["trace"]["steps"])));
    assert!(html.len() < MOST, "{}", html.len());
    html
}

#[test]
fn a_trace_shows_every_func_of_the_schedule() {
    let place = Place::new();
    let html = traced(&place, &format!("unsharp --on sim --schedule {SCHEDULES} --size 64x48"));
    for (name, kind) in [
        ("input", "input, 64 x 48 x 3"),
        ("gray", "Func, 70 x 54"),
        ("blur_y", "Func, 70 x 48"),
        ("blur_x", "Func, 64 x 48"),
        ("output", "output, 64 x 48 x 3"),
    ] {
        assert!(html.contains(&format!("<b>{name}</b> <span>{kind}</span>")), "{name}");
    }
    assert!(
        html.contains("Shared memory, 6.2 KB per block") && html.contains("Registers, 4 values per thread")
    );
    assert!(
        html.contains("<li data-grid=\"3 1 1\"><b>output</b> <span>3 blocks of 256 threads each</span></li>")
    );
    assert!(html.contains("One step is one statement that stores"));
    assert!(html.contains("inlined into what reads them"));
}

#[test]
fn a_trace_needs_neither_a_backend_nor_a_schedule() {
    let place = Place::new();
    let html = traced(&place, "blur --size 32x24");
    assert!(html.contains("<dt>schedule</dt><dd>found by the search, seed 0</dd>"));
    let ran = place
        .run("run blur --size 32x24 --generate --schedule default --device h200 --trace out.html -o out.npy");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.said().contains(" on the simulator"), "{}", ran.out);
    assert!(ran.out.contains("\nout.html: ") && ran.out.contains(" steps, "), "{}", ran.out);
    assert!(place.path("out.npy").is_file());
}

#[test]
fn a_trace_of_many_steps_says_what_one_is() {
    let place = Place::new();
    let html = traced(&place, &format!("local_laplacian --schedule {SCHEDULES} --size 64x48"));
    assert!(html.contains("One step is one statement that stores"));
    let html = traced(&place, &format!("learned_demosaic --schedule {SCHEDULES} --size 64x48"));
    assert!(html.contains("One step is all that a block does for one stage before it turns to another"));
    let html = traced(&place, &format!("hist --schedule {SCHEDULES} --size 24x16"));
    assert!(html.contains("<li>hist_rows.1</li>"), "stages of a Func have numbers");
}

#[test]
fn what_a_page_has_no_room_for_is_refused() {
    let place = Place::new();
    let ran =
        place.run(&format!("run harris --generate --schedule {SCHEDULES} --device h200 --trace out.html"));
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert_eq!(
        ran.err,
        "error: the trace of harris at W=1536, H=2560 is too large for a page, which has room for about 1 MB of steps; \
         give a smaller --size\n"
    );
    let ran =
        place.run("run harris --generate --schedule default --size 400x400 --device h200 --trace out.html");
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.ends_with("give a smaller --size\n"), "{}", ran.err);
    assert!(!place.path("out.html").exists());
}

#[test]
fn what_does_not_go_together_is_said_at_once() {
    let place = Place::new();
    for on in ["reference", "cuda"] {
        let ran = place.run(&format!("run harris --size 64x48 --on {on} --trace out.html"));
        let expected = format!(
            "error: --trace shows a run in the simulator, not on `{on}`; leave out --on, or give --on sim\n"
        );
        assert_eq!((ran.code, ran.err), (2, expected));
    }
    let ran = place.run("run harris --size 64x48 --trace nowhere/out.html");
    let expected = "error: cannot write nowhere/out.html: there is no folder nowhere; create it first\n";
    assert_eq!((ran.code, ran.err.as_str()), (2, expected));
}
