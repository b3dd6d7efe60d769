//! Recorded times of other systems, to compare with.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use warploom::lang::files;

use crate::error::Error;

/// A file of recorded times.
#[derive(Debug, Deserialize)]
pub(super) struct Anchors {
    /// The device that the times were measured on.
    pub device: String,
    apps: BTreeMap<String, Anchor>,
}

/// The times of an app, in microseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Anchor {
    /// With the schedule that Halide's authors wrote.
    pub halide_manual_us: Option<f64>,
    /// With the schedule that Halide's GPU autoscheduler finds.
    pub anderson2021_us: Option<f64>,
    /// An approximate lower bound.
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
