//! Records that cannot be written.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::place::{Place, Ran};

/// Somebody who owns nothing.
const NOBODY: u32 = 65534;

pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs the program as somebody whom the modes of files hold for.
pub fn run(place: &Place, arguments: &str) -> Ran {
    let program = place.path("program");
    let mut command = Command::new(&program);
    command.args(arguments.split_whitespace()).current_dir(place.path("")).env("WARPLOOM_CACHE_DIR", "");
    // They do not hold for the superuser.
    if fs::metadata(&program).unwrap().uid() == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    Ran::from(command.output().unwrap())
}

#[test]
fn records_that_cannot_be_written_can_be_read() {
    let place = Place::new();
    let tune = "tune blur --size 200x120 --samples 4 --beam 4 --passes 2 --top 2 --fake fake";
    fs::create_dir(place.path("kept")).unwrap();
    assert_eq!(place.run(&format!("{tune} --records kept/tuning.db")).code, 0);
    // Where that is built, others may not go.
    fs::copy(env!("CARGO_BIN_EXE_warploom"), place.path("program")).unwrap();
    fs::create_dir(place.path("out")).unwrap();
    set_mode(&place.path("out"), 0o777);
    set_mode(&place.path(""), 0o755);
    let expected = place.run("records list --records kept/tuning.db").out;
    for (number, (folder, file)) in [(0o777, 0o444), (0o555, 0o644), (0o555, 0o444)].into_iter().enumerate() {
        set_mode(&place.path("kept/tuning.db"), file);
        set_mode(&place.path("kept"), folder);
        let of_records = |command: &str| {
            let ran = run(&place, &format!("records {command} --records kept/tuning.db"));
            assert_eq!(ran.code, 0, "{folder:o} {file:o} {command}: {}", ran.err);
            ran.out
        };
        assert_eq!(of_records("list"), expected);
        assert!(of_records("best blur").contains("kernel output"));
        assert!(of_records("show 1").contains("kernel output"));
        assert!(of_records(&format!("export out/{number}.jsonl")).starts_with("2 trials"));
        assert!(of_records(&format!("export out/{number}.samples")).starts_with("2 trials"));
        let page = run(&place, &format!("report kept/tuning.db -o out/{number}.html"));
        assert_eq!(page.code, 0, "{}", page.err);

        let written = run(&place, &format!("records import out/{number}.jsonl --records kept/tuning.db"));
        assert_eq!(written.code, 2, "{}", written.out);
        assert!(written.err.contains("check the path and its permissions"), "{}", written.err);
        assert_eq!(fs::read_dir(place.path("kept")).unwrap().count(), 1, "nothing is left beside it");
        set_mode(&place.path("kept"), 0o755);
    }
}
