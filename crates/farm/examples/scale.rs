//! Measures how many candidates a second the queue of a farm passes on: taken by workers in batches,
//! and recorded with all that a trial has.
//!
//! ```sh
//! cargo run --release -p warploom-farm --example scale -- farm/owner.json 100 20000
//! ```
//!
//! The arguments are the place of the records, the number of workers, and the number of candidates. Each
//! worker is a connection and a made-up GPU that needs no time, so what is measured is the database. All
//! begin when the last one has joined.

#![allow(clippy::print_stdout, reason = "the result of the program")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
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
    let all = All {
        address: &address,
        subject: &subject,
        candidates,
        pause: Duration::from_millis(5 * workers as u64)
            .clamp(Duration::from_millis(20), Duration::from_millis(500)),
        joined: Barrier::new(workers + 1),
        recorded: AtomicUsize::new(0),
        late: AtomicUsize::new(0),
    };
    let begin = Instant::now();
    let (joined, worked) = thread::scope(|scope| {
        let all = &all;
        let started: Vec<_> = (0..workers).map(|number| scope.spawn(move || work(all, number))).collect();
        all.joined.wait();
        let joined = begin.elapsed();
        let ended = started.into_iter().map(|worker| worker.join().map_err(|_| "a worker panicked")?);
        ended.collect::<Result<Vec<()>, Any>>().map(|_| (joined, begin.elapsed() - joined))
    })?;
    println!(
        "{workers} workers joined in {:.1} s, then {candidates} candidates in {:.1} s: {:.0} taken and recorded \
         a second; the slowest batch took {:.2} s",
        joined.as_secs_f64(),
        worked.as_secs_f64(),
        candidates as f64 / worked.as_secs_f64(),
        Duration::from_micros(all.late.load(Ordering::Relaxed) as u64).as_secs_f64()
    );
    Ok(())
}

/// What workers share.
struct All<'a> {
    address: &'a Address,
    subject: &'a Subject,
    candidates: usize,
    /// How long a worker waits that finds nothing to take: as long as those of a farm.
    pause: Duration,
    joined: Barrier,
    recorded: AtomicUsize,
    /// The longest time for a batch, in microseconds.
    late: AtomicUsize,
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
fn work(all: &All<'_>, number: usize) -> Result<(), Any> {
    let joined = join(all, number);
    all.joined.wait();
    let (mut queue, worker) = joined?;
    let fingerprint = all.subject.device.fingerprint();
    while all.recorded.load(Ordering::Relaxed) < all.candidates {
        let begin = Instant::now();
        let taken: Vec<Taken> = queue.take(Stage::Run { fingerprint: &fingerprint }, BATCH)?;
        if taken.is_empty() {
            thread::sleep(all.pause);
            continue;
        }
        let done = |taken: &Taken| Done {
            taken: taken.clone(),
            trial: all.subject.trial(&taken.schedule),
            factor: 1.0,
        };
        let done: Vec<Done> = taken.iter().map(done).collect();
        let counted = queue.record(worker, &done)?.into_iter().filter(|counted| *counted).count();
        all.recorded.fetch_add(counted, Ordering::Relaxed);
        all.late.fetch_max(begin.elapsed().as_micros() as usize, Ordering::Relaxed);
    }
    queue.leave(worker)?;
    Ok(())
}

fn join(all: &All<'_>, number: usize) -> Result<(Queue, i64), Any> {
    let mut queue = Queue::open(all.address)?;
    let fingerprint = all.subject.device.fingerprint();
    let joining = Joining {
        host: format!("made up {number}"),
        process: std::process::id(),
        roles: "run".to_owned(),
        versions: vec![VERSIONS.to_owned()],
        digest: "scale".to_owned(),
        gpus: Some(Gpus { count: 1, fingerprint, device: "{}".to_owned() }),
    };
    let worker = queue.join(&joining)?;
    Ok((queue, worker))
}
