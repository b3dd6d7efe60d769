//! A simulator of GPUs for Warploom's [kernel IR](warploom_codegen::ir).
//!
//! [`Simulation`] runs a program exactly as its IR says, with the arithmetic of the reference evaluator, so
//! that outputs can be compared bit for bit, and watches every access to memory on the way:
//!
//! - A block runs in lockstep. Every value is a row over the block's threads; conditions narrow the set of
//!   active threads, and threads that are not active do nothing. Blocks run one after another, in an order
//!   that the seed chooses.
//! - Inputs hold what was given. Outputs and temporaries hold nothing when a program starts, shared and
//!   per-thread arrays nothing when a block starts.
//!
//! # What is refused
//!
//! | [`SimError`] | when |
//! | --- | --- |
//! | [`OutOfBounds`](SimError::OutOfBounds) | an active thread reads or writes outside an array, on either side of a `select` |
//! | [`Uninitialised`](SimError::Uninitialised) | a thread reads, or updates with an atomic, what nothing wrote |
//! | [`UnwrittenOutput`](SimError::UnwrittenOutput) | the program ends and an output has holes |
//! | [`Conflict`](SimError::Conflict) | two threads touch one element, and nothing orders them |
//! | [`DivergentBarrier`](SimError::DivergentBarrier) | some threads of a block arrive at a barrier, others don't |
//! | [`TooManyThreads`](SimError::TooManyThreads), [`TooManyBlocks`](SimError::TooManyBlocks), [`TooMuchShared`](SimError::TooMuchShared), [`EmptyLaunch`](SimError::EmptyLaunch) | the device cannot launch a kernel |
//! | [`Malformed`](SimError::Malformed) | the program breaks the rules of the IR: types, scopes, a write to an input |
//!
//! Two accesses are in conflict if different threads make them, one is a write, and no barrier of their block
//! lies between. A barrier orders its own block only, so two blocks of one launch are never ordered. Lanes
//! of one warp and of one statement are not exempt, and equal values do not excuse two writers. Two
//! atomics are not in conflict; an atomic and anything else are. Every conflict is found, whatever the order
//! in which the blocks happen to run; which of several is reported depends on that order.
//!
//! # What is counted
//!
//! [`Counters`] holds what a profiler would show, for each launch: operations by class, requests and sectors of
//! global memory, wavefronts and bank conflicts of shared memory, elements and bytes of every array, barriers.
//! Buffers start at the start of a sector; shared arrays follow each other, each at a multiple of 16 bytes.
//!
//! # Inside
//!
//! `compile` turns a kernel into flat `code` over registers, once; `machine` runs it with the row operations of
//! the reference evaluator, `access` and `memory` do its loads and stores, `shadow` knows who touched what,
//! `traffic` counts sectors and banks.
mod access;
mod code;
mod compile;
mod counters;
mod error;
mod launch;
mod machine;
mod mask;
mod memory;
mod order;
mod shadow;
mod simulation;
mod traffic;
mod world;

pub use counters::{ArrayCounters, Counters, KernelCounters, Memory, Operations, Traffic};
pub use error::{Access, AccessKind, Earlier, Fault, SimError, Statement};
pub use simulation::{InputKey, Outcome, Simulation};
