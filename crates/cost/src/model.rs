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

/// A model for a device, and what should be known about it.
pub struct Chosen {
    /// The model.
    pub model: Box<dyn CostModel + Send>,
    /// Why the weights that were given are not used, or that they are for another device.
    pub warning: Option<WeightsError>,
}

/// The learned model if there are weights (the bytes of a file) for these features, otherwise the analytic one.
///
/// Weights of another device serve too, with a warning: they correct the analytic model, which is that of this device.
pub fn choose(weights: Option<&[u8]>, device: &Device) -> Chosen {
    match weights.map(Weights::from_bytes) {
        Some(Ok(weights)) => Chosen {
            model: Box::new(Network::new(&weights, device)),
            warning: weights.check_device(device).err(),
        },
        Some(Err(refused)) => Chosen { model: Box::new(Analytic::new(device)), warning: Some(refused) },
        None => Chosen { model: Box::new(Analytic::new(device)), warning: None },
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
            let Chosen { model, warning } = choose(weights, device);
            (model.name().to_owned(), warning)
        };
        assert_eq!(choice(None, &h200), ("analytic".into(), None));
        assert_eq!(choice(Some(&trained), &h200), ("random 1".into(), None));
        let (name, warning) = choice(Some(&trained), &v100);
        assert!(matches!((name.as_str(), warning), ("random 1", Some(WeightsError::Device { .. }))));
        assert_eq!(choice(Some(b"a picture"), &h200), ("analytic".into(), Some(WeightsError::NotWeights)));
    }
}
