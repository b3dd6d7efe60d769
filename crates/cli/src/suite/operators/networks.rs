//! Whole networks: sums over their layers.

use serde::{Deserialize, Serialize};
use warploom_apps::operators::{NETWORKS, Network};

use super::report::Row;
use crate::suite::timed::{times, us};
use crate::table::Align;

/// What FlexTensor claims over cuDNN on a V100.
const FLEXTENSOR: [(&str, &str); 2] = [("YOLO-v1, convolutions", "1.07x"), ("OverFeat", "1.39x")];

/// A network as the sum of its layers.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct Summed {
    network: String,
    layers: u32,
    /// `null` until every layer has a time.
    min_us: Option<f64>,
    /// `null` if a layer has no time of a library.
    library_us: Option<f64>,
    ratio: Option<f64>,
    /// What FlexTensor claims.
    flextensor: Option<String>,
}

pub(crate) const NETWORK_TITLES: [(&str, Align); 6] = [
    ("network", Align::Left),
    ("layers", Align::Right),
    ("minimum us", Align::Right),
    ("library us", Align::Right),
    ("ratio", Align::Right),
    ("FlexTensor", Align::Left),
];

impl Summed {
    fn new(network: &Network, rows: &[Row]) -> Summed {
        let sum = |time: fn(&Row) -> Option<f64>| -> Option<f64> {
            let layers = network.layers.iter().map(|(name, count)| {
                let row = rows.iter().find(|row| row.name == *name)?;
                Some(f64::from(*count) * time(row)?)
            });
            layers.sum()
        };
        let (min_us, library_us) = (sum(|row| row.timed.min_us), sum(|row| row.library.best_us()));
        let claim = FLEXTENSOR.iter().find(|(name, _)| *name == network.name);
        Summed {
            network: network.name.to_owned(),
            layers: network.layers.iter().map(|(_, count)| count).sum(),
            min_us,
            library_us,
            ratio: library_us.zip(min_us).map(|(other, own)| other / own),
            flextensor: claim.map(|(_, claim)| (*claim).to_owned()),
        }
    }

    /// The cells of its table row, under [`NETWORK_TITLES`].
    pub(crate) fn cells(&self) -> Vec<String> {
        vec![
            self.network.clone(),
            self.layers.to_string(),
            us(self.min_us),
            us(self.library_us),
            times(self.ratio),
            self.flextensor.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    }
}

/// All networks, whether or not their layers have been run.
pub(super) fn sums(rows: &[Row]) -> Vec<Summed> {
    NETWORKS.iter().map(|network| Summed::new(network, rows)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_about_networks() {
        for (name, _) in FLEXTENSOR {
            assert!(NETWORKS.iter().any(|network| network.name == name), "{name}");
        }
    }
}
