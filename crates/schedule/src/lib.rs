//! Schedules: a notation for where and how a pipeline is computed, and the dependence graph of the pipeline.
//!
//! A [`Schedule`] says where each stage of a pipeline is computed and how it is divided among blocks and threads. It
//! holds no image sizes, and it only names stages and inputs of its pipeline. [`Schedule::parse`] and
//! [`Schedule::to_text`] convert from and to the text form, [`ScheduleBuilder`] builds a schedule in Rust, and
//! [`Change`] is the difference of two. The crate `warploom-plan` resolves a schedule into a plan, at some sizes on a
//! device.
//!
//! # The graph
//!
//! A [`Dag`] is built once from a [`Pipeline`](warploom_lang::Pipeline), before any size is known:
//!
//! - A [`Node`] is an input or a Func.
//! - A [`Stage`] is one definition of a Func, with its [loops](Loop).
//! - An [`Edge`] connects a node to a stage that reads it.
//! - An [`AccessMap`] describes how the indices of an access move with the loops of the stage: one exact
//!   [`Rational`] per index and loop, or unknown.
//!
//! ```
//! use warploom_lang::*;
//! use warploom_schedule::Dag;
//! let x = vars!(x);
//! let input = Input::f32("input", 1);
//! let pair = func("pair", x, input.at(2 * x) + input.at(2 * x + 1));
//! let dag = Dag::new(&Pipeline::new("pairs", [pair])?);
//! assert_eq!(dag.to_text(), "\
//! graph pairs: 1 input, 1 Func, 1 stage, 1 edge
//!
//! input(d0)  f32  input
//! pair(x)    f32  output
//!     <- input[2x..2x+1] (2)
//! ");
//! # Ok::<(), PipelineError>(())
//! ```
//!
//! # The text form
//!
//! One line per node of the tree, indented below its parent:
//!
//! ```text
//! cuda_mat_mul
//!   kernel out   block x 64, y 64
//!     prod.0     threads x 16, y 16  serial x 4, y 4         unroll  private
//!     over prod.1.r 16
//!       A.stage  flat                                                shared
//!       B.stage  flat                                                shared
//!       prod.1   threads x 16, y 16  serial r all, x 4, y 4  unroll  private
//!     out        threads x 16, y 16  serial x 4, y 4         unroll
//! ```
//!
//! | line | meaning |
//! | --- | --- |
//! | `NAME inline F, G` | the pipeline, and the Funcs that are inlined into every use. `inline` may have its own lines |
//! | `kernel STAGE block x 64, y 16` | a kernel; each block computes 64 x 16 points of the stage. The other loops of the stage run entirely inside the block |
//! | `kernel STAGE block x 64 blocks 2` | the same; an SM must hold two blocks at once, if their threads and shared memory fit, so the kernel compiler limits the registers of each thread |
//! | `around STAGE.r 1` | serial loops over reduction variables, outermost first, with one launch per iteration |
//! | `over STAGE.r 16, STAGE.s 1` | the same inside a block |
//! | `STAGE flat shared` | a stage whose points are spread over all threads, stored in shared memory |
//! | `STAGE threads x 16 serial r all, x 4 unroll private` | a stage with 16 threads along x; each thread computes 4 points in unrolled loops. Stored in private memory of each thread |
//! | `STAGE flat shared pitch 65` | a stage whose array in shared memory has 65 elements from one row to the next, or dense rows if they are longer |
//! | `STAGE flat shared transpose` | a stage whose array in shared memory has rows along its last dimension |
//! | `INPUT.stage flat shared async 3` | a software-pipelined copy inside an over-loop, with three slices in shared memory: copies for the next two iterations are in flight while one is computed |
//! | `STAGE threads r 16 atomic shared` | an update whose points several threads update at once, by atomic operations |
//! | `STAGE threads x 16 serial x 4 unroll interleave` | a stage with interleaved register tiles: the rounds of a thread are unrolled, so in a block of 128 points it has two groups of 4 points, 64 apart |
//! | `STAGE threads x 16 serial x 4 unroll vector` | a stage whose threads access 4 adjacent elements of buffers by vector loads and stores |
//! | `INPUT.stage threads d0 32 serial d0 4 unroll shared async 2 vector` | a copy inside an over-loop that moves 4 adjacent elements by one instruction |
//! | `STAGE threads x 32, y 4 serial x 2 unroll lanes` | a stage whose Funcs in registers are shared by a warp: each lane computes its part, and reads the rest from its neighbours by shuffles |
//! | `STAGE threads x 32 serial y 16 unroll slide` | a stage whose threads go down 16 rows, with a sliding window of rows in registers |
//! | `INPUT.stage flat shared` | a copy of the part of an input that is read below |
//! | `FUNC registers` | below a stage: a Func that each thread computes right before the stage, for its own points |
//!
//! - Names follow the rules of [`naming`](warploom_lang::naming), so every text that is printed can be read back.
//! - A stage is named after its Func, followed by a number if the Func has several stages: `prod.1`.
//! - A size is a number or `all`. It is the inner extent; the outer iteration count follows from the image sizes.
//! - A kernel's own stage has no storage keyword, because it is stored in global memory. It is the last stage of its
//!   kernel. If it is the only stage, the kernel's line says how threads share it.
//! - `#` starts a comment. A line that ends in a comma continues on the next line, if that is indented further.

mod branching;
mod builder;
mod change;
mod dag;
mod error;
mod hash;
mod id_set;
mod ids;
mod lines;
mod names;
mod parse;
mod path;
mod print;
mod rational;
mod tree;
mod written;

pub use branching::branching;
pub use builder::{BlockBuilder, ScheduleBuilder, Tiles};
pub use change::{Change, ChangeError};
pub use dag::access::{Access, AccessClass, AccessMap, Index, Load, MapError, Slope, Target, merged};
pub use dag::derivative::Derivatives;
pub use dag::{Dag, Edge, Loop, LoopKind, Node, Source, Stage};
pub use error::{ScheduleError, ScheduleErrors, ScheduleFault, Spot};
pub use hash::{FULL_DEPTH, combined_hash, item_hash, kernel_hash, structural_hash};
pub use id_set::{FuncSet, IdSet, NodeSet};
pub use ids::{EdgeId, NodeId, StageId};
pub use names::Names;

pub use path::Path;
pub use rational::{Rational, common_denominator};
pub use tree::edit::{NodeMut, Site};
pub use tree::*;
pub use written::{Spots, Written};
