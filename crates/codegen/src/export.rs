//! Exports a pipeline's kernels as files, for programs that do not use Warploom.
//!
//! A [`Manifest`] contains everything that such a program needs to know: kernels and their arguments,
//! launches in order, buffers, Params. It is saved as JSON. [`header`] and [`source`] generate C99 from
//! it that launches the kernels through the CUDA driver. They read nothing else, so the three always
//! agree.
//!
//! ```
//! use warploom_codegen::build::build;
//! use warploom_codegen::export::{Manifest, header, source};
//! use warploom_lang::{Input, Pipeline, Realisation, Region, func, vars};
//! use warploom_schedule::schedule::{Problem, Schedule};
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
//! let program = build(&problem, &Schedule::default_for(&problem))?;
//! let manifest = Manifest::new(&pipeline, &request, &device, &program);
//! assert_eq!(manifest.name, "double_2"); // `double` is a word of C
//! assert!(header(&manifest).contains("CUresult double_2_run("));
//! assert!(source(&manifest, None).contains("#include \"double_2.h\""));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod c;
mod header;
mod manifest;
mod source;
mod template;

pub use header::header;
pub use manifest::{Argument, Buffer, Compiled, Dimension, Kernel, Manifest, Param, SCHEMA};
pub use source::source;

use crate::cuda::names::Names;

/// The base name of a pipeline's files and the prefix of its C functions: the pipeline's name as an
/// identifier that hides nothing.
pub fn file_stem(pipeline: &str) -> String {
    Names::of_files().take(pipeline)
}
