//! A stable identifier for everything about a device that affects code and running time.

use xxhash_rust::xxh3::xxh3_64;

use crate::device::{
    ComputeCapability, Device, LaunchCost, MemorySystem, Rates, Registers, SharedMemory, Threads,
};
use crate::features::Features;

/// Incremented whenever the list of hashed fields changes, so that old fingerprints no longer
/// match.
const VERSION: u64 = 1;

impl Device {
    /// Sixteen hexadecimal digits that identify everything about this device that affects generated
    /// code or its running time.
    ///
    /// The name and the size of the device memory are excluded: neither affects a kernel, and the
    /// reported size varies slightly between driver versions. The digits depend only on the
    /// numbers, not on the order of fields, the platform or the Rust version.
    pub fn fingerprint(&self) -> String {
        let bytes: Vec<u8> = words(self).into_iter().flat_map(u64::to_le_bytes).collect();
        format!("{:016x}", xxh3_64(&bytes))
    }
}

// The functions below destructure field by field, so that a new field does not compile until
// someone has decided whether to hash it.

fn words(device: &Device) -> Vec<u64> {
    // Features that follow from the compute capability are known with it.
    let Device {
        name: _,
        compute,
        sms,
        clock_ghz,
        rates,
        threads,
        registers,
        shared,
        memory,
        launch,
        features: _,
    } = device;
    let ComputeCapability { major, minor } = *compute;
    let LaunchCost { stream_us, graph_node_us } = *launch;
    let mut words = vec![VERSION, major.into(), minor.into(), (*sms).into(), clock_ghz.to_bits()];
    words.extend(rate_words(rates));
    words.extend(thread_words(threads));
    words.extend(register_words(registers));
    words.extend(shared_words(shared));
    words.extend(memory_words(memory));
    words.extend([stream_us.to_bits(), graph_node_us.to_bits()]);
    words.extend(device.own_features().into_iter().flat_map(Features::words));
    words
}

fn rate_words(rates: &Rates) -> [u64; 7] {
    let Rates { fp32, fp64, int_add, int_mul, compare, special, convert } = *rates;
    [fp32, fp64, int_add, int_mul, compare, special, convert].map(f64::to_bits)
}

fn thread_words(threads: &Threads) -> [u64; 11] {
    let Threads { warp, per_block, per_sm, warps_per_sm, blocks_per_sm, block_dims, grid_dims } = *threads;
    let [bx, by, bz] = block_dims;
    let [gx, gy, gz] = grid_dims;
    [warp, per_block, per_sm, warps_per_sm, blocks_per_sm, bx, by, bz, gx, gy, gz].map(u64::from)
}

fn register_words(registers: &Registers) -> [u64; 4] {
    let Registers { per_sm, per_thread, granularity, partitions } = *registers;
    [per_sm, per_thread, granularity, partitions].map(u64::from)
}

fn shared_words(shared: &SharedMemory) -> [u64; 8] {
    let SharedMemory {
        per_sm,
        per_block,
        per_block_opt_in,
        reserved_per_block,
        granularity,
        banks,
        bank_bytes,
        bytes_per_clock,
    } = *shared;
    [
        per_sm.into(),
        per_block.into(),
        per_block_opt_in.into(),
        reserved_per_block.into(),
        granularity.into(),
        banks.into(),
        bank_bytes.into(),
        bytes_per_clock.to_bits(),
    ]
}

fn memory_words(memory: &MemorySystem) -> [u64; 8] {
    let MemorySystem {
        sector_bytes,
        line_bytes,
        l1_shared_bytes,
        l1_bytes_per_clock,
        l2_bytes,
        l2_gbps,
        dram_bytes: _,
        dram_gbps,
        dram_achieved_gbps,
    } = *memory;
    [
        sector_bytes.into(),
        line_bytes.into(),
        l1_shared_bytes.into(),
        l1_bytes_per_clock.to_bits(),
        l2_bytes,
        l2_gbps.to_bits(),
        dram_gbps.to_bits(),
        dram_achieved_gbps.to_bits(),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    fn h200() -> Device {
        Device::preset("h200").unwrap()
    }

    /// The same JSON with the fields of every object in reverse order.
    fn reversed(value: &Value) -> String {
        match value {
            Value::Object(fields) => {
                let fields: Vec<String> =
                    fields.iter().rev().map(|(key, value)| format!("{key:?}:{}", reversed(value))).collect();
                format!("{{{}}}", fields.join(","))
            }
            other => other.to_string(),
        }
    }

    /// The paths of all numbers in a JSON object.
    fn numbers(prefix: &str, fields: &Map<String, Value>, found: &mut Vec<String>) {
        for (key, value) in fields {
            let path = format!("{prefix}/{key}");
            match value {
                Value::Object(inner) => numbers(&path, inner, found),
                Value::Array(items) => found.extend((0..items.len()).map(|i| format!("{path}/{i}"))),
                Value::Number(_) => found.push(path),
                _ => {}
            }
        }
    }

    #[test]
    fn stays_what_it_was() {
        // If this changes, change VERSION too: saved records contain fingerprints.
        assert_eq!(h200().fingerprint(), "ab35afc9f8c12644");
    }

    #[test]
    fn differs_between_presets() {
        let presets = Device::presets();
        let distinct: BTreeSet<String> = presets.iter().map(Device::fingerprint).collect();
        assert_eq!(distinct.len(), presets.len());
    }

    #[test]
    fn ignores_the_name_and_the_memory_size() {
        let mut device = h200();
        device.name = "another".to_string();
        device.memory.dram_bytes += 1;
        assert_eq!(device.fingerprint(), h200().fingerprint());
    }

    #[test]
    fn ignores_the_order_of_fields() {
        let value = serde_json::to_value(h200()).unwrap();
        let device = Device::from_json(&reversed(&value)).unwrap();
        assert_eq!(device.fingerprint(), h200().fingerprint());
    }

    #[test]
    fn sees_every_other_number() {
        let value = serde_json::to_value(h200()).unwrap();
        let mut paths = Vec::new();
        numbers("", value.as_object().unwrap(), &mut paths);
        assert!(paths.len() > 40, "{paths:?}");
        for path in paths.iter().filter(|path| *path != "/memory/dram_bytes") {
            let mut changed = value.clone();
            let number = changed.pointer_mut(path).unwrap();
            *number = match number.as_u64() {
                Some(integer) => (integer ^ 1).into(),
                None => (number.as_f64().unwrap() * 0.5).into(),
            };
            let device: Device = serde_json::from_value(changed).unwrap();
            assert_ne!(device.fingerprint(), h200().fingerprint(), "{path}");
        }
    }

    proptest! {
        /// Measured numbers have many digits. The JSON round-trip must keep all of them.
        #[test]
        fn survives_json(clock in 0.1f64..4.0, dram in 1.0f64..1e5, launch in 0.01f64..100.0) {
            let mut device = h200();
            device.clock_ghz = clock;
            device.memory.dram_gbps = dram;
            device.launch.stream_us = launch;
            let copy = Device::from_json(&device.to_json().unwrap()).unwrap();
            prop_assert_eq!(copy.fingerprint(), device.fingerprint());
        }
    }
}
