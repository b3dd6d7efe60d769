//! The set of operators.

use std::fs;

use serde_json::{Value as Json, json};

use crate::place::{Place, Ran};

const SUITE: &str = "suite --set operators --mode default --fake fake";
const TWO: &str = "GMM*32x32x32,moments*128x2304";
const RESULTS: &str = "out/operators-default.json";

/// A folder with times of libraries: one that is far slower than anything, and one of which the compiled one is better.
fn place() -> Place {
    let place = Place::new();
    let anchors = json!({ "device": "it", "method": "made up", "rows": [
        { "name": "GMM", "shape": "32x32x32", "gflop": 0.0, "fp32_us": 1e9, "tf32_us": 2.5 },
        { "name": "moments", "shape": "128x2304", "gflop": 0.001, "fp32_us": 300.0, "tf32_us": 1.0, "compiled_us": 100.0 },
        { "name": "OpEvo C2", "shape": "512x64x27x27 * 192x64x5x5", "gflop": 1.0, "fp32_us": 1e-9 },
    ] });
    fs::write(place.path("anchors.json"), anchors.to_string()).unwrap();
    place
}

fn results(place: &Place) -> Json {
    serde_json::from_slice(&fs::read(place.path(RESULTS)).unwrap()).unwrap()
}

fn write(place: &Place, results: &Json) {
    fs::write(place.path(RESULTS), results.to_string()).unwrap();
}

fn run(place: &Place, more: &str) -> Ran {
    place.run(&format!("{SUITE} --rows {TWO} -o out {more}"))
}

fn near(value: &Json, expected: f64) -> bool {
    value.as_f64().is_some_and(|value| (value / expected - 1.0).abs() < 1e-9)
}

#[test]
fn operators_are_compared_with_libraries() {
    let place = place();
    let ran = run(&place, "--compare anchors.json");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let results = results(&place);
    let [gmm, moments] = [&results["rows"][0], &results["rows"][1]];
    assert_eq!([&gmm["name"], &moments["name"]], ["GMM", "moments"], "in the order of the set");
    assert!([gmm, moments].iter().all(|row| row["status"] == "ok" && row["checked_at_full_size"] == true));
    assert_eq!(gmm["operations"], 65536.0);
    // The better of two library times; and in means a ratio counts as 4 at most.
    let ratio = 100.0 / moments["min_us"].as_f64().unwrap();
    assert!(near(&moments["ratio"], ratio) && near(&gmm["ratio"], 1e9 / gmm["min_us"].as_f64().unwrap()));
    let mean = |family: usize| &results["families"][family]["mean_ratio"];
    let clipped = ratio.clamp(0.25, 4.0);
    assert!(near(mean(0), 4.0) && near(mean(1), clipped), "{}", results["families"]);
    assert!(near(&results["mean_ratio"], (4.0 * clipped).sqrt()));
    assert_eq!(
        (&results["schema"], &results["libraries_of"]),
        (&json!("warploom.operators/1"), &json!("it"))
    );
    assert_eq!(results["networks"][0]["min_us"], Json::Null, "its layers were not run");
    assert_eq!(results["networks"][0]["layers"], 24);

    let said = ran.said();
    let row = said.split("moments 128x2304").nth(1).unwrap();
    assert!(row.contains(" 100.0 ") && row.contains(&format!("{ratio:.2}x")), "{row}");
    assert!(ran.out.contains("Geometric mean over families"), "{}", ran.out);
    let markdown = fs::read_to_string(place.path("out/operators-default.md")).unwrap();
    assert!(
        markdown.starts_with("# Operators, default") && markdown.contains("| GMM 32x32x32 |"),
        "{markdown}"
    );
    assert!(place.path("out/GMM-32x32x32.schedule").is_file());

    // Its schedules can be given back.
    let manual =
        format!("suite --set operators --rows {TWO} --fake fake --mode manual --schedules out --markdown");
    let manual = place.run(&manual);
    assert!(
        manual.code == 0 && manual.out.starts_with("# Operators, manual"),
        "{} {}",
        manual.out,
        manual.err
    );
    assert!(!manual.out.contains("Geometric mean"), "nothing is compared: {}", manual.out);
}

#[test]
fn a_row_apart_is_in_no_mean_and_unknown_times_are_dashes() {
    let place = place();
    assert_eq!(run(&place, "").code, 0);
    let mut earlier = results(&place);
    let mut apart = earlier["rows"][0].clone();
    apart["family"] = json!("OpEvo conv");
    apart["name"] = json!("OpEvo C2");
    apart["shape"] = json!("512x64x27x27 * 192x64x5x5");
    apart["message"] = json!("something else");
    let mut without = apart.clone();
    (without["family"], without["name"], without["shape"]) =
        (json!("BCM"), json!("BCM"), json!("1024x256 f8"));
    earlier["rows"].as_array_mut().unwrap().extend([apart, without]);
    write(&place, &earlier);
    let ran = run(&place, "--compare anchors.json");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let family = |name: &str| {
        let results = results(&place);
        results["families"]
            .as_array()
            .unwrap()
            .iter()
            .find(|family| family["family"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(family("OpEvo conv")["mean_ratio"], Json::Null);
    assert_eq!(family("BCM")["flextensor"], "2.11x of hand-tuned code");
    assert!(
        ran.said().contains("is in no mean: its library time is of a transform algorithm"),
        "{}",
        ran.out
    );
    let said = ran.said();
    let row = said.split("BCM 1024x256 f8").nth(1).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[4..7], ["-", "-", "-"], "library, ratio, TF32: {row}");

    let page = place.run(&format!("report {RESULTS} --device h200"));
    assert_eq!((page.code, page.err.as_str()), (0, ""));
    let html = fs::read_to_string(place.path("report.html")).unwrap();
    for part in
        ["<h2>Operators on fake, default</h2>", "OpEvo C2 512x64x27x27 * 192x64x5x5: 0.00x, in no mean"]
    {
        assert!(html.contains(part), "{part}");
    }
    assert_eq!(html.matches("<circle class=\"point").count(), 3);
    assert!(html.contains("us predicted by the "), "loop nests");
}

#[test]
fn a_run_continues_where_the_last_one_ended() {
    let place = place();
    let one = place.run(&format!("{SUITE} --rows gmm*32x32x32 -o out"));
    assert_eq!(one.code, 0, "{}", one.err);
    let both = run(&place, "");
    assert!(both.err.contains("has 1 of 2 rows already: they are not run again"), "{}", both.err);
    assert!(both.err.contains("moments 128x2304: ") && !both.err.contains("GMM 32x32x32: "), "{}", both.err);
    assert_eq!(results(&place)["rows"].as_array().unwrap().len(), 2);

    // Rows that are not chosen stay, and what failed is run again.
    let mut failed = results(&place);
    failed["rows"][0]["status"] = json!("wrong");
    write(&place, &failed);
    let other = place.run(&format!("{SUITE} --rows moments*128x2304 -o out"));
    assert_eq!(other.code, 6, "{}", other.err);
    assert!(other.out.contains("GMM 32x32x32") && other.err.contains("1 of 2 operators"), "{}", other.err);
    let again = run(&place, "");
    assert!(again.code == 0 && again.err.contains("GMM 32x32x32: "), "{}", again.err);

    let seed = run(&place, "--seed 7");
    assert!(seed.err.contains("another device, version or seed: every row is run again"), "{}", seed.err);
    assert!(seed.err.contains("GMM 32x32x32: ") && results(&place)["seed"] == 7, "{}", seed.err);

    for damaged in
        ["", "{", "[]", r#"{ "schema": "warploom.suite/2" }"#, r#"{ "schema": "warploom.operators/1" }"#]
    {
        fs::write(place.path(RESULTS), damaged).unwrap();
        let ran = run(&place, "");
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{damaged}: {}", ran.err);
        assert!(ran.err.contains("remove it, or name another folder with -o"), "{}", ran.err);
        assert_eq!(fs::read_to_string(place.path(RESULTS)).unwrap(), damaged, "nothing is overwritten");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_row_is_left_for_the_next_run() {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    let place = place();
    let suite = "suite --set operators --mode top5 --rows GMM*32x32x32 --records r.db -o out --fake";
    let mut slow = place.command();
    slow.args(suite.split_whitespace()).arg("fake:delay=300").stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = slow.spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(120);
    let measured = || place.run("records list --records r.db").out.contains("gmm");
    while !measured() {
        assert!(Instant::now() < until, "nothing was measured");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let stopped = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(stopped.code, 0, "{}", stopped.err);
    assert!(!stopped.out.contains("GMM 32x32x32"), "{}", stopped.out);

    let whole = place.run(&format!("{suite} fake"));
    assert!(whole.code == 0 && whole.err.contains("GMM 32x32x32: "), "{}", whole.err);
}

#[test]
fn a_row_without_a_valid_schedule_fails_the_run() {
    let place = place();
    let wrong =
        format!("{} --rows GMM*32x32x32 --json", SUITE.replace("--fake fake", "--fake fake:wrong=100"));
    let ran = place.run(&format!("-q {wrong}"));
    assert_eq!(ran.code, 6, "{}", ran.err);
    let report: Json = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&report["rows"][0]["status"], &report["rows"][0]["min_us"]), (&json!("wrong"), &Json::Null));
}

#[test]
fn mistakes_are_explained() {
    let place = place();
    let nothing = place.run(&format!("{SUITE} --rows GMM,nothing*"));
    assert_eq!(nothing.code, 2);
    assert!(nothing.err.contains("`nothing*`") && nothing.err.contains("GMM, MM, tmm"), "{}", nothing.err);
    for (command, part) in [
        (format!("{SUITE} --apps harris"), "--apps has no effect here"),
        (format!("{SUITE} --sizes small"), "--sizes has no effect here"),
        ("suite --rows GMM --fake fake".to_owned(), "add --of operators"),
        (format!("{SUITE} --rows GMM*32x32x32 --compare apps.json"), "does not contain anchors"),
    ] {
        fs::write(place.path("apps.json"), r#"{ "device": "it", "apps": {} }"#).unwrap();
        let ran = place.run(&command);
        assert_eq!(ran.code, 2, "{command}: {}", ran.err);
        assert!(ran.err.contains(part), "{command}: {}", ran.err);
    }
}

#[test]
fn sums_of_halves_are_noted_for_apps_too() {
    let place = place();
    let text = "def product(float16(M,K) A, float16(K,N) B) -> (O) { O(i,j) +=! A(i,k) * B(k,j) }";
    fs::write(place.path("half.tc"), text).unwrap();
    let ran = place.run("suite --apps half.tc --size M=8,N=8,K=8 --mode default --fake fake");
    assert!(ran.code == 0 && ran.out.contains("product: no tensor cores"), "{} {}", ran.out, ran.err);
}
