//! Asynchronous copies: when they arrive, who sees them, and what must not happen before.

use warploom_codegen::ir::*;
use warploom_interp::buffer::Buffer;
use warploom_lang::Type;
use warploom_sim::{AccessKind, SimError};

use crate::support::*;

const THREADS: usize = 64;
const SLICES: usize = 5;
const BUFFERS: i32 = 3;

/// What can be wrong with [`sums`].
#[derive(Clone, Copy)]
struct Mistakes {
    first_commit: bool,
    commit: bool,
    wait: Option<u32>,
    barrier: bool,
    /// Copies start before the barrier, not after it.
    early: bool,
    /// Threads read what they copied themselves.
    own: bool,
}

const NONE: Mistakes =
    Mistakes { first_commit: true, commit: true, wait: Some(1), barrier: true, early: false, own: false };

/// `out(i)` is the sum over five slices of the element of thread `63 - i`, through three rotating buffers.
fn sums(mistakes: Mistakes) -> Program {
    let mut maker = Maker::new();
    let from = maker.input("from", Type::I32, SLICES * THREADS);
    let to = maker.output("to", Type::I32, THREADS);
    maker.kernel("sums", [1, 1, 1], THREADS as u32, |k| {
        let (from, to) = (k.global(from), k.global(to));
        let tile = k.shared("tile", Type::I32, BUFFERS as usize * THREADS);
        let sum = k.private("sum", Type::I32, 1);
        let (thread, threads, buffers, zero) = (k.thread(), k.int(THREADS as i32), k.int(BUFFERS), k.int(0));
        let copy = |k: &mut KernelMaker<'_>, slice: NodeId| {
            let (buffer, row) = (k.rem(slice, buffers), k.mul(slice, threads));
            let (place, source) = (k.mul(buffer, threads), k.add(row, thread));
            let (index, value) = (k.add(place, thread), k.load(from, source));
            Stmt::Copy { array: tile, index, value }
        };
        let (first, slice) = (k.var("first"), k.var("slice"));
        let number = k.use_var(first, Type::I32);
        let mut start = vec![copy(k, number)];
        start.extend(mistakes.first_commit.then_some(Stmt::Commit));
        let (number, ahead, count) = (k.use_var(slice, Type::I32), k.int(BUFFERS - 1), k.int(SLICES as i32));
        let next = k.add(number, ahead);
        let exists = k.lt(next, count);
        let next = when(exists, vec![copy(k, next)]);
        let (buffer, last) = (k.rem(number, buffers), k.int(THREADS as i32 - 1));
        let (place, mirrored) = (k.mul(buffer, threads), k.sub(last, thread));
        let other = k.add(place, if mistakes.own { thread } else { mirrored });
        let (value, old) = (k.load(tile, other), k.load(sum, zero));
        let total = k.add(old, value);
        let mut body: Vec<Stmt> = mistakes.wait.map(Stmt::Wait).into_iter().collect();
        body.extend(mistakes.barrier.then_some(Stmt::Barrier));
        body.insert(if mistakes.early { 0 } else { body.len() }, next);
        body.extend(mistakes.commit.then_some(Stmt::Commit));
        body.push(store(sum, zero, total));
        vec![
            store(sum, zero, zero),
            repeat(first, BUFFERS as u32 - 1, start),
            repeat(slice, SLICES as u32, body),
            store(to, thread, old),
        ]
    });
    maker.program
}

fn input() -> Buffer {
    buffer((0..SLICES * THREADS).map(|i| (i * i) as i32).collect::<Vec<i32>>())
}

fn fails(mistakes: Mistakes) -> SimError {
    run(&sums(mistakes), &[&input()]).expect_err("a mistake that is found")
}

#[test]
fn without_mistakes_it_works() {
    let outcome = run(&sums(NONE), &[&input()]).unwrap();
    let element = |slice: usize, thread: usize| ((slice * THREADS + thread) as i32).pow(2);
    let expected: Vec<i32> =
        (0..THREADS).map(|i| (0..SLICES).map(|slice| element(slice, THREADS - 1 - i)).sum()).collect();
    assert_eq!(outcome.outputs[0].as_slice::<i32>(), Some(&expected[..]));
    let stores = outcome.counters.kernels()[0].stores(warploom_sim::Memory::Shared);
    assert_eq!(stores.elements, (SLICES * THREADS) as u64);
}

#[test]
fn copies_are_under_way_until_their_thread_has_waited() {
    let missing = [
        Mistakes { wait: None, ..NONE },
        Mistakes { wait: Some(2), ..NONE },
        Mistakes { first_commit: false, ..NONE },
        Mistakes { commit: false, ..NONE },
        // Not even its own.
        Mistakes { wait: None, own: true, ..NONE },
    ];
    for mistakes in missing {
        let error = fails(mistakes);
        let SimError::UnderWay { access, copy } = &error else { panic!("{error}") };
        assert_eq!((access.kind, access.array.as_str()), (AccessKind::Read, "tile"));
        assert!(copy.statement.as_ref().unwrap().what == "copy tile", "{error}");
    }
    let error = fails(Mistakes { wait: None, ..NONE }).to_string();
    assert!(error.starts_with("copy under way: in the kernel `sums`, statement 2.3 (for slice / store sum)"));
    assert!(error.contains("thread 0 of block [0, 0, 0] reads element 63 of `tile`"), "{error}");
}

/// A wait longer than needed is no mistake.
#[test]
fn waiting_for_all_copies_works() {
    run(&sums(Mistakes { wait: Some(0), ..NONE }), &[&input()]).unwrap();
}

#[test]
fn other_threads_see_copies_after_a_barrier() {
    let error = fails(Mistakes { barrier: false, ..NONE });
    let SimError::Conflict { access, earlier } = &error else { panic!("{error}") };
    assert_eq!((access.kind, earlier.kind), (AccessKind::Read, AccessKind::Write));
    assert_eq!(earlier.thread, Some(63));
    run(&sums(Mistakes { barrier: false, own: true, ..NONE }), &[&input()]).unwrap();
}

/// A thread that is ahead would overwrite the slice that others still read.
#[test]
fn a_slice_is_overwritten_only_after_all_have_read_it() {
    let error = fails(Mistakes { early: true, ..NONE });
    let SimError::Conflict { access, earlier } = &error else { panic!("{error}") };
    assert_eq!((access.kind, earlier.kind), (AccessKind::Write, AccessKind::Read));
    assert_eq!(access.statement.what, "copy tile");
}

#[test]
fn all_threads_come_by_commits_and_waits() {
    for stmt in [Stmt::Commit, Stmt::Wait(0)] {
        let mut maker = Maker::new();
        maker.kernel("some", [1, 1, 1], 64, |k| {
            let (thread, half) = (k.thread(), k.int(32));
            let some = k.lt(thread, half);
            vec![when(some, vec![stmt.clone()])]
        });
        let error = run(&maker.program, &[]).expect_err("a mistake that is found");
        let SimError::DivergentBarrier { active, missing, .. } = error else { panic!("{error}") };
        assert_eq!((active, missing), (32, 32));
    }
}

#[test]
fn copies_go_from_global_to_shared_memory() {
    for (shared_source, ty) in [(true, Type::I32), (false, Type::U8)] {
        let mut maker = Maker::new();
        let from = maker.input("from", ty, 64);
        maker.kernel("copy", [1, 1, 1], 64, |k| {
            let (from, tile) = (k.global(from), k.shared("tile", ty, 64));
            let index = k.thread();
            let value = k.load(if shared_source { tile } else { from }, index);
            vec![Stmt::Copy { array: tile, index, value }]
        });
        let input = if ty == Type::U8 { buffer(vec![0_u8; 64]) } else { buffer(vec![0_i32; 64]) };
        let error = run(&maker.program, &[&input]).expect_err("a mistake that is found").to_string();
        assert!(error.contains("`tile` cannot be copied to"), "{error}");
    }
}

/// How [`reversed`] copies, waits and reads.
#[derive(Clone, Copy)]
struct Vectors {
    /// How many elements later the copies start in the buffer and in the shared array.
    shifts: [i32; 2],
    wait: bool,
    barrier: bool,
}

/// `out(i)` is element `4 * THREADS - 1 - i`, for the first elements; every thread copies four at once.
fn reversed(vectors: Vectors) -> Program {
    let mut maker = Maker::new();
    let from = maker.input("from", Type::F32, 5 * THREADS);
    let to = maker.output("to", Type::F32, THREADS);
    maker.kernel("reversed", [1, 1, 1], THREADS as u32, |k| {
        let (from, to) = (k.global(from), k.global(to));
        let tile = k.shared("tile", Type::F32, 5 * THREADS);
        let (thread, width, last) = (k.thread(), k.int(4), k.int(4 * THREADS as i32 - 1));
        let first = k.mul(thread, width);
        let [index, at] = vectors.shifts.map(|shift| {
            let shift = k.int(shift);
            k.add(first, shift)
        });
        let other = k.sub(last, thread);
        let value = k.load(tile, other);
        let mut body = vec![Stmt::Vector { to: tile, at, from, index, width: 4 }, Stmt::Commit];
        body.extend(vectors.wait.then_some(Stmt::Wait(0)));
        body.extend(vectors.barrier.then_some(Stmt::Barrier));
        body.push(store(to, thread, value));
        body
    });
    maker.program
}

const RIGHT: Vectors = Vectors { shifts: [0, 0], wait: true, barrier: true };

fn floats() -> Buffer {
    buffer((0..5 * THREADS).map(|i| i as f32).collect::<Vec<f32>>())
}

#[test]
fn copies_of_four_elements_are_one_request() {
    let outcome = run(&reversed(RIGHT), &[&floats()]).unwrap();
    let expected: Vec<f32> = (0..THREADS).map(|i| (4 * THREADS - 1 - i) as f32).collect();
    assert_eq!(outcome.outputs[0].as_slice::<f32>(), Some(&expected[..]));
    let counters = &outcome.counters.kernels()[0];
    let (loads, stores) =
        (counters.loads(warploom_sim::Memory::Global), counters.stores(warploom_sim::Memory::Shared));
    // Two warps, each with 512 bytes: 16 sectors, and four words in each bank.
    assert_eq!((loads.elements, loads.bytes, loads.requests, loads.sectors), (256, 1024, 2, 32));
    assert_eq!((stores.elements, stores.bytes, stores.requests, stores.wavefronts), (256, 1024, 2, 8));
}

#[test]
fn copies_of_four_elements_arrive_like_others() {
    let fails =
        |vectors: Vectors| run(&reversed(vectors), &[&floats()]).expect_err("a mistake that is found");
    let error = fails(Vectors { wait: false, ..RIGHT });
    assert!(matches!(error, SimError::UnderWay { .. }), "{error}");
    let error = fails(Vectors { barrier: false, ..RIGHT });
    let SimError::Conflict { access, earlier } = &error else { panic!("{error}") };
    assert_eq!((access.kind, earlier.kind), (AccessKind::Read, AccessKind::Write));
    for (shifts, kind, array) in [
        ([1, 0], AccessKind::Read, "from"),
        ([0, 2], AccessKind::Write, "tile"),
        ([2, 2], AccessKind::Read, "from"),
    ] {
        let error = fails(Vectors { shifts, ..RIGHT });
        let SimError::Misaligned { access, width } = &error else { panic!("{error}") };
        assert_eq!((access.kind, access.array.as_str(), *width), (kind, array, 4));
    }
    let error = fails(Vectors { shifts: [0, 80], ..RIGHT });
    assert!(matches!(error, SimError::OutOfBounds { .. }), "{error}");
}
