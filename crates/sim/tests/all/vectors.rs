//! Vectors: what they move, what they count as, and where they must not start.

use warploom_codegen::ir::*;
use warploom_lang::Type;
use warploom_sim::{AccessKind, Memory, SimError};

use crate::support::*;

const THREADS: usize = 64;
const WIDTH: usize = 4;

/// Every thread moves four bytes to the place of the thread opposite, `shift` elements further on.
fn turned(shift: i32) -> Program {
    let mut maker = Maker::new();
    let from = maker.input("from", Type::U8, THREADS * WIDTH);
    let to = maker.output("to", Type::U8, THREADS * WIDTH);
    maker.kernel("turned", [1, 1, 1], THREADS as u32, |k| {
        let (from, to) = (k.global(from), k.global(to));
        let own = k.private("own", Type::U8, WIDTH);
        let (thread, last, zero) = (k.thread(), k.int(THREADS as i32 - 1), k.int(0));
        let (width, shift) = (k.int(WIDTH as i32), k.int(shift));
        let other = k.sub(last, thread);
        let (index, at) = (k.mul(thread, width), k.mul(other, width));
        let index = k.add(index, shift);
        let width = WIDTH as u32;
        vec![
            Stmt::Vector { to: own, at: zero, from, index, width },
            Stmt::Vector { to, at, from: own, index: zero, width },
        ]
    });
    maker.program
}

#[test]
fn vectors_are_one_request_of_all_their_elements() {
    let bytes: Vec<u8> = (0..=255).collect();
    let outcome = run(&turned(0), &[&buffer(bytes.clone())]).unwrap();
    let expected: Vec<u8> = bytes.chunks(WIDTH).rev().flatten().copied().collect();
    assert_eq!(outcome.outputs[0].as_slice::<u8>(), Some(&expected[..]));
    let counters = &outcome.counters.kernels()[0];
    for traffic in [counters.loads(Memory::Global), counters.stores(Memory::Global)] {
        // A warp moves 128 bytes.
        assert_eq!((traffic.elements, traffic.bytes, traffic.requests, traffic.sectors), (256, 256, 2, 8));
    }
}

#[test]
fn vectors_start_at_multiples_of_their_length() {
    let error = run(&turned(-2), &[&buffer(vec![0_u8; 256])]).expect_err("thread 0 is out of bounds");
    assert!(matches!(error, SimError::OutOfBounds { .. }), "{error}");
    let error = run(&turned(4), &[&buffer(vec![0_u8; 256])]).expect_err("the last thread is out of bounds");
    assert!(matches!(error, SimError::OutOfBounds { .. }), "{error}");
    let mut program = turned(1);
    // One more element, so that all are in bounds.
    program.kernels.values_mut().for_each(|kernel| kernel.threads = 32);
    let error = run(&program, &[&buffer(vec![0_u8; 256])]).expect_err("they start one further");
    let SimError::Misaligned { access, width } = &error else { panic!("{error}") };
    assert_eq!((access.kind, access.array.as_str(), *width), (AccessKind::Read, "from", 4));
    assert!(
        error.to_string().starts_with("misaligned: in the kernel `turned`, statement 0 (vector own)"),
        "{error}"
    );
}
