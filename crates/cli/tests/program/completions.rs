//! `warploom completions`: scripts that shells understand.

use std::fs;
use std::process::Command;

use crate::place::{Place, Ran};

#[test]
fn every_shell_has_a_script_that_knows_the_commands() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = place.run(&format!("completions {shell}"));
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{shell}");
        assert!(
            ["compile", "records", "schedule", "quiet"].iter().all(|word| ran.out.contains(word)),
            "{shell}"
        );
    }
    assert_eq!(place.run("completions csh").code, 2);
}

#[test]
fn bash_completes_with_it() {
    let place = Place::new();
    fs::write(place.path("warploom.bash"), place.run("completions bash").out).unwrap();
    let bash = |arguments: &[&str]| {
        let ran = Command::new("bash").args(arguments).current_dir(place.path("")).output();
        ran.ok().map(Ran::from)
    };
    let Some(parsed) = bash(&["-n", "warploom.bash"]) else { return };
    assert_eq!((parsed.code, parsed.err.as_str()), (0, ""));
    let completed = |words: &str, number: usize| {
        let script = format!(
            "source warploom.bash; COMP_WORDS=({words}); COMP_CWORD={number}; \
             _warploom warploom \"${{COMP_WORDS[{number}]}}\" \"${{COMP_WORDS[{number} - 1]}}\"; echo \"${{COMPREPLY[*]}}\""
        );
        bash(&["-c", &script]).unwrap().out.trim().to_owned()
    };
    assert_eq!(completed("warploom comp", 1), "compile completions");
    assert_eq!(completed("warploom records ex", 2), "export");
    assert_eq!(completed("warploom compile harris --sched", 3), "--schedule");
    assert_eq!(completed("warploom compile harr", 2), "harris");
    assert_eq!(completed("warploom compile harris --device h2", 4), "h200");
    fs::write(place.path("mine.json"), "").unwrap();
    fs::write(place.path("mine.schedule"), "").unwrap();
    // No app fits, so that bash completes files by itself; a schedule is a file.
    assert_eq!(completed("warploom compile mi", 2), "");
    assert_eq!(completed("warploom explain harris --schedule mi", 4), "mine.json mine.schedule");
    assert!(place.run("completions bash").out.contains("-o default"));
}
