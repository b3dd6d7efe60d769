//! What the network's coefficients are multiplied with.
//!
//! The predicted time of a row is the sum over all coefficients `c` of `c` times a quantity that follows from the
//! features. A coefficient of 1 is a picosecond.
//!
//! `points` is `points_computed_total`. `runs` is how often the nest runs (`num_productions`), `threads` how often
//! one of its threads does (`runs` times `num_threads_per_block`), `blocks` the blocks of all launches. `turns` is
//! `1 / (1 - tail_wastage)`: SMs without work take time as well. `whole waves` is the number of waves, rounded up,
//! over the same not rounded.
//!
//! | coefficient | times | part |
//! | --- | --- | --- |
//! | c0 | `num_shared_mem_loads_per_block` x blocks | shared loads |
//! | c1 | points x turns | compute |
//! | c2 | `num_global_mem_loads_per_block` x blocks | global loads |
//! | c3 | `inlined_calls` x turns: inlined rows only | compute |
//! | c4 | operations x whole waves: inlined rows only | compute |
//! | c5, c6 | `unique_global_lines_read_per_realization`, `.._bytes_..` x runs | global loads |
//! | c7 | `unique_register_bytes_read_per_thread` x threads | other |
//! | c8 | bytes that the kernel reads and writes x launches | kernel: memory |
//! | c9 | `working_set` | other |
//! | c10, c12 | `unique_bytes_read_per_point`, `unique_lines_read_per_point` x points | other |
//! | c11, c17 | `unique_shared_bytes_read_per_thread`, `.._lines_..` x threads | shared loads |
//! | c13, c18 | `unique_global_bytes_read_per_thread`, `.._lines_..` x threads | global loads |
//! | c14, c15 | `unique_bytes_read_per_task`, `unique_lines_read_per_task` x blocks | global loads |
//! | c16, c20 | `unique_shared_lines_read_per_realization`, `.._bytes_..` x runs | shared loads |
//! | c19 | `points_computed_per_thread` x threads / `warp_lane_utilization` x turns | compute |
//! | c21 | `num_global_mem_stores_per_block` / `global_store_efficiency` x blocks | stores |
//! | c22 | points / `global_innermost_bytes_at_task`, if it writes global memory | stores |
//! | c23 | operations x whole waves | compute |
//! | c24 | `num_realizations` | other |
//! | c25 | launches x 10^6: microseconds | kernel: launches |
//! | c26 | blocks | kernel: blocks |
//! | c27 | `merged_shared_loads_per_block` x blocks | shared loads |
//! | c28 | `merged_global_loads_per_block` / `global_load_efficiency` x blocks | global loads |
//! | c29 | `num_shared_mem_stores_per_block` x blocks | stores |
//! | c30 | `local_requests_per_block` x blocks | other |
//! | c31 | barriers of a block x blocks | kernel: barriers |
//!
//! Inlined rows have nothing but c3 and c4. What belongs to the kernel counts once: with the coefficients of the last
//! stage that runs in it.

use crate::kernel::{KernelFeatures, RowSource, StageRow};
use crate::schema::StageFeatures;

/// Number of coefficients of a row.
pub(super) const COEFFICIENTS: usize = 32;

/// Larger quantities count as this one, and what is no number as 0, so that every sum is finite.
const LARGEST: f64 = 1e30;

/// Least lane utilisation and efficiency: one lane of a warp.
const LEAST_SHARE: f64 = 1.0 / 32.0;

/// Least share of SMs with work.
const LEAST_BUSY: f64 = 1.0 / 1024.0;

/// Least part of a wave.
const LEAST_WAVE: f64 = 1.0 / 65536.0;

/// The parts of a row's time, for people.
pub(super) const ROW_PARTS: [(&str, &[usize]); 5] = [
    ("compute", &[1, 3, 4, 19, 23]),
    ("global loads", &[2, 5, 6, 13, 14, 15, 18, 28]),
    ("shared loads", &[0, 11, 16, 17, 20, 27]),
    ("stores", &[21, 22, 29]),
    ("other", &[7, 9, 10, 12, 24, 30]),
];

/// The parts that belong to the kernel.
pub(super) const KERNEL_PARTS: [(&str, &[usize]); 4] =
    [("launches", &[25]), ("blocks", &[26]), ("barriers", &[31]), ("memory", &[8])];

/// The row whose coefficients count for what belongs to the kernel.
pub(super) fn speaker(kernel: &KernelFeatures) -> Option<usize> {
    kernel.rows.iter().rposition(|row| matches!(row.source, RowSource::Stage(_)))
}

/// What the coefficients of a row are multiplied with, in their order.
pub(super) fn quantities(kernel: &KernelFeatures, row: usize) -> [f64; COEFFICIENTS] {
    let StageRow { source, features, .. } = &kernel.rows[row];
    let mut quantities = [0.0; COEFFICIENTS];
    if let RowSource::Inlined(_) = source {
        quantities[3] = features.inlined_calls * turns(features);
        quantities[4] = operations(features) * whole_waves(features);
    } else {
        let blocks = kernel.blocks.max(1.0) * kernel.launches.max(1.0);
        compute(features, &mut quantities);
        loads(features, blocks, &mut quantities);
        stores(features, blocks, &mut quantities);
        if speaker(kernel) == Some(row) {
            whole_kernel(kernel, blocks, &mut quantities);
        }
    }
    quantities.map(|quantity| if quantity > 0.0 { quantity.min(LARGEST) } else { 0.0 })
}

fn compute(features: &StageFeatures, quantities: &mut [f64; COEFFICIENTS]) {
    let threads = features.num_productions * features.num_threads_per_block;
    let lanes = threads / share(features.warp_lane_utilization);
    quantities[1] = features.points_computed_total * turns(features);
    quantities[19] = features.points_computed_per_thread * lanes * turns(features);
    quantities[23] = operations(features) * whole_waves(features);
}

fn loads(features: &StageFeatures, blocks: f64, quantities: &mut [f64; COEFFICIENTS]) {
    let runs = features.num_productions;
    let threads = runs * features.num_threads_per_block;
    let points = features.points_computed_total;
    quantities[0] = features.num_shared_mem_loads_per_block * blocks;
    quantities[2] = features.num_global_mem_loads_per_block * blocks;
    quantities[5] = features.unique_global_lines_read_per_realization * runs;
    quantities[6] = features.unique_global_bytes_read_per_realization * runs;
    quantities[7] = features.unique_register_bytes_read_per_thread * threads;
    quantities[9] = features.working_set;
    quantities[10] = features.unique_bytes_read_per_point * points;
    quantities[11] = features.unique_shared_bytes_read_per_thread * threads;
    quantities[12] = features.unique_lines_read_per_point * points;
    quantities[13] = features.unique_global_bytes_read_per_thread * threads;
    quantities[14] = features.unique_bytes_read_per_task * blocks;
    quantities[15] = features.unique_lines_read_per_task * blocks;
    quantities[16] = features.unique_shared_lines_read_per_realization * runs;
    quantities[17] = features.unique_shared_lines_read_per_thread * threads;
    quantities[18] = features.unique_global_lines_read_per_thread * threads;
    quantities[20] = features.unique_shared_bytes_read_per_realization * runs;
    quantities[24] = features.num_realizations;
    quantities[27] = features.merged_shared_loads_per_block * blocks;
    quantities[28] = features.merged_global_loads_per_block / share(features.global_load_efficiency) * blocks;
    quantities[30] = features.local_requests_per_block * blocks;
}

fn stores(features: &StageFeatures, blocks: f64, quantities: &mut [f64; COEFFICIENTS]) {
    quantities[21] =
        features.num_global_mem_stores_per_block / share(features.global_store_efficiency) * blocks;
    if features.global_bytes_at_task > 0.0 {
        quantities[22] = features.points_computed_total / features.global_innermost_bytes_at_task.max(1.0);
    }
    quantities[29] = features.num_shared_mem_stores_per_block * blocks;
}

fn whole_kernel(kernel: &KernelFeatures, blocks: f64, quantities: &mut [f64; COEFFICIENTS]) {
    let launches = kernel.launches.max(1.0);
    quantities[8] = (kernel.read_bytes + kernel.written_bytes) * launches;
    quantities[25] = launches * 1e6;
    quantities[26] = blocks;
    quantities[31] = kernel.barriers * blocks;
}

/// A share that can be divided by.
fn share(share: f64) -> f64 {
    if share > LEAST_SHARE { share.min(1.0) } else { LEAST_SHARE }
}

fn turns(features: &StageFeatures) -> f64 {
    1.0 / (1.0 - features.tail_wastage.max(0.0)).max(LEAST_BUSY)
}

fn whole_waves(features: &StageFeatures) -> f64 {
    match features.num_waves {
        waves if waves > 0.0 && waves.is_finite() => waves.ceil() / waves.max(LEAST_WAVE),
        _ => 1.0,
    }
}

/// Arithmetic of all kinds; what a kind costs is for the coefficient to know.
fn operations(features: &StageFeatures) -> f64 {
    let floats = features.f32_add
        + features.f32_mul
        + features.f32_div
        + features.f32_sqrt
        + features.f32_special
        + features.f32_compare;
    let integers = features.int_add + features.int_mul + features.int_div + features.int_compare;
    floats + integers + features.convert + features.select
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use warploom_lang::Id;
    use warploom_schedule::StageId;

    use super::*;

    fn row(source: RowSource, features: StageFeatures) -> StageRow {
        StageRow { source, nest: 0, features }
    }

    #[test]
    fn every_coefficient_is_in_one_part() {
        let parts = ROW_PARTS.iter().chain(&KERNEL_PARTS);
        let all: Vec<usize> = parts.flat_map(|(_, coefficients)| coefficients.iter().copied()).collect();
        assert_eq!(all.len(), COEFFICIENTS);
        assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), (0..COEFFICIENTS).collect());
    }

    #[test]
    fn a_full_machine_pays_for_its_points_and_an_idle_one_for_more() {
        let busy = StageFeatures { points_computed_total: 600.0, num_waves: 2.0, ..StageFeatures::default() };
        let idle = StageFeatures { tail_wastage: 0.75, num_waves: 0.25, f32_add: 10.0, ..busy };
        let stage = RowSource::Stage(StageId::new(0));
        let rows = vec![row(stage, busy), row(stage, idle)];
        let kernel =
            KernelFeatures { blocks: 10.0, launches: 3.0, barriers: 2.0, rows, ..Default::default() };
        let (busy, idle) = (quantities(&kernel, 0), quantities(&kernel, 1));
        assert_eq!((busy[1], busy[23]), (600.0, 0.0));
        assert_eq!((idle[1], idle[23]), (2400.0, 40.0));
        // Only the last stage speaks for the kernel.
        assert_eq!((busy[25], busy[31]), (0.0, 0.0));
        assert_eq!((idle[25], idle[26], idle[31]), (3e6, 30.0, 60.0));
    }

    #[test]
    fn inlined_rows_compute_and_do_nothing_else() {
        let features = StageFeatures {
            inlined_calls: 7.0,
            int_add: 14.0,
            points_computed_total: 7.0,
            num_global_mem_loads_per_block: 9.0,
            working_set: 4.0,
            ..StageFeatures::default()
        };
        let inlined = row(RowSource::Inlined(StageId::new(0)), features);
        let kernel = KernelFeatures { rows: vec![inlined], ..Default::default() };
        let mut expected = [0.0; COEFFICIENTS];
        (expected[3], expected[4]) = (7.0, 14.0);
        assert_eq!(quantities(&kernel, 0), expected);
    }
}
