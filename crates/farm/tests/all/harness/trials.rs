//! The problem and the trials of these tests.

use warploom_lang::{Input, Pipeline, Realisation, Region, func, vars};
use warploom_target::Device;
use warploom_tune::records::{ProblemId, Records, Trial};
use warploom_tune::sample::{KernelUse, Origin, Sample, Sizes, Status, Times};

pub fn pipeline() -> Pipeline {
    let x = vars!(x);
    let input = Input::f32("input", 1);
    Pipeline::new("twice", [func("twice", x, input.at(x) * 2.0)]).unwrap()
}

pub fn request(width: i64) -> Realisation {
    let region = Region::of_extents(&[width]);
    Realisation::new(&pipeline()).input("input", region.clone()).output("twice", region)
}

pub fn versions() -> Vec<String> {
    ["warploom 1", "nvrtc 2", "driver 3"].map(str::to_owned).to_vec()
}

pub fn device() -> Device {
    Device::preset("h200").unwrap()
}

pub fn trial(schedule: &str, microseconds: f64) -> Trial {
    let sample = Sample {
        pipeline: pipeline().structural_hash(),
        sizes: Sizes::of(&request(100)),
        schedule: schedule.to_owned(),
        origin: Origin::Search,
        device: device().name,
        fingerprint: device().fingerprint(),
        versions: versions(),
        status: Status::Measured,
        verified: true,
        times: Some(Times { min: microseconds, median: microseconds * 1.01, runs: 20 }),
        kernels: vec![KernelUse {
            name: "k".into(),
            registers: 40,
            spill_stores: 0,
            spill_loads: 0,
            shared: 1024,
        }],
        compile_ms: 12.5,
    };
    Trial::new(sample, Some(microseconds * 0.9), 0.02)
}

pub fn failed(schedule: &str, status: Status) -> Trial {
    let mut trial = trial(schedule, 1.0);
    trial.sample.status = status;
    trial.sample.times = None;
    trial
}

/// The problem of these tests.
pub fn problem(records: &mut Records) -> ProblemId {
    records.problem(&pipeline(), &request(100), &device(), &versions()).unwrap()
}
