//! Concise ways to give the sizes of a pipeline's inputs and outputs.

use std::ops::RangeInclusive;

use thiserror::Error;
use warploom_interp::buffer::Buffer;
use warploom_lang::dynamic::{DynamicRequest, SizeError, SizeRange};
use warploom_lang::{Pipeline, Realisation, Region};

/// Something that gives the sizes of a pipeline's inputs and outputs: a [`Realisation`] gives them
/// all, [`size`] gives the same size to all of them, and input buffers have sizes of their own.
pub trait Sizes {
    /// The boxes of all inputs and outputs of the pipeline.
    ///
    /// # Errors
    /// If the size of an input or output cannot be determined.
    fn realisation(&self, pipeline: &Pipeline) -> Result<Realisation, SizesError>;

    /// The boxes as functions of sizes that every run chooses anew; `None` if they are fixed.
    ///
    /// # Errors
    /// If the size of an input or output cannot be determined, or does not grow linearly.
    fn dynamic(&self, _: &Pipeline) -> Result<Option<DynamicRequest>, SizesError> {
        Ok(None)
    }
}

/// Why the sizes of a pipeline could not be determined.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum SizesError {
    /// An input or output has more dimensions than the `size` that was given.
    #[error(
        "`{name}` has {expected} dimensions, but the size has {given}; give one extent per dimension, or a Realisation"
    )]
    Dimensions {
        /// The name of the input or output.
        name: String,
        /// The number of its dimensions.
        expected: usize,
        /// The number of extents in the size.
        given: usize,
    },
    /// The number of buffers differs from the number of inputs.
    #[error(
        "the pipeline `{pipeline}` has {expected} inputs, but {given} buffers were given; give one for each"
    )]
    Inputs {
        /// The name of the pipeline.
        pipeline: String,
        /// The number of its inputs.
        expected: usize,
        /// The number of buffers given.
        given: usize,
    },
    /// Sizes that cannot vary as requested.
    #[error(transparent)]
    Varying(#[from] SizeError),
    /// No input has as many dimensions as this output, so there is no size to copy.
    #[error(
        "no input has the {dimensions} dimensions of `{output}`, so its size cannot be inferred; give a Realisation"
    )]
    Output {
        /// The name of the output.
        output: String,
        /// The number of its dimensions.
        dimensions: usize,
    },
}

/// One size for all inputs and outputs of a pipeline. Inputs and outputs with fewer dimensions use
/// its first extents.
///
/// ```
/// use warploom::prelude::*;
///
/// let (x, y) = vars!(x, y);
/// let input = Input::f32("input", 2);
/// let pipeline = Pipeline::new("double", [func("double", (x, y), 2.0 * input.at((x, y)))])?;
/// let request = size([640, 480]).realisation(&pipeline)?;
/// assert_eq!(request.outputs[0], Some(Region::of_extents(&[640, 480])));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn size<const N: usize>(extents: [i64; N]) -> Size {
    Size(extents.to_vec())
}

/// The same size for all inputs and outputs; see [`size`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Size(Vec<i64>);

impl Size {
    /// The same size for kernels of any size: the extents get names and ranges, and every run chooses them anew.
    /// Kernels are scheduled for the given extents.
    ///
    /// ```
    /// use warploom::prelude::*;
    ///
    /// let (x, y) = vars!(x, y);
    /// let input = Input::f32("input", 2);
    /// let double = Pipeline::new("double", [func("double", (x, y), 2.0 * input.at((x, y)))])?;
    /// let device = Device::preset("h200")?;
    /// let sizes = size([640, 480]).dynamic([("W", 1..=4096), ("H", 1..=4096)]);
    /// let double = double.autoschedule(&device, sizes)?.compile_for(Backend::Simulator(device))?;
    /// for extents in [[7, 3], [64, 1]] {
    ///     let image = Buffer::from_fn::<f32>(Region::of_extents(&extents), |at| at[0] as f32)?;
    ///     assert_eq!(double.run(&[&image])?[0].get(&[6, 0]), Some(Value::from(12.0f32)));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn dynamic<const N: usize>(self, sizes: [(&str, RangeInclusive<i64>); N]) -> Varying<'static> {
        let ranges = self.0.iter().zip(sizes);
        let ranges: Vec<(String, RangeInclusive<i64>, i64)> =
            ranges.map(|(extent, (name, range))| (name.to_string(), range, *extent)).collect();
        let whole = self.0.clone();
        varying(ranges, move |pipeline, sizes| {
            let extents = sizes.iter().chain(whole.iter().skip(sizes.len())).copied().collect();
            Size(extents).realisation(pipeline)
        })
    }

    fn of(&self, name: &str, dimensions: usize) -> Result<Region, SizesError> {
        match self.0.get(..dimensions) {
            Some(extents) => Ok(Region::of_extents(extents)),
            None => Err(SizesError::Dimensions {
                name: name.to_string(),
                expected: dimensions,
                given: self.0.len(),
            }),
        }
    }
}

impl Sizes for Size {
    fn realisation(&self, pipeline: &Pipeline) -> Result<Realisation, SizesError> {
        let mut request = Realisation::new(pipeline);
        for (id, input) in pipeline.inputs().iter() {
            request.inputs[id] = Some(self.of(&input.name, input.dimensions)?);
        }
        for (slot, id) in request.outputs.iter_mut().zip(pipeline.outputs()) {
            let func = &pipeline.funcs()[*id];
            *slot = Some(self.of(&func.name, func.dims.len())?);
        }
        Ok(request)
    }
}

/// Boxes that are functions of named sizes, which every run chooses anew. Each size has a name, a range, and the value that
/// kernels are scheduled for; `at` gives the boxes and the Params for any values of the sizes. See [`Size::dynamic`] for
/// pipelines with one size.
///
/// ```
/// use warploom::prelude::*;
///
/// let x = vars!(x);
/// let input = Input::f32("input", 1);
/// let sums = Pipeline::new("sums", [func("sums", x, input.at(x) + input.at(x + 1))])?;
/// let sizes = varying([("N", 2..=1000, 500)], |pipeline, sizes| {
///     let request = Realisation::new(pipeline).input("input", Region::of_extents(&[sizes[0]]));
///     Ok(request.output("sums", Region::of_extents(&[sizes[0] - 1])))
/// });
/// let device = Device::preset("h200")?;
/// let sums = sums.autoschedule(&device, sizes)?.compile_for(Backend::Simulator(device))?;
/// let samples = Buffer::from_vec(Region::of_extents(&[3]), vec![1.0f32, 2.0, 4.0])?;
/// let found = sums.run_at(&[&samples], &[Region::of_extents(&[2])])?;
/// assert_eq!(found[0].as_slice::<f32>(), Some([3.0, 6.0].as_slice()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn varying<'a, N: Into<String>>(
    sizes: impl IntoIterator<Item = (N, RangeInclusive<i64>, i64)>,
    at: impl Fn(&Pipeline, &[i64]) -> Result<Realisation, SizesError> + 'a,
) -> Varying<'a> {
    let mut typical = Vec::new();
    let ranges = sizes.into_iter().map(|(name, range, value)| {
        typical.push(value);
        SizeRange { name: name.into(), min: *range.start(), max: *range.end() }
    });
    Varying { ranges: ranges.collect(), typical, at: Box::new(at) }
}

/// Sizes that every run chooses anew; see [`varying`].
pub struct Varying<'a> {
    ranges: Vec<SizeRange>,
    typical: Vec<i64>,
    at: Box<BoxesAt<'a>>,
}

/// Gives the boxes and Params of a pipeline for some values of its sizes.
type BoxesAt<'a> = dyn Fn(&Pipeline, &[i64]) -> Result<Realisation, SizesError> + 'a;

impl Sizes for Varying<'_> {
    fn realisation(&self, pipeline: &Pipeline) -> Result<Realisation, SizesError> {
        (self.at)(pipeline, &self.typical)
    }

    fn dynamic(&self, pipeline: &Pipeline) -> Result<Option<DynamicRequest>, SizesError> {
        // Boxes that exist at the typical sizes exist at all sizes.
        let typical = self.realisation(pipeline)?;
        let at = |sizes: &[i64]| (self.at)(pipeline, sizes).unwrap_or_else(|_| typical.clone());
        Ok(Some(DynamicRequest::fit(pipeline, self.ranges.clone(), &self.typical, at)?))
    }
}

impl Sizes for Realisation {
    fn realisation(&self, _: &Pipeline) -> Result<Realisation, SizesError> {
        Ok(self.clone())
    }
}

/// Input buffers in the pipeline's order. Every output gets the box of the first input with the
/// same number of dimensions.
impl Sizes for [&Buffer] {
    fn realisation(&self, pipeline: &Pipeline) -> Result<Realisation, SizesError> {
        check_number(pipeline, self.len())?;
        let mut request = Realisation::new(pipeline);
        for (id, buffer) in pipeline.inputs().keys().zip(self) {
            request.inputs[id] = Some(buffer.region().clone());
        }
        for (slot, id) in request.outputs.iter_mut().zip(pipeline.outputs()) {
            let func = &pipeline.funcs()[*id];
            let dimensions = func.dims.len();
            let like = self.iter().map(|buffer| buffer.region()).find(|region| region.0.len() == dimensions);
            let missing = || SizesError::Output { output: func.name.clone(), dimensions };
            *slot = Some(like.ok_or_else(missing)?.clone());
        }
        Ok(request)
    }
}

/// Returns an error unless there is one buffer per input.
pub(crate) fn check_number(pipeline: &Pipeline, given: usize) -> Result<(), SizesError> {
    let expected = pipeline.inputs().len();
    match expected == given {
        true => Ok(()),
        false => Err(SizesError::Inputs { pipeline: pipeline.name().to_string(), expected, given }),
    }
}

impl<const N: usize> Sizes for [&Buffer; N] {
    fn realisation(&self, pipeline: &Pipeline) -> Result<Realisation, SizesError> {
        self.as_slice().realisation(pipeline)
    }
}

impl<T: Sizes + ?Sized> Sizes for &T {
    fn realisation(&self, pipeline: &Pipeline) -> Result<Realisation, SizesError> {
        (**self).realisation(pipeline)
    }

    fn dynamic(&self, pipeline: &Pipeline) -> Result<Option<DynamicRequest>, SizesError> {
        (**self).dynamic(pipeline)
    }
}

#[cfg(test)]
mod tests {
    use warploom_lang::{Input, func, vars};

    use super::*;

    fn weighted() -> Pipeline {
        let (x, y) = vars!(x, y);
        let (image, weights) = (Input::f32("image", 2), Input::f32("weights", 1));
        let product = image.at((x, y)) * weights.at(x);
        Pipeline::new("weighted", [func("product", (x, y), product)]).expect("it is right")
    }

    #[test]
    fn one_size_is_for_all() {
        let pipeline = weighted();
        let request = size([8, 6]).realisation(&pipeline).expect("it is enough");
        let inputs: Vec<String> = request.inputs.values().flatten().map(ToString::to_string).collect();
        assert_eq!(inputs, ["[0, 8) x [0, 6)", "[0, 8)"]);
        let refused = size([8]).realisation(&pipeline).expect_err("the image has two dimensions");
        assert_eq!(
            refused.to_string(),
            "`image` has 2 dimensions, but the size has 1; give one extent per dimension, or a Realisation"
        );
    }

    #[test]
    fn outputs_are_as_large_as_inputs() {
        let pipeline = weighted();
        let zeros = |extents: &[i64]| {
            Buffer::zeros(warploom_lang::Type::F32, Region::of_extents(extents)).expect("it is small")
        };
        let (image, weights) = (zeros(&[5, 4]), zeros(&[5]));
        let request = [&image, &weights].realisation(&pipeline).expect("it is enough");
        assert_eq!(request.outputs, [Some(Region::of_extents(&[5, 4]))]);
        assert!(matches!([&image].realisation(&pipeline), Err(SizesError::Inputs { given: 1, .. })));
        let refused = [&weights, &weights].realisation(&pipeline);
        assert!(matches!(refused, Err(SizesError::Output { dimensions: 2, .. })));
    }
}
