//! Partial results and trees that threads exchange within warps: the evaluator's bits in the simulator, without
//! shared memory and barriers.

use warploom_codegen::ir::{ArrayId, KernelNode, NodeId, NodeKind, Program, Stmt};
use warploom_codegen::lower::Options as Lowering;
use warploom_codegen::printer::{Build, PRINTER};
use warploom_codegen::verify::verify;
use warploom_fuzz::{Case, Failure, Verdict};
use warploom_lang::op::{BinaryOp, Op};
use warploom_lang::*;
use warploom_sim::SimError;

use crate::atomics::{case, stmts};
use crate::support::device;

/// The softmax of the rows of an image.
fn softmax(lines: &str) -> Case {
    let (x, y) = vars!(x, y);
    let (input, r) = (Input::f32("input", 2), rdom!(r: (0, 100)));
    let highest = func("highest", y, f32::NEG_INFINITY).over(&r, |f| f.max(y, input.at((r.x, y))));
    let raised = func("raised", (x, y), exp(input.at((x, y)) - highest.at(y)));
    let sum = func("sum", y, 0.0).over(&r, |f| f.add(y, raised.at((r.x, y)))).reassociate();
    let out = func("out", (x, y), raised.at((x, y)) / sum.at(y));
    case(vec![out], &[("input", &[100, 11]), ("out", &[100, 11])], lines)
}

/// One warp a row and four rows a block; all levels of the trees have the lanes of their rows.
const ROWS: &str = "
  factor highest.1.r inner 32
  tree highest.1
  factor sum.1.r inner 32
  tree sum.1
  inline highest, raised, sum
  kernel out        block x all, y 4
    highest.part.0  threads ri 32, y 4  shared
    highest.part.1  threads ri 32, y 4  serial r 2  unroll  shared
    highest.tree1   threads ri 32, y 4  shared
    highest.tree2   threads ri 32, y 4  shared
    highest.tree3   threads ri 32, y 4  shared
    highest.tree4   threads ri 32, y 4  shared
    highest.tree5   threads ri 32, y 4  shared
    sum.part.0      threads ri 32, y 4  shared
    sum.part.1      threads ri 32, y 4  shared
    sum.tree1       threads ri 32, y 4  shared
    sum.tree2       threads ri 32, y 4  shared
    sum.tree3       threads ri 32, y 4  shared
    sum.tree4       threads ri 32, y 4  shared
    sum.tree5       threads ri 32, y 4  shared
    out             threads x 32, y 4
";

/// One row a block, and as many threads a level as it has points.
const ONE_ROW: &str = "
  factor highest.1.r inner 32
  tree highest.1
  inline raised
  kernel out        block x all, y 1
    highest.part.0  threads ri 32  shared
    highest.part.1  threads ri 32  shared
    highest.tree1   threads ri 16  shared
    highest.tree2   threads ri 8   shared
    highest.tree3   threads ri 4   shared
    highest.tree4   threads ri 2   shared
    highest.tree5   threads        shared
    highest         threads        shared
    sum.0           threads        shared
    sum.1           threads        shared
    out             threads x 32
";

fn lowered(case: &Case) -> Program {
    let program = case.lower_with(&device(), Lowering::default()).unwrap();
    assert_eq!(verify(&program), Ok(()));
    program
}

#[test]
fn rows_stay_in_their_warps() {
    let case = softmax(ROWS);
    assert_eq!(case.check(&device()).unwrap(), Verdict::Passed);
    let program = lowered(&case);
    assert_eq!(program.kernels.values().map(|kernel| kernel.shared_bytes()).max(), Some(0));
    assert_eq!(stmts(&program, |stmt| *stmt == Stmt::Barrier), 0);
    // Two trees of five levels, two sums that read a root, in two versions of the block.
    assert_eq!(stmts(&program, |stmt| matches!(stmt, Stmt::Shuffle { .. })), 2 * (5 + 1 + 5 + 2));
    assert!(PRINTER.print(&program, Build::Timing).contains("__shfl_sync(0xffffffffu, sum_tree5[0], 0)"));
}

#[test]
fn levels_of_one_row_need_no_idle_threads() {
    let case = softmax(ONE_ROW);
    assert_eq!(case.check(&device()).unwrap(), Verdict::Passed);
    let program = lowered(&case);
    assert_eq!(stmts(&program, |stmt| *stmt == Stmt::Barrier), 0);
    // Each level reads one of its two operands from another thread, `out` the maximum and the sum.
    assert_eq!(stmts(&program, |stmt| matches!(stmt, Stmt::Shuffle { .. })), 5 + 2);
}

/// Rows whose lanes are in several warps go through shared memory: 20 lanes a row, and 64.
#[test]
fn rows_across_warps_take_shared_memory() {
    for lanes in [20, 64] {
        let lines = format!(
            "
  factor highest.1.r inner {lanes}
  inline raised
  kernel highest.part.0 flat
  kernel highest.part.1 flat
  kernel out            block x all, y 8
    input.stage         flat shared
    highest.0           threads y 8 shared
    highest.1           threads y 8 shared
    sum.0               threads y 8 shared
    sum.1               threads y 8 shared
    out                 threads x {lanes}, y 8
"
        );
        let case = softmax(&lines);
        assert_eq!(case.check(&device()).unwrap(), Verdict::Passed, "{lines}");
        let program = lowered(&case);
        assert_eq!(stmts(&program, |stmt| matches!(stmt, Stmt::Shuffle { .. })), 0, "{lines}");
        assert!(stmts(&program, |stmt| *stmt == Stmt::Barrier) > 0, "{lines}");
    }
}

/// Changes the statement with this number among those that `is` holds for.
fn change(body: &mut [Stmt], is: &dyn Fn(&Stmt) -> bool, left: &mut usize, to: &mut dyn FnMut(&mut Stmt)) {
    for stmt in body {
        if is(stmt) {
            *left = left.wrapping_sub(1);
            if *left == usize::MAX {
                to(stmt);
            }
        }
        stmt.lists_mut().into_iter().flatten().for_each(|list| change(list, is, left, to));
    }
}

/// What goes wrong in the only kernel of a program if one shuffle reads the next lane, or another statement is a barrier.
fn failure(case: &Case, program: &Program, stmt: impl Fn(&Stmt) -> bool, number: usize) -> Failure {
    let mut wrong = program.clone();
    let id = program.kernels.keys().next().unwrap();
    let kernel = &mut wrong.kernels[id];
    let exprs = &mut kernel.exprs;
    let mut other = |stmt: &mut Stmt| {
        let Stmt::Shuffle { lane: from, .. } = stmt else { return *stmt = Stmt::Barrier };
        let mut op = |op, args: &[NodeId]| {
            let args = args.iter().copied().collect();
            exprs.intern(KernelNode { kind: NodeKind::Op(op), ty: Type::I32, args })
        };
        let (one, lanes) = (op(Op::Const(Value::from(1)), &[]), op(Op::Const(Value::from(32)), &[]));
        let next = op(Op::Binary(BinaryOp::Add), &[*from, one]);
        *from = op(Op::Binary(BinaryOp::Mod), &[next, lanes]);
    };
    change(&mut kernel.body, &stmt, &mut { number }, &mut other);
    let verdict = case.check_with(|run| run.simulate(&wrong, &device()).map(|()| Verdict::Passed));
    verdict.expect_err("a wrong program")
}

#[test]
fn every_lane_matters() {
    let case = softmax(ROWS);
    let program = lowered(&case);
    let kernel = program.kernels.values().next().unwrap();
    let of_sum = |array: ArrayId| kernel.arrays[array].name.contains("sum");
    // A maximum may stay the same with one lane less, a sum does not.
    let is_shuffle = |stmt: &Stmt| {
        let Stmt::Shuffle { value, .. } = stmt else { return false };
        matches!(kernel.exprs[*value].kind, NodeKind::Load(array) if of_sum(array))
    };
    assert_eq!(stmts(&program, is_shuffle), 2 * (5 + 1));
    for number in 0..stmts(&program, is_shuffle) {
        let failure = failure(&case, &program, is_shuffle, number);
        assert!(matches!(failure, Failure::Wrong(_)), "{number}: {failure}");
    }
}

/// Lanes without a point are read as well, so they need a value.
#[test]
fn idle_lanes_need_a_start() {
    let case = softmax(ROWS);
    let program = lowered(&case);
    let kernel = program.kernels.values().next().unwrap();
    let is_start = |stmt: &Stmt| {
        let Stmt::Store { array, value, .. } = stmt else { return false };
        let constant = kernel.exprs[*value].kind == NodeKind::Op(Op::Const(Value::from(0.0_f32)));
        constant && kernel.arrays[*array].name.contains("tree")
    };
    assert_eq!(stmts(&program, is_start), 2 * 10);
    for number in 0..stmts(&program, is_start) {
        let failure = failure(&case, &program, is_start, number);
        let Failure::Fault(error) = failure else { panic!("{number}: {failure}") };
        assert!(matches!(*error, SimError::Uninitialised { .. }), "{number}: {error}");
    }
}
