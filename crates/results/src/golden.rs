//! Reference data: folders with arrays and `params.json`, which describes them and the tolerance of outputs.

mod case;
mod folder;

use std::collections::BTreeMap;

use serde::Deserialize;
use thiserror::Error;
use warploom::app::MAX_SIZE;
use warploom::interp::compare::{Outliers, Tolerance};
use warploom::lang::brief::shown;
use warploom::lang::{Range, Region, Type, Value};

pub use case::{Case, Checked, Output};
pub use folder::{Folder, FolderError};

/// The most samples an array can have.
const MAX_POINTS: u64 = 1 << 40;

/// Why a `params.json` is not valid.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are the words of the sentences")]
pub enum GoldenError {
    /// Not JSON, or JSON with wrong fields.
    #[error("{0}; correct it")]
    Json(#[from] serde_json::Error),
    /// Nothing to compare.
    #[error("it names no outputs; name at least one")]
    NoOutputs,
    /// A name that is not a plain file name.
    #[error(
        "`{name}` cannot be the name of an array, which names a file in the same folder; use letters, digits, `_`, `-` and `.`"
    )]
    Name { name: String },
    /// An extent below 1, or more than 2^40 samples.
    #[error("`{name}` has the shape [{}]; extents must be at least 1, and their product at most 2^40", shown(.shape, ", "))]
    Shape { name: String, shape: Vec<i64> },
    /// Minima that are too large, or not one per dimension.
    #[error(
        "`{name}` has {dimensions} dimensions and the minima [{}]; give one per dimension, at most {MAX_SIZE}",
        shown(.min, ", ")
    )]
    Min { name: String, dimensions: usize, min: Vec<i64> },
    /// A negative or non-finite difference, or a fraction of outliers outside of `[0, 1)`.
    #[error("in its tolerance, {what} is {value:?}; give {need}")]
    Tolerance { what: &'static str, value: f64, need: &'static str },
}

/// The description of a folder of reference data.
#[derive(Clone, PartialEq, Debug)]
pub struct Golden {
    /// The name of the app that it belongs to.
    pub app: String,
    /// The arrays of inputs.
    pub inputs: BTreeMap<String, Array>,
    /// The arrays of outputs; never empty.
    pub outputs: BTreeMap<String, Array>,
    /// Values of the Params.
    pub scalars: BTreeMap<String, Value>,
    /// Values of the structure parameters and sizes.
    pub generator_params: BTreeMap<String, f64>,
    /// How far outputs may differ from the reference data.
    pub tolerance: Tolerance,
}

/// An array in a file.
#[derive(Clone, PartialEq, Debug)]
pub struct Array {
    /// Its element type.
    pub ty: Type,
    /// Its box, with the first dimension first.
    pub region: Region,
}

/// The format of the file; unknown fields are ignored.
#[derive(Deserialize)]
struct File {
    app: String,
    inputs: BTreeMap<String, FileArray>,
    outputs: BTreeMap<String, FileArray>,
    #[serde(default)]
    scalars: BTreeMap<String, Value>,
    #[serde(default)]
    generator_params: BTreeMap<String, f64>,
    tolerance: FileTolerance,
}

#[derive(Deserialize)]
struct FileArray {
    /// The extents in numpy's order: the last dimension first.
    shape: Vec<i64>,
    dtype: Dtype,
    /// The smallest index of each dimension, the first dimension first; 0 if left out.
    halide_min: Option<Vec<i64>>,
}

/// An element type, by its numpy name.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Dtype {
    Bool,
    Uint8,
    Uint16,
    Uint32,
    Int8,
    Int16,
    Int32,
    Float32,
}

#[derive(Deserialize)]
struct FileTolerance {
    abs: f64,
    outliers: Option<FileOutliers>,
}

#[derive(Deserialize)]
struct FileOutliers {
    abs: f64,
    fraction: f64,
}

impl Golden {
    /// Parses and validates the text of a `params.json`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Golden, GoldenError> {
        let file: File = serde_json::from_str(text)?;
        let arrays = |arrays: BTreeMap<String, FileArray>| {
            let arrays = arrays.into_iter().map(|(name, array)| {
                let array = array.checked(&name)?;
                Ok((name, array))
            });
            arrays.collect::<Result<BTreeMap<_, _>, GoldenError>>()
        };
        if file.outputs.is_empty() {
            return Err(GoldenError::NoOutputs);
        }
        Ok(Golden {
            app: file.app,
            inputs: arrays(file.inputs)?,
            outputs: arrays(file.outputs)?,
            scalars: file.scalars,
            generator_params: file.generator_params,
            tolerance: file.tolerance.checked()?,
        })
    }
}

impl FileArray {
    fn checked(self, name: &str) -> Result<Array, GoldenError> {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
            return Err(GoldenError::Name { name: name.to_owned() });
        }
        let FileArray { shape, dtype, halide_min } = self;
        let extents: Vec<i64> = shape.iter().rev().copied().collect();
        let points = Region::of_extents(&extents).points();
        if points.is_none_or(|points| !(1..=MAX_POINTS).contains(&points)) {
            return Err(GoldenError::Shape { name: name.to_owned(), shape });
        }
        let min = halide_min.unwrap_or_else(|| vec![0; extents.len()]);
        if min.len() != extents.len() || min.iter().any(|min| !(-MAX_SIZE..=MAX_SIZE).contains(min)) {
            return Err(GoldenError::Min { name: name.to_owned(), dimensions: extents.len(), min });
        }
        let ranges = min.iter().zip(&extents).map(|(&min, &extent)| Range::new(min, extent));
        Ok(Array { ty: dtype.ty(), region: Region(ranges.collect()) })
    }
}

impl Dtype {
    fn ty(self) -> Type {
        match self {
            Dtype::Bool => Type::Bool,
            Dtype::Uint8 => Type::U8,
            Dtype::Uint16 => Type::U16,
            Dtype::Uint32 => Type::U32,
            Dtype::Int8 => Type::I8,
            Dtype::Int16 => Type::I16,
            Dtype::Int32 => Type::I32,
            Dtype::Float32 => Type::F32,
        }
    }
}

impl FileTolerance {
    fn checked(self) -> Result<Tolerance, GoldenError> {
        let difference = |what: &'static str, value: f64| match value {
            value if value.is_finite() && value >= 0.0 => Ok(value),
            value => Err(GoldenError::Tolerance { what, value, need: "a number of at least 0" }),
        };
        let outliers = self.outliers.map(|FileOutliers { abs, fraction }| {
            if !(0.0..1.0).contains(&fraction) {
                let (what, need) = ("the fraction of outliers", "a number from 0 to less than 1");
                return Err(GoldenError::Tolerance { what, value: fraction, need });
            }
            Ok(Outliers { abs: difference("the difference of outliers", abs)?, fraction })
        });
        let abs = difference("the difference", self.abs)?;
        Ok(Tolerance { abs, outliers: outliers.transpose()?, ..Tolerance::default() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value as Json, json};

    use super::*;

    fn example() -> Json {
        json!({
            "app": "harris",
            "seed": 102,
            "inputs": { "input": { "shape": [3, 96, 128], "dtype": "float32" } },
            "scalars": { "levels": { "type": "i32", "value": 8 }, "beta": { "type": "f32", "value": 1.0 } },
            "outputs": { "output": { "shape": [90, 122], "dtype": "float32", "halide_min": [3, 4] } },
            "generator_params": { "sigma": 1.5 },
            "tolerance": { "abs": 1e-7, "outliers": { "abs": 1, "fraction": 0.001 } }
        })
    }

    /// The error after one value of the example is replaced.
    fn error(pointer: &str, value: Json) -> String {
        let mut example = example();
        *example.pointer_mut(pointer).unwrap() = value;
        Golden::parse(&example.to_string()).unwrap_err().to_string()
    }

    #[test]
    fn axes_are_reversed_and_minima_are_not() {
        let golden = Golden::parse(&example().to_string()).unwrap();
        assert_eq!(golden.inputs["input"].region.extents(), [128, 96, 3]);
        assert_eq!(golden.outputs["output"].region.to_string(), "[3, 125) x [4, 94)");
        assert_eq!(golden.scalars["levels"], Value::from(8_i32));
        assert_eq!(golden.generator_params["sigma"], 1.5);
        assert_eq!(golden.tolerance.outliers, Some(Outliers { abs: 1.0, fraction: 0.001 }));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let errors = [
            error("/outputs", json!({})),
            error("/inputs", json!({ "../harris/input": { "shape": [2], "dtype": "float32" } })),
            error("/outputs", json!({ "/etc/passwd": { "shape": [2], "dtype": "float32" } })),
            error("/outputs", json!({ "..\\x": { "shape": [2], "dtype": "float32" } })),
            error("/app", json!(3)),
            error("/inputs/input/shape", json!([3, 0, 128])),
            error("/inputs/input/shape", json!([1 << 30, 1 << 30, 1 << 30])),
            error("/inputs/input/dtype", json!("float64")),
            error("/outputs/output/halide_min", json!([3])),
            error("/scalars/levels/value", json!(1.5)),
            error("/tolerance/abs", json!(-1.0)),
            error("/tolerance/outliers/fraction", json!(1.5)),
            Golden::parse("").unwrap_err().to_string(),
        ];
        insta::assert_snapshot!(errors.join("\n"), @r"
        it names no outputs; name at least one
        `../harris/input` cannot be the name of an array, which names a file in the same folder; use letters, digits, `_`, `-` and `.`
        `/etc/passwd` cannot be the name of an array, which names a file in the same folder; use letters, digits, `_`, `-` and `.`
        `..\x` cannot be the name of an array, which names a file in the same folder; use letters, digits, `_`, `-` and `.`
        invalid type: integer `3`, expected a string at line 1 column 8; correct it
        `input` has the shape [3, 0, 128]; extents must be at least 1, and their product at most 2^40
        `input` has the shape [1073741824, 1073741824, 1073741824]; extents must be at least 1, and their product at most 2^40
        unknown variant `float64`, expected one of `bool`, `uint8`, `uint16`, `uint32`, `int8`, `int16`, `int32`, `float32` at line 1 column 85; correct it
        `output` has 2 dimensions and the minima [3]; give one per dimension, at most 1073741824
        1.5 is not a value of type i32 at line 1 column 265; correct it
        in its tolerance, the difference is -1.0; give a number of at least 0
        in its tolerance, the fraction of outliers is 1.5; give a number from 0 to less than 1
        EOF while parsing a value at line 1 column 0; correct it
        ");
    }

    /// Whatever parses must be safe to use.
    fn assert_sound(text: &str) {
        let Ok(golden) = Golden::parse(text) else { return };
        assert!(!golden.outputs.is_empty());
        for array in golden.inputs.values().chain(golden.outputs.values()) {
            assert!(array.region.points().is_some_and(|points| points > 0));
        }
    }

    fn any_json() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            any::<f64>().prop_map(Json::from),
            "[a-z0-9]{0,8}".prop_map(Json::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
                prop::collection::hash_map("[a-z]{1,6}", inner, 0..4)
                    .prop_map(|map| Json::Object(map.into_iter().collect())),
            ]
        })
    }

    /// The JSON pointers of all values inside a value.
    fn places(value: &Json, prefix: &str, found: &mut Vec<String>) {
        found.push(prefix.to_owned());
        match value {
            Json::Object(map) => {
                map.iter().for_each(|(key, value)| places(value, &format!("{prefix}/{key}"), found));
            }
            Json::Array(items) => {
                items.iter().enumerate().for_each(|(i, item)| places(item, &format!("{prefix}/{i}"), found));
            }
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}") {
            assert_sound(&text);
        }

        #[test]
        fn any_json_is_read_or_refused(value in any_json()) {
            assert_sound(&value.to_string());
        }

        #[test]
        fn any_change_of_a_value_is_read_or_refused(place in any::<prop::sample::Index>(), value in any_json()) {
            let mut changed = example();
            let mut found = Vec::new();
            places(&changed, "", &mut found);
            *changed.pointer_mut(&found[place.index(found.len())]).unwrap() = value;
            assert_sound(&changed.to_string());
        }

        #[test]
        fn any_damage_is_read_or_refused(
            edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 1..6),
        ) {
            let mut bytes = example().to_string().into_bytes();
            for (place, byte, edit) in edits {
                let at = place.index(bytes.len());
                match edit {
                    0 => bytes[at] = byte,
                    1 => bytes.insert(at, byte),
                    _ => bytes.truncate(at.max(1)),
                }
            }
            assert_sound(&String::from_utf8_lossy(&bytes));
        }
    }
}
