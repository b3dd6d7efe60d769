//! All possible mistakes in a text or in the sizes given for it.

use std::fmt;

use thiserror::Error;
use warploom_lang::brief::MAX_SHOWN;
use warploom_lang::visible;

use crate::source::{SourceFile, Span};

/// The most mistakes that are kept of one text.
const MOST: usize = 100;

/// A mistake, in one sentence that ends with a remedy.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum Fault {
    #[error("the text has {bytes} bytes, but at most {most} are read; split it into several files")]
    TextTooLong { bytes: usize, most: u64 },
    #[error("`{}` is no character of the notation; remove it", visible(character))]
    Character { character: String },
    #[error("`{}` is no number; write it like 12, 0.5 or 1e-5, and begin names with a letter", visible(text))]
    Number { text: String },
    #[error("the number {text} does not fit {ty}; use a smaller one")]
    Large { text: String, ty: &'static str },
    #[error("a name has {length} characters, but at most {most} are allowed; shorten it")]
    LongName { length: usize, most: usize },
    #[error("expected {expected} but found {}; {remedy}", visible(found))]
    Expected { expected: String, found: String, remedy: &'static str },
    #[error(
        "expressions are nested more than {most} levels deep here; give a part of it a statement of its own"
    )]
    Nested { most: usize },
    #[error(
        "this expression has more than {most} operations in a row; give a part of it a statement of its own"
    )]
    Chain { most: usize },
    #[error("a call of another definition is not supported; write its statements here instead")]
    CallOfDefinition,

    #[error("`{name}` is already {what}; choose another name")]
    AlreadyDefined { name: String, what: &'static str },
    #[error("`{name}` is {what} and cannot get a type here; write its type {place}")]
    TypeHere { name: String, what: &'static str, place: &'static str },
    #[error("the default of `{name}` is no value of {ty}; choose another number")]
    Default { name: String, ty: &'static str },
    #[error("`{name}` is a tensor, and only scalars have defaults; remove it")]
    DefaultOfTensor { name: String },
    #[error("`{name}` is a builtin function; choose another name")]
    BuiltinRedefined { name: String },
    #[error(
        "`{name}` is no tensor and no builtin function; declare it as a parameter or define it in a statement before"
    )]
    UndefinedTensor { name: String },
    #[error(
        "`{name}` has no value yet; write it in a statement before, or make it both a parameter and a result if the caller gives its value"
    )]
    NoValue { name: String },
    #[error(
        "the parameter `{name}` is written, but inputs are immutable; write to another name, or add `{name}` to the results to update it in place"
    )]
    ParamWritten { name: String },
    #[error("the result `{name}` is never written; add a statement that does, or remove it from the results")]
    ResultNeverWritten { name: String },
    #[error(
        "`{name}` is written, but it is no result and no later statement reads it; add it to the results or remove the statement"
    )]
    Unused { name: String },
    #[error(
        "`{result}` is updated in place, so its old values are the input `{name}`, but `{name}` is already {what}; rename that"
    )]
    InPlaceName { result: String, name: String, what: &'static str },
    #[error("the definition `{name}` has no results; name at least one after `->`")]
    NoResults { name: String },
    #[error("the builtin function `{name}` is not supported yet; express it by {supported}")]
    UnsupportedBuiltin { name: String, supported: &'static str },
    #[error("`{name}` is not computed in double; convert its arguments with float(..)")]
    NoDouble { name: String },
    #[error("`{name}` takes {expected} but {got} given; change the list in parentheses")]
    Arguments { name: String, expected: String, got: String },
    #[error(
        "the name `{name}` is used before the `where` clause that gives its meaning; put that clause first"
    )]
    LetOrder { name: String },
    #[error("`{name}` is no index of this statement; a range is for an index that the statement uses")]
    NoIndex { name: String },
    #[error("`{name}` has two ranges; keep one")]
    TwoRanges { name: String },
    #[error(
        "the bounds of a range use `{name}`, but only numbers, sizes and scalars of type int32 or int64 are known there; use these"
    )]
    RangeBound { name: String },
    #[error(
        "`{name}` occurs only in `exists`, so nothing is computed with it; remove it there or use it on the right"
    )]
    OnlyInExists { name: String },
    #[error("the statement has more than {most} indices; split it")]
    ManyIndices { most: usize },

    #[error("`{name}` has rank {rank} but {got} given; write one index for each dimension")]
    Rank { name: String, rank: usize, got: String },
    #[error("the tensor `{name}` of rank {rank} is used as a scalar; give it indices")]
    TensorAsScalar { name: String, rank: usize },
    #[error("`{name}` has rank {rank} and no dimension {dimension}; count dimensions from 0")]
    NoDimension { name: String, dimension: usize, rank: usize },
    #[error("the size `{name}` belongs to no parameter; use a size of a parameter or a number")]
    UnknownSize { name: String },
    #[error("`{name}` is {what} and cannot be an index; choose another name")]
    IndexName { name: String, what: &'static str },
    #[error("the index `{name}` stands twice on the left; use distinct indices")]
    RepeatedIndex { name: String },
    #[error(
        "the result `{name}` is declared with shape ({declared}) but the statements give ({inferred}); correct the one that is wrong"
    )]
    ResultShape { name: String, declared: String, inferred: String },
    #[error(
        "this statement writes `{name}` over ({now}), but it has shape ({before}); write all of it, or use another name"
    )]
    OtherRanges { name: String, before: String, now: String },

    #[error("an index is of type {ty}, but indices are integers; convert it, for example with int32(..)")]
    IndexType { ty: &'static str },
    #[error("`{what}` needs bool but has {ty}; compare it with something, for example with `!= 0`")]
    NotBool { what: &'static str, ty: &'static str },
    #[error("`{what}` is not defined for bool; convert it first, for example with int32(..)")]
    BoolOperand { what: String },
    #[error("{left} and {right} do not meet in one type; convert one of them, for example with int32(..)")]
    Types { left: &'static str, right: &'static str },
    #[error(
        "`{name}` is declared {declared} and cannot hold {value} without loss; convert the value with {declared}(..)"
    )]
    Narrowing { name: String, declared: &'static str, value: &'static str },

    #[error(
        "`{variable}` occurs only on the right, so this is a reduction, and `=` has no operator; write `+=!` or another reduction, or put `{variable}` on the left"
    )]
    Unreduced { variable: String },
    #[error(
        "`{name}` has no value that `{operator}` could update; write `{operator}!` to start from the neutral element"
    )]
    NothingToUpdate { name: String, operator: &'static str },
    #[error(
        "the statement writes `{name}({indices})` and reads `{name}` at other indices; write to another tensor"
    )]
    OwnTensor { name: String, indices: String },

    #[error(
        "the range of `{variable}` is empty at these sizes: {constraints}; choose larger sizes or another range"
    )]
    Empty { variable: String, constraints: String },
    #[error(
        "the ranges of {variables} do not follow from the reads{constraints}; give {one} with `where {first} in 0:n`"
    )]
    Unsolved { variables: String, constraints: String, one: &'static str, first: String },
    #[error(
        "no read bounds `{variable}`, so its range is unknown; add `where {variable} in 0:n` or `where exists A({variable})`"
    )]
    OnlyOnLeft { variable: String },
    #[error(
        "`{variable}` runs over {range}, but an index on the left must begin at 0; shift the indices on the right"
    )]
    Start { variable: String, range: String },
    #[error(
        "index {dimension} of `{tensor}` is {access}, which reaches {reached} where `{tensor}` has {allowed}; change the sizes, the index or the range"
    )]
    OutOfBounds { tensor: String, dimension: usize, access: String, reached: String, allowed: String },

    #[error("the size `{name}` has no value; give one, for example {name}=64")]
    MissingSize { name: String },
    #[error(
        "the scalar `{name}` decides ranges or indices and has no value; give one with the sizes, for example {name}=2"
    )]
    MissingScalar { name: String },
    #[error("`{definition}` has no size named `{}`; choose from {known}", visible(name))]
    NoSuchSize { definition: String, name: String, known: String },
    #[error("the size `{name}` is {value}; sizes are from 1 to 2^30")]
    BadSize { name: String, value: i64 },
    #[error("the scalar `{name}` is {value}, which does not fit {ty}; choose another value")]
    BadScalar { name: String, value: i64, ty: &'static str },
    #[error("`{name}` is given twice with different values, {first} and {second}; give it once")]
    GivenTwice { name: String, first: i64, second: i64 },
    #[error(
        "dimension {d1} of `{t1}` is {n1} and dimension {d2} of `{t2}` is {n2}, but both are `{size}`; give tensors that agree"
    )]
    SizesDiffer { size: String, t1: String, d1: usize, n1: i64, t2: String, d2: usize, n2: i64 },
    #[error("`{tensor}` has rank {rank} but {got} given; give one size for each dimension")]
    ShapeRank { tensor: String, rank: usize, got: String },
    #[error(
        "dimension {dimension} of `{tensor}` is {got}, but it is declared {declared}; give a tensor of that size"
    )]
    DeclaredSize { tensor: String, dimension: usize, declared: i64, got: i64 },
    #[error("`{definition}` has no tensor parameter named `{}`; choose from {known}", visible(name))]
    NoSuchInput { definition: String, name: String, known: String },
    #[error("a number in the ranges of this statement is too large; choose smaller sizes or factors")]
    Overflow,
    #[error("the pipeline of `{definition}` is refused: {message}")]
    Refused { definition: String, message: String },
}

/// A mistake and its place.
#[derive(Clone, PartialEq, Debug)]
pub struct Mistake {
    /// The mistake.
    pub fault: Fault,
    /// Its place.
    pub span: Span,
}

impl Mistake {
    pub(crate) fn new(span: Span, fault: Fault) -> Mistake {
        Mistake { fault, span }
    }
}

/// All mistakes of a text, in order of their places; never empty.
///
/// The text has a paragraph per mistake: file, line and column, the sentence, the line and a caret.
#[derive(Clone)]
pub struct Errors {
    source: SourceFile,
    list: Vec<Mistake>,
}

impl Errors {
    pub(crate) fn new(source: &SourceFile, mut list: Vec<Mistake>) -> Errors {
        list.sort_by_key(|mistake| mistake.span.ends());
        list.dedup_by(|a, b| a.span.ends() == b.span.ends() && a.fault == b.fault);
        Errors { source: source.clone(), list }
    }

    /// The mistakes.
    pub fn list(&self) -> &[Mistake] {
        &self.list
    }

    /// Line and column of a mistake, both from 1.
    pub fn position(&self, mistake: &Mistake) -> (usize, usize) {
        self.source.position(mistake.span)
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, mistake) in self.list.iter().take(MAX_SHOWN).enumerate() {
            let (line, column) = self.source.position(mistake.span);
            let gap = if number == 0 { "" } else { "\n" };
            writeln!(f, "{gap}{}:{line}:{column}: {}", visible(&self.source.file), mistake.fault)?;
            self.source.excerpt(mistake.span, f)?;
        }
        match self.list.len().saturating_sub(MAX_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl fmt::Debug for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl std::error::Error for Errors {}

/// Collects mistakes, up to a limit.
#[derive(Default)]
pub(crate) struct Mistakes(Vec<Mistake>);

impl Mistakes {
    pub fn add(&mut self, span: Span, fault: Fault) {
        self.push(Mistake::new(span, fault));
    }

    pub fn push(&mut self, mistake: Mistake) {
        if !self.is_full() {
            self.0.push(mistake);
        }
    }

    pub fn is_full(&self) -> bool {
        self.0.len() >= MOST
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn into_result(self, source: &SourceFile) -> Result<(), Errors> {
        if self.0.is_empty() { Ok(()) } else { Err(Errors::new(source, self.0)) }
    }
}

/// Why a file has no such definition.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum DefineError {
    /// A file without definitions.
    #[error("{file} has no definition; write one as `def name(..) -> (..) {{ .. }}`")]
    None {
        /// The name of the file.
        file: String,
    },
    /// No name was given, and there are several definitions.
    #[error("{file} has several definitions; choose one of {known}")]
    Several {
        /// The name of the file.
        file: String,
        /// The names of the definitions, as one text.
        known: String,
    },
    /// A name that the file does not have.
    #[error("{file} has no definition named `{}`; it has {known}", visible(name))]
    Unknown {
        /// The name of the file.
        file: String,
        /// The name asked for.
        name: String,
        /// The names of the definitions, as one text.
        known: String,
    },
}

/// "1 index was", "3 indices were".
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one} is") } else { format!("{count} {many} are") }
}
