//! (under construction)
mod assemble;
pub mod bounds;
pub mod boundary;
mod error;
mod expr;
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
pub mod scalar;
mod specialise;
mod types;
mod validate;

pub use bounds::{BoundsError, FuncRegions, Realisation, Regions, StageRegions, infer};
pub use boundary::{Bounded, Limit, limits};
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
