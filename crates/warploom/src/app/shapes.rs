//! The boxes of inputs and outputs.

use warploom_lang::{Pipeline, Realisation, Region};

/// The boxes of a pipeline's inputs and outputs, by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Shapes {
    /// One box per input.
    pub inputs: Vec<(String, Region)>,
    /// One box per output.
    pub outputs: Vec<(String, Region)>,
}

impl Shapes {
    /// Boxes of named inputs and outputs.
    pub fn new<'a>(
        inputs: impl IntoIterator<Item = (&'a str, Region)>,
        outputs: impl IntoIterator<Item = (&'a str, Region)>,
    ) -> Shapes {
        let owned = |(name, region): (&str, Region)| (name.to_owned(), region);
        Shapes {
            inputs: inputs.into_iter().map(owned).collect(),
            outputs: outputs.into_iter().map(owned).collect(),
        }
    }

    /// One size for all; inputs and outputs with fewer dimensions use the first extents, those with more have 1.
    pub(super) fn of_sizes(pipeline: &Pipeline, sizes: &[i64]) -> Shapes {
        let region = |dimensions: usize| {
            let extents: Vec<i64> = (0..dimensions).map(|d| sizes.get(d).copied().unwrap_or(1)).collect();
            Region::of_extents(&extents)
        };
        let outputs = pipeline.outputs().iter().map(|id| &pipeline.funcs()[*id]);
        Shapes::new(
            pipeline.inputs().values().map(|input| (input.name.as_str(), region(input.dimensions))),
            outputs.map(|func| (func.name.as_str(), region(func.dims.len()))),
        )
    }

    /// The boxes of a request.
    pub fn of_request(pipeline: &Pipeline, request: &Realisation) -> Shapes {
        let inputs = pipeline.inputs().values().zip(request.inputs.values());
        let outputs = pipeline.outputs().iter().map(|id| &pipeline.funcs()[*id]).zip(&request.outputs);
        Shapes::new(
            inputs.filter_map(|(input, region)| Some((input.name.as_str(), region.clone()?))),
            outputs.filter_map(|(func, region)| Some((func.name.as_str(), region.clone()?))),
        )
    }

    /// The box of an input.
    pub fn input(&self, name: &str) -> Option<&Region> {
        self.inputs.iter().find(|(known, _)| known == name).map(|(_, region)| region)
    }

    /// The box of an output.
    pub fn output(&self, name: &str) -> Option<&Region> {
        self.outputs.iter().find(|(known, _)| known == name).map(|(_, region)| region)
    }

    /// The realisation of a pipeline with these boxes. It has no values for Params yet.
    ///
    /// # Panics
    /// If the pipeline has no input or output with one of these names.
    pub fn realisation(&self, pipeline: &Pipeline) -> Realisation {
        let mut request = Realisation::new(pipeline);
        for (name, region) in &self.inputs {
            request = request.input(name, region.clone());
        }
        for (name, region) in &self.outputs {
            request = request.output(name, region.clone());
        }
        request
    }
}
