//! What weights depend on: the features that the network reads, and the analytic model that it
//! corrects.
//!
//! A weights file contains a hash of each. Features and constants that are not listed here are not
//! hashed, so they can be added without new weights. They must not change the cost of a kernel that
//! has no [new decision](crate::NewDecisions).

use xxhash_rust::xxh3::xxh3_64;

use super::inputs::KERNEL_NAMES;
use super::{BOUND, LIMIT};
use crate::analytic::Constants;
use crate::schema::{FEATURES, Feature, StageFeatures};

/// Incremented whenever a feature that the network reads changes its meaning but not its name.
pub const SCHEMA_VERSION: u32 = 1;

macro_rules! columns {
    ($($name:ident)*) => {
        /// The features that the network reads, in the order of its inputs.
        pub(super) const COLUMNS: &[&str] = &[$(stringify!($name)),*];

        /// The values of those features.
        pub(super) fn columns(row: &StageFeatures) -> [f64; COLUMNS.len()] {
            [$(row.$name),*]
        }
    };
}

macro_rules! constants {
    ($($name:ident)*) => {
        /// The constants of the analytic model that the network corrects, as text.
        fn constants_text(constants: &Constants) -> String {
            let all = [$(format!("{}: {:?}", stringify!($name), constants.$name)),*];
            format!("Constants {{ {} }}", all.join(", "))
        }
    };
}

columns! {
    num_realizations num_productions points_computed_per_realization points_computed_per_production
    points_computed_per_thread points_computed_total points_computed_minimum inlined_calls
    innermost_loop_extent innermost_pure_loop_extent unrolled_loop_extent inner_parallelism outer_parallelism
    num_blocks num_warps_per_block num_threads_per_block block_occupancy num_active_warps_per_block
    warp_lane_utilization idle_lane_wastage bytes_at_realization bytes_at_production bytes_at_root
    innermost_bytes_at_realization innermost_bytes_at_production innermost_bytes_at_root global_bytes_at_task
    shared_bytes_at_task register_bytes_at_task global_innermost_bytes_at_task shared_innermost_bytes_at_task
    register_innermost_bytes_at_task unique_global_bytes_read_per_realization
    unique_shared_bytes_read_per_realization unique_register_bytes_read_per_realization
    unique_global_lines_read_per_realization unique_shared_lines_read_per_realization
    unique_register_lines_read_per_realization unique_global_bytes_read_per_thread
    unique_shared_bytes_read_per_thread unique_register_bytes_read_per_thread
    unique_global_lines_read_per_thread unique_shared_lines_read_per_thread
    unique_register_lines_read_per_thread global_allocation_bytes_read_per_realization
    shared_allocation_bytes_read_per_realization register_allocation_bytes_read_per_realization
    unique_bytes_read_per_point unique_lines_read_per_point unique_bytes_read_per_task
    unique_lines_read_per_task working_set working_set_at_task working_set_at_production
    working_set_at_realization working_set_at_thread global_load_requests_per_block
    num_global_mem_loads_per_block global_store_requests_per_block num_global_mem_stores_per_block
    shared_load_requests_per_block num_shared_mem_loads_per_block shared_store_requests_per_block
    num_shared_mem_stores_per_block global_load_efficiency global_store_efficiency shared_load_efficiency
    shared_store_efficiency merged_global_load_requests_per_block merged_global_loads_per_block
    merged_shared_load_requests_per_block merged_shared_loads_per_block local_requests_per_block
    shared_mem_occupancy shared_mem_block_limit_factor max_warp_occupancy max_block_occupancy
    registers_per_thread num_waves tail_wastage num_launches l2_footprint num_barriers_per_block code_nodes
    f32_add f32_mul f32_div f32_sqrt f32_special f32_compare convert select int_add int_mul int_div
    int_compare index_operations expr_branching
}

constants! {
    ramp_us global_latency shared_latency dependent_issue barrier access_overhead point_overhead
    overlapped_iterations loads_in_flight overlap l2_share
}

/// A hash of the features that the network reads: names, units and version. Weights must have the
/// same hash.
pub fn schema_hash() -> u64 {
    hash_of_columns(FEATURES)
}

fn hash_of_columns(features: &[Feature]) -> u64 {
    let mut text = SCHEMA_VERSION.to_string();
    for name in COLUMNS {
        let known = features.iter().find(|feature| feature.name == *name);
        let unit = known.expect("`columns` reads a feature of this name").unit;
        text.push_str(&format!(";{name}:{unit}"));
    }
    xxh3_64(text.as_bytes())
}

/// A hash of what the network corrects and how: its kernel inputs, its own constants, and those of
/// the analytic model.
pub(super) fn analytic_hash() -> u64 {
    hash_of_model(&Constants::default())
}

fn hash_of_model(constants: &Constants) -> u64 {
    let text = format!("{};{BOUND};{LIMIT};{}", KERNEL_NAMES.join(";"), constants_text(constants));
    xxh3_64(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_features_and_their_order_do_not_change_the_hash() {
        let mut features = FEATURES.to_vec();
        features.insert(3, Feature { name: "bank_conflicts", unit: "wavefronts" });
        features.reverse();
        assert_eq!(hash_of_columns(&features), schema_hash());
        let read = features.iter_mut().find(|feature| feature.name == "working_set").unwrap();
        read.unit = "elements";
        assert_ne!(hash_of_columns(&features), schema_hash());
    }

    #[test]
    fn columns_are_found_by_name() {
        let row = StageFeatures { num_productions: 7.0, working_set: 5.0, ..StageFeatures::default() };
        let named = |(name, value): (&&'static str, f64)| (value != 0.0).then_some((*name, value));
        let found: Vec<_> = COLUMNS.iter().zip(columns(&row)).filter_map(named).collect();
        assert_eq!(found, [("num_productions", 7.0), ("working_set", 5.0)]);
    }

    #[test]
    fn a_constant_that_is_corrected_changes_the_hash() {
        let changed = Constants { l2_share: 0.06, ..Constants::default() };
        assert_ne!(hash_of_model(&changed), analytic_hash());
    }
}
