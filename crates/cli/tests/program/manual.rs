//! `warploom manual`: man pages and completion scripts.

use std::fs;

use crate::help::COMMANDS;
use crate::place::Place;

#[test]
fn every_command_has_a_page_and_every_shell_a_script() {
    let place = Place::new();
    for _ in 0..2 {
        let ran = place.run("manual -o new/prefix");
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "a second run overwrites the files");
        assert!(
            ran.out.ends_with(" man pages and 5 completion scripts in new/prefix/share\n"),
            "{}",
            ran.out
        );
    }
    for command in COMMANDS {
        let name = format!("warploom {command}").trim_end().replace(' ', "-");
        let file = place.path(&format!("new/prefix/share/man/man1/{name}.1"));
        let page = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert!(page.contains(&format!("\n.TH {name} 1")), "{page}");
        assert!(page.contains("\n.SH OPTIONS\n") && page.contains("\n.SH SYNOPSIS\n"), "{page}");
        assert!(!page.contains('\u{1b}'), "{name} has colours");
    }
    let pages = fs::read_dir(place.path("new/prefix/share/man/man1")).unwrap();
    let pages: Vec<String> =
        pages.map(|page| page.unwrap().file_name().to_str().unwrap().to_owned()).collect();
    let hidden = |name: &&String| {
        name.starts_with("warploom-worker") || name.contains("help") || name.ends_with("tmp")
    };
    assert_eq!(pages.iter().find(hidden), None, "no page of what is hidden or unfinished");
    let scripts = [
        ("bash", "bash-completion/completions/warploom"),
        ("elvish", "elvish/lib/warploom.elv"),
        ("fish", "fish/vendor_completions.d/warploom.fish"),
        ("powershell", "powershell/warploom.ps1"),
        ("zsh", "zsh/site-functions/_warploom"),
    ];
    for (shell, file) in scripts {
        let script = fs::read_to_string(place.path(&format!("new/prefix/share/{file}"))).unwrap();
        assert_eq!(script, place.run(&format!("completions {shell}")).out, "{shell}");
    }
}

#[test]
fn examples_stand_line_by_line_in_a_page() {
    let place = Place::new();
    assert_eq!(place.run("manual -o prefix").code, 0);
    let page = fs::read_to_string(place.path("prefix/share/man/man1/warploom-cache.1")).unwrap();
    assert!(page.contains("\n.SH EXAMPLES\n.nf\n  warploom cache info"), "{page}");
}

#[test]
fn a_folder_that_cannot_be_made_is_a_mistake() {
    let place = Place::new();
    fs::write(place.path("file"), "").unwrap();
    let ran = place.run("manual -o file");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.starts_with("error: cannot write file/share/man/man1/warploom.1: "), "{}", ran.err);
    assert_eq!(place.run("manual").code, 2);
}
