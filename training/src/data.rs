//! Samples as inputs of the network.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use thiserror::Error;
use warploom::cost::{Analytic, Featurizer, KernelInputs, RowInputs};
use warploom::lang::Pipeline;
use warploom::plan::Problem;
use warploom::schedule::Schedule;
use warploom::target::Device;
use warploom::tune::picks::is_held_out;
use warploom::tune::sample::{Sample, Shard, ShardError, Status};

/// Why samples could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DataError {
    /// The folder cannot be read.
    #[error("cannot read {}: {error}; check the path", path.display())]
    Folder {
        /// Path of the folder.
        path: PathBuf,
        /// The error from the operating system.
        error: std::io::Error,
    },
    /// The folder contains no samples.
    #[error("there are no .samples files in {}; `warploom collect` writes them", path.display())]
    NoShards {
        /// Path of the folder.
        path: PathBuf,
    },
    /// A sample file cannot be read.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// The samples are from an unknown device.
    #[error(
        "the samples are of {device}, which is unknown; `warploom devices --presets` lists the known devices"
    )]
    Device {
        /// Name of the device.
        device: String,
    },
    /// No sample can be used for training.
    #[error("{} contains no measured sample of {device} whose schedule is still legal", path.display())]
    Nothing {
        /// Path of the folder.
        path: PathBuf,
        /// Name of the requested device.
        device: String,
    },
}

/// The origin of a pipeline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An app of the suite.
    App,
    /// One of the small pipelines outside the suite.
    Small,
    /// A randomly generated pipeline.
    Random,
}

impl Kind {
    /// The origin of the pipeline with this name.
    fn of(name: &str) -> Kind {
        match warploom_apps::find(name) {
            Some(app) if warploom_apps::APPS.iter().any(|known| known.name == app.name) => Kind::App,
            Some(_) => Kind::Small,
            None => Kind::Random,
        }
    }
}

/// The samples of one pipeline at one size.
#[derive(Clone, Debug)]
pub struct Group {
    /// Name of the pipeline.
    pub name: String,
    /// Structural hash of the pipeline.
    pub pipeline: u128,
    /// Origin of the pipeline.
    pub kind: Kind,
    /// Indices of its samples in `Data::times`.
    pub samples: Range<usize>,
}

impl Group {
    /// Whether it is excluded from training and used for validation. Only random pipelines are.
    pub fn is_validation(&self) -> bool {
        self.kind == Kind::Random && is_held_out(self.pipeline)
    }
}

/// Measured samples of one device. Samples are stored by group, kernels by sample, and rows by
/// kernel; each level holds index ranges into the next one.
#[derive(Debug)]
pub struct Data {
    /// The device that all samples were measured on.
    pub device: Device,
    /// The groups, each of one pipeline at one size.
    pub groups: Vec<Group>,
    /// Shortest measured time of each sample, in microseconds.
    pub times: Vec<f32>,
    /// Range of each sample's kernels in `inputs` and `rows`.
    pub kernels: Vec<Range<usize>>,
    /// The network's inputs for each kernel.
    pub inputs: Vec<KernelInputs>,
    /// Range of each kernel's rows in `row_inputs`.
    pub rows: Vec<Range<usize>>,
    /// The network's inputs for each row.
    pub row_inputs: Vec<RowInputs>,
    /// Number of samples that were left out.
    pub left_out: LeftOut,
}

/// Number of samples that were left out, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct LeftOut {
    /// Failed, or gave wrong results.
    pub not_measured: usize,
    /// The schedule no longer parses, or is no longer legal.
    pub not_legal: usize,
    /// Repeated measurements of a schedule; the shortest time counts.
    pub repeated: usize,
    /// Measured on another device.
    pub of_other_devices: usize,
}

/// A sample of a group under construction.
struct Computed {
    time: f32,
    kernels: Vec<(KernelInputs, Vec<RowInputs>)>,
}

/// The schedules of one pipeline at one size, each with its shortest time.
struct Gathered<'a> {
    pipeline: &'a Pipeline,
    sample: &'a Sample,
    times: BTreeMap<&'a str, f64>,
}

impl Data {
    /// Reads all sample files of a folder and computes the network's inputs. Without `device`, uses
    /// that of the first sample.
    ///
    /// # Errors
    /// If the folder or a file in it cannot be read, or no sample is usable.
    pub fn read(folder: &Path, device: Option<&Device>) -> Result<Data, DataError> {
        let shards = read_shards(folder)?;
        let first = shards.iter().flat_map(|shard| &shard.samples).next();
        let device = match (device, first) {
            (Some(device), _) => device.clone(),
            (None, Some(sample)) => Device::preset(&sample.device)
                .map_err(|_| DataError::Device { device: sample.device.clone() })?,
            (None, None) => return Err(DataError::NoShards { path: folder.into() }),
        };
        let data = Data::of_shards(&shards, &device);
        if data.times.is_empty() {
            return Err(DataError::Nothing { path: folder.into(), device: device.name });
        }
        Ok(data)
    }

    /// The samples of a device in some shards.
    pub fn of_shards(shards: &[Shard], device: &Device) -> Data {
        let mut left_out = LeftOut::default();
        let gathered = gather(shards, device, &mut left_out);
        let analytic = Analytic::new(device);
        let groups: Vec<(&Gathered<'_>, Vec<Computed>)> =
            gathered.par_iter().map(|(_, group)| (group, compute(group, &analytic))).collect();
        let mut data = Data::empty(device.clone());
        for (group, computed) in groups {
            left_out.not_legal += group.times.len() - computed.len();
            data.add(group, computed);
        }
        data.left_out = left_out;
        data
    }

    fn empty(device: Device) -> Data {
        Data {
            device,
            groups: Vec::new(),
            times: Vec::new(),
            kernels: Vec::new(),
            inputs: Vec::new(),
            rows: Vec::new(),
            row_inputs: Vec::new(),
            left_out: LeftOut::default(),
        }
    }

    fn add(&mut self, group: &Gathered<'_>, computed: Vec<Computed>) {
        if computed.is_empty() {
            return;
        }
        let start = self.times.len();
        for sample in computed {
            let first = self.inputs.len();
            for (inputs, rows) in sample.kernels {
                let row = self.row_inputs.len();
                self.row_inputs.extend(rows);
                self.rows.push(row..self.row_inputs.len());
                self.inputs.push(inputs);
            }
            self.kernels.push(first..self.inputs.len());
            self.times.push(sample.time);
        }
        let name = group.pipeline.name().to_owned();
        self.groups.push(Group {
            kind: Kind::of(&name),
            name,
            pipeline: group.sample.pipeline,
            samples: start..self.times.len(),
        });
    }
}

fn read_shards(folder: &Path) -> Result<Vec<Shard>, DataError> {
    if folder.is_file() {
        return Ok(vec![Shard::read(folder)?]);
    }
    let failed = |error| DataError::Folder { path: folder.into(), error };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "samples") {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(DataError::NoShards { path: folder.into() });
    }
    // The order of directory entries is not fixed, but training depends on the order of samples.
    files.sort();
    Ok(files.par_iter().map(Shard::read).collect::<Result<_, _>>()?)
}

/// Groups samples by pipeline and size.
fn gather<'a>(
    shards: &'a [Shard],
    device: &Device,
    left_out: &mut LeftOut,
) -> Vec<((u128, String), Gathered<'a>)> {
    let mut groups: BTreeMap<(u128, String), Gathered<'a>> = BTreeMap::new();
    for (shard, sample) in shards.iter().flat_map(|shard| shard.samples.iter().map(move |one| (shard, one))) {
        let times = sample.times.filter(|times| times.min > 0.0 && sample.status == Status::Measured);
        let (Some(times), Some(pipeline)) = (times, shard.pipelines.get(&sample.pipeline)) else {
            left_out.not_measured += 1;
            continue;
        };
        if sample.device != device.name {
            left_out.of_other_devices += 1;
            continue;
        }
        let key = (sample.pipeline, format!("{:?}", sample.sizes));
        let group =
            groups.entry(key).or_insert_with(|| Gathered { pipeline, sample, times: BTreeMap::new() });
        let shortest = group.times.entry(&sample.schedule).or_insert(f64::INFINITY);
        left_out.repeated += usize::from(shortest.is_finite());
        *shortest = shortest.min(times.min);
    }
    groups.into_iter().collect()
}

/// Computes the network's inputs for each legal schedule of a group.
fn compute(group: &Gathered<'_>, analytic: &Analytic) -> Vec<Computed> {
    let pipeline = group.pipeline;
    let request = group.sample.sizes.realise(pipeline);
    let Ok(problem) = Problem::new(pipeline, &request, analytic.device()) else { return Vec::new() };
    let featurizer = Featurizer::new(&problem);
    let sample = |(text, time): (&&str, &f64)| {
        let schedule = Schedule::parse(text, pipeline).ok()?;
        if !problem.is_legal(&schedule) {
            return None;
        }
        let kernels = featurizer.of_schedule(&schedule);
        let kernels = kernels.iter().filter(|kernel| kernel.launches > 0.0).map(|kernel| {
            let inputs = KernelInputs::new(analytic, kernel);
            let rows = kernel.rows.iter().map(|row| inputs.row(analytic, kernel, row));
            (inputs, rows.collect())
        });
        Some(Computed { time: *time as f32, kernels: kernels.collect() })
    };
    group.times.par_iter().filter_map(sample).collect()
}
