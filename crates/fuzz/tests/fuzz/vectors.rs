//! Vectors: the evaluator's bits in the simulator, as few accesses as there should be, and none that is misaligned.

use std::sync::Mutex;

use warploom_codegen::ir::{ArrayId, Kernel, Space, Stmt, every_stmt};
use warploom_codegen::lower::Options as Lowering;
use warploom_fuzz::{Case, Fate, Mutant, Mutation, Options, Verdict, fuzz, random_schedules};
use warploom_lang::*;

use crate::atomics::{case, stmts};
use crate::support::*;

/// A picture of one type, less its neighbour four further on.
fn picture(ty: Type, lines: &str) -> Case {
    let (x, y) = vars!(x, y);
    let input = Input::new("input", ty, 2);
    let out = func("out", (x, y), input.at((x, y)) - input.at((x + 4, y)));
    case(vec![out], &[("input", &[112, 9]), ("out", &[96, 9])], lines)
}

/// Products of matrices, summed in registers.
fn product(lines: &str) -> Case {
    let (x, y) = vars!(x, y);
    let (a, b) = (Input::f32("a", 2), Input::f32("b", 2));
    let r = rdom!(r: (0, 24));
    let prod = func("prod", (x, y), 0.0).over(&r, |f| f.add((x, y), a.at((x, r.x)) * b.at((r.x, y))));
    let out = func("out", (x, y), prod.at((x, y)));
    case(vec![out], &[("a", &[40, 24]), ("b", &[24, 20]), ("out", &[40, 20])], lines)
}

/// How many vectors in the text of a case are copies ahead of time.
fn stmts_of_copies(case: &Case) -> usize {
    let program = case.lower_with(&device(), Lowering::default()).unwrap();
    let of = |kernel: &Kernel| {
        let shared = |array: ArrayId| kernel.arrays[array].space == Space::Shared;
        let is_copy = |stmt: &&Stmt| matches!(stmt, Stmt::Vector { to, .. } if shared(*to));
        every_stmt(&kernel.body).filter(is_copy).count()
    };
    program.kernels.values().map(of).sum()
}

/// The widths of the vectors in the text of a case, in order.
fn widths(case: &Case) -> Vec<u32> {
    let program = case.lower_with(&device(), Lowering::default()).unwrap();
    let width = |stmt: &Stmt| stmt.effects().reads.map(|access| access.width);
    program
        .kernels
        .values()
        .flat_map(|kernel| every_stmt(&kernel.body).filter_map(width).collect::<Vec<_>>())
        .collect()
}

fn passes(case: &Case) {
    assert_eq!(case.check(&device()).unwrap(), Verdict::Passed, "{}", case.schedule.to_text(&case.pipeline));
    let program = case.lower_with(&device(), Lowering::default()).unwrap();
    for kernel in program.kernels.values() {
        let known: usize = kernel.origins.iter().map(|origin| origin.statements).sum();
        assert_eq!(known, every_stmt(&kernel.body).count());
    }
    // Arrays that need wide indices have no vectors.
    let narrow_elements = 30;
    let wide = case.lower_with(&device(), Lowering { narrow_elements, pitched: false }).unwrap();
    let verdict = case.check_with(|run| run.simulate(&wide, &device()).map(|()| Verdict::Passed));
    assert_eq!(verdict.unwrap(), Verdict::Passed);
}

fn points(number: u32) -> String {
    format!(
        "  kernel out block x {}, y 3\n    out threads x 3, y 3 serial x {number} unroll vector\n",
        3 * number
    )
}

/// Two loads and a store, as long as 16 bytes, the points and the distance to the neighbour allow.
#[test]
fn vectors_are_as_wide_as_they_can_be() {
    let expected = [
        (Type::U8, 16, [16, 4, 16]),
        (Type::U8, 8, [8, 4, 8]),
        (Type::I16, 16, [8, 4, 8]),
        (Type::U16, 2, [2, 2, 2]),
        (Type::F32, 16, [4, 4, 4]),
        (Type::F32, 2, [2, 2, 2]),
        (Type::F64, 4, [2, 2, 2]),
        (Type::U64, 8, [2, 2, 2]),
    ];
    for (ty, number, own) in expected {
        let case = picture(ty, &points(number));
        passes(&case);
        assert_eq!(widths(&case), own, "{ty}, {number} points");
    }
}

/// Where tiles are cut in multiples of the vector, one guard is for all points; elsewhere points have guards of their own.
#[test]
fn guards_that_hold_for_all_points_are_outside() {
    for (lines, vectors) in [
        ("  kernel out block x 80, y 9\n    out threads x 20, y 9 serial x 4 unroll vector\n", true),
        ("  kernel out block x 96, y 9\n    out threads x 20, y 9 serial x 4 unroll vector\n", true),
        ("  kernel out block x 38, y 9\n    out threads x 9, y 9 serial x 4 unroll vector\n", false),
    ] {
        let case = picture(Type::F32, lines);
        passes(&case);
        let is_vector = |stmt: &Stmt| matches!(stmt, Stmt::Vector { .. });
        let guarded = |stmt: &Stmt| matches!(stmt, Stmt::If { body, .. } if body.iter().any(is_vector));
        let program = case.lower_with(&device(), Lowering::default()).unwrap();
        assert_eq!(stmts(&program, guarded) > 0, vectors, "{lines}");
    }
}

const PRODUCTS: [&str; 3] = [
    "
  kernel out block x 16, y 4
    prod.0 threads x 4, y 4 serial x 4 unroll private
    over prod.1.r 8
      a.stage threads d0 4, d1 4 serial d0 4 unroll shared vector
      b.stage threads d0 2, d1 4 serial d0 4 unroll shared vector
      prod.1 threads x 4, y 4 serial r all, x 4 unroll private
    out threads x 4, y 4 serial x 4 unroll vector
",
    "
  kernel prod.0 block x 8, y 4
    prod.0 threads x 2, y 4 serial x 4 unroll vector
  kernel prod.1 block x 8, y 4
    prod.1 threads x 2, y 4 serial r 2, x 4 unroll vector
  kernel out block x 8, y 4
    out threads x 2, y 4 serial y 2, x 4 unroll vector
",
    "
  kernel prod.0 block x 16, y 4
    prod.0 threads x 2, y 4 serial x 4 unroll interleave vector
  kernel prod.1 block x 16, y 4
    prod.1 threads x 2, y 4 serial r 4, x 2 unroll interleave vector
  kernel out block x 8, y 4
    out threads x 2, y 4 serial x 4 unroll vector
",
];

#[test]
fn products_give_the_reference() {
    for lines in PRODUCTS {
        let case = product(lines);
        passes(&case);
        assert!(widths(&case).len() >= 3, "{lines}");
    }
}

/// A loop that reads what it writes accesses elements one by one.
#[test]
fn loops_that_read_what_they_write_have_no_vectors_of_it() {
    let x = vars!(x);
    let input = Input::new("input", Type::I32, 1);
    let r = rdom!(r: (4, 44));
    let scan = func("scan", x, input.at(x)).over(&r, |f| f.set(r.x, f.at(r.x - 3) + input.at(r.x)));
    let lines = "
  kernel scan.0 block x 48
    scan.0 threads x 3 serial x 4 unroll vector
  kernel scan.1
    scan.1 threads serial r 4 unroll vector
";
    let case = case(vec![scan], &[("input", &[48]), ("scan", &[48])], lines);
    passes(&case);
    // A load and a store of the first stage, and a load of the input in the scan.
    assert_eq!(widths(&case), [4, 4, 4]);
}

/// A product of matrices whose operands are copied ahead of time.
fn ahead(a: &str, b: &str, step: u32) -> Case {
    product(&format!(
        "
  kernel out block x 16, y 8
    prod.0 threads x 4, y 8 serial x 4 unroll private
    over prod.1.r {step}
      a.stage {a}
      b.stage {b}
      prod.1 threads x 4, y 8 serial x 4 unroll private
    out threads x 4, y 8 serial x 4 unroll
"
    ))
}

/// Copies ahead of time, from a buffer and to an array that both have to allow it.
#[test]
fn copies_are_as_wide_as_both_sides_allow() {
    let a = |words: &str| format!("threads d0 4, d1 4 serial d0 4 unroll shared {words} vector");
    let b = |words: &str| format!("threads d0 2, d1 4 serial d0 4 unroll shared {words} vector");
    let flat = "flat shared async 2";
    for (case, own) in [
        (ahead(&a("async 2"), flat, 8), &[4][..]),
        (ahead(&a("async 3"), &b("async 3"), 8), &[4]),
        (ahead(&a("async 4"), flat, 7), &[4]),
        (ahead(&a("pitch 20 async 2"), flat, 8), &[4]),
        // Rows in shared memory begin at every second element, or anywhere.
        (ahead(&a("pitch 18 async 2"), flat, 8), &[2]),
        (ahead(&a("pitch 17 async 2"), flat, 8), &[]),
        // Neighbours in global memory are none in shared memory.
        (ahead(&a("transpose async 2"), flat, 8), &[]),
        // Rows of six values begin at every second one of the buffer.
        (ahead(flat, "threads d0 3, d1 8 serial d0 2 unroll shared async 2 vector", 6), &[2]),
        // The last slice has six of nine values, so points have guards of their own.
        (ahead(flat, &b("pitch 12 async 2"), 9), &[]),
        // The slices of an array whose length is no multiple of a vector begin at one.
        (ahead("threads d0 4 serial d0 4 unroll shared pitch 18 async 3 vector", flat, 1), &[4]),
        // One iteration copies as if `async` were not there.
        (ahead(&a("async 2"), flat, 24), &[4]),
    ] {
        passes(&case);
        let mut found = widths(&case);
        found.dedup();
        assert_eq!(found, own, "{}", case.schedule.to_text(&case.pipeline));
    }
}

/// On both sides. Without a wait or a commit, elements of vectors are read before they arrive.
#[test]
fn every_mutant_of_a_copy_is_noticed() {
    for depth in 2..=3 {
        let a = format!("threads d0 4, d1 4 serial d0 4 unroll shared async {depth} vector");
        let case = ahead(&a, &format!("flat shared async {depth}"), 8);
        let all: Vec<Mutant> =
            case.mutate(&device()).unwrap().into_iter().flat_map(|found| found.mutants).collect();
        let of = |mutation: Mutation| all.iter().filter(move |mutant| mutant.mutation == mutation);
        assert_eq!(of(Mutation::ShiftedVector).count(), 2 * widths(&case).len());
        assert!(of(Mutation::ShiftedVector).all(|mutant| mutant.fate == Fate::Refused), "{all:#?}");
        for mutation in [Mutation::NoCommit, Mutation::NoWait, Mutation::ShortWait, Mutation::NoBarrier] {
            assert!(of(mutation).count() > 0);
            assert!(of(mutation).all(|mutant| mutant.fate == Fate::Stopped), "{all:#?}");
        }
    }
}

fn mutants(case: &Case) -> Vec<Mutant> {
    let all = case.mutate(&device()).unwrap().into_iter().flat_map(|found| found.mutants);
    all.filter(|mutant| mutant.mutation == Mutation::ShiftedVector).collect()
}

#[test]
fn every_shifted_vector_is_refused() {
    let cases = [picture(Type::U8, &points(16)), product(PRODUCTS[0]), product(PRODUCTS[1])];
    for case in cases {
        let found = mutants(&case);
        assert_eq!(found.len(), widths(&case).len());
        assert!(found.iter().all(|mutant| mutant.fate == Fate::Refused), "{found:#?}");
    }
}

/// Random schedules with vectors, at one size and at any.
#[test]
fn random_vectors_give_the_reference() {
    let device = device();
    let checked = Mutex::new(Vec::new());
    let check = |case: &Case| {
        if !case.schedule.nests().any(|nest| nest.numbers.vector) {
            return Ok(Verdict::Passed);
        }
        checked.lock().unwrap().push(case.clone());
        case.check(&device)
    };
    let options = Options { pipelines: 400, seed: 9, ..Options::default() };
    let summary = fuzz(&options, &device, &random_schedules(3), &check, &|_| ()).unwrap();
    let failures: Vec<String> = summary.failures.iter().map(|found| found.failure.to_string()).collect();
    assert_eq!(failures, Vec::<String>::new());
    let cases = checked.into_inner().unwrap();
    let with_vectors = cases.iter().filter(|case| !widths(case).is_empty()).count();
    assert!(with_vectors >= 20, "{with_vectors} of {}", cases.len());
    let ahead = cases.iter().filter(|case| stmts_of_copies(case) > 0).count();
    assert!(ahead >= 5, "{ahead} of {}", cases.len());
    let any_size = cases.iter().take(20).map(|case| case.check_dynamic(&device, &|_| Ok(())).unwrap());
    let skipped = any_size.filter(|verdict| matches!(verdict, Verdict::Skipped(_))).count();
    assert!(skipped <= 10, "{skipped} of 20");
}
