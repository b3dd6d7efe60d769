//! A compiler from image pipelines to fast GPU kernels that finds the schedules by itself.
//!
//! This is the crate to depend on. [`prelude`] has the names that most programs need, [`tutorial`] shows how to use it,
//! and the other crates of the workspace are re-exported as modules.
//!
//! ```
//! use warploom::prelude::*;
//!
//! let (x, y) = vars!(x, y);
//! let input = Input::f32("input", 2);
//! let edge = input.repeat_edge();
//! let blur_x = func("blur_x", (x, y), (edge.at((x - 1, y)) + edge.at((x, y)) + edge.at((x + 1, y))) / 3.0);
//! let blur_y = func("blur_y", (x, y), (blur_x.at((x, y - 1)) + blur_x.at((x, y)) + blur_x.at((x, y + 1))) / 3.0);
//! let blur = Pipeline::new("blur", [blur_y])?;
//!
//! let image = Buffer::from_fn(Region::of_extents(&[64, 48]), |at| (at[0] % 7) as f32)?;
//! let out = Evaluation::new(&blur)
//!     .input("input", &image)
//!     .output("blur_y", image.region().clone())
//!     .run()?;
//! assert_eq!(out[0].region(), image.region());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod any_size;
pub mod app;
mod autoschedule;
mod autotuned;
mod backend;
pub mod check;
mod compiled;
pub mod date;
mod detect;
pub mod export;
pub mod inputs;
mod model;
mod on_device;
mod recent;
pub mod records;
pub mod schedule_file;
mod scheduled;
pub mod show;
mod sizes;
mod tuning;
pub mod tutorial;

pub use autoschedule::{Autoschedule, AutoscheduleError, Autoscheduled};
pub use autotuned::{Autotuned, Recorded, RecordedError};
pub use backend::{Backend, RunError};
pub use compiled::Compiled;
pub use detect::{Detect, known_device};
pub use export::{ExportError, ExportOptions, Package};
pub use model::model_for;
pub use on_device::{DeviceInput, DeviceMemoryError, DeviceOutput};
pub use scheduled::Scheduled;
pub use sizes::{Size, Sizes, SizesError, Varying, size, varying};
pub use tuning::{Tuning, TuningError};

pub use warploom_tune::worker::entry as worker_entry;

pub use warploom_codegen as codegen;
pub use warploom_cost as cost;
#[cfg(feature = "farm")]
pub use warploom_farm as farm;
pub use warploom_fuzz as fuzz;
pub use warploom_interp as interp;
pub use warploom_lang as lang;
pub use warploom_models as models;
pub use warploom_plan as plan;
pub use warploom_randpipe as randpipe;
pub use warploom_runtime as runtime;
pub use warploom_schedule as schedule;
pub use warploom_search as search;
pub use warploom_sim as sim;
pub use warploom_strategy as strategy;
pub use warploom_target as target;
pub use warploom_tensor as tensor;
pub use warploom_tune as tune;

/// The names that most programs need: the language, buffers, the reference evaluator, autoscheduling, and the backends
/// that run a schedule.
pub mod prelude {
    pub use crate::autoschedule::{Autoschedule, Autoscheduled};
    pub use crate::autotuned::Autotuned;
    pub use crate::backend::{Backend, RunError};
    pub use crate::compiled::Compiled;
    pub use crate::detect::Detect;
    pub use crate::on_device::{DeviceInput, DeviceOutput};
    pub use crate::sizes::{Sizes, size, varying};
    pub use crate::tuning::Tuning;
    pub use warploom_interp::buffer::Buffer;
    pub use warploom_interp::{EvalError, Evaluation};
    pub use warploom_lang::*;
    pub use warploom_target::Device;
}
