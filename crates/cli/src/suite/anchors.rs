//! Times of other systems, recorded once.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use warploom::lang::files;

use crate::error::Error;

/// A file of times.
#[derive(Debug, Deserialize)]
pub(super) struct Anchors {
    /// The device that they are of.
    pub device: String,
    apps: BTreeMap<String, Anchor>,
}

/// The times of an app, microseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Anchor {
    /// Under the schedule that Halide's authors wrote.
    pub halide_manual_us: Option<f64>,
    /// Under what Halide's GPU autoscheduler finds.
    pub anderson2021_us: Option<f64>,
    /// The least that is possible, roughly.
    pub floor_us: Option<f64>,
}

impl Anchors {
    pub fn read(path: &Path) -> Result<Anchors, Error> {
        let file = path.display().to_string();
        let text = files::read_text(path)?;
        serde_json::from_str(&text).map_err(|error| Error::Anchors { file, error })
    }

    pub fn of(&self, app: &str) -> Anchor {
        self.apps.get(app).copied().unwrap_or_default()
    }
}
