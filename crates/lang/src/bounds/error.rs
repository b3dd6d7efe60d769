//! Why sizes or Params do not fit a pipeline.

use thiserror::Error;

use crate::region::{Range, Region};
use crate::types::{Type, Value};

/// Why a realisation is rejected.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum BoundsError {
    /// A name that the pipeline does not have.
    #[error("the pipeline `{pipeline}` has no input, output or Param named `{name}`; it has {known}")]
    Unknown {
        /// Name of the pipeline.
        pipeline: String,
        /// The unknown name.
        name: String,
        /// The valid names, as one text.
        known: String,
    },
    /// A box or a value that was not given.
    #[error("no {what} was given for `{name}` of the pipeline `{pipeline}`; give one")]
    Missing {
        /// Name of the pipeline.
        pipeline: String,
        /// Name of the input, output or Param.
        name: String,
        /// The kind of the missing item: a size or a value.
        what: &'static str,
    },
    /// A box of the wrong rank.
    #[error("`{name}` has {expected} dimensions but {got} were given; give one extent per dimension")]
    Rank {
        /// Name of the input or output.
        name: String,
        /// The number of dimensions given.
        got: usize,
        /// The number of dimensions it has.
        expected: usize,
    },
    /// Positions that no index reaches.
    #[error(
        "`{name}` has positions from {} to {} in dimension {dimension}, but positions must lie between -2^30 and 2^30; choose a box closer to 0{}",
        range.min, range.last(), at(.place)
    )]
    Position {
        /// Name of the input, output or Func.
        name: String,
        /// The dimension, from 0.
        dimension: usize,
        /// The positions.
        range: Range,
        /// Source location of the Func; `None` for inputs, outputs and pipelines read from files.
        place: Option<String>,
    },
    /// An access far from 0.
    #[error(
        "`{consumer}` reads `{producer}` at positions from {} to {} in dimension {dimension}, but positions must lie between -2^30 and 2^30; clamp the index, or choose a box closer to 0{}",
        range.min, range.last(), at(.place)
    )]
    FarIndex {
        /// Name of the stage that reads.
        consumer: String,
        /// Name of the Func or input that is read.
        producer: String,
        /// The dimension of the index, from 0.
        dimension: usize,
        /// The positions.
        range: Range,
        /// Source location of the stage; `None` for pipelines read from files.
        place: Option<String>,
    },
    /// A box that is empty or too large.
    #[error("`{name}` has extent {extent} in dimension {dimension}; every extent must be from 1 to 2^30")]
    Extent {
        /// Name of the input or output.
        name: String,
        /// The dimension, from 0.
        dimension: usize,
        /// The extent that was given.
        extent: i64,
    },
    /// A Param value of the wrong type.
    #[error("the Param `{name}` is {expected} but {got} was given; give a value of type {expected}")]
    ParamType {
        /// Name of the Param.
        name: String,
        /// The declared type.
        expected: Type,
        /// The type of the value given.
        got: Type,
    },
    /// A Param value outside the declared range.
    #[error("the Param `{name}` is {value}, outside its range {low} to {high}; choose a value in this range")]
    ParamRange {
        /// Name of the Param.
        name: String,
        /// The value that was given.
        value: Value,
        /// The smallest allowed value.
        low: Value,
        /// The largest allowed value.
        high: Value,
    },
    /// An access with an unbounded index.
    #[error("`{consumer}` reads `{producer}` at an index of dimension {dimension} that has no bounds; clamp the index, for example with clamp(i, 0, n - 1){}", at(.place))]
    Unbounded {
        /// Name of the stage that reads.
        consumer: String,
        /// Name of the Func or input that is read.
        producer: String,
        /// The dimension of the index, from 0.
        dimension: usize,
        /// Source location of the stage; `None` for pipelines read from files.
        place: Option<String>,
    },
    /// An out-of-bounds read of an input.
    #[error("`{consumer}` needs {needed} of `{input}` in dimension {dimension}, but there is only {available}; give a larger input, a smaller output, or a boundary condition such as {input}.repeat_edge(){}", at(.place))]
    LeavesInput {
        /// Name of the stage that reads.
        consumer: String,
        /// Name of the input.
        input: String,
        /// The dimension, from 0.
        dimension: usize,
        /// The indices that the stage reads.
        needed: Range,
        /// The indices that the input has.
        available: Range,
        /// Source location of the stage; `None` for pipelines read from files.
        place: Option<String>,
    },
    /// An out-of-bounds read of a constant table.
    #[error("`{consumer}` needs {needed} of the table `{table}` in dimension {dimension}, but there is only {}; clamp the index, for example with clamp(i, 0, {}){}", Range::new(0, *.extent), .extent - 1, at(.place))]
    LeavesTable {
        /// Name of the stage that reads.
        consumer: String,
        /// Name of the table.
        table: String,
        /// The dimension, from 0.
        dimension: usize,
        /// The indices that the stage reads.
        needed: Range,
        /// How many indices the table has, from 0.
        extent: i64,
        /// Source location of the stage; `None` for pipelines read from files.
        place: Option<String>,
    },
    /// A reduction domain that does not follow from the sizes of a launch.
    #[error("the range of `{variable}` in `{stage}` is no simple function of the sizes, so it cannot be computed at launch; leave the sizes that it depends on fixed{}", at(.place))]
    Domain {
        /// Name of the reduction variable.
        variable: String,
        /// Name of the stage.
        stage: String,
        /// Source location of the stage; `None` for pipelines read from files.
        place: Option<String>,
    },
    /// A Func or input with too many points to index.
    #[error("`{func}` would need {region} points; use smaller sizes")]
    TooLarge {
        /// Name of the Func or input.
        func: String,
        /// The box that it would need.
        region: Region,
    },
}

pub(crate) fn at(place: &Option<String>) -> String {
    place.as_ref().map(|place| format!("\n  --> {place}")).unwrap_or_default()
}
