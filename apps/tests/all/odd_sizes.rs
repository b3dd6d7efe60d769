//! Every app at sizes and parameters that no reference data covers: the evaluator against the naive one,
//! which goes point by point and uses no bounds.

#[path = "../../../crates/interp/tests/all/naive.rs"]
mod naive;

use naive::Naive;
use warploom::app::Settings;
use warploom::interp::Evaluation;
use warploom::prelude::*;
use warploom::tune::workload::Workload;

/// Compares one app at `changes`; of large outputs only a corner away from the origin.
fn check(name: &str, changes: &[(&str, f64)]) {
    let app = warploom_apps::find(name).expect("the app is in the suite");
    let mut settings = Settings::defaults(app);
    for (setting, value) in changes {
        assert!(settings.set(setting, *value), "{name} has no setting {setting}");
    }
    let shapes = app.shapes_at(&settings);
    let Workload { pipeline, inputs, params, .. } =
        app.workload(&settings, 7).expect("the pipeline is right");

    let (output, region) = &shapes.outputs[0];
    let region = corner(region);
    let mut evaluation = Evaluation::new(&pipeline).output(output, region.clone());
    for (decl, buffer) in pipeline.inputs().values().zip(&inputs) {
        evaluation = evaluation.input(&decl.name, buffer);
    }
    for (decl, value) in pipeline.params().values().zip(&params) {
        evaluation = evaluation.param(&decl.name, *value);
    }
    let got = evaluation.run().unwrap_or_else(|error| panic!("{name} {changes:?}: {error}"));
    let id = pipeline.outputs()[0];
    let expected = Naive::new(&pipeline, inputs.iter().collect(), params).values(id, &region);
    let got = got[0].offsets().map(|offset| sample(&got[0], offset));
    for (i, (got, expected)) in got.zip(&expected).enumerate() {
        assert_eq!(got, expected[0], "{name} {changes:?}: sample {i} of {region}");
    }
}

/// At most 6 points of each dimension, the last ones.
fn corner(region: &Region) -> Region {
    let last = |range: &Range| Range::new(range.end() - range.extent.min(6), range.extent.min(6));
    Region(region.0.iter().map(last).collect())
}

fn sample(buffer: &Buffer, offset: usize) -> Value {
    warploom::lang::dispatch!(buffer.ty(), T => {
        Value::from(buffer.as_slice::<T>().expect("it is its type")[offset])
    })
}

#[test]
fn stencils_at_odd_sizes() {
    check("unsharp", &[("W", 13.0), ("H", 7.0)]);
    check("unsharp", &[("W", 1.0), ("H", 1.0), ("sigma", 0.7)]);
    check("harris", &[("W", 15.0), ("H", 11.0)]);
    check("harris", &[("W", 7.0), ("H", 7.0)]);
    check("stencil_chain", &[("W", 9.0), ("H", 5.0), ("stencils", 4.0)]);
    check("max_filter", &[("W", 11.0), ("H", 9.0), ("radius", 3.0)]);
    check("max_filter", &[("W", 5.0), ("H", 6.0), ("radius", 1.0)]);
    check("learned_demosaic", &[("W", 10.0), ("H", 8.0), ("K", 3.0)]);
    check("camera_pipe", &[("W", 11.0), ("H", 7.0), ("color_temp", 5200.0), ("contrast", 20.0)]);
}

#[test]
fn histograms_grids_and_scans_at_odd_sizes() {
    check("hist", &[("W", 17.0), ("H", 5.0)]);
    check("bilateral_grid", &[("W", 19.0), ("H", 13.0), ("r_sigma", 0.3)]);
    check("bilateral_grid", &[("W", 11.0), ("H", 9.0), ("s_sigma", 5.0)]);
    check("iir_blur", &[("W", 9.0), ("H", 7.0), ("alpha", 0.2)]);
    check("bgu", &[("W", 23.0), ("H", 17.0), ("w", 7.0), ("h", 5.0), ("s_sigma", 3.0), ("r_sigma", 0.4)]);
}

#[test]
fn pyramids_at_odd_sizes() {
    check("local_laplacian", &[("W", 11.0), ("H", 9.0), ("pyramid_levels", 3.0), ("levels", 4.0)]);
    check("local_laplacian", &[("W", 8.0), ("H", 5.0), ("pyramid_levels", 1.0), ("beta", 0.5)]);
    check("interpolate", &[("W", 21.0), ("H", 13.0), ("levels", 5.0)]);
    check(
        "lens_blur",
        &[("W", 129.0), ("H", 130.0), ("slices", 2.0), ("focus_depth", 1.0), ("aperture_samples", 3.0)],
    );
}

#[test]
fn sums_at_odd_sizes() {
    check("nl_means", &[("W", 9.0), ("H", 7.0), ("patch_size", 4.0), ("search_area", 2.0)]);
    check("nl_means", &[("W", 6.0), ("H", 5.0), ("patch_size", 3.0), ("search_area", 3.0), ("sigma", 0.3)]);
    check("conv_layer", &[("N", 1.0), ("CI", 3.0), ("CO", 5.0), ("W", 4.0), ("H", 3.0)]);
    check("cuda_mat_mul", &[("size", 7.0)]);
    check(
        "depthwise_separable_conv",
        &[("N", 2.0), ("CI", 3.0), ("CO", 5.0), ("W", 5.0), ("H", 4.0), ("FW", 5.0), ("FH", 3.0)],
    );
}
