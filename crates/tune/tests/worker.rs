//! Processes that compile and run, and everything that can happen to them, with a device that is made up.
//!
//! This is a program with a `main` of its own, as it is its own worker.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "a test says what it does")]

mod harness;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warploom_interp::buffer::Buffer;
use warploom_lang::{Input, Pipeline, Region, func, vars};
use warploom_runtime::TimingOptions;
use warploom_target::Device;
use warploom_tune::measure::{Candidate, Check, Feed, Setup, Subject, measure};
use warploom_tune::sample::{Origin, Sample};
use warploom_tune::worker::{self, BenchOptions, Fake, OpenBench, Patience, WorkerError, WorkerProgram};
use warploom_tune::workload::Workload;

fn main() {
    worker::entry();
    let tests: [(&str, fn()); 10] = [
        ("without_faults_everything_is_measured", without_faults_everything_is_measured),
        ("every_fault_costs_its_candidate_alone", every_fault_costs_its_candidate_alone),
        ("faults_mix", faults_mix),
        ("faults_of_timing_builds_are_caught", faults_of_timing_builds_are_caught),
        ("several_gpus_share_the_work", several_gpus_share_the_work),
        ("a_worker_that_hangs_is_ended_in_time", a_worker_that_hangs_is_ended_in_time),
        (
            "workers_that_are_lost_on_the_way_up_are_replaced",
            workers_that_are_lost_on_the_way_up_are_replaced,
        ),
        ("no_worker_outlives_its_parent", no_worker_outlives_its_parent),
        ("programs_that_are_no_workers_are_refused", programs_that_are_no_workers_are_refused),
        ("without_a_gpu_there_is_a_reason", without_a_gpu_there_is_a_reason),
    ];
    match std::env::args().nth(1).as_deref() {
        Some("be-a-parent") => be_a_parent(),
        Some(UNRELIABLE) => be_unreliable(),
        _ => harness::run(&tests),
    }
}

fn workload(width: i64) -> Workload {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let edge = input.repeat_edge();
    let row = func("row", (x, y), edge.at((x - 1, y)) + edge.at((x + 1, y)));
    let blur = func("blur", (x, y), row.at((x, y - 1)) + row.at((x, y + 1)));
    let pipeline = Pipeline::new("blur", [blur]).unwrap();
    let region = Region::of_extents(&[width, width]);
    let buffer = Buffer::from_fn::<f32>(region.clone(), |at| (at[0] * 7 + at[1]) as f32).unwrap();
    Workload { pipeline, inputs: vec![buffer], params: Vec::new(), outputs: vec![region] }
}

/// Different schedules with something to compare them with.
fn candidates(count: u64) -> Vec<Candidate> {
    candidates_of(&workload(100), &workload(17), count)
}

fn candidates_of(workload: &Workload, small: &Workload, count: u64) -> Vec<Candidate> {
    let subject = Arc::new(Subject::of(workload).unwrap());
    let check = Arc::new(Check::of_workload(small.clone(), None).unwrap());
    let problem = subject.problem(&Device::preset("h200").unwrap()).unwrap();
    let candidate = |seed| Candidate {
        subject: subject.clone(),
        schedule: problem.random_schedule(seed),
        origin: Origin::Random,
        predicted_us: None,
        checks: vec![check.clone()],
    };
    (0..count).map(candidate).collect()
}

fn patience() -> Patience {
    Patience { compile: Duration::from_millis(700), run: Duration::from_millis(700), ..Patience::default() }
}

fn options(fake: &str, gpus: &[usize]) -> BenchOptions {
    let (fake, gpus) = (Some(fake.parse::<Fake>().unwrap()), gpus.to_vec());
    BenchOptions { fake, gpus, patience: patience(), threads: 2, ..BenchOptions::default() }
}

fn open(fake: &str) -> OpenBench {
    OpenBench::open(&options(fake, &[])).unwrap()
}

fn measured(fake: &str, count: u64) -> Vec<Sample> {
    measured_with(&mut open(fake), count)
}

fn measured_with(bench: &mut OpenBench, count: u64) -> Vec<Sample> {
    measured_of(bench, candidates(count))
}

fn measured_of(bench: &mut OpenBench, mut all: Vec<Candidate>) -> Vec<Sample> {
    let mut samples = Vec::new();
    bench.with(|bench| {
        let setup =
            Setup { skip_spilling: true, ..Setup::new(bench.device, bench.compile, TimingOptions::quick()) };
        let half = all.split_off(all.len() / 2);
        let feeds: Vec<Feed<'_>> = vec![Box::new(all.into_iter()), Box::new(half.into_iter())];
        let ended = measure(&setup, feeds, bench.machines(), &mut |measured| {
            samples.push(measured.sample);
            ControlFlow::Continue(())
        });
        ended.unwrap();
    });
    samples
}

fn kinds(samples: &[Sample]) -> BTreeMap<&'static str, usize> {
    let mut kinds = BTreeMap::new();
    for sample in samples {
        *kinds.entry(sample.status.kind()).or_default() += 1;
    }
    kinds
}

fn without_faults_everything_is_measured() {
    let samples = measured("fake:noise=3", 12);
    assert_eq!(kinds(&samples), BTreeMap::from([("ok", 12)]));
    assert!(samples.iter().all(|sample| sample.verified && !sample.kernels.is_empty()));
    let again = measured("fake:noise=3", 12);
    let time = |samples: &[Sample], schedule: &str| {
        samples.iter().find(|sample| sample.schedule == schedule).unwrap().times.unwrap().min
    };
    for sample in &samples {
        let ratio = time(&again, &sample.schedule) / sample.times.unwrap().min;
        assert!((0.96..1.04).contains(&ratio), "{ratio}");
    }
}

fn every_fault_costs_its_candidate_alone() {
    let expected = [
        ("crash", "crashed"),
        ("hang", "timeout"),
        ("garbage", "crashed"),
        ("fault", "crashed"),
        ("refuse", "failed"),
        ("wrong", "wrong"),
        ("compile-crash", "crashed"),
        ("compile-hang", "timeout"),
        ("compile-garbage", "crashed"),
        ("compile-refuse", "not_compiled"),
        ("spill", "spilled"),
    ];
    for (fault, kind) in expected {
        let samples = measured(&format!("fake:{fault}=100"), 2);
        assert_eq!(kinds(&samples), BTreeMap::from([(kind, 2)]), "{fault}: {:?}", samples[0].status);
        assert!(!samples[0].status.message().is_empty());
    }
}

fn faults_mix() {
    let faults =
        "fake:crash=8,garbage=5,fault=5,wrong=8,refuse=5,compile-crash=3,compile-refuse=4,spill=10,seed=3";
    let samples = measured(faults, 40);
    let kinds = kinds(&samples);
    assert_eq!(samples.len(), 40);
    for kind in ["ok", "crashed", "wrong", "not_compiled", "spilled"] {
        assert!(kinds.get(kind).is_some_and(|count| *count > 0), "{kinds:?}");
    }
    // The same programs fail in the same ways.
    let again = measured(faults, 40);
    for sample in &samples {
        let other = again.iter().find(|other| other.schedule == sample.schedule).unwrap();
        assert_eq!(other.status.kind(), sample.status.kind());
    }
}

/// A blur whose weights are rounded, so that its builds may differ.
fn rounded(width: i64) -> Workload {
    let (x, y) = vars!(x, y);
    let edge = Input::f32("input", 2).repeat_edge();
    let row = func("row", (x, y), edge.at((x - 1, y)) * 0.3 + edge.at((x + 1, y)) * 0.7);
    let blur = func("blur", (x, y), row.at((x, y - 1)) * 0.3 + row.at((x, y + 1)) * 0.7);
    Workload { pipeline: Pipeline::new("blur", [blur]).unwrap(), ..workload(width) }
}

/// From one sample to 5 % of them that are out of range, NaN or not written.
fn faults_of_timing_builds_are_caught() {
    let all = candidates_of(&rounded(80), &rounded(61), 3);
    assert_eq!(kinds(&measured_of(&mut open("fake"), all.clone())), BTreeMap::from([("ok", 3)]));
    for fault in ["timing-wrong", "timing-nan", "timing-unwritten"] {
        for (samples, seed) in [(0, 1), (1, 2), (10, 3), (50, 4)] {
            let fake = format!("fake:{fault}=100,samples={samples},seed={seed}");
            let found = measured_of(&mut open(&fake), all.clone());
            assert_eq!(kinds(&found), BTreeMap::from([("numeric", 3)]), "{fake}: {:?}", found[0].status);
        }
    }
    // Where the exact bits are known, too.
    let found = measured("fake:timing-wrong=100", 2);
    assert_eq!(kinds(&found), BTreeMap::from([("numeric", 2)]), "{:?}", found[0].status);
}

fn several_gpus_share_the_work() {
    let mut bench = OpenBench::open(&options("fake:crash=20", &[0, 1, 5])).unwrap();
    assert_eq!(bench.with(|bench| bench.machines().len()), 3);
    let samples = measured_with(&mut bench, 40);
    let schedules: BTreeSet<&str> = samples.iter().map(|sample| sample.schedule.as_str()).collect();
    let distinct: BTreeSet<String> =
        candidates(40).iter().map(|of| of.schedule.to_text(of.subject.pipeline())).collect();
    assert_eq!((samples.len(), schedules.len()), (40, distinct.len()));
    let refused = OpenBench::open(&options("fake", &[1, 0, 1])).err().map(|error| error.to_string());
    assert_eq!(refused.as_deref(), Some("GPU 1 is listed twice; list each GPU once"));
}

fn a_worker_that_hangs_is_ended_in_time() {
    let started = Instant::now();
    let samples = measured("fake:hang=100", 2);
    assert_eq!(kinds(&samples), BTreeMap::from([("timeout", 2)]));
    assert!(started.elapsed() < Duration::from_secs(30));
}

/// The first argument of a worker that may be lost on its way up; then come a folder and its assignment.
const UNRELIABLE: &str = "be-unreliable";

/// Ends at once as long as there is a file in the folder, and takes one of them along; works if there is none.
fn be_unreliable() {
    let mut arguments = std::env::args().skip(2);
    let folder = arguments.next().unwrap();
    for mishap in std::fs::read_dir(folder).unwrap() {
        if std::fs::remove_file(mishap.unwrap().path()).is_ok() {
            std::process::exit(7);
        }
    }
    let assignment = worker::Assignment::parse(&arguments.collect::<Vec<_>>()).unwrap();
    assignment.serve().unwrap();
}

fn workers_that_are_lost_on_the_way_up_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let lose = |count: u32| {
        (0..count).for_each(|number| std::fs::write(folder.path().join(number.to_string()), "").unwrap());
    };
    let program = std::env::current_exe().unwrap();
    let arguments = [UNRELIABLE.into(), folder.path().into()];
    // Half of all programs take the process with them that compiles them.
    let mut options = options("fake:compile-crash=50", &[]);
    options.worker = Some(WorkerProgram::new(program, arguments));
    // The first that runs.
    lose(1);
    let mut bench = OpenBench::open(&options).unwrap();
    // The next that compile.
    lose(2);
    let samples = measured_with(&mut bench, 12);
    assert_eq!(samples.len(), 12);
    let kinds = kinds(&samples);
    assert!(kinds["ok"] > 0 && kinds["crashed"] > 0 && kinds.len() == 2, "{kinds:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "all of them were lost");
}

/// Starts workers, says so, and waits to be killed.
fn be_a_parent() {
    let mut bench = open("fake:hang=100");
    bench.with(|bench| {
        println!("{}", std::process::id());
        let candidate = candidates(1).remove(0);
        let program = candidate.subject.build(&candidate.schedule, bench.device);
        let program = warploom_codegen::printer::PRINTER
            .describe(&program.unwrap(), warploom_codegen::printer::Build::Timing);
        // The worker is busy, and does not come back.
        let _ = bench.machine.run(&candidate.subject, &program);
    });
}

/// The processes whose parent is a process.
fn children_of(parent: u32) -> Vec<u32> {
    let listed = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = listed.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |process: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let after_name = stat.rsplit(')').next().unwrap_or_default().to_owned();
        after_name.split_whitespace().nth(1).and_then(|of| of.parse().ok()) == Some(parent)
    };
    numbers.filter(is_child).collect()
}

fn no_worker_outlives_its_parent() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let program = std::env::current_exe().unwrap();
    let mut parent =
        Command::new(program).arg("be-a-parent").stdout(std::process::Stdio::piped()).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let mut workers = Vec::new();
    while workers.len() < 2 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
        workers = children_of(parent.id());
    }
    assert_eq!(workers.len(), 2, "one compiles, one runs");
    std::thread::sleep(Duration::from_millis(200));
    parent.kill().unwrap();
    parent.wait().unwrap();
    let alive = |worker: &u32| std::path::Path::new(&format!("/proc/{worker}/exe")).exists();
    let until = Instant::now() + Duration::from_secs(60);
    while workers.iter().any(alive) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!workers.iter().any(alive));
}

fn programs_that_are_no_workers_are_refused() {
    let open = |program: &str| {
        let options = BenchOptions {
            worker: Some(WorkerProgram::new(program, [])),
            patience: patience(),
            ..BenchOptions::default()
        };
        OpenBench::open(&options).err().unwrap()
    };
    assert!(matches!(open("/no/such/program"), WorkerError::Start { .. }));
    let silent = open("/bin/echo");
    assert!(matches!(silent, WorkerError::Silent { .. }), "{silent}");
    assert!(matches!(open("/bin/false"), WorkerError::Silent { .. }));
}

fn without_a_gpu_there_is_a_reason() {
    if warploom_runtime::Gpu::new(0).is_ok() {
        return;
    }
    let error = OpenBench::open(&BenchOptions::default()).err().unwrap();
    assert!(matches!(&error, WorkerError::Unable(why) if why.contains("driver")), "{error}");
}
