//! What every cost model offers.

use warploom_schedule::Dag;
use warploom_target::Device;

use crate::analytic::Analytic;
use crate::kernel::KernelFeatures;
use crate::network::{Network, Weights, WeightsError};

/// Predicts how long kernels run.
///
/// The cost of a schedule is the sum over its kernels; the cost of a kernel depends on its features alone, not on what
/// else is in the batch, so that costs can be memoized with them.
pub trait CostModel: Sync {
    /// Appends the predicted time of each kernel to `costs`, all its launches together, in microseconds.
    fn costs(&self, dag: &Dag, kernels: &[&KernelFeatures], costs: &mut Vec<f64>);

    /// What a kernel's cost consists of, for people.
    fn explain(&self, dag: &Dag, kernel: &KernelFeatures) -> Terms;

    /// The name for reports: `analytic`, or that of the weights.
    fn name(&self) -> &str;
}

/// The parts of a kernel's cost.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Terms {
    /// The predicted time, microseconds.
    pub total: f64,
    /// What the kernel as a whole takes: launches, waves, occupancy.
    pub kernel: Vec<Term>,
    /// What each row of the features takes, in their order.
    pub rows: Vec<Vec<Term>>,
}

/// One part of a cost. Parts that overlap in time do not add up to the whole.
#[derive(Clone, PartialEq, Debug)]
pub struct Term {
    /// What takes the time.
    pub name: &'static str,
    /// How much, microseconds.
    pub microseconds: f64,
}

/// A model for a device, and why it is not the learned one.
pub struct Chosen {
    /// The model.
    pub model: Box<dyn CostModel + Send>,
    /// What is wrong with the weights that were given.
    pub refused: Option<WeightsError>,
}

/// The learned model if there are weights (the bytes of a file) for these features and this device, otherwise the
/// analytic one.
pub fn choose(weights: Option<&[u8]>, device: &Device) -> Chosen {
    let fitting = |bytes: &[u8]| {
        let weights = Weights::from_bytes(bytes)?;
        weights.check_device(device).map(|()| Network::new(&weights, device))
    };
    match weights.map(fitting) {
        Some(Ok(network)) => Chosen { model: Box::new(network), refused: None },
        Some(Err(refused)) => Chosen { model: Box::new(Analytic::new(device)), refused: Some(refused) },
        None => Chosen { model: Box::new(Analytic::new(device)), refused: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_used_where_they_fit() {
        let (h200, v100) = (Device::preset("h200").unwrap(), Device::preset("v100").unwrap());
        let trained = Weights::random(1).trained_on(&h200, "").to_bytes();
        let choice = |weights: Option<&[u8]>, device: &Device| {
            let Chosen { model, refused } = choose(weights, device);
            (model.name().to_owned(), refused)
        };
        assert_eq!(choice(None, &h200), ("analytic".into(), None));
        assert_eq!(choice(Some(&trained), &h200), ("random 1".into(), None));
        let (name, refused) = choice(Some(&trained), &v100);
        assert!(matches!((name.as_str(), refused), ("analytic", Some(WeightsError::Device { .. }))));
        assert_eq!(choice(Some(b"a picture"), &h200), ("analytic".into(), Some(WeightsError::NotWeights)));
    }
}
