//! Builds a [`Device`] from the attributes that a driver reports.
//!
//! Limits are taken as reported. Rates are not reported: a device with the name of a preset gets
//! the preset's rates; any other device gets those of the most similar architecture, scaled by its
//! clocks and sizes.

use warploom_target::{ComputeCapability, Device};

/// The attributes that the driver reports.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attributes {
    pub(crate) name: String,
    pub(crate) compute: [u32; 2],
    pub(crate) sms: u32,
    pub(crate) clock_khz: u32,
    pub(crate) memory_clock_khz: u32,
    pub(crate) memory_bus_bits: u32,
    pub(crate) warp: u32,
    pub(crate) threads_per_block: u32,
    pub(crate) threads_per_sm: u32,
    pub(crate) blocks_per_sm: u32,
    pub(crate) block_dims: [u32; 3],
    pub(crate) grid_dims: [u32; 3],
    pub(crate) registers_per_sm: u32,
    pub(crate) shared_per_sm: u32,
    pub(crate) shared_per_block: u32,
    pub(crate) shared_opt_in: u32,
    pub(crate) shared_reserved: u32,
    pub(crate) l2_bytes: u64,
    pub(crate) dram_bytes: u64,
}

/// The device with these attributes.
pub(crate) fn describe(reported: &Attributes) -> Device {
    let [major, minor] = reported.compute;
    let compute = ComputeCapability { major, minor };
    let mut device = Device::preset(&reported.name).unwrap_or_else(|_| similar(compute, reported));
    device.compute = compute;
    device.sms = reported.sms;
    device.threads.warp = reported.warp;
    device.threads.per_block = reported.threads_per_block;
    device.threads.per_sm = reported.threads_per_sm;
    device.threads.warps_per_sm = reported.threads_per_sm / reported.warp.max(1);
    device.threads.blocks_per_sm = reported.blocks_per_sm;
    device.threads.block_dims = reported.block_dims;
    device.threads.grid_dims = reported.grid_dims;
    device.registers.per_sm = reported.registers_per_sm;
    device.shared.per_sm = reported.shared_per_sm;
    device.shared.per_block = reported.shared_per_block;
    device.shared.per_block_opt_in = reported.shared_opt_in;
    device.shared.reserved_per_block = reported.shared_reserved;
    device.memory.l2_bytes = reported.l2_bytes;
    device.memory.dram_bytes = reported.dram_bytes;
    device
}

/// The preset of the nearest architecture, preferably older, with its rates scaled to the device.
fn similar(compute: ComputeCapability, reported: &Attributes) -> Device {
    let presets = Device::presets();
    let older = presets.iter().filter(|preset| preset.compute <= compute);
    let nearest = older.max_by_key(|preset| preset.compute).or(presets.first());
    let mut device = nearest.cloned().unwrap_or_else(|| unreachable!("there are presets"));
    device.name.clone_from(&reported.name);
    let rate = |device: &Device| f64::from(device.sms) * device.clock_ghz;
    let before = rate(&device);
    device.sms = reported.sms;
    if reported.clock_khz > 0 {
        device.clock_ghz = f64::from(reported.clock_khz) / 1e6;
    }
    let memory = &mut device.memory;
    if reported.memory_clock_khz > 0 && reported.memory_bus_bits > 0 {
        // Two transfers per clock.
        let bytes = f64::from(reported.memory_bus_bits) / 8.0;
        memory.dram_gbps = 2.0 * f64::from(reported.memory_clock_khz) * bytes / 1e6;
        memory.dram_achieved_gbps = 0.9 * memory.dram_gbps;
    }
    device.memory.l2_gbps *= rate(&device) / before;
    device
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h200() -> Attributes {
        Attributes {
            name: "NVIDIA H200".to_string(),
            compute: [9, 0],
            sms: 132,
            clock_khz: 1_980_000,
            memory_clock_khz: 3_201_000,
            memory_bus_bits: 6144,
            warp: 32,
            threads_per_block: 1024,
            threads_per_sm: 2048,
            blocks_per_sm: 32,
            block_dims: [1024, 1024, 64],
            grid_dims: [0x7fff_ffff, 65535, 65535],
            registers_per_sm: 65536,
            shared_per_sm: 233_472,
            shared_per_block: 49_152,
            shared_opt_in: 232_448,
            shared_reserved: 1024,
            l2_bytes: 62_914_560,
            dram_bytes: 150_754_820_096,
        }
    }

    #[test]
    fn a_known_device_has_the_fingerprint_of_its_preset() {
        let device = describe(&h200());
        assert_eq!(device.fingerprint(), Device::preset("h200").unwrap().fingerprint());
        assert_eq!(device.memory.dram_bytes, 150_754_820_096);
        device.validate().unwrap();
    }

    #[test]
    fn an_unknown_device_is_like_the_nearest_one() {
        let mut reported = Attributes { name: "NVIDIA Foo".to_string(), ..h200() };
        reported.sms = 66;
        let device = describe(&reported);
        device.validate().unwrap();
        assert_eq!((device.name.as_str(), device.sms), ("NVIDIA Foo", 66));
        let h200 = Device::preset("h200").unwrap();
        assert_eq!(device.rates, h200.rates);
        assert!((device.memory.l2_gbps - h200.memory.l2_gbps / 2.0).abs() < 1.0, "{}", device.memory.l2_gbps);
        assert!((device.memory.dram_gbps - 4916.7).abs() < 1.0, "{}", device.memory.dram_gbps);

        let newer = describe(&Attributes { compute: [12, 0], ..reported.clone() });
        assert_eq!((newer.arch().as_str(), newer.rates), ("sm_120", h200.rates));
        let silent = describe(&Attributes { clock_khz: 0, memory_clock_khz: 0, ..reported });
        silent.validate().unwrap();
        assert_eq!(silent.clock_ghz, h200.clock_ghz);
    }
}
