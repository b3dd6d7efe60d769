//! Inputs and outputs in the caller's device memory.

use thiserror::Error;
use warploom_lang::{Pipeline, Realisation, Region, Scalar, Type};
use warploom_runtime::{DeviceBytes, DeviceBytesMut, Elements};

use crate::any_size::GivenStrides;
use crate::backend::RunError;
use crate::sizes::check_number;

/// An input in the caller's device memory, for [`Compiled::launch`](crate::Compiled::launch).
///
/// The samples of its box are contiguous unless it is [strided](DeviceInput::strided), in the order that the pipeline declares:
/// the first dimension varies fastest, unless [`Input::stored`](warploom_lang::Input::stored)
/// declares another order.
#[derive(Debug)]
pub struct DeviceInput<'a> {
    shape: Shape,
    memory: DeviceBytes<'a>,
}

/// One value of an output in the caller's device memory, for
/// [`Compiled::launch`](crate::Compiled::launch).
///
/// The samples of its box are contiguous, unless it is [strided](DeviceOutput::strided). The first dimension varies fastest,
/// unless [`Func::stored`](warploom_lang::Func::stored) declares another order.
#[derive(Debug)]
pub struct DeviceOutput<'a> {
    shape: Shape,
    memory: DeviceBytesMut<'a>,
}

/// The declared contents of device memory, and its size in bytes.
#[derive(Debug)]
pub(crate) struct Shape {
    ty: Type,
    region: Region,
    bytes: usize,
    /// The distances between neighbours, if the samples are not contiguous.
    strides: Option<Vec<i64>>,
}

impl<'a> DeviceInput<'a> {
    /// An input in memory managed by cudarc: `image.as_view()`, or a slice of it.
    pub fn new<V>(region: Region, memory: V) -> DeviceInput<'a>
    where
        V: Elements<Element: Scalar> + Into<DeviceBytes<'a>>,
    {
        DeviceInput::of_bytes(<V::Element as Scalar>::TYPE, region, memory.into())
    }

    /// An input in any device memory, such as [an address](DeviceBytes::at).
    pub fn of_bytes(ty: Type, region: Region, memory: DeviceBytes<'a>) -> DeviceInput<'a> {
        DeviceInput { shape: Shape { ty, region, bytes: memory.bytes(), strides: None }, memory }
    }

    /// The same memory with a pitch, as in a part of a larger picture: the distance between neighbours along each
    /// dimension, in elements. The memory begins at the first sample of the box. Along the dimension that varies
    /// fastest, the distance is 1.
    #[must_use]
    pub fn strided(mut self, strides: &[i64]) -> DeviceInput<'a> {
        self.shape.strides = Some(strides.to_vec());
        self
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(crate) fn memory(&self) -> &DeviceBytes<'a> {
        &self.memory
    }
}

impl<'a> DeviceOutput<'a> {
    /// An output in memory managed by cudarc: `image.as_view_mut()`, or a slice of it. An output of
    /// `bool` is written to bytes: `DeviceOutput::of_bytes(Type::Bool, region, bytes.as_view_mut().into())`.
    pub fn new<V>(region: Region, memory: V) -> DeviceOutput<'a>
    where
        V: Elements<Element: Scalar> + Into<DeviceBytesMut<'a>>,
    {
        DeviceOutput::of_bytes(<V::Element as Scalar>::TYPE, region, memory.into())
    }

    /// An output in any device memory, such as [an address](DeviceBytesMut::at).
    pub fn of_bytes(ty: Type, region: Region, memory: DeviceBytesMut<'a>) -> DeviceOutput<'a> {
        DeviceOutput { shape: Shape { ty, region, bytes: memory.bytes(), strides: None }, memory }
    }

    /// The same memory with a pitch; see [`DeviceInput::strided`]. Memory between the rows is not written.
    #[must_use]
    pub fn strided(mut self, strides: &[i64]) -> DeviceOutput<'a> {
        self.shape.strides = Some(strides.to_vec());
        self
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(crate) fn memory(&mut self) -> &mut DeviceBytesMut<'a> {
        &mut self.memory
    }
}

/// Why device memory cannot be used for the inputs and outputs of a pipeline.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum DeviceMemoryError {
    /// The pipeline was compiled for a backend without device memory.
    #[error("`{pipeline}` was not compiled for a GPU, so it cannot use device memory; use Backend::Gpu")]
    NoGpu {
        /// The name of the pipeline.
        pipeline: String,
    },
    /// The number of memory blocks differs from the number of output values.
    #[error(
        "the outputs of `{pipeline}` have {expected} values, but memory for {given} was given; give one for each"
    )]
    Outputs {
        /// The name of the pipeline.
        pipeline: String,
        /// The number of values of all its outputs together.
        expected: usize,
        /// The number of memory blocks given.
        given: usize,
    },
    /// The memory is declared with another element type.
    #[error("{what} is {expected}, but the device memory holds {given}")]
    Type {
        /// The input or output, as the message names it.
        what: String,
        /// The element type in the pipeline.
        expected: Type,
        /// The element type of the memory.
        given: Type,
    },
    /// The memory has another size than the box needs.
    #[error(
        "{what} over {region} takes {expected} bytes, but the device memory has {given}; give exactly that many"
    )]
    Bytes {
        /// The input or output, as the message names it.
        what: String,
        /// The box given with the memory.
        region: Region,
        /// The number of bytes that the box needs.
        expected: u64,
        /// The number of bytes of the memory.
        given: u64,
    },
    /// The values of one output are given over different boxes.
    #[error(
        "the values of the output `{output}` are given over {first} and over {second}; they must have the same box"
    )]
    Boxes {
        /// The name of the output.
        output: String,
        /// The box of its first value.
        first: Region,
        /// The first box that differs from it.
        second: Region,
    },
    /// The stream is being captured and there are no kernels for these sizes yet.
    #[error(
        "there are no kernels of `{pipeline}` for these sizes yet, and none can be loaded while the stream is being \
         captured; launch it once before the capture"
    )]
    Capturing {
        /// The name of the pipeline.
        pipeline: String,
    },
}

impl Shape {
    /// Returns an error unless the memory holds exactly the samples of the box, in the expected
    /// type.
    fn check(&self, what: String, expected: Type) -> Result<(), DeviceMemoryError> {
        if self.ty != expected {
            return Err(DeviceMemoryError::Type { what, expected, given: self.ty });
        }
        let bytes = self.elements().and_then(|elements| elements.checked_mul(expected.bytes() as u64));
        let (expected, given) = (bytes.unwrap_or(u64::MAX), self.bytes as u64);
        // A part of a larger picture may be followed by the rest of it.
        let fits = if self.strides.is_some() { expected <= given } else { expected == given };
        if !fits {
            return Err(DeviceMemoryError::Bytes { what, region: self.region.clone(), expected, given });
        }
        Ok(())
    }

    /// The number of elements from the first sample to the last one.
    fn elements(&self) -> Option<u64> {
        let Some(strides) = &self.strides else { return self.region.points() };
        let along = self.region.0.iter().zip(strides);
        along.into_iter().try_fold(1, |sum: u64, (range, stride)| {
            sum.checked_add(u64::try_from((range.extent - 1).checked_mul(*stride)?).ok()?)
        })
    }
}

/// The strides of inputs and outputs; empty if all are dense.
pub(crate) fn given_strides<'s>(shapes: impl Iterator<Item = &'s Shape>) -> GivenStrides {
    let strides: GivenStrides = shapes.map(|shape| shape.strides.clone()).collect();
    if strides.iter().all(Option::is_none) { Vec::new() } else { strides }
}

/// Checks the memory of every input and records the boxes in the realisation.
pub(crate) fn take_inputs(
    pipeline: &Pipeline,
    inputs: &[&Shape],
    request: &mut Realisation,
) -> Result<(), RunError> {
    check_number(pipeline, inputs.len())?;
    for ((id, decl), input) in pipeline.inputs().iter().zip(inputs) {
        input.check(format!("the input `{}`", decl.name), decl.ty)?;
        request.inputs[id] = Some(input.region.clone());
    }
    Ok(())
}

/// Checks the memory of every value of every output and records the boxes in the realisation.
pub(crate) fn take_outputs(
    pipeline: &Pipeline,
    outputs: &[&Shape],
    request: &mut Realisation,
) -> Result<(), DeviceMemoryError> {
    let values = values(pipeline);
    let (expected, given) = (values.len(), outputs.len());
    if expected != given {
        return Err(DeviceMemoryError::Outputs { pipeline: pipeline.name().to_string(), expected, given });
    }
    for ((output, value), shape) in values.into_iter().zip(outputs) {
        let func = &pipeline.funcs()[pipeline.outputs()[output]];
        let what = match func.types.len() {
            1 => format!("the output `{}`", func.name),
            _ => format!("value {value} of the output `{}`", func.name),
        };
        shape.check(what, func.types[value])?;
        match &request.outputs[output] {
            Some(first) if value > 0 && *first != shape.region => {
                let (output, first, second) = (func.name.clone(), first.clone(), shape.region.clone());
                return Err(DeviceMemoryError::Boxes { output, first, second });
            }
            _ => request.outputs[output] = Some(shape.region.clone()),
        }
    }
    Ok(())
}

/// The indices of output and value for all values of all outputs, in the order they are returned.
pub(crate) fn values(pipeline: &Pipeline) -> Vec<(usize, usize)> {
    let of = |(output, &id)| (0..pipeline.funcs()[id].types.len()).map(move |value| (output, value));
    pipeline.outputs().iter().enumerate().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use warploom_lang::{Input, func, vars};

    use super::*;

    fn shape(ty: Type, extents: &[i64], bytes: usize) -> Shape {
        Shape { ty, region: Region::of_extents(extents), bytes, strides: None }
    }

    fn split() -> Pipeline {
        let (x, y) = vars!(x, y);
        let image = Input::u8("image", 2);
        let both = func("both", (x, y), (image.at((x, y)), x + y));
        Pipeline::new("split", [both]).expect("it is right")
    }

    fn sentence<E: ToString>(refused: Result<(), E>) -> String {
        refused.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn inputs_must_fit() {
        let pipeline = split();
        let mut request = Realisation::new(&pipeline);
        let mut take = |inputs: &[&Shape]| take_inputs(&pipeline, inputs, &mut request);
        take(&[&shape(Type::U8, &[5, 3], 15)]).expect("it fits");
        assert_eq!(
            sentence(take(&[&shape(Type::F32, &[5, 3], 60)])),
            "the input `image` is u8, but the device memory holds f32"
        );
        assert_eq!(
            sentence(take(&[&shape(Type::U8, &[5, 3], 16)])),
            "the input `image` over [0, 5) x [0, 3) takes 15 bytes, but the device memory has 16; give exactly that many"
        );
        assert!(sentence(take(&[])).contains("has 1 inputs, but 0 buffers were given"));
        assert_eq!(request.inputs.values().flatten().count(), 1);
        let vast = shape(Type::U8, &[i64::MAX, i64::MAX], 0);
        assert!(
            sentence(take_inputs(&pipeline, &[&vast], &mut request)).contains("but the device memory has 0")
        );
    }

    #[test]
    fn every_value_of_an_output_has_memory() {
        let pipeline = split();
        let mut request = Realisation::new(&pipeline);
        let mut take = |outputs: &[&Shape]| take_outputs(&pipeline, outputs, &mut request);
        let bytes = shape(Type::U8, &[4, 2], 8);
        take(&[&bytes, &shape(Type::I32, &[4, 2], 32)]).expect("they fit");
        assert_eq!(
            sentence(take(&[&bytes])),
            "the outputs of `split` have 2 values, but memory for 1 was given; give one for each"
        );
        assert_eq!(
            sentence(take(&[&bytes, &bytes])),
            "value 1 of the output `both` is i32, but the device memory holds u8"
        );
        assert_eq!(
            sentence(take(&[&bytes, &shape(Type::I32, &[2, 4], 32)])),
            "the values of the output `both` are given over [0, 4) x [0, 2) and over [0, 2) x [0, 4); they must have the same box"
        );
    }
}
