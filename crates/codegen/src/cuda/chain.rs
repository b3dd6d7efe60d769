//! How the kernels of a program follow each other, for launches that overlap.
//!
//! On devices that can, a runtime launches a kernel early: its blocks may be scheduled when all blocks of the kernel
//! before it have ended, although that launch is not complete yet (CUDA calls this programmatic dependent launch).
//! What that asks of the text:
//!
//! - A kernel that starts early waits, in all its threads and before it touches memory, until the
//!   kernel before it has ended. That one waited too, or started when all before it had ended, so
//!   everything before it has ended as well. A kernel that needs nothing of the one before waits all
//!   the same, for those after it.
//! - Memory that kernels write changes during the wait. The compiler takes what is behind a `const __restrict__`
//!   pointer for constant while the kernel runs, and may move its loads ahead of the wait, whatever a clobber of memory
//!   says. So the wait gives a zero that the compiler does not know, and all pointers to such memory are advanced by it:
//!   no access can come before the wait that its address depends on. What the compiler knows of the pointers stays, and
//!   loads are still `ld.global.nc`. They load the right values, since no block of the kernel before runs when the
//!   wait has ended, and none of the kernel after it has begun. The assembler does know the zero, but moves no access
//!   across the wait itself.
//! - The zero counts bytes. If it counts elements, NVRTC 13.0 adds it to every index, in 64 bits.
//! - No kernel writes inputs, tables and Params. They may be read early.
//!
//! No kernel lets the next one start before its own blocks have ended (`griddepcontrol.launch_dependents`): blocks that
//! start on the multiprocessors that happen to be free are spread less evenly, and `ld.global.nc` would be wrong.
//!
//! The text is the same for all devices: older ones compile the wait to nothing. A program of one launch has none of it.

use warploom_lang::IdVec;

use super::prelude::Helper;
use crate::ir::{ArrayId, Kernel, KernelId, Launch, Program, Space};

/// What the wait for the previous kernel gives.
pub(super) const ORIGIN: &str = "origin";

/// What a kernel that waits calls.
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
