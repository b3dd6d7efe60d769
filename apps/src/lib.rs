//! The apps of the Warploom suite: seventeen pipelines from photography, vision and machine
//! learning. Each has its own file with the algorithm, its sizes and Params, typical inputs and its
//! operation count.
//!
//! ```
//! use warploom::app::Settings;
//!
//! let app = warploom_apps::find("harris").ok_or("no such app")?;
//! let settings = Settings::defaults(app);
//! let pipeline = app.pipeline(&settings)?;
//! assert_eq!(pipeline.funcs().len(), 12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::LazyLock;

use warploom::app::App;

pub use basics::BASICS;

pub mod basics;
pub mod bgu;
pub mod bilateral_grid;
pub mod camera_pipe;
pub mod conv_layer;
pub mod cuda_mat_mul;
pub mod depthwise_separable_conv;
pub mod harris;
pub mod hist;
pub mod iir_blur;
pub mod interpolate;
pub mod learned_demosaic;
pub mod lens_blur;
pub mod local_laplacian;
pub mod max_filter;
pub mod natural;
pub mod nl_means;
pub mod operators;
pub mod stencil_chain;
pub mod unsharp;

/// All apps, in the order of the suite.
pub static APPS: LazyLock<[App; 17]> = LazyLock::new(|| {
    [
        unsharp::app(),
        harris::app(),
        hist::app(),
        max_filter::app(),
        bilateral_grid::app(),
        local_laplacian::app(),
        interpolate::app(),
        stencil_chain::app(),
        iir_blur::app(),
        conv_layer::app(),
        cuda_mat_mul::app(),
        depthwise_separable_conv::app(),
        nl_means::app(),
        camera_pipe::app(),
        lens_blur::app(),
        bgu::app(),
        learned_demosaic::app(),
    ]
});

/// The app of the suite, or the small pipeline, with this name.
pub fn find(name: &str) -> Option<&'static App> {
    APPS.iter().chain(BASICS.iter()).find(|app| app.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use warploom::app::{InputRequest, Settings};

    use super::*;

    /// The declarations of each app match its pipeline.
    #[test]
    fn apps_agree_with_their_pipelines() {
        for app in APPS.iter() {
            let mut settings = Settings::defaults(app);
            for size in app.sizes.iter().filter(|size| size.default > 256.0) {
                assert!(settings.set(&size.name, 256.0));
            }
            let pipeline = app.pipeline(&settings).unwrap_or_else(|error| panic!("{}: {error}", app.name));
            let shapes = app.shapes_at(&settings);
            assert_eq!(pipeline.name(), app.name);

            let declared: BTreeSet<&str> = shapes.inputs.iter().map(|(name, _)| name.as_str()).collect();
            let used = pipeline.inputs().values().map(|input| input.name.as_str()).collect();
            assert_eq!(declared, used, "inputs of {}", app.name);
            for (name, region) in &shapes.inputs {
                let ty = pipeline.inputs()[pipeline.input_named(name).unwrap()].ty;
                let request = InputRequest { name, ty, region: region.clone(), seed: 1, settings: &settings };
                let buffer = app.input(&request).unwrap();
                assert_eq!(buffer.region(), region, "{name} of {}", app.name);
                assert_eq!(buffer.ty(), ty, "{name} of {}", app.name);
                let other = app.input(&InputRequest { seed: 2, ..request }).unwrap();
                assert_eq!(buffer.data() == other.data(), app.owns_input(name), "{name} of {}", app.name);
            }

            let outputs: Vec<&str> = shapes.outputs.iter().map(|(name, _)| name.as_str()).collect();
            let made: Vec<&str> = pipeline.outputs().iter().map(|&id| &*pipeline.funcs()[id].name).collect();
            assert_eq!(outputs, made, "outputs of {}", app.name);

            let params: BTreeSet<&str> =
                app.param_settings().iter().map(|param| param.name.as_str()).collect();
            let used = pipeline.params().values().map(|param| param.name.as_str()).collect();
            assert_eq!(params, used, "Params of {}", app.name);
            assert!(app.operations_at(&settings).unwrap() > 0.0);
        }
    }

    #[test]
    fn apps_are_found_by_name() {
        assert!(APPS.iter().all(|app| find(&app.name).is_some_and(|found| found.name == app.name)));
        assert!(find("no_such_app").is_none());
    }
}
