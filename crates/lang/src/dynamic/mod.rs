//! Pipelines whose sizes are given at each launch.
//!
//! Every box of such a pipeline is a formula of the sizes. The boxes of inputs and outputs come with the
//! request; those of Funcs follow by [inference](infer_dynamic), as they do for fixed sizes.
//!
//! | module | holds |
//! | --- | --- |
//! | [`formula`] | numbers that depend on the sizes, simplified by the ranges of the sizes |
//! | [`request`] | the boxes of inputs and outputs, and the sizes that a launch has |
//! | `ends` | the smallest and largest value of an index, as formulas |
//! | `infer` | from the boxes of the outputs to those of every Func |

mod ends;
pub mod formula;
mod infer;
pub mod request;

pub use formula::{Atom, AtomId, Evaluation, Formula, Formulas, SizeRange, Words};
pub use infer::{Condition, DynamicFunc, DynamicRegions, DynamicStage, infer_dynamic};
pub use request::{DynamicRequest, FormulaRange, SizeError};
