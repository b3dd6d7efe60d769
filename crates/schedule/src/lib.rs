//! The scheduler's view of a pipeline.
//!
//! A [`Dag`] is built once from a [`Pipeline`](warploom_lang::Pipeline), before any size is known:
//!
//! - A [`Node`] is an input or a Func.
//! - A [`Stage`] is one definition of a Func, with its [loops](Loop).
//! - An [`Edge`] connects a node to a stage that reads it.
//! - An [`AccessMap`] describes how the indices of an access move with the loops of the stage: one exact
//!   [`Rational`] per index and loop, or unknown.
//! - [`Features`] count the operations and accesses of a stage at one point.
//!
//! Schedules are in [`schedule`].
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

mod access;
mod branching;
mod build;
mod dag;
mod derivative;
mod graphviz;
mod ids;
mod node_set;
mod rational;
pub mod schedule;
mod shape;
mod text;

pub use access::{Access, AccessClass, AccessMap, Index, Load, MapError, Slope, Target, merged};
pub use branching::branching;
pub use dag::{Dag, Edge, Loop, LoopKind, Node, Source, Stage};
pub use derivative::Derivatives;
pub use ids::{EdgeId, KernelId, LoopId, NestId, NodeId, StageId};
pub use node_set::NodeSet;
pub use rational::{Rational, common_denominator};
