//! A pipeline at a size on a device.

use warploom_lang::*;
use warploom_plan::Problem;
use warploom_target::Device;

/// Outputs with the extents of some inputs and outputs by name, on an H200.
pub fn problem(
    name: &str,
    outputs: impl IntoIterator<Item = Func>,
    sizes: &[(&str, impl AsRef<[i64]>)],
) -> Problem {
    let pipeline = Pipeline::new(name, outputs).unwrap_or_else(|error| panic!("{error}"));
    let mut request = Realisation::new(&pipeline);
    for (name, extents) in sizes {
        let region = Region::of_extents(extents.as_ref());
        request = match pipeline.input_named(name) {
            Some(_) => request.input(name, region),
            None => request.output(name, region),
        };
    }
    let problem = Problem::new(&pipeline, &request, &Device::preset("h200").unwrap());
    problem.unwrap_or_else(|error| panic!("{name}: {error}"))
}
