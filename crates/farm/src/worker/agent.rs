//! The state that the threads of a worker share.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use warploom_cost::Analytic;
use warploom_schedule::Schedule;
use warploom_target::Device;
use warploom_tune::records::RecordsError;
use warploom_tune::sample::Status;
use warploom_tune::tuning::{Assigned, Task, refused};
use warploom_tune::worker::{OpenBench, versions_of};

use super::{Gpus, News, Opened, Options, Role, Summary, WorkError, Workshop, compile, propose, run};
use crate::queue::Queue;
use crate::queue::candidates::{BATCH, Done, Stage, Taken};
use crate::queue::workers::{self, Joining};
use crate::server::machine;

/// The interval in which a worker reports, and looks for candidates of lost workers.
const BEAT: Duration = Duration::from_secs(2);

/// The approximate number of workers that look for such candidates in that time.
const LOOKING: u32 = 4;

/// Pauses while there is nothing to do: the first, and the longest. The longest grows with the number of workers, by
/// [`PER_WORKER`], so that waiting workers do not load the server.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));
const PER_WORKER: Duration = Duration::from_millis(5);

/// The time without runs after which a worker that stays until all is done ends.
const DONE: Duration = Duration::from_secs(4);

/// Stack size of threads that lower kernels, which recurse as deeply as expressions nest.
const STACK_BYTES: usize = 64 << 20;

/// The most tasks that are kept open.
const OPEN: usize = 6;

/// The state that the threads of a worker share.
pub(super) struct Agent<'a> {
    pub options: &'a Options,
    pub workshop: &'a dyn Workshop,
    /// The number of this worker.
    pub id: i64,
    pub versions: Vec<String>,
    /// When it becomes true, all threads end after their current work.
    pub ending: AtomicBool,
    pub hear: &'a (dyn Fn(&News) + Sync),
    queue: Mutex<Queue>,
    open: Mutex<VecDeque<(i64, Arc<Order>)>>,
    compiled: AtomicU64,
    recorded: AtomicU64,
    /// The number of workers of the farm.
    workers: AtomicU32,
}

/// A run that this worker works on.
pub(super) struct Order {
    pub opened: Opened,
    pub device: Device,
    pub model: Analytic,
}

impl Order {
    /// The task, as far as measuring needs it.
    pub fn task<'t>(&'t self, ending: &'t AtomicBool) -> Task<'t> {
        Task {
            subject: self.opened.subject.clone(),
            small: self.opened.small.clone(),
            tolerance: self.opened.tolerance,
            model: &self.model,
            search: Default::default(),
            deadline: None,
            stop: ending,
        }
    }
}

/// Works until `stop` is true, the farm asks this worker to leave, or all is done.
///
/// # Errors
/// If the worker cannot join, or cannot continue. Its claims are freed then.
pub fn work(
    options: &Options,
    workshop: &dyn Workshop,
    gpus: Gpus<'_>,
    stop: &AtomicBool,
    hear: &(dyn Fn(&News) + Sync),
) -> Result<Summary, WorkError> {
    let versions = versions_of(options.fake.is_some());
    let mut queue = Queue::open(&options.address)?;
    let joining = Joining {
        host: machine(),
        process: std::process::id(),
        roles: options.roles.to_string(),
        versions: versions.clone(),
        digest: options.digest.clone(),
        gpus: gpus.as_deref().map(gpus_of).transpose()?,
    };
    let id = queue.join(&joining)?;
    hear(&News::Joined(id));
    let agent = Agent {
        options,
        workshop,
        id,
        versions,
        ending: AtomicBool::new(false),
        hear,
        queue: Mutex::new(queue),
        open: Mutex::default(),
        compiled: AtomicU64::new(0),
        recorded: AtomicU64::new(0),
        workers: AtomicU32::new(1),
    };
    let worked = agent.work(gpus, stop);
    let left = agent.queue().leave(id);
    worked?;
    left?;
    Ok(Summary {
        compiled: agent.compiled.load(Ordering::Relaxed),
        recorded: agent.recorded.load(Ordering::Relaxed),
    })
}

fn gpus_of(bench: &OpenBench) -> Result<workers::Gpus, WorkError> {
    let device = bench.device();
    let json = device.to_json().map_err(|error| WorkError::Lost(error.to_string()))?;
    Ok(workers::Gpus { count: bench.gpus(), fingerprint: device.fingerprint(), device: json })
}

impl Agent<'_> {
    fn work(&self, gpus: Gpus<'_>, stop: &AtomicBool) -> Result<(), WorkError> {
        let roles = &self.options.roles;
        thread::scope(|scope| {
            let mut threads = Vec::new();
            let runs = if roles.contains(Role::Propose) { self.options.runs.max(1) } else { 0 };
            for _ in 0..runs {
                threads.push(start_scoped(scope, || self.guarded(|| propose::propose(self))));
            }
            if roles.contains(Role::Compile) {
                threads.push(start_scoped(scope, || self.guarded(|| compile::compile(self))));
            }
            if let Some(bench) = gpus {
                threads.push(start_scoped(scope, || self.guarded(|| run::run(self, bench))));
            }
            let beaten = self.guarded(|| self.beat(stop));
            let ended = threads.into_iter().map(|thread| thread?.join().unwrap_or(Err(WorkError::Panicked)));
            ended.collect::<Vec<_>>().into_iter().collect::<Result<(), _>>().and(beaten)
        })
    }

    /// Does the work of a thread. If it fails, all other threads end too.
    pub fn guarded(&self, work: impl FnOnce() -> Result<(), WorkError>) -> Result<(), WorkError> {
        let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(WorkError::Panicked));
        done.inspect_err(|_| self.end())
    }

    /// Reports that this worker is alive, until it ends.
    fn beat(&self, stop: &AtomicBool) -> Result<(), WorkError> {
        let mut without_runs: Option<Instant> = None;
        for beat in self.id.. {
            if self.is_ending() {
                break;
            }
            let orders = self.queue().show_up(self.id)?;
            self.workers.store(orders.workers, Ordering::Relaxed);
            // With many workers, a few look in turn.
            if beat % i64::from(orders.workers / LOOKING).max(1) == 0 {
                self.queue().revive()?;
            }
            without_runs = if orders.runs == 0 { without_runs.or(Some(Instant::now())) } else { None };
            let done = self.options.until_done && without_runs.is_some_and(|since| since.elapsed() > DONE);
            if orders.leave || done {
                self.ending.store(true, Ordering::Relaxed);
            }
            let next = Instant::now() + BEAT;
            while Instant::now() < next && !self.is_ending() {
                if stop.load(Ordering::Relaxed) {
                    self.ending.store(true, Ordering::Relaxed);
                }
                thread::sleep(PAUSES.0);
            }
        }
        Ok(())
    }

    /// Lets all threads end.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    pub fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    /// The opened task of a candidate; `None` if its run is over.
    pub fn order(&self, run: i64) -> Result<Option<Arc<Order>>, WorkError> {
        // Other threads usually want the same one.
        let mut open = lock(&self.open);
        if let Some((_, order)) = open.iter().find(|(known, _)| *known == run) {
            return Ok(Some(order.clone()));
        }
        let Some((task, device)) = self.queue().task(run)? else { return Ok(None) };
        let device = Device::from_json(&device);
        let device = device.map_err(|error| WorkError::Task { run, why: error.to_string() })?;
        let opened = self.workshop.open(&task, &device).map_err(|why| WorkError::Task { run, why })?;
        let order = Arc::new(Order { opened, model: Analytic::new(&device), device });
        open.push_back((run, order.clone()));
        if open.len() > OPEN {
            open.pop_front();
        }
        Ok(Some(order))
    }

    /// The parsed candidate, with a decision whether to try it.
    pub fn assigned(&self, taken: &Taken, order: &Order) -> Result<Assigned, Status> {
        let parsed = Schedule::parse(&taken.schedule, order.opened.subject.pipeline());
        let schedule = parsed.map_err(|errors| Status::NotLowered(errors.to_string()))?;
        match taken.given_up() {
            Some(why) => Err(Status::Crashed(why)),
            None => Ok(assigned(taken, schedule)),
        }
    }

    /// Records that a candidate is not tried.
    pub fn refuse(&self, taken: Taken, order: &Order, status: Status) -> Result<(), WorkError> {
        let problem = order.opened.subject.problem(&order.device);
        let problem = problem.map_err(|error| WorkError::Task { run: taken.run, why: error.to_string() })?;
        let task = order.task(&self.ending);
        let standing_in = assigned(&taken, problem.default_schedule());
        let mut trial = refused(&task, &standing_in, &order.device, &self.versions, status);
        trial.sample.schedule.clone_from(&taken.schedule);
        self.record(&[Done { taken, trial, factor: 1.0 }])
    }

    pub fn record(&self, done: &[Done]) -> Result<(), WorkError> {
        let counted = self.queue().record(self.id, done)?;
        self.recorded.fetch_add(counted.iter().filter(|counted| **counted).count() as u64, Ordering::Relaxed);
        Ok(())
    }

    pub fn count_compiled(&self) {
        self.compiled.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits a little longer each time, up to a limit.
    pub fn pause(&self, pause: &mut Duration) {
        let until = Instant::now() + *pause;
        while Instant::now() < until && !self.is_ending() {
            thread::sleep(PAUSES.0.min(*pause));
        }
        let longest = PER_WORKER * self.workers.load(Ordering::Relaxed);
        *pause = (*pause * 2).min(longest.clamp(PAUSES.0, PAUSES.1)).max(*pause);
    }
}

fn assigned(taken: &Taken, schedule: Schedule) -> Assigned {
    let options = &taken.options;
    Assigned {
        schedule,
        origin: taken.origin,
        predicted_us: taken.predicted_us,
        at_full_size: options.at_full_size,
        skip_spilling: options.skip_spilling,
        timing: options.timing.clone(),
    }
}

/// Candidates that were taken for several threads of this worker.
#[derive(Default)]
pub(super) struct Share {
    taken: Mutex<VecDeque<Taken>>,
}

impl Share {
    /// The next candidate; waits for one. `None` if the worker ends.
    pub fn next(&self, agent: &Agent<'_>, stage: Stage<'_>) -> Result<Option<Taken>, RecordsError> {
        let mut pause = PAUSES.0;
        while !agent.is_ending() {
            let next = {
                let mut taken = lock(&self.taken);
                if taken.is_empty() {
                    taken.extend(agent.queue().take(stage, BATCH)?);
                }
                taken.pop_front()
            };
            match next {
                Some(next) => return Ok(Some(next)),
                None => agent.pause(&mut pause),
            }
        }
        Ok(None)
    }
}

/// Starts a thread with a deep stack.
pub(super) fn start_scoped<'s, 'e: 's, T: Send + 's>(
    scope: &'s thread::Scope<'s, 'e>,
    work: impl FnOnce() -> T + Send + 's,
) -> Result<thread::ScopedJoinHandle<'s, T>, WorkError> {
    let thread = Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
    thread.map_err(|error| WorkError::Lost(format!("cannot start a thread: {error}; use fewer")))
}

/// Ignores lock poisoning: the data is consistent even if a thread panicked while holding the lock.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
