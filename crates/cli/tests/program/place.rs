//! Runs the program in a folder of its own.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value as Json;
use tempfile::TempDir;

/// An empty folder that the program runs in.
pub struct Place {
    folder: TempDir,
}

/// What a run left behind.
pub struct Ran {
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Place {
    pub fn new() -> Place {
        Place { folder: TempDir::new().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the program with arguments that hold no spaces.
    pub fn run(&self, arguments: &str) -> Ran {
        self.run_with(arguments.split_whitespace())
    }

    pub fn run_with(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
        Ran::from(self.command().args(arguments).output().unwrap())
    }

    /// The program, which keeps nothing of what it compiles outside of the folder.
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
        command.current_dir(self.folder.path()).env("WARPLOOM_CACHE_DIR", "");
        command
    }

    /// The object that a run with `--json` prints. Without progress, which a busy machine would make visible.
    pub fn json(&self, arguments: &str) -> Json {
        let ran = self.run_with(arguments.split_whitespace().chain(["--quiet"]));
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{arguments}");
        serde_json::from_str(&ran.out).unwrap()
    }

    /// Copies the reference data of some apps to the folder `golden`.
    pub fn copy_golden(&self, apps: &[&str]) {
        for app in apps {
            let to = self.path("golden").join(app);
            fs::create_dir_all(&to).unwrap();
            for entry in fs::read_dir(golden().join(app)).unwrap() {
                let entry = entry.unwrap();
                fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
            }
        }
    }
}

/// The reference data of the suite.
fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../apps/golden")
}

impl Ran {
    /// The words of standard output, wherever lines were folded.
    pub fn said(&self) -> String {
        self.out.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code().expect("the program ends by itself"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
