//! The interface of cost models, and the choice of a model for a device.

use std::fmt;

use serde::Serialize;
use warploom_schedule::Dag;
use warploom_target::Device;

use crate::analytic::Analytic;
use crate::kernel::{KernelFeatures, NewDecisions};
use crate::network::{Network, Weights, WeightsError};
use crate::range::TimeRange;

/// Predicts the run times of kernels.
///
/// The cost of a schedule is the sum over its kernels. The cost of a kernel depends only on its
/// features, not on the other kernels of the batch, so costs can be memoized with the features.
pub trait CostModel: Sync {
    /// Appends the predicted time of each kernel to `costs`: the total of all its launches, in
    /// microseconds.
    fn costs(&self, dag: &Dag, kernels: &[&KernelFeatures], costs: &mut Vec<f64>);

    /// Splits a kernel's cost into named parts, for reports.
    fn explain(&self, dag: &Dag, kernel: &KernelFeatures) -> Terms;

    /// Whether the costs of kernels with these decisions can be compared with those of others.
    fn knows(&self, decisions: NewDecisions) -> bool {
        let _ = decisions;
        true
    }

    /// The times between which the measured time of a schedule lies for nine of ten pipelines, if the search picked the
    /// schedule by this predicted time. `None` if the errors of the model on the device are not known.
    fn range(&self, predicted_us: f64) -> Option<TimeRange> {
        let _ = predicted_us;
        None
    }

    /// The name for reports: `analytic`, or the name of the weights.
    fn name(&self) -> &str;
}

/// The parts of a kernel's cost.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Terms {
    /// The predicted time in microseconds.
    pub total: f64,
    /// The parts of the kernel as a whole: launches, memory traffic, SM time, latency.
    pub kernel: Vec<Term>,
    /// The parts of each row of the features, in the order of the rows.
    pub rows: Vec<Vec<Term>>,
}

/// One part of a cost. Parts overlap in time, so they do not add up to the total.
#[derive(Clone, PartialEq, Debug)]
pub struct Term {
    /// The resource that takes the time, such as `DRAM` or `issue`.
    pub name: &'static str,
    /// The time in microseconds.
    pub microseconds: f64,
}

/// What the predicted time of a schedule was computed from. Its [`Display`](fmt::Display) says it in words.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Basis {
    /// The name of the model: `analytic`, or the name of the weights.
    pub model: String,
    /// The kernels whose times are those of the analytic model, because the weights do not know all of their decisions; 0 if
    /// the model is the analytic one.
    pub analytic_kernels: usize,
    /// The words of those decisions.
    pub unknown_decisions: Vec<&'static str>,
}

impl Basis {
    /// What the times that a model predicts for some kernels are computed from.
    pub fn of(model: &dyn CostModel, kernels: &[KernelFeatures]) -> Basis {
        let all = kernels.iter().fold(NewDecisions::default(), |all, kernel| all | kernel.decisions);
        let unknown = all.words().filter(|(_, decision)| !model.knows(*decision));
        Basis {
            model: model.name().to_owned(),
            analytic_kernels: kernels.iter().filter(|kernel| !model.knows(kernel.decisions)).count(),
            unknown_decisions: unknown.map(|(word, _)| word).collect(),
        }
    }
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} model", self.model)?;
        let words: Vec<String> = self.unknown_decisions.iter().map(|word| format!("`{word}`")).collect();
        match self.analytic_kernels {
            0 => Ok(()),
            1 => write!(f, ", one kernel by the analytic one: the weights do not know {}", words.join(", ")),
            some => write!(
                f,
                ", {some} kernels by the analytic one: the weights do not know {}",
                words.join(", ")
            ),
        }
    }
}

/// The cost model that was chosen for a device, with a warning for the user.
pub struct ChosenModel {
    /// The learned model, or the analytic one if the weights cannot be used.
    pub model: Box<dyn CostModel + Send>,
    /// Why the given weights are not used, or that they were trained for another device.
    pub warning: Option<WeightsError>,
}

/// Returns the learned model if `weights` (the bytes of a weights file) fit these features, otherwise
/// the analytic one.
///
/// Weights of another device are used too, with a warning: they correct the analytic model, which is
/// that of this device.
pub fn choose(weights: Option<&[u8]>, device: &Device) -> ChosenModel {
    match weights.map(Weights::from_bytes) {
        Some(Ok(weights)) => ChosenModel {
            model: Box::new(Network::new(&weights, device)),
            warning: weights.check_device(device).err(),
        },
        Some(Err(refused)) => ChosenModel { model: Box::new(Analytic::new(device)), warning: Some(refused) },
        None => ChosenModel { model: Box::new(Analytic::new(device)), warning: None },
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use warploom_lang::{FuncId, Id};
    use warploom_schedule::{KernelNumbers, Nest, StageRef};

    use super::*;
    use crate::range::Ranges;

    #[test]
    fn weights_are_used_where_they_fit() {
        let (h200, v100) = (Device::preset("h200").unwrap(), Device::preset("v100").unwrap());
        let trained = Weights::random(1).trained_on(&h200, "").to_bytes();
        let choice = |weights: Option<&[u8]>, device: &Device| {
            let ChosenModel { model, warning } = choose(weights, device);
            (model.name().to_owned(), warning)
        };
        assert_eq!(choice(None, &h200), ("analytic".into(), None));
        assert_eq!(choice(Some(&trained), &h200), ("random 1".into(), None));
        let (name, warning) = choice(Some(&trained), &v100);
        assert!(matches!((name.as_str(), warning), ("random 1", Some(WeightsError::Device { .. }))));
        assert_eq!(choice(Some(b"a picture"), &h200), ("analytic".into(), Some(WeightsError::NotWeights)));
    }

    #[test]
    fn the_basis_names_what_the_weights_do_not_know() {
        let h200 = Device::preset("h200").unwrap();
        let mut nest = Nest::shared(StageRef { func: FuncId::new(0), stage: 0 });
        let plain = KernelFeatures::default();
        (nest.numbers.atomic, nest.numbers.pitch) = (true, NonZeroU32::new(33));
        let decisions = NewDecisions::of_kernel(KernelNumbers::default(), [&nest].into_iter());
        let atomic = KernelFeatures { decisions, ..KernelFeatures::default() };
        let basis = |model: &dyn CostModel| Basis::of(model, &[plain.clone(), atomic.clone()]);
        let weights = Weights::random(1);
        let learned = basis(&Network::new(&weights, &h200));
        assert_eq!((learned.analytic_kernels, learned.unknown_decisions.as_slice()), (1, &["atomic"][..]));
        assert_eq!(
            learned.to_string(),
            "the random 1 model, one kernel by the analytic one: the weights do not know `atomic`"
        );
        assert_eq!(basis(&Network::new(&weights.knowing(decisions), &h200)).analytic_kernels, 0);
        assert_eq!(basis(&Analytic::new(&h200)).to_string(), "the analytic model");
    }

    #[test]
    fn ranges_hold_for_the_weights_and_the_device_that_they_were_measured_with() {
        let (h200, v100) = (Device::preset("h200").unwrap(), Device::preset("v100").unwrap());
        let picks = vec![(10.0, 20.0); Ranges::LEAST];
        let weights = Weights::random(1).trained_on(&h200, "");
        let known = weights.clone().with_ranges(Ranges::fit(&picks, &[]).unwrap());
        let range = |weights: Option<&[u8]>, device: &Device| choose(weights, device).model.range(10.0);
        let expected = TimeRange { low_us: 20.0, high_us: 20.0 };
        assert_eq!(range(Some(&known.to_bytes()), &h200), Some(expected));
        assert_eq!(range(Some(&known.to_bytes()), &v100), None);
        assert_eq!(range(Some(&weights.to_bytes()), &h200), None);
        assert_eq!(range(None, &h200), None);
    }
}
