//! # On the GPU
//!
//! [`compile`](crate::Autoscheduled::compile) compiles the kernels of a
//! [schedule](super::_02_schedules) to machine code and loads it onto the first GPU of the machine.
//! [`run`](crate::Compiled::run) takes inputs and returns outputs. Both together are a few lines:
//!
//! ```no_run
//! use warploom::prelude::*;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (x, y) = vars!(x, y);
//! # let edge = Input::f32("input", 2).repeat_edge();
//! # let pipeline = Pipeline::new("sharpen", [func("sharp", (x, y), 2.0 * edge.at((x, y)) - edge.at((x + 1, y)))])?;
//! # let image = Buffer::from_fn(Region::of_extents(&[1536, 1024]), |at| at[0] as f32)?;
//!
//! // The GPU of this machine, or the numbers of an H200 where there is none.
//! let device = Device::detect_or("h200")?;
//! // The sizes are those of a picture that is at hand.
//! let kernel = pipeline.autoschedule(&device, [&image])?.compile()?;
//! let sharp = kernel.run(&[&image])?;
//! # Ok(())
//! # }
//! ```
//!
//! Building this requires no CUDA installation. The driver and NVRTC are looked up at run time. If
//! one is missing, the error lists the places that were searched.
//!
//! ## Without a GPU
//!
//! `compile` then returns an error; it never falls back to something slower. You decide what
//! happens instead:
//!
//! ```
//! use warploom::prelude::*;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (x, y) = vars!(x, y);
//! # let edge = Input::f32("input", 2).repeat_edge();
//! # let pipeline = Pipeline::new("sharpen", [func("sharp", (x, y), 2.0 * edge.at((x, y)) - edge.at((x + 1, y)))])?;
//! # let image = Buffer::from_fn(Region::of_extents(&[96, 64]), |at| (at[0] % 5) as f32)?;
//! let device = Device::detect_or("h200")?;
//! let scheduled = pipeline.autoschedule(&device, [&image])?;
//! let kernel = match scheduled.compile() {
//!     Ok(kernel) => kernel,
//!     Err(reason) => {
//!         eprintln!("{reason}; going on with the reference evaluator");
//!         scheduled.compile_for(Backend::Reference)?
//!     }
//! };
//! let sharp = kernel.run(&[&image])?;
//! assert_eq!(sharp[0].region(), image.region());
//! # Ok(())
//! # }
//! ```
//!
//! [`Backend::Reference`](crate::Backend) computes every Func directly from its definition.
//! [`Backend::Simulator`](crate::Backend) runs the kernels as a GPU would; it is even slower, and
//! finds bugs in the kernels. The rest of this page uses the simulator, and works the same way on a
//! GPU.
//!
//! ## Other sizes
//!
//! A [`Compiled`](crate::Compiled) takes buffers of any size that the pipeline can be computed at.
//! It builds kernels for the current size, under the same schedule, and keeps them until the size
//! changes. A size far from the scheduled one also works, with a warning (through `tracing`) that
//! another schedule may be faster.
//!
//! ```
//! # use warploom::prelude::*;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (x, y) = vars!(x, y);
//! # let edge = Input::f32("input", 2).repeat_edge();
//! # let pipeline = Pipeline::new("sharpen", [func("sharp", (x, y), 2.0 * edge.at((x, y)) - edge.at((x + 1, y)))])?;
//! # let device = Device::preset("h200")?;
//! let small = Buffer::from_fn(Region::of_extents(&[64, 48]), |at| (at[0] % 5) as f32)?;
//! let large = Buffer::from_fn(Region::of_extents(&[96, 64]), |at| (at[1] % 3) as f32)?;
//! let scheduled = pipeline.autoschedule(&device, [&small])?;
//! let kernel = scheduled.compile_for(Backend::Simulator(device))?;
//! assert_eq!(kernel.run(&[&small])?[0].region(), small.region());
//! assert_eq!(kernel.run(&[&large])?[0].region(), large.region());
//!
//! // A mistake is said in a sentence.
//! let bytes = Buffer::from_fn(Region::of_extents(&[64, 48]), |_| 1u8)?;
//! let refused = kernel.run(&[&bytes]).unwrap_err().to_string();
//! assert_eq!(refused, "the input `input` is f32, but the buffer holds u8; convert it");
//! # Ok(())
//! # }
//! ```
//!
//! An output is as large as the input it had the same size as when the pipeline was scheduled;
//! [`run_at`](crate::Compiled::run_at) computes other boxes.
//!
//! ## Params
//!
//! A Param has a value when the pipeline is scheduled, and can be set again before any run. Kernels
//! are not recompiled for that, unless a size depends on the Param.
//!
//! ```
//! use warploom::prelude::*;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let x = vars!(x);
//! let (input, gain) = (Input::f32("input", 1), Param::f32("gain"));
//! let pipeline = Pipeline::new("louder", [func("louder", x, &gain * input.at(x))])?;
//! let samples = Buffer::from_vec(Region::of_extents(&[3]), vec![1.0f32, 2.0, 3.0])?;
//! let sizes = [&samples].realisation(&pipeline)?.param("gain", 2.0f32);
//!
//! let device = Device::preset("h200")?;
//! let mut louder = pipeline.autoschedule(&device, &sizes)?.compile_for(Backend::Simulator(device.clone()))?;
//! assert_eq!(louder.run(&[&samples])?[0].as_slice::<f32>(), Some([2.0, 4.0, 6.0].as_slice()));
//!
//! louder.set_param("gain", 0.5f32)?;
//! assert_eq!(louder.run(&[&samples])?[0].as_slice::<f32>(), Some([0.5, 1.0, 1.5].as_slice()));
//! assert!(louder.set_param("gian", 0.5f32).is_err());
//! # Ok(())
//! # }
//! ```
//!
//! ## Threads and streams
//!
//! Any number of threads may share a [`Compiled`](crate::Compiled): runs do not disturb each other,
//! and a clone has its own values of the Params. The kernels of the 16 most recent sizes are kept.
//! [`launch`](crate::Compiled::launch) takes a CUDA stream and device memory, and does not wait. It
//! can be captured into a CUDA graph.
//!
//! ## Without this library
//!
//! `warploom compile mine.json -o out` writes the same kernels as CUDA source, as machine code, and
//! with C code that launches them, for programs that do not contain Warploom. Next:
//! [tuning](super::_04_tuning).
