//! Occupancy: how many blocks of a kernel are resident on one SM.

use serde::{Deserialize, Serialize};

use crate::device::Device;

/// How many blocks of a kernel are resident on one SM, and what limits the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occupancy {
    /// The number of resident blocks per SM; 0 if the kernel cannot be launched.
    pub blocks_per_sm: u32,
    /// The number of resident warps per SM.
    pub warps: u32,
    /// The resource that one more block would exceed. If there are several, the first in
    /// declaration order.
    pub limited_by: OccupancyLimit,
}

/// The resource that limits the number of resident blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OccupancyLimit {
    /// The limit on threads or warps, per block or per SM.
    Threads,
    /// The limit on blocks per SM.
    Blocks,
    /// The limit on registers, per thread or per SM.
    Registers,
    /// The limit on shared memory, per block or per SM.
    Shared,
}

impl Device {
    /// The occupancy of a kernel with `threads` threads per block, `registers` registers per thread
    /// and `shared` bytes of shared memory per block.
    ///
    /// Above [`SharedMemory::per_block`](crate::SharedMemory::per_block), the kernel is assumed to
    /// opt in. The SM is assumed to be configured for its maximum shared memory.
    pub fn occupancy(&self, threads: u32, registers: u32, shared: u32) -> Occupancy {
        if let Some(limited_by) = self.launch_refusal(threads, registers, shared) {
            return Occupancy { blocks_per_sm: 0, warps: 0, limited_by };
        }
        let warps = threads.div_ceil(self.threads.warp.max(1));
        let limits = [
            (OccupancyLimit::Threads, self.threads.warps_per_sm / warps),
            (OccupancyLimit::Blocks, self.threads.blocks_per_sm),
            (OccupancyLimit::Registers, self.blocks_by_registers(warps, registers)),
            (OccupancyLimit::Shared, self.blocks_by_shared(shared)),
        ];
        let (limited_by, blocks_per_sm) = limits
            .into_iter()
            .reduce(|least, next| if next.1 < least.1 { next } else { least })
            .unwrap_or((OccupancyLimit::Threads, 0));
        Occupancy { blocks_per_sm, warps: blocks_per_sm * warps, limited_by }
    }

    /// The per-block or per-thread limit that makes the launch impossible, if any.
    fn launch_refusal(&self, threads: u32, registers: u32, shared: u32) -> Option<OccupancyLimit> {
        if threads == 0 || threads > self.threads.per_block {
            Some(OccupancyLimit::Threads)
        } else if registers > self.registers.per_thread {
            Some(OccupancyLimit::Registers)
        } else if shared > self.shared.per_block_opt_in {
            Some(OccupancyLimit::Shared)
        } else {
            None
        }
    }

    /// Registers are allocated to whole warps, and each warp lives in one partition with a fixed
    /// share of them. The remainder in each partition is lost.
    fn blocks_by_registers(&self, warps: u32, registers: u32) -> u32 {
        let file = &self.registers;
        let per_warp = round_up(registers.saturating_mul(self.threads.warp), file.granularity);
        let per_partition = file.per_sm / file.partitions.max(1);
        match per_partition.checked_div(per_warp) {
            Some(warps_per_partition) => warps_per_partition * file.partitions / warps,
            None => u32::MAX,
        }
    }

    fn blocks_by_shared(&self, shared: u32) -> u32 {
        let memory = &self.shared;
        let per_block = round_up(shared.saturating_add(memory.reserved_per_block), memory.granularity);
        memory.per_sm.checked_div(per_block).unwrap_or(u32::MAX)
    }
}

fn round_up(value: u32, unit: u32) -> u32 {
    value.checked_next_multiple_of(unit.max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::OccupancyLimit::{Blocks, Registers, Shared, Threads};
    use super::*;

    #[test]
    fn agrees_with_the_cuda_occupancy_calculator() {
        // Device, threads, registers, shared bytes; then the answer of CUDA's occupancy calculator.
        let answers = [
            ("V100", 256, 32, 0, 8, Threads),
            ("V100", 256, 40, 0, 6, Registers),
            ("V100", 128, 96, 0, 5, Registers),
            ("V100", 64, 255, 0, 4, Registers),
            ("V100", 32, 16, 0, 32, Blocks),
            ("V100", 512, 32, 33_000, 2, Shared),
            ("V100", 256, 32, 98_304, 1, Shared),
            ("T4", 1024, 32, 0, 1, Threads),
            ("T4", 256, 65, 0, 3, Registers),
            ("T4", 128, 40, 12_000, 5, Shared),
            ("A100", 256, 64, 0, 4, Registers),
            ("A100", 256, 32, 49_152, 3, Shared),
            ("A100", 128, 128, 40_000, 4, Registers),
            ("A100", 1024, 64, 0, 1, Registers),
            ("A100", 64, 32, 166_912, 1, Shared),
            ("RTX 3090", 1024, 32, 0, 1, Threads),
            ("RTX 3090", 256, 40, 0, 6, Threads),
            ("RTX 3090", 64, 32, 0, 16, Blocks),
            ("RTX 3090", 128, 32, 16_384, 5, Shared),
            ("RTX 4090", 64, 32, 0, 24, Threads),
            ("RTX 4090", 512, 72, 0, 1, Registers),
            ("RTX 4090", 256, 48, 24_576, 4, Shared),
            ("H200", 96, 40, 0, 16, Registers),
            ("H200", 256, 72, 0, 3, Registers),
            ("H200", 384, 168, 0, 1, Registers),
            ("H200", 128, 32, 20_481, 10, Shared),
            ("H200", 256, 64, 115_712, 2, Shared),
            ("H200", 1024, 32, 116_736, 1, Shared),
        ];
        for (name, threads, registers, shared, blocks_per_sm, limited_by) in answers {
            let occupancy = Device::preset(name).unwrap().occupancy(threads, registers, shared);
            let warps = blocks_per_sm * threads.div_ceil(32);
            let answer = Occupancy { blocks_per_sm, warps, limited_by };
            assert_eq!(occupancy, answer, "{name}: {threads}, {registers}, {shared}");
        }
    }

    #[test]
    fn zero_registers_and_zero_shared_memory_limit_nothing() {
        let v100 = Device::preset("v100").unwrap();
        assert_eq!(
            v100.occupancy(128, 0, 0),
            Occupancy { blocks_per_sm: 16, warps: 64, limited_by: Threads }
        );
    }

    #[test]
    fn refuses_what_cannot_be_launched() {
        let h200 = Device::preset("h200").unwrap();
        let limit = |threads, registers, shared| {
            let occupancy = h200.occupancy(threads, registers, shared);
            assert_eq!((occupancy.blocks_per_sm, occupancy.warps), (0, 0));
            occupancy.limited_by
        };
        assert_eq!(limit(0, 32, 0), Threads);
        assert_eq!(limit(1025, 32, 0), Threads);
        assert_eq!(limit(128, 256, 0), Registers);
        // 32 warps with 72 registers per thread: each warp fits, all of them together do not.
        assert_eq!(limit(1024, 65, 0), Registers);
        assert_eq!(limit(128, 32, h200.shared.per_block_opt_in + 1), Shared);
        assert_eq!(limit(u32::MAX, u32::MAX, u32::MAX), Threads);
    }

    #[test]
    fn odd_block_sizes_fill_whole_warps() {
        let h200 = Device::preset("h200").unwrap();
        let occupancy = h200.occupancy(33, 32, 0);
        assert_eq!(occupancy, Occupancy { blocks_per_sm: 32, warps: 64, limited_by: Threads });
        assert_eq!(h200.occupancy(31, 32, 0).limited_by, Blocks);
    }
}
