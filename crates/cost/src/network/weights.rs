//! The weights: ten tensors and the data that they were trained for, in a small file.
//!
//! A file consists of the magic, the version (`u32`, little endian), a checksum of the rest (xxh3,
//! `u64`, little endian) and the rest (bincode): hashes of the meaning of the network's inputs,
//! names, tensors, the new decisions that the weights know, and the errors of their predictions. The
//! last two are left out if there are none.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use warploom_lang::files::WEIGHTS;
use warploom_target::Device;
use xxhash_rust::xxh3::xxh3_64;

use super::basis::{analytic_hash, schema_hash};
use super::inputs::{KERNEL_INPUTS, PARTS, ROW_INPUTS};
use crate::kernel::NewDecisions;
use crate::range::Ranges;

const MAGIC: &[u8; 16] = b"warploom weights";
const VERSION: u32 = 2;
/// The start of the checksummed part.
const START: usize = MAGIC.len() + 4 + 8;
/// The largest weight allowed. Training does not reach it, and sums of such weights do not
/// overflow.
const LARGEST: f32 = 1e6;

/// Channels per row.
pub(super) const ROW_CHANNELS: usize = 32;
/// Channels of the hidden layer.
pub(super) const HIDDEN: usize = 32;
/// Tensors per network.
const COUNT: usize = 10;

/// The weights of a [`Network`](super::Network) for the features of this version of the crate.
///
/// ```
/// use warploom_cost::Weights;
/// let weights = Weights::random(1);
/// assert_eq!(Weights::from_bytes(&weights.to_bytes())?, weights);
/// # Ok::<(), warploom_cost::WeightsError>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Weights {
    name: String,
    device: String,
    fingerprint: String,
    scores: String,
    tensors: [Vec<f32>; COUNT],
    /// Stored after the other fields: the oldest files do not have it.
    #[serde(skip)]
    known: NewDecisions,
    /// Stored after those.
    #[serde(skip)]
    ranges: Option<Ranges>,
}

/// The contents of a file.
#[derive(Serialize, Deserialize)]
struct Contents {
    schema: u64,
    analytic: u64,
    weights: Weights,
}

/// Why weights cannot be used.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum WeightsError {
    /// The file is not a weights file.
    #[error("this is not a weights file")]
    NotWeights,
    /// The file has another version of the format.
    #[error("the weights file has version {found}, but this program reads version {expected}: {REMEDY}")]
    Version {
        /// The version that this program reads.
        expected: u32,
        /// The version of the file.
        found: u32,
    },
    /// The file was truncated or changed.
    #[error("the weights file is damaged: fetch or train it again, or use the analytic model")]
    Damaged,
    /// The weights are for other schedule features.
    #[error(
        "the weights are for the schedule features {found:016x}, but this program has {expected:016x}: {REMEDY}"
    )]
    Schema {
        /// The hash of this program's features.
        expected: u64,
        /// The hash that the weights were trained with.
        found: u64,
    },
    /// The weights correct another analytic model.
    #[error(
        "the weights correct the analytic model {found:016x}, but this program has {expected:016x}: {REMEDY}"
    )]
    Analytic {
        /// The hash of this program's model.
        expected: u64,
        /// The hash of the model that the weights were trained with.
        found: u64,
    },
    /// A tensor has the wrong size.
    #[error("the tensor `{tensor}` has {found} weights, but must have {expected}: {REMEDY}")]
    Size {
        /// Name of the tensor, as in `Weights::TENSORS`.
        tensor: &'static str,
        /// The number of weights it must have.
        expected: usize,
        /// The number of weights it has.
        found: usize,
    },
    /// A weight is not a number or is far too large.
    #[error("weight {index} of the tensor `{tensor}` is {value}: training failed, train again")]
    Value {
        /// Name of the tensor, as in `Weights::TENSORS`.
        tensor: &'static str,
        /// The index of the weight in the tensor.
        index: usize,
        /// The invalid value.
        value: f32,
    },
    /// The weights are for another device.
    #[error("the weights are for {found}, but the device is {expected}: {REMEDY}")]
    Device {
        /// Name and fingerprint of the device in use.
        expected: String,
        /// Name and fingerprint of the device that the weights were trained on.
        found: String,
    },
}

/// What to do about weights that do not fit.
const REMEDY: &str = "retrain, or use the analytic model";

impl Weights {
    /// The tensors in order: name, inputs, channels. A tensor holds the weights of its first input
    /// for all channels, then those of the second, and so on. A bias has one input.
    ///
    /// The inputs of `row` are the numbers of a [row](crate::RowInputs). The inputs of `hidden` are
    /// the channels of `row`, then the numbers of the [kernel](crate::KernelInputs).
    pub const TENSORS: [(&'static str, usize, usize); COUNT] = [
        ("row.means", 1, ROW_INPUTS),
        ("row.factors", 1, ROW_INPUTS),
        ("kernel.means", 1, KERNEL_INPUTS),
        ("kernel.factors", 1, KERNEL_INPUTS),
        ("row", ROW_INPUTS, ROW_CHANNELS),
        ("row.bias", 1, ROW_CHANNELS),
        ("hidden", ROW_CHANNELS + KERNEL_INPUTS, HIDDEN),
        ("hidden.bias", 1, HIDDEN),
        ("output", HIDDEN, PARTS),
        ("output.bias", 1, PARTS),
    ];

    /// Makes weights that are not tied to a device yet.
    ///
    /// # Errors
    /// If a tensor does not have the size in [`Weights::TENSORS`], or contains NaN or far too large
    /// weights.
    pub fn new(name: impl Into<String>, tensors: [Vec<f32>; COUNT]) -> Result<Weights, WeightsError> {
        let weights = Weights { name: name.into(), tensors, ..Weights::nowhere() };
        weights.check()?;
        Ok(weights)
    }

    /// Uniformly random weights for tests. The outputs of each layer have about the magnitude of
    /// its inputs; means are 0 and factors 0.1. The same seed gives the same weights everywhere.
    pub fn random(seed: u64) -> Weights {
        let mut random = Random(seed);
        let tensors = Weights::TENSORS.map(|(name, inputs, channels)| match name {
            "row.means" | "kernel.means" => vec![0.0; channels],
            "row.factors" | "kernel.factors" => vec![0.1; channels],
            _ => random.layer(inputs, channels),
        });
        Weights { name: format!("random {seed}"), tensors, ..Weights::nowhere() }
    }

    /// The weights at the start of training: random layers, except for the last, which is 0, so
    /// that nothing is corrected yet.
    pub fn initial(seed: u64, scaling: [Vec<f32>; 4]) -> Result<Weights, WeightsError> {
        let mut weights = Weights::random(seed);
        for (tensor, given) in weights.tensors.iter_mut().zip(scaling) {
            *tensor = given;
        }
        weights.tensors[COUNT - 2].fill(0.0);
        for ((name, ..), tensor) in Weights::TENSORS.iter().zip(&mut weights.tensors) {
            if name.ends_with(".bias") {
                tensor.fill(0.0);
            }
        }
        weights.name = format!("initial {seed}");
        weights.check()?;
        Ok(weights)
    }

    fn nowhere() -> Weights {
        Weights {
            name: String::new(),
            device: String::new(),
            fingerprint: String::new(),
            scores: String::new(),
            tensors: Default::default(),
            known: NewDecisions::default(),
            ranges: None,
        }
    }

    /// Sets the device whose measurements the weights were trained on, and the scores reached there
    /// (free text).
    pub fn trained_on(self, device: &Device, scores: impl Into<String>) -> Weights {
        Weights {
            device: device.name.clone(),
            fingerprint: device.fingerprint(),
            scores: scores.into(),
            ..self
        }
    }

    /// Sets the new decisions of the kernels in the training data.
    pub fn knowing(self, known: NewDecisions) -> Weights {
        Weights { known, ..self }
    }

    /// The new decisions that kernels had in training.
    pub fn known(&self) -> NewDecisions {
        self.known
    }

    /// Sets the errors of the predictions with these weights on pipelines that they were not trained on.
    pub fn with_ranges(self, ranges: Ranges) -> Weights {
        Weights { ranges: Some(ranges), ..self }
    }

    /// The errors of predictions, if they were measured.
    pub fn ranges(&self) -> Option<&Ranges> {
        self.ranges.as_ref()
    }

    /// The name of the weights, for reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The scores reached in training, as free text.
    pub fn scores(&self) -> &str {
        &self.scores
    }

    /// The tensors, as [`Weights::TENSORS`] describes them.
    pub fn tensors(&self) -> &[Vec<f32>; COUNT] {
        &self.tensors
    }

    /// Reads a file's bytes.
    ///
    /// # Errors
    /// If they are not weights, are damaged, or are for features that this version of the crate
    /// does not have.
    pub fn from_bytes(bytes: &[u8]) -> Result<Weights, WeightsError> {
        if !bytes.starts_with(MAGIC) {
            return Err(WeightsError::NotWeights);
        }
        let version = bytes[MAGIC.len()..].first_chunk().ok_or(WeightsError::Damaged)?;
        let found = u32::from_le_bytes(*version);
        if found != VERSION {
            return Err(WeightsError::Version { expected: VERSION, found });
        }
        let sum = bytes[MAGIC.len() + 4..].first_chunk().ok_or(WeightsError::Damaged)?;
        if u64::from_le_bytes(*sum) != xxh3_64(&bytes[START..]) {
            return Err(WeightsError::Damaged);
        }
        let (contents, rest) = decode::<Contents>(&bytes[START..])?;
        let (known, rest) = if rest.is_empty() { (NewDecisions::default(), rest) } else { decode(rest)? };
        let ranges: Option<Ranges> = if rest.is_empty() { None } else { Some(decode(rest)?.0) };
        if ranges.as_ref().is_some_and(|ranges| !ranges.is_sensible()) {
            return Err(WeightsError::Damaged);
        }
        Ok(Weights { known, ranges, ..contents.fitting()? })
    }

    /// Writes the bytes of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let contents = Contents { schema: schema_hash(), analytic: analytic_hash(), weights: self.clone() };
        let mut contents = encode(&contents);
        if self.known != NewDecisions::default() || self.ranges.is_some() {
            contents.extend(encode(&self.known));
        }
        contents.extend(self.ranges.as_ref().map(encode).unwrap_or_default());
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(xxh3_64(&contents).to_le_bytes());
        bytes.extend(contents);
        bytes
    }

    /// Checks that the weights were trained on this device.
    ///
    /// # Errors
    /// If they were trained on another device; the error names it.
    pub fn check_device(&self, device: &Device) -> Result<(), WeightsError> {
        let fingerprint = device.fingerprint();
        if self.fingerprint == fingerprint {
            return Ok(());
        }
        let found = match self.fingerprint.as_str() {
            "" => "no device".into(),
            fingerprint => format!("{} ({fingerprint})", self.device),
        };
        Err(WeightsError::Device { expected: format!("{} ({fingerprint})", device.name), found })
    }

    fn check(&self) -> Result<(), WeightsError> {
        for ((tensor, inputs, channels), weights) in Weights::TENSORS.into_iter().zip(&self.tensors) {
            let (expected, found) = (inputs * channels, weights.len());
            if found != expected {
                return Err(WeightsError::Size { tensor, expected, found });
            }
            let wrong = weights.iter().position(|weight| weight.is_nan() || weight.abs() > LARGEST);
            if let Some(index) = wrong {
                return Err(WeightsError::Value { tensor, index, value: weights[index] });
            }
        }
        Ok(())
    }
}

impl Contents {
    /// The weights, if they match the features and the analytic model of this crate.
    fn fitting(self) -> Result<Weights, WeightsError> {
        let (expected, found) = (schema_hash(), self.schema);
        if found != expected {
            return Err(WeightsError::Schema { expected, found });
        }
        let (expected, found) = (analytic_hash(), self.analytic);
        if found != expected {
            return Err(WeightsError::Analytic { expected, found });
        }
        self.weights.check()?;
        Ok(self.weights)
    }
}

fn encode(value: &impl Serialize) -> Vec<u8> {
    let encoded = bincode::serde::encode_to_vec(value, bincode::config::standard());
    encoded.expect("numbers and text can be encoded, and memory does not fail")
}

/// Decodes a value and returns the remaining bytes.
fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, &[u8]), WeightsError> {
    let config = bincode::config::standard().with_limit::<{ WEIGHTS.most as usize }>();
    let decoded = bincode::serde::decode_from_slice(bytes, config);
    let (value, length): (T, usize) = decoded.map_err(|_| WeightsError::Damaged)?;
    Ok((value, &bytes[length..]))
}

/// The splitmix64 generator.
struct Random(u64);

impl Random {
    /// A number from -1 to 1.
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    /// Weights such that a sum over `inputs` inputs of about 1 is about 1.
    fn layer(&mut self, inputs: usize, channels: usize) -> Vec<f32> {
        let range = (3.0 / inputs as f32).sqrt();
        (0..inputs * channels).map(|_| self.next() * range).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(schema: u64, analytic: u64, weights: Weights) -> Vec<u8> {
        let contents = Contents { schema, analytic, weights };
        let contents = encode(&contents);
        let sum = xxh3_64(&contents).to_le_bytes();
        [MAGIC.as_slice(), &VERSION.to_le_bytes(), &sum, &contents].concat()
    }

    #[test]
    fn random_weights_are_even_and_depend_on_the_seed() {
        let weights = Weights::random(7);
        assert_eq!(weights, Weights::random(7));
        assert_ne!(weights.tensors, Weights::random(8).tensors);
        let all = weights.tensors.concat();
        assert!(all.iter().all(|weight| (-2.0..=2.0).contains(weight)));
        let layer = &weights.tensors[4];
        let mean = layer.iter().sum::<f32>() / layer.len() as f32;
        assert!(mean.abs() < 0.01, "the mean is {mean}");
    }

    #[test]
    fn files_give_back_what_was_written() {
        let device = Device::preset("h200").unwrap();
        let weights = Weights::random(3).trained_on(&device, r#"{"ordering": 0.93}"#);
        let back = Weights::from_bytes(&weights.to_bytes()).unwrap();
        assert_eq!(back, weights);
        assert_eq!((back.name(), back.scores()), ("random 3", r#"{"ordering": 0.93}"#));
        assert_eq!(back.check_device(&device), Ok(()));
    }

    #[test]
    fn files_contain_new_decisions_if_there_are_any() {
        let (weights, decision) = (Weights::random(3), NewDecisions::EXAMPLE);
        let (plain, more) = (weights.to_bytes(), weights.clone().knowing(decision).to_bytes());
        assert_eq!(plain, file(schema_hash(), analytic_hash(), weights));
        assert_eq!(more[START..], [&plain[START..], &encode(&decision)].concat());
        let known = |bytes: &[u8]| Weights::from_bytes(bytes).map(|weights| weights.known());
        assert_eq!((known(&plain), known(&more)), (Ok(NewDecisions::default()), Ok(decision)));
    }

    #[test]
    fn files_contain_the_errors_of_predictions_if_they_are_known() {
        let weights = Weights::random(3);
        let ranges = Ranges::fit(&[(10.0, 15.0); Ranges::LEAST], &[]).unwrap();
        let known = weights.clone().with_ranges(ranges.clone());
        assert_eq!(Weights::from_bytes(&known.to_bytes()), Ok(known.clone()));
        let both = known.knowing(NewDecisions::EXAMPLE);
        assert_eq!(Weights::from_bytes(&both.to_bytes()), Ok(both));
        // A program that does not know of them reads the file too: they are at its end.
        let (plain, more) = (weights.to_bytes(), weights.with_ranges(ranges).to_bytes());
        assert!(more[START..].starts_with(&plain[START..]));
    }

    #[test]
    fn what_is_damaged_is_never_read() {
        let bytes = Weights::random(1).to_bytes();
        assert_eq!(Weights::from_bytes(b"P5 640 480 255 a picture"), Err(WeightsError::NotWeights));
        assert_eq!(Weights::from_bytes(&[]), Err(WeightsError::NotWeights));
        for length in [16, 19, 20, 27, 28, bytes.len() - 1] {
            assert_eq!(Weights::from_bytes(&bytes[..length]), Err(WeightsError::Damaged), "{length} bytes");
        }
        for place in [20, 28, 100, bytes.len() / 2, bytes.len() - 1] {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            assert_eq!(Weights::from_bytes(&changed), Err(WeightsError::Damaged), "byte {place}");
        }
        assert_eq!(Weights::from_bytes(&[bytes, vec![0]].concat()), Err(WeightsError::Damaged));
    }

    #[test]
    fn mismatches_say_what_was_expected_and_what_to_do() {
        let sentence = |bytes: &[u8]| Weights::from_bytes(bytes).unwrap_err().to_string();
        let (schema, analytic) = (schema_hash(), analytic_hash());
        let mut newer = Weights::random(1).to_bytes();
        newer[16] = 3;
        assert_eq!(
            sentence(&newer),
            "the weights file has version 3, but this program reads version 2: \
             retrain, or use the analytic model"
        );
        assert_eq!(
            sentence(&file(0xabc, analytic, Weights::random(1))),
            format!(
                "the weights are for the schedule features 0000000000000abc, but this program has {schema:016x}: \
                 retrain, or use the analytic model"
            )
        );
        assert_eq!(
            sentence(&file(schema, 0xabc, Weights::random(1))),
            format!(
                "the weights correct the analytic model 0000000000000abc, but this program has {analytic:016x}: \
                 retrain, or use the analytic model"
            )
        );
        let mut short = Weights::random(1);
        short.tensors[7].pop();
        assert_eq!(
            sentence(&file(schema, analytic, short)),
            "the tensor `hidden.bias` has 31 weights, but must have 32: retrain, or use the analytic model"
        );
        let mut wrong = Weights::random(1);
        wrong.tensors[4][5] = f32::NAN;
        assert_eq!(
            sentence(&file(schema, analytic, wrong)),
            "weight 5 of the tensor `row` is NaN: training failed, train again"
        );
    }

    #[test]
    fn weights_belong_to_a_device() {
        let (h200, v100) = (Device::preset("h200").unwrap(), Device::preset("v100").unwrap());
        let weights = Weights::random(1);
        let refused = |weights: &Weights| weights.check_device(&v100).unwrap_err().to_string();
        let (ours, theirs) = (v100.fingerprint(), h200.fingerprint());
        let rest = format!("but the device is {} ({ours}): retrain, or use the analytic model", v100.name);
        assert_eq!(refused(&weights), format!("the weights are for no device, {rest}"));
        let trained = weights.trained_on(&h200, "");
        assert_eq!(refused(&trained), format!("the weights are for {} ({theirs}), {rest}", h200.name));
    }
}
