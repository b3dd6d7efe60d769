//! Random samples, for pipelines that come without inputs.

use warploom_lang::{Region, Scalar, Type, Value, dispatch};

use crate::buffer::{Buffer, BufferError};

/// A box of noise: floats in [0, 1), integers over their full range. The same seed always gives the same samples.
///
/// # Errors
/// If there is not enough memory for the box.
pub fn noise(ty: Type, region: Region, seed: u64) -> Result<Buffer, BufferError> {
    let mut buffer = Buffer::zeros(ty, region)?;
    let bytes = noise_bytes(ty, buffer.len(), seed);
    let bits = bytes.chunks_exact(ty.bytes()).map(|sample| {
        let mut word = [0; 8];
        word[..sample.len()].copy_from_slice(sample);
        u64::from_le_bytes(word)
    });
    dispatch!(ty, T => {
        let samples = buffer.as_mut_slice::<T>().unwrap_or_default();
        for (sample, bits) in samples.iter_mut().zip(bits) {
            *sample = T::from_word(bits);
        }
    });
    Ok(buffer)
}

/// The samples of [`noise`] as little-endian bytes. Xorshift is fast enough for large inputs.
pub fn noise_bytes(ty: Type, points: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    };
    let mut bytes = vec![0; points * ty.bytes()];
    match ty {
        Type::Bool => bytes.iter_mut().for_each(|byte| *byte = (next() & 1) as u8),
        _ if ty.is_float() => {
            for sample in bytes.chunks_exact_mut(ty.bytes()) {
                // 24 bits convert to `f32` exactly.
                let number = f64::from(next() >> 8) / f64::from(1 << 24);
                let value = Value::rounded(ty, number).unwrap_or(Value::zero(ty));
                sample.copy_from_slice(&value.bits().to_le_bytes()[..ty.bytes()]);
            }
        }
        _ => {
            for word in bytes.chunks_mut(4) {
                word.copy_from_slice(&next().to_le_bytes()[..word.len()]);
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_has_the_values_of_its_type() {
        let floats = noise(Type::F32, Region::of_extents(&[100, 100]), 1).unwrap();
        let floats = floats.as_slice::<f32>().unwrap();
        assert!(floats.iter().all(|float| (0.0..1.0).contains(float)));
        let mean = floats.iter().sum::<f32>() / 1e4;
        assert!((0.45..0.55).contains(&mean), "{mean}");
        assert!(noise_bytes(Type::Bool, 1000, 2).iter().all(|byte| *byte < 2));
        let bytes = noise(Type::U8, Region::of_extents(&[4099]), 3).unwrap();
        let bytes = bytes.as_slice::<u8>().unwrap();
        assert_eq!(bytes, noise_bytes(Type::U8, 4099, 3));
        assert!((0..=255).all(|value| bytes.contains(&value)));
        assert_ne!(noise_bytes(Type::U16, 100, 4), noise_bytes(Type::U16, 100, 5));
    }
}
