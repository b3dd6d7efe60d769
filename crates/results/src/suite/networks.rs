//! Whole networks: sums over their layers.

use serde::Deserialize;
use warploom_apps::operators::{NETWORKS, Network};
use warploom_report::{Table, dash};

use super::operators::Row;
use super::timed::{times, us};

/// What FlexTensor claims over cuDNN on a V100.
const FLEXTENSOR: [(&str, &str); 2] = [("YOLO-v1, convolutions", "1.07x"), ("OverFeat", "1.39x")];

report! {
    /// A network as the sum of its layers.
    #[derive(Clone, Deserialize)]
    pub struct Summed = "network" {
        network: String, "its name";
        layers: u32, "the number of its layers";
        min_us: Option<f64>, "the sum of the layers' shortest times; `null` until all were run";
        library_us: Option<f64>, "the sum of the libraries' times; `null` if one is missing";
        ratio: Option<f64>, "the latter divided by the former";
        flextensor: Option<String>, "what FlexTensor claims";
    }
}

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
}

/// The table of networks.
pub(crate) fn network_table(networks: &[Summed]) -> Table {
    Table::of(networks)
        .left("network", |network| network.network.clone())
        .right("layers", |network| network.layers.to_string())
        .right("minimum us", |network| us(network.min_us))
        .right("library us", |network| us(network.library_us))
        .right("ratio", |network| times(network.ratio))
        .left("FlexTensor", |network| dash(network.flextensor.as_ref()))
        .done()
}

/// All networks, whether or not their layers have been run.
pub(crate) fn sums(rows: &[Row]) -> Vec<Summed> {
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
