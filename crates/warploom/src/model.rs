//! The cost model that is used where none is given.

use warploom_cost::{Chosen, choose};
use warploom_models::nearest;
use warploom_target::Device;

/// The model for a device: learned, if weights come with the library; those of the nearest device serve too, with a warning.
///
/// ```
/// use warploom::prelude::*;
/// let chosen = warploom::model_for(&Device::preset("h200")?);
/// assert!(chosen.warning.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn model_for(device: &Device) -> Chosen {
    let weights = nearest(&device.name, (device.compute.major, device.compute.minor));
    choose(weights.map(|model| model.bytes), device)
}
