//! Kernels for any size: every app is built once for a range of sizes, and gives the evaluator's bits in the
//! simulator at twelve of them, dense and with two pitches.

use warploom::app::{App, Settings};
use warploom::codegen::build::build_with;
use warploom::codegen::instance::Strides;
use warploom::codegen::ir::{Program, Role};
use warploom::codegen::lower;
use warploom::interp::compare::{Tolerance, compare};
use warploom::lang::dynamic::SizeRange;
use warploom::plan::Problem;
use warploom::prelude::*;
use warploom::schedule::Schedule;
use warploom::tune::workload::Workload;

use crate::common::{h200, hand_written, unfilled, workload};

/// Sizes of pictures; each is combined with another one.
const EXTENTS: [i64; 12] = [1, 2, 3, 5, 8, 13, 17, 31, 32, 33, 50, 67];

/// The sizes of an app that vary, and what stays fixed.
struct Subject {
    app: &'static App,
    fixed: Vec<(&'static str, f64)>,
    sizes: Vec<SizeRange>,
}

impl Subject {
    fn new(name: &str, fixed: &[(&'static str, f64)], varying: &[&str]) -> Subject {
        let app = warploom_apps::find(name).expect("it is an app");
        let fixed = fixed.to_vec();
        let mut subject = Subject { app, fixed, sizes: Vec::new() };
        subject.sizes =
            varying.iter().map(|name| SizeRange { name: (*name).into(), min: 1, max: 80 }).collect();
        // The smallest size at which the app can run.
        let least =
            (1..80).find(|least| subject.fits(&vec![*least; varying.len()])).expect("it runs somewhere");
        subject.sizes.iter_mut().for_each(|size| size.min = least);
        subject
    }

    fn settings(&self, sizes: &[i64]) -> Vec<(&str, f64)> {
        let own = self.sizes.iter().zip(sizes).map(|(size, value)| (size.name.as_str(), *value as f64));
        self.fixed.iter().copied().chain(own).collect()
    }

    fn fits(&self, sizes: &[i64]) -> bool {
        let (pipeline, request) = unfilled(self.app, &self.settings(sizes));
        infer(&pipeline, &request).is_ok()
    }

    /// Twelve choices of sizes.
    fn choices(&self) -> Vec<Vec<i64>> {
        let least = self.sizes[0].min;
        let extent = |i: usize, d: usize| EXTENTS[(i + 5 * d) % EXTENTS.len()].max(least);
        let choice = |i| (0..self.sizes.len()).map(|d| extent(i, d)).collect();
        (0..EXTENTS.len()).map(choice).collect()
    }

    fn problem(&self) -> Problem {
        let mut settings = Settings::defaults(self.app);
        let typical = vec![70; self.sizes.len()];
        for (name, value) in self.settings(&typical) {
            assert!(settings.set(name, value), "{name}");
        }
        let pipeline = self.app.pipeline(&settings).expect("the pipeline is right");
        let request = self.app.dynamic(&pipeline, &settings, self.sizes.clone()).expect("the app is whole");
        let request = request.unwrap_or_else(|error| panic!("{}: {error}", self.app.name));
        // So little shared memory that arrays of whole rows are as long as a launch asks.
        let mut device = h200();
        device.shared.per_sm = 16 << 10;
        Problem::dynamic(&pipeline, &request, &device)
            .unwrap_or_else(|error| panic!("{}: {error}", self.app.name))
    }

    /// Builds kernels once and runs them at all choices of sizes, with three layouts.
    fn check(&self, problem: &Problem, schedule: &Schedule, label: &str) {
        let label = format!("{} {label}", self.app.name);
        let options = lower::Options { pitched: true, ..lower::Options::default() };
        let program =
            build_with(problem, schedule, options).unwrap_or_else(|error| panic!("{label}: {error}"));
        for sizes in self.choices().into_iter().filter(|sizes| self.fits(sizes)) {
            let workload = workload(self.app, &self.settings(&sizes));
            let pipeline =
                workload.pipeline.rewritten(&schedule.rewrites).expect("it was built").into_owned();
            let workload = Workload { pipeline, ..workload };
            let Ok(expected) = workload.reference() else {
                // A rewrite may be impossible at a size.
                assert!(program.at(&sizes, &Strides::default()).is_err(), "{label} at {sizes:?}");
                continue;
            };
            for pad in [0, 1, 6] {
                let label = format!("{label} at {sizes:?}, rows {pad} longer");
                let dense = program.at(&sizes, &Strides::default());
                let dense = dense.unwrap_or_else(|error| panic!("{label}: {error}"));
                let strides = padded(&program, &dense, pad);
                let program = program.at(&sizes, &strides).unwrap_or_else(|error| panic!("{label}: {error}"));
                let outcome = workload.simulate(&program, problem.device(), 5);
                let outcome = outcome.unwrap_or_else(|error| panic!("{label}: {error}"));
                for (actual, expected) in outcome.outputs.iter().zip(&expected) {
                    let compared = compare(actual, expected, &Tolerance::default()).expect("the same box");
                    assert!(compared.identical, "{label}: {compared:?}");
                }
            }
        }
    }
}

/// Strides of inputs and outputs whose rows, planes and so on are longer than their contents.
fn padded(program: &Program, dense: &Program, pad: i64) -> Strides {
    let sizes = program.sizes.as_ref().expect("they vary");
    let strides = dense.buffers.iter().map(|(id, decl)| {
        let (mut strides, mut least) = (vec![0; decl.strides.len()], 1);
        for (position, &d) in sizes.buffers[id].order.iter().enumerate() {
            strides[d] = if position == 0 { 1 } else { least + pad };
            least = strides[d] * decl.region[d].extent;
        }
        (decl.role != Role::Temporary).then_some(strides)
    });
    strides.collect()
}

fn check(name: &str, fixed: &[(&'static str, f64)], varying: &[&str]) {
    let subject = Subject::new(name, fixed, varying);
    let problem = subject.problem();
    subject.check(&problem, &problem.default_schedule(), "by default");
    if fixed.iter().any(|(name, _)| subject.app.structure.iter().any(|setting| setting.name == *name)) {
        // The schedules written by hand are for the pipelines as they are by default.
        return;
    }
    subject.check(&problem, &hand_written(problem.pipeline()), "by hand");
}

macro_rules! apps {
    ($($name:ident : $varying:expr, [$($setting:literal = $value:literal),*];)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name), &[$(($setting, f64::from($value))),*], &$varying);
        })*

        /// The apps that are tested here.
        const TESTED: &[&str] = &[$(stringify!($name)),*];
    };
}

apps! {
    unsharp: ["W", "H"], [];
    harris: ["W", "H"], [];
    stencil_chain: ["W", "H"], ["stencils" = 4];
    max_filter: ["W", "H"], ["radius" = 3];
    learned_demosaic: ["W", "H"], ["K" = 3];
    camera_pipe: ["W", "H"], [];
    hist: ["W", "H"], [];
    bilateral_grid: ["W", "H"], [];
    iir_blur: ["W", "H"], [];
    bgu: ["W", "H", "w", "h"], ["s_sigma" = 3, "r_sigma" = 0.4];
    local_laplacian: ["W", "H"], ["pyramid_levels" = 3, "levels" = 4];
    interpolate: ["W", "H"], ["levels" = 4];
    lens_blur: ["W", "H"], ["slices" = 2, "focus_depth" = 1, "aperture_samples" = 3];
    nl_means: ["W", "H"], ["patch_size" = 3, "search_area" = 3];
    conv_layer: ["W", "H"], ["N" = 1, "CI" = 3, "CO" = 5];
    cuda_mat_mul: ["size"], [];
    depthwise_separable_conv: ["W", "H"], ["N" = 2, "CI" = 3, "CO" = 5, "FW" = 5, "FH" = 3];
}

#[test]
fn all_apps_are_tested() {
    for app in warploom_apps::APPS.iter() {
        assert!(TESTED.contains(&app.name.as_str()), "{} is not tested", app.name);
    }
}
