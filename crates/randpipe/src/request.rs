//! Turns a grown pipeline into one that can run: chooses boxes for outputs and inputs, and checks
//! them.

use thiserror::Error;
use warploom_lang::{
    BoundsError, FuncId, Pipeline, PipelineError, Range, Realisation, Region, Regions, Value, infer,
};

use crate::grow::{Grower, Grown};
use crate::image::{Body, Image};
use crate::{RandomPipeline, StageKind};

/// The largest box that bounds inference accepts, centred on the origin.
fn anywhere(dimensions: usize) -> Region {
    let half = 1 << (40 / dimensions.max(1)).min(30) >> 1;
    Region(vec![Range::new(-half, 2 * half); dimensions])
}

/// Why an attempt is discarded.
#[derive(Debug, Error)]
pub enum Refusal {
    /// The definitions are invalid. This is a bug in the generator, never bad luck.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// Bounds inference rejects the request.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    /// The pipeline visits too many points for this scale.
    #[error("the stages visit {0} points, more than the scale allows")]
    Work(u64),
    /// The pipeline needs too much memory for this scale.
    #[error("inputs and Funcs take {0} bytes, more than the scale allows")]
    Memory(u64),
}

/// The number of points that all stages visit when each Func is computed once over its region, as
/// the reference evaluator does.
pub fn visited_points(pipeline: &Pipeline, regions: &Regions) -> u64 {
    let mut total = 0u64;
    for (id, func) in pipeline.funcs().iter() {
        for (stage, loops) in func.stages.iter().zip(&regions.funcs[id].stages) {
            let pure = (0..func.dims.len()).filter(|d| stage.is_pure(pipeline.exprs(), *d));
            let pure = pure.map(|d| loops.needed[d].extent as u64);
            let reduced = loops.domain.iter().map(|range| range.extent as u64);
            total = total.saturating_add(pure.chain(reduced).fold(1, u64::saturating_mul));
        }
    }
    total
}

impl Grown {
    /// The pipeline with a request, if both are valid and within the scale.
    pub fn realise(self, name: &str) -> Result<RandomPipeline, Refusal> {
        let Grown { mut grower, outputs } = self;
        let funcs = outputs.iter().filter_map(|image| match &image.body {
            Body::Func(func) => Some(func.clone()),
            Body::Input(_) => None,
        });
        let pipeline = Pipeline::new(name, funcs)?;
        let boxes: Vec<Region> = outputs.iter().map(|image| grower.output_box(image)).collect();
        let mut request = grower.first_request(&pipeline, boxes);
        let regions = infer(&pipeline, &request)?;
        grower.size_inputs(&pipeline, &regions, &mut request);
        let regions = infer(&pipeline, &request)?;
        let work = visited_points(&pipeline, &regions);
        if work > grower.limits.work {
            return Err(Refusal::Work(work));
        }
        let bytes = stored_bytes(&pipeline, &request, &regions);
        if bytes > grower.limits.memory {
            return Err(Refusal::Memory(bytes));
        }
        let kinds = kinds(&pipeline, &grower.names);
        Ok(RandomPipeline { pipeline, request, kinds })
    }
}

impl Grower {
    /// The box requested of an output: its image, cropped to the scale's size and sometimes moved.
    fn output_box(&mut self, image: &Image) -> Region {
        let mut extents: Vec<i64> = image.extents.iter().map(|extent| extent.points).collect();
        while extents.iter().product::<i64>() > self.limits.output.1 {
            let excess = extents.iter().product::<i64>() as f64 / self.limits.output.1 as f64;
            let Some(longest) = extents.iter_mut().max() else { break };
            *longest = ((*longest as f64 / excess) as i64).max(*longest / 2).max(1);
        }
        // Occasionally a single point, if the scale allows small outputs.
        if self.limits.output.0 == 1 && self.dice.chance(0.03) {
            extents.fill(1);
        }
        let moved = image.total && self.dice.chance(0.3);
        let mut range = |extent: i64| match moved && self.dice.chance(0.6) {
            true => Range::new(self.dice.between(-9..=9), extent),
            false => Range::new(0, extent),
        };
        Region(extents.into_iter().map(&mut range).collect())
    }

    /// A complete request. Inputs without a size get the largest possible one.
    fn first_request(&self, pipeline: &Pipeline, outputs: Vec<Region>) -> Realisation {
        let mut request = Realisation::new(pipeline);
        request.outputs = outputs.into_iter().map(Some).collect();
        for (id, decl) in pipeline.inputs().iter() {
            let sized = self.inputs.iter().find(|sized| sized.input.name() == decl.name);
            let region = sized.and_then(|sized| sized.region.clone());
            request.inputs[id] = Some(region.unwrap_or_else(|| anywhere(decl.dimensions)));
        }
        for (id, decl) in pipeline.params().iter() {
            let given = self.params.iter().find(|(param, _)| param.name() == decl.name);
            request.params[id] = given.map(|(_, value): &(_, Value)| *value);
        }
        request
    }

    /// Sizes every input without a size to its reads, sometimes a little more.
    fn size_inputs(&mut self, pipeline: &Pipeline, regions: &Regions, request: &mut Realisation) {
        for (id, decl) in pipeline.inputs().iter() {
            let sized = self.inputs.iter().find(|sized| sized.input.name() == decl.name);
            if sized.is_some_and(|sized| sized.region.is_some()) {
                continue;
            }
            let slack = if self.dice.chance(0.3) { 3 } else { 0 };
            let mut wider = |range: &Range| {
                let (before, after) = (self.dice.between(0..=slack), self.dice.between(0..=slack));
                Range::new(range.min - before, range.extent.max(1) + before + after)
            };
            request.inputs[id] = Some(Region(regions.inputs[id].0.iter().map(&mut wider).collect()));
        }
    }
}

/// The total size of all inputs and of all Funcs over their regions, in bytes.
fn stored_bytes(pipeline: &Pipeline, request: &Realisation, regions: &Regions) -> u64 {
    let bytes = |region: &Region, each: usize| {
        region.points().and_then(|points| points.checked_mul(each as u64)).unwrap_or(u64::MAX)
    };
    let inputs = pipeline.inputs().iter().filter_map(|(id, decl)| {
        let region = request.inputs[id].as_ref()?;
        Some(bytes(region, decl.ty.bytes()))
    });
    let funcs = pipeline.funcs().iter();
    let funcs = funcs.map(|(id, func)| bytes(&regions.funcs[id].region, func.bytes_per_point()));
    inputs.chain(funcs).fold(0, u64::saturating_add)
}

/// The kind of every Func. Helpers, which have a dot in their names, have the kind of the stage
/// that made them.
fn kinds(pipeline: &Pipeline, names: &[(String, StageKind)]) -> Vec<(FuncId, StageKind)> {
    let kind = |name: &str| {
        let maker = name.split('.').next().unwrap_or(name);
        names.iter().find(|(known, _)| known == maker).map_or(StageKind::Source, |(_, kind)| *kind)
    };
    pipeline.funcs().iter().map(|(id, func)| (id, kind(&func.name))).collect()
}
