//! The features of a stage: their names, units and meaning, in a fixed order.
//!
//! The network reads those that `network/basis.rs` lists; others can be added without new weights.

/// A feature's entry in the schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feature {
    /// Its name.
    pub name: &'static str,
    /// What it counts.
    pub unit: &'static str,
}

macro_rules! features {
    ($($(#[$doc:meta])* $name:ident $unit:literal;)*) => {
        /// What one stage of a kernel does, in numbers. All counts of a block are those of a full one; all totals are over
        /// the whole run, loops around the kernel included. What does not apply is 0.
        #[derive(Clone, Copy, PartialEq, Debug, Default)]
        pub struct StageFeatures {
            $($(#[$doc])* pub $name: f64,)*
        }

        /// The features in order.
        pub const FEATURES: &[Feature] = &[$(Feature { name: stringify!($name), unit: $unit }),*];

        impl StageFeatures {
            /// Number of features.
            pub const COUNT: usize = FEATURES.len();

            /// The values in order.
            pub fn values(&self) -> [f64; StageFeatures::COUNT] {
                [$(self.$name),*]
            }
        }
    };
}

features! {
    // ---- How often, and how much at a time.
    /// How often its array comes into being.
    num_realizations "count";
    /// How often its nest runs.
    num_productions "count";
    /// Points computed each time its array comes into being.
    points_computed_per_realization "points";
    /// Points computed each time its nest runs.
    points_computed_per_production "points";
    /// Points that one thread computes each time the nest runs, reduction variables included.
    points_computed_per_thread "points";
    /// Points computed in all.
    points_computed_total "points";
    /// Points it would compute at root.
    points_computed_minimum "points";
    /// Evaluations of an inlined Func, in all.
    inlined_calls "count";
    /// Points of a thread's innermost tile, reduction variables included.
    innermost_loop_extent "points";
    /// The same without reduction variables.
    innermost_pure_loop_extent "points";
    /// Points of a thread that are written out one after the other.
    unrolled_loop_extent "points";

    // ---- Parallelism.
    /// Blocks of the kernel, if the stage is its own; otherwise 1.
    inner_parallelism "blocks";
    /// Blocks around the stage, if it is not the kernel's own; otherwise 1.
    outer_parallelism "blocks";
    /// Blocks of one launch.
    num_blocks "blocks";
    /// Warps of a block.
    num_warps_per_block "warps";
    /// Threads of a block that compute points of this stage.
    num_threads_per_block "threads";
    /// Those threads as a share of the most that a block may have.
    block_occupancy "ratio";
    /// Warps with at least one of those threads.
    num_active_warps_per_block "warps";
    /// Threads with work as a share of the lanes of active warps, over all turns that the block takes.
    warp_lane_utilization "ratio";
    /// Idle lanes of active warps as a share of the most threads that a block may have.
    idle_lane_wastage "ratio";

    // ---- Bytes at each level.
    /// Bytes of its array each time it comes into being.
    bytes_at_realization "bytes";
    /// Bytes computed each time its nest runs.
    bytes_at_production "bytes";
    /// Bytes at root.
    bytes_at_root "bytes";
    /// Bytes of its array along the fastest dimension.
    innermost_bytes_at_realization "bytes";
    /// Bytes computed along the fastest dimension each time its nest runs.
    innermost_bytes_at_production "bytes";
    /// Bytes at root along the fastest dimension.
    innermost_bytes_at_root "bytes";
    /// Bytes in global memory that a block writes.
    global_bytes_at_task "bytes";
    /// Bytes in shared memory that a block writes.
    shared_bytes_at_task "bytes";
    /// Bytes in registers that a thread holds.
    register_bytes_at_task "bytes";
    /// The same along the fastest dimension.
    global_innermost_bytes_at_task "bytes";
    /// The same along the fastest dimension.
    shared_innermost_bytes_at_task "bytes";
    /// The same along the fastest dimension.
    register_innermost_bytes_at_task "bytes";

    // ---- What it reads.
    /// Distinct bytes of global memory that a run of its nest reads.
    unique_global_bytes_read_per_realization "bytes";
    /// Distinct bytes of shared memory that a run of its nest reads.
    unique_shared_bytes_read_per_realization "bytes";
    /// Distinct bytes of a thread's own memory that a run of its nest reads.
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
    /// Distinct bytes of its own memory that a thread reads for its tile.
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
    /// Bytes of the thread's own arrays that it reads.
    register_allocation_bytes_read_per_realization "bytes";
    /// Bytes that one point reads, each distinct access once.
    unique_bytes_read_per_point "bytes";
    /// Distinct accesses of one point.
    unique_lines_read_per_point "lines";
    /// Distinct bytes of global memory that a block reads for this stage.
    unique_bytes_read_per_task "bytes";
    /// Contiguous runs of those bytes.
    unique_lines_read_per_task "lines";

    // ---- Working sets.
    /// Bytes of everything that is stored inside its nest.
    working_set "bytes";
    /// Bytes of everything that lives in the block.
    working_set_at_task "bytes";
    /// Bytes of everything that lives where its nest runs.
    working_set_at_production "bytes";
    /// Bytes of everything that lives where its array does.
    working_set_at_realization "bytes";
    /// Bytes of everything that a thread holds while it runs the nest.
    working_set_at_thread "bytes";

    // ---- Memory transactions of a full block, as issued point by point.
    /// Warp-wide loads from global memory.
    global_load_requests_per_block "requests";
    /// Sectors that those touch.
    num_global_mem_loads_per_block "sectors";
    /// Warp-wide stores to global memory.
    global_store_requests_per_block "requests";
    /// Sectors that those touch.
    num_global_mem_stores_per_block "sectors";
    /// Warp-wide loads from shared memory.
    shared_load_requests_per_block "requests";
    /// Wavefronts that those take.
    num_shared_mem_loads_per_block "wavefronts";
    /// Warp-wide stores to shared memory.
    shared_store_requests_per_block "requests";
    /// Wavefronts that those take.
    num_shared_mem_stores_per_block "wavefronts";
    /// Bytes used of the bytes that loads from global memory move; 1 without any.
    global_load_efficiency "ratio";
    /// Bytes used of the bytes that stores to global memory move; 1 without any.
    global_store_efficiency "ratio";
    /// Bytes used of the bytes that loads from shared memory move; 1 without any.
    shared_load_efficiency "ratio";
    /// Bytes used of the bytes that stores to shared memory move; 1 without any.
    shared_store_efficiency "ratio";

    // ---- The same once the compiler has merged equal loads of points that are written out, and lifted those that no inner
    // ---- loop moves.
    /// Warp-wide loads from global memory.
    merged_global_load_requests_per_block "requests";
    /// Sectors that those touch.
    merged_global_loads_per_block "sectors";
    /// Warp-wide loads from shared memory.
    merged_shared_load_requests_per_block "requests";
    /// Wavefronts that those take.
    merged_shared_loads_per_block "wavefronts";
    /// Warp-wide loads and stores of a thread's own arrays that cannot be registers.
    local_requests_per_block "requests";

    // ---- Occupancy.
    /// Shared memory of a block as a share of the most it may have.
    shared_mem_occupancy "ratio";
    /// Blocks that the shared memory of an SM holds, as a share of the most there can be.
    shared_mem_block_limit_factor "ratio";
    /// Resident warps of an SM as a share of the most there can be: threads, registers, shared memory and the number of
    /// blocks considered.
    max_warp_occupancy "ratio";
    /// Resident blocks of an SM as a share of the most there can be.
    max_block_occupancy "ratio";
    /// Registers of a thread, estimated.
    registers_per_thread "registers";
    /// Times that all SMs are filled with blocks, one launch.
    num_waves "waves";
    /// Idle SMs of the last wave as a share of all turns.
    tail_wastage "ratio";
    /// Launches of the kernel.
    num_launches "launches";
    /// Distinct bytes of global memory that one launch of the kernel touches: what the L2 cache would have to hold.
    l2_footprint "bytes";
    /// Barriers that a block passes.
    num_barriers_per_block "barriers";
    /// Nodes of the stage's text, unrolled loops written out; inlined Funcs have rows of their own.
    code_nodes "nodes";

    // ---- Arithmetic in all, by what computes it: the stage's own expressions.
    /// Sums, differences, negations of floats.
    f32_add "operations";
    /// Products of floats.
    f32_mul "operations";
    /// Quotients and remainders of floats.
    f32_div "operations";
    /// Square roots.
    f32_sqrt "operations";
    /// Exponentials, logarithms, powers, trigonometry.
    f32_special "operations";
    /// Comparisons, minima and maxima of floats.
    f32_compare "operations";
    /// Conversions between floats and integers, roundings.
    convert "operations";
    /// Choices by a condition.
    select "operations";
    /// Sums, logic, shifts of integers, indices of accesses included.
    int_add "operations";
    /// Products of integers.
    int_mul "operations";
    /// Quotients and remainders of integers.
    int_div "operations";
    /// Comparisons, minima and maxima of integers.
    int_compare "operations";
    /// Operations that find out which point a thread is at, and whether there is one: divisions of a flat loop, guards.
    index_operations "operations";
    /// Strahler number of the definition.
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
