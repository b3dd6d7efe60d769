//! The inputs and tables that all passes share: nothing in them changes while kernels are lowered.

use warploom_lang::{FuncId, IdVec, InputId, ParamId, Pipeline, Realisation, Region, Value};
use warploom_schedule::schedule::{Plan, Problem, strides};

use crate::ir::{BufferDecl, BufferId, NARROW_ELEMENTS, Role};
use crate::lower::place::Places;

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

/// Copies part of one buffer to an output buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputCopy {
    pub from: BufferId,
    pub to: BufferId,
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
    pub copies: Vec<OutputCopy>,
    /// The most elements of an array with 32-bit indices.
    pub narrow_elements: i64,
}

impl<'a> Context<'a> {
    pub fn new(problem: &'a Problem, plan: &'a Plan<'a>, options: Options) -> Context<'a> {
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
        self.copies.push(OutputCopy { from, to });
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
