//! Shuffles: what they exchange, what they count, and which lanes they may not read.

use warploom_codegen::ir::*;
use warploom_lang::op::BinaryOp;
use warploom_lang::{Id, Type};
use warploom_sim::{Memory, SimError};

use crate::support::*;

/// Each thread writes `100 * block + thread` of the thread whose lane is `lane`, as far as `active` lets it.
fn exchange(threads: u32, active: i32, lane: impl FnOnce(&mut KernelMaker<'_>, NodeId) -> NodeId) -> Program {
    let mut maker = Maker::new();
    let to = maker.output("to", Type::I32, 2 * threads as usize);
    maker.kernel("exchange", [2, 1, 1], threads, |k| {
        let (to, thread, block, hundred) = (k.global(to), k.thread(), k.block(0), k.int(100));
        let (lane, at, start) = (lane(k, thread), k.position(), k.mul(block, hundred));
        let (value, var, limit) = (k.add(start, thread), k.var("other"), k.int(active));
        let (other, some) = (k.use_var(var, Type::I32), k.lt(thread, limit));
        vec![when(some, vec![Stmt::Shuffle { var, value, lane }, store(to, at, other)])]
    });
    maker.program
}

/// `(thread + by) mod 32`.
fn rotated(k: &mut KernelMaker<'_>, thread: NodeId, by: i32) -> NodeId {
    let (by, lanes) = (k.int(by), k.int(32));
    let sum = k.add(thread, by);
    k.rem(sum, lanes)
}

#[test]
fn lanes_read_each_other_within_their_warp() {
    let outcome = run(&exchange(64, 64, |k, thread| rotated(k, thread, 5)), &[]).unwrap();
    let expected: Vec<i32> =
        (0..128).map(|i| (i / 64) * 100 + (i % 64) / 32 * 32 + (i % 32 + 5) % 32).collect();
    assert_eq!(outcome.outputs[0].as_slice::<i32>(), Some(&expected[..]));
    let counters = &outcome.counters.kernels()[0];
    assert_eq!((counters.shuffles, counters.barriers), (4, 0));
    assert_eq!((counters.loads(Memory::Shared).requests, counters.loads(Memory::Thread).requests), (0, 0));
}

#[test]
fn a_shuffle_counts_as_one_operation_of_each_thread() {
    let mut program = exchange(32, 32, |k, thread| rotated(k, thread, 0));
    let with = run(&program, &[]).unwrap().counters.lane_operations();
    let Stmt::If { body, .. } = &mut program.kernels[KernelId::new(0)].body[0] else { panic!("one `if`") };
    let Stmt::Shuffle { var, value, lane } = body[0] else { panic!("a shuffle first") };
    body[0] = Stmt::Let(var, value);
    let without = run(&program, &[]).unwrap().counters.lane_operations();
    let of_lane = kernel_operations(&program, lane);
    assert_eq!(with - without, 64 * (1 + of_lane));
}

/// The operations of a node, constants aside.
fn kernel_operations(program: &Program, node: NodeId) -> u64 {
    let exprs = &program.kernels[KernelId::new(0)].exprs;
    exprs.reachable([node]).into_iter().filter(|id| !exprs[*id].args.is_empty()).count() as u64
}

#[test]
fn a_broadcast_reads_one_lane() {
    let outcome = run(&exchange(96, 96, |k, _| k.int(7)), &[]).unwrap();
    let expected: Vec<i32> = (0..192).map(|i| (i / 96) * 100 + (i % 96) / 32 * 32 + 7).collect();
    assert_eq!(outcome.outputs[0].as_slice::<i32>(), Some(&expected[..]));
    assert_eq!(outcome.counters.kernels()[0].shuffles, 6);
}

fn refused(program: &Program) -> (u32, i32, u32, String) {
    let error = run(program, &[]).expect_err("the kernel is wrong");
    let SimError::InactiveLane { thread, lane, active, statement, .. } = error else { panic!("{error}") };
    (thread, lane, active, statement.to_string())
}

#[test]
fn a_lane_that_left_cannot_be_read() {
    let left = refused(&exchange(64, 40, |k, thread| rotated(k, thread, 8)));
    assert_eq!(left, (32, 8, 0xff, "statement 0.0 (if / shuffle other)".to_string()));
    // The second warp of 40 threads has eight lanes.
    let missing = refused(&exchange(40, 40, |k, thread| rotated(k, thread, 1)));
    assert_eq!((missing.0, missing.1, missing.2), (39, 8, 0xff));
}

#[test]
fn a_lane_outside_the_warp_cannot_be_read() {
    let (lane, active) = (32, u32::MAX);
    let beyond = refused(&exchange(64, 64, |k, thread| {
        let one = k.int(1);
        k.add(thread, one)
    }));
    assert_eq!((beyond.0, beyond.1, beyond.2), (31, lane, active));
    let below = refused(&exchange(32, 32, |k, thread| {
        let one = k.int(1);
        k.binary(BinaryOp::Sub, thread, one)
    }));
    assert_eq!((below.0, below.1, below.2), (0, -1, active));
}
