//! Kernels that are wrong: each mistake is found, and called by its name.

use warploom_codegen::ir::*;
use warploom_interp::buffer::Buffer;
use warploom_lang::op::{BinaryOp, Op};
use warploom_lang::{Id, Type};
use warploom_sim::{Access, AccessKind, Earlier, Fault, SimError, Simulation};

use crate::support::*;

const COUNT: usize = 250;

fn input() -> Buffer {
    buffer((0..COUNT).map(|i| i as i32).collect::<Vec<i32>>())
}

/// What can be wrong with [`blur`].
#[derive(Clone, Copy)]
struct Mistakes {
    barrier: bool,
    tile: usize,
    shift: i32,
    guard: i32,
    loaded: i32,
    overlap: i32,
}

const NONE: Mistakes = Mistakes { barrier: true, tile: 66, shift: 0, guard: 0, loaded: 66, overlap: 0 };

/// `out(i) = in(i) + in(i + 2)`, through a shared tile of 66 that 64 threads fill in two steps.
fn blur(mistakes: Mistakes) -> Program {
    let mut maker = Maker::new();
    let from = maker.input("from", Type::I32, COUNT);
    let to = maker.output("to", Type::I32, COUNT - 2);
    maker.kernel("blur", [4, 1, 1], 64, |k| {
        let (from, to) = (k.global(from), k.global(to));
        let tile = k.shared("tile", Type::I32, mistakes.tile);
        let step = k.var("step");
        let (block, thread, size) = (k.block(0), k.thread(), k.int(64 - mistakes.overlap));
        let start = k.mul(block, size);

        // The tile, two elements a thread.
        let round = k.use_var(step, Type::I32);
        let threads = k.int(64);
        let rounds = k.mul(round, threads);
        let place = k.add(rounds, thread);
        let source = k.add(start, place);
        let (loaded, end) = (k.int(mistakes.loaded), k.int(COUNT as i32));
        let (in_tile, in_image) = (k.lt(place, loaded), k.lt(source, end));
        let fill = k.binary(BinaryOp::And, in_tile, in_image);
        let value = k.load(from, source);
        let load = repeat(step, 2, vec![when(fill, vec![store(tile, place, value)])]);

        let (shift, two) = (k.int(mistakes.shift), k.int(2));
        let here = k.add(thread, shift);
        let there = k.add(here, two);
        let (a, b) = (k.load(tile, here), k.load(tile, there));
        let (sum, i) = (k.add(a, b), k.add(start, thread));
        let last = k.int(COUNT as i32 - 2 + mistakes.guard);
        let inside = k.lt(i, last);
        let result = when(inside, vec![store(to, i, sum)]);
        if mistakes.barrier { vec![load, Stmt::Barrier, result] } else { vec![load, result] }
    });
    maker.program
}

fn fails(program: &Program) -> SimError {
    run(program, &[&input()]).expect_err("a mistake that is found")
}

fn access(error: &SimError) -> Access {
    match error {
        SimError::OutOfBounds { access, .. }
        | SimError::Uninitialised { access }
        | SimError::Conflict { access, .. } => (**access).clone(),
        other => panic!("{other}"),
    }
}

fn conflict(program: &Program) -> (Access, Earlier) {
    match run_seeded(program, &[], 0).expect_err("a conflict") {
        SimError::Conflict { access, earlier } => (*access, *earlier),
        other => panic!("{other}"),
    }
}

#[test]
fn without_mistakes_it_works() {
    let outcome = run(&blur(NONE), &[&input()]).unwrap();
    let expected: Vec<i32> = (0..COUNT as i32 - 2).map(|i| 2 * i + 2).collect();
    assert_eq!(outcome.outputs[0].as_slice::<i32>(), Some(&expected[..]));
}

#[test]
fn a_dropped_barrier() {
    let error = fails(&blur(Mistakes { barrier: false, ..NONE }));
    let SimError::Conflict { access, earlier } = error else { panic!("{error}") };
    assert_eq!((access.kind, access.array.as_str(), access.thread), (AccessKind::Read, "tile", 0));
    assert_eq!((earlier.kind, earlier.thread, earlier.block), (AccessKind::Write, Some(2), access.block));
    assert_eq!(access.element, 2);
    let statement = earlier.statement.unwrap();
    assert_eq!(statement.to_string(), "statement 0.0.0 (for step / if / store tile)");
    assert_eq!(access.statement.to_string(), "statement 1.0 (if / store to)");
}

#[test]
fn a_barrier_dropped_between_reading_and_writing_again() {
    let reused = |barrier: bool| {
        let mut maker = Maker::new();
        let to = maker.output("to", Type::I32, 64);
        maker.kernel("reuse", [1, 1, 1], 64, |k| {
            let to = k.global(to);
            let cell = k.shared("cell", Type::I32, 64);
            let (thread, last, round) = (k.thread(), k.int(63), k.var("round"));
            let mirrored = k.sub(last, thread);
            let (value, round_value) = (k.load(cell, mirrored), k.use_var(round, Type::I32));
            let mut body = vec![store(cell, thread, round_value), Stmt::Barrier, store(to, thread, value)];
            body.extend(barrier.then_some(Stmt::Barrier));
            vec![repeat(round, 2, body)]
        });
        maker.program
    };
    run(&reused(true), &[]).unwrap();
    let (access, earlier) = conflict(&reused(false));
    assert_eq!((access.kind, earlier.kind), (AccessKind::Write, AccessKind::Read));
    assert_eq!((access.thread, earlier.thread, access.element), (0, Some(63), 0));
}

#[test]
fn a_shrunk_allocation() {
    let error = fails(&blur(Mistakes { tile: 65, ..NONE }));
    let SimError::OutOfBounds { access, elements: 65 } = error else { panic!("{error}") };
    assert_eq!((access.array.as_str(), access.element, access.kind), ("tile", 65, AccessKind::Write));
}

#[test]
fn a_shifted_index() {
    let error = fails(&blur(Mistakes { shift: -1, ..NONE }));
    assert!(matches!(error, SimError::OutOfBounds { .. }), "{error}");
    assert_eq!((access(&error).element, access(&error).thread), (-1, 0));
    // The last thread reads behind the tile, or, at the end of the image, what was not loaded.
    for seed in 0..8 {
        let error = run_seeded(&blur(Mistakes { shift: 1, ..NONE }), &[&input()], seed).unwrap_err();
        match &error {
            SimError::OutOfBounds { access, .. } => assert_eq!((access.thread, access.element), (63, 66)),
            SimError::Uninitialised { access } => assert_eq!((access.thread, access.element), (55, 58)),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_weakened_guard() {
    // Of the output: the last block reads what its tile does not hold.
    let error = fails(&blur(Mistakes { guard: 1, ..NONE }));
    assert!(matches!(error, SimError::Uninitialised { .. }), "{error}");
    // Of the tile.
    let error = fails(&blur(Mistakes { loaded: 67, ..NONE }));
    assert!(matches!(error, SimError::OutOfBounds { elements: 66, .. }), "{error}");
}

#[test]
fn an_uninitialised_read() {
    let error = fails(&blur(Mistakes { loaded: 65, ..NONE }));
    assert!(matches!(error, SimError::Uninitialised { .. }), "{error}");
    assert_eq!((access(&error).element, access(&error).thread), (65, 63));
}

#[test]
fn a_race_between_blocks() {
    let error = fails(&blur(Mistakes { overlap: 1, ..NONE }));
    let SimError::Conflict { access, earlier } = error else { panic!("{error}") };
    assert_eq!((access.kind, earlier.kind), (AccessKind::Write, AccessKind::Write));
    assert_eq!(access.array, "to");
    assert_ne!(access.block, earlier.block);
    assert_eq!(access.block[0].abs_diff(earlier.block[0]), 1);
}

#[test]
fn a_barrier_does_not_order_blocks() {
    // Block 0 writes, and after a barrier block 1 reads; an earlier launch wrote it all.
    let mut maker = Maker::new();
    let between = maker.temporary("between", Type::I32, 1);
    let to = maker.output("to", Type::I32, 1);
    maker.kernel("before", [1, 1, 1], 1, |k| {
        let (between, zero) = (k.global(between), k.int(0));
        vec![store(between, zero, zero)]
    });
    maker.kernel("exchange", [2, 1, 1], 32, |k| {
        let (between, to) = (k.global(between), k.global(to));
        let (block, thread, zero, one) = (k.block(0), k.thread(), k.int(0), k.int(1));
        let (is_first, first) = (k.lt(block, one), k.lt(thread, one));
        let is_second = k.lt(zero, block);
        let value = k.load(between, zero);
        vec![
            when(first, vec![when(is_first, vec![store(between, zero, one)])]),
            Stmt::Barrier,
            when(first, vec![when(is_second, vec![store(to, zero, value)])]),
        ]
    });
    for seed in 0..4 {
        let error = run_seeded(&maker.program, &[], seed).unwrap_err();
        let SimError::Conflict { access, earlier } = error else { panic!("{error}") };
        let kinds = [access.kind, earlier.kind];
        assert!(kinds.contains(&AccessKind::Read) && kinds.contains(&AccessKind::Write));
    }
}

/// A kernel of one block whose threads store `value` to element `index` of an output.
fn stores(index: fn(&mut KernelMaker<'_>) -> NodeId, value: fn(&mut KernelMaker<'_>) -> NodeId) -> Program {
    let mut maker = Maker::new();
    let to = maker.output("to", Type::I32, 64);
    maker.kernel("store", [1, 1, 1], 64, |k| {
        let (to, index, value) = (k.global(to), index(k), value(k));
        vec![store(to, index, value)]
    });
    maker.program
}

#[test]
fn a_race_inside_one_statement() {
    let half = |k: &mut KernelMaker<'_>| {
        let (thread, two) = (k.thread(), k.int(2));
        k.div(thread, two)
    };
    let same = |k: &mut KernelMaker<'_>| k.int(5);
    let thread = |k: &mut KernelMaker<'_>| k.thread();
    // Different values, equal values, everyone to one address.
    for (program, element, threads) in
        [(stores(half, thread), 0, [1, 0]), (stores(half, same), 0, [1, 0]), (stores(same, same), 5, [1, 0])]
    {
        let (access, earlier) = conflict(&program);
        assert_eq!((access.kind, earlier.kind), (AccessKind::Write, AccessKind::Write));
        assert_eq!((access.element, access.thread, earlier.thread), (element, threads[0], Some(threads[1])));
    }
    run(&stores(thread, same), &[]).unwrap();
}

#[test]
fn a_race_between_the_reads_and_the_write_of_a_statement() {
    // tile(thread) = tile((thread + 1) % 64): fine in lockstep, wrong on a machine.
    let mut maker = Maker::new();
    maker.kernel("shift", [1, 1, 1], 64, |k| {
        let tile = k.shared("tile", Type::I32, 64);
        let (thread, one, size) = (k.thread(), k.int(1), k.int(64));
        let next = k.add(thread, one);
        let next = k.rem(next, size);
        let value = k.load(tile, next);
        vec![store(tile, thread, thread), Stmt::Barrier, store(tile, thread, value)]
    });
    let (access, earlier) = conflict(&maker.program);
    assert_eq!((access.kind, earlier.kind, access.thread), (AccessKind::Write, AccessKind::Read, 0));
    assert_eq!(earlier.thread, Some(63));
}

#[test]
fn a_broadcast_without_a_barrier() {
    // One thread writes what all read, before or after.
    let broadcast = |writer: i32, before: bool, barrier: bool| {
        let mut maker = Maker::new();
        let to = maker.output("to", Type::I32, 64);
        maker.kernel("broadcast", [1, 1, 1], 64, |k| {
            let (to, cell) = (k.global(to), k.shared("cell", Type::I32, 1));
            let (thread, zero, writer) = (k.thread(), k.int(0), k.int(writer));
            let (chosen, value) = (k.binary(BinaryOp::Eq, thread, writer), k.load(cell, zero));
            let write = when(chosen, vec![store(cell, zero, thread)]);
            let read = store(to, thread, value);
            let mut body = if before { vec![write] } else { vec![write.clone(), Stmt::Barrier] };
            body.extend((before && barrier).then_some(Stmt::Barrier));
            body.push(read);
            body.extend((!before && barrier).then_some(Stmt::Barrier));
            body.extend((!before).then(|| when(chosen, vec![store(cell, zero, zero)])));
            body
        });
        maker.program
    };
    for (writer, before) in [0, 20, 63].into_iter().flat_map(|writer| [(writer, false), (writer, true)]) {
        run(&broadcast(writer, before, true), &[]).unwrap();
        let (access, earlier) = conflict(&broadcast(writer, before, false));
        let kinds = if before {
            (AccessKind::Read, AccessKind::Write)
        } else {
            (AccessKind::Write, AccessKind::Read)
        };
        assert_eq!((access.kind, earlier.kind, access.element), (kinds.0, kinds.1, 0));
        assert_ne!(Some(access.thread), earlier.thread);
    }
}

#[test]
fn reads_of_memory_between_launches() {
    let mut maker = Maker::new();
    let between = maker.temporary("between", Type::I32, 64);
    let to = maker.output("to", Type::I32, 64);
    maker.kernel("half", [1, 1, 1], 32, |k| {
        let (between, thread) = (k.global(between), k.thread());
        vec![store(between, thread, thread)]
    });
    maker.kernel("read", [2, 1, 1], 32, |k| {
        let (between, to, i) = (k.global(between), k.global(to), k.position());
        let value = k.load(between, i);
        vec![store(to, i, value)]
    });
    let error = run(&maker.program, &[]).unwrap_err();
    assert!(matches!(error, SimError::Uninitialised { .. }), "{error}");
    assert_eq!((access(&error).array.as_str(), access(&error).element), ("between", 32));
}

#[test]
fn shared_and_private_memory_is_forgotten_after_a_block() {
    let forgetful = |private: bool| {
        let mut maker = Maker::new();
        let to = maker.output("to", Type::I32, 64);
        maker.kernel("forget", [2, 1, 1], 32, |k| {
            let to = k.global(to);
            let own = match private {
                true => k.private("own", Type::I32, 32),
                false => k.shared("own", Type::I32, 32),
            };
            let (block, thread, one, i) = (k.block(0), k.thread(), k.int(1), k.position());
            let is_first = k.lt(block, one);
            let value = k.load(own, thread);
            vec![when(is_first, vec![store(own, thread, thread)]), store(to, i, value)]
        });
        maker.program
    };
    for private in [false, true] {
        let error = run(&forgetful(private), &[]).unwrap_err();
        assert!(matches!(error, SimError::Uninitialised { .. }), "{error}");
        assert_eq!((access(&error).array.as_str(), access(&error).block), ("own", [1, 0, 0]));
    }
}

#[test]
fn a_hole_in_an_output() {
    let even = |k: &mut KernelMaker<'_>| {
        let (thread, two) = (k.thread(), k.int(1));
        k.binary(BinaryOp::Min, thread, two)
    };
    let mut maker = Maker::new();
    let to = maker.output("to", Type::I32, 64);
    maker.kernel("hole", [1, 1, 1], 2, |k| {
        let (to, index, thread) = (k.global(to), even(k), k.thread());
        vec![store(to, index, thread)]
    });
    let error = run(&maker.program, &[]).unwrap_err();
    let point = vec![2];
    let expected = SimError::UnwrittenOutput { output: "to".into(), element: 2, point, unwritten: 62 };
    assert_eq!(error, expected);
}

#[test]
fn a_divergent_barrier() {
    // In an `if`, in a loop in an `if`, and in an `if` that all threads or none run.
    let barrier = |limit: i32, looped: bool| {
        let mut maker = Maker::new();
        maker.kernel("barrier", [1, 1, 1], 64, |k| {
            let (thread, limit, round) = (k.thread(), k.int(limit), k.var("round"));
            let some = k.lt(thread, limit);
            let inner = if looped { repeat(round, 3, vec![Stmt::Barrier]) } else { Stmt::Barrier };
            vec![when(some, vec![inner])]
        });
        maker.program
    };
    for looped in [false, true] {
        let error = run(&barrier(40, looped), &[]).unwrap_err();
        let SimError::DivergentBarrier { active, threads, missing, statement, .. } = error else {
            panic!("{error}")
        };
        assert_eq!((active, threads, missing), (40, 64, 40));
        assert_eq!(statement.what, "barrier");
        assert_eq!(statement.around.len(), if looped { 2 } else { 1 });
        for limit in [0, 64] {
            let outcome = run(&barrier(limit, looped), &[]).unwrap();
            let expected = if limit == 0 {
                0
            } else if looped {
                3
            } else {
                1
            };
            assert_eq!(outcome.counters.kernels()[0].barriers, expected);
        }
    }
}

#[test]
fn too_much_for_the_device() {
    let kernel = |grid: [u32; 3], threads: u32, shared: usize| {
        let mut maker = Maker::new();
        maker.kernel("big", grid, threads, |k| {
            k.shared("tile", Type::U8, shared);
            Vec::new()
        });
        let device = device();
        Simulation::new(&maker.program, &device).run().err()
    };
    let limit = device().shared.per_block_opt_in as usize;
    assert_eq!(kernel([1, 1, 1], 1024, limit), None);
    let name = || "big".to_string();
    let error = SimError::TooManyThreads { kernel: name(), threads: 1025, limit: 1024 };
    assert_eq!(kernel([1, 1, 1], 1025, 0), Some(error));
    let bytes = (limit + 1).next_multiple_of(16);
    assert_eq!(
        kernel([1, 1, 1], 1, limit + 1),
        Some(SimError::TooMuchShared { kernel: name(), bytes, limit })
    );
    let error = SimError::TooManyBlocks { kernel: name(), dimension: 1, blocks: 65_536, limit: 65_535 };
    assert_eq!(kernel([1, 65_536, 1], 1, 0), Some(error));
    assert_eq!(kernel([1, 0, 1], 1, 0), Some(SimError::EmptyLaunch { kernel: name() }));
    assert_eq!(kernel([1, 1, 1], 0, 0), Some(SimError::EmptyLaunch { kernel: name() }));
}

/// Threads 0 and 1 of each of two blocks touch one element; what and where is given.
fn mixed(
    space: fn(&mut KernelMaker<'_>, BufferId) -> ArrayId,
    kinds: [AccessKind; 2],
    by_block: bool,
) -> Program {
    let mut maker = Maker::new();
    let counter = maker.temporary("counter", Type::I32, 1);
    let seen = maker.temporary("seen", Type::I32, 4);
    maker.kernel("start", [1, 1, 1], 1, |k| {
        let (counter, zero) = (k.global(counter), k.int(0));
        vec![store(counter, zero, zero)]
    });
    maker.kernel("mixed", [2, 1, 1], 2, |k| {
        let (array, seen) = (space(k, counter), k.global(seen));
        let (thread, block, zero, one, i) = (k.thread(), k.block(0), k.int(0), k.int(1), k.position());
        let shared = k.kernel.arrays[array].space == Space::Shared;
        let who = if by_block { block } else { thread };
        let (first, second, alone) = (k.lt(who, one), k.lt(zero, who), k.lt(thread, one));
        let value = k.load(array, zero);
        let touch = |kind: AccessKind| match kind {
            AccessKind::Read => store(seen, i, value),
            AccessKind::Write => store(array, zero, one),
            AccessKind::Atomic => atomic(AtomicOp::Add, array, zero, one),
        };
        // Between threads only one block takes part, between blocks only one thread of each.
        let elsewhere = if by_block { k.lt(thread, one) } else { k.lt(block, one) };
        let mut body = Vec::new();
        if shared {
            body.extend([when(alone, vec![store(array, zero, zero)]), Stmt::Barrier]);
        }
        body.push(when(
            elsewhere,
            vec![when(first, vec![touch(kinds[0])]), when(second, vec![touch(kinds[1])])],
        ));
        body
    });
    maker.program
}

#[test]
fn atomics_excuse_only_each_other() {
    use AccessKind::{Atomic, Read, Write};
    let shared = |k: &mut KernelMaker<'_>, _: BufferId| k.shared("counter", Type::I32, 1);
    let global = |k: &mut KernelMaker<'_>, counter: BufferId| k.global(counter);
    for first in [Read, Write, Atomic] {
        for second in [Read, Write, Atomic] {
            let excused = first == second && first != Write;
            let programs = [
                mixed(shared, [first, second], false),
                mixed(global, [first, second], false),
                mixed(global, [first, second], true),
            ];
            for program in &programs {
                match run(program, &[]) {
                    Ok(_) => assert!(excused, "{first:?} and {second:?}"),
                    Err(SimError::Conflict { access, earlier }) => {
                        assert!(!excused, "{first:?} and {second:?}");
                        let found = [access.kind, earlier.kind];
                        assert!(found == [second, first] || found == [first, second], "{found:?}");
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        }
    }
}

#[test]
fn atomics_need_a_start() {
    let mut maker = Maker::new();
    let sum = maker.output("sum", Type::I32, 1);
    maker.kernel("sum", [1, 1, 1], 32, |k| {
        let (sum, zero) = (k.global(sum), k.int(0));
        vec![atomic(AtomicOp::Add, sum, zero, zero)]
    });
    let error = run(&maker.program, &[]).unwrap_err();
    assert!(matches!(error, SimError::Uninitialised { .. }), "{error}");
    assert_eq!(access(&error).kind, AccessKind::Atomic);
}

#[test]
fn both_sides_of_a_select_are_read() {
    let mut maker = Maker::new();
    let from = maker.input("from", Type::I32, COUNT);
    let to = maker.output("to", Type::I32, 256);
    maker.kernel("select", [4, 1, 1], 64, |k| {
        let (from, to) = (k.global(from), k.global(to));
        let (i, end) = (k.position(), k.int(COUNT as i32));
        let (inside, value) = (k.lt(i, end), k.load(from, i));
        let chosen = k.op(Op::Select, &[inside, value, end]);
        vec![store(to, i, chosen)]
    });
    let error = fails(&maker.program);
    assert!(matches!(error, SimError::OutOfBounds { .. }), "{error}");
    assert_eq!(access(&error).element, COUNT as i64);
}

/// An offset of 64 bits is never cut to one of 32, which would be an element.
#[test]
fn an_offset_far_outside() {
    let nearest = [(1 << 32, 0, i64::from(i32::MAX)), (-(1 << 33), 5, i64::from(i32::MIN)), (7, 250, 250)];
    for (stride, constant, element) in nearest {
        let mut maker = Maker::new();
        let (from, to) = (maker.input("from", Type::I32, COUNT), maker.output("to", Type::I32, 2));
        maker.kernel("far", [1, 1, 1], 2, |k| {
            let (from, to, thread) = (k.global(from), k.global(to), k.thread());
            let far = k.offset(&[(thread, stride)], constant);
            let value = k.load(from, far);
            vec![store(to, thread, value)]
        });
        let error = fails(&maker.program);
        assert!(matches!(error, SimError::OutOfBounds { .. }), "{error}");
        assert_eq!(access(&error).element, element, "{error}");
    }
}

#[test]
fn an_array_too_large_to_simulate() {
    let mut maker = Maker::new();
    let to = maker.output("to", Type::U8, 1 << 31);
    maker.kernel("one", [1, 1, 1], 1, |k| {
        let (to, thread, value) = (k.global(to), k.thread(), k.constant(1_u8));
        let index = k.offset(&[(thread, 1)], 0);
        vec![store(to, index, value)]
    });
    let error = fails(&maker.program);
    assert_eq!(error, SimError::TooLarge { buffer: "to".into(), elements: 1 << 31 });
}

#[test]
fn malformed_programs_are_refused() {
    let fault = |change: fn(&mut KernelMaker<'_>, ArrayId, ArrayId) -> Vec<Stmt>| {
        let mut maker = Maker::new();
        let from = maker.input("from", Type::I32, COUNT);
        let to = maker.output("to", Type::F32, 64);
        maker.kernel("bad", [1, 1, 1], 64, |k| {
            let (from, to) = (k.global(from), k.global(to));
            change(k, from, to)
        });
        match fails(&maker.program) {
            SimError::Malformed { fault, .. } => fault,
            other => panic!("{other}"),
        }
    };
    let found = fault(|k, from, _| {
        let thread = k.thread();
        vec![store(from, thread, thread)]
    });
    assert_eq!(found, Fault::WritesInput { array: "from".into() });
    let found = fault(|k, _, to| {
        let thread = k.thread();
        vec![store(to, thread, thread)]
    });
    assert_eq!(found, Fault::Operand { role: "value", expected: Type::F32, found: Type::I32 });
    let found = fault(|k, _, _| {
        let thread = k.thread();
        vec![when(thread, Vec::new())]
    });
    assert_eq!(found, Fault::Operand { role: "condition", expected: Type::Bool, found: Type::I32 });
    let found = fault(|k, from, to| {
        // The variable's scope ends with the loop.
        let (x, thread) = (k.var("x"), k.thread());
        let (value, x_value) = (k.load(from, thread), k.use_var(x, Type::I32));
        let float = k.op(Op::Cast(Type::F32), &[value]);
        vec![repeat(x, 1, vec![store(to, thread, float)]), store(to, x_value, float)]
    });
    assert_eq!(found, Fault::Unbound { var: "x".into() });
    let found = fault(|k, _, to| {
        let thread = k.thread();
        let wrong = k.node(NodeKind::Op(Op::Binary(BinaryOp::Add)), Type::F32, &[thread, thread]);
        vec![store(to, thread, wrong)]
    });
    assert!(matches!(found, Fault::Type { .. }), "{found}");
    let found = fault(|k, _, _| {
        let own = k.private("own", Type::I32, 1);
        let zero = k.int(0);
        vec![atomic(AtomicOp::Add, own, zero, zero)]
    });
    assert_eq!(found, Fault::Atomic { array: "own".into() });
    let found = fault(|k, _, _| {
        let (own, thread) = (k.private("own", Type::I32, 1), k.thread());
        let (offset, zero) = (k.offset(&[(thread, 1)], 0), k.int(0));
        vec![store(own, zero, offset)]
    });
    assert!(matches!(found, Fault::Offset { .. }), "{found}");
    let found = fault(|k, _, to| {
        let thread = k.thread();
        let offset = k.offset(&[(thread, 1)], 0);
        let value = k.op(Op::Cast(Type::F32), &[offset]);
        vec![store(to, thread, value)]
    });
    assert!(matches!(found, Fault::Offset { .. }), "{found}");
    let found = fault(|k, from, to| {
        let thread = k.thread();
        let strides = Strides { strides: Default::default(), constant: 0 };
        let offset = k.kernel.exprs.intern_offset([thread].into_iter().collect(), strides);
        let value = k.load(from, offset);
        let float = k.op(Op::Cast(Type::F32), &[value]);
        vec![store(to, thread, float)]
    });
    assert!(matches!(found, Fault::Type { .. }), "{found}");

    let mut program = blur(NONE);
    program.launches.push(Launch::Kernel(KernelId::new(7)));
    assert!(matches!(fails(&program), SimError::Malformed { .. }));
    let mut program = blur(NONE);
    program.buffers[BufferId::new(1)].strides = vec![2];
    assert!(matches!(fails(&program), SimError::Malformed { fault: Fault::Strides { .. }, .. }));
    let mut program = blur(NONE);
    let elements = &mut program.buffers[BufferId::new(1)];
    elements.region = warploom_lang::Region::of_extents(&[COUNT as i64 - 3]);
    assert!(matches!(fails(&program), SimError::Malformed { fault: Fault::Array { .. }, .. }));
}
