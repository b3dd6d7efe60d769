//! Exports a pipeline's kernels as files, for programs that do not use Warploom.
//!
//! A [`Manifest`] contains everything that such a program needs to know: kernels and their arguments, launches in
//! order, buffers, Params, compiled code. It is saved as JSON. [`header`] and [`source`] generate C (also valid C++17)
//! from it that launches the kernels through the CUDA driver. They read only the manifest and the code to embed, so the
//! three always agree.
//!
//! [`named`] gives the kernels their names in the export, which begin with the name of the package:
//! several packages can be linked into one program, and their kernels into one module. Kernels that
//! Warploom itself loads keep their short names, because each program is a module of its own.
//!
//! ```
//! use warploom_codegen::build::build;
//! use warploom_codegen::export::{Manifest, header, named, source};
//! use warploom_lang::{Input, Pipeline, Realisation, Region, func, vars};
//! use warploom_plan::Problem;
//! use warploom_schedule::Schedule;
//! use warploom_target::Device;
//!
//! let (x, y) = vars!(x, y);
//! let doubled = func("doubled", (x, y), Input::f32("input", 2).at((x, y)) * 2.0);
//! let pipeline = Pipeline::new("double", [doubled])?;
//! let image = Region::of_extents(&[640, 480]);
//! let request = Realisation::new(&pipeline).input("input", image.clone()).output("doubled", image);
//!
//! let device = Device::preset("h200")?;
//! let problem = Problem::new(&pipeline, &request, &device)?;
//! let program = named(&build(&problem, &problem.default_schedule())?, pipeline.name());
//! let manifest = Manifest::new(&pipeline, &request, &device, &[], &program);
//! assert_eq!(manifest.name, "double_2"); // `double` is a word of C
//! assert_eq!(manifest.kernels[0].entry, "double_2_doubled");
//! assert!(header(&manifest).contains("CUresult double_2_run("));
//! assert!(source(&manifest, &[]).contains("#include \"double_2.h\""));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod c;
mod header;
mod manifest;
mod sizes;
mod source;
mod template;

pub use header::header;
pub use manifest::{
    Argument, Buffer, CodeKind, Compiled, Dimension, Kernel, Layout, Manifest, ManifestError, Number, Param,
    SCHEMA, Size, Target,
};
pub use source::source;

use crate::cuda::names::Names;
use crate::ir::{self, Program};

/// The most letters of a [stem](file_stem): with the longest ending, `.sm_1000.cubin`, it is the name of a file.
pub const LONGEST_STEM: usize = 240;

/// The base name of a pipeline's files and the prefix of its C functions: the pipeline's name as an identifier that
/// shadows nothing. Names too long for files are shortened, with a hash.
pub fn file_stem(pipeline: &str) -> String {
    let whole = Names::of_files().take(pipeline);
    if whole.len() <= LONGEST_STEM {
        return whole;
    }
    let end = format!("_{:016x}", hash(pipeline));
    let start: String = whole.chars().take(LONGEST_STEM - end.len()).collect();
    start + &end
}

/// A hash that never changes: FNV-1a.
fn hash(text: &str) -> u64 {
    let one = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, one)
}

/// The program under the name of its package, which every kernel's name begins with.
pub fn named(program: &Program, name: &str) -> Program {
    let stem = file_stem(name);
    let prefixed =
        |kernel: &ir::Kernel| ir::Kernel { name: format!("{stem}_{}", kernel.name), ..kernel.clone() };
    let kernels = program.kernels.values().map(prefixed).collect();
    Program { name: name.to_owned(), kernels, ..program.clone() }
}
