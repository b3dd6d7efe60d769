//! Strategies that choose what a made-up device measures: what they find, what is recorded, and how runs go on.
//!
//! This is a program with a `main` of its own, as it is its own worker.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "a test says what it does")]

mod harness;
mod made_up;

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use made_up::{bench, place, subjects, trials, workload};
use warploom_cost::Featurizer;
use warploom_schedule::Schedule;
use warploom_strategy::{Draw, Point, Space, Strategy, Verdict, space};
use warploom_target::Device;
use warploom_tune::explore::{ExploreOptions, Explored, MODEL, check, explore, explore_with, names};
use warploom_tune::records::{Records, RunStep, StepOutcome};
use warploom_tune::sample::Origin;
use warploom_tune::tuning::{Ended, Event, TuneError};
use warploom_tune::worker;

const TESTS: [(&str, fn()); 14] = [
    ("every_strategy_finds_a_schedule", every_strategy_finds_a_schedule),
    ("the_same_seed_asks_the_same", the_same_seed_asks_the_same),
    ("a_stopped_run_goes_on", a_stopped_run_goes_on),
    ("a_killed_run_goes_on", a_killed_run_goes_on),
    ("two_processes_of_one_run_agree", two_processes_of_one_run_agree),
    ("seeds_do_not_mix", seeds_do_not_mix),
    ("the_model_learns_nothing_from_others", the_model_learns_nothing_from_others),
    ("refused_points_that_were_looked_at_are_counted", refused_points_that_were_looked_at_are_counted),
    ("what_spills_is_timed_on_request", what_spills_is_timed_on_request),
    ("a_strategy_that_repeats_itself_ends", a_strategy_that_repeats_itself_ends),
    ("what_is_refused_costs_nothing", what_is_refused_costs_nothing),
    ("a_strategy_that_changed_its_mind_does_not_go_on", a_strategy_that_changed_its_mind_does_not_go_on),
    ("the_model_asks_for_what_it_likes", the_model_asks_for_what_it_likes),
    ("settings_and_templates_are_as_given", settings_and_templates_are_as_given),
];

const FAULTS: &str = "fake:crash=5,wrong=5,compile-refuse=5,spill=10,seed=5";

fn main() {
    worker::entry();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [role, records, fake] = arguments.as_slice()
        && role == "be-an-explorer"
    {
        let ended = run(Path::new(records), fake, &options("opevo", 0)).tuned.ended;
        assert!(matches!(ended, Ended::Finished), "{ended:?}");
        return;
    }
    harness::run(&TESTS);
}

fn options(strategy: &str, seed: u64) -> ExploreOptions {
    let strategy = strategy.to_owned();
    ExploreOptions { strategy, seed, trials: 24, templates: 4, finalists: 2, ..ExploreOptions::default() }
}

/// A run until its end.
fn run(records: &Path, fake: &str, options: &ExploreOptions) -> Explored {
    run_until(records, fake, options, usize::MAX)
}

/// A run that is stopped after some measurements.
fn run_until(records: &Path, fake: &str, options: &ExploreOptions, most: usize) -> Explored {
    let mut records = Records::open(records).unwrap();
    let subjects = subjects();
    let mut observer = |event: &Event<'_>| {
        if matches!(event, Event::Measured { progress, .. } if progress.done >= most) {
            subjects.stop.store(true, Ordering::Relaxed);
        }
    };
    bench(fake).with(|bench| explore(&subjects.task(), options, bench, &mut records, &mut observer).unwrap())
}

/// The steps of a run as they must be repeatable. Which trial is recorded first depends on threads.
fn unfinished_steps(records: &Path, explored: &Explored) -> Vec<RunStep> {
    let records = Records::open_existing(records).unwrap();
    let problem = records.problems().unwrap()[0].id;
    let steps = records.steps(problem, &explored.run).unwrap();
    steps.into_iter().map(|step| RunStep { trial: None, ..step }).collect()
}

/// The steps of a run, all of which have outcomes.
fn steps(records: &Path, explored: &Explored) -> Vec<RunStep> {
    let steps = unfinished_steps(records, explored);
    assert!(steps.iter().all(|step| step.outcome != StepOutcome::Asked), "{steps:?}");
    steps
}

fn every_strategy_finds_a_schedule() {
    for name in names() {
        let place = place();
        let explored = run(&place.records, FAULTS, &options(name, 1));
        let Explored { tuned, tally, .. } = &explored;
        assert!(matches!(tuned.ended, Ended::Finished), "{name}: {:?}", tuned.ended);
        let bound = name != MODEL;
        assert_eq!((tally.trials, explored.exhausted, explored.templates > 1), (24, false, bound), "{name}");
        let steps = steps(&place.records, &explored);
        let of = |outcome: StepOutcome| steps.iter().filter(|step| step.outcome == outcome).count();
        assert_eq!(of(StepOutcome::Repeated), tally.repeated);
        assert_eq!((steps.len(), of(StepOutcome::Asked), of(StepOutcome::Refused)), (tally.steps, 0, 0));
        assert_eq!(steps.len(), 24 + tally.repeated);
        // The default schedule was measured before, and nothing was measured but what was asked for.
        let recorded = trials(&place.records);
        let default = recorded.iter().find(|trial| trial.sample.origin == Origin::Default).unwrap();
        let own: Vec<_> = recorded.iter().filter(|trial| trial.sample.origin != Origin::Default).collect();
        assert!(own.iter().all(|trial| (trial.sample.origin == Origin::Strategy) == bound), "{name}");
        assert!(own.iter().all(|trial| trial.predicted_us.is_some_and(|time| time > 0.0)), "{name}");
        let asked = own.len();
        assert_eq!((recorded.len(), asked + of(StepOutcome::Known)), (asked + 1, 24), "{name}");
        let best = steps.iter().filter_map(|step| step.time_us).fold(f64::INFINITY, f64::min);
        assert_eq!(tally.best_us, Some(best));
        let told = steps.iter().filter(|step| step.outcome.is_trial()).map(|step| step.time_us);
        assert_eq!(explored.times, told.collect::<Vec<_>>(), "{name}");
        let won = tuned.winner.as_ref().unwrap().trial.time_us().unwrap();
        assert!(won <= default.time_us().unwrap_or(f64::INFINITY), "{name}: {won}");
        assert!(best <= default.time_us().unwrap_or(f64::INFINITY), "{name}: {best}");
        let points: BTreeSet<&str> = steps.iter().map(|step| step.point.as_str()).collect();
        assert_eq!(points.len(), steps.len(), "{name} asks for a point twice");
        println!("  {name}: best {best:.1}, default {:?}, {tally:?}", default.time_us());
    }
}

fn the_same_seed_asks_the_same() {
    for name in names() {
        let [one, two] = [place(), place()];
        let runs = [&one, &two].map(|place| run(&place.records, FAULTS, &options(name, 3)));
        assert_eq!(steps(&one.records, &runs[0]), steps(&two.records, &runs[1]), "{name}");
        // The third time, nothing is measured.
        let again = run(&one.records, FAULTS, &options(name, 3));
        assert_eq!((again.tuned.progress.done, again.tally), (0, runs[0].tally), "{name}");
        assert_eq!(steps(&one.records, &again), steps(&two.records, &runs[1]), "{name}");
    }
}

fn a_stopped_run_goes_on() {
    for name in ["random", "genetic", "n-a2c", "anneal-q", "model-fixed", "model"] {
        let whole = place();
        let explored = run(&whole.records, FAULTS, &options(name, 0));
        let expected = steps(&whole.records, &explored);
        for most in [1, 7, 18] {
            let place = place();
            let stopped = run_until(&place.records, FAULTS, &options(name, 0), most);
            assert!(matches!(stopped.tuned.ended, Ended::Stopped), "{name} {:?}", stopped.tuned.ended);
            let before = trials(&place.records).len();
            assert_eq!(before, most, "{name}");
            let resumed = run(&place.records, FAULTS, &options(name, 0));
            assert_eq!(steps(&place.records, &resumed), expected, "{name} after {most}");
            assert_eq!(resumed.tally, explored.tally);
            assert_eq!(trials(&place.records).len(), before + resumed.tuned.progress.done);
        }
        let place = place();
        let mut stops = 0;
        while matches!(run_until(&place.records, FAULTS, &options(name, 0), 3).tuned.ended, Ended::Stopped) {
            stops += 1;
        }
        assert!(stops >= 5, "{name}: {stops}");
        assert_eq!(steps(&place.records, &explored), expected, "{name} after {stops} stops");
    }
}

/// A process that explores.
fn explorer(records: &Path, fake: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["be-an-explorer".as_ref(), records.as_os_str(), fake.as_ref()]);
    command.stdout(Stdio::null()).spawn().unwrap()
}

fn a_killed_run_goes_on() {
    let (whole, killed) = (place(), place());
    let explored = run(&whole.records, FAULTS, &options("opevo", 0));
    let expected = steps(&whole.records, &explored);
    let log = killed.folder.path().join("log");
    let fake = format!("{FAULTS},delay=10,log={}", log.display());
    let mut kills: u32 = 0;
    let finished = loop {
        let mut child = explorer(&killed.records, &fake);
        // Later and later, and never at the same point.
        let until = Instant::now() + Duration::from_millis(150 + 53 * u64::from(kills));
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if Instant::now() > until {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            std::thread::sleep(Duration::from_millis(3));
        };
        if let Some(status) = status {
            break status;
        }
        kills += 1;
        if killed.records.exists() && !trials(&killed.records).is_empty() {
            let so_far = unfinished_steps(&killed.records, &explored);
            assert!(so_far.len() <= expected.len());
            for (step, expected) in so_far.iter().zip(&expected) {
                let same = step.outcome == StepOutcome::Asked || step == expected;
                assert!(same && step.point == expected.point, "{step:?} {expected:?}");
            }
        }
    };
    assert!(finished.success() && kills >= 3, "{kills}");
    assert_eq!(steps(&killed.records, &explored), expected);
    // Only what a killed process was timing may have been timed again, and finalists are timed in turns.
    let lines = fs::read_to_string(log).unwrap();
    let different: BTreeSet<&str> = lines.lines().collect();
    let repeated = lines.lines().count() - different.len();
    assert!(repeated <= kills as usize + 2 * 5 * 2, "{repeated} after {kills} kills");
}

fn two_processes_of_one_run_agree() {
    let (alone, shared) = (place(), place());
    let explored = run(&alone.records, FAULTS, &options("opevo", 0));
    let mut children = [(); 2].map(|()| explorer(&shared.records, &format!("{FAULTS},delay=15")));
    assert!(children.iter_mut().all(|child| child.wait().unwrap().success()));
    assert_eq!(steps(&shared.records, &explored), steps(&alone.records, &explored));
}

fn seeds_do_not_mix() {
    let shared = place();
    let both = [0, 1].map(|seed| run(&shared.records, FAULTS, &options("anneal-q", seed)));
    assert!(both[0].run != both[1].run);
    for (seed, explored) in both.iter().enumerate() {
        let alone = place();
        let expected = run(&alone.records, FAULTS, &options("anneal-q", seed as u64));
        let asked = |steps: Vec<RunStep>| -> Vec<(String, Option<f64>)> {
            steps.into_iter().map(|step| (step.point, step.time_us)).collect()
        };
        let (mixed, alone) = (steps(&shared.records, explored), steps(&alone.records, &expected));
        assert_eq!(asked(mixed), asked(alone));
        assert_eq!(explored.tally, expected.tally);
    }
    // What the first run measured is known to any other, and counts as a trial.
    let other = run(&shared.records, FAULTS, &ExploreOptions { finalists: 1, ..options("anneal-q", 0) });
    assert_eq!((other.tuned.progress.done, other.tally), (0, both[0].tally));
}

fn the_model_learns_nothing_from_others() {
    let (alone, shared) = (place(), place());
    let expected = run(&alone.records, FAULTS, &options(MODEL, 5));
    run(&shared.records, FAULTS, &options("model-fixed", 0));
    run(&shared.records, FAULTS, &options(MODEL, 4));
    let mixed = run(&shared.records, FAULTS, &options(MODEL, 5));
    assert_eq!(mixed.times, expected.times);
    let known =
        steps(&shared.records, &mixed).iter().filter(|step| step.outcome == StepOutcome::Known).count();
    let measured = mixed.times.len() - known;
    assert!(known > 1 && mixed.tuned.progress.done == measured, "{known} {:?}", mixed.tuned.progress);
}

/// Looks at any points, and asks for those that are legal.
struct Careful {
    draw: Draw,
    refused: BTreeSet<Point>,
}

impl Strategy for Careful {
    fn ask(&mut self, space: &dyn Space, most: usize) -> Vec<Point> {
        let drawn: Vec<Point> = (0..most.max(20)).map(|_| space::random(space, &mut self.draw)).collect();
        let (mut legal, refused): (Vec<Point>, Vec<Point>) =
            drawn.into_iter().partition(|point| space.refusal(point).is_none());
        self.refused.extend(refused);
        legal.truncate(most);
        legal
    }

    fn tell(&mut self, _: &dyn Space, _: &[(Point, Verdict)]) {}

    fn key(&self) -> String {
        "careful".to_owned()
    }
}

fn refused_points_that_were_looked_at_are_counted() {
    let (place, subjects) = (place(), subjects());
    let mut records = Records::open(&place.records).unwrap();
    let mut tallies = Vec::new();
    // The second run is a replay.
    for _ in 0..2 {
        let mut careful = Careful { draw: Draw::new(7), refused: BTreeSet::new() };
        let explored = bench(FAULTS).with(|bench| {
            let (task, options) = (subjects.task(), options("", 0));
            explore_with(&mut careful, &task, &options, bench, &mut records, &mut |_| {}).unwrap()
        });
        assert_eq!((explored.tally.avoided, explored.tally.refused), (careful.refused.len(), 0));
        assert!(!careful.refused.is_empty());
        tallies.push(explored.tally);
    }
    assert_eq!(tallies[0], tallies[1]);
}

fn what_spills_is_timed_on_request() {
    let failed = |run_spilling: bool| {
        let place = place();
        let options = ExploreOptions { run_spilling, ..options("random", 0) };
        let explored = run(&place.records, "fake:spill=40", &options);
        let steps = steps(&place.records, &explored);
        assert!(steps.iter().all(|step| ["", "spilled"].contains(&step.message.as_str())), "{steps:?}");
        steps.iter().filter(|step| step.outcome == StepOutcome::Failed).count()
    };
    assert!((1..24).contains(&failed(false)));
    assert_eq!(failed(true), 0);
}

/// Asks for the same point again and again.
struct Stubborn;

impl Strategy for Stubborn {
    fn ask(&mut self, space: &dyn Space, most: usize) -> Vec<Point> {
        vec![space.origin(0); most]
    }

    fn tell(&mut self, _: &dyn Space, results: &[(Point, Verdict)]) {
        assert!(results.iter().all(|(_, verdict)| *verdict == results[0].1), "{results:?}");
    }

    fn key(&self) -> String {
        "stubborn".to_owned()
    }
}

fn a_strategy_that_repeats_itself_ends() {
    let mut records = Records::in_memory().unwrap();
    let subjects = subjects();
    let (task, options) = (subjects.task(), options("", 0));
    let explored = bench("fake").with(|bench| {
        explore_with(&mut Stubborn, &task, &options, bench, &mut records, &mut |_| {}).unwrap()
    });
    assert!(explored.exhausted && matches!(explored.tuned.ended, Ended::Finished));
    assert_eq!((explored.tally.trials, explored.tally.repeated), (1, explored.tally.steps - 1));
    assert!((2000..2100).contains(&explored.tally.steps), "{:?}", explored.tally);
}

/// Asks for any points, refused ones too.
struct Careless {
    draw: Draw,
    told: Vec<(Point, Verdict)>,
}

impl Careless {
    fn new(seed: u64) -> Careless {
        Careless { draw: Draw::new(seed), told: Vec::new() }
    }
}

impl Strategy for Careless {
    fn ask(&mut self, space: &dyn Space, most: usize) -> Vec<Point> {
        (0..most.min(5)).map(|_| space::random(space, &mut self.draw)).collect()
    }

    fn tell(&mut self, _: &dyn Space, results: &[(Point, Verdict)]) {
        self.told.extend_from_slice(results);
    }

    fn key(&self) -> String {
        "careless".to_owned()
    }
}

fn run_careless(records: &Path, strategy: &mut Careless) -> Explored {
    let mut records = Records::open(records).unwrap();
    let subjects = subjects();
    bench(FAULTS).with(|bench| {
        explore_with(strategy, &subjects.task(), &options("", 0), bench, &mut records, &mut |_| {}).unwrap()
    })
}

fn what_is_refused_costs_nothing() {
    let place = place();
    let mut careless = Careless::new(7);
    let explored = run_careless(&place.records, &mut careless);
    let tally = explored.tally;
    assert!(tally.trials == 24 && tally.refused > 0, "{tally:?}");
    assert_eq!(tally.steps, tally.trials + tally.refused + tally.repeated);
    let steps = steps(&place.records, &explored);
    assert_eq!((steps.len(), careless.told.len()), (tally.steps, tally.steps));
    let mut first: HashMap<&String, Option<f64>> = HashMap::new();
    for (step, (point, verdict)) in steps.iter().zip(&careless.told) {
        assert_eq!(step.point, point.to_string());
        match (step.outcome, &step.schedule_hash) {
            (StepOutcome::Refused, None) => {
                assert_eq!(*verdict, Verdict::Refused);
                assert!(step.message.len() > 20 && step.time_us.is_none(), "{step:?}");
            }
            (StepOutcome::Repeated, Some(hash)) => {
                let time = first[hash];
                assert_eq!(*verdict, time.map_or(Verdict::Failed, Verdict::Time), "{step:?}");
            }
            (_, Some(hash)) => {
                assert_eq!(*verdict, step.time_us.map_or(Verdict::Failed, Verdict::Time));
                assert!(step.message.is_empty() == step.time_us.is_some());
                assert!(first.insert(hash, step.time_us).is_none(), "measured twice: {step:?}");
            }
            _ => panic!("{step:?}"),
        }
    }
    // The same again is told the same.
    let mut again = Careless::new(7);
    run_careless(&place.records, &mut again);
    assert_eq!(again.told, careless.told);
}

fn a_strategy_that_changed_its_mind_does_not_go_on() {
    let place = place();
    let before = run_careless(&place.records, &mut Careless::new(7));
    let recorded = steps(&place.records, &before);
    let after = run_careless(&place.records, &mut Careless::new(8));
    assert!(
        matches!(after.tuned.ended, Ended::Failed(TuneError::Diverged { step: 0 })),
        "{:?}",
        after.tuned.ended
    );
    assert!(after.tuned.winner.is_some(), "what was found stays");
    assert_eq!(steps(&place.records, &before), recorded);
}

fn the_model_asks_for_what_it_likes() {
    let subjects = subjects();
    let problem = subjects.subject.problem(&Device::preset("h200").unwrap()).unwrap();
    let featurizer = Featurizer::new(&problem);
    let predicted = |strategy: &str| -> Vec<f64> {
        let place = place();
        run(&place.records, "fake", &options(strategy, 0));
        let asked =
            trials(&place.records).into_iter().filter(|trial| trial.sample.origin == Origin::Strategy);
        let schedules =
            asked.map(|trial| Schedule::parse(&trial.sample.schedule, problem.pipeline()).unwrap());
        let mut costs: Vec<f64> =
            schedules.map(|schedule| featurizer.cost(&schedule, &subjects.model)).collect();
        costs.sort_by(f64::total_cmp);
        costs
    };
    let (model, random) = (predicted("model-fixed"), predicted("random"));
    // Even the worst that the model asks for is better than most random points.
    assert!(model[model.len() - 1] < random[random.len() / 2], "{model:?} {random:?}");
    assert!(model[0] <= random[0], "{model:?} {random:?}");
}

fn settings_and_templates_are_as_given() {
    let unset = |settings: &str| {
        let settings = settings.to_owned();
        check(&ExploreOptions { settings, ..options("model-fixed", 0) }).map_err(|error| error.to_string())
    };
    assert_eq!(unset("pool=9,batch=2"), Ok(()));
    assert_eq!(unset("q=1"), Err("there is no setting `q`; there are pool, parents, batch".to_owned()));
    let place = place();
    let one = ExploreOptions { templates: 1, trials: 6, ..options("g-bfs", 0) };
    let alone = run(&place.records, "fake", &one);
    assert_eq!(alone.templates, 1);
    // The first point is that of the default schedule, which is known.
    let first = steps(&place.records, &alone).remove(0);
    let recorded = trials(&place.records);
    let default = recorded.iter().find(|trial| trial.sample.origin == Origin::Default).unwrap();
    assert_eq!((first.outcome, first.time_us), (StepOutcome::Known, default.sample.times.map(|it| it.min)));

    let text = "blur           inline input.repeat_edge, column\n  kernel blur  block x 32, y 4\n    \
                row        flat               shared\n    blur       threads x 32, y 4\n";
    let given = vec![Schedule::parse(text, &workload(300).pipeline).unwrap()];
    let random = ExploreOptions { strategy: "random".to_owned(), given, ..one };
    let two = run(&place.records, "fake", &random);
    assert_eq!(two.templates, 2);
    let fewer = run(&place.records, "fake", &ExploreOptions { given: Vec::new(), ..random });
    assert!(two.run != fewer.run, "another space is another run");
    let templates: BTreeSet<String> =
        steps(&place.records, &two).iter().map(|step| step.point[..1].to_owned()).collect();
    assert_eq!(templates.len(), 2, "{templates:?}");
}
