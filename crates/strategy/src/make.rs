//! Strategies by name.

use crate::anneal_q::{AnnealQ, AnnealQSettings};
use crate::g_bfs::{GBfs, GBfsSettings};
use crate::genetic::{Genetic, GeneticSettings};
use crate::n_a2c::{NA2c, NA2cSettings};
use crate::opevo::{OpEvo, OpEvoSettings};
use crate::random::{Random, RandomSettings};
use crate::{Settings, Strategy};

/// Why a strategy cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no strategy of this name.
    #[error("there is no strategy `{name}`; there are {}", known.join(", "))]
    UnknownStrategy {
        /// The requested name.
        name: String,
        /// The known names.
        known: Vec<&'static str>,
    },
    /// The strategy has no such setting.
    #[error(
        "there is no setting `{name}`; {}",
        if known.is_empty() { "this strategy has none".to_owned() } else { format!("there are {known}") }
    )]
    UnknownSetting {
        /// The requested setting.
        name: String,
        /// The known settings.
        known: String,
    },
    /// A setting without a value.
    #[error("`{text}` is no setting: write name=value, with commas between several")]
    NotAPair {
        /// The text.
        text: String,
    },
    /// A setting was set twice.
    #[error("`{name}` is set twice")]
    Twice {
        /// The name of the setting.
        name: String,
    },
    /// A value that the setting cannot have.
    #[error("`{name}` cannot be `{value}`: expected {expected}")]
    Value {
        /// The setting.
        name: String,
        /// The text of the value.
        value: String,
        /// The accepted values.
        expected: String,
    },
}

/// The names of all strategies.
pub fn names() -> [&'static str; 6] {
    ["random", "genetic", "opevo", "g-bfs", "n-a2c", "anneal-q"]
}

/// A strategy by its name, for a run of `trials` trials. Settings are text such as `q=0.3,parents=20`; others have
/// defaults, some of which depend on the trials.
pub fn make(name: &str, trials: usize, seed: u64, settings: &str) -> Result<Box<dyn Strategy>, Error> {
    Ok(match name {
        "random" => Box::new(Random::new(RandomSettings.parse(settings)?, seed)),
        "genetic" => Box::new(Genetic::new(GeneticSettings::of(trials).parse(settings)?, seed)),
        "opevo" => Box::new(OpEvo::new(OpEvoSettings::of(trials).parse(settings)?, seed)),
        "g-bfs" => Box::new(GBfs::new(GBfsSettings::default().parse(settings)?, seed)),
        "n-a2c" => Box::new(NA2c::new(NA2cSettings::default().parse(settings)?, seed)),
        "anneal-q" => Box::new(AnnealQ::new(AnnealQSettings::of(trials).parse(settings)?, seed)),
        _ => return Err(Error::UnknownStrategy { name: name.to_owned(), known: names().to_vec() }),
    })
}
