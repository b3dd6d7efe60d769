//! Training during autotuning.

use std::error::Error;

use warploom::cost::Weights;
use warploom::target::Device;
use warploom::tune::retrain::Retrain;
use warploom::tune::sample::Shard;

use crate::data::Data;
use crate::train::{Options, train};

/// Trains on the samples of the device being tuned for.
#[derive(Clone, Debug, Default)]
pub struct Retrainer {
    /// Training options of every call.
    pub options: Options,
}

impl Retrain for Retrainer {
    fn retrain(
        &mut self,
        samples: &Shard,
        device: &Device,
        initial: Option<&Weights>,
    ) -> Result<Weights, Box<dyn Error + Send + Sync>> {
        let data = Data::of_shards(std::slice::from_ref(samples), device);
        let trained = train(&data, |_| true, initial, "autotuned", &self.options, &mut |_| {})?;
        Ok(trained.weights)
    }
}
