//! Lowers schedules to kernel IR. Each pass has one file; the table lists them in the order they
//! run.
//!
//! | pass | what it does |
//! | --- | --- |
//! | `place` | finds where every Func lives: inlined, in a buffer, in a block, in a thread |
//! | `versions` | makes a version of the block without guards and clamps, for blocks away from the edges |
//! | `kernel` | lowers one kernel: its grid, then its nests and loops in order |
//! | `arrays` | allocates the arrays of blocks and threads, and finds them for accesses |
//! | `layout` | computes element indices: 32 bits, or 64 bits for arrays that need them |
//! | `boxes` | turns footprints into boxes: lower bounds as expressions |
//! | `nest` | emits the thread and serial loops of one stage, with guards where needed |
//! | `nesting` | nests loops, lets and guards around statements |
//! | `accumulate` | keeps points that a stage updates repeatedly in registers |
//! | `stage` | emits the stores of one point of a stage |
//! | `value` | lowers the expressions of a stage at one point and inlines Funcs |
//! | `copy` | copies the requested part of outputs that are computed on a larger region |
//!
//! The [`builder`](crate::builder) simplifies expressions as they are built. Passes that take time
//! are `tracing` spans; `warploom -v` shows a table of them.

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
use warploom_lang::{FuncId, IdVec, InputId, ParamId, Pipeline, Realisation, Region, Value};
use warploom_schedule as schedule;
use warploom_schedule::schedule::{Body, Plan, Problem, Stepped, strides};

use crate::ir::{BufferDecl, BufferId, Kernel, KernelId, Launch, NARROW_ELEMENTS, Program, Role};
use crate::lower::copy::Copy;
use crate::lower::kernel::KernelLowering;
use crate::lower::place::Places;

/// Why a schedule could not be lowered.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum LowerError {
    /// A kernel reads a Func where it has not been computed.
    #[error(
        "`{func}` is read in the kernel of `{kernel}`, but the schedule computes it where it cannot be read; place it before its readers or inline it"
    )]
    Unplaced {
        /// Name of the Func that is read.
        func: String,
        /// Name of the stage that the kernel computes.
        kernel: String,
    },
    /// A kernel would have too many expressions.
    #[error(
        "the kernel of `{kernel}` would have more than {limit} different expressions; inline fewer Funcs into it"
    )]
    TooLong {
        /// Name of the stage that the kernel computes.
        kernel: String,
        /// The largest number of expressions allowed.
        limit: usize,
    },
    /// A kernel exceeds a limit of the device.
    #[error("the kernel of `{kernel}` needs {needed} {what}, the device has {limit}; use smaller tiles")]
    Limit {
        /// Name of the stage that the kernel computes.
        kernel: String,
        /// The resource that is exceeded, in the plural, as the message shows it.
        what: &'static str,
        /// The amount that the kernel needs.
        needed: u64,
        /// The amount that the device has.
        limit: u64,
    },
    /// A kernel needs a coordinate, a count or a flat index beyond 32 bits.
    #[error(
        "the kernel of `{kernel}` would need an index of {number}, but indices have 32 bits; use smaller sizes or tiles, or threads instead of a flat loop"
    )]
    Index {
        /// Name of the stage that the kernel computes.
        kernel: String,
        /// The first number that does not fit.
        number: i64,
    },
}

/// Options of lowering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Arrays with more elements than this are indexed with 64 bits. At most [`NARROW_ELEMENTS`];
    /// tests set it lower to get 64-bit indices on small arrays.
    pub narrow_elements: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { narrow_elements: NARROW_ELEMENTS }
    }
}

/// The inputs and tables that all passes share.
pub(crate) struct Context<'a> {
    pub problem: &'a Problem,
    pub plan: &'a Plan<'a>,
    pub inputs: IdVec<InputId, Region>,
    /// Values of specialised Params. The other Params are read at run time.
    pub fixed: IdVec<ParamId, Option<Value>>,
    /// Position of each Param among the program's scalars.
    pub scalars: IdVec<ParamId, u32>,
    pub places: Places,
    pub buffers: IdVec<BufferId, BufferDecl>,
    pub func_buffers: IdVec<FuncId, Vec<BufferId>>,
    pub input_buffers: IdVec<InputId, BufferId>,
    /// The copies to launch after all kernels.
    pub copies: Vec<Copy>,
    /// The most elements of an array with 32-bit indices.
    pub narrow_elements: i64,
}

/// Lowers a problem under a schedule that was resolved against it.
///
/// # Errors
///
/// If a kernel would have too many expressions, exceeds a device limit, or would need more than 32
/// bits for an index that cannot have them. Lowering a plan that was not [checked](Problem::check)
/// may fail in other ways.
pub fn lower(problem: &Problem, plan: &Plan<'_>, options: Options) -> Result<Program, LowerError> {
    let _pass = debug_span!("lower").entered();
    let pipeline = problem.pipeline();
    let context = Context::new(problem, plan, options);
    let mut kernels = IdVec::new();
    let mut launches = context.launches(plan.launches.body(), &mut kernels)?;
    for copy in &context.copies {
        launches.push(Launch::Kernel(kernels.push(copy.kernel(&context)?)));
    }
    let params = pipeline.params().iter().map(|(id, param)| (id, param.ty)).collect();
    Ok(Program { name: pipeline.name().to_string(), buffers: context.buffers, params, kernels, launches })
}

impl<'a> Context<'a> {
    fn new(problem: &'a Problem, plan: &'a Plan<'a>, options: Options) -> Context<'a> {
        let (pipeline, request) = (problem.pipeline(), problem.request());
        let inputs: IdVec<InputId, Region> =
            request.inputs.values().map(|region| region.clone().unwrap_or_default()).collect();
        let specialised = pipeline.specialised_params();
        let fixed = request.params.iter().map(|(id, value)| value.filter(|_| specialised[id])).collect();
        let scalars = pipeline.params().keys().zip(0..).map(|(_, position)| position).collect();
        let mut context = Context {
            problem,
            plan,
            inputs,
            fixed,
            scalars,
            places: Places::new(pipeline, plan),
            buffers: IdVec::new(),
            func_buffers: pipeline.funcs().values().map(|_| Vec::new()).collect(),
            input_buffers: IdVec::new(),
            copies: Vec::new(),
            narrow_elements: options.narrow_elements.clamp(1, NARROW_ELEMENTS).into(),
        };
        context.declare_buffers(request);
        context
    }

    pub fn pipeline(&self) -> &'a Pipeline {
        self.problem.pipeline()
    }

    /// Lowers kernels and launches them in order.
    fn launches(
        &self,
        body: Body<'_, schedule::KernelId>,
        kernels: &mut IdVec<KernelId, Kernel>,
    ) -> Result<Vec<Launch>, LowerError> {
        let mut launches = Vec::new();
        for step in body {
            match step {
                Stepped::Run(id) if self.problem.is_idle(self.plan.kernels[id].kernel.stage) => {}
                Stepped::Run(id) => {
                    let kernel = KernelLowering::new(self, id)?.lower()?;
                    launches.push(Launch::Kernel(kernels.push(kernel)));
                }
                Stepped::Loop(id, body) => {
                    let body = self.launches(body, kernels)?;
                    // The kernels inside have already checked that the loop's last iteration fits
                    // in an index.
                    match u32::try_from(self.plan.loops[id].count).unwrap_or(u32::MAX) {
                        1 => launches.extend(body),
                        _ if body.is_empty() => {}
                        count => launches.push(Launch::Loop { count, body }),
                    }
                }
            }
        }
        Ok(launches)
    }

    fn declare_buffers(&mut self, request: &Realisation) {
        for (id, input) in self.pipeline().inputs().iter() {
            let region = self.inputs[id].clone();
            let strides = buffer_strides(&region, input.storage_order.iter().copied());
            let role = Role::Input(id);
            let buffer = BufferDecl { name: input.name.clone(), ty: input.ty, region, strides, role };
            let buffer = self.buffers.push(buffer);
            self.input_buffers.push(buffer);
        }
        for (id, func) in self.pipeline().funcs().iter() {
            if !self.places.is_root(id) || !self.problem.regions().funcs[id].needed {
                continue;
            }
            let output = self.pipeline().outputs().iter().position(|output| *output == id);
            let asked = output.and_then(|output| request.outputs[output].clone());
            for value in 0..func.types.len() {
                let role = output.map_or(Role::Temporary, |output| Role::Output { output, value });
                self.declare_func(id, value, role, asked.as_ref());
            }
        }
    }

    /// Declares the buffer of a Func's value, and a second one for an output if only part of it was
    /// requested.
    fn declare_func(&mut self, id: FuncId, value: usize, role: Role, asked: Option<&Region>) {
        let region = self.problem.regions().funcs[id].region.clone();
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
        let func = &self.pipeline().funcs()[id];
        let name = match func.types.len() {
            1 => func.name.clone(),
            _ => format!("{}.{value}", func.name),
        };
        BufferDecl {
            name,
            ty: func.types[value],
            strides: buffer_strides(&region, 0..region.dimensions()),
            region,
            role,
        }
    }
}

/// The strides of a dense buffer whose dimensions are laid out in `order`, innermost first.
fn buffer_strides(region: &Region, order: impl IntoIterator<Item = usize>) -> Vec<i64> {
    let extents: Vec<i64> = region.0.iter().map(|range| range.extent).collect();
    strides(&extents, order).to_vec()
}
