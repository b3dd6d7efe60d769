//! Fuzzing: random pipelines under random or searched schedules, simulator against reference.
//!
//! [`fuzz()`] generates many [`Case`]s and checks each of them. A failing case is reduced by
//! [`reduce()`], which preserves the failure, and [saved](Case::save) to a self-contained file: the
//! pipeline, its sizes and Params, the schedule and the seed of the inputs. Any later version can
//! check such a file again. The files in `cases/` are bugs that were found and fixed, and tests
//! check all of them.
//!
//! ```
//! use warploom_fuzz::{Case, Failure, REDUCTION_TIME, Verdict, reduce};
//! use warploom_lang::*;
//! use warploom_plan::Problem;
//! use warploom_schedule::Schedule;
//! use warploom_target::Device;
//!
//! let x = vars!(x);
//! let input = Input::f32("input", 1);
//! let soft = func("soft", x, (input.at(x) + input.at(x + 1)) / 2.0);
//! let sharp = func("sharp", x, input.at(x) * 2.0 - soft.at(x));
//! let pipeline = Pipeline::new("example", [sharp])?;
//! let request = Realisation::new(&pipeline)
//!     .input("input", Region::of_extents(&[65]))
//!     .output("sharp", Region::of_extents(&[64]));
//! let device = Device::preset("h200")?;
//! let schedule = Problem::new(&pipeline, &request, &device)?.default_schedule();
//! let case = Case { pipeline, request, schedule, seed: 1 };
//!
//! assert_eq!(case.check(&device)?, Verdict::Passed);
//!
//! // A machine that cannot divide.
//! let broken = |case: &Case| match case.pipeline.to_string().contains('/') {
//!     true => Err(Failure::Device("no division".to_owned())),
//!     false => case.check(&device),
//! };
//! let failure = broken(&case).unwrap_err();
//! let small = reduce(case, failure, &broken, REDUCTION_TIME).case;
//! assert_eq!(small.pipeline.to_string(), "pipeline example\n  soft(x) = 0.0 / 0.0\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What counts as a failure
//!
//! | [`Failure`] | what happened |
//! | --- | --- |
//! | [`Illegal`](Failure::Illegal) | the legality check rejects a schedule that was generated to be legal |
//! | [`Unlowered`](Failure::Unlowered) | lowering rejects a legal schedule |
//! | [`Malformed`](Failure::Malformed) | lowering produces kernels that violate the rules of the kernel IR |
//! | [`Fault`](Failure::Fault) | the simulator detects an invalid operation: a race, a read of uninitialised memory, an out-of-bounds access |
//! | [`Wrong`](Failure::Wrong) | an output differs from the reference, compared bit for bit |
//! | [`Numeric`](Failure::Numeric) | only kernels built for speed deviate |
//! | [`Reference`](Failure::Reference) | the reference evaluator itself reads out of bounds |
//! | [`Device`](Failure::Device) | a GPU or its compiler rejects the kernels |
//! | [`Panic`](Failure::Panic) | any part panics |
//!
//! A case with nothing to check, for example because sizes do not fit or memory is insufficient, is
//! skipped for a [`Reason`]. A [`Summary`] counts them.
//!
//! # Mutants
//!
//! [`mutate()`] removes or alters each barrier and atomic of random kernels, to test that the checks above notice. A
//! mutant that escapes them has a [reason](Survival).
//!
//! # Damaged files
//!
//! [`Mutator`] damages files of any format, to test the code that reads them.

mod case;
mod check;
mod data;
mod driver;
mod dynamic;
mod file;
mod mutants;
mod mutate;
mod panics;
mod reduce;
mod skip;

pub use case::Case;
pub use check::{Difference, Failure, FailureKind, Run, Verdict};
pub use driver::{Checker, Found, Options, Progress, Scheduler, Skipped, Summary, fuzz, random_schedules};
pub use file::{CaseError, ContentError, Seen};
pub use mutants::{Fate, FoundKernel, Mutant, Mutated, MutatedKernel, Mutation, Survival, mutate};
pub use mutate::Mutator;
pub use panics::{catch, note_panic, panic_message};
pub use reduce::{REDUCTION_TIME, Reduced, reduce};
pub use skip::{Reason, Skip};
