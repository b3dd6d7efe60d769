//! Random schedules: legal, bounded, reproducible and diverse.

use warploom_plan::*;
use warploom_schedule::*;

use crate::pipelines::{Case, case, cases};

const SEEDS: u64 = 200;

/// The maximum number of points of a stage in unrolled loops.
fn unrolled(schedule: &Schedule, problem: &Problem) -> i64 {
    let plan = problem.plan(schedule);
    let points = plan.nests.values().filter_map(|nest| match &nest.nest.mapping {
        Mapping::Threads(tiles) if tiles.unroll => {
            let loops = nest.footprint.as_ref()?.threads.as_ref()?;
            Some(loops.iter().map(|dim| dim.serial).product::<i64>())
        }
        _ => None,
    });
    points.max().unwrap_or(1)
}

#[test]
fn random_schedules_are_legal_and_bounded() {
    for Case { problem } in cases() {
        let most = MAX_WORK * work(&problem, &problem.default_schedule());
        for seed in 0..SEEDS {
            let schedule = problem.random_schedule(seed);
            let text = schedule.to_text(problem.pipeline());
            if let Err(violations) = problem.check(&schedule) {
                panic!("seed {seed}: {}\n{text}", violations[0]);
            }
            assert!(work(&problem, &schedule) <= most, "seed {seed} works too much:\n{text}");
            assert!(size(&problem, &schedule) <= MAX_SIZE, "seed {seed} is too large:\n{text}");
            assert!(unrolled(&schedule, &problem) <= 64, "seed {seed} unrolls too much:\n{text}");
            let parsed = Schedule::parse(&text, problem.pipeline());
            assert_eq!(parsed.as_ref(), Ok(&schedule), "seed {seed}:\n{text}");
        }
    }
}

#[test]
fn changes_lead_from_one_schedule_to_another() {
    for Case { problem } in cases() {
        let (pipeline, default) = (problem.pipeline(), problem.default_schedule());
        for seed in 0..50 {
            let from = if seed % 2 == 0 { default.clone() } else { problem.random_schedule(seed + 1) };
            let to = problem.random_schedule(seed);
            let mut replayed = from.clone();
            for change in Change::between(&from, &to) {
                let parsed = Change::parse(&change.to_text(pipeline), pipeline);
                assert_eq!(parsed.as_ref(), Ok(&change));
                change.apply(&mut replayed);
            }
            assert_eq!(replayed, to, "seed {seed}");
        }
    }
    let pipeline = cases()[0].problem.pipeline().clone();
    for (text, part) in
        [("swap a b", "is not a change"), ("inline nothing", "`nothing`"), ("put x", "is not a change")]
    {
        let error = Change::parse(text, &pipeline).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn a_seed_gives_one_schedule() {
    for Case { problem } in cases() {
        let text = |seed: u64| problem.random_schedule(seed).to_text(problem.pipeline());
        let texts: Vec<String> = (0..50).map(text).collect();
        assert!((0..20).all(|seed| texts[seed as usize] == text(seed)));
        let mut different = texts.clone();
        different.sort();
        different.dedup();
        let name = problem.pipeline().name();
        assert!(different.len() * 10 >= texts.len() * 9, "{name} has only {} schedules", different.len());
    }
}

/// The least share of the eligible cases in which each decision is taken. The rarest, a kernel of its own for a tuple, has
/// a share of about 5 % of 4,500 cases.
const TAKEN: f64 = 0.04;

/// The number of eligible stages that is enough to judge.
const ENOUGH: u64 = 200;

#[test]
fn every_decision_is_taken_for_every_kind_of_stage() {
    let [mut coverage, mut rest] = [Coverage::default(), Coverage::default()];
    for (number, Case { problem }) in cases().iter().enumerate() {
        let part = if number % 2 == 0 { &mut coverage } else { &mut rest };
        for seed in 0..SEEDS {
            part.add(problem, &problem.random_schedule(seed));
        }
    }
    coverage.merge(&rest);
    assert_eq!(coverage.schedules(), SEEDS * cases().len() as u64);
    assert!(coverage.rare(TAKEN, ENOUGH).is_empty(), "{:#?}\n{coverage}", coverage.rare(TAKEN, ENOUGH));
    for (word, share) in coverage.numbers() {
        // Few of these pipelines have loops that put asynchronous copies to the test.
        let enough = if word == "async" { 20 } else { ENOUGH };
        assert!(share.eligible >= enough && share.part() >= TAKEN, "{word}: {share:?}");
    }
    // Every row and column has an entry.
    for decision in Choice::ALL {
        let taken: u64 = StageKind::ALL.iter().map(|kind| coverage.share(decision, *kind).taken).sum();
        assert!(taken > 0, "nothing is {}\n{coverage}", decision.name());
    }
    for kind in StageKind::ALL {
        let taken: u64 = Choice::ALL.iter().map(|decision| coverage.share(*decision, kind).taken).sum();
        assert!(taken > 0, "there is no {}\n{coverage}", kind.name());
    }
    assert!(coverage.levels().part() >= 0.7, "{coverage}");
    let copies = coverage.vector_copies();
    assert!(copies.eligible >= 20 && copies.part() >= 0.2, "{coverage}");
}

#[test]
fn decisions_are_counted() {
    let case = case("stencils");
    let count = |lines: &str| {
        let mut coverage = Coverage::default();
        coverage.add(&case.problem, &case.read(lines));
        move |decision: Choice, kind: StageKind| {
            let share = coverage.share(decision, kind);
            (share.eligible, share.taken)
        }
    };
    use Choice::*;
    use StageKind::*;
    let share = count(
        "inline gray
  kernel out block x 32, y 8
    input.stage flat shared
    input.repeat_edge threads x 16 shared
    rows flat shared
    columns threads x 16, y 64 serial x 2 unroll private
    out threads x 16, y 64 serial x 2
",
    );
    // `gray` and `columns` are pointwise and stencil, `out` and `rows` too.
    assert_eq!(share(Inlined, Pointwise), (1, 1));
    assert_eq!(share(Inlined, Boundary), (1, 0));
    assert_eq!(share(Inlined, Stencil), (2, 0));
    assert_eq!(share(Root, Pointwise), (2, 1));
    assert_eq!(share(SharedFlat, Stencil), (2, 1));
    assert_eq!(share(SharedThreads, Boundary), (1, 1));
    assert_eq!(share(StagedInput, InputCopy), (1, 1));
    assert_eq!(share(Private, Stencil), (1, 1));
    assert_eq!(share(Registers, Stencil), (2, 0));
    assert_eq!(share(BlockCut, Pointwise), (1, 1));
    assert_eq!(share(BlockSeveral, Pointwise), (1, 1));
    assert_eq!(share(BlockWhole, Pointwise), (1, 0));
    assert_eq!(share(ThreadsOne, Boundary), (1, 1));
    assert_eq!(share(Rounds, Boundary), (1, 1));
    assert_eq!(share(ThreadsTwo, Stencil), (2, 1));
    assert_eq!(share(Idle, Stencil), (2, 1));
    assert_eq!(share(Unrolled, Stencil), (2, 1));
    assert_eq!(share(Unrolled, Pointwise), (1, 0));
}

#[test]
fn reductions_are_counted() {
    let case = case("doubling");
    let mut coverage = Coverage::default();
    let schedule = case.read(
        "inline input.repeat_edge, steps
  kernel log.0 flat
  around log.1.rt 1
    kernel log.1 block x 8, ry 4 threads x 8, ry 4
  kernel out flat
",
    );
    coverage.add(&case.problem, &schedule);
    let taken = |decision: Choice| coverage.share(decision, StageKind::Scan).taken;
    assert_eq!([Choice::Around, Choice::Over].map(taken), [1, 0]);
    assert_eq!([Choice::ReductionOnBlocks, Choice::ReductionOnThreads].map(taken), [1, 1]);
    assert_eq!(taken(Choice::Reordered), 0);
}

#[test]
fn work_counts_every_evaluation() {
    let case = case("product");
    let work = |lines: &str| work(&case.problem, &case.read(lines));
    let (points, first, second) = (24.0 * 24.0, 24.0 * 24.0 * 24.0, 24.0 * 24.0 * 24.0);
    // Each stage once: `gain`, `first`, `second`, `out`.
    let root = "\n  kernel gain flat\n  kernel first.0 flat\n  kernel first.1 flat\n  kernel second.0 flat\n";
    let rest = "  kernel second.1 flat\n  kernel out flat\n";
    let once = points + (points + first) + (points + second) + points;
    assert_eq!(work(&format!("{root}{rest}")), once);
    // Loops around a kernel and over a block do not change the work, even if they do not divide evenly.
    let parts = "  around second.1.h 1\n    kernel second.1 block x 5\n      over second.1.k 5\n        second.1 flat\n  kernel out flat\n";
    assert_eq!(work(&format!("{root}{parts}")), once);
    // Inlined: once per use.
    let inlined = root.replacen("\n  kernel gain flat", "inline gain", 1);
    assert_eq!(work(&format!("{inlined}{rest}")), once - points + first);
    // In registers: every thread sums its whole row, for its own points.
    let registers = "\n  kernel gain flat\n  kernel first.0 flat\n  kernel first.1 flat\n  kernel out block x 8, y 6 threads x 4, y 6 serial x 2\n    second registers\n";
    assert_eq!(work(registers), once);
    // In blocks: the rows of `first` once per block, with 3 blocks along y and 2 along x.
    let shared = "\n  kernel gain flat\n  kernel second.0 flat\n  kernel second.1 block x 12, y 8\n    first.0 flat shared\n    first.1 flat shared\n    second.1 flat\n  kernel out flat\n";
    let box_points = 12.0 * 24.0;
    assert_eq!(work(shared), once - (points + first) + 6.0 * box_points * (1.0 + 24.0));
    // A staged input also counts.
    let staged = rest.replace(
        "kernel second.1 flat",
        "kernel second.1 block y 4\n    B.stage flat shared\n    second.1 flat",
    );
    assert_eq!(work(&format!("{root}{staged}")), once + points);
}

#[test]
fn size_counts_what_is_written_out() {
    let case = case("product");
    let head = "\n  kernel gain flat\n  kernel first.0 flat\n  kernel first.1 flat\n  kernel second.0 flat\n  kernel second.1 ";
    let size = |lines: &str| {
        let schedule = case.read(&format!("{head}{lines}\n  kernel out flat\n"));
        size(&case.problem, &schedule)
    };
    let one = size("block x 8 threads x 8");
    assert_eq!(size("block x 7 threads x 7"), 2 * one, "with guards and without");
    assert_eq!(size("block x 8 threads x 2 serial x 4 unroll"), 4 * one);
    assert_eq!(size("block x 8 threads x 2 serial x 4"), one);
    assert_eq!(size("block x 8 threads x 2 serial k 3, x 2 unroll"), 6 * one);
    assert_eq!(size("block x 7 threads x 7 serial k all unroll"), 24 * one);
}
