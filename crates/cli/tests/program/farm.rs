//! A farm of real processes: a private server, workers of every role on made-up devices, and kills.

#[cfg(feature = "train")]
mod collect;
mod faults;

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use tempfile::TempDir;
use warploom::farm::server;

use crate::place::Ran;

/// How long runs may go on without another trial. Their whole time depends on how busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

/// A folder with a farm, which is stopped in the end.
struct Farm {
    folder: TempDir,
}

impl Farm {
    /// `None` where PostgreSQL is not installed, unless it is required.
    fn new(test: &str) -> Option<Farm> {
        if !server::is_installed() {
            let required = std::env::var("WARPLOOM_REQUIRE_POSTGRES").is_ok_and(|value| value == "1");
            assert!(!required, "{test}: PostgreSQL is not installed");
            let mut err = std::io::stderr();
            writeln!(err, "SKIPPED {test}: PostgreSQL was not found").unwrap();
            return None;
        }
        // Started by root, the server runs as another user.
        let folder = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir_in("/tmp");
        Some(Farm { folder: folder.unwrap() })
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
        command.args(arguments.split_whitespace());
        command.current_dir(self.folder.path()).env("WARPLOOM_CACHE_DIR", "");
        command
    }

    fn run(&self, arguments: &str) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    fn json(&self, arguments: &str) -> Json {
        let ran = self.run(arguments);
        assert_eq!(ran.code, 0, "{arguments}: {}", ran.err);
        serde_json::from_str(&ran.out).unwrap()
    }

    fn status(&self) -> Json {
        self.json("farm status farm/farm.json --json")
    }

    /// A worker that is killed in the end.
    fn worker(&self, roles: &str) -> Worker {
        self.worker_of("farm/farm.json", roles)
    }

    fn worker_of(&self, farm_file: &str, roles: &str) -> Worker {
        Worker(self.worker_command(farm_file, roles).spawn().unwrap())
    }

    fn worker_command(&self, farm_file: &str, roles: &str) -> Command {
        let arguments = format!("farm worker {farm_file} --role {roles} --threads 1 --fake fake:delay=50");
        let log = fs::File::create(self.path(&format!("{roles}.log"))).unwrap();
        let mut command = self.command(&arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The status after the end of all runs.
    fn finished(&self) -> Json {
        let mut trials = 0;
        let mut proceeded = Instant::now();
        loop {
            let status = self.status();
            let runs = status["runs"].as_array().unwrap();
            if runs.iter().all(|run| run["state"] == "finished") {
                return status;
            }
            let now = runs.iter().filter_map(|run| run["trials"].as_u64()).sum();
            if now > trials {
                (trials, proceeded) = (now, Instant::now());
            }
            let failed = runs.iter().any(|run| run["state"] == "failed");
            assert!(!failed && proceeded.elapsed() < PATIENCE, "{status:#}");
            thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Farm {
    fn drop(&mut self) {
        let _ = self.run("farm stop --database farm");
    }
}

struct Worker(Child);

impl Worker {
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_farm_survives_kills_of_every_role_on_postgres() {
    let Some(farm) = Farm::new("a_farm_survives_kills_of_every_role_on_postgres") else { return };
    let started = farm.json(
        "farm start blur --database farm --json -- --size 96x64 --strategy random --trials 240 --templates 1 --beam 4 \
         --passes 2 --samples 2",
    );
    assert_eq!(started["runs"][0]["name"], "blur", "{started}");
    let roles = ["propose", "compile", "run"];
    let mut workers =
        [roles[0], roles[1], roles[1], roles[2], roles[2]].map(|role| (role, farm.worker(role)));
    for kill in 0..15 {
        thread::sleep(Duration::from_millis(700));
        // A kill after the end would show nothing. Two GPUs need longer for these trials than all kills take.
        assert_ne!(farm.status()["runs"][0]["state"], "finished", "at kill {kill}");
        let role = roles[kill % 3];
        let (_, worker) = workers.iter_mut().find(|(of, _)| *of == role).unwrap();
        worker.kill();
        *worker = farm.worker(role);
        // The other worker of the role is the next.
        workers.rotate_left(1);
    }
    let status = farm.finished();
    let run = &status["runs"][0];
    let trials = farm.json("records list blur --records farm/farm.json --json");
    let trials = trials["trials"].as_array().unwrap();
    // Those of the strategy and the default schedule, each once.
    assert_eq!(trials.len(), 241);
    assert!(trials.iter().all(|trial| trial["status"] == "ok"), "{trials:?}");
    assert!(run["best_us"].as_f64().unwrap() > 0.0, "{run}");
    assert!(run["message"].as_str().unwrap().starts_with("the fastest schedule takes"), "{run}");
    let best = farm.run("records best blur --records farm/farm.json");
    assert_eq!(best.code, 0, "{}", best.err);
    assert!(best.out.contains("kernel output"), "{}", best.out);
}

#[test]
fn several_runs_end_and_workers_leave_on_postgres() {
    let Some(farm) = Farm::new("several_runs_end_and_workers_leave_on_postgres") else { return };
    let started = farm.run("farm start blur --database farm --local 1 --fake fake -- --size large");
    assert_eq!(started.code, 2, "{}", started.out);
    assert!(!farm.path("farm").exists(), "it is said before anything is started");
    let started = farm.run(
        "farm start blur --database farm --local 1 --fake fake -- --size 96x64 --top 2 --samples 2 --passes 1",
    );
    assert_eq!(started.code, 0, "{}", started.err);
    assert!(started.out.contains("1 run: blur"), "{}", started.out);
    let file = farm.path("farm/farm.json");
    let secret: Json = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let url = secret["url"].as_str().unwrap();
    let password = url.split([':', '@']).nth(2).unwrap();
    assert!(password.len() > 20 && !started.out.contains(password), "{}", started.out);
    let status = farm.finished();
    assert!(status["runs"][0]["valid"].as_u64().unwrap() >= 2, "{status:#}");
    // Started for these runs, the worker ends after them.
    let end = Instant::now();
    while farm.status()["workers"][0]["life"] != "left" {
        assert!(end.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(200));
    }
    let log = fs::read_to_string(farm.path("farm/workers/worker-1.log")).unwrap();
    assert!(log.contains("joined the farm as worker 1") && !log.contains(password), "{log}");
    let stopped = farm.json("farm stop farm/farm.json --json");
    let counts = ["stopped_runs", "dismissed_workers"].map(|count| stopped[count].as_u64());
    assert_eq!(counts, [Some(0), Some(0)], "{stopped}");
}

#[cfg(feature = "train")]
#[test]
fn iterations_train_the_model_on_postgres() {
    let Some(farm) = Farm::new("iterations_train_the_model_on_postgres") else { return };
    let started = farm.run(
        "farm start blur --database farm --local 1 --fake fake -- --size 96x64 --iterations 2 --retrain --samples 8 \
         --beam 4 --passes 1",
    );
    assert_eq!(started.code, 0, "{}", started.err);
    let status = farm.finished();
    assert!(status["runs"][0]["valid"].as_u64().unwrap() > 8, "{status:#}");
    let mut records = warploom::records::open(farm.path("farm/farm.json")).unwrap();
    let problem = records.problems().unwrap()[0].id;
    let iterations = records.iterations(problem).unwrap();
    assert_eq!(iterations.iter().map(|iteration| iteration.number).collect::<Vec<_>>(), [1, 2]);
    let state = records.run(problem, &iterations[1].run).unwrap();
    assert!(state.weights.is_some(), "the model was not trained");
}

#[test]
fn what_is_wrong_with_a_task_is_said_at_once() {
    let place = crate::place::Place::new();
    for (options, why) in [
        ("harris -- --records x.db", "a farm's trials are in its database"),
        ("harris -- --gpu 1", "each worker has GPUs of its own"),
        ("no_such_app -- --top 2", "there is no app `no_such_app`"),
        ("harris -- --strategy nothing", "invalid value 'nothing'"),
    ] {
        let ran = place.run(&format!("farm start --database farm {options}"));
        assert_eq!(ran.code, 2, "{options}: {}", ran.err);
        let said = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(why), "{options}: {said}");
        assert!(!place.path("farm").exists(), "{options}");
    }
    let ran = place.run("farm start --database farm harris --slurm gpu:2,cpu:1 --dry-run");
    assert_eq!(ran.code, 0, "{}", ran.err);
    for line in ["#SBATCH --array=0-1", "--role run", "--role propose,compile", "--until-done"] {
        assert!(ran.out.contains(line), "{line}: {}", ran.out);
    }
    assert!(!place.path("farm").exists() && !ran.out.contains("postgres://"), "{}", ran.out);
    let ran = place.run("farm worker nothing.json");
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("neither a farm file nor the URL of a server"), "{}", ran.err);
}
