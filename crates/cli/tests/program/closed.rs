//! Standard output or standard error that nobody reads.

use std::io::pipe;
use std::process::Stdio;

use crate::place::Place;

/// The write end of a pipe whose reader has gone.
fn closed() -> Stdio {
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn every_command_ends_without_a_panic_where_nobody_reads_its_results() {
    let place = Place::new();
    place.copy_golden(&["harris"]);
    let tune = "tune blur --size 200x120 --samples 4 --beam 4 --passes 2 --top 2 --fake fake";
    assert_eq!(place.run(tune).code, 0);
    let commands = [
        "apps",
        "apps --json",
        "graph blur",
        "run blur --size 64x48 --generate",
        "compile blur --size 64x48 --schedule default",
        "explain blur --size 64x48 --schedule default",
        "verify golden",
        "sim blur --size 64x48 --schedule default",
        tune,
        "suite --apps blur --sizes small --mode default --fake fake",
        "records list",
        "records show 1",
        "records best blur",
        "records export all.jsonl",
        "report tuning.db -o report.html",
        "fuzz --pipelines 2 --schedules 1",
        "devices --presets",
        "completions bash",
    ];
    for command in commands {
        let output = place.command().args(command.split(' ')).stdout(closed()).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(141), "{command}: {err}");
        assert!(!err.contains("error"), "{command}: {err}");
    }
    let help = place.command().arg("--help").stdout(closed()).status().unwrap();
    assert_eq!(help.code(), Some(0));
}

#[test]
fn what_is_said_beside_results_may_go_nowhere() {
    let place = Place::new();
    let commands = [
        "-vv compile blur --size 64x48 --samples 2",
        "-v fuzz --pipelines 2 --schedules 1",
        "-v devices --presets",
    ];
    for command in commands {
        let output = place.command().args(command.split(' ')).stderr(closed()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{command}");
        assert!(!output.stdout.is_empty(), "{command}");
    }
    let wrong = place.command().args(["run", "haris"]).stderr(closed()).status().unwrap();
    assert_eq!(wrong.code(), Some(2));
}
