//! Built-in device descriptions.
//!
//! Limits come from the CUDA programming guide and the occupancy calculator for each compute
//! capability; arithmetic rates come from the guide's throughput table; sizes, clocks and nominal
//! bandwidths come from datasheets. The remaining numbers depend on more than the chip. On the
//! H200, the copy bandwidth and the launch costs were measured. L2 bandwidths are published
//! measurements, or estimates from them. For the other devices, a copy is assumed to reach nine
//! tenths of the nominal bandwidth, and a launch is assumed to cost the same as on the H200, since
//! it depends more on the host and the driver than on the GPU.

use thiserror::Error;

use crate::device::{
    ComputeCapability, Device, LaunchCost, MemorySystem, Rates, Registers, SharedMemory, Threads,
};

const KIB: u32 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A device name that matches no preset.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown device `{name}`{}; the presets are {}", suggestion(.nearest), .known.join(", "))]
pub struct UnknownDevice {
    /// The name that was requested.
    pub name: String,
    /// The preset with the most similar name; `None` if none is similar.
    pub nearest: Option<&'static str>,
    /// The names of all presets, for the message.
    pub known: Vec<&'static str>,
}

fn suggestion(nearest: &Option<&'static str>) -> String {
    nearest.map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

impl Device {
    /// The preset with this name.
    ///
    /// Case, spaces and punctuation are ignored, and the driver's name for a device is accepted
    /// too: `rtx4090`, `RTX 4090` and `NVIDIA GeForce RTX 4090` are the same device.
    ///
    /// # Errors
    ///
    /// If there is no such preset. The error lists all names and suggests the most similar one.
    pub fn preset(name: &str) -> Result<Device, UnknownDevice> {
        let wanted = plain(name);
        let named = |chip: &&Chip| plain(chip.name) == wanted || plain(chip.driver_name) == wanted;
        match CHIPS.iter().find(named) {
            Some(chip) => Ok(chip.device()),
            None => Err(UnknownDevice {
                name: name.to_string(),
                nearest: nearest(&wanted),
                known: CHIPS.iter().map(|chip| chip.name).collect(),
            }),
        }
    }

    /// All presets, oldest architecture first.
    pub fn presets() -> Vec<Device> {
        CHIPS.iter().map(Chip::device).collect()
    }
}

/// Normalises a name: drops case, punctuation and brand.
fn plain(name: &str) -> String {
    let letters: String = name.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    ["nvidia", "geforce", "tesla"].iter().fold(letters, |name, brand| match name.strip_prefix(brand) {
        Some(rest) => rest.to_string(),
        None => name,
    })
}

/// The preset whose name contains the wanted one, is contained in it, or is within an edit distance of
/// two.
fn nearest(wanted: &str) -> Option<&'static str> {
    let distance = |chip: &Chip| {
        let name = plain(chip.name);
        let part = !wanted.is_empty() && (name.contains(wanted) || wanted.contains(&name));
        if part { 0 } else { strsim::damerau_levenshtein(&name, wanted) }
    };
    let scored = CHIPS.iter().map(|chip| (distance(chip), chip.name));
    scored.filter(|&(distance, name)| distance <= 2 && distance < name.len()).min().map(|(_, name)| name)
}

/// The properties shared by all devices of one compute capability.
struct Sm {
    compute: ComputeCapability,
    rates: Rates,
    threads: Threads,
    shared: SharedMemory,
    l1_shared_bytes: u32,
    l1_bytes_per_clock: f64,
}

/// The properties of one device.
struct Chip {
    name: &'static str,
    /// The name that the driver reports.
    driver_name: &'static str,
    sm: Sm,
    sms: u32,
    clock_ghz: f64,
    l2_bytes: u64,
    l2_gbps: f64,
    dram_bytes: u64,
    dram_gbps: f64,
    dram_achieved_gbps: f64,
}

impl Chip {
    fn device(&self) -> Device {
        Device {
            name: self.name.to_string(),
            compute: self.sm.compute,
            sms: self.sms,
            clock_ghz: self.clock_ghz,
            rates: self.sm.rates.clone(),
            threads: self.sm.threads.clone(),
            registers: Registers { per_sm: 65536, per_thread: 255, granularity: 256, partitions: 4 },
            shared: self.sm.shared.clone(),
            memory: MemorySystem {
                sector_bytes: 32,
                line_bytes: 128,
                l1_shared_bytes: self.sm.l1_shared_bytes,
                l1_bytes_per_clock: self.sm.l1_bytes_per_clock,
                l2_bytes: self.l2_bytes,
                l2_gbps: self.l2_gbps,
                dram_bytes: self.dram_bytes,
                dram_gbps: self.dram_gbps,
                dram_achieved_gbps: self.dram_achieved_gbps,
            },
            launch: LaunchCost { stream_us: 4.6, graph_node_us: 0.5 },
            features: None,
        }
    }
}

/// Volta.
const SM_70: Sm = Sm {
    compute: ComputeCapability { major: 7, minor: 0 },
    rates: Rates {
        fp32: 64.0,
        fp64: 32.0,
        int_add: 64.0,
        int_mul: 64.0,
        compare: 64.0,
        special: 16.0,
        convert: 16.0,
    },
    threads: Threads {
        warp: 32,
        per_block: 1024,
        per_sm: 2048,
        warps_per_sm: 64,
        blocks_per_sm: 32,
        block_dims: [1024, 1024, 64],
        grid_dims: [0x7fff_ffff, 65535, 65535],
    },
    shared: SharedMemory {
        per_sm: 96 * KIB,
        per_block: 48 * KIB,
        per_block_opt_in: 96 * KIB,
        reserved_per_block: 0,
        granularity: 256,
        banks: 32,
        bank_bytes: 4,
        bytes_per_clock: 128.0,
    },
    l1_shared_bytes: 128 * KIB,
    l1_bytes_per_clock: 128.0,
};

/// Turing: half of Volta's resident threads and half of its load/store lanes.
const SM_75: Sm = Sm {
    compute: ComputeCapability { major: 7, minor: 5 },
    rates: Rates { fp64: 2.0, ..SM_70.rates },
    threads: Threads { per_sm: 1024, warps_per_sm: 32, blocks_per_sm: 16, ..SM_70.threads },
    shared: SharedMemory {
        per_sm: 64 * KIB,
        per_block_opt_in: 64 * KIB,
        bytes_per_clock: 64.0,
        ..SM_70.shared
    },
    l1_shared_bytes: 96 * KIB,
    l1_bytes_per_clock: 64.0,
};

/// Data-centre Ampere.
const SM_80: Sm = Sm {
    compute: ComputeCapability { major: 8, minor: 0 },
    shared: SharedMemory {
        per_sm: 164 * KIB,
        per_block_opt_in: 163 * KIB,
        reserved_per_block: KIB,
        granularity: 128,
        ..SM_70.shared
    },
    l1_shared_bytes: 192 * KIB,
    ..SM_70
};

/// Desktop Ampere: twice the FP32 lanes, fewer threads.
const SM_86: Sm = Sm {
    compute: ComputeCapability { major: 8, minor: 6 },
    rates: Rates { fp32: 128.0, fp64: 2.0, ..SM_80.rates },
    threads: Threads { per_sm: 1536, warps_per_sm: 48, blocks_per_sm: 16, ..SM_80.threads },
    shared: SharedMemory { per_sm: 100 * KIB, per_block_opt_in: 99 * KIB, ..SM_80.shared },
    l1_shared_bytes: 128 * KIB,
    ..SM_80
};

/// Ada.
const SM_89: Sm = Sm {
    compute: ComputeCapability { major: 8, minor: 9 },
    threads: Threads { blocks_per_sm: 24, ..SM_86.threads },
    ..SM_86
};

/// Hopper.
const SM_90: Sm = Sm {
    compute: ComputeCapability { major: 9, minor: 0 },
    rates: Rates { fp32: 128.0, fp64: 64.0, convert: 64.0, ..SM_80.rates },
    shared: SharedMemory { per_sm: 228 * KIB, per_block_opt_in: 227 * KIB, ..SM_80.shared },
    l1_shared_bytes: 256 * KIB,
    ..SM_80
};

const CHIPS: [Chip; 8] = [
    Chip {
        name: "V100",
        driver_name: "Tesla V100-SXM2-16GB",
        sm: SM_70,
        sms: 80,
        clock_ghz: 1.53,
        l2_bytes: 6 * MIB,
        l2_gbps: 2155.0,
        dram_bytes: 16384 * MIB,
        dram_gbps: 900.0,
        dram_achieved_gbps: 810.0,
    },
    Chip {
        name: "T4",
        driver_name: "Tesla T4",
        sm: SM_75,
        sms: 40,
        clock_ghz: 1.59,
        l2_bytes: 4 * MIB,
        l2_gbps: 1270.0,
        dram_bytes: 15360 * MIB,
        dram_gbps: 320.0,
        dram_achieved_gbps: 288.0,
    },
    Chip {
        name: "A100",
        driver_name: "NVIDIA A100-SXM4-40GB",
        sm: SM_80,
        sms: 108,
        clock_ghz: 1.41,
        l2_bytes: 40 * MIB,
        l2_gbps: 4500.0,
        dram_bytes: 40960 * MIB,
        dram_gbps: 1555.0,
        dram_achieved_gbps: 1400.0,
    },
    Chip {
        name: "RTX 3090",
        driver_name: "NVIDIA GeForce RTX 3090",
        sm: SM_86,
        sms: 82,
        clock_ghz: 1.695,
        l2_bytes: 6 * MIB,
        l2_gbps: 2500.0,
        dram_bytes: 24576 * MIB,
        dram_gbps: 936.0,
        dram_achieved_gbps: 842.0,
    },
    Chip {
        name: "RTX 4090",
        driver_name: "NVIDIA GeForce RTX 4090",
        sm: SM_89,
        sms: 128,
        clock_ghz: 2.52,
        l2_bytes: 72 * MIB,
        l2_gbps: 4000.0,
        dram_bytes: 24564 * MIB,
        dram_gbps: 1008.0,
        dram_achieved_gbps: 907.0,
    },
    Chip {
        name: "L4",
        driver_name: "NVIDIA L4",
        sm: SM_89,
        sms: 58,
        clock_ghz: 2.04,
        l2_bytes: 48 * MIB,
        l2_gbps: 1600.0,
        dram_bytes: 23034 * MIB,
        dram_gbps: 300.0,
        dram_achieved_gbps: 270.0,
    },
    Chip {
        name: "H100",
        driver_name: "NVIDIA H100 80GB HBM3",
        sm: SM_90,
        sms: 132,
        clock_ghz: 1.98,
        l2_bytes: 50 * MIB,
        l2_gbps: 5600.0,
        dram_bytes: 81559 * MIB,
        dram_gbps: 3350.0,
        dram_achieved_gbps: 3015.0,
    },
    Chip {
        name: "H200",
        driver_name: "NVIDIA H200",
        sm: SM_90,
        sms: 132,
        clock_ghz: 1.98,
        l2_bytes: 60 * MIB,
        l2_gbps: 5600.0,
        dram_bytes: 143_771 * MIB,
        dram_gbps: 4800.0,
        dram_achieved_gbps: 4300.0,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_valid_and_found_by_its_names() {
        for chip in &CHIPS {
            let device = chip.device();
            device.validate().unwrap();
            assert_eq!(Device::preset(chip.name).unwrap(), device);
            assert_eq!(Device::preset(chip.driver_name).unwrap(), device);
        }
    }

    #[test]
    fn spelling_does_not_matter() {
        for name in ["rtx4090", "RTX 4090", "rtx-4090", "GeForce RTX 4090", "NVIDIA GeForce RTX 4090"] {
            assert_eq!(Device::preset(name).unwrap().name, "RTX 4090", "{name}");
        }
        assert_eq!(Device::preset("h200").unwrap(), Device::preset("H200").unwrap());
    }

    #[test]
    fn peak_rates_are_those_of_the_datasheets() {
        let datasheet = [
            ("V100", 15.7),
            ("T4", 8.1),
            ("A100", 19.5),
            ("RTX 3090", 35.6),
            ("RTX 4090", 82.6),
            ("L4", 30.3),
            ("H100", 66.9),
            ("H200", 66.9),
        ];
        assert_eq!(datasheet.len(), CHIPS.len());
        for (name, tflops) in datasheet {
            let peak = Device::preset(name).unwrap().peak_fp32_tflops();
            assert!((peak - tflops).abs() < 0.06, "{name}: {peak}");
        }
    }

    #[test]
    fn h200_is_as_its_driver_reports_it() {
        let device = Device::preset("h200").unwrap();
        assert_eq!(device.sms, 132);
        assert_eq!(device.shared.per_sm, 233_472);
        assert_eq!(device.shared.per_block, 49_152);
        assert_eq!(device.shared.per_block_opt_in, 232_448);
        assert_eq!(device.shared.reserved_per_block, 1024);
        assert_eq!(device.memory.l2_bytes, 62_914_560);
        assert_eq!((device.threads.per_sm, device.threads.blocks_per_sm), (2048, 32));
        assert_eq!(device.registers.per_sm, 65_536);
    }

    #[test]
    fn limits_of_an_sm_agree_with_each_other() {
        for device in Device::presets() {
            let threads = &device.threads;
            assert_eq!(threads.warps_per_sm * threads.warp, threads.per_sm, "{}", device.name);
            let shared = &device.shared;
            assert_eq!(shared.per_block_opt_in + shared.reserved_per_block, shared.per_sm, "{}", device.name);
            assert!(shared.per_sm < device.memory.l1_shared_bytes, "{}", device.name);
            assert!(device.memory.dram_achieved_gbps < device.memory.dram_gbps, "{}", device.name);
            assert!(device.memory.l2_gbps > device.memory.dram_gbps, "{}", device.name);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_what_there_is() {
        let error = Device::preset("H20").unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown device `H20` (did you mean `H200`?); the presets are V100, T4, A100, RTX 3090, \
             RTX 4090, L4, H100, H200"
        );
        let nearest = |name: &str| Device::preset(name).unwrap_err().nearest;
        assert_eq!(nearest("4090"), Some("RTX 4090"));
        assert_eq!(nearest("rtx 4080"), Some("RTX 4090"));
        assert_eq!(nearest("A100-SXM4-80GB"), Some("A100"));
        assert_eq!(nearest("l5"), Some("L4"));
        assert_eq!(nearest("radeon"), None);
        assert_eq!(nearest(""), None);
    }
}
