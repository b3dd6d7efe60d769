//! The Warploom language: image pipelines as pure functions over integer grids.
//!
//! This page defines the language. The types are listed after it.
//!
//! # Funcs, stages, pipelines
//!
//! A [`Func`] is a function from the points of an infinite integer grid to one or more scalar
//! values. It has one *pure definition*, which gives the value at any point, and any number of
//! *updates*, which change the values at some points. The definitions of a Func are its *stages*;
//! stage 0 is the pure one. A [`Pipeline`] is a set of Funcs, some of which are outputs. [`Input`]s and scalar
//! [`Param`]s are supplied when it runs; a constant [`table`] is part of the pipeline. The language does not say where
//! or in which order values are computed, except where this page states it: the schedule decides.
//!
//! - **Domains.** A Func has a value at every point. Bounds inference ([`bounds`]) derives the
//!   points to compute from the boxes requested of the outputs. An input has its own box and may
//!   not be read outside it. A *boundary condition* ([`Input::repeat_edge`] and its siblings) is a
//!   Func that extends an input or another Func, with all its values; it can be read at any index,
//!   including an index loaded from data or computed with Params.
//! - **Constant tables** ([`table`]) are small arrays with fixed values. They have a box from 0 and may
//!   not be read outside it. Their values bound the indices that are made from them.
//! - **Undefined starts.** A pure definition may be [`undef`]: its points have no value until an
//!   update writes them. A pipeline that reads such a point earlier is wrong; the reference
//!   evaluator then reads 0. [`warnings`] reports points that are read but never written by any
//!   update.
//! - **Updates** run after the pure definition, in program order. An update runs over its reduction
//!   domain ([`RDom`]) and over the *pure variables* on its left-hand side.
//! - **Pure variables** of an update appear at their own position on the left-hand side and in
//!   every self-reference. Points that differ in a pure variable are therefore independent.
//! - **Reduction order.** The points of a domain are visited sequentially, with the first variable
//!   fastest. Points where the filter is false are skipped.
//! - **Several values.** A Func with several values is one stage with one array per value. An
//!   update reads all old values before it writes any new one.
//! - **Inline reductions** ([`sum`], [`argmin`], ...) and boundary conditions are Funcs too. Their
//!   names are derived from where they are used (`blur.sum0`, `input.repeat_edge`).
//!
//! # Sizes
//!
//! Sizes are symbolic: [`Input::extent`] is an expression. They become numbers when a pipeline is
//! realised ([`Realisation`]). Structure, such as the number of pyramid levels, is plain Rust. A
//! `Param` that a reduction domain's bound or an index depends on is *specialised*
//! ([`Pipeline::specialised_params`]): its value is fixed together with the sizes.
//!
//! # Values
//!
//! | [`Type`] | values |
//! | --- | --- |
//! | `bool` | `true` and `false` |
//! | `u8`, `u16`, `u32`, `u64` | unsigned integers of that many bits |
//! | `i8`, `i16`, `i32`, `i64` | signed integers of that many bits |
//! | `f32`, `f64` | IEEE binary32 and binary64 |
//! | `f16`, `bf16` | IEEE binary16, and the upper half of an `f32`: each operation is computed in `f32` and rounded once |
//!
//! Both operands of an operator have the same type; conversions are explicit ([`Operand::cast`]). The only exceptions
//! are constants. An `i32` constant takes the type of the other operand, and is rejected if that type cannot hold it.
//! An `f32` constant takes another float type if that represents it exactly; otherwise write [`constant`]`(0.1_f64)` or
//! `f16::from_f64(0.1)`.
//!
//! | operation | integers | floats |
//! | --- | --- | --- |
//! | `+ - *` | wrap modulo 2^bits | IEEE, rounded once each, in the order written; never fused |
//! | `/` | Euclidean: the remainder is in `0..\|b\|`, so `-1 / 2 = -1`; 0 for a zero divisor | IEEE |
//! | `%` | the Euclidean remainder, never negative; 0 for a zero divisor | `a - b * floor(a / b)` |
//! | `min`, `max` | the smaller, the larger | the other operand for NaN; `-0 < +0` |
//! | [`clamp`]`(v, a, b)` | `max(min(v, b), a)` | the same, so a clamp bounds NaN too |
//! | [`abs`] | wraps: the most negative stays itself | clears the sign |
//! | [`absd`] | exact, in the unsigned type | `abs(a - b)` |
//! | [`average`] | `(a + b + 1) / 2` rounded down, without overflow | not defined |
//! | `<<`, `>>` | by the amount modulo the width; `>>` keeps the sign of signed types | not defined |
//! | `& \| ^ !` | on bits; on `bool` logical | not defined |
//! | [`round`], [`floor`], [`ceil`] | not defined | halves to even; down; up |
//! | [`select`] | both sides are evaluated, and must be in bounds | the same |
//! | [`lerp`]`(a, b, w)` | not defined | `a * (1 - w) + b * w` |
//!
//! **Casts.** Integer to integer wraps; integer to float rounds to nearest; float to integer
//! truncates toward zero and saturates, and NaN gives 0; a cast to `bool` is `!= 0`. A saturating
//! cast clamps to the target's range instead of wrapping. [`Operand::reinterpret`] keeps the bits.
//!
//! **NaN.** An operation on NaN gives NaN unless this page says otherwise. The bit pattern of the
//! NaN is unspecified.
//!
//! **Elementary functions** are the polynomials of [`math`]. They give the same bits on every
//! machine.
//!
//! **Indices** are `i32`; an `i64` or `u64` index saturates to it. Index arithmetic must not overflow. Where it could,
//! bounds inference treats the index as unbounded and rejects the pipeline, unless it is an index of a boundary
//! condition. Positions lie between -2^30 and 2^30.
//!
//! # Mistakes
//!
//! Operators cannot fail in Rust, so an expression carries its mistake along until
//! [`Pipeline::new`] reports it, with the source location where it was made.
//!
//! # Where things are
//!
//! The front end is [`expr`](Expr), [`func`](Func), [`rdom`](RDom), [`input`](Input), [`boundary`]
//! and the free functions. `assemble` turns it into the tables of [`ir`], and `validate` checks
//! them. All later passes read only the tables. [`op`] and [`scalar`] define what each operation
//! computes.
pub mod affine;
mod assemble;
pub mod boundary;
pub mod bounds;
pub mod brief;
pub mod draft;
pub mod dynamic;
mod error;
mod expr;
pub mod files;
mod func;
mod functions;
mod hash;
mod ids;
mod input;
pub mod ir;
mod json;
mod listing;
pub mod math;
mod names;
pub mod naming;
pub mod op;
mod operators;
mod pipeline;
mod rdom;
mod reduce;
pub mod region;
pub mod rewrite;
pub mod rounding;
pub mod scalar;
mod specialise;
mod table;
mod types;
mod validate;
mod visible;
mod write_out;

pub use boundary::{Bounded, Limit, limits};
pub use bounds::{
    BoundsError, Facts, FuncRegions, Realisation, Regions, StageRegions, Warning, cores, infer, warnings,
};
pub use error::{Diagnostic, Fault, PipelineError};
pub use expr::{Expr, MAX_DEPTH, Operand, Var, constant};
pub use func::{Arguments, Func, Indices, Itself, Start, Undefined, Update, Values, func, undef};
pub use functions::{
    abs, absd, acos, asin, atan, atan2, average, ceil, clamp, cos, erf, exp, exp2, expm1, fast_exp, floor,
    is_nan, leading_zeros, lerp, log, log1p, log2, max, min, mux, popcount, pow, random_f32, random_u32,
    round, rsqrt, select, sin, sqrt, tan, tanh,
};
pub use ids::{ExprId, FuncId, Id, IdVec, InputId, ParamId, TableId, ids_in};
pub use input::{Input, Param};
pub use ir::StageRef;
pub use pipeline::Pipeline;
pub use rdom::{RDom, RRange, RVar, rdom};
pub use reduce::{Extreme, argmax, argmin, maximum, minimum, product, sum};
pub use region::{Range, Region};
pub use scalar::{Scalar, bf16, f16};
pub use table::{Elements, Table, table};
pub use types::{Type, Value};
pub use visible::{is_invisible, visible, visible_lines};
