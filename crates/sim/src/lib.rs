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
//! ```
//! use warploom_codegen::ir::*;
//! use warploom_lang::{IdVec, Region, Type};
//! use warploom_sim::{SimError, Simulation};
//! use warploom_target::Device;
//!
//! // All 64 threads of one block store their index to one element.
//! let mut buffers = IdVec::new();
//! let role = Role::Output { output: 0, value: 0 };
//! let region = Region::of_extents(&[64]);
//! let buffer = buffers.push(BufferDecl { name: "out".into(), ty: Type::I32, region, strides: vec![1], role });
//! let mut arrays = IdVec::new();
//! let out = arrays.push(Array {
//!     name: "out".into(),
//!     ty: Type::I32,
//!     space: Space::Global(buffer),
//!     elements: 64,
//! });
//! let mut exprs = KernelExprs::default();
//! let mut leaf = |leaf| {
//!     exprs.intern(KernelNode { kind: NodeKind::Leaf(leaf), ty: Type::I32, args: Default::default() })
//! };
//! let (thread, block) = (leaf(Leaf::Thread), leaf(Leaf::Block(0)));
//! let mut kernels = IdVec::new();
//! let kernel = kernels.push(Kernel {
//!     name: "race".into(),
//!     grid: [1, 1, 1],
//!     threads: 64,
//!     arrays,
//!     vars: IdVec::new(),
//!     exprs,
//!     body: vec![Stmt::Store { array: out, index: block, value: thread }],
//! });
//! let launches = vec![Launch::Kernel(kernel)];
//! let mut program = Program { name: "example".into(), buffers, params: Vec::new(), kernels, launches };
//!
//! let device = Device::preset("h200")?;
//! let error = Simulation::new(&program, &device).run().unwrap_err();
//! assert!(matches!(error, SimError::Conflict { .. }));
//! assert_eq!(
//!     error.to_string(),
//!     "conflict: in the kernel `race`, statement 0 (store out), thread 1 of block [0, 0, 0] writes element 0 \
//!      of `out`, after thread 0 of block [0, 0, 0] wrote it in statement 0 (store out)"
//! );
//!
//! // Each to its own element.
//! program.kernels[kernel].body = vec![Stmt::Store { array: out, index: thread, value: thread }];
//! let outcome = Simulation::new(&program, &device).run()?;
//! assert_eq!(outcome.outputs[0].as_slice::<i32>().map(|out| out[63]), Some(63));
//! let stores = outcome.counters.kernels()[0].arrays[0].stores;
//! assert_eq!((stores.elements, stores.requests, stores.sectors), (64, 2, 8));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
//! | [`TooLarge`](SimError::TooLarge) | an array has more elements than the simulator can tell apart |
//! | [`Malformed`](SimError::Malformed) | the program breaks the rules of the IR: types, scopes, a write to an input |
//!
//! Two accesses are in conflict if different threads make them, one is a write, and no barrier of their block
//! lies between. A barrier orders its own block only, so two blocks of one launch are never ordered. Lanes
//! of one warp and of one statement are not exempt, and equal values do not excuse two writers. Two
//! atomics are not in conflict; an atomic and anything else are. A conflict is found whatever the order in
//! which the blocks happen to run; which of several is reported depends on that order.
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
