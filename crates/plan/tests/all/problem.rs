//! Checks that single kernels agree with the whole schedule: legal or not, and of the same size.

use warploom_lang::*;
use warploom_plan::*;
use warploom_schedule::*;
use warploom_target::Device;

use crate::pipelines::{Case, case, cases};

const SEEDS: u64 = 40;

#[test]
fn kernels_of_legal_schedules_are_legal_by_themselves() {
    for Case { problem } in cases() {
        for seed in 0..SEEDS {
            let schedule = problem.random_schedule(seed);
            let whole = problem.plan(&schedule);
            let mut threads = Vec::new();
            for item in &schedule.root {
                let alone = problem.examine(&schedule.inlined_set(), [item]);
                let alone =
                    alone.unwrap_or_else(|rule| panic!("{rule}\n{}", schedule.to_text(problem.pipeline())));
                threads.extend(alone.kernels.values().map(|kernel| (kernel.blocks.clone(), kernel.threads)));
            }
            let expected = whole.kernels.values().map(|kernel| (kernel.blocks.clone(), kernel.threads));
            assert_eq!(threads, expected.collect::<Vec<_>>());
        }
    }
}

/// Whether a rule is about one kernel, rather than about where other kernels compute what it reads.
fn concerns_one_kernel(rule: &Rule) -> bool {
    !matches!(
        rule,
        Rule::Missing { .. }
            | Rule::MissingStage { .. }
            | Rule::OutsideKernel { .. }
            | Rule::Order { .. }
            | Rule::StageOrder { .. }
            | Rule::StagePlace { .. }
            | Rule::Twice { .. }
            | Rule::RegistersElsewhere { .. }
            | Rule::NotEnclosing { .. }
            | Rule::Incomplete { .. }
            | Rule::InlinedAndPlaced { .. }
    )
}

/// Breaks the schedule, or leaves it intact.
fn disturb(schedule: &mut Schedule, how: u64) {
    let number = how as usize % schedule.root.len();
    let mut nests: Vec<&mut Nest> = schedule.root[number].nests_mut().collect();
    let position = how as usize % nests.len();
    let nest = &mut nests[position];
    match how % 5 {
        0 => nest.storage = Storage::Private,
        1 => nest.storage = Storage::Shared,
        2 => nest.mapping = Mapping::Flat,
        3 => nest.registers.reverse(),
        _ => {
            if let Some(tiles) = nest.mapping.tiles_mut() {
                tiles.threads.iter_mut().for_each(|tile| tile.size = Size::Of(77));
                tiles.serial.reverse();
            }
        }
    }
}

#[test]
fn what_is_wrong_with_one_kernel_is_seen_in_it() {
    let mut broken = 0;
    for Case { problem } in cases() {
        for seed in 0..SEEDS {
            let mut schedule = problem.random_schedule(seed);
            disturb(&mut schedule, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33);
            let found = problem.check(&schedule).err().unwrap_or_default();
            let mut alone = schedule.root.iter().map(|item| problem.examine(&schedule.inlined_set(), [item]));
            let seen = alone.find_map(Result::err);
            let text = schedule.to_text(problem.pipeline());
            if let Some(rule) = &seen {
                assert!(!found.is_empty(), "only by itself: {rule}\n{text}");
                broken += 1;
            }
            let expected = found.iter().find(|violation| concerns_one_kernel(&violation.rule));
            if let Some(violation) = expected {
                assert!(seen.is_some(), "not by itself: {violation}\n{text}");
            }
        }
    }
    assert!(broken > 20, "{broken}");
}

#[test]
fn only_what_a_kernel_computes_is_inlined_in_it() {
    for Case { problem } in cases() {
        for seed in 0..SEEDS {
            let schedule = problem.random_schedule(seed);
            for item in &schedule.root {
                let inlined = problem.inlined_in(&schedule.inlined_set(), item);
                assert!(inlined.iter().all(|func| schedule.inlined.contains(func)));
                let alone: FuncSet = inlined.iter().copied().collect();
                let mut all = problem.plan_of(&schedule.inlined_set(), [item]);
                all.inlined = alone.clone();
                assert_eq!(problem.plan_of(&alone, [item]), all);
                assert_eq!(kernel_hash(item, &inlined), kernel_hash(item, &alone.iter().collect::<Vec<_>>()));
            }
        }
    }
}

#[test]
fn problems_are_shared_between_threads() {
    let case = case("stencils");
    let threads = |count: u32| {
        let lines = format!("inline gray, rows, columns\n  kernel out  block x all  threads x {count}\n");
        let schedule = case.read(&lines);
        let found = case.problem.examine(&schedule.inlined_set(), &schedule.root);
        found.map(|found| found.kernels[KernelId::new(0)].threads)
    };
    std::thread::scope(|scope| {
        let legal = scope.spawn(|| threads(64));
        let too_many = scope.spawn(|| threads(2048));
        assert_eq!(legal.join().unwrap(), Ok(64));
        assert!(matches!(too_many.join().unwrap(), Err(Rule::Threads { threads: 2048, .. })));
    });
}

/// A scan in chunks whose carries are chunked again reads before the first point if there is nothing to scan.
#[test]
fn rewrites_that_read_undefined_points_at_a_size_are_refused_there() {
    let (x, input) = (vars!(x), Input::new("input", Type::U16, 1));
    let r = rdom!(r: (1, input.extent(0) - 1));
    let (end, down) = (input.extent(0) - 1, input.extent(0) - 1 - r.x);
    let both = func("both", x, undef(Type::U16))
        .update(|f| f.set(&end, input.at(&end)))
        .over(&r, |f| f.set(&down, f.at(&down + 1) * (input.at(&down) | 1)))
        .over(&r, |f| f.set(r.x, f.at(r.x - 1) * (f.at(r.x) | 1)));
    let pipeline = Pipeline::new("scans", [both]).unwrap();
    let rewrites = ["chunk both.3.r 2", "chunk both.carry.1.ro 5"].map(|line| line.parse().unwrap());
    let rewritten = |extent: i64| {
        let region = Region::of_extents(&[extent]);
        let request =
            Realisation::new(&pipeline).input("input", region.clone()).output("both", region.clone());
        let problem = Problem::new(&pipeline, &request, &Device::preset("h200").unwrap()).unwrap();
        problem.rewritten(&rewrites).map(|_| ())
    };
    assert!(matches!(rewritten(1), Err(RewrittenError::Undefined(_))), "{:?}", rewritten(1));
    assert_eq!(rewritten(20), Ok(()));
}
