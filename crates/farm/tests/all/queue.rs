//! The queue of a farm, on a PostgreSQL server: who may write what, and what becomes of candidates whose
//! workers end.

use warploom_farm::address::Address;
use warploom_farm::queue::Queue;
use warploom_farm::queue::candidates::{BATCH, Done, MOST_LOSSES, MOST_VANISHED, Options, Stage, Taken};
use warploom_farm::queue::code::Packed;
use warploom_farm::queue::fence::Fenced;
use warploom_farm::queue::runs::{NewRun, Run, RunEnd};
use warploom_farm::queue::workers::{Gpus, JoinError, Joining};
use warploom_farm::store;
use warploom_runtime::TimingOptions;
use warploom_tune::records::{ProblemId, Records, RecordsError, RunKey, Store};
use warploom_tune::sample::Origin;
use warploom_tune::tuning::{FinalRounds, Finals, Wanted};

use crate::harness::Running;
use crate::harness::trials::{problem, trial, versions};

const KIND: &str = "kind of GPU";

/// A farm with a run of one problem.
struct Farm {
    address: Address,
    queue: Queue,
    run: Run,
    problem: ProblemId,
    worker: i64,
}

fn joining(process: u32, digest: &str) -> Joining {
    Joining {
        host: "here".to_owned(),
        process,
        roles: "all".to_owned(),
        versions: versions(),
        digest: digest.to_owned(),
        gpus: Some(Gpus { count: 1, fingerprint: KIND.to_owned(), device: "{}".to_owned() }),
    }
}

fn options() -> Options {
    Options { at_full_size: false, skip_spilling: true, timing: TimingOptions::quick(), finals: None }
}

fn wanted(count: usize) -> Vec<Wanted> {
    let wants = |number| Wanted {
        schedule: format!("schedule {number}"),
        origin: Origin::Search,
        predicted_us: Some(10.0 + f64::from(number)),
    };
    (0..count as u32).map(wants).collect()
}

fn overtaken<T>(done: Result<T, RecordsError>) -> bool {
    matches!(done, Err(RecordsError::Overtaken { .. }))
}

impl Farm {
    fn new(server: &Running) -> Farm {
        let address = server.address();
        let mut records = store::open(&address).unwrap();
        let problem = problem(&mut records);
        let mut queue = Queue::open(&address).unwrap();
        let worker = queue.join(&joining(1, "one")).unwrap();
        queue.add_run("run", "{}", Some("{}")).unwrap();
        let run = queue.take_run().unwrap().unwrap();
        queue.set_problem(&run, problem).unwrap();
        Farm { address, queue, run, problem, worker }
    }

    fn put(&mut self, count: usize) -> u64 {
        let wanted = wanted(count);
        let wanted: Vec<&Wanted> = wanted.iter().collect();
        self.queue.put(&self.run, self.problem, KIND, &options(), &wanted).unwrap()
    }

    /// Another process.
    fn other(&self) -> Queue {
        let mut other = Queue::open(&self.address).unwrap();
        other.join(&joining(2, "one")).unwrap();
        other
    }

    fn records(&self) -> Records {
        store::open_existing(&self.address).unwrap()
    }

    fn compile(&mut self, count: usize) {
        let taken = self.queue.take(Stage::Compile, count).unwrap();
        for taken in taken {
            assert!(self.queue.compiled(self.worker, &taken, &packed(&taken)).unwrap());
        }
    }
}

fn packed(taken: &Taken) -> Packed {
    let code = [("shared".to_owned(), vec![1]), (format!("own {}", taken.id), vec![2])];
    Packed { built: vec![3], code: code.into() }
}

fn done(taken: &Taken) -> Done {
    Done { taken: taken.clone(), trial: trial(&taken.schedule, 20.0), factor: 1.0 }
}

const RUN: Stage<'_> = Stage::Run { fingerprint: KIND };

#[test]
fn candidates_become_trials_on_postgres() {
    let Some(server) = Running::start("candidates_become_trials_on_postgres") else { return };
    let mut farm = Farm::new(&server);
    assert_eq!(farm.put(3), 3);
    assert_eq!(farm.put(4), 1, "three are there");
    assert!(farm.queue.take(RUN, BATCH).unwrap().is_empty(), "nothing is compiled");
    while !is_compiled(&mut farm) {}
    let mut recorded = 0;
    while recorded < 4 {
        let taken = farm.queue.take(RUN, BATCH).unwrap();
        assert!(!taken.is_empty());
        let code = farm.queue.code(taken[0].id).unwrap();
        assert_eq!(code.len(), 2);
        let done: Vec<Done> = taken.iter().map(done).collect();
        assert!(farm.queue.record(farm.worker, &done).unwrap().into_iter().all(|counted| counted));
        // What another process would do with the same candidates does not count.
        assert!(farm.queue.record(farm.worker, &done).unwrap().into_iter().all(|counted| !counted));
        recorded += done.len();
    }
    assert_eq!(farm.records().trials(Some(farm.problem)).unwrap().len(), 4);
    assert_eq!(farm.put(4), 0, "all have trials");
    assert_eq!(rows(&farm.queue, "SELECT 1 FROM code"), 0, "nobody needs it any more");
}

/// Compiles some of what is left; returns whether nothing is.
fn is_compiled(farm: &mut Farm) -> bool {
    farm.compile(BATCH);
    rows(&farm.queue, "SELECT 1 FROM candidates WHERE state <> 'compiled'") == 0
}

fn rows(queue: &Queue, query: &str) -> usize {
    queue.store().read(query, &[]).unwrap().len()
}

#[test]
fn a_paused_proposer_writes_nothing_on_postgres() {
    let Some(server) = Running::start("a_paused_proposer_writes_nothing_on_postgres") else { return };
    let mut farm = Farm::new(&server);
    let mut records = Records::over(Fenced::open(&farm.address, farm.run.fence()).unwrap());
    let key = RunKey("key".to_owned());
    records.run(farm.problem, &key).unwrap();
    let mut other = farm.other();
    assert_eq!(other.take_run().unwrap(), None, "its process lives");
    let old = farm.run.clone();
    farm.queue.give_run_back(&old).unwrap();
    let new = other.take_run().unwrap().unwrap();
    assert_eq!((new.id, new.epoch), (old.id, old.epoch + 1));
    // Everything that a process writes for a run, by one that does not know yet.
    let wanted = wanted(1);
    let wanted: Vec<&Wanted> = wanted.iter().collect();
    assert!(overtaken(farm.queue.put(&old, farm.problem, KIND, &options(), &wanted)));
    assert!(overtaken(farm.queue.set_outlook(&old, 1, 0.5)));
    assert!(overtaken(farm.queue.set_device(&old, "{}")));
    assert!(overtaken(farm.queue.withdraw(&old)));
    assert!(overtaken(farm.queue.end_run(&old, RunEnd::Finished, "")));
    let rounds = FinalRounds { count: 1, retime: true };
    assert!(overtaken(farm.queue.put_finals(&old, farm.problem, KIND, rounds)));
    assert!(overtaken(records.finish_iteration(farm.problem, &key, 1, None).map(drop)));
    assert!(overtaken(records.record(farm.problem, &trial("late", 1.0)).map(drop)));
    assert!(records.iterations(farm.problem).unwrap().is_empty());
    assert_eq!(other.put(&new, farm.problem, KIND, &options(), &wanted).unwrap(), 1);
    other.end_run(&new, RunEnd::Finished, "").unwrap();
}

#[test]
fn a_paused_worker_records_nothing_on_postgres() {
    let Some(server) = Running::start("a_paused_worker_records_nothing_on_postgres") else { return };
    let mut farm = Farm::new(&server);
    farm.put(1);
    farm.compile(1);
    let slow = farm.queue.take(RUN, 1).unwrap().remove(0);
    let mut records = Records::over(Fenced::open(&farm.address, slow.fence()).unwrap());
    records.set_retimed(&[]).unwrap();
    // It counts as gone, and another one takes the candidate.
    farm.queue.give_back(std::slice::from_ref(&slow), false).unwrap();
    let mut other = farm.other();
    let fast = other.take(RUN, 1).unwrap().remove(0);
    assert_eq!((fast.id, fast.claim), (slow.id, slow.claim + 1));
    assert!(!farm.queue.start(slow.id, slow.claim).unwrap());
    assert_eq!(farm.queue.record(farm.worker, &[done(&slow)]).unwrap(), [false]);
    assert!(!farm.queue.end_finals(&slow, &Ok(Finals::default())).unwrap());
    assert!(overtaken(records.set_retimed(&[])));
    farm.queue.lose(&slow).unwrap();
    assert!(farm.records().trials(Some(farm.problem)).unwrap().is_empty());
    assert_eq!(other.record(farm.worker, &[done(&fast)]).unwrap(), [true]);
}

/// A process that is suspended keeps its connection.
#[test]
fn a_silent_worker_counts_as_gone_until_it_shows_up_on_postgres() {
    let Some(server) = Running::start("a_silent_worker_counts_as_gone_until_it_shows_up_on_postgres") else {
        return;
    };
    let mut farm = Farm::new(&server);
    farm.put(2);
    while !is_compiled(&mut farm) {}
    let taken = [(); 2].map(|()| farm.queue.take(RUN, 1).unwrap().remove(0));
    let mut other = farm.other();
    assert_eq!((other.revive().unwrap(), other.take_run().unwrap()), (0, None), "it lives");
    let silent = format!("UPDATE workers SET seen_at = seen_at - 100 WHERE id = {} RETURNING 1", farm.worker);
    assert_eq!(rows(&farm.queue, &silent), 1);
    assert_eq!(other.revive().unwrap(), 2);
    let run = other.take_run().unwrap().unwrap();
    assert_eq!((run.id, run.epoch), (farm.run.id, farm.run.epoch + 1));
    let again = other.take(RUN, 1).unwrap().remove(0);
    assert_eq!((again.id, again.claim), (taken[0].id, taken[0].claim + 1));
    // It goes on where it stopped. What nobody else has taken is still its own.
    farm.queue.show_up(farm.worker).unwrap();
    assert_eq!(farm.queue.record(farm.worker, &[done(&taken[0]), done(&taken[1])]).unwrap(), [false, true]);
    assert_eq!(other.record(farm.worker, &[done(&again)]).unwrap(), [true]);
    assert_eq!(farm.records().trials(Some(farm.problem)).unwrap().len(), 2);
}

#[test]
fn what_a_worker_had_is_free_when_it_ends_on_postgres() {
    let Some(server) = Running::start("what_a_worker_had_is_free_when_it_ends_on_postgres") else { return };
    let mut farm = Farm::new(&server);
    farm.put(1);
    farm.compile(1);
    for time in 0..MOST_VANISHED {
        let mut doomed = farm.other();
        let taken = doomed.take(RUN, 1).unwrap().remove(0);
        assert_eq!((taken.vanished, taken.given_up()), (time, None));
        assert!(doomed.start(taken.id, taken.claim).unwrap());
        assert_eq!(farm.queue.revive().unwrap(), 0, "it lives");
        drop(doomed);
        while farm.queue.revive().unwrap() == 0 {}
    }
    let taken = farm.queue.take(RUN, 1).unwrap().remove(0);
    assert!(taken.given_up().unwrap().contains("10 times"));
    farm.queue.give_back(std::slice::from_ref(&taken), false).unwrap();
    // One that had not begun is not to blame.
    let mut doomed = farm.other();
    let before = doomed.take(RUN, 1).unwrap().remove(0).vanished;
    drop(doomed);
    while farm.queue.revive().unwrap() == 0 {}
    assert_eq!(farm.queue.take(RUN, 1).unwrap()[0].vanished, before);
}

#[test]
fn a_candidate_that_crashes_is_tried_three_times_on_postgres() {
    let Some(server) = Running::start("a_candidate_that_crashes_is_tried_three_times_on_postgres") else {
        return;
    };
    let mut farm = Farm::new(&server);
    farm.put(1);
    farm.compile(1);
    for _ in 0..MOST_LOSSES {
        let taken = farm.queue.take(RUN, 1).unwrap().remove(0);
        assert_eq!(taken.given_up(), None);
        farm.queue.lose(&taken).unwrap();
    }
    let taken = farm.queue.take(RUN, 1).unwrap().remove(0);
    assert!(taken.given_up().unwrap().contains("crashed 3 times"));
}

#[test]
fn lost_machine_code_is_compiled_again_on_postgres() {
    let Some(server) = Running::start("lost_machine_code_is_compiled_again_on_postgres") else { return };
    let mut farm = Farm::new(&server);
    farm.put(1);
    farm.compile(1);
    rows(&farm.queue, "DELETE FROM code RETURNING 1");
    let taken = farm.queue.take(RUN, 1).unwrap().remove(0);
    assert!(farm.queue.code(taken.id).unwrap().is_empty());
    farm.queue.give_back(std::slice::from_ref(&taken), true).unwrap();
    farm.compile(1);
    let taken = farm.queue.take(RUN, 1).unwrap().remove(0);
    assert_eq!((farm.queue.code(taken.id).unwrap().len(), taken.losses), (2, 0));
}

#[test]
fn others_run_the_same_program_or_are_refused_on_postgres() {
    let Some(server) = Running::start("others_run_the_same_program_or_are_refused_on_postgres") else {
        return;
    };
    let mut farm = Farm::new(&server);
    let mut other = Queue::open(&farm.address).unwrap();
    let refused = other.join(&joining(2, "another")).unwrap_err();
    assert!(matches!(&refused, JoinError::OtherProgram { host, .. } if host == "here"), "{refused}");
    assert!(refused.to_string().contains("use the same program everywhere"));
    farm.queue.leave(farm.worker).unwrap();
    other.join(&joining(2, "another")).unwrap();
}

#[test]
fn a_stopped_run_ends_for_everybody_on_postgres() {
    let Some(server) = Running::start("a_stopped_run_ends_for_everybody_on_postgres") else { return };
    let mut farm = Farm::new(&server);
    farm.put(2);
    assert_eq!(farm.queue.show_up(farm.worker).unwrap().runs, 1);
    assert_eq!(farm.queue.stop_runs().unwrap(), 1);
    assert!(farm.queue.pending(farm.problem).unwrap().is_empty());
    assert_eq!(farm.queue.show_up(farm.worker).unwrap().runs, 0);
    assert!(overtaken(farm.queue.end_run(&farm.run, RunEnd::Finished, "")));
    farm.queue.dismiss().unwrap();
    assert!(farm.queue.show_up(farm.worker).unwrap().leave);
}

#[test]
fn a_task_can_be_replaced_by_one_that_says_more_on_postgres() {
    let Some(server) = Running::start("a_task_can_be_replaced_by_one_that_says_more_on_postgres") else {
        return;
    };
    let mut farm = Farm::new(&server);
    let new = ["one", "two"].map(|name| NewRun { name, task: "vague", expected: 24 });
    let ids = farm.queue.add_runs(&new, Some("{}")).unwrap();
    assert!(ids.len() == 2 && ids[0] < ids[1], "{ids:?}");
    assert_eq!(rows(&farm.queue, "SELECT 1 FROM runs WHERE state = 'waiting' AND expected = 24"), 2);
    let run = farm.queue.take_run().unwrap().unwrap();
    assert_eq!((run.id, run.task.as_str()), (ids[0], "vague"));
    farm.queue.set_task(&run, "precise").unwrap();
    let task = |farm: &Farm, run| farm.queue.task(run).unwrap().unwrap().0;
    assert_eq!((task(&farm, ids[0]).as_str(), task(&farm, ids[1]).as_str()), ("precise", "vague"));
    farm.queue.give_run_back(&run).unwrap();
    let again = farm.queue.take_run().unwrap().unwrap();
    assert_eq!((again.id, again.task.as_str()), (ids[0], "precise"));
    assert!(overtaken(farm.queue.set_task(&run, "late")));
    assert!(farm.queue.add_runs(&[], None).unwrap().is_empty());
}

/// Two runs that always have candidates: one improves, the other does not.
#[test]
fn an_improving_run_gets_most_trials_on_postgres() {
    let Some(server) = Running::start("an_improving_run_gets_most_trials_on_postgres") else { return };
    let mut farm = Farm::new(&server);
    farm.queue.add_run("flat", "{}", Some("{}")).unwrap();
    let flat = farm.queue.take_run().unwrap().unwrap();
    let runs = [farm.run.clone(), flat];
    let (mut times, mut order) = ([Vec::new(), Vec::new()], Vec::new());
    let mut number = 0;
    while order.len() < 600 {
        for (run, times) in runs.iter().zip(&times) {
            farm.queue.set_outlook(run, 1000, warploom_farm::fairness::gain(times)).unwrap();
            let waiting = format!("SELECT 1 FROM candidates WHERE run = {}", run.id);
            let missing = 40 - rows(&farm.queue, &waiting);
            let wants: Vec<Wanted> = (0..missing)
                .map(|_| {
                    number += 1;
                    let schedule = format!("schedule {number}");
                    Wanted { schedule, origin: Origin::Search, predicted_us: None }
                })
                .collect();
            let wants: Vec<&Wanted> = wants.iter().collect();
            farm.queue.put(run, farm.problem, KIND, &options(), &wants).unwrap();
        }
        rows(&farm.queue, "UPDATE candidates SET state = 'compiled' WHERE state = 'queued' RETURNING 1");
        let taken = farm.queue.take(RUN, BATCH).unwrap();
        for taken in &taken {
            let which = usize::from(taken.run != farm.run.id);
            let count = times[which].len() as i32;
            times[which].push(Some(if which == 0 { 100.0 * 0.995_f64.powi(count) } else { 50.0 }));
            order.push(which);
        }
        let done: Vec<Done> = taken.iter().map(done).collect();
        farm.queue.record(farm.worker, &done).unwrap();
    }
    let later = &order[100..];
    let flat = later.iter().filter(|which| **which == 1).count() as f64 / later.len() as f64;
    assert!((0.05..=0.30).contains(&flat), "{flat}");
}
