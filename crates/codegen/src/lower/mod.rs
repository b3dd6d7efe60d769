//! Lowering: one file a pass, in the order they run.
//!
//! | pass | what it does |
//! | --- | --- |
//! | `place` | finds where every Func lives: inlined, in a buffer, in a block, in a thread |
//! | `boxes` | the box of every Func at its place: lower bounds as expressions, constant extents |
//! | `kernel` | grid, blocks and arrays of one kernel, its nests in order |
//! | `nest` | the thread and serial loops of one stage, with guards where they are needed |
//! | `value` | the expressions of a stage at one point, inlined Funcs written out |
//! | `barriers` | barriers between nests that need them, and no others |
//!
//! Expressions are simplified as they are made ([`builder`](crate::builder)).

mod barriers;
mod boxes;
mod kernel;
mod nest;
mod place;
mod value;

use thiserror::Error;
use warploom_lang::{
    BoundsError, FuncId, IdVec, InputId, ParamId, Pipeline, Realisation, Region, Regions, Type, Value, infer,
};
use warploom_schedule::schedule::{Kernel, RootItem, Schedule};
use warploom_target::Device;

use crate::ir::{BufferDecl, BufferId, Launch, Program, Role};
use crate::lower::kernel::KernelLowering;
use crate::lower::place::Places;

/// Why a schedule could not be lowered.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum LowerError {
    /// The sizes or parameters don't fit the pipeline.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    /// A decision that is not lowered yet.
    #[error("{what} cannot be lowered yet; use block, flat, thread, register and inline decisions")]
    Unsupported {
        /// The decision.
        what: String,
    },
    /// A Func that is read where it has not been computed.
    #[error(
        "`{func}` is needed by `{consumer}` but the schedule computes it nowhere that `{consumer}` can read; place it before `{consumer}` or inline it"
    )]
    Unplaced {
        /// The Func.
        func: String,
        /// The stage that reads it.
        consumer: String,
    },
    /// A Func in a block or thread that has no constant extent there.
    #[error(
        "`{func}` needs {elements} elements at its place in the kernel of `{kernel}`, more than the {limit} that fit; make the tile smaller, or compute it at root"
    )]
    TooLarge {
        /// The Func.
        func: String,
        /// The kernel's stage.
        kernel: String,
        /// Elements needed.
        elements: u64,
        /// Elements that fit.
        limit: u64,
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
    pub buffers: IdVec<BufferId, BufferDecl>,
    pub func_buffers: IdVec<FuncId, Vec<BufferId>>,
    pub input_buffers: IdVec<InputId, BufferId>,
    pub device: &'a Device,
}

/// Lowers a pipeline under a schedule at the sizes and specialised Params of a realisation.
pub fn lower(
    pipeline: &Pipeline,
    schedule: &Schedule,
    request: &Realisation,
    device: &Device,
) -> Result<Program, LowerError> {
    let context = Context::new(pipeline, schedule, request, device)?;
    let mut kernels = IdVec::new();
    let mut launches = Vec::new();
    for item in &schedule.root {
        match item {
            RootItem::Kernel(kernel) => {
                let lowered = lower_kernel(&context, kernel)?;
                launches.push(Launch::Kernel(kernels.push(lowered)));
            }
            RootItem::Around(_) => {
                return Err(LowerError::Unsupported { what: "a loop around kernels".into() });
            }
        }
    }
    let params = pipeline.params().iter().map(|(id, param)| (id, param.ty)).collect();
    Ok(Program { name: pipeline.name().to_string(), buffers: context.buffers, params, kernels, launches })
}

fn lower_kernel(context: &Context<'_>, kernel: &Kernel) -> Result<crate::ir::Kernel, LowerError> {
    KernelLowering::new(context, kernel)?.lower()
}

impl<'a> Context<'a> {
    fn new(
        pipeline: &'a Pipeline,
        schedule: &Schedule,
        request: &Realisation,
        device: &'a Device,
    ) -> Result<Context<'a>, LowerError> {
        let regions = infer(pipeline, request)?;
        let places = Places::new(pipeline, schedule);
        let inputs: IdVec<InputId, Region> =
            request.inputs.values().map(|region| region.clone().unwrap_or_default()).collect();
        let specialised = pipeline.specialised_params();
        let fixed = request.params.iter().map(|(id, value)| value.filter(|_| specialised[id])).collect();
        let scalars = pipeline.params().keys().enumerate().map(|(position, _)| position as u32).collect();
        let mut context = Context {
            pipeline,
            regions,
            inputs,
            fixed,
            scalars,
            places,
            buffers: IdVec::new(),
            func_buffers: pipeline.funcs().values().map(|_| Vec::new()).collect(),
            input_buffers: IdVec::new(),
            device,
        };
        context.declare_buffers(request)?;
        Ok(context)
    }

    fn declare_buffers(&mut self, request: &Realisation) -> Result<(), LowerError> {
        for (id, input) in self.pipeline.inputs().iter() {
            let region = self.inputs[id].clone();
            let strides = dense_strides(&region, &input.storage_order);
            let role = Role::Input(id);
            let buffer = BufferDecl { name: input.name.clone(), ty: input.ty, region, strides, role };
            let buffer = self.buffers.push(buffer);
            self.input_buffers.push(buffer);
        }
        for (id, func) in self.pipeline.funcs().iter() {
            if !self.places.is_root(id) {
                continue;
            }
            let region = self.regions.funcs[id].region.clone();
            let output = self.pipeline.outputs().iter().position(|output| *output == id);
            if let Some(output) = output
                && request.outputs[output].as_ref() != Some(&region)
            {
                let what = format!("the output `{}`, of which more is computed than asked for,", func.name);
                return Err(LowerError::Unsupported { what });
            }
            for (value, &ty) in func.types.iter().enumerate() {
                self.declare_func(id, value, ty, output, &region);
            }
        }
        Ok(())
    }

    fn declare_func(&mut self, id: FuncId, value: usize, ty: Type, output: Option<usize>, region: &Region) {
        let func = &self.pipeline.funcs()[id];
        let order: Vec<usize> = (0..region.dimensions()).collect();
        let single = func.types.len() == 1;
        let buffer = BufferDecl {
            name: if single { func.name.clone() } else { format!("{}.{value}", func.name) },
            ty,
            region: region.clone(),
            strides: dense_strides(region, &order),
            role: output.map_or(Role::Temporary, |output| Role::Output { output, value }),
        };
        let buffer = self.buffers.push(buffer);
        self.func_buffers[id].push(buffer);
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
