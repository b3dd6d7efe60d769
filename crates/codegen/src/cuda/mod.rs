//! Prints kernel IR as CUDA C++.
//!
//! [`Cuda`] is the [`Printer`] for NVIDIA's GPUs. It walks the IR and emits one translation unit: all kernels of a
//! program, named after the user's names, the helper functions that they call and no other declarations. It includes
//! no headers, so NVRTC compiles it as it is. [`export`] prints C that launches the kernels through CUDA's driver.
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
//! - Kernels of a program with several launches can be launched before their predecessor has ended: they wait for it
//!   themselves (`chain`).
//! - Constant tables are static arrays of the kernels that read them, in constant memory if all threads read the same
//!   element (`tables`).
//! - A loop whose trip count follows from the sizes is unrolled as its typical count suggests (`unroll`).
//! - Characters that identifiers cannot hold are replaced. Names that clash with each other, with
//!   C++ or with CUDA get a number. The same program always gives the same text.

mod chain;
mod convert;
mod elementary;
pub mod export;
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
mod wide;

use std::fmt::Write;

use warploom_lang::IdVec;
use warploom_target::program as target;

use crate::ir::{Kernel, KernelId, Launch, Program};
use crate::printer::{Build, LineOrigin, Listing, Printer, Usage, launched};

use kernel::KernelPrinter;
use names::{Names, in_comment};
use prelude::Helpers;
use tables::ConstantMemory;

/// The most bytes of shared memory that a kernel can declare statically, on any device.
pub const STATIC_SHARED_BYTES: usize = 48 * 1024;

/// The printer of CUDA C++.
#[derive(Clone, Copy, Debug)]
pub struct Cuda;

impl Printer for Cuda {
    fn extension(&self) -> &'static str {
        "cu"
    }

    fn options(&self, build: Build) -> Vec<String> {
        let options: &[&str] = match build {
            Build::Checking => &["--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false"],
            Build::Timing => &["--fmad=true", "--prec-div=false", "--prec-sqrt=false"],
        };
        options.iter().map(ToString::to_string).collect()
    }

    fn print_lines(&self, program: &Program, build: Build) -> Listing {
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

    fn print_kernel(&self, program: &Program, kernel: KernelId, build: Build) -> String {
        kernels(program, std::iter::once(kernel), &entries(program), build).text
    }

    fn kernels(&self, program: &Program) -> Vec<target::Kernel> {
        let (entries, waiting) = (entries(program), chain::waiting(program));
        let kernels = program.kernels.iter().map(|(id, kernel)| target::Kernel {
            entry: entries[id].clone(),
            dynamic_shared_bytes: requested_shared_bytes(kernel) as u32,
            waits: waiting[id],
            ..launched(program, id)
        });
        kernels.collect()
    }
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
        let printer = expr::Printer { build, helpers: &mut helpers };
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

/// Bytes of dynamic shared memory that a launch must request: all, if they exceed the static limit or depend on the
/// sizes.
fn requested_shared_bytes(kernel: &Kernel) -> usize {
    let shared = kernel.shared_bytes();
    if shared > STATIC_SHARED_BYTES || kernel.shared.is_some() { shared } else { 0 }
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
