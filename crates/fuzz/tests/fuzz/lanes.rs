//! Funcs in registers that the lanes of a warp share: the evaluator's bits in the simulator, at sizes that blocks divide and at
//! others.

use std::sync::Mutex;

use warploom_codegen::ir::Stmt;
use warploom_codegen::lower::Options;
use warploom_fuzz::{self as fuzz, Case, Fate, Mutation, Survival, Verdict};
use warploom_lang::*;
use warploom_plan::Problem;
use warploom_schedule::Nest;

use crate::atomics::{case, stmts};
use crate::support::*;

fn passes(case: &Case) {
    let text = case.schedule.to_text(&case.pipeline);
    assert_eq!(case.check(&device()).expect("it runs"), Verdict::Passed, "{text}");
}

/// The number of statements that shuffle.
fn shuffles(case: &Case) -> usize {
    stmts(&case.lower_with(&device(), Options::default()).unwrap(), |stmt| {
        matches!(stmt, Stmt::Shuffle { .. })
    })
}

/// A stencil of a stencil: the sum over 3 x 3 points of a derivative's square, of an image without edges.
fn corners([width, height]: [i64; 2], line: &str) -> Case {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let gray = func("gray", (x, y), input.at((x, y)) * 0.5);
    let dx = func("dx", (x, y), gray.at((x + 2, y)) - gray.at((x, y + 1)));
    let square = |i: i32, j: i32| dx.at((x + i, y + j)) * dx.at((x + i, y + j));
    let out = func("out", (x, y), square(0, 0) + square(1, 1) + square(2, 2) + gray.at((x + 1, y)));
    let lines = format!("  kernel out {line}\n      gray registers\n      dx registers\n");
    case(vec![out], &[("input", &[width + 4, height + 3]), ("out", &[width, height])], &lines)
}

/// One, two and three points per lane; several warps, and several rounds of them; blocks that fill the lanes and others.
const CORNERS: [&str; 6] = [
    "block x 28, y 4\n    out threads x 32 serial y 4 unroll lanes",
    "block x 28, y 8\n    out threads x 32, y 4 serial y 2 unroll lanes",
    "block x 60, y 6\n    out threads x 32, y 2 serial y 3, x 2 unroll lanes",
    "block x 57, y 12\n    out threads x 32, y 2 serial x 2, y 3 unroll lanes",
    "block x 90, y 5\n    out threads x 32 serial x 3 lanes",
    "block x 12, y 7\n    out threads x 32, y 3 serial x 2 unroll lanes",
];

#[test]
fn stencils_give_the_reference() {
    for line in CORNERS {
        for extents in [[120, 24], [100, 13], [61, 9], [28, 4], [27, 5], [5, 3], [1, 1]] {
            passes(&corners(extents, line));
        }
        assert!(shuffles(&corners([120, 24], line)) > 0, "{line}");
    }
}

/// The first lane needs nothing of others where a block has one point per row.
#[test]
fn a_lane_alone_shares_nothing() {
    assert_eq!(shuffles(&corners([1, 9], CORNERS[0])), 0);
}

/// Each lane computes its own points only once: those of two columns, and the rows that their rows need.
#[test]
fn lanes_compute_their_part() {
    let case = corners([240, 24], CORNERS[2]);
    let problem = Problem::new(&case.pipeline, &case.request, &device()).unwrap();
    let plan = problem.check(&case.schedule).unwrap();
    let nest = plan.nests.values().next().unwrap().footprint.as_ref().unwrap();
    let sizes = |name: &str| {
        let own = &nest.registers[&case.pipeline.func_named(name).unwrap()];
        (own.thread.points.extents(), own.thread.stages[0].extents(), own.block.points.extents())
    };
    assert_eq!(sizes("dx"), (vec![4, 5], vec![2, 5], vec![62, 8]));
    assert_eq!(sizes("gray"), (vec![4, 6], vec![2, 6], vec![64, 9]));
}

/// Weights from sums over patches, in loops over the block: sums in registers of lanes, edges that repeat, a copy in shared
/// memory, and a reader that accumulates.
fn patches([width, height]: [i64; 2], lanes: &str) -> Case {
    let (x, y, s) = vars!(x, y, s);
    let input = Input::f32("input", 2);
    let edge = input.repeat_edge().named("edge");
    let r = rdom!(c: (0, 3));
    let d = func("d", (x, y, s), sum(&r, edge.at((x, y)) * edge.at((x + s, y + r.x))));
    let r = rdom!(r: (-2, 5));
    let column = func("column", (x, y, s), sum(&r, d.at((x, y + r.x, s))));
    let row = func("row", (x, y, s), sum(&r, column.at((x + r.x, y, s))));
    let w = func("w", (x, y, s), row.at((x, y, s)) * 0.25);
    let r = rdom!(s: (-1, 3));
    let total =
        func("total", (x, y), 0.0).over(&r, |f| f.add((x, y), w.at((x, y, r.x)) * edge.at((x + r.x, y))));
    let out = func("out", (x, y), total.at((x, y)) / 3.0);
    let lines = format!(
        "
  inline edge, row
  kernel out block x 28, y 6
    input.stage flat shared
    total.0 threads x 32, y 2 serial y 3 unroll private
    over total.1.s 1
      total.1 threads x 32, y 2 serial y 3 unroll private {lanes}
        d.sum0 registers
        d registers
        column.sum0 registers
        column registers
        row.sum0 registers
        w registers
    out threads x 32, y 2 serial y 3 unroll
"
    );
    case(vec![out], &[("input", &[width, height]), ("out", &[width, height])], &lines)
}

#[test]
fn sums_in_loops_give_the_reference() {
    for extents in [[70, 13], [56, 12], [29, 5], [3, 2]] {
        passes(&patches(extents, "lanes"));
    }
    assert!(shuffles(&patches([70, 13], "lanes")) > 0);
    passes(&patches([70, 13], ""));
}

/// A pair of values at every second point, in elements of 4 and 8 bytes.
#[test]
fn pairs_at_every_second_point_give_the_reference() {
    let (x, y) = vars!(x, y);
    let input = Input::new("input", Type::I32, 2);
    let wide = input.at((x, y)).cast(Type::F64) * 0.3;
    let pair = func("pair", (x, y), (input.at((x, y)) + input.at((x + 1, y)), wide));
    let at = |value: usize, i: i32| pair.get(value, (2 * x + i, y));
    let out = func("out", (x, y), at(0, 0) + at(0, 3) + at(1, 2).cast(Type::I32));
    for (width, line) in [
        (50, "block x 30\n    out threads x 32 lanes"),
        (71, "block x 60, y 2\n    out threads x 32, y 2 serial x 2 unroll lanes"),
    ] {
        let lines = format!("  kernel out {line}\n      pair registers\n");
        let case = case(vec![out.clone()], &[("input", &[2 * width + 4, 5]), ("out", &[width, 5])], &lines);
        passes(&case);
        assert!(shuffles(&case) > 0);
    }
}

/// The same cases row by row, with lanes that share and without.
#[test]
fn rows_in_turn_give_the_reference() {
    for line in &CORNERS[..4] {
        for extents in [[120, 24], [61, 9], [27, 5], [1, 1]] {
            // Rows are not along the lanes.
            if !line.contains("serial x") {
                passes(&corners(extents, &format!("{line} slide")));
            }
            passes(&corners(extents, &line.replace("lanes", "slide")));
        }
    }
    for extents in [[70, 13], [29, 5], [3, 2]] {
        passes(&patches(extents, "lanes slide"));
        passes(&patches(extents, "slide"));
    }
}

/// A shuffle that is gone, or takes another lane's value, is noticed wherever an output depends on it.
#[test]
fn altered_shuffles_are_noticed() {
    for line in [CORNERS[1], CORNERS[2], &format!("{} slide", CORNERS[2])] {
        let kernels = corners([120, 24], line).mutate(&device()).unwrap();
        let mutants = || kernels.iter().flat_map(|kernel| &kernel.mutants);
        for mutation in [Mutation::NoShuffle, Mutation::OtherLane] {
            let fates: Vec<Fate> =
                mutants().filter(|mutant| mutant.mutation == mutation).map(|mutant| mutant.fate).collect();
            let survived = fates.iter().filter(|fate| matches!(fate, Fate::Survived(_)));
            assert!(!fates.contains(&Fate::Survived(Survival::Unexplained)), "{line}: {fates:?}");
            assert!(3 * survived.count() <= fates.len(), "{line}: {fates:?}");
        }
    }
}

/// Random schedules with lanes that share, or rows in turn, also at any size.
#[test]
fn random_lanes_give_the_reference() {
    let device = device();
    let (lanes, slides) = (Mutex::new(Vec::new()), Mutex::new(0));
    let check = |case: &Case| {
        let is = |given: fn(&Nest) -> bool| case.schedule.nests().any(given);
        if is(|nest| nest.numbers.slide) {
            *slides.lock().unwrap() += 1;
        } else if !is(|nest| nest.numbers.lanes) {
            return Ok(Verdict::Passed);
        }
        lanes.lock().unwrap().push(case.clone());
        case.check(&device)
    };
    let options = fuzz::Options { pipelines: 150, seed: 11, ..fuzz::Options::default() };
    let summary = fuzz::fuzz(&options, &device, &fuzz::random_schedules(3), &check, &|_| ()).unwrap();
    let failures: Vec<String> = summary.failures.iter().map(|found| found.failure.to_string()).collect();
    assert_eq!(failures, Vec::<String>::new());
    let mut cases = lanes.into_inner().unwrap();
    let shared = cases.iter().filter(|case| shuffles(case) > 0).count();
    assert!(cases.len() >= 60 && shared >= 15, "{} cases, {shared} shuffle", cases.len());
    assert!(slides.into_inner().unwrap() >= 20);
    cases.sort_by_key(|case| (case.seed, case.schedule.to_text(&case.pipeline)));
    let any_size = cases.iter().take(25).map(|case| case.check_dynamic(&device, &|_| Ok(())).unwrap());
    let any_size = any_size.filter(|verdict| *verdict == Verdict::Passed).count();
    assert!(any_size >= 5, "{any_size} of 25");
}
