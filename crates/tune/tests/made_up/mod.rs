//! A small pipeline, a device that is made up, and a place for records.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tempfile::TempDir;
use warploom_cost::Analytic;
use warploom_interp::buffer::Buffer;
use warploom_lang::{Input, Pipeline, Region, func, vars};
use warploom_search as search;
use warploom_target::Device;
use warploom_tune::measure::{Check, Subject};
use warploom_tune::records::{Records, Trial};
use warploom_tune::tuning::Task;
use warploom_tune::worker::{BenchOptions, OpenBench, Patience};
use warploom_tune::workload::Workload;

pub fn workload(width: i64) -> Workload {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let edge = input.repeat_edge();
    let row = func("row", (x, y), edge.at((x - 1, y)) + edge.at((x + 1, y)));
    let column = func("column", (x, y), row.at((x, y - 1)) * row.at((x, y + 1)));
    let blur = func("blur", (x, y), column.at((x, y)) + row.at((x, y)));
    let pipeline = Pipeline::new("blur", [blur]).unwrap();
    let region = Region::of_extents(&[width, width]);
    let buffer = Buffer::from_fn::<f32>(region.clone(), |at| (at[0] * 7 + at[1]) as f32).unwrap();
    Workload { pipeline, inputs: vec![buffer], params: Vec::new(), outputs: vec![region] }
}

/// What every run here has.
pub struct Subjects {
    pub subject: Arc<Subject>,
    pub small: Arc<Check>,
    pub model: Analytic,
    pub stop: AtomicBool,
}

pub fn subjects() -> Subjects {
    Subjects {
        subject: Arc::new(Subject::of(&workload(300)).unwrap()),
        small: Arc::new(Check::of_workload(workload(17), None).unwrap()),
        model: Analytic::new(&Device::preset("h200").unwrap()),
        stop: AtomicBool::new(false),
    }
}

impl Subjects {
    pub fn task(&self) -> Task<'_> {
        Task {
            subject: self.subject.clone(),
            small: Some(self.small.clone()),
            tolerance: None,
            model: &self.model,
            search: search::Options { beam: 4, passes: 2, samples: 12, threads: 1, ..Default::default() },
            deadline: None,
            stop: &self.stop,
        }
    }
}

pub fn bench(fake: &str) -> OpenBench {
    let patience =
        Patience { compile: Duration::from_secs(2), run: Duration::from_secs(2), ..Patience::default() };
    let fake = Some(fake.parse().unwrap());
    OpenBench::open(&BenchOptions { fake, patience, threads: 2, ..BenchOptions::default() }).unwrap()
}

pub struct RecordsPlace {
    pub folder: TempDir,
    pub records: PathBuf,
}

pub fn place() -> RecordsPlace {
    let folder = tempfile::tempdir().unwrap();
    let records = folder.path().join("tuning.db");
    RecordsPlace { folder, records }
}

pub fn trials(records: &Path) -> Vec<Trial> {
    Records::open_existing(records).unwrap().trials(None).unwrap()
}
