//! Bounds inference: which points of every Func and input a realisation needs.
//!
//! Indices are analysed with abstract values that track four things (see [`IntSpan`]): the smallest
//! value, the largest value, the *width* of the values over one box of loop variables, and the
//! *congruence* of its bounds. Affine indices have exact widths; `clamp`, `min` and `max` never
//! widen; divisions and remainders of affine indices over aligned tiles are exact.
//!
//! | module | holds |
//! | --- | --- |
//! | [`span`] | the abstract values |
//! | [`analysis`] | the walk over an expression |
//! | `values` | bounds on the values of Funcs, for indices that are loaded |
//! | [`regions`] | from the outputs' boxes to every Func's and input's |
//! | `edges` | the part of every Func beyond which its values repeat |
//! | `undefined` | points that are read and have no value |
//! | `everywhere` | the points that are touched at any sizes |
//! | `error` | why sizes or Params do not fit a pipeline |

pub mod analysis;
mod edges;
mod error;
pub(crate) mod everywhere;
pub mod regions;
pub mod span;
mod undefined;
pub(crate) mod values;

pub use analysis::{Analysis, Environment};
pub use edges::cores;
pub use error::BoundsError;
pub use regions::{Facts, FuncRegions, Realisation, Regions, StageRegions, VaryingInputs, infer};
pub use span::{FloatSpan, IntSpan, Span};
pub use undefined::{Warning, warnings};
