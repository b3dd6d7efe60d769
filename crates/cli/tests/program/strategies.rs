//! Comparisons of strategies, with a device that is made up.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::place::{Place, Ran};

const COMPARE: &str = "suite --strategies random,opevo,g-bfs --trials 30 --seeds 2 --seed 7 --templates 3 \
     --apps mm.tc --size M=64,N=48,K=32 --samples 4 --fake fake:spill=10,delay=2 --records compared.db -o out";

fn place() -> Place {
    let place = Place::new();
    let mm = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }";
    fs::write(place.path("mm.tc"), mm).unwrap();
    place
}

fn results(place: &Place) -> Json {
    serde_json::from_slice(&fs::read(place.path("out/strategies.json")).unwrap()).unwrap()
}

fn trials(place: &Place) -> u64 {
    let listed = place.json("records list --records compared.db --json");
    listed["problems"].as_array().unwrap().iter().map(|problem| problem["trials"].as_u64().unwrap()).sum()
}

fn compare(place: &Place) -> Ran {
    let ran = place.run(COMPARE);
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran
}

/// The numbers of an array.
fn numbers(array: &Json) -> Vec<f64> {
    array.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

#[test]
fn strategies_are_compared_and_nothing_is_measured_twice() {
    let place = place();
    let ran = compare(&place);
    let results = results(&place);
    assert_eq!((&results["schema"], &results["trials"]), (&"warploom.strategies/1".into(), &30.into()));
    let [subject] = &results["subjects"].as_array().unwrap()[..] else { panic!("{results}") };
    let strategies = subject["strategies"].as_array().unwrap();
    let names: Vec<&str> = strategies.iter().map(|it| it["strategy"].as_str().unwrap()).collect();
    assert_eq!(names, ["random", "opevo", "g-bfs"]);
    for strategy in strategies {
        let runs = strategy["runs"].as_array().unwrap();
        let seeds: Vec<u64> = runs.iter().map(|run| run["seed"].as_u64().unwrap()).collect();
        assert_eq!(seeds, [7, 8]);
        let mut after_25 = Vec::new();
        for run in runs {
            let (at, best) = (numbers(&run["improved_at"]), numbers(&run["best_us"]));
            assert_eq!((&run["trials"], at.len()), (&30.into(), best.len()), "{run}");
            assert!(at.is_sorted_by(|a, b| a < b) && best.is_sorted_by(|a, b| a > b), "{run}");
            after_25.extend(
                at.iter().zip(&best).filter(|(at, _)| **at <= 25.0).map(|(_, best)| *best).next_back(),
            );
        }
        let [at] = &strategy["at"].as_array().unwrap()[..] else { panic!("{strategy}") };
        assert_eq!((&at["trials"], &at["seeds"], after_25.len()), (&25.into(), &2.into(), 2));
        let (mean, half) = ((after_25[0] + after_25[1]) / 2.0, (after_25[0] - after_25[1]) / 2.0);
        assert_eq!(at["mean_us"].as_f64(), Some(mean));
        // For two numbers, it is their distance divided by the root of 2.
        assert!((at["deviation_us"].as_f64().unwrap() - half.abs() * 2f64.sqrt()).abs() < 1e-9, "{at}");
        let relative = results["relative"].as_array().unwrap().iter();
        let speed = relative.clone().find(|it| it["strategy"] == strategy["strategy"]).unwrap();
        let random = strategies[0]["at"][0]["mean_us"].as_f64().unwrap();
        assert!((speed["at"][0]["speed"].as_f64().unwrap() - random / mean).abs() < 1e-9, "{speed}");
    }
    assert!(ran.out.contains("mm at ") && ran.out.contains("Speed relative to `random`"), "{}", ran.out);
    let markdown = fs::read_to_string(place.path("out/strategies.md")).unwrap();
    assert!(markdown.starts_with("# Strategies\n") && markdown.contains("**"), "{markdown}");
    // Six runs share what they measure: the default schedule of each, at least, is one trial.
    let measured = trials(&place);
    assert!((30..180).contains(&measured), "{measured}");

    compare(&place);
    assert_eq!((trials(&place), self::results(&place)), (measured, results));
}

#[test]
fn a_comparison_is_a_page_of_curves() {
    let place = place();
    compare(&place);
    let page = place.run("report out/strategies.json");
    assert_eq!((page.code, page.err.as_str()), (0, ""));
    let html = fs::read_to_string(place.path("report.html")).unwrap();
    assert!(
        html.contains("<h2>Strategies on fake</h2>")
            && html.contains("3 strategies on 1 subject, 30 trials each")
    );
    let count = |class: &str| html.matches(&format!("<path class=\"{class}\"")).count();
    for series in 0..3 {
        let line = format!("line s{series}");
        assert_eq!((count(&line), count(&format!("band s{series}"))), (1, 1), "{line}");
    }
    let newer = fs::read_to_string(place.path("out/strategies.json"))
        .unwrap()
        .replace("strategies/1", "strategies/9");
    fs::write(place.path("newer.json"), newer).unwrap();
    let newer = place.run("report newer.json");
    assert!(
        newer.code == 2 && newer.err.contains("this program reads `warploom.strategies/1`"),
        "{}",
        newer.err
    );
}

#[cfg(unix)]
#[test]
fn an_interrupted_comparison_goes_on() {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    let (whole, stopped) = (place(), place());
    compare(&whole);
    let mut command = stopped.command();
    command.args(COMPARE.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(120);
    while !stopped.path("out/strategies.json").is_file() {
        assert!(Instant::now() < until, "no run has ended");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let runs = |results: &Json| -> usize {
        let strategies = results["subjects"][0]["strategies"].as_array().unwrap();
        strategies.iter().map(|strategy| strategy["runs"].as_array().unwrap().len()).sum()
    };
    let part = results(&stopped);
    assert!((1..6).contains(&runs(&part)), "{}", runs(&part));
    let kept = trials(&stopped);
    compare(&stopped);
    assert_eq!(results(&stopped), results(&whole));
    assert!(trials(&stopped) > kept && trials(&stopped) == trials(&whole));
}

#[test]
fn the_model_is_compared_too_and_fails_as_others_do() {
    let place = place();
    let ran = place.run(&COMPARE.replace("random,opevo,g-bfs", "model,model,random"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let results = results(&place);
    let strategies = &results["subjects"][0]["strategies"];
    assert_eq!((strategies.as_array().unwrap().len(), &strategies[0]["strategy"]), (2, &"model".into()));
    assert_eq!(strategies[0]["runs"].as_array().unwrap().len(), 2, "a name that is given twice counts once");
    let wrong = place
        .run(&COMPARE.replace("fake:spill=10,delay=2", "fake:wrong=100").replace("compared.db", "wrong.db"));
    assert_eq!(wrong.code, 6, "{}", wrong.err);
    assert!(wrong.err.contains("1 of 1 apps have no valid schedule"), "{}", wrong.err);
}

#[test]
fn mistakes_are_explained() {
    let place = place();
    for (arguments, part) in [
        ("--strategies opevoo", "opevoo"),
        ("--strategies opevo:p=3", "opevo:p=3"),
        ("--strategies random --mode top5", "cannot be used with"),
        ("--strategies random --compare a.json", "--compare has no effect here"),
        ("--strategies random --time-limit 3m", "--time-limit has no effect here"),
        ("--trials 30", "add --strategies"),
        ("--seeds 3", "add --strategies"),
        ("--strategies random --template none.schedule", "none.schedule"),
        ("--strategies random --apps blur,blur", "two subjects `blur at "),
    ] {
        let ran = place.run(&format!("suite --fake fake --sizes small {arguments}"));
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments}: {}", ran.err);
        assert!(ran.err.contains(part), "{arguments}: {}", ran.err);
    }
}

/// The folder of the source.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A section of the page with the results on landscapes.
fn page(heading: &str) -> String {
    let page = fs::read_to_string(root().join("docs/results/strategies-landscapes.md")).unwrap();
    page.split("\n## ").find(|section| section.starts_with(heading)).unwrap().to_owned()
}

/// The first cells of a strategy's row. Bold depends on the other strategies.
fn cells(table: &str, strategy: &str) -> Vec<String> {
    let row = table.lines().find(|line| line.starts_with(&format!("| {strategy} |"))).unwrap();
    row.split('|').map(|cell| cell.replace('*', "").trim().to_owned()).skip(1).take(4).collect()
}

#[test]
fn all_recorded_landscapes_are_those_of_their_page() {
    let place = Place::new();
    for (name, heading) in [("mm1", "MM1, 200 trials"), ("gemm1024", "GEMM of 1024, 200 trials")] {
        let landscape = root().join(format!("training/landscapes/{name}.landscape"));
        let on = format!("suite --landscapes {} --seeds 10 --trials 200", landscape.display());
        let ran = place.run(&format!("{on} --strategies random,genetic --markdown"));
        assert_eq!(ran.code, 0, "{}", ran.err);
        for strategy in ["random", "genetic"] {
            assert_eq!(cells(&ran.out, strategy), cells(&page(heading), strategy), "{name}");
        }
    }
}

#[test]
fn a_recorded_landscape_gives_the_numbers_of_its_page() {
    let place = Place::new();
    let landscape = root().join("training/landscapes/bmm1.landscape");
    let on = format!("suite --landscapes {} --seeds 10 --trials 100", landscape.display());
    let ran = place.run(&format!("{on} --strategies random,opevo,g-bfs --markdown -o out"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(results(&place)["subjects"][0]["subject"], "bmm1");
    for strategy in ["random", "opevo", "g-bfs"] {
        assert_eq!(cells(&ran.out, strategy), cells(&page("BMM1, 1,000 trials"), strategy));
    }
    let on_recorded = results(&place)["date"].clone();
    assert_eq!(on_recorded, "2026-11-17", "the day of the recording");
    let methods = place.run(&format!("{on} --strategies anneal-q,anneal-q:method=p:starts=2 --markdown"));
    assert_eq!(methods.code, 0, "{}", methods.err);
    let other = cells(&methods.out, "anneal-q:method=p:starts=2");
    assert_ne!(cells(&methods.out, "anneal-q")[1..], other[1..]);
    let model = place.run(&format!("{on} --strategies model"));
    assert_eq!(model.code, 2, "{}", model.err);
    assert!(model.err.contains("is not bound to a template"), "{}", model.err);
    let twice = format!("suite --strategies random --landscapes {0},{0}", landscape.display());
    let twice = place.run(&twice);
    assert!(
        twice.code == 2 && twice.err.contains("has the name of an earlier"),
        "{} {}",
        twice.code,
        twice.err
    );
    let gone = place.run("suite --strategies random --landscapes gone.landscape");
    assert!(gone.code == 2 && gone.err.contains("gone.landscape"), "{} {}", gone.code, gone.err);
}
