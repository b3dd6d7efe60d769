//! Commands that search for a schedule.

use std::fs;

use serde_json::Value as Json;

use crate::place::Place;

/// A search that takes no time.
const QUICK: &str = "--samples 3 --passes 2 --beam 4";

#[test]
fn a_schedule_is_found_and_printed() {
    let place = Place::new();
    for app in ["copy", "blur"] {
        let ran = place.run(&format!("compile {app} --size 256x128 {QUICK} --device h200"));
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.out.starts_with(&format!("{app} at W=256, H=128 for H200 (sm_90): ")), "{}", ran.out);
        assert!(
            ran.said().contains(" us predicted by the h200 model; range unknown; 1 kernel, 1 launch per run"),
            "{}",
            ran.out
        );
        assert!(ran.err.starts_with("searched 3 samples in "), "{}", ran.err);
        // What is printed last is a schedule.
        let schedule = ran.out.rsplit("\n\n").next().unwrap();
        fs::write(place.path("found.schedule"), schedule).unwrap();
        let sim = place.run(&format!("sim {app} --size 256x128 --schedule found.schedule"));
        assert!(sim.code == 0 && sim.said().contains("bit for bit"), "{}{}", sim.out, sim.err);
    }
    assert_eq!(fs::read_dir(place.path("")).unwrap().count(), 1, "nothing was asked to be written");
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let place = Place::new();
    let ran = |threads: usize| {
        let emit = "--emit schedule,nest,cuda,features";
        let ran = place.run(&format!("compile harris --size 256x128 {QUICK} {emit} --threads {threads}"));
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.out
    };
    assert!(ran(1) == ran(2));
}

#[test]
fn a_search_is_reported_as_json() {
    let place = Place::new();
    let report =
        place.json(&format!("compile blur --size 256x128 {QUICK} --seed 5 --emit features,nest --json"));
    assert_eq!(report["schema"], "warploom.compile/2");
    let search = &report["search"];
    assert_eq!((&search["seed"], &search["samples"]), (&5.into(), &3.into()));
    assert_eq!((&search["stop"], &search["reproducible"]), (&"finished".into(), &true.into()));
    assert!(search["statistics"]["states"].as_u64().unwrap() > 0);
    let costs: Vec<f64> =
        search["candidates_us"].as_array().unwrap().iter().map(|cost| cost.as_f64().unwrap()).collect();
    assert!(costs.is_sorted() && (costs[0] - report["predicted_us"].as_f64().unwrap()).abs() < 1e-6);
    assert!(report["schedule"].as_str().unwrap().starts_with("blur "));

    let features = &report["emitted"]["features"];
    let names = features["names"].as_array().unwrap();
    let row = &features["kernels"][0]["rows"][0];
    assert_eq!(row["values"].as_array().unwrap().len(), names.len());
    assert_eq!(features["schema_hash"].as_str().unwrap().len(), 16);
    assert!(report["emitted"]["nest"]["kernels"][0]["threads"].as_u64().unwrap() > 0);
}

#[test]
fn what_is_asked_for_is_written() {
    let place = Place::new();
    let ran = place.run(&format!("compile blur --size 256x128 {QUICK} --emit nest,schedule,features -o out"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let mut names: Vec<String> = fs::read_dir(place.path("out"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["blur.features.json", "blur.nest.txt", "blur.schedule"]);

    // The whole bundle of the same search, and no unfinished file beside it.
    let all = place.run(&format!("compile blur --size 256x128 {QUICK} -o all"));
    assert_eq!(all.code, 0, "{}", all.err);
    let read = |path: &str| fs::read_to_string(place.path(path)).unwrap();
    assert_eq!(read("out/blur.schedule"), read("all/blur.schedule"));
    let left = fs::read_dir(place.path("all")).unwrap();
    let names = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(names.into_iter().all(|name| !name.ends_with(".tmp")));
}

#[test]
fn a_time_limit_is_kept_and_said() {
    let place = Place::new();
    let ran = place.run("compile harris --size 256x128 --samples 100000 --threads 1 --time-limit 300ms");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("note: the time limit ended the search after "), "{}", ran.err);
    assert!(ran.out.contains("kernel output"), "{}", ran.out);
}

#[test]
fn every_command_can_search() {
    let place = Place::new();
    let sim = place.run("sim copy --size 64x48 --schedule search");
    assert!(sim.code == 0 && sim.said().contains("bit for bit"), "{}", sim.err);
    let run = place.run("run copy --size 64x48 --generate --on sim --schedule search:3");
    assert_eq!(run.code, 0, "{}", run.err);
    let explained = place.run("explain copy --size 64x48 --schedule search:3");
    let compiled = place.run("compile copy --size 64x48 --seed 3 --emit nest");
    let nest = |text: &str| text[text.find("\nkernel output ").unwrap()..].to_owned();
    let (explained, compiled) = (nest(&explained.out), nest(&compiled.out));
    assert!(compiled.ends_with(&explained), "{explained}\n{compiled}");
}

#[test]
fn a_device_can_be_chosen() {
    let place = Place::new();
    let ran = place.run(&format!("compile copy --size 64x48 {QUICK} --device v100"));
    assert!(ran.code == 0 && ran.out.contains(" for V100"), "{}{}", ran.out, ran.err);
    let described = place.run("devices --describe v100").out;
    fs::write(place.path("mine.json"), described.replace("V100", "my own")).unwrap();
    let own = place.run(&format!("compile copy --size 64x48 {QUICK} --device mine.json"));
    assert!(own.code == 0 && own.out.contains(" for my own (sm_70)"), "{}{}", own.out, own.err);
    fs::write(place.path("no.json"), "{}").unwrap();
    let none = place.run(&format!("compile copy --size 64x48 {QUICK} --device no.json"));
    assert_eq!(none.code, 2);
    assert!(none.err.starts_with("error: no.json: this is not the description of a device"), "{}", none.err);
}

#[test]
fn decisions_can_be_fixed() {
    let place = Place::new();
    let write = |text: &str| fs::write(place.path("part.schedule"), text).unwrap();
    write("blur\n  kernel blur_x block x 32, y 8 threads x 32, y 8\n");
    let ran = place.run(&format!("compile blur --size 256x128 {QUICK} --fix part.schedule"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let kept = ran.out.lines().find(|line| line.trim().starts_with("kernel blur_x")).unwrap();
    assert!(kept.contains("block x 32, y 8") && kept.contains("threads x 32, y 8"), "{}", ran.out);
    assert!(ran.out.contains("2 kernels"), "{}", ran.out);

    write("blur inline output\n");
    let ran = place.run(&format!("compile blur --size 256x128 {QUICK} --fix part.schedule"));
    assert_eq!((ran.code, ran.out.as_str()), (3, ""));
    assert!(ran.err.contains("part.schedule: ") && ran.err.contains("`output`"), "{}", ran.err);
}

/// The time that `explain` predicts for a schedule on a device.
fn explained(place: &Place, schedule: &str, device: &str) -> Option<f64> {
    fs::write(place.path("asked.schedule"), schedule).unwrap();
    let report =
        place.json(&format!("-q explain cuda_mat_mul --schedule asked.schedule --device {device} --json"));
    report["predicted_us"].as_f64()
}

#[test]
fn a_schedule_has_one_price() {
    let place = Place::new();
    let search = "--samples 2 --beam 4 --passes 2";
    let compiled = place.json(&format!("-q compile cuda_mat_mul {search} --device h200 --json"));
    let schedule = compiled["schedule"].as_str().unwrap();
    assert!(schedule.contains(" blocks "), "{schedule}");
    assert_eq!((&compiled["model"], &compiled["analytic_kernels"]), (&"h200".into(), &0.into()));
    let found = compiled["search"]["candidates_us"].as_array().unwrap();
    assert!(found.contains(&compiled["predicted_us"]), "{}: {found:?}", compiled["predicted_us"]);
    assert_eq!(explained(&place, schedule, "h200"), compiled["predicted_us"].as_f64());
    // The device that is made up is an H200 with another clock.
    let mut fake = place.json("devices --describe h200");
    fake["clock_ghz"] = 1.0.into();
    fs::write(place.path("fake.json"), fake.to_string()).unwrap();
    let ran = place.run(&format!("-q tune cuda_mat_mul {search} --top 2 --fake fake --json"));
    let tuned: Json = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
    let trials = tuned["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 2, "{}", ran.err);
    for trial in trials {
        let schedule = trial["schedule"].as_str().unwrap();
        assert_eq!(explained(&place, schedule, "fake.json"), trial["predicted_us"].as_f64());
    }
    assert_eq!(tuned["basis"]["analytic_kernels"], 0);
}
