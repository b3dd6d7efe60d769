//! Measures how many candidates a second the queue of a farm passes on: taken by workers in batches,
//! and recorded with all that a trial has.
//!
//! ```sh
//! cargo run --release -p warploom-farm --example scale -- farm/owner.json 100 20000
//! ```
//!
//! The arguments are the place of the records, the number of workers, and the number of candidates. Each
//! worker is a connection and a made-up GPU that needs no time, so what is measured is the database.

#![allow(clippy::print_stdout, reason = "the result of the program")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use warploom_farm::address::Address;
use warploom_farm::address_of;
use warploom_farm::queue::Queue;
use warploom_farm::queue::candidates::{BATCH, Done, Options, Stage, Taken};
use warploom_farm::queue::runs::Run;
use warploom_farm::queue::workers::{Gpus, Joining};
use warploom_farm::store;
use warploom_lang::{Input, Pipeline, Realisation, Region, func, vars};
use warploom_runtime::TimingOptions;
use warploom_target::Device;
use warploom_tune::records::{ProblemId, Store, Trial};
use warploom_tune::sample::{KernelUse, Origin, Sample, Sizes, Status, Times};
use warploom_tune::tuning::Wanted;

/// Candidates of one problem; several problems are measured at once, as on a farm.
const RUNS: usize = 8;

/// What everything is built with.
const VERSIONS: &str = "scale 1";

type Any = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Any> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [place, workers, candidates] = arguments.as_slice() else {
        return Err("usage: scale PLACE WORKERS CANDIDATES".into());
    };
    let address = address_of(&PathBuf::from(place))?.ok_or_else(|| not_a_farm(Path::new(place)))?;
    let (workers, candidates) = (workers.parse::<usize>()?, candidates.parse::<usize>()?);
    let mut queue = Queue::open(&address)?;
    let subject = Subject::new()?;
    fill(&mut queue, &address, &subject, candidates)?;
    let (recorded, late) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let begin = Instant::now();
    thread::scope(|scope| {
        let work = |number| {
            let (address, subject, recorded, late) = (&address, &subject, &recorded, &late);
            scope.spawn(move || work(address, subject, number, candidates, recorded, late))
        };
        let started: Vec<_> = (0..workers).map(work).collect();
        started.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a worker panicked")?)
    })?;
    let seconds = begin.elapsed().as_secs_f64();
    let slowest = Duration::from_micros(late.load(Ordering::Relaxed) as u64);
    println!(
        "{workers} workers: {candidates} candidates in {seconds:.1} s, {:.0} taken and recorded a second; the \
         slowest batch took {:.2} s",
        candidates as f64 / seconds,
        slowest.as_secs_f64()
    );
    Ok(())
}

fn not_a_farm(place: &Path) -> String {
    format!("{} is neither a farm file nor a URL", place.display())
}

/// A pipeline at some size on a made-up device.
struct Subject {
    pipeline: Pipeline,
    request: Realisation,
    device: Device,
}

impl Subject {
    fn new() -> Result<Subject, Any> {
        let device = Device { name: "made up".to_owned(), ..Device::preset("h200")? };
        let x = vars!(x);
        let input = Input::f32("input", 1);
        let pipeline = Pipeline::new("scale", [func("scale", x, input.at(x) * 2.0)])?;
        let region = Region::of_extents(&[1 << 20]);
        let request = Realisation::new(&pipeline).input("input", region.clone()).output("scale", region);
        Ok(Subject { pipeline, request, device })
    }

    fn trial(&self, schedule: &str) -> Trial {
        let kernel =
            KernelUse { name: "scale".to_owned(), registers: 32, spill_stores: 0, spill_loads: 0, shared: 0 };
        let sample = Sample {
            pipeline: self.pipeline.structural_hash(),
            sizes: Sizes::of(&self.request),
            schedule: schedule.to_owned(),
            origin: Origin::Search,
            device: self.device.name.clone(),
            fingerprint: self.device.fingerprint(),
            versions: vec![VERSIONS.to_owned()],
            status: Status::Measured,
            verified: true,
            times: Some(Times { min: 10.0, median: 10.1, runs: 20 }),
            kernels: vec![kernel; 4],
            compile_ms: 200.0,
        };
        Trial::new(sample, Some(10.0), 0.01)
    }
}

/// Puts compiled candidates into the queue.
fn fill(queue: &mut Queue, address: &Address, subject: &Subject, candidates: usize) -> Result<(), Any> {
    let mut records = store::open_existing(address)?;
    let begin = std::process::id();
    let options =
        Options { at_full_size: false, skip_spilling: true, timing: TimingOptions::quick(), finals: None };
    for number in 0..RUNS {
        queue.add_run("scale", "{}", Some("{}"))?;
        let run: Run = queue.take_run()?.ok_or("another process took the run")?;
        // A problem of its own.
        let sms = 100 + number as u32;
        let device = Device { name: format!("made up {begin} {number}"), sms, ..subject.device.clone() };
        let versions = vec![VERSIONS.to_owned()];
        let problem: ProblemId = records.problem(&subject.pipeline, &subject.request, &device, &versions)?;
        queue.set_problem(&run, problem)?;
        let wanted: Vec<Wanted> = (0..candidates / RUNS + usize::from(number < candidates % RUNS))
            .map(|schedule| Wanted {
                schedule: format!("scale\n  kernel scale  {begin} {number} {schedule}\n").repeat(10),
                origin: Origin::Search,
                predicted_us: Some(10.0),
            })
            .collect();
        for wanted in wanted.chunks(1000) {
            let wanted: Vec<&Wanted> = wanted.iter().collect();
            queue.put(&run, problem, &subject.device.fingerprint(), &options, &wanted)?;
        }
    }
    queue.store().read("UPDATE candidates SET state = 'compiled' WHERE state = 'queued' RETURNING 1", &[])?;
    Ok(())
}

/// Takes and records until all candidates are gone.
fn work(
    address: &Address,
    subject: &Subject,
    number: usize,
    candidates: usize,
    recorded: &AtomicUsize,
    late: &AtomicUsize,
) -> Result<(), Any> {
    let mut queue = Queue::open(address)?;
    let fingerprint = subject.device.fingerprint();
    let gpus = Gpus { count: 1, fingerprint: fingerprint.clone(), device: "{}".to_owned() };
    let joining = Joining {
        host: format!("made up {number}"),
        process: std::process::id(),
        roles: "run".to_owned(),
        versions: vec![VERSIONS.to_owned()],
        digest: "scale".to_owned(),
        gpus: Some(gpus),
    };
    let worker = queue.join(&joining)?;
    while recorded.load(Ordering::Relaxed) < candidates {
        let begin = Instant::now();
        let taken: Vec<Taken> = queue.take(Stage::Run { fingerprint: &fingerprint }, BATCH)?;
        if taken.is_empty() {
            thread::sleep(Duration::from_millis(5));
            continue;
        }
        let done =
            |taken: &Taken| Done { taken: taken.clone(), trial: subject.trial(&taken.schedule), factor: 1.0 };
        let done: Vec<Done> = taken.iter().map(done).collect();
        let counted = queue.record(worker, &done)?.into_iter().filter(|counted| *counted).count();
        recorded.fetch_add(counted, Ordering::Relaxed);
        late.fetch_max(begin.elapsed().as_micros() as usize, Ordering::Relaxed);
    }
    queue.leave(worker)?;
    Ok(())
}
