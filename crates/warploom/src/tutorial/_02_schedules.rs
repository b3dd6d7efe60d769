//! # Schedules: how it is computed
//!
//! The [first page](super::_01_first_pipeline) defined what a sharpened picture is. A *schedule*
//! defines how a GPU computes it: which Funcs are kernels, what a block of threads keeps in shared
//! memory, and which thread computes which point. A schedule changes the run time, never the
//! result.
//!
//! ## Automatic schedules
//!
//! [`autoschedule`](crate::Autoschedule) searches for a schedule. That takes about a second and
//! works on any machine. It needs to know only the device and the sizes. A Param that no size
//! depends on may have any value; the example sets one only because a
//! [`Realisation`](crate::lang::Realisation) has a place for it.
//!
//! ```
//! use warploom::prelude::*;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//!
//! let (x, y, c) = vars!(x, y, c);
//! let input = Input::f32("input", 3);
//! let edge = input.repeat_edge();
//! let gray = func("gray", (x, y), 0.299 * edge.at((x, y, 0)) + 0.587 * edge.at((x, y, 1)) + 0.114 * edge.at((x, y, 2)));
//! let r = rdom!(dx: (-1, 3), dy: (-1, 3));
//! let blur = func("blur", (x, y), sum(&r, gray.at((x + r.x, y + r.y))) / 9.0);
//! let detail = func("detail", (x, y), gray.at((x, y)) - blur.at((x, y)));
//! let strength = Param::f32("strength");
//! let sharp = func("sharp", (x, y, c), clamp(input.at((x, y, c)) + &strength * detail.at((x, y)), 0.0, 1.0));
//! let pipeline = Pipeline::new("sharpen", [sharp])?;
//!
//! // An H200, whether there is one or not.
//! let device = Device::preset("h200")?;
//! let picture = Region::of_extents(&[1536, 1024, 3]);
//! let sizes = Realisation::new(&pipeline)
//!     .input("input", picture.clone())
//!     .param("strength", 1.5f32)
//!     .output("sharp", picture);
//! let fast = pipeline.autoschedule(&device, &sizes)?;
//!
//! // What was decided, as text that can be read back and changed.
//! println!("{fast}");
//! assert!(fast.to_string().contains("kernel sharp"));
//!
//! // The same with sizes, memory and predicted times, stage by stage.
//! println!("{}", fast.nest());
//! assert!(fast.nest().contains("predicted"));
//! assert!(fast.predicted_us() > 1.0);
//! // How far off that may be: nine of ten pipelines lie in this range.
//! let range = fast.predicted_range().ok_or("an H200 is what the weights were trained on")?;
//! assert!(range.low_us < range.high_us);
//!
//! // The kernels themselves.
//! assert!(fast.cuda().contains("__global__"));
//! # Ok(())
//! # }
//! ```
//!
//! [`autoschedule_with`](crate::Autoschedule::autoschedule_with) takes
//! [`Options`](crate::search::Options): more samples, a wider beam, a seed, a time limit. The same
//! options find the same schedule on any machine.
//!
//! ## Schedules by hand
//!
//! A schedule is a tree with one line per decision. The schedule below makes a single kernel of the
//! whole pipeline. Each block computes 64 x 16 pixels. First it computes the part of `gray` that
//! they need, including a halo of one pixel, into shared memory. Everything else is computed where
//! it is used.
//!
//! ```
//! use warploom::prelude::*;
//! use warploom::plan::Problem;
//! use warploom::schedule::Schedule;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (x, y, c) = vars!(x, y, c);
//! # let input = Input::f32("input", 3);
//! # let edge = input.repeat_edge();
//! # let gray = func("gray", (x, y), 0.299 * edge.at((x, y, 0)) + 0.587 * edge.at((x, y, 1)) + 0.114 * edge.at((x, y, 2)));
//! # let r = rdom!(dx: (-1, 3), dy: (-1, 3));
//! # let blur = func("blur", (x, y), sum(&r, gray.at((x + r.x, y + r.y))) / 9.0);
//! # let detail = func("detail", (x, y), gray.at((x, y)) - blur.at((x, y)));
//! # let strength = Param::f32("strength");
//! # let sharp = func("sharp", (x, y, c), clamp(input.at((x, y, c)) + &strength * detail.at((x, y)), 0.0, 1.0));
//! # let pipeline = Pipeline::new("sharpen", [sharp])?;
//! # let device = Device::preset("h200")?;
//! # let picture = Region::of_extents(&[1536, 1024, 3]);
//! # let sizes = Realisation::new(&pipeline).input("input", picture.clone()).param("strength", 1.5f32).output("sharp", picture);
//!
//! let text = "
//!     sharpen          inline input.repeat_edge, blur, detail
//!       kernel sharp   block x 64, y 16
//!         gray         flat                                          shared
//!         sharp        threads x 64, y 4  serial y 4, c all  unroll
//!           blur.sum0  registers
//! ";
//! let schedule = Schedule::parse(text, &pipeline)?;
//! let problem = Problem::new(&pipeline, &sizes, &device)?;
//! assert!(problem.check(&schedule).is_ok());
//! # Ok(())
//! # }
//! ```
//!
//! The names are those in the pipeline's listing (`println!("{pipeline}")`): `blur.sum0` is the
//! helper Func that `sum` made. It has updates, so it cannot be inlined; each thread keeps its
//! values in `registers`.
//!
//! ## Errors in schedules
//!
//! An unknown name, or a tile of a dimension that a Func does not have, is an error in the text and
//! is reported with its line. A tree that parses may still be illegal: `check` tests it against the
//! rules, at these sizes and on this device.
//!
//! ```
//! # use warploom::prelude::*;
//! # use warploom::plan::Problem;
//! # use warploom::schedule::Schedule;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (x, y) = vars!(x, y);
//! # let input = Input::f32("input", 2);
//! # let edge = input.repeat_edge();
//! # let gray = func("gray", (x, y), 0.5 * edge.at((x, y)));
//! # let sharp = func("sharp", (x, y), 2.0 * gray.at((x, y)) - gray.at((x + 1, y)));
//! # let pipeline = Pipeline::new("sharpen", [sharp])?;
//! # let device = Device::preset("h200")?;
//! # let sizes = size([1536, 1024]).realisation(&pipeline)?;
//! # let problem = Problem::new(&pipeline, &sizes, &device)?;
//! let mistyped = Schedule::parse("sharpen inline grey", &pipeline).unwrap_err().to_string();
//! assert!(mistyped.contains("grey") && mistyped.contains("gray"));
//!
//! // `gray` is computed in blocks of its own kernel, after the kernel that reads it.
//! let late = Schedule::parse(
//!     "sharpen        inline input.repeat_edge
//!        kernel sharp  block x 64, y 4  threads x 64, y 4
//!        kernel gray   block x 64, y 4  threads x 64, y 4",
//!     &pipeline,
//! )?;
//! let violations = problem.check(&late).unwrap_err();
//! assert!(violations[0].to_string().contains("`sharp` reads `gray`, which is computed later"));
//! # Ok(())
//! # }
//! ```
//!
//! A schedule that passes these rules cannot race, leave memory unwritten or need more resources
//! than the device has.
//!
//! ## Testing without a GPU
//!
//! The simulator runs the kernels of a schedule thread by thread and checks every memory access.
//! Its results are bit-identical to those of a checking build on a GPU.
//! [`Compiled`](crate::Compiled) is a pipeline with a schedule and a backend to run it on:
//!
//! ```
//! # use warploom::prelude::*;
//! # use warploom::schedule::Schedule;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (x, y) = vars!(x, y);
//! # let input = Input::f32("input", 2);
//! # let edge = input.repeat_edge();
//! # let gray = func("gray", (x, y), 0.5 * edge.at((x, y)));
//! # let sharp = func("sharp", (x, y), 2.0 * gray.at((x, y)) - gray.at((x + 1, y)));
//! # let pipeline = Pipeline::new("sharpen", [sharp])?;
//! # let device = Device::preset("h200")?;
//! # let text = "sharpen inline input.repeat_edge\n  kernel sharp block x 32, y 8\n    gray flat shared\n    sharp threads x 32, y 8";
//! # let schedule = Schedule::parse(text, &pipeline)?;
//! let image = Buffer::from_fn(Region::of_extents(&[100, 40]), |at| (at[0] * at[1] % 7) as f32)?;
//! let sizes = [&image].realisation(&pipeline)?;
//! let simulated = Compiled::new(pipeline.clone(), schedule, sizes, Backend::Simulator(device))?;
//! let out = simulated.run(&[&image])?;
//!
//! let expected = Evaluation::new(&pipeline).input("input", &image).output("sharp", image.region().clone()).run()?;
//! assert_eq!(out[0].as_slice::<f32>(), expected[0].as_slice::<f32>());
//! # Ok(())
//! # }
//! ```
//!
//! The command-line program does all of this for files: `warploom explain`, `warploom sim`, and
//! `warploom compile mine.json` for a file written by
//! [`Pipeline::to_json`](crate::lang::Pipeline::to_json).
//!
//! [`schedule`](crate::schedule) describes the text form;
//! [`ScheduleBuilder`](crate::schedule::ScheduleBuilder) builds the same tree in Rust.
//! Next: [on the GPU](super::_03_on_the_gpu).
