//! Prints kernel IR as CUDA C++.
//!
//! [`print()`] walks the IR and emits one translation unit: all kernels of a program, named after
//! the user's names, the helper functions that they call and no other declarations. It includes no
//! headers, so NVRTC compiles it as it is. [`describe`] adds what a runtime needs to launch the
//! kernels.
//!
//! # How things are printed
//!
//! - A kernel's parameters are its global arrays in order (`const` if it never writes them), then
//!   `params` if it reads any scalar, then `iteration0`, ... for the launch loops whose iteration
//!   it reads, then the numbers that follow from the sizes of a launch. The iteration is passed by
//!   value: launches captured in a graph keep their arguments, and this one differs between the
//!   launches of a loop but not between runs.
//! - Indices are 32-bit `int`. Indices of arrays too large for `int` are sums of `long long`.
//!   Integer arithmetic uses plain operators wherever its range shows that it cannot overflow, and
//!   goes through `unsigned` where it could; see `warploom_lang::affine::interval`.
//! - An expression that a statement uses more than once becomes a `const` local before the
//!   statement.
//! - Shared arrays are static up to [`STATIC_SHARED_BYTES`]. Beyond that, or if the length of one follows
//!   from the sizes of a launch, they are carved from one dynamic array, and the launch must request the bytes.
//! - Kernels of a program with several launches can be launched before their predecessor has ended
//!   (`chain`): they wait for it themselves.
//! - Constant tables are static arrays of the kernels that read them, in constant memory where all threads read one element
//!   at a time (`tables`).
//! - A loop whose count follows from the sizes is unrolled as its usual count suggests (`unroll`).
//! - Characters that identifiers cannot hold are replaced. Names that clash with each other, with
//!   C++ or with CUDA get a number. The same program always gives the same text.

mod chain;
mod convert;
mod elementary;
mod expr;
mod half;
mod kernel;
mod lines;
mod literal;
pub(crate) mod names;
mod operand;
mod prelude;
mod tables;
mod text;
mod uniform;
mod unroll;
mod usage;
mod wide;

use std::collections::BTreeSet;
use std::fmt::Write;

use warploom_lang::{Id, IdVec, Value};
use warploom_target::program as target;

use crate::instance::{InstanceError, Strides};
use crate::ir::{BufferId, Kernel, KernelId, Launch, Program, Role, Space, VECTOR_BYTES, every_stmt};

use expr::Printer;
use kernel::KernelPrinter;
pub use lines::{LineOrigin, Listing};
use names::{Names, in_comment};
use prelude::Helpers;
use tables::ConstantMemory;
use usage::Usage;

/// The most bytes of shared memory that a kernel can declare statically, on any device.
pub const STATIC_SHARED_BYTES: usize = 48 * 1024;

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

impl Build {
    /// The compiler options, without the architecture.
    pub fn options(self) -> Vec<String> {
        let options: &[&str] = match self {
            Build::Checking => &["--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false"],
            Build::Timing => &["--fmad=true", "--prec-div=false", "--prec-sqrt=false"],
        };
        options.iter().map(ToString::to_string).collect()
    }
}

/// Prints a program as one translation unit of CUDA C++.
pub fn print(program: &Program, build: Build) -> String {
    print_lines(program, build).text
}

/// Like [`print()`], with the origin of each line.
pub fn print_lines(program: &Program, build: Build) -> Listing {
    let entries = entries(program);
    let mut text = format!("// {}\n", in_comment(&program.name));
    let _ = writeln!(text, "// Launches: {}", launches(&program.launches, &entries));
    let mut lines = vec![LineOrigin::default(); text.lines().count()];
    let printed = kernels(program, program.kernels.keys(), &entries, build);
    let helpers = text.len()..text.len() + printed.helpers.end;
    text.push_str(&printed.text);
    lines.extend(printed.lines);
    Listing { text, lines, helpers }
}

/// Prints some kernels of a program, preceded by the helper functions that they call.
fn kernels(
    program: &Program,
    which: impl Iterator<Item = KernelId>,
    entries: &IdVec<KernelId, String>,
    build: Build,
) -> Listing {
    let _pass = tracing::debug_span!("print").entered();
    let waiting = chain::waiting(program);
    let (mut helpers, mut constants) = (Helpers::default(), ConstantMemory::default());
    let (mut text, mut lines) = (String::new(), Vec::new());
    for id in which {
        let usage = Usage::of(program, id);
        let printer = Printer { build, helpers: &mut helpers };
        let constants = constants.take(program, &program.kernels[id]);
        let kernel =
            KernelPrinter::new(program, &program.kernels[id], &usage, waiting[id], constants, printer);
        let (kernel, origins) = kernel.print(id, &entries[id]);
        text.push('\n');
        text.push_str(&kernel);
        lines.push(LineOrigin::default());
        lines.extend(origins);
    }
    let before = match helpers.text().trim_end_matches('\n') {
        "" => String::new(),
        helpers => format!("\n{helpers}\n"),
    };
    lines.splice(0..0, vec![LineOrigin::default(); before.lines().count()]);
    Listing { helpers: 0..before.len(), text: before + &text, lines }
}

/// Describes a program for a runtime, with its text as [`print()`] gives it.
pub fn describe(program: &Program, build: Build) -> target::Program {
    with_code(program, target::Code::Source { text: print(program, build), options: build.options() })
}

/// Describes a program for a runtime at some sizes and strides. The text is the same for all of them.
///
/// # Errors
/// If a size is out of range, or a stride does not fit.
pub fn describe_at(
    program: &Program,
    build: Build,
    sizes: &[i64],
    strides: &Strides,
) -> Result<target::Program, InstanceError> {
    let instance = program.at(sizes, strides)?;
    let mut described = describe(program, build);
    let at = with_code(&instance, target::Code::Cubin(Vec::new()));
    described.buffers = at.buffers;
    described.steps = at.steps;
    for ((id, kernel), target) in program.kernels.iter().zip(&mut described.kernels) {
        let values = program.scalars_at(kernel, sizes, &instance.buffers);
        (target.grid, target.shared_bytes) =
            (at.kernels[id.index()].grid, at.kernels[id.index()].shared_bytes);
        target.dynamic_shared_bytes = at.kernels[id.index()].dynamic_shared_bytes;
        target.sizes = sizes_of(program, id).into_iter().map(|position| values[position as usize]).collect();
    }
    Ok(described)
}

/// Like `describe`, with one translation unit per kernel. The text of each depends only on that kernel
/// and on whether a launch comes before it, so the compiled code can be reused for other
/// schedules that contain the same kernel.
pub fn describe_in_parts(program: &Program, build: Build) -> target::Program {
    let entries = entries(program);
    let part = |id| target::Code::Source {
        text: kernels(program, std::iter::once(id), &entries, build).text,
        options: build.options(),
    };
    with_code(program, target::Code::Parts(program.kernels.keys().map(part).collect()))
}

/// Bytes of shared memory that a launch must request: all, if they are more than code may declare or follow from the sizes.
fn requested_shared_bytes(kernel: &Kernel) -> usize {
    let shared = kernel.shared_bytes();
    if shared > STATIC_SHARED_BYTES || kernel.shared.is_some() { shared } else { 0 }
}

/// The scalars of a kernel that its launches pass, in order.
pub(crate) fn sizes_of(program: &Program, kernel: KernelId) -> Vec<u32> {
    Usage::of(program, kernel).sizes()
}

fn with_code(program: &Program, code: target::Code) -> target::Program {
    let (entries, waiting) = (entries(program), chain::waiting(program));
    let kernels = program.kernels.iter().map(|(id, kernel)| {
        let usage = Usage::of(program, id);
        let shared = kernel.shared_bytes();
        target::Kernel {
            entry: entries[id].clone(),
            grid: kernel.grid,
            threads: kernel.threads,
            shared_bytes: shared as u32,
            dynamic_shared_bytes: requested_shared_bytes(kernel) as u32,
            buffers: arguments(program, kernel),
            reads_params: usage.reads_params(),
            iterations: usage.iterations().into_iter().map(usize::from).collect(),
            sizes: Vec::new(),
            waits: waiting[id],
        }
    });
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
    target::Program {
        name: program.name.clone(),
        code,
        kernels: kernels.collect(),
        buffers: buffers.collect(),
        params: Value::words_of(program.params.iter().map(|&(_, ty)| ty)),
        steps: program.launches.iter().map(step).collect(),
    }
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
    let buffer = |space| match space {
        Space::Global(buffer) if tables::of(program, space).is_none() => Some(Id::index(buffer)),
        Space::Global(_) | Space::Shared | Space::Thread => None,
    };
    kernel.arrays.values().filter_map(|array| buffer(array.space)).collect()
}

fn step(launch: &Launch) -> target::Step {
    match launch {
        Launch::Kernel(kernel) => target::Step::Launch(kernel.index()),
        Launch::Loop { count, body, .. } => {
            target::Step::Loop { count: *count, body: body.iter().map(step).collect() }
        }
    }
}

/// The function names of the kernels.
fn entries(program: &Program) -> IdVec<KernelId, String> {
    let mut names = Names::global();
    program.kernels.values().map(|kernel| names.take(&kernel.name)).collect()
}

/// Summarises the launches in one line.
fn launches(list: &[Launch], entries: &IdVec<KernelId, String>) -> String {
    let each = list.iter().map(|launch| match launch {
        Launch::Kernel(kernel) => entries[*kernel].clone(),
        Launch::Loop { count, body, .. } => format!("{count} x {{ {} }}", launches(body, entries)),
    });
    each.collect::<Vec<String>>().join(", ")
}
