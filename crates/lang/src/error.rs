//! What can be wrong with a pipeline, said in one sentence each.

use std::fmt;
use std::panic::Location;

use thiserror::Error;

use crate::brief::shown;
use crate::types::Type;
use crate::visible::visible;

/// A fault in the definition of a pipeline: always the user's to mend.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum Fault {
    /// A call with the wrong number of indices.
    #[error("`{callee}` is called with {} but is defined over {}; write {callee}.at(({}))",
        count(*.got, "index", "indices"), over(.variables), .variables.join(", "))]
    Arity {
        /// What is called.
        callee: String,
        /// Indices given.
        got: usize,
        /// The variables it is defined over.
        variables: Vec<String>,
    },
    /// Operands of different types.
    #[error("`{operation}` needs operands of one type but got {left} and {right}; {}", conversion(*.left, *.right))]
    Types {
        /// The operation.
        operation: &'static str,
        /// Type of the left operand.
        left: Type,
        /// Type of the right operand.
        right: Type,
    },
    /// An operation on a type that has no such operation.
    #[error(
        "`{operation}` is not defined for {ty}; convert the operand first, for example with .f32() or .i32()"
    )]
    Unsupported {
        /// The operation.
        operation: &'static str,
        /// The operand's type.
        ty: Type,
    },
    /// A `select` whose condition is no truth value.
    #[error("the condition of `select` is {ty}, not bool; compare it with something, for example .ne(0)")]
    Condition {
        /// The condition's type.
        ty: Type,
    },
    /// A constant that its type cannot hold.
    #[error("the constant {constant} does not fit {ty}; use a wider type")]
    Constant {
        /// The constant.
        constant: i64,
        /// The type it was needed in.
        ty: Type,
    },
    /// An index that is not an `i32`.
    #[error("index {dimension} of `{callee}` is {ty}, but indices are i32; convert it with .i32()")]
    IndexType {
        /// What is called.
        callee: String,
        /// Which index.
        dimension: usize,
        /// Its type.
        ty: Type,
    },
    /// A tuple used as one value, or a value it does not have.
    #[error("`{callee}` has {}; choose one with .get(i, ..), i from 0 to {}", count(*.values, "value", "values"), values - 1)]
    ValueIndex {
        /// What is called.
        callee: String,
        /// How many values it has.
        values: usize,
    },
    /// A variable that is not an argument of the Func that uses it.
    #[error("`{func}` uses the variable `{variable}`, which is not one of its arguments ({}); add it there or give it a value",
        arguments.join(", "))]
    UnboundVar {
        /// The Func.
        func: String,
        /// The variable.
        variable: String,
        /// The Func's arguments.
        arguments: Vec<String>,
    },
    /// A variable of an update that does not stand at its own position on the left.
    #[error("update {update} of `{func}` uses `{variable}`, which does not stand at its own position on the left; write {func}({}) there, or use a reduction variable",
        arguments.join(", "))]
    ImpureVar {
        /// The Func.
        func: String,
        /// Which update, from 1.
        update: usize,
        /// The variable.
        variable: String,
        /// The Func's arguments.
        arguments: Vec<String>,
    },
    /// A self-reference that moves a pure variable away from its position.
    #[error(
        "update {update} of `{func}` reads `{func}` with something other than `{variable}` at position {dimension}; a pure variable must stand at its own position, so use a reduction variable for that dimension"
    )]
    SelfReference {
        /// The Func.
        func: String,
        /// Which update, from 1.
        update: usize,
        /// The pure variable of that position.
        variable: String,
        /// The position.
        dimension: usize,
    },
    /// A reduction variable outside an update over its domain.
    #[error(
        "`{func}` uses the reduction variable `{variable}` outside an update over its domain; write .over(&domain, ..) or sum(&domain, ..)"
    )]
    ForeignRVar {
        /// The Func.
        func: String,
        /// The reduction variable.
        variable: String,
    },
    /// A reduction variable that the domain does not have.
    #[error("`{func}` uses reduction variable {index} of a domain that has {}", count(*.variables, "variable", "variables"))]
    NoSuchRVar {
        /// The Func.
        func: String,
        /// Which variable was asked for, from 0.
        index: usize,
        /// How many there are.
        variables: usize,
    },
    /// A domain's bound that is not known before the pipeline runs.
    #[error(
        "the range of the reduction variable `{variable}` of `{func}` depends on something other than constants, Params and input sizes; give it the largest range there can be and leave out the rest with .filter(..), for example .filter({variable}.lt(n))"
    )]
    DomainBound {
        /// The Func.
        func: String,
        /// The reduction variable.
        variable: String,
    },
    /// The same name twice among a Func's variables.
    #[error("`{func}` has the variable `{variable}` twice; give each dimension its own variable")]
    RepeatedVar {
        /// The Func.
        func: String,
        /// The variable.
        variable: String,
    },
    /// A definition with the wrong number of values.
    #[error("stage {stage} of `{func}` gives {} but `{func}` has {expected}; give one value for each", count(*.got, "value", "values"))]
    ValueCount {
        /// The Func.
        func: String,
        /// Which definition.
        stage: usize,
        /// Values given.
        got: usize,
        /// Values the Func has.
        expected: usize,
    },
    /// A definition with a value of another type.
    #[error("stage {stage} of `{func}` gives {got} where `{func}` holds {expected}; convert it with .cast(Type::{})", format!("{expected:?}"))]
    ValueType {
        /// The Func.
        func: String,
        /// Which definition.
        stage: usize,
        /// Type given.
        got: Type,
        /// Type of the Func.
        expected: Type,
    },
    /// A pure definition that refers to its own Func.
    #[error(
        "`{func}` depends on itself in its pure definition; give it a start value and put the recursion into an update"
    )]
    SelfInPure {
        /// The Func.
        func: String,
    },
    /// A Func that is undefined everywhere.
    #[error("`{func}` has no value anywhere: its start is `undef` and it has no update; give it one")]
    NeverDefined {
        /// The Func.
        func: String,
    },
    /// A Func that is used but nowhere defined before.
    #[error("`{func}` uses Func number {number}, which is not defined before it; define it first")]
    UndefinedFunc {
        /// The Func that uses it.
        func: String,
        /// The number used.
        number: usize,
    },
    /// Two different things with one name.
    #[error(
        "two Funcs, inputs or Params are named `{name}`; rename one (a Func that was called before it got its updates counts as another one)"
    )]
    Duplicate {
        /// The name.
        name: String,
    },
    /// A name that schedules and generated code could not use.
    #[error(
        "`{}` cannot be a name; use letters, digits, `_` and `.`, starting with a letter or `_`",
        visible(name)
    )]
    BadName {
        /// The name.
        name: String,
    },
    /// A pipeline without outputs.
    #[error("the pipeline `{pipeline}` has no outputs; name at least one Func")]
    NoOutputs {
        /// The pipeline.
        pipeline: String,
    },
    /// An expression nested too deeply.
    #[error("an expression is nested more than {limit} deep; name a part of it as a Func or use a reduction")]
    TooDeep {
        /// The limit.
        limit: u32,
    },
    /// A boundary condition with limits for the wrong number of dimensions.
    #[error(
        "the boundary condition over `{source_name}` gives {got} limits, but it has {expected} dimensions; give at most one for each"
    )]
    Limits {
        /// What is bounded.
        source_name: String,
        /// Entries given.
        got: usize,
        /// Dimensions there are.
        expected: usize,
    },
    /// A storage order that is no permutation of the dimensions.
    #[error(
        "the storage order {order:?} of `{input}` is not a permutation of its {dimensions} dimensions; name each of 0..{dimensions} once"
    )]
    StorageOrder {
        /// The input.
        input: String,
        /// The order given.
        order: Vec<usize>,
        /// Dimensions there are.
        dimensions: usize,
    },
    /// A pipeline file that is not well formed.
    #[error("the pipeline file is not well formed: {what}; write it with Pipeline::to_json")]
    Malformed {
        /// What is wrong with it.
        what: String,
    },
}

fn count(n: usize, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

/// How to give operands of two types one that holds the values of both.
fn conversion(left: Type, right: Type) -> String {
    let both = left.common(right);
    match (both == left, both == right) {
        (true, _) => format!("convert the {right} with .cast(Type::{both:?})"),
        (_, true) => format!("convert the {left} with .cast(Type::{both:?})"),
        _ => format!("convert both with .cast(Type::{both:?})"),
    }
}

fn over(variables: &[String]) -> String {
    match variables.len() {
        0 => "no variables".to_string(),
        n => format!("{n} ({})", variables.join(", ")),
    }
}

/// A [`Fault`] and the place in the user's source where it was made.
#[derive(Clone, PartialEq, Debug)]
pub struct Diagnostic {
    /// What is wrong.
    pub fault: Fault,
    /// Where; `None` for pipelines read from files.
    pub place: Option<&'static Location<'static>>,
}

impl Diagnostic {
    pub(crate) fn at(fault: Fault, place: &'static Location<'static>) -> Diagnostic {
        Diagnostic { fault, place: Some(place) }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.fault)?;
        match self.place {
            Some(place) => write!(f, "\n  --> {}:{}:{}", place.file(), place.line(), place.column()),
            None => Ok(()),
        }
    }
}

/// Everything that is wrong with a pipeline, in the order of its definitions; never empty.
#[derive(Clone, PartialEq, Debug)]
pub struct PipelineError {
    /// The faults.
    pub diagnostics: Vec<Diagnostic>,
}

impl fmt::Display for PipelineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.diagnostics, "\n"))
    }
}

impl std::error::Error for PipelineError {}

impl From<Fault> for PipelineError {
    fn from(fault: Fault) -> PipelineError {
        PipelineError { diagnostics: vec![Diagnostic { fault, place: None }] }
    }
}
