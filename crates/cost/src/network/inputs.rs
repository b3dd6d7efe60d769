//! What the network is given.

use warploom_target::Device;

use super::basis::{COLUMNS, columns};
use super::elementary::{exp, ln, ln_1p};
use crate::analytic::{Analytic, Profile};
use crate::kernel::{KernelFeatures, NewDecisions, StageRow};

/// Numbers of a row.
pub(super) const ROW_INPUTS: usize = COLUMNS.len();

/// Numbers of a kernel.
pub(super) const KERNEL_INPUTS: usize = KERNEL_NAMES.len();

/// Parts of a kernel's time: launch, DRAM, L2, SMs, latency.
pub(super) const PARTS: usize = 5;

/// The place of the SMs among them.
pub(super) const SMS: usize = 3;

/// No part takes less, microseconds: so that each has a logarithm.
const LEAST_PART: f64 = 1e-4;

/// What the numbers of a kernel are, in their order: `ln` is the logarithm, `ln1p` that of one more.
pub(super) const KERNEL_NAMES: [&str; 32] = [
    "ln threads",
    "ln blocks",
    "ln waves",
    "waves rounded up over waves, ln",
    "ln registers",
    "ln1p local bytes",
    "ln1p shared bytes",
    "ln resident blocks",
    "resident warps, share",
    "ln1p barriers",
    "share of cut blocks",
    "ln launches",
    "ln1p read bytes",
    "ln1p written bytes",
    "ln1p nodes",
    "ln rows",
    "ln nests",
    "ln dram",
    "ln l2",
    "ln sm",
    "ln latency",
    "ln of all but the launch",
    "share of dram",
    "share of l2",
    "share of sm",
    "share of latency",
    "issue over busy",
    "float over busy",
    "integer over busy",
    "special over busy",
    "memory over busy",
    "nests apart over together, ln",
];

/// What the network is given for a kernel besides its rows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct KernelInputs {
    /// Launch, DRAM, L2, SMs and latency of one launch, as the [analytic model](Analytic) predicts them, microseconds.
    pub parts: [f32; PARTS],
    /// How often it is launched.
    pub launches: f32,
    /// Numbers that say what kind of kernel it is.
    pub numbers: [f32; KERNEL_INPUTS],
    /// Decisions that the weights must know, or nothing is corrected.
    pub decisions: NewDecisions,
    /// Blocks that run on an SM at once.
    pub(super) resident: f64,
}

/// What the network is given for a row of a kernel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RowInputs {
    /// `ln(1 + x)` of the features that the network reads.
    pub numbers: [f32; ROW_INPUTS],
    /// How much it counts among the rows of its kernel: clocks that the analytic model predicts for it.
    pub weight: f32,
}

impl KernelInputs {
    /// Those of a kernel.
    pub fn new(analytic: &Analytic, kernel: &KernelFeatures) -> KernelInputs {
        let profile = analytic.profile(kernel);
        let parts = profile.parts;
        let parts = [parts.launch, parts.dram, parts.l2, parts.sm, parts.latency];
        let parts = parts.map(|part| if part > LEAST_PART { part.min(1e25) } else { LEAST_PART });
        KernelInputs {
            parts: parts.map(|part| part as f32),
            launches: finite(kernel.launches),
            numbers: numbers(analytic, kernel, &profile, &parts),
            decisions: kernel.decisions,
            resident: profile.resident,
        }
    }

    /// Those of a row of the kernel.
    pub fn row(&self, analytic: &Analytic, kernel: &KernelFeatures, row: &StageRow) -> RowInputs {
        let clocks = analytic.row_clocks(kernel, &row.features, self.resident);
        // A row that does nothing still says what the kernel is, if all do nothing.
        RowInputs { numbers: ln_1p(&columns(&row.features)), weight: finite(clocks.max(1e-6)) }
    }
}

fn numbers(
    analytic: &Analytic,
    kernel: &KernelFeatures,
    profile: &Profile,
    parts: &[f64; PARTS],
) -> [f32; KERNEL_INPUTS] {
    let device = analytic.device();
    let resident = profile.resident;
    let waves = (kernel.blocks / (f64::from(device.sms) * resident)).max(1e-9);
    let pipes = &profile.whole.total;
    let longest = pipes.longest().max(1e-9);
    let nests = kernel.rows.chunk_by(|one, next| one.nest == next.nest).count();
    let [_, dram, l2, sm, latency] = *parts;
    let [
        threads,
        blocks,
        ln_waves,
        rounded,
        registers,
        blocks_at_once,
        launches,
        rows,
        nests,
        apart,
        times @ ..,
    ] = ln(&[
        f64::from(kernel.threads),
        kernel.blocks,
        waves,
        waves.ceil() / waves,
        f64::from(kernel.registers),
        resident,
        kernel.launches,
        kernel.rows.len() as f64,
        nests as f64,
        profile.whole.apart.max(1e-9) / longest,
        dram,
        l2,
        sm,
        latency,
    ]);
    let [local, shared, barriers, read, written, nodes] = ln_1p(&[
        kernel.local_bytes,
        f64::from(kernel.shared_bytes),
        kernel.barriers,
        kernel.read_bytes,
        kernel.written_bytes,
        kernel.nodes,
    ]);
    let (shares, together) = shares(&times, analytic.constants().overlap as f32);
    let of_longest = |pipe: f64| finite(pipe / longest);
    let warps = finite(resident_warps(device, kernel.threads, resident));
    [
        threads,
        blocks,
        ln_waves,
        rounded,
        registers,
        local,
        shared,
        blocks_at_once,
        warps,
        barriers,
        finite(kernel.cut_blocks),
        launches,
        read,
        written,
        nodes,
        rows,
        nests,
        times[0],
        times[1],
        times[2],
        times[3],
        together,
        shares[0],
        shares[1],
        shares[2],
        shares[3],
        of_longest(pipes.issue),
        of_longest(pipes.float),
        of_longest(pipes.integer),
        of_longest(pipes.special),
        of_longest(pipes.memory),
        apart,
    ]
}

/// From logarithms of times: the share that each has in how long they take together, and the logarithm of that.
pub(super) fn shares<const COUNT: usize>(times: &[f32; COUNT], overlap: f32) -> ([f32; COUNT], f32) {
    let largest = times.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers = exp(&times.map(|time| overlap * (time - largest)));
    let sum: f32 = powers.iter().sum();
    let [of_sum] = ln(&[f64::from(sum)]);
    (powers.map(|power| power / sum), largest + of_sum / overlap)
}

/// Warps that run on an SM at once, as a share of the most there can be.
fn resident_warps(device: &Device, threads: u32, resident: f64) -> f64 {
    let warps = f64::from(threads.div_ceil(device.threads.warp.max(1)));
    resident * warps / f64::from(device.threads.warps_per_sm.max(1))
}

/// A number that can be multiplied with weights.
fn finite(value: f64) -> f32 {
    if value.is_nan() { 0.0 } else { value.clamp(-1e30, 1e30) as f32 }
}
