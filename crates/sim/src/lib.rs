//! A GPU simulator for Warploom's [kernel IR](warploom_codegen::ir).
//!
//! [`Simulation`] runs a program exactly as its IR specifies, with the arithmetic of the reference
//! evaluator, so outputs can be compared bit for bit. It checks every memory access:
//!
//! - A block runs in lockstep. Every value is a row with one lane per thread of the block. Conditions
//!   narrow the set of active threads; inactive threads do nothing. Blocks run one after another, in
//!   an order that depends on the seed.
//! - Inputs contain the given buffers. Outputs and temporaries are uninitialised when a program
//!   starts, and shared and per-thread arrays are uninitialised when a block starts.
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
//! let out = arrays.push(Array::new("out".into(), Type::I32, Space::Global(buffer), 64));
//! let mut exprs = KernelExprs::default();
//! let mut leaf = |leaf| {
//!     exprs.intern(KernelNode { kind: NodeKind::Leaf(leaf), ty: Type::I32, args: Default::default() })
//! };
//! let (thread, block) = (leaf(Leaf::Thread), leaf(Leaf::Block(0)));
//! let mut kernels = IdVec::new();
//! let kernel = kernels.push(Kernel {
//!     name: "race".into(),
//!     grid: [1, 1, 1],
//!     blocks: None,
//!     scalars: Vec::new(),
//!     threads: 64,
//!     resident: None,
//!     origins: Vec::new(),
//!     arrays,
//!     vars: IdVec::new(),
//!     exprs,
//!     body: vec![Stmt::Store { array: out, index: block, value: thread }],
//!     shared: None,
//! });
//! let launches = vec![Launch::Kernel(kernel)];
//! let mut program = Program { name: "example".into(), buffers, params: Vec::new(), tables: Default::default(), kernels, launches, sizes: None };
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
//! # Errors
//!
//! | [`SimError`] | when |
//! | --- | --- |
//! | [`OutOfBounds`](SimError::OutOfBounds) | an active thread reads or writes outside an array, on either side of a `select` |
//! | [`Uninitialised`](SimError::Uninitialised) | a thread reads, or updates with an atomic, an element that was not written |
//! | [`UnwrittenOutput`](SimError::UnwrittenOutput) | an element of an output is not written when the program ends |
//! | [`Conflict`](SimError::Conflict) | two threads access one element without synchronisation |
//! | [`DivergentBarrier`](SimError::DivergentBarrier) | some threads of a block reach a barrier, but others do not |
//! | [`TooManyThreads`](SimError::TooManyThreads), [`TooManyBlocks`](SimError::TooManyBlocks), [`TooMuchShared`](SimError::TooMuchShared), [`EmptyLaunch`](SimError::EmptyLaunch) | the device cannot launch a kernel |
//! | [`TooLarge`](SimError::TooLarge) | an array has more elements than the simulator can index |
//! | [`Malformed`](SimError::Malformed) | the program breaks the rules of the IR: types, scopes, a write to an input |
//!
//! Two accesses conflict if different threads make them, at least one is a write, and no barrier of
//! their block lies between them. A barrier orders only its own block, so two blocks of one launch are
//! never ordered. This also holds for lanes of one warp, for one statement, and for two writes of
//! equal values. Two atomics do not conflict; an atomic and any other access do. Every conflict is
//! found for any order of blocks; if there are several, the order determines which one is reported.
//!
//! # Counters
//!
//! [`Counters`] contains what a profiler would show per launch: operations by class, requests and
//! sectors of global memory, wavefronts and bank conflicts of shared memory, elements and bytes of
//! every array, and barriers. Buffers start at a sector boundary. Shared arrays follow each other, each
//! aligned to 16 bytes.
//!
//! # Implementation
//!
//! `compile` turns a kernel into flat `code` over registers, once. `machine` runs it with the row
//! operations of the reference evaluator. `access` and `memory` implement loads and stores, `shadow`
//! records which thread accessed an element last, and `traffic` counts sectors and banks. `observe` reports
//! accesses to an [`Observer`].
mod access;
mod code;
mod compile;
mod counters;
mod error;
mod launch;
mod machine;
mod mask;
mod memory;
mod observe;
mod order;
mod shadow;
mod simulation;
mod tables;
mod traffic;
mod vector;
mod world;

pub use counters::{ArrayCounters, Counters, KernelCounters, Memory, Operations, Traffic};
pub use error::{Access, AccessKind, Earlier, Fault, SimError, Statement};
pub use observe::{Observed, Observer};
pub use simulation::{InputKey, Outcome, Simulation};
