//! The Warploom language: image pipelines as pure functions over integer grids.
//!
//! This page is the language's definition. The types follow after it.
//!
//! # Funcs, stages, pipelines
//!
//! A [`Func`] is a function from points of an infinite integer grid to one or more scalar values. It has one
//! *pure definition*, the value at any point, and any number of *updates*, which change values at some
//! points. The definitions of a Func are its *stages*, number 0 the pure one. A [`Pipeline`] is a set of Funcs
//! of which some are outputs; [`Input`]s and scalar [`Param`]s are given when it runs. Nothing is computed in
//! any particular place or order unless this page says so: that is what a schedule decides.
//!
//! - **Domains.** A Func has a value everywhere. Which points are computed follows from the boxes asked of
//!   the outputs ([`bounds`]). An input has a box of its own and may not be read outside it; *boundary
//!   conditions* ([`Input::repeat_edge`] and its sisters) are Funcs that extend it, and can be read at any index, even one
//!   that is loaded.
//! - **Undefined starts.** A pure definition may be [`undef`]: its points have no value until an update writes
//!   them. Reading one earlier is a mistake of the pipeline; the reference evaluator then reads 0. [`warnings`] names
//!   points that are read and that no update ever writes.
//! - **Updates** run after the pure definition, in the order written. An update runs over its reduction
//!   domain ([`RDom`]) and over the *pure variables* on its left-hand side.
//! - **Pure variables** of an update stand at their own position on the left-hand side and in every
//!   reference of the Func to itself. Points that differ in a pure variable are therefore independent.
//! - **Reduction order.** The points of a domain are visited one after the other, the first variable fastest.
//!   Points where its filter does not hold are left out.
//! - **Several values.** A Func of several values is one stage with one array a value; an update reads all
//!   old values before it writes any new one.
//! - **Inline reductions** ([`sum`], [`argmin`], ...) and boundary conditions are Funcs too, named from their
//!   place (`blur.sum0`, `input.repeat_edge`).
//!
//! # Sizes
//!
//! Sizes are symbolic: [`Input::extent`] is an expression. They become numbers when a pipeline is realised
//! ([`Realisation`]). Structure, such as the number of pyramid levels, is plain Rust. A `Param` that reaches a
//! reduction domain's bound or an index is *specialised* ([`Pipeline::specialised_params`]): it is fixed
//! together with the sizes.
//!
//! # Values
//!
//! [`Type`]s are `bool`, `u8`, `u16`, `u32`, `i8`, `i16`, `i32` and `f32`. Both operands of an operator have
//! one type; conversions are explicit ([`Operand::cast`]). Only an `i32` constant takes the type of the
//! operand beside it, and is refused if that type cannot hold it.
//!
//! | operation | integers | floats |
//! | --- | --- | --- |
//! | `+ - *` | wrap modulo 2^bits | IEEE binary32, rounded once each, in the order written; never fused |
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
//! **Casts.** Integer to integer wraps; integer to float rounds to nearest; float to integer truncates toward
//! zero and saturates, NaN gives 0; to `bool` is `!= 0`. A saturating cast clamps to the target's range
//! instead of wrapping. [`Operand::reinterpret`] keeps the bits.
//!
//! **NaN.** An operation on NaN gives NaN unless this page says otherwise; which of its bit patterns is not
//! defined.
//!
//! **Elementary functions** are the polynomials of [`math`]: the same bits on every machine.
//!
//! **Indices** are `i32`. Index arithmetic may not overflow; where it could, bounds inference takes the index
//! for unbounded and refuses the pipeline.
//!
//! # Mistakes
//!
//! Operators cannot fail, so a mistake in an expression is carried along and reported by [`Pipeline::new`],
//! with the place in the source where it was made.
//!
//! # Where things are
//!
//! The front end is [`expr`](Expr), [`func`](Func), [`rdom`](RDom), [`input`](Input), [`boundary`] and
//! the free functions. `assemble` turns it into the tables of [`ir`], which `validate` checks; everything
//! after that reads only the tables. [`op`] and [`scalar`] say what each operation computes.
mod assemble;
pub mod boundary;
pub mod bounds;
pub mod brief;
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
pub mod op;
mod operators;
mod pipeline;
mod rdom;
mod reduce;
pub mod region;
pub mod rounding;
pub mod scalar;
mod specialise;
mod types;
mod validate;
mod visible;
mod write_out;

pub use boundary::{Bounded, Limit, limits};
pub use bounds::{
    BoundsError, Facts, FuncRegions, Realisation, Regions, StageRegions, Warning, infer, warnings,
};
pub use error::{Diagnostic, Fault, PipelineError};
pub use expr::{Expr, MAX_DEPTH, Operand, Var};
pub use func::{Arguments, Func, Indices, Itself, Start, Undefined, Update, Values, func, undef};
pub use functions::{
    abs, absd, average, ceil, clamp, cos, exp, fast_exp, floor, lerp, log, max, min, mux, pow, random_f32,
    random_u32, round, select, sin, sqrt, tanh,
};
pub use ids::{ExprId, FuncId, Id, IdVec, InputId, ParamId};
pub use input::{Input, Param};
pub use pipeline::Pipeline;
pub use rdom::{RDom, RRange, RVar, rdom};
pub use reduce::{Extreme, argmax, argmin, maximum, minimum, product, sum};
pub use region::{Range, Region};
pub use scalar::Scalar;
pub use types::{Type, Value};
pub use visible::{is_invisible, visible, visible_lines};
