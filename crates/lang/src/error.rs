//! The mistakes that a pipeline can have, with one-sentence messages.

use std::fmt;
use std::panic::Location;

use thiserror::Error;

use crate::brief::shown;
use crate::files::{NAME, TABLES};
use crate::types::{Type, Value};
use crate::visible::visible;

/// A mistake in the definition of a pipeline. The user can always fix it.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Fault {
    /// An access with the wrong number of indices.
    #[error("`{callee}` is called with {} but is defined over {}; write {callee}.at(({}))",
        count(*.got, "index", "indices"), over(.variables), .variables.join(", "))]
    Arity {
        /// The name of the Func or input that is accessed.
        callee: String,
        /// The number of indices given.
        got: usize,
        /// The variables that it is defined over.
        variables: Vec<String>,
    },
    /// Operands of different types.
    #[error("`{operation}` needs operands of one type but got {left} and {right}; {}", conversion(*.left, *.right))]
    Types {
        /// The operation, as listings print it.
        operation: &'static str,
        /// The type of the left operand.
        left: Type,
        /// The type of the right operand.
        right: Type,
    },
    /// A constant beside a float of another type, which does not have its value.
    #[error(
        "`{operation}` needs operands of one type but got {ty} and the {} constant {constant}; write {} for the nearest {ty}, or convert the {ty} with .{}()",
        constant.ty(), nearest_constant(*constant, *ty), constant.ty()
    )]
    FloatConstant {
        /// The operation, as listings print it.
        operation: &'static str,
        /// The constant.
        constant: Value,
        /// The type of the other operand.
        ty: Type,
    },
    /// An operation that is not defined for its operand's type.
    #[error(
        "`{operation}` is not defined for {ty}; convert the operand first, for example with .f32() or .i32()"
    )]
    Unsupported {
        /// The operation, as listings print it.
        operation: &'static str,
        /// The type of the operand.
        ty: Type,
    },
    /// A `select` with a condition that is not a boolean.
    #[error("the condition of `select` is {ty}, not bool; compare it with something, for example .ne(0)")]
    Condition {
        /// The type of the condition.
        ty: Type,
    },
    /// A constant that its type cannot hold.
    #[error("the constant {constant} does not fit {ty}; use a wider type")]
    Constant {
        /// The value of the constant.
        constant: i64,
        /// The type that it has to fit.
        ty: Type,
    },
    /// An index that is not an `i32`.
    #[error(
        "index {dimension} of `{callee}` is {ty}, but indices are i32, i64 or u64; convert it with .i32()"
    )]
    IndexType {
        /// The name of the Func or input that is accessed.
        callee: String,
        /// The position of the index, from 0.
        dimension: usize,
        /// The type of the index.
        ty: Type,
    },
    /// A Func with several values used as one value, or a value number that it does not have.
    #[error("`{callee}` has {}; choose one with .get(i, ..), i from 0 to {}", count(*.values, "value", "values"), values - 1)]
    ValueIndex {
        /// The name of the Func or input that is accessed.
        callee: String,
        /// The number of values it has.
        values: usize,
    },
    /// A variable that is not an argument of the Func that uses it.
    #[error("`{func}` uses the variable `{variable}`, which is not one of its arguments ({}); add it there or give it a value",
        arguments.join(", "))]
    UnboundVar {
        /// The name of the Func at fault.
        func: String,
        /// The name of the variable at fault.
        variable: String,
        /// The variables that the Func is defined over.
        arguments: Vec<String>,
    },
    /// A variable of an update that does not appear at its own position on the left-hand side.
    #[error("update {update} of `{func}` uses `{variable}`, which is not at its own position on the left-hand side; write {func}({}) there, or use a reduction variable",
        arguments.join(", "))]
    ImpureVar {
        /// The name of the Func at fault.
        func: String,
        /// The number of the update, from 1.
        update: usize,
        /// The name of the variable at fault.
        variable: String,
        /// The variables that the Func is defined over.
        arguments: Vec<String>,
    },
    /// A self-reference that moves a pure variable away from its position.
    #[error(
        "update {update} of `{func}` reads `{func}` with something other than `{variable}` at position {dimension}; a pure variable must be at its own position, so use a reduction variable for that dimension"
    )]
    SelfReference {
        /// The name of the Func at fault.
        func: String,
        /// The number of the update, from 1.
        update: usize,
        /// The pure variable that belongs at that position.
        variable: String,
        /// The position of the index, from 0.
        dimension: usize,
    },
    /// A reduction variable used outside an update over its domain.
    #[error(
        "`{func}` uses the reduction variable `{variable}` outside an update over its domain; write .over(&domain, ..) or sum(&domain, ..)"
    )]
    ForeignRVar {
        /// The name of the Func at fault.
        func: String,
        /// The name of the reduction variable.
        variable: String,
    },
    /// A reduction variable that the domain does not have.
    #[error("`{func}` uses reduction variable {index} of a domain that has {}", count(*.variables, "variable", "variables"))]
    NoSuchRVar {
        /// The name of the Func at fault.
        func: String,
        /// The variable that was used, from 0.
        index: usize,
        /// The number of variables the domain has.
        variables: usize,
    },
    /// A domain bound that is not known before the pipeline runs.
    #[error(
        "the range of the reduction variable `{variable}` of `{func}` depends on something other than constants, Params and input sizes; give it the largest possible range and exclude the rest with .filter(..), for example .filter({variable}.lt(n))"
    )]
    DomainBound {
        /// The name of the Func at fault.
        func: String,
        /// The name of the reduction variable.
        variable: String,
    },
    /// A Func with two variables of the same name.
    #[error("`{func}` has the variable `{variable}` twice; give each dimension its own variable")]
    RepeatedVar {
        /// The name of the Func at fault.
        func: String,
        /// The name of the variable at fault.
        variable: String,
    },
    /// A definition with the wrong number of values.
    #[error("stage {stage} of `{func}` gives {} but `{func}` has {expected}; give one value for each", count(*.got, "value", "values"))]
    ValueCount {
        /// The name of the Func at fault.
        func: String,
        /// The number of the stage; 0 is the pure definition.
        stage: usize,
        /// The number of values given.
        got: usize,
        /// The number of values the Func has.
        expected: usize,
    },
    /// A definition with a value of the wrong type.
    #[error("stage {stage} of `{func}` gives {got} where `{func}` holds {expected}; convert it with .cast(Type::{})", format!("{expected:?}"))]
    ValueType {
        /// The name of the Func at fault.
        func: String,
        /// The number of the stage; 0 is the pure definition.
        stage: usize,
        /// The type given.
        got: Type,
        /// The type that the Func has.
        expected: Type,
    },
    /// A self-reference in a pure definition.
    #[error(
        "`{func}` depends on itself in its pure definition; give it an initial value and put the recursion into an update"
    )]
    SelfInPure {
        /// The name of the Func at fault.
        func: String,
    },
    /// A Func that no definition gives a value.
    #[error("`{func}` has no value anywhere: its initial value is `undef` and it has no update; give it one")]
    NeverDefined {
        /// The name of the Func at fault.
        func: String,
    },
    /// A Func that is used before it is defined.
    #[error("`{func}` uses Func number {number}, which is not defined before it; define it first")]
    UndefinedFunc {
        /// The name of the Func that uses it.
        func: String,
        /// The number of the Func that is used.
        number: usize,
    },
    /// Two different inputs, Params, tables or Funcs with the same name.
    #[error(
        "two Funcs, inputs or Params are named `{name}`; rename one (a Func that is called before its updates are added counts as a different Func){}",
        first.map(arrow).unwrap_or_default()
    )]
    Duplicate {
        /// The name that occurs twice.
        name: String,
        /// The source location of the first; `None` for pipelines read from files.
        first: Option<&'static Location<'static>>,
    },
    /// A name that schedules and generated code cannot use.
    #[error(
        "`{}` cannot be a name; use letters, digits, `_` and `.`, starting with a letter or `_`",
        visible(name)
    )]
    BadName {
        /// The invalid name.
        name: String,
    },
    /// The name of a variable that schedules cannot use.
    #[error(
        "`{}` cannot be the name of a variable of `{func}`; use no white space, `,` or `#`, and no number before a dot",
        visible(variable)
    )]
    BadVariable {
        /// The name of the Func.
        func: String,
        /// The invalid name.
        variable: String,
    },
    /// The name of a pipeline that schedules cannot use.
    #[error(
        "`{}` cannot be the name of a pipeline; use one or more words on one line, without `,` and `#`",
        visible(name)
    )]
    BadPipelineName {
        /// The invalid name.
        name: String,
    },
    /// A name that is too long.
    #[error(
        "the name `{}` has {bytes} bytes, but a name may have at most {}; choose a shorter one",
        visible(name),
        NAME.most
    )]
    LongName {
        /// The start of the name.
        name: String,
        /// Its length.
        bytes: usize,
    },
    /// A Func whose name stands for something else in schedules, or for a value of another output.
    #[error("`{name}` is the name of a Func and of {other}; rename the Func")]
    TwoMeanings {
        /// The name.
        name: String,
        /// The other meaning of the name.
        other: String,
    },
    /// A pipeline without outputs.
    #[error("the pipeline `{pipeline}` has no outputs; name at least one Func")]
    NoOutputs {
        /// The name of the pipeline.
        pipeline: String,
    },
    /// An expression nested too deeply.
    #[error(
        "an expression is nested more than {limit} levels deep; name a part of it as a Func or use a reduction"
    )]
    TooDeep {
        /// The maximum depth.
        limit: u32,
    },
    /// A boundary condition with limits for the wrong number of dimensions.
    #[error(
        "the boundary condition over `{source_name}` gives {got} limits, but it has {expected} dimensions; give at most one per dimension"
    )]
    Limits {
        /// The name of the extended input or Func.
        source_name: String,
        /// The number of limits given.
        got: usize,
        /// The number of dimensions.
        expected: usize,
    },
    /// A boundary condition with the wrong number of values beyond its limits.
    #[error(
        "the boundary condition over `{source_name}` has {} beyond its limits, but `{source_name}` has {expected}; give one for each, or one for all",
        count(*.got, "value", "values")
    )]
    Outside {
        /// The name of the extended input or Func.
        source_name: String,
        /// The number of values given.
        got: usize,
        /// The number of values of the source.
        expected: usize,
    },
    /// A storage order that is not a permutation of the dimensions.
    #[error(
        "the storage order {order:?} of `{input}` is not a permutation of its {dimensions} dimensions; name each of 0..{dimensions} once"
    )]
    StorageOrder {
        /// The name of the input or Func.
        input: String,
        /// The order that was given.
        order: Vec<usize>,
        /// The number of dimensions.
        dimensions: usize,
    },
    /// `in_order` on an expression that is not an inline reduction.
    #[error(
        "in_order() is called on an expression that is not a reduction; call it on sum(..) or product(..) itself"
    )]
    NotAReduction,
    /// A constant table without elements.
    #[error("the table `{table}` has no elements; give it at least one")]
    EmptyTable {
        /// The name of the table.
        table: String,
    },
    /// Constant tables that are too large.
    #[error(
        "the tables of `{pipeline}` have {bytes} bytes, but all together may have {}; make the largest, `{largest}`, an input",
        TABLES
    )]
    LargeTables {
        /// The name of the pipeline.
        pipeline: String,
        /// The size of all tables in bytes.
        bytes: usize,
        /// The name of the largest table.
        largest: String,
    },
    /// A malformed pipeline file.
    #[error("the pipeline file is not well formed: {what}; write it with Pipeline::to_json")]
    Malformed {
        /// The malformed part.
        what: String,
    },
}

fn count(n: usize, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

/// Suggests a conversion of two operands to a type that holds the values of both.
fn conversion(left: Type, right: Type) -> String {
    let both = left.common(right);
    match (both == left, both == right) {
        (true, _) => format!("convert the {right} with .cast(Type::{both:?})"),
        (_, true) => format!("convert the {left} with .cast(Type::{both:?})"),
        _ => format!("convert both with .cast(Type::{both:?})"),
    }
}

/// A constant of a float type, as it is written in Rust.
fn nearest_constant(constant: Value, ty: Type) -> String {
    match ty {
        Type::F16 | Type::BF16 => format!("{ty}::from_f64({:?})", shortest(constant)),
        _ => format!("constant({:?}_{ty})", shortest(constant)),
    }
}

/// The number with the fewest digits that is this constant.
fn shortest(constant: Value) -> f64 {
    constant.to_string().parse().unwrap_or_else(|_| constant.as_f64())
}

fn over(variables: &[String]) -> String {
    match variables.len() {
        0 => "no variables".to_string(),
        n => format!("{n} ({})", variables.join(", ")),
    }
}

/// The line of a message that shows a source location.
fn arrow(place: &Location<'_>) -> String {
    format!("\n  --> {}:{}:{}", place.file(), place.line(), place.column())
}

/// A [`Fault`] with the source location where it was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// The mistake itself.
    pub fault: Fault,
    /// The source location; `None` for pipelines read from files.
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
            Some(place) => f.write_str(&arrow(place)),
            None => Ok(()),
        }
    }
}

/// All mistakes of a pipeline, in the order of its definitions; never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipelineError {
    /// One entry per mistake; at least one.
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
