//! Features of a device's kernels beyond plain arithmetic, loads and stores.

use serde::{Deserialize, Serialize};

use crate::device::{ComputeCapability, Device};

/// The features of a device. Rules and back ends ask for these rather than for the device's generation.
///
/// ```
/// use warploom_target::{Device, Features};
///
/// let mut device = Device::preset("h200")?;
/// assert!(device.features().async_copies);
///
/// // A description can say something else than its compute capability does.
/// device.features = Some(Features { async_copies: false, ..device.features() });
/// assert!(!Device::from_json(&device.to_json()?)?.features().async_copies);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Features {
    /// Asynchronous copies from global to shared memory.
    pub async_copies: bool,
    /// The number of threads that exchange values through registers; 0 without such shuffles.
    pub shuffle_lanes: u32,
    /// The most bytes that a thread loads or stores by one instruction.
    pub vector_bytes: u32,
    /// The instructions that multiply tiles of matrices.
    pub matrix_tiles: MatrixTiles,
    /// Integers and floats of 64 bits.
    pub wide_types: bool,
    /// Programmatic dependent launch: blocks may start before the previous kernel has ended.
    pub early_launches: bool,
}

/// The threads that multiply tiles of matrices together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MatrixTiles {
    /// None: there are no such instructions.
    None,
    /// The threads of a warp, on tiles in registers.
    Warp,
    /// Also several warps, on tiles in shared memory.
    WarpGroup,
}

impl Device {
    /// The features of kernels: as described or, by default, as the compute capability implies.
    #[inline]
    pub fn features(&self) -> Features {
        self.features.unwrap_or_else(|| self.implied_features())
    }

    /// The described features, if they differ from those that the compute capability implies.
    pub(crate) fn own_features(&self) -> Option<Features> {
        self.features.filter(|features| *features != self.implied_features())
    }

    #[inline]
    fn implied_features(&self) -> Features {
        Features::of(self.compute, self.threads.warp)
    }
}

impl Features {
    /// The features of a compute capability.
    #[inline]
    fn of(compute: ComputeCapability, warp: u32) -> Features {
        Features {
            async_copies: compute.major >= 8,
            shuffle_lanes: warp,
            vector_bytes: 16,
            matrix_tiles: match compute.major {
                ..7 => MatrixTiles::None,
                9 => MatrixTiles::WarpGroup,
                _ => MatrixTiles::Warp,
            },
            wide_types: true,
            early_launches: compute.major >= 9,
        }
    }

    /// The features as numbers, for a hash.
    pub(crate) fn words(self) -> [u64; 6] {
        let Features { async_copies, shuffle_lanes, vector_bytes, matrix_tiles, wide_types, early_launches } =
            self;
        let numbers = [async_copies.into(), shuffle_lanes, vector_bytes, matrix_tiles as u32];
        let [a, b, c, d] = numbers.map(u64::from);
        [a, b, c, d, wide_types.into(), early_launches.into()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_follow_from_the_generation() {
        let of = |name: &str| Device::preset(name).unwrap().features();
        let (v100, a100, h200) = (of("v100"), of("a100"), of("h200"));
        assert_eq!([v100, a100, h200].map(|features| features.async_copies), [false, true, true]);
        assert_eq!([v100, a100, h200].map(|features| features.early_launches), [false, false, true]);
        let tiles = [MatrixTiles::Warp, MatrixTiles::Warp, MatrixTiles::WarpGroup];
        assert_eq!([v100, a100, h200].map(|features| features.matrix_tiles), tiles);
        assert_eq!((h200.shuffle_lanes, h200.vector_bytes), (32, 16));
    }

    #[test]
    fn a_description_without_features_is_read_and_written_as_before() {
        let device = Device::preset("a100").unwrap();
        let json = device.to_json().unwrap();
        assert!(!json.contains("features"), "{json}");
        assert_eq!(Device::from_json(&json).unwrap(), device);
    }

    #[test]
    fn features_that_are_given_count_and_are_part_of_the_fingerprint() {
        let plain = Device::preset("a100").unwrap();
        let features = Features { shuffle_lanes: 0, ..plain.features() };
        let device = Device { features: Some(features), ..plain.clone() };
        let read = Device::from_json(&device.to_json().unwrap()).unwrap();
        assert_eq!((read.features(), read.fingerprint()), (features, device.fingerprint()));
        assert_ne!(device.fingerprint(), plain.fingerprint());
        let same = Device { features: Some(plain.features()), ..plain.clone() };
        assert_eq!(same.fingerprint(), plain.fingerprint(), "what follows anyway changes nothing");
    }
}
