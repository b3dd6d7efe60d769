//! The description of a GPU: its components, limits and rates.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::features::Features;

/// The warp size of kernels that exchange values between lanes, and the default if no device is at hand. Such kernels
/// are illegal on devices with another warp size ([`Threads::warp`]).
pub const WARP: u32 = 32;

/// The bytes of the longest vector access of a thread.
pub const VECTOR_BYTES: usize = 16;

/// The limits and rates of one GPU.
///
/// Every field documents its unit. Sizes are in bytes; 1 GB/s is 10^9 bytes per second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// The common name, for example `H200`.
    pub name: String,
    /// The compute capability, which determines the instruction set.
    pub compute: ComputeCapability,
    /// The number of streaming multiprocessors (SMs) of the device.
    pub sms: u32,
    /// Boost clock of the SMs, in GHz.
    pub clock_ghz: f64,
    /// The arithmetic rates of one SM.
    pub rates: Rates,
    /// Limits on threads, warps, blocks and grids.
    pub threads: Threads,
    /// The register file of one SM.
    pub registers: Registers,
    /// The shared memory of one SM.
    pub shared: SharedMemory,
    /// Caches and device memory.
    pub memory: MemorySystem,
    /// The cost of launching a kernel.
    pub launch: LaunchCost,
    /// The features of kernels; see [`Device::features`]. `None` if they follow from the compute capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Features>,
}

/// A compute capability, such as 9.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComputeCapability {
    /// The generation: 7 is Volta and Turing, 8 Ampere and Ada, 9 Hopper.
    pub major: u32,
    /// The version within the generation.
    pub minor: u32,
}

/// The arithmetic throughput of one SM per operation class, in results per clock.
///
/// One result is one lane of one warp instruction; a fused multiply-add counts as one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// 32-bit float add, multiply, fused multiply-add: the FP32 lanes. Results per clock per SM.
    pub fp32: f64,
    /// 64-bit float add, multiply, fused multiply-add. Results per clock per SM.
    pub fp64: f64,
    /// 32-bit integer add, subtract, shift and bitwise logic. Results per clock per SM.
    pub int_add: f64,
    /// 32-bit integer multiply and multiply-add. Results per clock per SM.
    pub int_mul: f64,
    /// Compare, select, minimum and maximum, integer or float. Results per clock per SM.
    pub compare: f64,
    /// Reciprocal, square root, exponential, logarithm, sine, cosine: one special-function
    /// instruction each. Results per clock per SM.
    pub special: f64,
    /// Conversion between integer and float, or between float widths. Results per clock per SM.
    pub convert: f64,
}

/// Limits on threads, warps, blocks and grids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threads {
    /// The number of threads per warp.
    pub warp: u32,
    /// The maximum number of threads per block.
    pub per_block: u32,
    /// The maximum number of resident threads per SM.
    pub per_sm: u32,
    /// The maximum number of resident warps per SM.
    pub warps_per_sm: u32,
    /// The maximum number of resident blocks per SM.
    pub blocks_per_sm: u32,
    /// The maximum number of threads along x, y and z of a block.
    pub block_dims: [u32; 3],
    /// The maximum number of blocks along x, y and z of a grid.
    pub grid_dims: [u32; 3],
}

/// The register file of one SM. A register is 32 bits wide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registers {
    /// The number of registers per SM; also the maximum per block.
    pub per_sm: u32,
    /// The maximum number of registers per thread.
    pub per_thread: u32,
    /// Registers are allocated to a warp in multiples of this number.
    pub granularity: u32,
    /// The number of partitions of an SM. Each has its own scheduler and an equal share of the
    /// registers.
    pub partitions: u32,
}

/// The shared memory of one SM.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedMemory {
    /// The shared memory of an SM, divided among all its resident blocks, in bytes.
    pub per_sm: u32,
    /// The maximum per block without opt-in, in bytes.
    pub per_block: u32,
    /// The maximum per block if the kernel opts in, in bytes.
    pub per_block_opt_in: u32,
    /// The part of `per_sm` that the system reserves for each block, in bytes.
    pub reserved_per_block: u32,
    /// Shared memory is allocated to a block in multiples of this many bytes.
    pub granularity: u32,
    /// The number of banks. Each serves one word per clock.
    pub banks: u32,
    /// The width of a bank's word, in bytes.
    pub bank_bytes: u32,
    /// The bandwidth of one SM without bank conflicts, in bytes per clock.
    pub bytes_per_clock: f64,
}

/// Caches and device memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemorySystem {
    /// The granularity of traffic between caches and memory, in bytes.
    pub sector_bytes: u32,
    /// The size of a cache line, in bytes.
    pub line_bytes: u32,
    /// The combined capacity of the L1 cache and shared memory of one SM, in bytes.
    pub l1_shared_bytes: u32,
    /// The L1 bandwidth of one SM, in bytes per clock.
    pub l1_bytes_per_clock: f64,
    /// The capacity of the L2 cache, in bytes.
    pub l2_bytes: u64,
    /// The achieved L2 read bandwidth of the whole device, in GB/s.
    pub l2_gbps: f64,
    /// The capacity of the device memory, in bytes.
    pub dram_bytes: u64,
    /// The nominal bandwidth of the device memory, in GB/s.
    pub dram_gbps: f64,
    /// The bandwidth that a large copy achieves, counting bytes read and written, in GB/s.
    pub dram_achieved_gbps: f64,
}

/// The cost of launching a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchCost {
    /// The time per empty kernel launched back to back on a stream, in microseconds.
    pub stream_us: f64,
    /// The time per empty kernel as a node of a replayed graph, in microseconds.
    pub graph_node_us: f64,
}

/// The most bytes in the name of a device.
const LONGEST_NAME: usize = 1024;

/// A device description that is malformed or impossible.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// The text is not the JSON of a device.
    #[error("this is not the description of a device")]
    Json(#[from] serde_json::Error),
    /// A name that is empty, too long or of several lines.
    #[error("the name of a device has {bytes} bytes; it must be one line of 1 to {LONGEST_NAME} bytes")]
    Name {
        /// The length of the name.
        bytes: usize,
    },
    /// A number that must be positive is zero, negative or not finite.
    #[error("device `{device}`: `{field}` is {value}, but must be positive")]
    NotPositive {
        /// The name of the device.
        device: String,
        /// The path of the field in the JSON.
        field: &'static str,
        /// The value of the field.
        value: f64,
    },
    /// Two limits contradict each other.
    #[error("device `{device}`: `{smaller}` is larger than `{larger}`")]
    Contradiction {
        /// The name of the device.
        device: String,
        /// The path of the field that is too large.
        smaller: &'static str,
        /// The path of the field that bounds it from above.
        larger: &'static str,
    },
}

impl Device {
    /// The architecture name that CUDA compilers use, for example `sm_90`.
    pub fn arch(&self) -> String {
        format!("sm_{}{}", self.compute.major, self.compute.minor)
    }

    /// The peak FP32 rate in TFLOP/s, counting a fused multiply-add as two operations.
    pub fn peak_fp32_tflops(&self) -> f64 {
        2.0 * self.rates.fp32 * f64::from(self.sms) * self.clock_ghz / 1000.0
    }

    /// Reads a device from JSON and checks it as [`Device::validate`] does.
    ///
    /// # Errors
    ///
    /// If the text is not valid JSON, a field is missing or unknown, or the device is impossible.
    pub fn from_json(text: &str) -> Result<Device, DeviceError> {
        let device: Device = serde_json::from_str(text)?;
        device.validate()?;
        Ok(device)
    }

    /// This device as indented JSON.
    ///
    /// # Errors
    ///
    /// If the device is impossible and could not be read back.
    pub fn to_json(&self) -> Result<String, DeviceError> {
        self.validate()?;
        Ok(serde_json::to_string_pretty(self)?)
    }

    /// Checks that the name is one short line, that every number is positive and that no two limits contradict each other.
    ///
    /// # Errors
    ///
    /// If a field fails; the error names the first one.
    pub fn validate(&self) -> Result<(), DeviceError> {
        let name = &self.name;
        if name.trim().is_empty() || name.len() > LONGEST_NAME || name.contains(['\n', '\r']) {
            return Err(DeviceError::Name { bytes: name.len() });
        }
        let bad = |value: f64| !(value.is_finite() && value > 0.0);
        if let Some((field, value)) = self.positive_fields().into_iter().find(|&(_, value)| bad(value)) {
            return Err(DeviceError::NotPositive { device: self.name.clone(), field, value });
        }
        let ordered = [
            ("threads.warp", self.threads.warp, "threads.per_block", self.threads.per_block),
            ("threads.per_block", self.threads.per_block, "threads.per_sm", self.threads.per_sm),
            ("registers.per_thread", self.registers.per_thread, "registers.per_sm", self.registers.per_sm),
            (
                "shared.per_block",
                self.shared.per_block,
                "shared.per_block_opt_in",
                self.shared.per_block_opt_in,
            ),
            ("shared.per_block_opt_in", self.shared.per_block_opt_in, "shared.per_sm", self.shared.per_sm),
            ("memory.sector_bytes", self.memory.sector_bytes, "memory.line_bytes", self.memory.line_bytes),
        ];
        for (smaller, small, larger, large) in ordered {
            if small > large {
                return Err(DeviceError::Contradiction { device: self.name.clone(), smaller, larger });
            }
        }
        Ok(())
    }

    /// All numbers with their paths, except the two that may be zero: the minor compute capability
    /// and the reserved shared memory.
    fn positive_fields(&self) -> [(&'static str, f64); 39] {
        let Device { rates, threads, registers, shared, memory, .. } = self;
        [
            ("compute.major", self.compute.major.into()),
            ("sms", self.sms.into()),
            ("clock_ghz", self.clock_ghz),
            ("rates.fp32", rates.fp32),
            ("rates.fp64", rates.fp64),
            ("rates.int_add", rates.int_add),
            ("rates.int_mul", rates.int_mul),
            ("rates.compare", rates.compare),
            ("rates.special", rates.special),
            ("rates.convert", rates.convert),
            ("threads.warp", threads.warp.into()),
            ("threads.per_block", threads.per_block.into()),
            ("threads.per_sm", threads.per_sm.into()),
            ("threads.warps_per_sm", threads.warps_per_sm.into()),
            ("threads.blocks_per_sm", threads.blocks_per_sm.into()),
            ("threads.block_dims", least(threads.block_dims)),
            ("threads.grid_dims", least(threads.grid_dims)),
            ("registers.per_sm", registers.per_sm.into()),
            ("registers.per_thread", registers.per_thread.into()),
            ("registers.granularity", registers.granularity.into()),
            ("registers.partitions", registers.partitions.into()),
            ("shared.per_sm", shared.per_sm.into()),
            ("shared.per_block", shared.per_block.into()),
            ("shared.per_block_opt_in", shared.per_block_opt_in.into()),
            ("shared.granularity", shared.granularity.into()),
            ("shared.banks", shared.banks.into()),
            ("shared.bank_bytes", shared.bank_bytes.into()),
            ("shared.bytes_per_clock", shared.bytes_per_clock),
            ("memory.sector_bytes", memory.sector_bytes.into()),
            ("memory.line_bytes", memory.line_bytes.into()),
            ("memory.l1_shared_bytes", memory.l1_shared_bytes.into()),
            ("memory.l1_bytes_per_clock", memory.l1_bytes_per_clock),
            ("memory.l2_bytes", memory.l2_bytes as f64),
            ("memory.l2_gbps", memory.l2_gbps),
            ("memory.dram_bytes", memory.dram_bytes as f64),
            ("memory.dram_gbps", memory.dram_gbps),
            ("memory.dram_achieved_gbps", memory.dram_achieved_gbps),
            ("launch.stream_us", self.launch.stream_us),
            ("launch.graph_node_us", self.launch.graph_node_us),
        ]
    }
}

fn least(dims: [u32; 3]) -> f64 {
    f64::from(dims[0].min(dims[1]).min(dims[2]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h200() -> Device {
        Device::preset("h200").unwrap()
    }

    #[test]
    fn json_round_trips() {
        for device in Device::presets() {
            let json = device.to_json().unwrap();
            assert_eq!(Device::from_json(&json).unwrap(), device);
        }
    }

    #[test]
    fn json_refuses_missing_and_unknown_fields() {
        let json = h200().to_json().unwrap();
        let unknown = json.replacen("\"sms\"", "\"smx\"", 1);
        assert!(matches!(Device::from_json(&unknown), Err(DeviceError::Json(_))));
        assert!(matches!(Device::from_json("{}"), Err(DeviceError::Json(_))));
    }

    #[test]
    fn validation_names_the_field() {
        let mut device = h200();
        device.shared.granularity = 0;
        let error = device.validate().unwrap_err().to_string();
        assert_eq!(error, "device `H200`: `shared.granularity` is 0, but must be positive");

        let mut device = h200();
        device.clock_ghz = f64::NAN;
        assert!(device.validate().unwrap_err().to_string().contains("`clock_ghz` is NaN"));

        let mut device = h200();
        device.threads.grid_dims[2] = 0;
        assert!(device.validate().unwrap_err().to_string().contains("`threads.grid_dims`"));
    }

    #[test]
    fn names_are_one_short_line() {
        let named = |name: &str| Device { name: name.to_owned(), ..h200() }.validate();
        for (name, bytes) in [("", 0), (" ", 1), ("evil\nname", 9), ("a\rb", 3), (&*"x".repeat(1025), 1025)] {
            let error = named(name).unwrap_err().to_string();
            let start =
                format!("the name of a device has {bytes} bytes; it must be one line of 1 to 1024 bytes");
            assert_eq!(error, start);
        }
        named(&"x".repeat(1024)).unwrap();
        let json = h200().to_json().unwrap().replace("\"H200\"", "\"a\\nb\"");
        assert!(matches!(Device::from_json(&json), Err(DeviceError::Name { bytes: 3 })));
    }

    #[test]
    fn validation_finds_contradictions() {
        let mut device = h200();
        device.shared.per_block_opt_in = device.shared.per_sm + 1;
        let error = device.validate().unwrap_err().to_string();
        assert_eq!(error, "device `H200`: `shared.per_block_opt_in` is larger than `shared.per_sm`");
        assert!(matches!(device.to_json(), Err(DeviceError::Contradiction { .. })));
        let json = serde_json::to_string(&device).unwrap();
        assert!(matches!(Device::from_json(&json), Err(DeviceError::Contradiction { .. })));
    }

    #[test]
    fn architecture_is_spelled_as_cuda_does() {
        assert_eq!(h200().arch(), "sm_90");
        assert_eq!(Device::preset("t4").unwrap().arch(), "sm_75");
    }
}
