//! # Tuning: the fastest schedule that was measured
//!
//! The cost model that guides the search is good, but not perfect. On a GPU, measuring the five
//! schedules with the best predictions takes a minute and usually finds a faster one; measuring all
//! night finds schedules that no model predicts. The command-line program does both
//! (`warploom tune mine.json --top 5`, `--iterations 20`). This page does it in Rust, and then uses
//! the result.
//!
//! ## In three lines
//!
//! ```standalone_crate
//! use warploom::prelude::*;
//! # use warploom::search::Options;
//! # use warploom::tune::worker::BenchOptions;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // Kernels are compiled and run in other processes of this very program: one that crashes or hangs costs a trial, no
//!     // more. So this comes first.
//!     warploom::worker_entry();
//!
//!     let (x, y) = vars!(x, y);
//!     let edge = Input::f32("input", 2).repeat_edge();
//!     let blur_x = func("blur_x", (x, y), (edge.at((x - 1, y)) + edge.at((x, y)) + edge.at((x + 1, y))) / 3.0);
//!     let blur = func("blur", (x, y), (blur_x.at((x, y - 1)) + blur_x.at((x, y)) + blur_x.at((x, y + 1))) / 3.0);
//!     let pipeline = Pipeline::new("blur", [blur])?;
//!     # let search = Options { samples: 4, beam: 4, passes: 2, ..Options::default() };
//!     # let bench = BenchOptions { fake: Some("fake".parse()?), ..BenchOptions::default() };
//!     # let made_up = Tuning { search: search.clone(), bench, ..Tuning::default() };
//!
//!     let tuning = Tuning { records: Some("tuning.db".into()), ..Tuning::default() };
//!     # let (tuning, device) = (made_up, Device::preset("h200")?);
//!     # let fast = pipeline.autoschedule_with(&device, size([300, 200]), &search)?;
//!     # if false {
//!     let fast = pipeline.autoschedule(&Device::detect_or("h200")?, size([300, 200]))?;
//!     # }
//!     let faster = fast.tune(&tuning)?;
//!     println!("{faster}{:?} us", faster.measured_us());
//!     # assert!(fast.measured_us().is_none() && faster.measured_us().is_some());
//!     Ok(())
//! }
//! ```
//!
//! The result is what `autoschedule` returns, with another schedule: it runs, exports and explains itself.
//!
//! ## In full
//!
//! Everything here runs on a [fake device](crate::tune::worker::Fake): it computes with the
//! reference evaluator and makes up the times, so that tuning can be tried, and tested, anywhere.
//! For a real GPU, leave out `fake`.
//!
//! ```standalone_crate
//! use std::sync::Arc;
//! use std::sync::atomic::AtomicBool;
//!
//! use warploom::check;
//! use warploom::prelude::*;
//! use warploom::search::Options;
//! use warploom::tune::autotune::{AutotuneOptions, autotune};
//! use warploom::tune::measure::Subject;
//! use warploom::tune::records::Records;
//! use warploom::tune::top::top;
//! use warploom::tune::tuning::{Event, Task};
//! use warploom::tune::worker::{BenchOptions, OpenBench};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     warploom::worker_entry();
//!
//!     let (x, y) = vars!(x, y);
//!     let edge = Input::f32("input", 2).repeat_edge();
//!     let blur_x = func("blur_x", (x, y), (edge.at((x - 1, y)) + edge.at((x, y)) + edge.at((x + 1, y))) / 3.0);
//!     let blur = func("blur", (x, y), (blur_x.at((x, y - 1)) + blur_x.at((x, y)) + blur_x.at((x, y + 1))) / 3.0);
//!     let sharp = func("sharp", (x, y), 2.0 * edge.at((x, y)) - blur.at((x, y)));
//!     let pipeline = Pipeline::new("sharpen", [sharp])?;
//!     let sizes = size([300, 200]).realisation(&pipeline)?;
//!
//!     let mut bench = OpenBench::open(&BenchOptions { fake: Some("fake".parse()?), ..BenchOptions::default() })?;
//!     let device = bench.device().clone();
//!     let model = warploom::model_for(&device).model;
//!     let task = Task {
//!         // Candidates, or the default schedule that they are compared with, are compared with the reference evaluator at a
//!         // small size...
//!         small: check::of_pipeline(&pipeline, &sizes, &device).map(Arc::new),
//!         // ...and timed, with noise for inputs, at the full one.
//!         subject: Arc::new(Subject::noise(pipeline.clone(), sizes.clone(), 1)),
//!         tolerance: None,
//!         model: &*model,
//!         search: Options { samples: 4, beam: 4, passes: 2, ..Options::default() },
//!         deadline: None,
//!         stop: &AtomicBool::new(false),
//!     };
//!
//!     // Every trial is recorded before the next begins. `Records::open(FILE)` outlives the program.
//!     let mut records = Records::in_memory()?;
//!     let mut observer = |event: &Event<'_>| {
//!         if let Event::Measured { trial, progress } = event {
//!             println!("{}/{}: {}", progress.done, progress.expected, trial.sample.status.kind());
//!         }
//!     };
//!
//!     // A minute: the best predicted, measured.
//!     let tuned = bench.with(|bench| top(&task, 3, bench, &mut records, &mut observer))?;
//!     let winner = tuned.winner.ok_or("nothing could be measured")?;
//!     println!("{}{:?} us", winner.trial.sample.schedule, winner.trial.time_us());
//!     assert!(winner.checked_at_full_size);
//!
//!     // A night: search, measure, repeat. What is recorded is not measured again.
//!     let night = AutotuneOptions { iterations: 2, samples: 4, ..AutotuneOptions::default() };
//!     let tuned = bench.with(|bench| autotune(&task, &night, bench, &mut records, None, &mut observer))?.tuned;
//!     let best = tuned.winner.ok_or("nothing could be measured")?.trial.time_us();
//!     assert!(best.is_some());
//!
//!     // From then on, in the program that uses it: the fastest schedule that is recorded for this pipeline, these sizes and
//!     // this device, without a search. Where nothing is recorded, the default schedule.
//!     let recorded = pipeline.autotuned_or_default(&device, &sizes, &records)?;
//!     assert_eq!(recorded.time_us(), best);
//!     let other = pipeline.autotuned_or_default(&device, size([64, 48]), &records)?;
//!     assert_eq!(other.time_us(), None);
//!
//!     // On a GPU this is `recorded.compile()?`.
//!     let image = Buffer::from_fn(Region::of_extents(&[300, 200]), |at| (at[0] % 7) as f32)?;
//!     let sharp = recorded.compile_for(Backend::Simulator(device))?.run(&[&image])?;
//!     assert_eq!(sharp[0].region(), image.region());
//!     Ok(())
//! }
//! ```
//!
//! ## What tuning does for you
//!
//! - Candidates are compiled on all cores and timed one at a time.
//! - A winner gives the default schedule's bits at the full size, and the default schedule gives
//!   the reference's bits at a small size. Outputs are poisoned before each run, so that a candidate
//!   cannot pass with results left over from another one.
//! - Candidates that spill registers are not run, and slow ones are not timed at length. The best
//!   few are timed again in turns at the end, so that noise does not pick the winner.
//! - Several programs may tune with one records file, on several GPUs. A program that was killed
//!   resumes where it stopped.
//! - Records of other versions of Warploom or NVRTC, of other sizes and of other GPUs are kept
//!   apart.
//!
//! `warploom records list`, `best` and `export` read the same file. `docs/tuning.md` in the
//! repository has the details, and `crates/warploom/examples/tune.rs` is a program to start from.
