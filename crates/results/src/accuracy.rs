//! The tolerances of apps, and how much of them is used.

use std::convert::Infallible;

use thiserror::Error;
use warploom::app::{App, AppError, Settings, Sizes, Subject};
use warploom::check::{Builds, SEED, run_build, small_settings};
use warploom::codegen::ir::Program;
use warploom::codegen::printer::Build;
use warploom::interp::buffer::Buffer;
use warploom::interp::expected::{Closeness, Conditioning, Expected};
use warploom::lang::Type;
use warploom::lang::rounding::Rounding;
use warploom::runtime::Gpu;
use warploom::schedule_file::{ScheduleFileError, build_program, problem};
use warploom::show;
use warploom::target::Device;
use warploom::tune::workload::{GpuError, PERTURBED_RUNS, Workload};
use warploom_report::Table;

/// Makes the kernels of a workload, whose pipeline becomes the rewritten one; an error in words.
pub type Building<'a> = dyn Fn(&mut Workload, &Device) -> Result<Program, String> + 'a;

/// Why there are no results of an app.
#[derive(Debug, Error)]
enum AccuracyError {
    #[error(transparent)]
    App(#[from] AppError),
    #[error(transparent)]
    ScheduleFile(#[from] ScheduleFileError),
    #[error(transparent)]
    Gpu(#[from] GpuError),
    /// The kernels could not be made.
    #[error("{0}")]
    Kernels(String),
    #[error("the outputs of `{app}` are not exact: {difference}")]
    Inexact { app: String, difference: String },
}

report! {
    /// The tolerances of apps, and how much of them is used.
    pub struct Report = "warploom.accuracy/2" {
        passed: bool, "whether every output is within its tolerance";
        device: Option<String>, "the GPU; `null` if none was used";
        runs: u64, "how often the reference was evaluated with perturbed rounding";
        outputs: Vec<Row>, "the outputs of all apps";
        errors: Vec<Failed>, "the apps that could not be run";
    }

    /// An app without results, and why.
    pub struct Failed = "accuracy error" {
        app: String, "the app";
        error: String, "why it has no results";
    }

    /// One output of an app.
    pub struct Row = "accuracy output" {
        app: String, "the app";
        output: String, "the output";
        #[serde(rename = "type")]
        ty: Type, "the type of its samples";
        rounded: bool, "whether rounding can reach it; if not, every bit must match";
        tolerance: Option<f64> ["share"],
            "the tolerance that the app states, as a share of the largest sample; `null` if it is derived";
        spread: f64 ["share"], "the difference between the perturbed runs, as a share of the largest sample";
        local_spread: f64 ["share"], "the same, as a share of the largest sample nearby";
        small: Margin, "at the small size";
        full: Option<Margin>, "at the default size; `null` without a GPU";
    }

    /// How much of its tolerance an output uses.
    pub struct Margin = "margin" {
        sizes: Sizes, "the sizes by name";
        samples: usize, "the compared samples";
        differing: usize, "the samples that differ at all";
        max_abs: f64 as "number or null", "the largest difference";
        used: f64 ["share"], "the largest share of the tolerance that a sample within it uses";
        outliers: usize, "the samples beyond it";
        derived_used: f64 ["share"], "the same for the tolerance that is derived from the pipeline";
        derived_outliers: usize, "the samples beyond that one";
        fault: Option<String>, "what fails under the stated tolerance";
        derived_fault: Option<String>, "what would fail under the derived one";
        ill_conditioned: usize, "the samples that differ between the perturbed runs by more than rounding explains";
    }
}

/// The expected outputs of a workload, with the stated and with the derived tolerance.
struct Both {
    sizes: Sizes,
    stated: Expected,
    derived: Expected,
}

impl Both {
    fn new(sizes: Sizes, app: &App, expected: impl Fn(Option<f64>) -> Expected) -> Both {
        Both { sizes, stated: expected(app.tolerance), derived: expected(None) }
    }

    fn margins(&self, outputs: &[Buffer]) -> Vec<Margin> {
        let pairs = self.stated.closeness(outputs).into_iter().zip(self.derived.closeness(outputs));
        let known = pairs.zip(self.derived.conditioning());
        known.map(|((stated, derived), known)| Margin::new(&self.sizes, &stated, &derived, &known)).collect()
    }
}

impl Margin {
    fn new(sizes: &Sizes, stated: &Closeness, derived: &Closeness, known: &Conditioning) -> Margin {
        Margin {
            sizes: sizes.clone(),
            samples: stated.samples,
            differing: stated.differing,
            max_abs: stated.max_abs,
            used: stated.used,
            outliers: stated.outliers,
            derived_used: derived.used,
            derived_outliers: derived.outliers,
            fault: stated.sentence(),
            derived_fault: derived.sentence(),
            ill_conditioned: known.ill_conditioned,
        }
    }
}

/// One row per output of an app.
fn rows(app: &App, gpu: Option<&Gpu>, build: &Building<'_>) -> Result<Vec<Row>, AccuracyError> {
    let settings = small_settings(app).unwrap_or_else(|| Settings::defaults(app));
    let sizes = Sizes::of_app(app, &settings);
    let subject = Subject::new(app, settings)?;
    let failed = |error| subject.failed(error);
    let mut workload = subject.workload(|_| None, SEED)?;
    let program =
        gpu.map(|gpu| build(&mut workload, gpu.device()).map_err(AccuracyError::Kernels)).transpose()?;
    let reference = workload.reference().map_err(failed)?;
    let run = |seed| workload.evaluation().perturbed(seed).run();
    let runs = (0..PERTURBED_RUNS).map(run).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let both = Both::new(sizes.clone(), app, |stated| {
        let runs = runs.iter().map(|run| Ok::<_, Infallible>(run.clone()));
        let Ok(expected) =
            Expected::new(&workload.pipeline, reference.clone(), runs, stated, Rounding::Timing);
        expected
    });
    let outputs = match gpu.zip(program) {
        None => run(PERTURBED_RUNS).map_err(failed)?,
        Some((gpu, program)) => {
            exact(app, Builds::run(&both.stated, |build| workload.load(gpu, &program, build))?)?
        }
    };
    let full = gpu.map(|gpu| full(app, gpu, build)).transpose()?;
    let mut full = full.into_iter().flatten();
    let known = both.stated.conditioning().into_iter().zip(both.margins(&outputs));
    Ok(known.map(|(known, small)| Row::new(app, known, small, full.next())).collect())
}

/// Compares kernels at the default sizes with the two builds of the default schedule.
fn full(app: &App, gpu: &Gpu, build: &Building<'_>) -> Result<Vec<Margin>, AccuracyError> {
    let settings = Settings::defaults(app);
    let mut workload = Subject::new(app, settings.clone())?.workload(|_| None, SEED)?;
    let kernels = build(&mut workload, gpu.device()).map_err(AccuracyError::Kernels)?;
    let problem = problem(&workload.pipeline, &workload.realisation(), gpu.device())?;
    let program = build_program(&problem, &problem.default_schedule())?;
    let checked = run_build(gpu, &workload, &program, Build::Checking)?;
    let timed = run_build(gpu, &workload, &program, Build::Timing)?;
    let both = Both::new(Sizes::of_app(app, &settings), app, |stated| {
        Expected::of_builds(&workload.pipeline, checked.clone(), timed.clone(), stated)
    });
    let builds = Builds::run(&both.stated, |build| workload.load(gpu, &kernels, build))?;
    Ok(both.margins(&exact(app, builds)?))
}

/// The outputs of the timing build; an error if the checking build is not exact.
fn exact(app: &App, builds: Builds) -> Result<Vec<Buffer>, AccuracyError> {
    match builds.inexact {
        Some(difference) => Err(AccuracyError::Inexact { app: app.name.clone(), difference }),
        None => Ok(builds.outputs),
    }
}

impl Row {
    fn new(app: &App, known: Conditioning, small: Margin, full: Option<Margin>) -> Row {
        let Conditioning { output, ty, rounded, global_spread, local_spread, .. } = known;
        let tolerance = app.tolerance;
        let (app, spread) = (app.name.clone(), global_spread);
        Row { app, output, ty, rounded, tolerance, spread, local_spread, small, full }
    }

    fn margins(&self) -> impl Iterator<Item = &Margin> {
        std::iter::once(&self.small).chain(&self.full)
    }

    fn shown_tolerance(&self) -> String {
        match (self.rounded, self.ty) {
            (false, _) | (true, Type::Bool) => "exact".to_owned(),
            (true, Type::F32) => {
                self.tolerance.map_or("derived".to_owned(), |tolerance| format!("{tolerance:.0e}"))
            }
            (true, _) => "1 step".to_owned(),
        }
    }
}

impl Report {
    /// Measures apps; on a GPU also the kernels that `build` makes.
    pub fn new<'a>(
        apps: impl IntoIterator<Item = &'a App>,
        gpu: Option<&Gpu>,
        build: &Building<'_>,
    ) -> Report {
        let (mut outputs, mut errors) = (Vec::new(), Vec::new());
        for app in apps {
            match rows(app, gpu, build) {
                Ok(rows) => outputs.extend(rows),
                Err(error) => errors.push(Failed { app: app.name.clone(), error: error.to_string() }),
            }
        }
        let device = gpu.map(|gpu| gpu.device().name.clone());
        let mut report = Report { passed: false, device, runs: PERTURBED_RUNS, outputs, errors };
        report.passed = report.failed().is_empty();
        report
    }

    /// The apps with an output out of tolerance, and those that could not be run.
    pub fn failed(&self) -> Vec<&str> {
        let outside = |row: &&Row| row.margins().any(|margin| margin.fault.is_some());
        let outside = self.outputs.iter().filter(outside).map(|row| row.app.as_str());
        let mut failed: Vec<&str> =
            outside.chain(self.errors.iter().map(|failed| failed.app.as_str())).collect();
        failed.dedup();
        failed
    }

    /// The results for a terminal; `shown` lays out the table.
    pub fn text(&self, shown: &dyn Fn(&Table) -> String) -> String {
        let mut table = Table::of(&self.outputs)
            .left("app", |row| row.app.clone())
            .left("output", |row| row.output.clone())
            .left("type", |row| row.ty.to_string())
            .right("tolerance", Row::shown_tolerance)
            .right("spread", |row| format!("{:.1e}", row.spread))
            .right("nearby", |row| format!("{:.1e}", row.local_spread))
            .right("ill", |row| row.small.ill_conditioned.to_string())
            .right("margin", |row| show::percent(row.small.used))
            .right("outliers", |row| row.small.outliers.to_string())
            .right("derived", |row| show::percent(row.small.derived_used));
        if self.device.is_some() {
            let full =
                |of: fn(&Margin) -> String| move |row: &Row| row.full.as_ref().map(of).unwrap_or_default();
            table = table
                .right("full ill", full(|margin| margin.ill_conditioned.to_string()))
                .right("full margin", full(|margin| show::percent(margin.used)))
                .right("full outliers", full(|margin| margin.outliers.to_string()))
                .right("full derived", full(|margin| show::percent(margin.derived_used)));
        }
        let faults = self.outputs.iter().flat_map(|row| {
            row.margins().filter_map(|margin| {
                let fault = margin.fault.as_ref()?;
                Some(format!("{}{}: {fault}\n", row.app, margin.sizes))
            })
        });
        let errors = self.errors.iter().map(|Failed { app, error }| format!("{app}: {error}\n"));
        shown(&table.done()) + &faults.chain(errors).collect::<String>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Documented;

    #[test]
    fn errors_in_json_are_as_their_page_says() {
        let errors = vec![Failed { app: "harris".to_owned(), error: "made up".to_owned() }];
        let report = Report { passed: false, device: None, runs: 8, outputs: Vec::new(), errors };
        let json = serde_json::to_value(crate::report::object(&report)).unwrap();
        let seen = Documented::read().check(&json);
        assert!(seen.contains("accuracy error: error"), "{seen:?}");
    }
}
