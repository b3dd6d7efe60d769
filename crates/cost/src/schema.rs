//! The features of a stage: their names, units and meaning, in a fixed order.
//!
//! The network reads those that `network/basis.rs` lists; others can be added without new weights.

/// A feature's entry in the schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feature {
    /// The name of the field in `StageFeatures`.
    pub name: &'static str,
    /// The unit, such as `bytes` or `ratio`.
    pub unit: &'static str,
}

macro_rules! features {
    ($($(#[$doc:meta])* $name:ident $unit:literal;)*) => {
        /// The features of one stage of a kernel. Counts per block are those of a full block. Totals are over the
        /// whole run, including loops around the kernel. A feature that does not apply is 0.
        #[derive(Clone, Copy, PartialEq, Debug, Default)]
        pub struct StageFeatures {
            $($(#[$doc])* pub $name: f64,)*
        }

        /// All features, in the order of `StageFeatures::values`.
        pub const FEATURES: &[Feature] = &[$(Feature { name: stringify!($name), unit: $unit }),*];

        impl StageFeatures {
            /// The number of features.
            pub const COUNT: usize = FEATURES.len();

            /// The values, in the order of `FEATURES`.
            pub fn values(&self) -> [f64; StageFeatures::COUNT] {
                [$(self.$name),*]
            }
        }
    };
}

features! {
    // ---- How often the stage runs, and how much it computes each time.
    /// How often its array is allocated.
    num_realizations "count";
    /// How often its nest runs.
    num_productions "count";
    /// Points computed per allocation of its array.
    points_computed_per_realization "points";
    /// Points computed per run of its nest.
    points_computed_per_production "points";
    /// Points that one thread computes per run of the nest, including reduction variables.
    points_computed_per_thread "points";
    /// Points computed in total.
    points_computed_total "points";
    /// Points that it would compute at root, without redundancy.
    points_computed_minimum "points";
    /// Evaluations of an inlined Func, in total.
    inlined_calls "count";
    /// Points of a thread's innermost tile, including reduction variables.
    innermost_loop_extent "points";
    /// The same without reduction variables.
    innermost_pure_loop_extent "points";
    /// Points of a thread that are unrolled.
    unrolled_loop_extent "points";

    // ---- Parallelism.
    /// Blocks of the kernel if this is the kernel's own stage, otherwise 1.
    inner_parallelism "blocks";
    /// Blocks around the stage if it is not the kernel's own stage, otherwise 1.
    outer_parallelism "blocks";
    /// Blocks per launch.
    num_blocks "blocks";
    /// Warps per block.
    num_warps_per_block "warps";
    /// Threads of a block that compute points of this stage.
    num_threads_per_block "threads";
    /// Those threads as a fraction of the maximum per block.
    block_occupancy "ratio";
    /// Warps with at least one of those threads.
    num_active_warps_per_block "warps";
    /// Threads with work as a fraction of the lanes of active warps, over all iterations of the block.
    warp_lane_utilization "ratio";
    /// Idle lanes of active warps as a fraction of the maximum number of threads per block.
    idle_lane_wastage "ratio";

    // ---- Bytes at each level.
    /// Bytes of its array, per allocation.
    bytes_at_realization "bytes";
    /// Bytes computed per run of its nest.
    bytes_at_production "bytes";
    /// Bytes at root.
    bytes_at_root "bytes";
    /// Bytes of its array along the fastest dimension.
    innermost_bytes_at_realization "bytes";
    /// Bytes computed along the fastest dimension per run of its nest.
    innermost_bytes_at_production "bytes";
    /// Bytes at root along the fastest dimension.
    innermost_bytes_at_root "bytes";
    /// Bytes of global memory that a block writes.
    global_bytes_at_task "bytes";
    /// Bytes of shared memory that a block writes.
    shared_bytes_at_task "bytes";
    /// Bytes of registers that a thread holds.
    register_bytes_at_task "bytes";
    /// Bytes of global memory that a block writes along the fastest dimension.
    global_innermost_bytes_at_task "bytes";
    /// Bytes of shared memory that a block writes along the fastest dimension.
    shared_innermost_bytes_at_task "bytes";
    /// Bytes of registers that a thread holds along the fastest dimension.
    register_innermost_bytes_at_task "bytes";

    // ---- Reads.
    /// Distinct bytes of global memory that a run of its nest reads.
    unique_global_bytes_read_per_realization "bytes";
    /// Distinct bytes of shared memory that a run of its nest reads.
    unique_shared_bytes_read_per_realization "bytes";
    /// Distinct bytes of per-thread memory that a run of its nest reads.
    unique_register_bytes_read_per_realization "bytes";
    /// Contiguous runs of those bytes.
    unique_global_lines_read_per_realization "lines";
    /// Contiguous runs of those bytes.
    unique_shared_lines_read_per_realization "lines";
    /// Contiguous runs of those bytes.
    unique_register_lines_read_per_realization "lines";
    /// Distinct bytes of global memory that a thread reads for its tile.
    unique_global_bytes_read_per_thread "bytes";
    /// Distinct bytes of shared memory that a thread reads for its tile.
    unique_shared_bytes_read_per_thread "bytes";
    /// Distinct bytes of per-thread memory that a thread reads for its tile.
    unique_register_bytes_read_per_thread "bytes";
    /// Contiguous runs of those bytes.
    unique_global_lines_read_per_thread "lines";
    /// Contiguous runs of those bytes.
    unique_shared_lines_read_per_thread "lines";
    /// Contiguous runs of those bytes.
    unique_register_lines_read_per_thread "lines";
    /// Bytes of the arrays in global memory that it reads.
    global_allocation_bytes_read_per_realization "bytes";
    /// Bytes of the arrays in shared memory that it reads.
    shared_allocation_bytes_read_per_realization "bytes";
    /// Bytes of the per-thread arrays that it reads.
    register_allocation_bytes_read_per_realization "bytes";
    /// Bytes that one point reads, counting each distinct access once.
    unique_bytes_read_per_point "bytes";
    /// Distinct accesses of one point.
    unique_lines_read_per_point "lines";
    /// Distinct bytes of global memory that a block reads for this stage.
    unique_bytes_read_per_task "bytes";
    /// Contiguous runs of those bytes.
    unique_lines_read_per_task "lines";

    // ---- Working sets.
    /// Bytes of all arrays that are stored inside its nest.
    working_set "bytes";
    /// Bytes of all arrays that are live in the block.
    working_set_at_task "bytes";
    /// Bytes of all arrays that are live where its nest runs.
    working_set_at_production "bytes";
    /// Bytes of all arrays that are live where its array is.
    working_set_at_realization "bytes";
    /// Bytes that a thread holds while it runs the nest.
    working_set_at_thread "bytes";

    // ---- Memory transactions of a full block, as issued per point.
    /// Warp-wide loads from global memory.
    global_load_requests_per_block "requests";
    /// Sectors that those requests touch.
    num_global_mem_loads_per_block "sectors";
    /// Warp-wide stores to global memory.
    global_store_requests_per_block "requests";
    /// Sectors that those requests touch.
    num_global_mem_stores_per_block "sectors";
    /// Warp-wide loads from shared memory.
    shared_load_requests_per_block "requests";
    /// Wavefronts that those requests need.
    num_shared_mem_loads_per_block "wavefronts";
    /// Warp-wide stores to shared memory.
    shared_store_requests_per_block "requests";
    /// Wavefronts that those requests need.
    num_shared_mem_stores_per_block "wavefronts";
    /// The used fraction of the bytes that loads from global memory move; 1 without loads.
    global_load_efficiency "ratio";
    /// The used fraction of the bytes that stores to global memory move; 1 without stores.
    global_store_efficiency "ratio";
    /// The used fraction of the bytes that loads from shared memory move; 1 without loads.
    shared_load_efficiency "ratio";
    /// The used fraction of the bytes that stores to shared memory move; 1 without stores.
    shared_store_efficiency "ratio";

    // ---- The same after the compiler has merged equal loads of unrolled points and hoisted
    // ---- loop-invariant loads.
    /// Warp-wide loads from global memory.
    merged_global_load_requests_per_block "requests";
    /// Sectors that those requests touch.
    merged_global_loads_per_block "sectors";
    /// Warp-wide loads from shared memory.
    merged_shared_load_requests_per_block "requests";
    /// Wavefronts that those requests need.
    merged_shared_loads_per_block "wavefronts";
    /// Warp-wide loads and stores of per-thread arrays that cannot be in registers.
    local_requests_per_block "requests";

    // ---- Atomics of a full block.
    /// Warp-wide atomics on shared or global memory.
    atomic_requests_per_block "requests";
    /// Wavefronts of atomics on shared memory. Threads of a warp that update one element take turns.
    shared_atomics_per_block "wavefronts";
    /// Elements of global memory that atomics update, counted each time.
    global_atomics_per_block "updates";
    /// Elements of the array in global memory that atomics update.
    global_atomic_targets "elements";

    // ---- Asynchronous copies.
    /// Slices of a copy that exist at once, because iterations copy ahead; 0 for everything else.
    copied_slices "slices";

    // ---- Occupancy.
    /// Shared memory of a block as a fraction of the maximum per block.
    shared_mem_occupancy "ratio";
    /// Blocks that fit into the shared memory of an SM, as a fraction of the maximum per SM.
    shared_mem_block_limit_factor "ratio";
    /// Resident warps of an SM as a fraction of the maximum, limited by threads, registers, shared
    /// memory and the number of blocks.
    max_warp_occupancy "ratio";
    /// Resident blocks of an SM as a fraction of the maximum.
    max_block_occupancy "ratio";
    /// Estimated registers per thread.
    registers_per_thread "registers";
    /// Waves per launch: how often all SMs are filled with blocks.
    num_waves "waves";
    /// Idle block slots of the last wave as a fraction of the slots of all waves.
    tail_wastage "ratio";
    /// Launches of the kernel.
    num_launches "launches";
    /// Distinct bytes of global memory that one launch of the kernel touches, which the L2 cache
    /// would have to hold.
    l2_footprint "bytes";
    /// Barriers that a block executes.
    num_barriers_per_block "barriers";
    /// Expression nodes of the stage's code after unrolling; inlined Funcs have their own rows.
    code_nodes "nodes";

    // ---- Total arithmetic of the stage's own expressions, by functional unit.
    /// Additions, subtractions and negations of floats.
    f32_add "operations";
    /// Multiplications of floats.
    f32_mul "operations";
    /// Divisions and remainders of floats.
    f32_div "operations";
    /// Square roots.
    f32_sqrt "operations";
    /// Exponentials, logarithms, powers and trigonometric functions.
    f32_special "operations";
    /// Comparisons, minima and maxima of floats.
    f32_compare "operations";
    /// Conversions between floats and integers, and rounding.
    convert "operations";
    /// Selections by a condition.
    select "operations";
    /// Additions, logic operations and shifts of integers, including the indices of accesses.
    int_add "operations";
    /// Multiplications of integers.
    int_mul "operations";
    /// Divisions and remainders of integers.
    int_div "operations";
    /// Comparisons, minima and maxima of integers.
    int_compare "operations";
    /// Operations that compute a thread's point and whether it exists: divisions of a flat loop,
    /// guards.
    index_operations "operations";
    /// The Strahler number of the definition's expression tree.
    expr_branching "levels";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_distinct_and_values_follow_their_order() {
        let names: BTreeSet<&str> = FEATURES.iter().map(|feature| feature.name).collect();
        assert_eq!(names.len(), StageFeatures::COUNT);
        let features =
            StageFeatures { num_productions: 7.0, expr_branching: 3.0, ..StageFeatures::default() };
        assert_eq!(features.values()[1], 7.0);
        assert_eq!(features.values()[StageFeatures::COUNT - 1], 3.0);
        assert_eq!(FEATURES[1].name, "num_productions");
    }
}
