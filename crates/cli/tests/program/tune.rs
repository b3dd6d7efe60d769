//! Tuning as its users do it, with a device that is made up.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use crate::place::{Place, Ran};

const QUICK: &str = "--size 200x120 --samples 8 --beam 4 --passes 2";

/// The objects of lines of JSON.
fn lines(ran: &Ran) -> Vec<Json> {
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn trials(place: &Place) -> u64 {
    let listed = place.json("records list --json");
    listed["problems"].as_array().unwrap().iter().map(|problem| problem["trials"].as_u64().unwrap()).sum()
}

#[test]
fn the_best_of_three_is_exported() {
    let place = Place::new();
    let ran = place.run(&format!("tune blur {QUICK} --top 3 --fake fake -o out"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.said().contains("compared at the full size; 3 new trials, 0 invalid"), "{}", ran.out);
    assert_eq!(ran.out.lines().filter(|line| line.ends_with(" best")).count(), 1, "{}", ran.out);
    for name in ["blur.cu", "blur.schedule", "blur.h", "blur.c", "blur.json"] {
        assert!(place.path("out").join(name).is_file(), "{name}");
    }
    let best = place.run("records best blur");
    assert_eq!(fs::read_to_string(place.path("out/blur.schedule")).unwrap(), best.out);

    let again = place.run(&format!("tune blur {QUICK} --top 3 --fake fake"));
    assert!(again.said().contains("no new trials"), "{}", again.out);
    assert_eq!(trials(&place), 3);
}

#[test]
fn autotuning_goes_on_where_it_was_and_says_what_it_does() {
    let place = Place::new();
    let command = format!("tune blur {QUICK} --fake fake:crash=10,wrong=10,spill=10 --json --iterations");
    let ran = place.run(&format!("{command} 2"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let all = lines(&ran);
    assert!(all.iter().all(|line| line["schema"] == "warploom.tune/2"));
    let of = |event: &str| all.iter().filter(|line| line["event"] == event).count();
    assert_eq!((of("begin"), of("searching"), of("finished")), (1, 2, 1));
    let last = all.last().unwrap();
    assert_eq!((&last["ended"], last["iterations"].as_u64()), (&Json::from("finished"), Some(2)));
    assert_eq!(last["progress"]["done"].as_u64(), Some(of("measured") as u64));
    assert_eq!(trials(&place), of("measured") as u64);
    assert_eq!(last["best"]["status"], "ok");

    let more = lines(&place.run(&format!("{command} 3")));
    let note = more.iter().find(|line| line["event"] == "note").unwrap();
    assert_eq!(note["note"], "continuing after 2 of 3 recorded iterations");
    assert_eq!(more.iter().filter(|line| line["event"] == "searching").count(), 1);
}

#[test]
fn strategies_choose_what_is_measured_and_go_on() {
    let place = Place::new();
    let command =
        format!("tune blur {QUICK} --strategy opevo --set-strategy q=0.3,parents=4 --trials 10 --seed 7");
    let ran = place.run(&format!("{command} --fake fake:spill=10 -o out --json"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let all = lines(&ran);
    let of = |event: &str| all.iter().filter(|line| line["event"] == event).collect::<Vec<_>>();
    assert_eq!(of("exploring").len(), 1);
    let run = of("exploring")[0]["run"].as_str().unwrap();
    assert!(run.starts_with("opevo parents=4 children=2 q=0.3 hop=0.1 seed=7 trials=10 templates="), "{run}");
    let last = all.last().unwrap();
    let exploration = &last["exploration"];
    assert_eq!((&exploration["trials"], exploration["run"].as_str()), (&Json::from(10), Some(run)));
    assert_eq!(of("stepped").last().unwrap()["tally"]["trials"], 10);
    // The default schedule is one more.
    assert_eq!((of("measured").len(), trials(&place)), (11, 11));
    assert!(exploration["best_us"].as_f64() >= last["best"]["min_us"].as_f64());
    assert!(place.path("out/blur.schedule").is_file());

    let again = place.run(&format!("{command} --fake fake:spill=10"));
    assert!(again.said().contains("no new trials"), "{}", again.out);
    assert!(
        again.out.contains("\nopevo: best ") && again.said().contains("; 10 trials in "),
        "{}",
        again.out
    );
    assert!(again.err.contains("note: continuing after "), "{}", again.err);
    let model = place.run(&format!("tune blur {QUICK} --strategy model --trials 12 --fake fake --json"));
    let exploration = lines(&model).pop().unwrap()["exploration"].clone();
    assert!(
        (7..=12).contains(&exploration["trials"].as_u64().unwrap()),
        "more than one iteration: {exploration}"
    );
    assert!(exploration["run"].as_str().unwrap().starts_with("model ") && exploration["templates"] == 0);
    assert_eq!(lines(&model).iter().filter(|line| line["event"] == "searching").count(), 2);
}

#[test]
fn strategies_that_there_are_not_are_usage_errors() {
    let place = Place::new();
    let answer = |arguments: &str| {
        let ran = place.run(&format!("tune blur {QUICK} --fake fake {arguments}"));
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments}: {}", ran.err);
        ran.err
    };
    let unknown = answer("--strategy opevoo");
    assert!(unknown.contains("opevoo") && unknown.contains("anneal-q, model-fixed, model"), "{unknown}");
    assert_eq!(
        answer("--strategy opevo --set-strategy p=0.3"),
        "error: --set-strategy: there is no setting `p`; there are parents, children, q, hop\n"
    );
    assert!(answer("--strategy opevo --set-strategy q=2").contains("`q` cannot be `2`"));
    assert!(
        answer("--strategy model --set-strategy q=0.1")
            .contains("there is no setting `q`; this strategy has none")
    );
    assert!(answer("--trials 10").contains("--strategy"));
    assert!(answer("--strategy random --iterations 3").contains("cannot be used with"));
    assert!(answer("--strategy random --template none.schedule").contains("none.schedule"));
    assert!(!place.path("tuning.db").exists(), "nothing was begun");
}

#[test]
fn failures_have_their_exit_codes() {
    let place = Place::new();
    let tune = format!("tune blur {QUICK} --top 2");
    let nothing = place.run(&format!("{tune} --fake fake:wrong=100"));
    assert_eq!(nothing.code, 5, "{}", nothing.err);
    assert!(nothing.err.contains("none is valid"), "{}", nothing.err);

    fs::write(place.path("text.db"), "this is no database".repeat(99)).unwrap();
    let wrong = place.run(&format!("{tune} --fake fake --records text.db"));
    assert_eq!(wrong.code, 2, "{}", wrong.err);
    assert_eq!(wrong.err, "error: text.db is not a database of records; give another one\n");

    // It is no farm file either, whose permissions would matter.
    fs::write(place.path("result.json"), "{ \"schema\": \"warploom.suite/2\", \"apps\": [] }").unwrap();
    let wrong = place.run("records list --records result.json");
    assert_eq!(wrong.code, 2, "{}", wrong.err);
    assert!(wrong.err.contains("result.json is not a database of records"), "{}", wrong.err);

    let late = place.run("tune local_laplacian --top 5 --time-limit 1ms --fake fake");
    assert_eq!(late.code, 5, "{}", late.err);
    let why = "the time limit ended the run before any schedule of `local_laplacian` was measured";
    assert!(late.err.contains(why), "{}", late.err);

    assert_eq!(place.run(&format!("{tune} --fake fake:fire=3")).code, 2);
    assert_eq!(place.run("tune blur --init none.bin --fake fake").code, 2);
    let twice = place.run(&format!("{tune} --fake fake --gpu 1,1"));
    assert_eq!((twice.code, twice.err.as_str()), (2, "error: --gpu lists GPU 1 twice; list each GPU once\n"));
    assert_eq!(place.run("worker").code, 2);
    assert_eq!(place.run("worker sing").code, 2);
    if warploom::runtime::Gpu::new(0).is_err() {
        let none = place.run(&tune);
        assert_eq!(none.code, 4, "{}", none.err);
        assert!(none.err.contains("driver"), "{}", none.err);
    }
}

/// The program in the background.
fn start(place: &Place, arguments: &str) -> Child {
    let mut command = place.command();
    command.args(arguments.split_whitespace());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until something was measured.
fn wait_for_trials(place: &Place, count: u64) {
    let until = Instant::now() + Duration::from_secs(120);
    while Instant::now() < until {
        if place.path("tuning.db").exists() && place.run("records list").code == 0 && trials(place) >= count {
            return;
        }
        std::thread::sleep(Duration::from_millis(30));
    }
    panic!("nothing was measured");
}

/// Sends a signal to the program.
#[cfg(unix)]
fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[cfg(unix)]
#[test]
fn the_interrupt_key_keeps_everything_and_pressed_twice_ends_at_once() {
    let place = Place::new();
    let command = format!("tune blur {QUICK} --fake fake:delay=40 --iterations 50 -o out");
    let child = start(&place, &command);
    wait_for_trials(&place, 1);
    send("-INT", &child);
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("finishing the current trial"), "{}", ran.err);
    assert!(ran.out.contains("stopped") && place.path("out/blur.schedule").is_file(), "{}", ran.out);
    let kept = trials(&place);

    let child = start(&place, &command.replace("delay=40", "hang=100"));
    // It is busy with a program that hangs.
    std::thread::sleep(Duration::from_millis(1500));
    send("-INT", &child);
    std::thread::sleep(Duration::from_millis(200));
    send("-INT", &child);
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 130, "{}", ran.err);
    assert!(trials(&place) >= kept);
}

/// Whether this process, and with it those that it starts, ignores the end of its terminal.
#[cfg(unix)]
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 == 1))
}

#[cfg(unix)]
#[test]
fn other_signals_end_a_run_as_the_key_does() {
    // Under `nohup` the tests' own children go on, as they should.
    let signals: &[&str] = if ignores_hangups() { &["-TERM"] } else { &["-TERM", "-HUP"] };
    for signal in signals {
        let place = Place::new();
        let child = start(&place, &format!("tune blur {QUICK} --fake fake:delay=40 --iterations 50 -o out"));
        wait_for_trials(&place, 1);
        send(signal, &child);
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!(ran.code, 0, "{signal}: {}", ran.err);
        assert!(ran.out.contains("stopped") && place.path("out/blur.schedule").is_file(), "{}", ran.out);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_that_ignores_the_end_of_its_terminal_goes_on() {
    let place = Place::new();
    let program = place.command().get_program().to_owned();
    let mut command = Command::new("nohup");
    command.arg(program).current_dir(place.path("")).env("WARPLOOM_CACHE_DIR", "");
    command.args(format!("tune blur {QUICK} --fake fake:delay=10 --iterations 1").split_whitespace());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    wait_for_trials(&place, 1);
    send("-HUP", &child);
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert!(ran.code == 0 && !ran.out.contains("stopped"), "{}{}", ran.out, ran.err);
}

#[test]
fn a_run_ends_when_nobody_reads_it_any_more() {
    let place = Place::new();
    let mut child =
        start(&place, &format!("tune blur {QUICK} --fake fake:delay=40 --iterations 50 --json -o out"));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("\"measured\"")));
    drop(lines);
    let started = Instant::now();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 141);
    // Without NVRTC a note says that the package has no machine code.
    let without_code = |line: &str| line.starts_with("note: NVRTC was not found");
    assert!(ran.err.lines().all(without_code), "{}", ran.err);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    assert!(place.path("out/blur.schedule").is_file(), "what was found is written");
    assert!(trials(&place) > 0);
}

#[test]
fn a_killed_run_goes_on() {
    let place = Place::new();
    let command = format!("tune blur {QUICK} --fake fake:delay=15,crash=10 --iterations 3");
    let mut child = start(&place, &command);
    wait_for_trials(&place, 2);
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = trials(&place);
    let ran = place.run(&format!("{command} --json"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let measured = lines(&ran).iter().filter(|line| line["event"] == "measured").count() as u64;
    assert_eq!(trials(&place), kept + measured);
}

#[test]
fn pipelines_of_files_are_tuned_too() {
    let place = Place::new();
    let pipeline = {
        use warploom::prelude::*;
        let (x, y) = vars!(x, y);
        let input = Input::f32("input", 2).repeat_edge();
        Pipeline::new("mine", [func("out", (x, y), input.at((x - 1, y)) + input.at((x, y + 1)))]).unwrap()
    };
    fs::write(place.path("mine.json"), pipeline.to_json()).unwrap();
    let ran = place.run(
        "tune mine.json --size input=100x80,out=100x80 --samples 4 --beam 4 --passes 2 --top 2 --fake fake",
    );
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.starts_with("mine at input=100x80, out=100x80 on fake: best"), "{}", ran.out);
}

#[test]
fn records_are_shown_and_exchanged() {
    let place = Place::new();
    let empty = place.run("records list");
    assert_eq!(empty.code, 2, "{}", empty.err);
    place.run(&format!("tune blur {QUICK} --top 2 --fake fake"));
    let list = place.run("records list");
    assert!(list.out.contains("blur") && list.out.contains("200x120"), "{}", list.out);
    let one = place.run("records show 1");
    assert!(one.out.contains("kernel output"), "{}", one.out);
    assert_eq!(place.run("records show 99").code, 2);
    assert_eq!(place.run("records best harris").code, 2);
    let of = place.json("records list blur --json");
    assert_eq!(of["trials"].as_array().unwrap().len(), 2);

    assert_eq!(place.run("records export all.jsonl").out, "2 trials in all.jsonl\n");
    assert_eq!(place.run("records export all.jsonl").code, 2, "nothing is overwritten");
    assert_eq!(place.run("records export two.samples --pipeline blur").out, "2 trials in two.samples\n");
    let import = "records import all.jsonl two.samples --records other.db";
    assert_eq!(place.run(import).out, "2 new trials, 2 already known\n");
    assert_eq!(place.run("records import text.jsonl --records other.db").code, 2);
    assert_eq!(place.run("records best blur --records other.db").out, place.run("records best blur").out);
}

#[test]
fn the_suite_is_a_table() {
    let place = Place::new();
    fs::write(
        place.path("anchors.json"),
        r#"{ "device": "it", "apps": { "harris": { "halide_manual_us": 100, "floor_us": 1 } } }"#,
    )
    .unwrap();
    let command = "suite --apps harris,unsharp --sizes small --fake fake";
    let ran = place.run(&format!("{command} --mode top5 --samples 4 --compare anchors.json -o out"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("harris") && ran.out.contains("Geometric mean"), "{}", ran.out);
    let json: Json = serde_json::from_slice(&fs::read(place.path("out/suite-top5.json")).unwrap()).unwrap();
    let rows = json["apps"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row["status"] == "ok" && row["checked_at_full_size"] == true));
    let faster = 100.0 / rows[0]["min_us"].as_f64().unwrap();
    assert!((json["faster_than_manual"].as_f64().unwrap() - faster).abs() < 1e-9);
    let page = place.run("report out/suite-top5.json -o page.html");
    assert_eq!(page.code, 0, "{}", page.err);
    let markdown = fs::read_to_string(place.path("out/suite-top5.md")).unwrap();
    assert!(markdown.contains("| harris |") && markdown.contains("Command: `warploom suite"), "{markdown}");
    assert!(place.path("out/harris.schedule").is_file());

    for mode in ["one-shot --samples 4", "default", "autotune --iterations 1 --samples 4"] {
        let ran = place.run(&format!("{command} --apps harris --mode {mode} --json"));
        assert_eq!(ran.code, 0, "{mode}: {}", ran.err);
    }
    let schedules = concat!(env!("CARGO_MANIFEST_DIR"), "/../../apps/schedules");
    let manual = place.run(&format!("{command} --mode manual --schedules {schedules} --markdown"));
    assert!(manual.out.starts_with("# The suite, manual"), "{} {}", manual.out, manual.err);
    // A schedule that breaks a rule is that of one app.
    let text = fs::read_to_string(format!("{schedules}/unsharp.schedule")).unwrap();
    fs::write(place.path("unsharp.schedule"), format!("# mine\n{text}")).unwrap();
    fs::write(place.path("harris.schedule"), "# mine\n\nharris\n").unwrap();
    let manual = place.run(&format!("{command} --mode manual --schedules ."));
    assert_eq!(manual.code, 6, "{}", manual.err);
    let said =
        "harris: `harris` cannot be built: the schedule is illegal: ./harris.schedule: `gray` is required";
    assert!(manual.said().contains(said), "{}", manual.out);
    assert!(manual.out.contains("--> line 3, column 1"), "{}", manual.out);
    let wrong = place
        .run(&format!("{} --mode top5 --samples 4", command.replace("--fake fake", "--fake fake:wrong=100")));
    assert_eq!(wrong.code, 6, "{}", wrong.err);
    assert!(wrong.out.contains("none is valid"), "{}", wrong.out);
}

#[test]
fn the_cache_is_shown_and_cleared_with_or_without_nvrtc() {
    let place = Place::new();
    let run = |arguments: &str, folder: &str| {
        let mut command = place.command();
        command.args(arguments.split_whitespace()).env("WARPLOOM_CACHE_DIR", folder);
        Ran::from(command.output().unwrap())
    };
    let folder = place.path("cache").display().to_string();
    let info = run("cache info --json", &folder);
    let info: Json = serde_json::from_str(&info.out).unwrap();
    assert_eq!((&info["entries"], &info["bytes"]), (&Json::from(0), &Json::from(0)));
    let compile = "compile blur --size 100x100 --schedule default -o out";
    assert_eq!(run(compile, &folder).code, 0);
    if warploom::runtime::compiler::version().is_ok() {
        let cubin = fs::read(place.path("out/blur.sm_90.cubin")).unwrap();
        assert!(run("cache info", &folder).out.contains("holds 1 compiled program"));
        assert_eq!(run(compile, &folder).code, 0);
        assert_eq!(fs::read(place.path("out/blur.sm_90.cubin")).unwrap(), cubin);
        assert!(run("cache clear", &folder).out.contains("held 1 compiled program"));
        assert!(run("cache info", &folder).out.contains("no compiled programs"));
    }
    assert_eq!(run("cache info", "").code, 2);
}
