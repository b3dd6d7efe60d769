//! The seam between kernel IR and the text of a back end.
//!
//! A [`Printer`] takes a program of [kernel IR](crate::ir) and returns its text, and the data with which a driver
//! launches the kernels ([`warploom_target::program`]). [`PRINTER`] is the one in use; only [`Cuda`](crate::cuda::Cuda)
//! knows its language.

mod usage;

use std::collections::BTreeSet;
use std::ops::Range;

use warploom_lang::{Id, Value};
use warploom_target::program as target;

use crate::instance::{InstanceError, Strides};
use crate::ir::{
    BufferId, Kernel, KernelId, Launch, PlanPart, Program, Role, Space, VECTOR_BYTES, every_stmt,
};

pub use usage::Usage;

/// The printer of the back end that programs are built for.
pub const PRINTER: &dyn Printer = &crate::cuda::Cuda;

/// Whether the code is compiled for bit-exact checks or for speed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Build {
    /// For bit-exact comparison with the reference: uses the language's own elementary functions
    /// and fuses no operations.
    Checking,
    /// For production use and timing: uses the hardware's functions, fused multiply-adds, and
    /// approximate division and square root.
    Timing,
}

/// Prints kernel IR as the text of a back end.
///
/// The same program always gives the same text. The IR has no operations that the device lacks: rules ask
/// [`Device::features`](warploom_target::Device::features) before.
pub trait Printer: Sync {
    /// The ending of the names of files with the text.
    fn extension(&self) -> &'static str;

    /// The compiler options of a build, without the architecture.
    fn options(&self, build: Build) -> Vec<String>;

    /// Prints a program as one translation unit, with the origin of each line.
    fn print_lines(&self, program: &Program, build: Build) -> Listing;

    /// Prints one kernel as a translation unit. The text depends only on that kernel and on whether a launch
    /// comes before it, so the compiled code can be reused for other schedules that contain the same kernel.
    fn print_kernel(&self, program: &Program, kernel: KernelId, build: Build) -> String;

    /// How each kernel of the text is launched; see [`launched`].
    fn kernels(&self, program: &Program) -> Vec<target::Kernel>;

    /// Prints a program as one translation unit.
    fn print(&self, program: &Program, build: Build) -> String {
        self.print_lines(program, build).text
    }

    /// Describes a program for a driver, with its text.
    fn describe(&self, program: &Program, build: Build) -> target::Program {
        let code = target::Code::Source { text: self.print(program, build), options: self.options(build) };
        described(program, self.kernels(program), code)
    }

    /// Describes a program for a driver at some sizes and strides. The text is the same for all of them.
    ///
    /// # Errors
    /// If a size is out of range, or a stride does not fit.
    fn describe_at(
        &self,
        program: &Program,
        build: Build,
        sizes: &[i64],
        strides: &Strides,
    ) -> Result<target::Program, InstanceError> {
        let instance = program.at(sizes, strides)?;
        let mut described = self.describe(program, build);
        described.buffers = buffers(&instance);
        described.steps = instance.launches.iter().map(step).collect();
        let each = described.kernels.iter_mut().zip(self.kernels(&instance));
        for ((id, kernel), (described, at)) in program.kernels.iter().zip(each) {
            let values = program.scalars_at(kernel, sizes, &instance.buffers);
            let passed = Usage::of(program, id).sizes().into_iter();
            described.sizes = passed.map(|position| values[position as usize]).collect();
            (described.grid, described.shared_bytes) = (at.grid, at.shared_bytes);
            described.dynamic_shared_bytes = at.dynamic_shared_bytes;
        }
        Ok(described)
    }

    /// Like `describe`, with one translation unit per [kernel](Printer::print_kernel).
    fn describe_in_parts(&self, program: &Program, build: Build) -> target::Program {
        let part = |kernel| target::Code::Source {
            text: self.print_kernel(program, kernel, build),
            options: self.options(build),
        };
        let code = target::Code::Parts(program.kernels.keys().map(part).collect());
        described(program, self.kernels(program), code)
    }
}

/// The text of a program, and where each of its lines comes from.
#[derive(Clone, PartialEq, Debug)]
pub struct Listing {
    /// The text as [`Printer::print`] gives it.
    pub text: String,
    /// One entry per line of the text.
    pub lines: Vec<LineOrigin>,
    /// The bytes of the text that are helper functions, which precede the kernels.
    pub helpers: Range<usize>,
}

/// Where a line comes from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LineOrigin {
    /// The kernel that the line is in; `None` outside of kernels.
    pub kernel: Option<KernelId>,
    /// The part of the plan that the line belongs to; `None` for declarations, and if the origin is not known.
    pub place: Option<PlanPart>,
    /// The array that the outermost statements around the line write, if they write only one.
    pub array: Option<String>,
}

/// The launch of a kernel whose text takes the arguments of [`target`] under the kernel's own name, and declares all of
/// its shared memory.
///
/// Tables are no arguments: the text has their values.
pub fn launched(program: &Program, id: KernelId) -> target::Kernel {
    let (kernel, usage) = (&program.kernels[id], Usage::of(program, id));
    target::Kernel {
        entry: kernel.name.clone(),
        grid: kernel.grid,
        threads: kernel.threads,
        shared_bytes: kernel.shared_bytes() as u32,
        dynamic_shared_bytes: 0,
        buffers: arguments(program, kernel),
        reads_params: usage.reads_params(),
        iterations: usage.iterations().into_iter().map(usize::from).collect(),
        sizes: Vec::new(),
        waits: false,
    }
}

fn described(program: &Program, kernels: Vec<target::Kernel>, code: target::Code) -> target::Program {
    target::Program {
        name: program.name.clone(),
        code,
        kernels,
        buffers: buffers(program),
        params: Value::words_of(program.params.iter().map(|&(_, ty)| ty)),
        steps: program.launches.iter().map(step).collect(),
    }
}

/// The buffers of a program, without its tables.
fn buffers(program: &Program) -> Vec<target::Buffer> {
    let vectors = vectors(program);
    let buffers = program.buffers.iter().filter_map(|(id, buffer)| {
        let role = match buffer.role {
            Role::Input(input) => target::Role::Input(input.index()),
            Role::Output { output, value } => target::Role::Output { output, value },
            Role::Temporary => target::Role::Temporary,
            Role::Table(_) => return None,
        };
        let (name, elements, element_bytes) = (buffer.name.clone(), buffer.elements(), buffer.ty.bytes());
        let alignment = if vectors.contains(&id) { VECTOR_BYTES } else { element_bytes };
        Some(target::Buffer { name, elements, element_bytes, alignment, role })
    });
    buffers.collect()
}

/// The buffers that kernels access by vectors.
fn vectors(program: &Program) -> BTreeSet<BufferId> {
    let buffers = program.kernels.values().flat_map(|kernel| {
        let moves = every_stmt(&kernel.body).filter(|stmt| stmt.moved().is_some());
        let arrays = moves.flat_map(|stmt| stmt.moved().into_iter().chain(stmt.written()));
        arrays.filter_map(|array| match kernel.arrays[array].space {
            Space::Global(buffer) => Some(buffer),
            Space::Shared | Space::Thread => None,
        })
    });
    buffers.collect()
}

/// The buffers that a kernel takes, in parameter order.
fn arguments(program: &Program, kernel: &Kernel) -> Vec<usize> {
    let is_table = |buffer| matches!(program.buffers[buffer].role, Role::Table(_));
    let buffer = |space| match space {
        Space::Global(buffer) if !is_table(buffer) => Some(Id::index(buffer)),
        Space::Global(_) | Space::Shared | Space::Thread => None,
    };
    kernel.arrays.values().filter_map(|array| buffer(array.space)).collect()
}

fn step(launch: &Launch) -> target::LaunchStep {
    match launch {
        Launch::Kernel(kernel) => target::LaunchStep::Launch(kernel.index()),
        Launch::Loop { count, body, .. } => {
            target::LaunchStep::Loop { count: *count, body: body.iter().map(step).collect() }
        }
    }
}
