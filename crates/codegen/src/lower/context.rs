//! The inputs and tables that all passes share: nothing in them changes while kernels are lowered.

use std::cell::RefCell;

use warploom_lang::dynamic::{FormulaRange, Formulas};
use warploom_lang::{FuncId, IdVec, InputId, ParamId, Pipeline, Realisation, Region, TableId, Value};
use warploom_plan::{Plan, Problem, strides};

use crate::ir::{BufferDecl, BufferId, BufferLayout, NARROW_ELEMENTS, ProgramSizes, Role};
use crate::lower::place::Places;

/// Options of lowering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Arrays with more elements than this are indexed with 64 bits. At most [`NARROW_ELEMENTS`];
    /// tests set it lower to get 64-bit indices on small arrays.
    pub narrow_elements: u32,
    /// Whether the caller gives the strides of inputs and outputs with each launch.
    pub pitched: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { narrow_elements: NARROW_ELEMENTS, pitched: false }
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
    pub plan: &'a Plan,
    pub inputs: IdVec<InputId, Vec<FormulaRange>>,
    /// Values of specialised Params. The other Params are read at run time.
    pub fixed: IdVec<ParamId, Option<Value>>,
    /// Position of each Param among the program's scalars.
    pub scalars: IdVec<ParamId, u32>,
    pub places: Places,
    pub buffers: IdVec<BufferId, BufferDecl>,
    pub func_buffers: IdVec<FuncId, Vec<BufferId>>,
    pub input_buffers: IdVec<InputId, BufferId>,
    pub table_buffers: IdVec<TableId, BufferId>,
    /// The copies to launch after all kernels.
    pub copies: Vec<OutputCopy>,
    /// The layouts of buffers whose sizes or strides are given with each launch. Empty if all are fixed.
    pub layouts: IdVec<BufferId, BufferLayout>,
    /// The formulas of the sizes; grows as kernels need more.
    pub formulas: RefCell<Formulas>,
    pitched: bool,
    /// The most elements of an array with 32-bit indices.
    pub narrow_elements: i64,
}

impl<'a> Context<'a> {
    pub fn new(problem: &'a Problem, plan: &'a Plan, options: Options) -> Context<'a> {
        let (pipeline, request) = (problem.pipeline(), problem.request());
        let inputs = match problem.sizes() {
            Some(sizes) => sizes.request.inputs.clone(),
            None => request
                .inputs
                .values()
                .map(|region| region.as_ref().map_or_else(Vec::new, constant))
                .collect(),
        };
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
            table_buffers: IdVec::new(),
            copies: Vec::new(),
            layouts: IdVec::new(),
            formulas: RefCell::new(
                plan.limits.as_ref().map_or_else(Formulas::default, |limits| limits.formulas.clone()),
            ),
            pitched: options.pitched,
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
            let ranges = self.inputs[id].clone();
            let region = self.hull(&ranges);
            let strides = buffer_strides(&region, input.storage_order.iter().copied());
            let role = Role::Input(id);
            let buffer = BufferDecl { name: input.name.clone(), ty: input.ty, region, strides, role };
            let buffer = self.declare(buffer, ranges, input.storage_order.clone());
            self.input_buffers.push(buffer);
        }
        for (id, func) in self.pipeline().funcs().iter() {
            if !self.places.is_root(id) || !self.problem.regions().funcs[id].needed {
                continue;
            }
            let output = self.pipeline().outputs().iter().position(|output| *output == id);
            let asked = output.and_then(|output| self.asked(request, output));
            for value in 0..func.types.len() {
                let role = output.map_or(Role::Temporary, |output| Role::Output { output, value });
                self.declare_func(id, value, role, asked.as_deref());
            }
        }
        // Launches take no tables, so these come after all buffers that have a position among arguments.
        for (id, table) in self.pipeline().tables().iter() {
            let (region, role) = (table.region(), Role::Table(id));
            let order: Vec<usize> = (0..table.extents.len()).collect();
            let (ranges, strides) = (constant(&region), buffer_strides(&region, order.iter().copied()));
            let buffer = BufferDecl { name: table.name.clone(), ty: table.ty, region, strides, role };
            let buffer = self.declare(buffer, ranges, order);
            self.table_buffers.push(buffer);
        }
    }

    /// The box that was requested of an output.
    fn asked(&self, request: &Realisation, output: usize) -> Option<Vec<FormulaRange>> {
        match self.problem.sizes() {
            Some(sizes) => Some(sizes.request.outputs[output].clone()),
            None => request.outputs[output].as_ref().map(constant),
        }
    }

    /// Declares the buffer of a Func's value, and a second one for an output if only part of it was
    /// requested.
    fn declare_func(&mut self, id: FuncId, value: usize, role: Role, asked: Option<&[FormulaRange]>) {
        let region = match self.problem.sizes() {
            Some(sizes) => sizes.funcs[id].region.clone(),
            None => constant(self.problem.stored(id)),
        };
        let Some(part) = asked.filter(|asked| **asked != region) else {
            let buffer = self.func_buffer(id, value, role, region);
            self.func_buffers[id].push(buffer);
            return;
        };
        let from = self.func_buffer(id, value, Role::Temporary, region);
        let to = self.func_buffer(id, value, role, part.to_vec());
        self.func_buffers[id].push(from);
        self.copies.push(OutputCopy { from, to });
    }

    /// Declares a buffer, with its layout if that is not fixed.
    fn declare(&mut self, buffer: BufferDecl, region: Vec<FormulaRange>, order: Vec<usize>) -> BufferId {
        if self.pitched || self.problem.sizes().is_some() {
            let given = matches!(buffer.role, Role::Input(_) | Role::Output { .. });
            let pitched = self.pitched && given;
            self.layouts.push(BufferLayout { region, order, pitched });
        }
        self.buffers.push(buffer)
    }

    /// The formulas of the sizes and strides of a launch; `None` if all are fixed.
    pub fn program_sizes(&self) -> Option<Box<ProgramSizes>> {
        (self.pitched || self.problem.sizes().is_some()).then(|| {
            let conditions = self.problem.sizes().map_or_else(Vec::new, |sizes| sizes.conditions.clone());
            let (formulas, buffers) = (self.formulas.borrow().clone(), self.layouts.clone());
            Box::new(ProgramSizes { formulas, conditions, buffers })
        })
    }

    fn func_buffer(&mut self, id: FuncId, value: usize, role: Role, ranges: Vec<FormulaRange>) -> BufferId {
        let func = &self.pipeline().funcs()[id];
        let name = match func.types.len() {
            1 => func.name.clone(),
            _ => format!("{}.{value}", func.name),
        };
        let region = self.hull(&ranges);
        let order = func.storage_order();
        let (ty, strides) = (func.types[value], buffer_strides(&region, order.iter().copied()));
        self.declare(BufferDecl { name, ty, strides, region, role }, ranges, order)
    }

    /// The smallest box that covers a box at all sizes.
    fn hull(&self, ranges: &[FormulaRange]) -> Region {
        let formulas = self.formulas.borrow();
        Region(ranges.iter().map(|range| range.hull(&formulas)).collect())
    }
}

/// A box that does not depend on the sizes.
fn constant(region: &Region) -> Vec<FormulaRange> {
    region.0.iter().map(|range| FormulaRange::constant(*range)).collect()
}

/// The strides of a dense buffer whose dimensions are laid out in `order`, innermost first.
fn buffer_strides(region: &Region, order: impl IntoIterator<Item = usize>) -> Vec<i64> {
    let extents: Vec<i64> = region.0.iter().map(|range| range.extent).collect();
    strides(&extents, order).to_vec()
}
