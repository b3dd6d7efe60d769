//! Kernels that are built once for ranges of sizes.

use std::sync::{Mutex, PoisonError};

use warploom_codegen::instance::{InstanceError, Strides};
use warploom_codegen::ir::{Program, Role};
use warploom_codegen::printer::{Build, PRINTER};
use warploom_lang::dynamic::DynamicRequest;
use warploom_lang::{Id, Pipeline, Realisation};
use warploom_target::program::{self as target, Code};

use crate::on_device::values;

/// The strides of inputs, then of output values, as the caller gave them; `None` for dense ones.
pub(crate) type GivenStrides = Vec<Option<Vec<i64>>>;

/// A program for ranges of sizes, with its machine code once it is compiled.
pub(crate) struct AnySize {
    pub(crate) request: DynamicRequest,
    program: Program,
    code: Mutex<Option<Code>>,
}

impl AnySize {
    pub(crate) fn new(request: DynamicRequest, program: Program) -> AnySize {
        AnySize { request, program, code: Mutex::default() }
    }

    /// The program at the sizes of a request.
    pub(crate) fn at(
        &self,
        pipeline: &Pipeline,
        request: &Realisation,
        strides: &GivenStrides,
    ) -> Result<Program, InstanceError> {
        let sizes = self.request.sizes_of(pipeline, request)?;
        self.program.at(&sizes, &of_buffers(&self.program, pipeline, strides))
    }

    /// The program to launch at the sizes of a request: machine code if it is compiled, otherwise the source, which is
    /// the same for all sizes.
    pub(crate) fn described(
        &self,
        pipeline: &Pipeline,
        request: &Realisation,
        strides: &GivenStrides,
    ) -> Result<target::Program, InstanceError> {
        let sizes = self.request.sizes_of(pipeline, request)?;
        let strides = of_buffers(&self.program, pipeline, strides);
        let mut described = PRINTER.describe_at(&self.program, Build::Timing, &sizes, &strides)?;
        if let Some(code) = &*self.code.lock().unwrap_or_else(PoisonError::into_inner) {
            described.code = code.clone();
        }
        Ok(described)
    }

    /// Keeps machine code for other sizes.
    pub(crate) fn keep(&self, code: &Code) {
        *self.code.lock().unwrap_or_else(PoisonError::into_inner) = Some(code.clone());
    }
}

/// The strides of each buffer of a program.
pub(crate) fn of_buffers(program: &Program, pipeline: &Pipeline, strides: &GivenStrides) -> Strides {
    let outputs = values(pipeline);
    let given = |role: Role| {
        let position = match role {
            Role::Input(input) => Some(input.index()),
            Role::Output { output, value } => {
                let position = outputs.iter().position(|known| *known == (output, value));
                position.map(|position| pipeline.inputs().len() + position)
            }
            Role::Temporary | Role::Table(_) => None,
        };
        strides.get(position?)?.clone()
    };
    program.buffers.values().map(|decl| given(decl.role)).collect()
}
