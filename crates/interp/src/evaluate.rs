//! The reference evaluator: computes every Func at root, directly from its definition.

use std::collections::BTreeMap;

use thiserror::Error;
use warploom_lang::ir::{FuncDecl, TableDecl};
use warploom_lang::rounding::Rounding;
use warploom_lang::{
    BoundsError, FuncId, IdVec, Pipeline, Realisation, Region, Regions, Type, Value, dispatch, infer,
};

use crate::buffer::{Buffer, BufferError};
use crate::machine::{SourceArray, Sources};
use crate::memory;
use crate::perturb::Noise;
use crate::program::Constants;
use crate::samples::{Layout, Samples};
use crate::stage::{StageRun, Storage};

/// Why a pipeline could not be evaluated.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EvalError {
    /// The sizes or parameters do not fit the pipeline.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    /// An input buffer has the wrong type.
    #[error("the input `{input}` is {expected} but a buffer of {got} was given; convert it first")]
    InputType {
        /// The name of the input.
        input: String,
        /// The declared type.
        expected: Type,
        /// The type of the buffer given.
        got: Type,
    },
    /// The evaluation would need more memory than is free.
    #[error("evaluating `{pipeline}` at these sizes needs {} of memory, most of it for `{largest}`, but only {} is free; use smaller sizes",
        memory::readable(*.needed), memory::readable(*.available))]
    Memory {
        /// The name of the pipeline.
        pipeline: String,
        /// The peak memory needed, in bytes.
        needed: u64,
        /// The free memory, in bytes.
        available: u64,
        /// The name of the Func with the largest box.
        largest: String,
    },
    /// A buffer could not be allocated.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// A Func was accessed outside its inferred box.
    #[error(
        "stage {stage} of `{func}` read or wrote outside the region inferred for it; this is a bug in Warploom, please report the pipeline"
    )]
    Outside {
        /// The name of the Func.
        func: String,
        /// The number of the stage.
        stage: usize,
    },
}

/// The progress of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The name of the Func that was just computed.
    pub func: &'a str,
    /// The work done so far, in visited points.
    pub done: u64,
    /// The total work, in the same unit.
    pub total: u64,
}

/// Called with the progress after every Func.
type Observer<'a> = Box<dyn FnMut(Progress<'_>) + 'a>;

/// Evaluates a pipeline without compiling it. Slow but exact.
///
/// ```
/// use warploom_interp::Evaluation;
/// use warploom_interp::buffer::Buffer;
/// use warploom_lang::*;
/// let x = vars!(x);
/// let input = Input::f32("input", 1);
/// let blur = func("blur", x, (input.at(x) + input.at(x + 1)) / 2.0);
/// let pipeline = Pipeline::new("blur", [blur])?;
///
/// let image = Buffer::from_vec(Region::of_extents(&[4]), vec![0.0f32, 2.0, 4.0, 8.0])?;
/// let out = Evaluation::new(&pipeline)
///     .input("input", &image)
///     .output("blur", Region::of_extents(&[3]))
///     .run()?;
/// assert_eq!(out[0].as_slice::<f32>(), Some(&[1.0, 3.0, 6.0][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Evaluation<'a> {
    pipeline: &'a Pipeline,
    request: Realisation,
    inputs: BTreeMap<&'a str, &'a Buffer>,
    observer: Option<Observer<'a>>,
    noise: Option<Noise>,
}

impl<'a> Evaluation<'a> {
    /// An evaluation without inputs, Params and requested boxes.
    pub fn new(pipeline: &'a Pipeline) -> Evaluation<'a> {
        let request = Realisation::new(pipeline);
        Evaluation { pipeline, request, inputs: BTreeMap::new(), observer: None, noise: None }
    }

    /// Sets an input. Its box is the buffer's region.
    #[must_use]
    pub fn input(mut self, name: &'a str, buffer: &'a Buffer) -> Evaluation<'a> {
        self.request = self.request.input(name, buffer.region().clone());
        self.inputs.insert(name, buffer);
        self
    }

    /// Sets the value of a Param.
    #[must_use]
    pub fn param(mut self, name: &str, value: impl Into<Value>) -> Evaluation<'a> {
        self.request = self.request.param(name, value);
        self
    }

    /// Requests a box of an output.
    #[must_use]
    pub fn output(mut self, name: &str, region: Region) -> Evaluation<'a> {
        self.request = self.request.output(name, region);
        self
    }

    /// Calls `observer` after every Func.
    #[must_use]
    pub fn on_progress(mut self, observer: impl FnMut(Progress<'_>) + 'a) -> Evaluation<'a> {
        self.observer = Some(Box::new(observer));
        self
    }

    /// Perturbs every operation that kernels built for speed may round differently
    /// ([`rounding`](warploom_lang::rounding)) by a pseudo-random amount within their error. The
    /// amount depends on the seed and the operands, and for fused products also on the place in the
    /// pipeline.
    #[must_use]
    pub fn perturbed(mut self, seed: u64) -> Evaluation<'a> {
        self.noise = Some(Noise::new(seed, Rounding::Timing));
        self
    }

    /// Like [`perturbed`](Evaluation::perturbed), and perturbs every step of a reduction of floats as if its terms
    /// were combined in another order.
    #[must_use]
    pub fn reordered(mut self, seed: u64) -> Evaluation<'a> {
        self.noise = Some(Noise::new(seed, Rounding::Reordered));
        self
    }

    /// Computes the outputs in the pipeline's order, with one buffer per value.
    pub fn run(self) -> Result<Vec<Buffer>, EvalError> {
        let pipeline = self.pipeline;
        let regions = infer(pipeline, &self.request)?;
        memory::check(pipeline, &regions)?;
        let buffers: Vec<&Buffer> =
            pipeline.inputs().values().map(|input| self.inputs[input.name.as_str()]).collect();
        for (input, buffer) in pipeline.inputs().values().zip(&buffers) {
            if input.ty != buffer.ty() {
                let (expected, got) = (input.ty, buffer.ty());
                return Err(EvalError::InputType { input: input.name.clone(), expected, got });
            }
        }
        let input_regions = buffers.iter().map(|buffer| buffer.region().clone()).collect();
        let params =
            self.request.params.values().map(|value| value.unwrap_or(Value::zero(Type::I32))).collect();
        let constants = Constants { inputs: &input_regions, params: &params, noise: self.noise };
        let mut funcs = Funcs::new(pipeline, &regions, self.observer)?;
        for id in pipeline.funcs().keys() {
            funcs.compute(id, &buffers, &constants)?;
        }
        let outputs = pipeline.outputs().iter().zip(&self.request.outputs);
        let outputs = outputs.map(|(&id, region)| funcs.output(id, region.as_ref()));
        Ok(outputs.collect::<Result<Vec<_>, _>>()?.concat())
    }
}

/// The computed Funcs. Each is kept until its last reader is done.
struct Funcs<'a> {
    pipeline: &'a Pipeline,
    regions: &'a Regions,
    /// The constant tables.
    tables: Vec<Buffer>,
    stored: IdVec<FuncId, Option<Storage>>,
    last_reader: IdVec<FuncId, FuncId>,
    observer: Option<Observer<'a>>,
    done: u64,
    total: u64,
}

impl<'a> Funcs<'a> {
    fn new(
        pipeline: &'a Pipeline,
        regions: &'a Regions,
        observer: Option<Observer<'a>>,
    ) -> Result<Funcs<'a>, BufferError> {
        let work = pipeline.funcs().keys().map(|id| func_work(pipeline, regions, id));
        let total = work.fold(0, u64::saturating_add);
        Ok(Funcs {
            pipeline,
            regions,
            tables: pipeline.tables().values().map(table_buffer).collect::<Result<_, _>>()?,
            stored: pipeline.funcs().values().map(|_| None).collect(),
            last_reader: memory::last_readers(pipeline),
            observer,
            done: 0,
            total,
        })
    }

    fn compute(
        &mut self,
        id: FuncId,
        inputs: &[&Buffer],
        constants: &Constants<'_>,
    ) -> Result<(), EvalError> {
        let func = &self.pipeline.funcs()[id];
        let regions = &self.regions.funcs[id];
        if !regions.needed || regions.region.is_empty() {
            return Ok(());
        }
        let mut storage = Storage::new(self.pipeline, func, &regions.region)?;
        let sources = self.sources(inputs);
        for (number, (stage, loops)) in func.stages.iter().zip(&regions.stages).enumerate() {
            let run = StageRun { pipeline: self.pipeline, id, stage, loops, constants, sources: &sources };
            let outcome = match number {
                0 if stage.values.is_empty() => Ok(()),
                0 => run.pure(&mut storage),
                _ if loops.is_idle() => Ok(()),
                _ => run.update(&mut storage),
            };
            outcome.map_err(|_| EvalError::Outside { func: func.name.clone(), stage: number })?;
        }
        drop(sources);
        self.stored[id] = Some(storage);
        let finished = self.last_reader.iter().filter(|(_, reader)| **reader == id).map(|(read, _)| read);
        for read in finished.collect::<Vec<_>>() {
            if read != id && !self.pipeline.outputs().contains(&read) {
                self.stored[read] = None;
            }
        }
        self.report(id);
        Ok(())
    }

    fn report(&mut self, id: FuncId) {
        self.done = self.done.saturating_add(func_work(self.pipeline, self.regions, id));
        if let Some(observer) = &mut self.observer {
            let func = &self.pipeline.funcs()[id].name;
            observer(Progress { func, done: self.done, total: self.total });
        }
    }

    fn sources<'b>(&'b self, inputs: &[&'b Buffer]) -> Sources<'b> {
        let source = |buffer: &'b Buffer| SourceArray {
            layout: Layout::new(buffer.region(), buffer.order()),
            values: vec![Samples::of(buffer.data())],
        };
        let funcs = self.stored.values().map(|stored| {
            stored.as_ref().map(|storage| SourceArray {
                layout: storage.layout.clone(),
                values: storage.values.iter().map(|buffer| Samples::of(buffer.data())).collect(),
            })
        });
        Sources {
            inputs: inputs.iter().map(|buffer| source(buffer)).collect(),
            tables: self.tables.iter().map(source).collect(),
            funcs: funcs.collect(),
        }
    }

    /// An output's values over the requested box, first index fastest.
    fn output(&mut self, id: FuncId, region: Option<&Region>) -> Result<Vec<Buffer>, EvalError> {
        let (Some(storage), Some(region)) = (self.stored[id].take(), region) else { return Ok(Vec::new()) };
        let natural = storage.order.is_sorted() && storage.region == *region;
        if natural {
            return Ok(storage.values);
        }
        Ok(storage.values.iter().map(|whole| whole.cropped(region)).collect::<Result<_, BufferError>>()?)
    }
}

/// The values of a constant table.
fn table_buffer(table: &TableDecl) -> Result<Buffer, BufferError> {
    dispatch!(table.ty, T => {
        let values: Vec<T> = table.values().iter().filter_map(|value| value.get::<T>()).collect();
        Buffer::from_vec(table.region(), values)
    })
}

/// The number of points that the stages of a Func visit.
fn func_work(pipeline: &Pipeline, regions: &Regions, id: FuncId) -> u64 {
    let func: &FuncDecl = &pipeline.funcs()[id];
    let stages = func.stages.iter().zip(&regions.funcs[id].stages);
    let visits = stages.map(|(stage, loops)| {
        let pure = (0..func.dims.len()).filter(|d| stage.is_pure(pipeline.exprs(), *d));
        let extents = pure.map(|d| loops.needed[d]).chain(loops.domain.iter().copied());
        extents.fold(1u64, |points, range| points.saturating_mul(range.extent as u64))
    });
    visits.fold(0, u64::saturating_add)
}
