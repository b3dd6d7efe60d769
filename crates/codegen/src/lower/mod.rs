//! Lowers schedules to kernel IR. Each pass has one file; the table lists them in the order in which
//! they run.
//!
//! | pass | what it does |
//! | --- | --- |
//! | `context` | the inputs and tables that all passes share |
//! | `state` | the state of lowering for one kernel, which the passes below read and change |
//! | `place` | finds where every Func lives: inlined, in a buffer, in a block, in a thread |
//! | `versions` | builds a version of the block without guards and clamps, for interior blocks |
//! | `kernel` | lowers one kernel: its grid, then its nests and loops in order |
//! | `keep` | moves loop-invariant loads from shared memory before the loops of a block |
//! | `ahead` | software pipelining: starts the copies that later iterations of a loop read, and waits for them |
//! | `arrays` | allocates the arrays of blocks and threads, and finds them for accesses |
//! | `sizes` | turns numbers that follow from the sizes of a launch into scalars of the kernel |
//! | `layout` | computes element indices: 32 bits, or 64 bits for arrays that need them |
//! | `boxes` | turns footprints into boxes: lower bounds as expressions |
//! | `nest` | emits the thread and serial loops of one stage, with guards where needed |
//! | `nesting` | nests loops, lets and guards around statements |
//! | `slide` | splits a thread's tile into rows, which reuse the registers of earlier rows |
//! | `registers` | computes the Funcs that a thread holds in registers for its tile |
//! | `lanes` | computes registers that the lanes of a warp share, and exchanges them by shuffles |
//! | `shuffle` | reads registers of other threads of the warp, before the guards of a nest |
//! | `accumulate` | keeps points that a stage updates repeatedly in registers |
//! | `carry` | keeps the value that a scan wrote last in a register |
//! | `stage` | emits the stores of one point of a stage |
//! | `value` | lowers the expressions of a stage at one point and inlines Funcs |
//! | `vector` | combines the accesses of unrolled loops into vector loads, stores and copies |
//! | `replace` | substitutes values in statements, for `keep` and `vector` |
//! | `touch` | records the points that accesses touch, for tools that ask |
//! | `copy` | copies the requested part of outputs that are computed on a larger region |
//! | `error` | the errors of all passes |
//!
//! The [`builder`](crate::builder) simplifies expressions as they are built. Passes that take time
//! are `tracing` spans; `warploom -v` shows a table of them.

#![deny(clippy::cast_possible_truncation)]

mod accumulate;
mod ahead;
mod arrays;
mod boxes;
mod carry;
mod context;
mod copy;
mod error;
mod keep;
mod kernel;
mod lanes;
mod layout;
mod nest;
mod nesting;
mod place;
mod registers;
mod replace;
mod shuffle;
mod sizes;
mod slide;
mod stage;
mod state;
mod touch;
mod value;
mod vector;
mod versions;

use tracing::debug_span;
use warploom_plan::{Plan, Problem, Sequence, Stepped};
use warploom_schedule::{Item, LoopKind};

use crate::ir::{Launch, Program};
use crate::lower::context::Context;
use crate::lower::state::KernelLowering;
use crate::lower::touch::Kernels;
use crate::points::Points;

pub use context::Options;
pub use error::LowerError;

/// Lowers a problem under a schedule that was resolved against it.
///
/// # Errors
///
/// If a kernel would have too many expressions, exceeds a device limit, or would need more than 32
/// bits for an index that cannot have them. Lowering a plan that was not [checked](Problem::check)
/// may fail in other ways.
pub fn lower(problem: &Problem, plan: &Plan, options: Options) -> Result<Program, LowerError> {
    Ok(lowered(problem, plan, options, Kernels::default())?.0)
}

/// Like [`lower`], with the points that the accesses of the kernels touch.
///
/// # Errors
///
/// As for [`lower`].
pub fn lower_with_points(
    problem: &Problem,
    plan: &Plan,
    options: Options,
) -> Result<(Program, Points), LowerError> {
    let (program, points) = lowered(problem, plan, options, Kernels::with_points())?;
    Ok((program, points.unwrap_or_default()))
}

fn lowered(
    problem: &Problem,
    plan: &Plan,
    options: Options,
    mut kernels: Kernels,
) -> Result<(Program, Option<Points>), LowerError> {
    let _pass = debug_span!("lower").entered();
    let pipeline = problem.pipeline();
    let context = Context::new(problem, plan, options);
    let mut launches = launches(&context, plan.launches.body(), &mut kernels)?;
    for copy in &context.copies {
        launches.push(Launch::Kernel(kernels.push(copy.kernel(&context)?)));
    }
    let params = pipeline.params().iter().map(|(id, param)| (id, param.ty)).collect();
    let (name, sizes) = (pipeline.name().to_string(), context.program_sizes());
    let Kernels { kernels, points } = kernels;
    let (buffers, tables) = (context.buffers, pipeline.tables().clone());
    let program = Program { name, buffers, params, tables, kernels, launches, sizes };
    Ok((program, points))
}

/// Lowers kernels and launches them in order.
fn launches(
    context: &Context<'_>,
    body: Sequence<'_, warploom_plan::KernelId>,
    kernels: &mut Kernels,
) -> Result<Vec<Launch>, LowerError> {
    let mut made = Vec::new();
    for step in body {
        match step {
            Stepped::Run(id) if context.problem.is_idle(context.plan.kernels[id].kernel.stage) => {}
            Stepped::Run(id) => {
                let kernel = KernelLowering::new(context, id, kernels.new_points())?.lower()?;
                made.push(Launch::Kernel(kernels.push(kernel)));
            }
            Stepped::Loop(id, body) => {
                let body = launches(context, body, kernels)?;
                let tile = context.plan.loops[id].tile;
                let range = context.loop_range(Item::Stage(tile.stage), LoopKind::Reduction(tile.var));
                let whole = context.problem.domain(tile.stage, tile.var);
                let limit = context.steps(&range, whole.min, tile.size.of(whole.extent), 0);
                // The kernels inside have already checked that the loop's last iteration fits
                // in an index.
                match u32::try_from(context.plan.loops[id].count).unwrap_or(u32::MAX) {
                    1 => made.extend(body),
                    _ if body.is_empty() => {}
                    count => made.push(Launch::Loop { count, limit, body }),
                }
            }
        }
    }
    Ok(made)
}
