//! The boxes of inputs and outputs as formulas of the sizes.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::affine::Interval;
use crate::bounds::Realisation;
use crate::dynamic::formula::{Evaluation, Formula, Formulas, SizeRange};
use crate::ids::{Id, IdVec, InputId};
use crate::pipeline::Pipeline;
use crate::region::{Range, Region};

/// The integers from `first` to `last`; empty if `last` is smaller.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct FormulaRange {
    /// The first integer.
    pub first: Formula,
    /// The last integer.
    pub last: Formula,
}

impl FormulaRange {
    /// A range that does not depend on the sizes.
    pub fn constant(range: Range) -> FormulaRange {
        FormulaRange { first: Formula::constant(range.min), last: Formula::constant(range.last()) }
    }

    /// The range at some sizes.
    pub fn at(&self, values: &Evaluation) -> Range {
        Range::inclusive(values.of(&self.first), values.of(&self.last))
    }

    /// The smallest range that covers it at all sizes.
    pub fn hull(&self, formulas: &Formulas) -> Range {
        Range::inclusive(formulas.range(&self.first).min, formulas.range(&self.last).max)
    }

    /// Whether it is the same at all sizes.
    pub fn is_constant(&self) -> bool {
        self.first.is_constant() && self.last.is_constant()
    }
}

/// A request to a pipeline whose sizes are given at each launch.
#[derive(Clone, PartialEq, Debug)]
pub struct DynamicRequest {
    /// The sizes, and the atoms of the formulas below.
    pub formulas: Formulas,
    /// The request at the sizes that kernels are scheduled for, with the values of the Params.
    pub typical: Realisation,
    /// The sizes of that request.
    pub typical_sizes: Vec<i64>,
    /// The box of each input.
    pub inputs: IdVec<InputId, Vec<FormulaRange>>,
    /// The box of each output, in the pipeline's order.
    pub outputs: Vec<Vec<FormulaRange>>,
}

/// Why some sizes cannot be used.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum SizeError {
    /// No size has this range.
    #[error("the size `{name}` is to range from {min} to {max}; give a range from 1 or more to at most 2^30")]
    Range {
        /// Name of the size.
        name: String,
        /// The smallest value asked for.
        min: i64,
        /// The largest value asked for.
        max: i64,
    },
    /// A size outside its range.
    #[error(
        "{name}={value} is outside the range {min}..{max} that the kernels were compiled for; compile them for a wider range"
    )]
    Outside {
        /// Name of the size.
        name: String,
        /// The size given.
        value: i64,
        /// The smallest allowed value.
        min: i64,
        /// The largest allowed value.
        max: i64,
    },
    /// A box that does not grow linearly with the sizes.
    #[error(
        "the box of `{name}` does not grow linearly with the sizes, so it cannot be computed at launch; leave one of them fixed"
    )]
    NotLinear {
        /// Name of the input or output.
        name: String,
    },
    /// A box that is empty at some sizes.
    #[error("`{name}` would have no points in dimension {dimension} at the smallest sizes; raise them")]
    Empty {
        /// Name of the input or output.
        name: String,
        /// The dimension, from 0.
        dimension: usize,
    },
    /// A size that no input or output determines.
    #[error("no input or output shows how large `{name}` is; leave it fixed")]
    Hidden {
        /// Name of the size.
        name: String,
    },
    /// The boxes of a launch contradict each other.
    #[error("at {sizes}, `{name}` must have the box {expected}, but {given} was given")]
    Box {
        /// The sizes that the other boxes imply.
        sizes: String,
        /// Name of the input or output.
        name: String,
        /// The box that the sizes imply.
        expected: Region,
        /// The box given.
        given: Region,
    },
    /// The kernels would read beyond an input.
    #[error("at {sizes}, {why}; use other sizes")]
    Condition {
        /// The sizes given.
        sizes: String,
        /// The consequence.
        why: String,
    },
}

/// The largest size, as for fixed sizes.
const MAX_SIZE: i64 = 1 << 30;

impl DynamicRequest {
    /// Finds the formulas of the boxes from the boxes at some sizes: `at` gives all of them for any values of the sizes,
    /// `typical` are the values to schedule for.
    ///
    /// # Errors
    /// If a range is invalid, or a box is not a linear function of the sizes.
    pub fn fit(
        pipeline: &Pipeline,
        sizes: Vec<SizeRange>,
        typical: &[i64],
        at: impl Fn(&[i64]) -> Realisation,
    ) -> Result<DynamicRequest, SizeError> {
        for (SizeRange { name, min, max }, value) in sizes.iter().zip(typical) {
            let (name, min, max) = (name.clone(), *min, *max);
            if min < 1 || max < min || max > MAX_SIZE {
                return Err(SizeError::Range { name, min, max });
            }
            if !(min..=max).contains(value) {
                return Err(SizeError::Outside { name, value: *value, min, max });
            }
        }
        let formulas = Formulas::new(sizes);
        let base = at(typical);
        let moved: Vec<(usize, i64, Vec<Vec<Range>>)> = (0..typical.len())
            .filter(|i| formulas.sizes()[*i].min < formulas.sizes()[*i].max)
            .map(|i| {
                let step = if typical[i] < formulas.sizes()[i].max { 1 } else { -1 };
                let mut values = typical.to_vec();
                values[i] += step;
                (i, step, boxes(&at(&values)))
            })
            .collect();
        let number = |of: fn(&Range) -> i64, b: usize, d: usize, range: &Range| {
            let mut formula = Formula::constant(of(range));
            for (i, step, moved) in &moved {
                let slope = (of(&moved[b][d]) - of(range)) * step;
                let away = formulas.size(*i).add_scaled(&Formula::constant(typical[*i]), -1)?;
                formula = formula.add_scaled(&away, slope)?;
            }
            Some(formula)
        };
        let names = names(pipeline);
        let mut fitted = Vec::new();
        for (b, ranges) in boxes(&base).iter().enumerate() {
            let too_large = || SizeError::NotLinear { name: names[b].clone() };
            let ranges = ranges.iter().enumerate().map(|(d, range)| {
                let first = number(|range| range.min, b, d, range)?;
                Some(FormulaRange { first, last: number(|range| range.last(), b, d, range)? })
            });
            fitted.push(ranges.collect::<Option<Vec<_>>>().ok_or_else(too_large)?);
        }
        let outputs = fitted.split_off(pipeline.inputs().len());
        let (typical_sizes, inputs) = (typical.to_vec(), fitted.into_iter().collect());
        let request = DynamicRequest { formulas, typical: base, typical_sizes, inputs, outputs };
        request.check(pipeline, typical, at)?;
        Ok(request)
    }

    /// Compares the formulas with the boxes at the ends of the ranges and in between.
    fn check(
        &self,
        pipeline: &Pipeline,
        typical: &[i64],
        at: impl Fn(&[i64]) -> Realisation,
    ) -> Result<(), SizeError> {
        let names = names(pipeline);
        for (name, ranges) in names.iter().zip(self.boxes()) {
            let empty = |range: &FormulaRange| self.formulas.surely_le(&range.first, &range.last);
            if let Some(dimension) = ranges.iter().position(|range| !empty(range)) {
                return Err(SizeError::Empty { name: name.clone(), dimension });
            }
        }
        let sizes = self.formulas.sizes();
        let all = |of: fn(&SizeRange) -> i64| sizes.iter().map(of).collect::<Vec<i64>>();
        let mut samples =
            vec![all(|size| size.min), all(|size| size.max), all(|size| (size.min + size.max) / 2)];
        for (i, size) in sizes.iter().enumerate() {
            for value in [size.min, size.max, (size.min + 2 * size.max) / 3] {
                let mut sample = typical.to_vec();
                sample[i] = value;
                samples.push(sample);
            }
        }
        for sample in samples {
            let values = self.formulas.evaluation(&sample);
            for ((name, ranges), given) in names.iter().zip(self.boxes()).zip(boxes(&at(&sample))) {
                if ranges.iter().zip(&given).any(|(range, given)| range.at(&values) != *given) {
                    return Err(SizeError::NotLinear { name: name.clone() });
                }
            }
        }
        Ok(())
    }

    /// The boxes of all inputs, then of all outputs.
    fn boxes(&self) -> impl Iterator<Item = &Vec<FormulaRange>> {
        self.inputs.values().chain(&self.outputs)
    }

    /// The sizes at which inputs and outputs have the boxes of a request.
    ///
    /// # Errors
    /// If there are none, or they are out of range.
    pub fn sizes_of(&self, pipeline: &Pipeline, request: &Realisation) -> Result<Vec<i64>, SizeError> {
        let given = boxes(request);
        let sizes = self.solved(&given)?;
        let values = self.formulas.evaluation(&sizes);
        for ((name, ranges), given) in names(pipeline).into_iter().zip(self.boxes()).zip(given) {
            let expected = Region(ranges.iter().map(|range| range.at(&values)).collect());
            if expected.0 != given {
                let sizes = self.shown(&sizes);
                return Err(SizeError::Box { sizes, name, expected, given: Region(given) });
            }
        }
        Ok(sizes)
    }

    /// The boxes of the outputs for inputs with these boxes.
    ///
    /// # Errors
    /// If the inputs do not determine all sizes, or imply one that is out of range.
    pub fn outputs_for(&self, inputs: &[Region]) -> Result<Vec<Region>, SizeError> {
        let given: Vec<Vec<Range>> = inputs.iter().map(|region| region.0.clone()).collect();
        let values = self.formulas.evaluation(&self.solved(&given)?);
        let region =
            |ranges: &Vec<FormulaRange>| Region(ranges.iter().map(|range| range.at(&values)).collect());
        Ok(self.outputs.iter().map(region).collect())
    }

    /// The sizes that the given boxes imply, first boxes first.
    fn solved(&self, given: &[Vec<Range>]) -> Result<Vec<i64>, SizeError> {
        let mut found: Vec<Option<i64>> = self.formulas.sizes().iter().map(|_| None).collect();
        for (range, given) in self.boxes().zip(given).flat_map(|(ranges, given)| ranges.iter().zip(given)) {
            for (formula, value) in [(&range.first, given.min), (&range.last, given.last())] {
                if let [(atom, factor @ (1 | -1))] = formula.terms[..] {
                    found[atom.index()].get_or_insert((value - formula.constant) * factor);
                }
            }
        }
        let sizes = self.formulas.sizes().iter().zip(found).map(|(size, found)| {
            let SizeRange { name, min, max } = size.clone();
            match found.or((min == max).then_some(min)) {
                None => Err(SizeError::Hidden { name }),
                Some(value) if !(min..=max).contains(&value) => {
                    Err(SizeError::Outside { name, value, min, max })
                }
                Some(value) => Ok(value),
            }
        });
        sizes.collect()
    }

    /// The request at some sizes.
    ///
    /// # Errors
    /// If a size is out of range.
    pub fn at(&self, sizes: &[i64]) -> Result<Realisation, SizeError> {
        for (SizeRange { name, min, max }, &value) in self.formulas.sizes().iter().zip(sizes) {
            if !(*min..=*max).contains(&value) {
                return Err(SizeError::Outside { name: name.clone(), value, min: *min, max: *max });
            }
        }
        let values = self.formulas.evaluation(sizes);
        let region =
            |ranges: &Vec<FormulaRange>| Some(Region(ranges.iter().map(|range| range.at(&values)).collect()));
        let mut request = self.typical.clone();
        request.inputs = self.inputs.values().map(region).collect();
        request.outputs = self.outputs.iter().map(region).collect();
        Ok(request)
    }

    /// Sizes as messages show them: `W=640, H=480`.
    pub fn shown(&self, sizes: &[i64]) -> String {
        let each =
            self.formulas.sizes().iter().zip(sizes).map(|(size, value)| format!("{}={value}", size.name));
        each.collect::<Vec<_>>().join(", ")
    }

    /// The values that the bounds of an input's dimension can have: of its first index, and of its extent.
    pub(crate) fn input_ranges(&self, input: InputId, dimension: usize) -> (Interval, Interval) {
        let FormulaRange { first, last } = &self.inputs[input][dimension];
        let extent = last.add_scaled(first, -1).map_or(Interval::new(0, MAX_SIZE), |width| {
            self.formulas.range(&width).plus(Interval::new(1, 1))
        });
        (self.formulas.range(first), extent)
    }
}

/// The boxes of all inputs, then of all outputs; empty where none was given.
fn boxes(request: &Realisation) -> Vec<Vec<Range>> {
    let given = request.inputs.values().chain(&request.outputs);
    given.map(|region| region.as_ref().map_or_else(Vec::new, |region| region.0.clone())).collect()
}

/// The names of all inputs, then of all outputs.
fn names(pipeline: &Pipeline) -> Vec<String> {
    let inputs = pipeline.inputs().values().map(|input| input.name.clone());
    inputs.chain(pipeline.outputs().iter().map(|id| pipeline.funcs()[*id].name.clone())).collect()
}
