//! How the kernels of a program follow each other, for launches that overlap.
//!
//! A device with programmatic dependent launch can start a kernel early: its blocks may be scheduled when all blocks of
//! the kernel before it have ended, although that launch is not complete yet. Consequences for the text:
//!
//! - A kernel that starts early waits, in all its threads and before it accesses memory, until the kernel before it has
//!   ended. That kernel waited too, or started when all earlier work had ended, so everything before it has ended as
//!   well. A kernel that does not depend on its predecessor waits all the same, for the kernels after it.
//! - Memory that kernels write changes during the wait. The compiler assumes that memory behind a `const __restrict__`
//!   pointer is constant while the kernel runs, and may hoist its loads above the wait, even across a memory clobber.
//!   So the wait returns a zero that is opaque to the compiler, and all pointers to such memory are advanced by it: an
//!   access whose address depends on the wait cannot be moved before it. Other facts about the pointers are preserved,
//!   and loads are still `ld.global.nc`. They load the right values, since no block of the kernel before runs when the
//!   wait has ended, and no block of the kernel after it has begun. The assembler does know the zero, but moves no
//!   access across the wait itself.
//! - The zero counts bytes. Counted in elements, NVRTC 13.0 would add it to every index, in 64 bits.
//! - No kernel writes inputs, tables and Params. They may be read early.
//!
//! No kernel triggers the next one before its own blocks have ended (`griddepcontrol.launch_dependents`): blocks that
//! start on whichever multiprocessors are free are spread less evenly, and `ld.global.nc` would be wrong.
//!
//! The text is the same for all devices: older ones compile the wait to nothing. A program of one launch has no waits.

use warploom_lang::IdVec;

use super::prelude::Helper;
use crate::ir::{ArrayId, Kernel, KernelId, Launch, Program, Space};

/// The name of the zero that the wait returns.
pub(super) const ORIGIN: &str = "origin";

/// The helpers that a kernel with a wait calls.
pub(super) const HELPERS: [Helper; 2] = [Helper::AwaitPrevious, Helper::After];

/// For every kernel, whether a launch of it follows another launch, so that it may start early and has to wait.
pub(super) fn waiting(program: &Program) -> IdVec<KernelId, bool> {
    let mut waiting = program.kernels.values().map(|_| false).collect();
    follow(&program.launches, &mut false, &mut waiting);
    waiting
}

/// Marks the kernels that follow a launch. `any` says whether there was one.
fn follow(launches: &[Launch], any: &mut bool, waiting: &mut IdVec<KernelId, bool>) {
    for launch in launches {
        match launch {
            Launch::Kernel(kernel) => {
                waiting[*kernel] |= *any;
                *any = true;
            }
            // The second iteration follows the first, and all others are like it.
            Launch::Loop { count, body, .. } => (0..2.min(*count)).for_each(|_| follow(body, any, waiting)),
        }
    }
}

/// The first lines of a kernel that waits, whose arrays have these names.
pub(super) fn beginning(program: &Program, kernel: &Kernel, names: &IdVec<ArrayId, String>) -> Vec<String> {
    let [wait, after] = HELPERS.map(Helper::name);
    let wait = format!("const unsigned long long {ORIGIN} = {wait}();");
    let changing = kernel.arrays.iter().filter(|(_, array)| changes(program, array.space));
    let pointers = changing.map(|(id, _)| {
        let name = &names[id];
        format!("{name} = {after}({name}, {ORIGIN});")
    });
    std::iter::once(wait).chain(pointers).collect()
}

/// Whether an array is memory that a kernel writes.
fn changes(program: &Program, space: Space) -> bool {
    matches!(space, Space::Global(buffer) if !program.buffers[buffer].role.is_constant())
}
