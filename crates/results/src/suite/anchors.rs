//! Recorded times of other systems, to compare with.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use warploom::lang::files;

use crate::error::ResultsError;

/// A file of recorded times.
#[derive(Debug, Deserialize)]
pub struct Anchors {
    /// The device that the times were measured on.
    pub device: String,
    apps: BTreeMap<String, Anchor>,
}

report! {
    /// The times of an app, in microseconds.
    #[derive(Clone, Copy, Debug, Default, Deserialize)]
    pub struct Anchor = "anchor" {
        pub halide_manual_us: Option<f64>, "with the schedule of Halide's authors";
        pub anderson2021_us: Option<f64>, "with the schedule of Halide's autoscheduler";
        pub floor_us: Option<f64>, "a lower bound";
    }
}

impl Anchors {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or holds something else.
    pub fn read(path: &Path) -> Result<Anchors, ResultsError> {
        read(path)
    }

    /// The times of an app.
    pub fn of(&self, app: &str) -> Anchor {
        self.apps.get(app).copied().unwrap_or_default()
    }
}

/// A file of times of libraries.
#[derive(Debug, Deserialize)]
pub struct LibraryTimes {
    /// The device that the times were measured on.
    pub device: String,
    rows: Vec<LibraryRow>,
}

#[derive(Debug, Deserialize)]
struct LibraryRow {
    name: String,
    shape: String,
    #[serde(flatten)]
    times: LibraryTime,
}

report! {
    /// The times of an operator in libraries, in microseconds.
    #[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize)]
    pub struct LibraryTime = "library" {
        pub fp32_us: Option<f64>, "without tensor cores";
        pub compiled_us: Option<f64>, "without tensor cores, through a compiler that fuses operations";
        pub tf32_us: Option<f64>, "with tensor cores";
    }
}

impl LibraryTimes {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or holds something else.
    pub fn read(path: &Path) -> Result<LibraryTimes, ResultsError> {
        read(path)
    }

    /// The times of an operator.
    pub fn of(&self, name: &str, shape: &str) -> LibraryTime {
        let own = self.rows.iter().find(|row| row.name == name && row.shape == shape);
        own.map(|row| row.times).unwrap_or_default()
    }
}

impl LibraryTime {
    /// The time to compare with: the best without tensor cores.
    pub fn best_us(&self) -> Option<f64> {
        self.fp32_us.into_iter().chain(self.compiled_us).filter(|us| *us > 0.0).min_by(f64::total_cmp)
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, ResultsError> {
    let text = files::read_text(path)?;
    let file = path.display().to_string();
    serde_json::from_str(&text).map_err(|error| ResultsError::Anchors { file, error })
}
