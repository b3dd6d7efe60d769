//! Loops that copy ahead: the evaluator's bits in the simulator, and no barrier, commit or wait too many.

use std::sync::Mutex;

use warploom_codegen::ir::{Stmt, every_stmt};
use warploom_codegen::lower::Options as Lowering;
use warploom_fuzz::{Case, Fate, Mutant, Mutation, Options, Survival, Verdict, fuzz, random_schedules};
use warploom_lang::*;

use crate::atomics::{case, stmts};
use crate::support::*;

/// A product of matrices of one type, over 50 values.
fn product(ty: Type, lines: &str) -> Case {
    let (x, y) = vars!(x, y);
    let (a, b) = (Input::new("a", ty, 2), Input::new("b", ty, 2));
    let r = rdom!(r: (0, 50));
    let zero = Expr::from(0).cast(ty);
    let prod = func("prod", (x, y), zero).over(&r, |f| f.add((x, y), a.at((x, r.x)) * b.at((r.x, y))));
    let out = func("out", (x, y), prod.at((x, y)));
    case(vec![out], &[("a", &[40, 50]), ("b", &[50, 20]), ("out", &[40, 20])], lines)
}

fn tiled(a: &str, b: &str, step: u32) -> String {
    format!(
        "
  kernel out block x 32, y 16
    prod.0 threads x 16, y 4 serial x 2, y 4 unroll private
    over prod.1.r {step}
      a.stage {a}
      b.stage {b}
      prod.1 threads x 16, y 4 serial x 2, y 4 unroll private
    out threads x 16, y 4 serial x 2, y 4 unroll
"
    )
}

/// A convolution over three variables, of a picture that goes on beyond its edges.
fn convolution(lines: &str) -> Case {
    let (x, y) = vars!(x, y);
    let (input, taps) = (Input::f32("input", 3), Input::f32("taps", 3));
    let edge = input.repeat_edge();
    let r = rdom!(rc: (0, 10), rx: (0, 3), ry: (0, 4));
    let [rc, rx, ry] = r.vars();
    let sum = func("sum", (x, y), 0.0)
        .over(&r, |f| f.add((x, y), edge.at((rc, x + rx - 1, y + ry - 1)) * taps.at((rc, rx, ry))));
    let out = func("out", (x, y), sum.at((x, y)));
    case(vec![out], &[("input", &[10, 30, 17]), ("taps", &[10, 3, 4]), ("out", &[30, 17])], lines)
}

/// All loops together; a loop that copies ahead in another one; and the same with one line for each loop.
const CONVOLUTIONS: [&str; 3] = [
    "
  kernel out block x 16, y 8
    sum.0 threads x 16, y 8 private
    over sum.1.ry 1, sum.1.rx 1, sum.1.rc 4
      input.repeat_edge flat shared async 3
      taps.stage flat shared async 4
      sum.1 threads x 16, y 8 private
    out threads x 16, y 8
",
    "
  kernel out block x 16, y 8
    sum.0 threads x 16, y 8 private
    over sum.1.ry 1
      input.repeat_edge threads x 4, y 8 shared async 2
      over sum.1.rx 1, sum.1.rc 4
        taps.stage flat shared async 3
        sum.1 threads x 16, y 8 private
    out threads x 16, y 8
",
    "
  kernel out block x 16, y 8
    sum.0 flat shared
    over sum.1.ry 1
      over sum.1.rx 1
        over sum.1.rc 3
          taps.stage threads d0 3 shared pitch 5 async 2
          input.repeat_edge flat shared async 2
          sum.1 threads x 16, y 8 shared
    out threads x 16, y 8
",
];

fn is_copy(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Copy { .. })
}

fn passes(case: &Case) {
    assert_eq!(case.check(&device()).unwrap(), Verdict::Passed, "{}", case.schedule.to_text(&case.pipeline));
    for narrow_elements in [Lowering::default().narrow_elements, 30] {
        let program = case.lower_with(&device(), Lowering { narrow_elements, pitched: false }).unwrap();
        assert!(stmts(&program, is_copy) > 0);
        for kernel in program.kernels.values() {
            let known: usize = kernel.origins.iter().map(|origin| origin.statements).sum();
            assert_eq!(known, every_stmt(&kernel.body).count());
        }
        let verdict = case.check_with(|run| run.simulate(&program, &device()).map(|()| Verdict::Passed));
        assert_eq!(verdict.unwrap(), Verdict::Passed);
    }
}

#[test]
fn products_give_the_reference() {
    for (ty, steps) in [(Type::F32, &[1, 7, 25][..]), (Type::I32, &[7]), (Type::U64, &[7])] {
        for depth in 2..=4 {
            for &step in steps {
                let copied = format!("flat shared async {depth}");
                passes(&product(ty, &tiled(&copied, &copied, step)));
                // One of them waits for its own copies, and for the other's.
                passes(&product(ty, &tiled("threads d0 16 shared", &copied, step)));
                passes(&product(ty, &tiled(&copied, "flat shared pitch 9", step)));
                let transposed = format!("{copied} transpose");
                passes(&product(ty, &tiled(&transposed, "flat shared pitch 9 transpose", step)));
            }
        }
    }
}

#[test]
fn convolutions_give_the_reference() {
    CONVOLUTIONS.into_iter().for_each(|lines| passes(&convolution(lines)));
}

/// Columns less their sums, at all heights: there may be fewer slices than are started before the loop.
#[test]
fn columns_of_any_height_give_the_reference() {
    let (x, y) = vars!(x, y);
    let input = Input::new("input", Type::I32, 2);
    let r = rdom!(r: (0, input.extent(1)));
    let sum = func("sum", x, 0).over(&r, |f| f.add(x, input.at((x, r.x))));
    let out = func("out", (x, y), input.at((x, y)) - sum.at(x));
    for (depth, step) in [(2, 3), (3, 8), (4, 5)] {
        let lines = format!(
            "
  kernel out block x 16
    sum.0 threads x 16 private
    over sum.1.r {step}
      input.stage flat shared async {depth}
      sum.1 threads x 16 private
    out threads x 16
"
        );
        let case = case(vec![out.clone()], &[("input", &[40, 21]), ("out", &[40, 21])], &lines);
        passes(&case);
        for seed in 0..8 {
            let case = Case { seed, ..case.clone() };
            assert_eq!(case.check_dynamic(&device(), &|_| Ok(())).unwrap(), Verdict::Passed);
        }
    }
}

fn mutants(case: &Case) -> Vec<Mutant> {
    case.mutate(&device()).unwrap().into_iter().flat_map(|found| found.mutants).collect()
}

/// Without any one of its barriers, commits and waits, a product reads what has not arrived, or races.
#[test]
fn every_mutant_of_a_product_is_stopped() {
    for depth in 2..=4 {
        let copied = format!("flat shared async {depth}");
        let found = mutants(&product(Type::F32, &tiled(&copied, &copied, 7)));
        let count = |mutation: Mutation| found.iter().filter(|mutant| mutant.mutation == mutation).count();
        let versions = count(Mutation::NoWait);
        assert!(versions > 0);
        // The first slices and those of the loop.
        assert_eq!(count(Mutation::NoCommit), 2 * versions);
        assert_eq!((count(Mutation::ShortWait), count(Mutation::NoBarrier)), (versions, versions));
        for mutant in &found {
            assert_eq!(mutant.fate, Fate::Stopped, "async {depth}: {mutant}");
        }
    }
}

fn is_of_copies(mutant: &Mutant) -> bool {
    matches!(mutant.mutation, Mutation::NoCommit | Mutation::NoWait | Mutation::ShortWait)
}

/// Of two loops, the inner one may wait for what the outer one copies. That is found out. Where the number of slices is a
/// multiple of those in memory, the first copies of the next loop overwrite nothing that was read last, without a barrier.
#[test]
fn every_mutant_of_a_convolution_is_stopped_or_explained() {
    for (lines, nested) in CONVOLUTIONS.into_iter().zip([false, true, false]) {
        let found = mutants(&convolution(lines));
        let (of_copies, of_barriers): (Vec<&Mutant>, Vec<&Mutant>) = found
            .iter()
            .filter(|mutant| mutant.fate != Fate::Stopped)
            .partition(|mutant| is_of_copies(mutant));
        let covered = |mutant: &&Mutant| mutant.fate == Fate::Survived(Survival::Covered);
        assert!(of_copies.iter().all(covered), "{lines}\n{of_copies:#?}");
        assert_eq!(!of_copies.is_empty(), nested, "{lines}\n{of_copies:#?}");
        let explained = [Survival::OneThread, Survival::Unshared].map(Fate::Survived);
        assert!(of_barriers.iter().all(|mutant| explained.contains(&mutant.fate)), "{of_barriers:#?}");
    }
}

fn copies_ahead(case: &Case) -> bool {
    case.schedule.nests().any(|nest| nest.numbers.depth.is_some())
}

/// Random schedules with asynchronous copies, and mutants of some of them.
#[test]
fn random_copies_give_the_reference_and_need_their_waits() {
    let device = device();
    let checked = Mutex::new(Vec::new());
    let check = |case: &Case| {
        if !copies_ahead(case) {
            return Ok(Verdict::Passed);
        }
        checked.lock().unwrap().push(case.clone());
        case.check(&device)
    };
    let options = Options { pipelines: 150, seed: 8, ..Options::default() };
    let summary = fuzz(&options, &device, &random_schedules(3), &check, &|_| ()).unwrap();
    let failures: Vec<String> = summary.failures.iter().map(|found| found.failure.to_string()).collect();
    assert_eq!(failures, Vec::<String>::new());
    let mut cases = checked.into_inner().unwrap();
    assert!(cases.len() >= 20, "{}", cases.len());
    cases.sort_by_key(|case| (case.seed, case.schedule.to_text(&case.pipeline)));
    let any_size = cases.iter().map(|case| case.check_dynamic(&device, &|_| Ok(())).unwrap());
    let any_size = any_size.filter(|verdict| *verdict == Verdict::Passed).count();
    assert!(any_size >= 5, "{any_size} of {}", cases.len());
    let found: Vec<Mutant> = cases.iter().take(5).flat_map(mutants).collect();
    let unexplained: Vec<String> = found
        .iter()
        .filter(|mutant| mutant.fate == Fate::Survived(Survival::Unexplained))
        .map(ToString::to_string)
        .collect();
    assert_eq!(unexplained, Vec::<String>::new());
    let of_copies: Vec<&Mutant> = found.iter().filter(|mutant| is_of_copies(mutant)).collect();
    let stopped = of_copies.iter().filter(|mutant| mutant.fate == Fate::Stopped).count();
    assert!(stopped * 4 > of_copies.len() * 3, "{of_copies:#?}");
}
