//! Lowering: one file a pass, in the order they run.
//!
//! | pass | what it does |
//! | --- | --- |
//! | `place` | finds where every Func lives: inlined, in a buffer, in a block, in a thread |
//! | `versions` | a version of a block without guards and clamps, away from the edges |
//! | `kernel` | the grid of one kernel, its nests and loops in order |
//! | `arrays` | what lives in a kernel's blocks and threads, and how accesses find it |
//! | `layout` | how the elements of an array lie: indices of 32 bits, or of 64 where those cannot count them |
//! | `boxes` | the boxes of footprints: lower bounds as expressions |
//! | `nest` | the thread and serial loops of one stage, with guards where they are needed |
//! | `nesting` | loops, lets and guards in the order they stand in each other |
//! | `accumulate` | registers for points that a stage adds to again and again |
//! | `stage` | one point of a stage: what is stored |
//! | `value` | the expressions of a stage at one point, inlined Funcs written out |
//! | `copy` | copies of outputs of which more is computed than was asked for |
//!
//! Expressions are simplified as they are made ([`builder`](crate::builder)). Passes that take time are spans of `tracing`;
//! `warploom -v` shows a table of them.

#![deny(clippy::cast_possible_truncation)]

mod accumulate;
mod arrays;
mod boxes;
mod copy;
mod kernel;
mod layout;
mod nest;
mod nesting;
mod place;
mod stage;
mod value;
mod versions;

use thiserror::Error;
use tracing::debug_span;
use warploom_lang::{
    BoundsError, FuncId, IdVec, InputId, ParamId, Pipeline, Realisation, Region, Regions, Value, infer,
};
use warploom_schedule::schedule::{Footprints, Path, RootItem, Schedule, StageRef};
use warploom_target::Device;

use crate::ir::{BufferDecl, BufferId, Kernel, KernelId, Launch, NARROW_ELEMENTS, Program, Role};
use crate::lower::copy::Copy;
use crate::lower::kernel::KernelLowering;
use crate::lower::place::Places;

/// Why a schedule could not be lowered.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum LowerError {
    /// The sizes or parameters don't fit the pipeline.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    /// A Func that is read where it has not been computed.
    #[error(
        "`{func}` is read in the kernel of `{kernel}`, which the schedule computes nowhere it can be read from; place it before its readers or inline it"
    )]
    Unplaced {
        /// The Func.
        func: String,
        /// The kernel's stage.
        kernel: String,
    },
    /// A kernel that would be too long.
    #[error(
        "the kernel of `{kernel}` would have more than {limit} different expressions; inline fewer Funcs into it"
    )]
    TooLong {
        /// The kernel's stage.
        kernel: String,
        /// The most there may be.
        limit: usize,
    },
    /// A kernel that needs more than the device has.
    #[error("the kernel of `{kernel}` needs {needed} {what}, the device has {limit}; use smaller tiles")]
    Limit {
        /// The kernel's stage.
        kernel: String,
        /// What is short.
        what: &'static str,
        /// What is needed.
        needed: u64,
        /// What there is.
        limit: u64,
    },
    /// A kernel with a coordinate, a count or a flat index beyond 32 bits.
    #[error(
        "the kernel of `{kernel}` would have to count up to {number}, and indices have 32 bits; use smaller sizes or tiles, or threads instead of a flat loop"
    )]
    Index {
        /// The kernel's stage.
        kernel: String,
        /// The number.
        number: i64,
    },
}

/// How to lower.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Arrays with more elements than this have indices of 64 bits. Never more than [`NARROW_ELEMENTS`]; with
    /// less, tests see such indices on small arrays.
    pub narrow_elements: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { narrow_elements: NARROW_ELEMENTS }
    }
}

/// Everything the passes read.
pub(crate) struct Context<'a> {
    pub pipeline: &'a Pipeline,
    pub regions: Regions,
    pub inputs: IdVec<InputId, Region>,
    /// Values of specialised Params; the others are read when the kernel runs.
    pub fixed: IdVec<ParamId, Option<Value>>,
    /// Position of each Param among the program's scalars.
    pub scalars: IdVec<ParamId, u32>,
    pub places: Places,
    pub footprints: Footprints,
    pub buffers: IdVec<BufferId, BufferDecl>,
    pub func_buffers: IdVec<FuncId, Vec<BufferId>>,
    pub input_buffers: IdVec<InputId, BufferId>,
    /// What remains to be done when all kernels have run.
    pub copies: Vec<Copy>,
    pub device: &'a Device,
    /// The most elements of an array whose indices have 32 bits.
    pub narrow_elements: i64,
}

/// Lowers a pipeline under a schedule at the sizes and specialised Params of a realisation.
pub fn lower(
    pipeline: &Pipeline,
    schedule: &Schedule,
    request: &Realisation,
    device: &Device,
) -> Result<Program, LowerError> {
    lower_with(pipeline, schedule, request, device, Options::default())
}

/// The same with options.
///
/// # Errors
///
/// As [`lower`].
pub fn lower_with(
    pipeline: &Pipeline,
    schedule: &Schedule,
    request: &Realisation,
    device: &Device,
    options: Options,
) -> Result<Program, LowerError> {
    let _pass = debug_span!("lower").entered();
    let context = Context::new(pipeline, schedule, request, device, options)?;
    let mut kernels = IdVec::new();
    let mut launches = Vec::new();
    for (i, item) in schedule.root.iter().enumerate() {
        launches.extend(lower_item(&context, item, Path::ROOT.child(i), &[], &mut kernels)?);
    }
    for copy in &context.copies {
        launches.push(Launch::Kernel(kernels.push(copy.kernel(&context)?)));
    }
    let params = pipeline.params().iter().map(|(id, param)| (id, param.ty)).collect();
    Ok(Program { name: pipeline.name().to_string(), buffers: context.buffers, params, kernels, launches })
}

/// The launches of an item at root, inside some loops.
fn lower_item(
    context: &Context<'_>,
    item: &RootItem,
    path: Path,
    outer: &[CountedLoop],
    kernels: &mut IdVec<KernelId, Kernel>,
) -> Result<Vec<Launch>, LowerError> {
    match item {
        RootItem::Kernel(kernel) if context.is_idle(kernel.stage) => Ok(Vec::new()),
        RootItem::Kernel(kernel) => {
            let lowered = KernelLowering::new(context, kernel, path, outer)?.lower()?;
            Ok(vec![Launch::Kernel(kernels.push(lowered))])
        }
        RootItem::Around(around) => {
            let own = context.loops_at(&path);
            let inner: Vec<CountedLoop> = outer.iter().copied().chain(own.iter().copied()).collect();
            let mut body = Vec::new();
            for (i, item) in around.body.iter().enumerate() {
                body.extend(lower_item(context, item, path.child(i), &inner, kernels)?);
            }
            if body.is_empty() {
                return Ok(body);
            }
            for CountedLoop { count, .. } in own.iter().rev().filter(|own| own.count != 1) {
                // The kernels inside have taken the loop's last iteration for an index.
                let count = u32::try_from(*count).unwrap_or(u32::MAX);
                body = vec![Launch::Loop { count, body }];
            }
            Ok(body)
        }
    }
}

/// A loop around kernels or over a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountedLoop {
    /// Its number among the schedule's loops.
    pub number: usize,
    /// How often it runs.
    pub count: i64,
}

impl<'a> Context<'a> {
    fn new(
        pipeline: &'a Pipeline,
        schedule: &Schedule,
        request: &Realisation,
        device: &'a Device,
        options: Options,
    ) -> Result<Context<'a>, LowerError> {
        let regions = debug_span!("regions").in_scope(|| infer(pipeline, request))?;
        let places = Places::new(pipeline, schedule);
        let footprints = debug_span!("footprints").in_scope(|| Footprints::new(schedule, pipeline, &regions));
        let inputs: IdVec<InputId, Region> =
            request.inputs.values().map(|region| region.clone().unwrap_or_default()).collect();
        let specialised = pipeline.specialised_params();
        let fixed = request.params.iter().map(|(id, value)| value.filter(|_| specialised[id])).collect();
        let scalars = pipeline.params().keys().zip(0..).map(|(_, position)| position).collect();
        let mut context = Context {
            pipeline,
            regions,
            inputs,
            fixed,
            scalars,
            places,
            footprints,
            buffers: IdVec::new(),
            func_buffers: pipeline.funcs().values().map(|_| Vec::new()).collect(),
            input_buffers: IdVec::new(),
            copies: Vec::new(),
            device,
            narrow_elements: options.narrow_elements.clamp(1, NARROW_ELEMENTS).into(),
        };
        context.declare_buffers(request);
        Ok(context)
    }

    fn declare_buffers(&mut self, request: &Realisation) {
        for (id, input) in self.pipeline.inputs().iter() {
            let region = self.inputs[id].clone();
            let strides = dense_strides(&region, &input.storage_order);
            let role = Role::Input(id);
            let buffer = BufferDecl { name: input.name.clone(), ty: input.ty, region, strides, role };
            let buffer = self.buffers.push(buffer);
            self.input_buffers.push(buffer);
        }
        for (id, func) in self.pipeline.funcs().iter() {
            if !self.places.is_root(id) || !self.regions.funcs[id].needed {
                continue;
            }
            let output = self.pipeline.outputs().iter().position(|output| *output == id);
            let asked = output.and_then(|output| request.outputs[output].clone());
            for value in 0..func.types.len() {
                let role = output.map_or(Role::Temporary, |output| Role::Output { output, value });
                self.declare_func(id, value, role, asked.as_ref());
            }
        }
    }

    /// Whether a stage computes nothing at these sizes, or nothing at all.
    pub fn is_idle(&self, stage: StageRef) -> bool {
        self.regions.is_idle(self.pipeline, stage.func, stage.stage)
    }

    /// The loops that stand at a place of the schedule, the outermost first.
    pub fn loops_at(&self, path: &Path) -> Vec<CountedLoop> {
        let loops = self.footprints.loops.iter().enumerate();
        let here = loops.filter(|(_, info)| info.path == *path);
        here.map(|(number, info)| CountedLoop { number, count: info.count }).collect()
    }

    /// Makes the buffer of a Func's value, and a second one for an output of which only a part was asked for.
    fn declare_func(&mut self, id: FuncId, value: usize, role: Role, asked: Option<&Region>) {
        let region = self.regions.funcs[id].region.clone();
        let Some(part) = asked.filter(|asked| **asked != region) else {
            let buffer = self.buffers.push(self.func_buffer(id, value, role, region));
            self.func_buffers[id].push(buffer);
            return;
        };
        let from = self.buffers.push(self.func_buffer(id, value, Role::Temporary, region));
        let to = self.buffers.push(self.func_buffer(id, value, role, part.clone()));
        self.func_buffers[id].push(from);
        self.copies.push(Copy { from, to });
    }

    fn func_buffer(&self, id: FuncId, value: usize, role: Role, region: Region) -> BufferDecl {
        let func = &self.pipeline.funcs()[id];
        let order: Vec<usize> = (0..region.dimensions()).collect();
        let name = match func.types.len() {
            1 => func.name.clone(),
            _ => format!("{}.{value}", func.name),
        };
        BufferDecl { name, ty: func.types[value], strides: dense_strides(&region, &order), region, role }
    }
}

/// Elements between neighbours of a dense array whose dimensions grow in stride in the order given.
pub(crate) fn dense_strides(region: &Region, order: &[usize]) -> Vec<i64> {
    let mut strides = vec![0; region.dimensions()];
    let mut stride = 1;
    for &d in order {
        strides[d] = stride;
        stride *= region[d].extent;
    }
    strides
}
