//! What the program says beside its results: `-q`, `-v`, `WARPLOOM_LOG`, and nothing that only terminals understand.

use crate::place::{Place, Ran};

const COMPILE: &str = "compile blur --size 200x120 --samples 4 --beam 4 --passes 2 -o out";
const TUNE: &str = "tune blur --size 200x120 --samples 4 --beam 4 --passes 2 --top 2 --fake fake";

#[test]
fn quiet_says_results_alone() {
    let place = Place::new();
    for command in [COMPILE, TUNE, "suite --apps blur --sizes small --samples 2 --fake fake"] {
        let loud = place.run(command);
        assert!(loud.code == 0 && !loud.err.is_empty(), "{command}: {}", loud.err);
        let quiet = place.run(&format!("-q {command}"));
        assert_eq!((quiet.code, quiet.err.as_str()), (0, ""), "{command}");
        assert!(!quiet.out.is_empty(), "{command}");
        assert_eq!(place.run(&format!("{command} --quiet")).err, "", "it may stand anywhere");
    }
    let wrong = place.run("-q run haris");
    assert!(wrong.code == 2 && wrong.err.starts_with("error: "), "errors are said: {}", wrong.err);
    assert_eq!(place.run("-q -v apps").code, 2);
}

#[test]
fn verbose_says_what_the_libraries_do() {
    let place = Place::new();
    let usual = place.run(COMPILE);
    let verbose = place.run(&format!("{COMPILE} -v"));
    let searched = "DEBUG warploom_search: searched pipeline=\"blur\"";
    assert!(verbose.err.contains(searched) && !verbose.err.contains("TRACE"), "{}", verbose.err);
    assert!(!usual.err.contains("DEBUG"), "{}", usual.err);
    assert_eq!(verbose.out, usual.out, "results are the same");
    let passes = ["pass", "lower", "  versions", "    nests", "  barriers", "verify", "print"];
    let has = |err: &str, pass: &str| err.lines().any(|line| line.starts_with(&format!("{pass}  ")));
    assert!(passes.iter().all(|pass| has(&verbose.err, pass)), "{}", verbose.err);
    assert!(!passes.iter().any(|pass| has(&usual.err, pass)), "{}", usual.err);
    let all = place.run(&format!("-vv {COMPILE}"));
    assert!(all.err.contains("TRACE warploom_search"), "{}", all.err);
    let tuned = place.run(&format!("{TUNE} -v"));
    assert!(tuned.err.contains("measured a schedule status=\"ok\""), "{}", tuned.err);
}

#[test]
fn a_variable_says_what_is_logged() {
    let place = Place::new();
    let run = |filter: &str, flags: &str| {
        let mut command = place.command();
        command.args(COMPILE.split(' ')).args(flags.split_whitespace()).env("WARPLOOM_LOG", filter);
        Ran::from(command.output().unwrap())
    };
    assert!(run("warploom_search=debug", "").err.contains("DEBUG warploom_search"));
    assert!(!run("warploom_tune=debug", "-vv").err.contains("warploom_search"), "it has the last word");
    assert!(!run("", "").err.contains("DEBUG"));
    let wrong = run("warploom=loud", "");
    assert_eq!(wrong.code, 2, "{}", wrong.err);
    assert!(wrong.err.starts_with("error: WARPLOOM_LOG is `warploom=loud`"), "{}", wrong.err);
}

#[test]
fn no_escape_reaches_a_pipe() {
    let place = Place::new();
    place.copy_golden(&["harris"]);
    let commands = [
        COMPILE,
        TUNE,
        "-v compile blur --size 64x48 --samples 2",
        "run harris --size 64x48 --generate",
        "verify golden",
        "verify golden --on sim --schedule default",
        "fuzz --pipelines 5 --schedules 1",
        "suite --apps blur --sizes small --samples 2 --fake fake",
        "devices --presets",
        "help tune",
        "compile",
    ];
    for command in commands {
        for variables in [&[][..], &[("CLICOLOR_FORCE", "1")], &[("NO_COLOR", "1"), ("TERM", "xterm")]] {
            let mut process = place.command();
            process.args(command.split_whitespace()).envs(variables.iter().copied());
            let ran = Ran::from(process.output().unwrap());
            assert!(
                !ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}'),
                "{command}: {}{}",
                ran.out,
                ran.err
            );
            assert!(!ran.err.contains('\r'), "{command}: {}", ran.err);
        }
    }
}
