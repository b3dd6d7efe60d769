//! Why a rewrite cannot be applied.

use thiserror::Error;

use crate::brief::{quoted, shown};
use crate::error::PipelineError;
use crate::rewrite::{Rewrite, StageName};
use crate::types::Type;
use crate::visible::visible;

/// A rewrite that cannot be applied, with its number in the list.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("`{rewrite}` cannot be applied: {error}")]
pub struct RewriteLineError {
    /// The number of the rewrite, from 0.
    pub number: usize,
    /// The rewrite itself.
    pub rewrite: Rewrite,
    /// The error.
    pub error: Box<RewriteError>,
}

/// Why a rewrite cannot be applied, or cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum RewriteError {
    /// A text that is not a rewrite.
    #[error("`{}` is not a rewrite; write {form}", visible(&quoted(.text)))]
    Text {
        /// The text.
        text: String,
        /// The expected form.
        form: &'static str,
    },
    /// A name that no Func has.
    #[error("there is no Func `{}`", visible(&quoted(.name)))]
    NoFunc {
        /// The name.
        name: String,
    },
    /// A stage that is not an update of the Func.
    #[error("`{func}` has no update {stage}; its updates are numbered from 1 to {}", stages - 1)]
    NoUpdate {
        /// The name of the Func.
        func: String,
        /// The number of the missing update.
        stage: usize,
        /// The number of stages of the Func.
        stages: usize,
    },
    /// A variable that the stage does not have.
    #[error("`{stage}` has no reduction variable `{}`; it has {}", visible(&quoted(.var)), shown(.vars, ", "))]
    NoVar {
        /// The stage.
        stage: StageName,
        /// The name of the missing variable.
        var: String,
        /// The variables that the stage has.
        vars: Vec<String>,
    },
    /// An update that is not of the form `f(..) = f(..) op term`.
    #[error("`{stage}` is not a reduction: it must be {form}")]
    NotAReduction {
        /// The stage.
        stage: StageName,
        /// The form that the rewrite needs.
        form: &'static str,
    },
    /// A reduction whose result depends on the order.
    #[error(
        "the result of `{stage}` depends on the order, because it computes `{op}` of {ty}; mark the definition with .reassociate(), or remove .in_order(), if any order will do"
    )]
    OrderMatters {
        /// The stage.
        stage: StageName,
        /// The operator, as listings print it.
        op: &'static str,
        /// The type of the values.
        ty: Type,
    },
    /// A reduction that is no tree, because the number of values is unknown or too small.
    #[error(
        "`{stage}` cannot be a tree: it must have one reduction variable with a constant number of values, at least 2; factor it first"
    )]
    NoTree {
        /// The stage.
        stage: StageName,
    },
    /// An update that must write at the points of pure variables, and does not.
    #[error("`{stage}` writes at indices that it computes; apply `gather {stage}` first")]
    Scatters {
        /// The stage.
        stage: StageName,
    },
    /// A clone of a Func for another Func that does not read it.
    #[error("`{reader}` does not read `{func}`; name a Func that does")]
    DoesNotRead {
        /// The Func that was to read the copy.
        reader: String,
        /// The Func that was to be copied.
        func: String,
    },
    /// Two Funcs that cannot be joined.
    #[error("`{one}` and `{other}` cannot be joined, because {why}")]
    NotJoinable {
        /// The first Func.
        one: String,
        /// The second Func.
        other: String,
        /// The reason, as a clause.
        why: &'static str,
    },
    /// An update that already writes each point by itself.
    #[error("`{stage}` does not scatter: all its indices are pure variables or constants")]
    NoScatter {
        /// The stage.
        stage: StageName,
    },
    /// An update whose points depend on each other.
    #[error("`{stage}` reads its Func at other points than it writes, so they cannot be computed one by one")]
    ReadsElsewhere {
        /// The stage.
        stage: StageName,
    },
    /// A list that is no permutation of the variables of a domain.
    #[error("name each reduction variable of `{stage}` once: {}", shown(.vars, ", "))]
    NotAPermutation {
        /// The stage.
        stage: StageName,
        /// The variables of its domain.
        vars: Vec<String>,
    },
    /// An update that is not a list of slices.
    #[error("`{stage}` cannot be unrolled into Funcs: {why}")]
    NotUnrollable {
        /// The stage.
        stage: StageName,
        /// The rule that it breaks.
        why: &'static str,
    },
    /// A dimension that the Func does not have.
    #[error("`{func}` has no dimension `{}`; it has {}", visible(&quoted(.dim)), shown(.dims, ", "))]
    NoDim {
        /// The name of the Func.
        func: String,
        /// The name of the missing dimension.
        dim: String,
        /// The dimensions that the Func has.
        dims: Vec<String>,
    },
    /// A Func without a separable sum.
    #[error("`{func}` cannot be separated along `{dim}`: {why}")]
    NotSeparable {
        /// The name of the Func.
        func: String,
        /// The name of the dimension.
        dim: String,
        /// The property that its sums lack.
        why: &'static str,
    },
    /// A Func that cannot be a table.
    #[error("`{func}` cannot be a table: {why}")]
    NotConstant {
        /// The name of the Func.
        func: String,
        /// Its dependence, or its size, as a clause.
        why: String,
    },
    /// A reduction that cannot be one expression.
    #[error("`{stage}` cannot be one expression: {why}")]
    NotExpandable {
        /// The stage.
        stage: StageName,
        /// The rule that it breaks.
        why: &'static str,
    },
    /// A Func that has no value at points that the rewritten pipeline reads.
    #[error(
        "`{func}` starts undefined, and the rewritten pipeline would read points without a value; give it an initial value"
    )]
    Undefined {
        /// The name of the Func.
        func: String,
    },
    /// A pipeline that other rewrites have produced.
    #[error("the pipeline is already rewritten in another way; start from the original one")]
    AlreadyRewritten,
    /// A cut beyond the stages of the Func.
    #[error("`{func}` cannot be cut at {at}; choose a number from 1 to {stages}, its number of stages")]
    NoCut {
        /// The name of the Func.
        func: String,
        /// The number of stages that should move.
        at: usize,
        /// The number of stages of the Func.
        stages: usize,
    },
    /// A scan that other updates of its Func follow.
    #[error("`{stage}` is not the last update of its Func; cut it first: `cut {} at {}`", stage.func, stage.stage + 1)]
    NotLast {
        /// The stage.
        stage: StageName,
    },
    /// An update that is not a scan along one dimension.
    #[error("`{stage}` is not a scan that can be computed in chunks: {form}")]
    NotAScan {
        /// The stage.
        stage: StageName,
        /// The form that the rewrite needs.
        form: &'static str,
    },
    /// A recurrence whose errors may grow from value to value.
    #[error(
        "the recurrence `{stage}` multiplies the value before by a number whose magnitude may exceed 1, so errors may grow; use a constant from -1 to 1, or declare such a range for its Params"
    )]
    MayGrow {
        /// The stage.
        stage: StageName,
    },
    /// A result that breaks a rule of pipelines, for example because a name is taken.
    #[error(transparent)]
    Invalid(#[from] PipelineError),
}
