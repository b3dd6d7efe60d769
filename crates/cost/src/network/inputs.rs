//! The inputs of the network.

use warploom_target::Device;

use super::basis::{COLUMNS, columns};
use super::elementary::{exp, ln, ln_1p};
use crate::analytic::{Analytic, Profile};
use crate::kernel::{KernelFeatures, NewDecisions, StageRow};

/// Inputs per row.
pub(super) const ROW_INPUTS: usize = COLUMNS.len();

/// Inputs per kernel.
pub(super) const KERNEL_INPUTS: usize = KERNEL_NAMES.len();

/// Parts of a kernel's time: launch, DRAM, L2, SMs, latency.
pub(super) const PARTS: usize = 5;

/// The index of the SM part.
pub(super) const SMS: usize = 3;

/// The lower limit of every part in microseconds, so that each has a logarithm.
const LEAST_PART: f64 = 1e-4;

/// Names of the kernel inputs, in order. `ln` is the logarithm of a number, `ln1p` that of one plus
/// the number.
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

/// The inputs of the network for a kernel, without its rows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct KernelInputs {
    /// Launch, DRAM, L2, SMs and latency of one launch in microseconds, as the [analytic
    /// model](Analytic) predicts them.
    pub parts: [f32; PARTS],
    /// The number of launches.
    pub launches: f32,
    /// Numbers that characterise the kernel, before scaling.
    pub numbers: [f32; KERNEL_INPUTS],
    /// Decisions that the weights must know. If they do not know all of them, nothing is corrected.
    pub decisions: NewDecisions,
    /// Resident blocks per SM.
    pub(super) resident: f64,
}

/// The inputs of the network for a row of a kernel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RowInputs {
    /// `ln(1 + x)` of the features that the network reads.
    pub numbers: [f32; ROW_INPUTS],
    /// The weight of the row among the rows of its kernel: the clocks that the analytic model
    /// predicts for it.
    pub weight: f32,
}

impl KernelInputs {
    /// Computes the inputs of a kernel.
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

    /// Computes the inputs of a row of the kernel.
    pub fn row(&self, analytic: &Analytic, kernel: &KernelFeatures, row: &StageRow) -> RowInputs {
        let clocks = analytic.row_clocks(kernel, &row.features, self.resident);
        // The minimum keeps the weighted mean defined if all rows do nothing.
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

/// From logarithms of times: the share of each in their combined time, and the logarithm of that
/// time.
pub(super) fn shares<const COUNT: usize>(times: &[f32; COUNT], overlap: f32) -> ([f32; COUNT], f32) {
    let largest = times.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers = exp(&times.map(|time| overlap * (time - largest)));
    let sum: f32 = powers.iter().sum();
    let [of_sum] = ln(&[f64::from(sum)]);
    (powers.map(|power| power / sum), largest + of_sum / overlap)
}

/// Resident warps per SM, as a fraction of the device's limit.
fn resident_warps(device: &Device, threads: u32, resident: f64) -> f64 {
    let warps = f64::from(threads.div_ceil(device.threads.warp.max(1)));
    resident * warps / f64::from(device.threads.warps_per_sm.max(1))
}

/// Makes a number finite, so that it can be multiplied by weights.
fn finite(value: f64) -> f32 {
    if value.is_nan() { 0.0 } else { value.clamp(-1e30, 1e30) as f32 }
}
