//! The choice of the cost model: built-in weights, weights from a file, or the analytic model.

use std::path::Path;

use warploom::cost::{Analytic, ChosenModel, CostModel, Network, Weights, WeightsError};
use warploom::lang::files;
use warploom::model_for;
use warploom::target::Device;

use crate::error::Error;
use crate::voice;

/// What stands for the analytic model where weights are given.
pub(crate) const ANALYTIC: &str = "analytic";

/// What predicts times.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Model {
    /// The cost model: a weights file, or `analytic` (default: the built-in weights)
    #[arg(long, value_name = "FILE", help_heading = "Kernels")]
    model: Option<String>,
}

impl Model {
    /// Loads the model for a device. Warnings about it go to standard error.
    pub(crate) fn load(&self, device: &Device) -> Result<Box<dyn CostModel + Send>, Error> {
        let ChosenModel { model, warning } = match self.model.as_deref() {
            Some(ANALYTIC) => return Ok(Box::new(Analytic::new(device))),
            Some(file) => {
                let weights = read(Path::new(file))?;
                let warning = weights.check_device(device).err();
                ChosenModel { model: Box::new(Network::new(&weights, device)), warning }
            }
            None => model_for(device),
        };
        if let Some(warning) = warning {
            voice::note(&note(&warning));
        }
        Ok(model)
    }
}

/// What a warning says here, with the commands and flags that help.
fn note(warning: &WeightsError) -> String {
    match warning {
        WeightsError::Device { expected, found } => format!(
            "the weights are for {found}, but the device is {expected}, so predicted times are rough; measure with \
             `warploom tune`, or give --model analytic or --model FILE"
        ),
        warning => format!("{warning}; --model analytic needs none"),
    }
}

/// The built-in weights that are nearest to a device.
pub(crate) fn built_in(device: &Device) -> Option<Weights> {
    let compute = (device.compute.major, device.compute.minor);
    let model = warploom::models::nearest(&device.name, compute)?;
    Weights::from_bytes(model.bytes).ok()
}

/// Reads a file of weights.
pub(crate) fn read(path: &Path) -> Result<Weights, Error> {
    let file = path.display().to_string();
    let bytes = files::read(path, files::WEIGHTS)?;
    Weights::from_bytes(&bytes).map_err(|error| Error::Weights { file, error })
}
