//! The default cost model.

use warploom_cost::{ChosenModel, choose};
use warploom_models::nearest;
use warploom_target::Device;

/// The cost model for a device: the learned model if the library ships weights for it or for a
/// similar device, otherwise the analytic one. Using the weights of another device gives a warning.
///
/// ```
/// use warploom::prelude::*;
/// let chosen = warploom::model_for(&Device::preset("h200")?);
/// assert!(chosen.warning.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn model_for(device: &Device) -> ChosenModel {
    let weights = nearest(&device.name, (device.compute.major, device.compute.minor));
    choose(weights.map(|model| model.bytes), device)
}
