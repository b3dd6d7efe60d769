//! `warploom verify`: checks pipelines against reference data.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use warploom::app::{App, Settings};
use warploom::interp::buffer::Buffer;
use warploom::interp::compare::{Comparison, compare};
use warploom::lang::{Pipeline, Realisation, Region, Value, infer};
use warploom::tune::workload::Workload;

use crate::backend::{Check, Ready, Source, Target};
use crate::error::Error;
use crate::folder::{self, Folder};
use crate::names::{Kind, find_app, find_setting, written};
use crate::pipeline::file::app_with;
use crate::pipeline::is_file;
use crate::report::{self, Declared as _, Format};
use crate::settings::set_structure_value;
use crate::show;
use crate::table::{Align, Columns};

/// Check pipelines against reference data
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom verify apps/golden                  every app with reference data
  warploom verify apps/golden --apps harris    one app
  warploom verify apps/golden/harris --json    one folder, as JSON
  warploom verify apps/golden --on sim --schedule apps/schedules     kernels of hand-written schedules
  warploom verify apps/golden --on cuda --schedule harris.schedule   one app on a GPU
  warploom verify apps/golden --on sim --schedule default            every app under its default schedule
  warploom verify apps/golden --on sim --schedule random:7           every app under a random schedule
  warploom verify mine --apps mine.json        a pipeline from a file

A folder with reference data contains params.json, with shapes, parameters and tolerances, and one .npy file per input and
output. Its field `app` is the name of the app or pipeline, or that of a *.json file with the pipeline in the same folder.
Exits with 6 if an output differs by more than its tolerance. On a GPU, the checking build must also match the reference
evaluator bit for bit, and the timing build must match it within the tolerance that the app states.")]
pub(crate) struct Arguments {
    /// A folder with reference data, or a folder of such folders
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Check only these apps, or pipelines from *.json files, separated by commas
    #[arg(long = "apps", alias = "app", value_delimiter = ',', value_name = "NAMES")]
    app: Vec<String>,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    format: Format,
}

report! {
    struct Report = "warploom.verify/1" {
        on: String, "`reference`, `sim` or `cuda`";
        passed: bool, "whether every app passed";
        apps: Vec<Checked>, "the apps";
    }

    /// The result of checking one app.
    struct Checked = "verified app" {
        app: String, "the app";
        folder: String, "the folder with its reference data";
        passed: bool, "whether all its outputs passed";
        seconds: f64, "how long it ran";
        error: Option<String>, "why there are no outputs to compare";
        outputs: Vec<Output>, "its outputs";
    }

    struct Output = "verified output" {
        name: String, "its name";
        passed: bool, "whether it is within the tolerance";
        region: Region, "its box";
        samples: usize, "the compared samples";
        max_abs_error: f64 as "number or null",
            "the largest difference; `null` if a sample is NaN or infinite in only one of the two";
        differing: usize, "the samples that differ at all";
        beyond_tolerance: usize, "the samples that differ by more than the tolerance";
        first_mismatch: Option<Mismatch>, "the first of those";
        #[serde(skip)]
        sentence: String;
    }

    struct Mismatch = "mismatch" {
        at: Vec<i64> ["points"], "its place";
        actual: f64 as "number or null", "the value that was computed";
        expected: f64 as "number or null", "the reference value";
    }
}

/// A folder with everything read from it.
struct Case<'a> {
    app: &'a App,
    folder: &'a Folder,
    settings: Settings,
    params: Vec<(String, Value)>,
    inputs: Vec<(&'a str, Buffer)>,
    expected: Vec<(&'a str, Buffer)>,
}

pub(crate) fn verify(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let start = Instant::now();
    let target = arguments.target.ready(arguments.format)?;
    let folders = select(apps, arguments)?;
    let mut lines = Lines::new(&folders, arguments.format.json);
    lines.header(out)?;
    let mut checked = Vec::new();
    for (app, folder) in &folders {
        let case = Case::read(app, folder)?;
        let result = case.check(&target);
        lines.row(out, &result)?;
        checked.push(result);
    }
    let failed: Vec<&str> = checked.iter().filter(|app| !app.passed).map(|app| app.app.as_str()).collect();
    let (count, names) = (checked.len(), failed.join(", "));
    let outcome = match failed.len() {
        0 => Ok(()),
        failed => Err(Error::Verification { failed, count, names }),
    };
    if arguments.format.json {
        let report =
            Report { on: written(&arguments.target.backend()), passed: outcome.is_ok(), apps: checked };
        report::json(out, Report::NAME, &report)?;
    } else if outcome.is_ok() {
        let seconds = start.elapsed().as_secs_f64();
        report::text(out, &format!("\nall {} passed in {seconds:.1} s\n", show::count(count, "app")))?;
    }
    outcome
}

/// The folders to check, with their apps.
fn select(apps: &[App], arguments: &Arguments) -> Result<Vec<(App, Folder)>, Error> {
    let found = folder::find(&arguments.folder)?;
    let wanted =
        arguments.app.iter().map(|name| named(apps, name, &found)).collect::<Result<Vec<App>, _>>()?;
    let mut folders = Vec::new();
    for folder in found {
        let app = match wanted.iter().find(|app| app.name == folder.golden.app) {
            Some(app) => app.clone(),
            None => folder.app(apps)?,
        };
        folders.push((app, folder));
    }
    for app in &wanted {
        if folders.iter().all(|(known, _)| known.name != app.name) {
            let known: Vec<&str> = folders.iter().map(|(known, _)| known.name.as_str()).collect();
            let folder = arguments.folder.display().to_string();
            return Err(Error::NoGoldenOf { folder, app: app.name.clone(), known: known.join(", ") });
        }
    }
    let kernels = &arguments.target.kernels;
    folders.retain(|(app, _)| match wanted.is_empty() {
        true => kernels.covers(&app.name),
        false => wanted.iter().any(|wanted| wanted.name == app.name),
    });
    if let (true, Some(Source::Path(schedule))) = (folders.is_empty(), &kernels.schedule) {
        return Err(Error::NothingScheduled { folder: schedule.display().to_string() });
    }
    Ok(folders)
}

/// An app, or a pipeline from a file. Reference data give the sizes.
fn named(apps: &[App], name: &str, folders: &[Folder]) -> Result<App, Error> {
    match is_file(name) {
        true => app_with(name, folders.first().into_iter().flat_map(Folder::inputs)),
        false => find_app(apps, name).cloned(),
    }
}

impl Folder {
    /// The boxes of its inputs.
    fn inputs(&self) -> impl Iterator<Item = (&str, &Region)> {
        self.golden.inputs.iter().map(|(name, array)| (name.as_str(), &array.region))
    }

    /// The app that `params.json` names, or the pipeline of a file in the same folder.
    fn app(&self, apps: &[App]) -> Result<App, Error> {
        let app = &self.golden.app;
        match is_file(app) {
            true => app_with(&self.path.join(app).display().to_string(), self.inputs()),
            false => find_app(apps, app).cloned(),
        }
        .map_err(|error| self.says(error))
    }
}

impl<'a> Case<'a> {
    fn read(app: &'a App, folder: &'a Folder) -> Result<Case<'a>, Error> {
        let golden = &folder.golden;
        let mut settings = Settings::defaults(app);
        // Sizes are derived from the arrays.
        let is_size = |name: &str| app.sizes.iter().any(|size| size.name == name);
        for (name, &value) in golden.generator_params.iter().filter(|(name, _)| !is_size(name)) {
            let set = find_setting(app, Kind::Structure, name).and_then(|setting| {
                let text = show::exact(value);
                set_structure_value(app, &mut settings, setting, Some(value), &text)
            });
            set.map_err(|error| folder.says(error))?;
        }
        for (name, value) in &golden.scalars {
            // A Param without a default is not a setting, so `set` may fail.
            let _ = settings.set(name, value.as_f64());
        }
        let read = |(name, array): (&'a String, &'a crate::golden::Array)| {
            Ok((name.as_str(), folder.array(name, array)?))
        };
        let inputs = golden.inputs.iter().map(read).collect::<Result<Vec<_>, Error>>()?;
        let expected = golden.outputs.iter().map(read).collect::<Result<Vec<_>, Error>>()?;
        let params = golden.scalars.iter().map(|(name, value)| (name.clone(), *value)).collect();
        Ok(Case { app, folder, settings, params, inputs, expected })
    }

    /// Runs the app. Errors of the app become part of the result.
    fn check(&self, target: &Ready<'_>) -> Checked {
        let pipeline = self.app.built(&self.settings);
        let outcome =
            pipeline.map_err(|error| error.to_string()).and_then(|pipeline| self.run(&pipeline, target));
        let (outputs, seconds, error) = match outcome {
            Ok((outputs, seconds)) => (outputs, seconds, None),
            Err(error) => (Vec::new(), 0.0, Some(error)),
        };
        Checked {
            app: self.app.name.clone(),
            folder: self.folder.path.display().to_string(),
            passed: error.is_none() && outputs.iter().all(|output| output.passed),
            seconds,
            error,
            outputs,
        }
    }

    fn run(&self, pipeline: &Pipeline, target: &Ready<'_>) -> Result<(Vec<Output>, f64), String> {
        let check = Check::By(self.app.tolerance);
        let done = target.run(self.workload(pipeline)?, check).map_err(|error| error.to_string())?;
        if let Some(fault) = done.fault {
            return Err(fault);
        }
        let mut compared = Vec::new();
        for (name, actual) in pipeline.output_names().iter().zip(&done.outputs) {
            let expected = self.expected(name)?;
            let comparison = compare(actual, expected, &self.folder.golden.tolerance);
            let comparison = comparison.map_err(|mismatch| format!("output `{name}`: {mismatch}"))?;
            compared.push(Output::new(name, expected.region(), &comparison));
        }
        Ok((compared, done.seconds))
    }

    /// The pipeline with its data. Returns an error unless each output, and nothing else, has reference data.
    fn workload(&self, pipeline: &Pipeline) -> Result<Workload, String> {
        let known = pipeline.output_names();
        if let Some((name, _)) =
            self.expected.iter().find(|(name, _)| !known.iter().any(|known| known == name))
        {
            return Err(format!("there is no output `{name}`; the outputs are {}", known.join(", ")));
        }
        let mut request = Realisation::new(pipeline);
        for (name, buffer) in &self.inputs {
            request = request.input(name, buffer.region().clone());
        }
        for (name, value) in &self.params {
            request = request.param(name, *value);
        }
        for func in pipeline.outputs().iter().map(|id| &pipeline.funcs()[*id]) {
            for name in func.value_names() {
                request = request.output(&func.name, self.expected(&name)?.region().clone());
            }
        }
        infer(pipeline, &request).map_err(|error| error.to_string())?;
        let input = |name: &str| self.inputs.iter().find(|(known, _)| *known == name);
        let inputs = pipeline.inputs().values().filter_map(|decl| Some(input(&decl.name)?.1.clone()));
        Ok(Workload::new(pipeline, &request, inputs.collect()))
    }

    fn expected(&self, name: &str) -> Result<&Buffer, String> {
        let found = self.expected.iter().find(|(known, _)| *known == name);
        let found = found.map(|(_, buffer)| buffer);
        found.ok_or_else(|| format!("there is no reference data for the output `{name}`"))
    }
}

impl Output {
    fn new(name: &str, region: &Region, comparison: &Comparison) -> Output {
        let first = comparison.first.as_ref().map(|first| Mismatch {
            at: first.at.clone(),
            actual: first.actual.as_f64(),
            expected: first.expected.as_f64(),
        });
        Output {
            name: name.to_owned(),
            passed: comparison.passed,
            region: region.clone(),
            samples: comparison.samples,
            max_abs_error: comparison.max_abs,
            differing: comparison.differing,
            beyond_tolerance: comparison.beyond,
            first_mismatch: first,
            sentence: comparison.to_string(),
        }
    }
}

/// The text table, written row by row as apps finish.
struct Lines {
    columns: Columns,
    silent: bool,
}

impl Lines {
    fn new(folders: &[(App, Folder)], silent: bool) -> Lines {
        let mut columns = Columns::new(&[
            ("app", Align::Left),
            ("size", Align::Right),
            ("samples", Align::Right),
            ("max abs error", Align::Right),
            ("differing", Align::Right),
            ("beyond tolerance", Align::Right),
            ("seconds", Align::Right),
            ("", Align::Left),
        ]);
        for (app, folder) in folders {
            let sizes = folder.golden.outputs.values().map(|array| show::extents(&array.region));
            let sizes = sizes.collect::<Vec<_>>().join(" ");
            // The numbers come later, one row at a time.
            let cells = [
                app.name.as_str(),
                &sizes,
                "12345678",
                "-1.234e-12",
                "12345678",
                "12345678",
                "123.456",
                "FAIL",
            ];
            columns.fit(&cells.map(str::to_owned));
        }
        Lines { columns, silent }
    }

    fn header(&self, out: &mut dyn Write) -> Result<(), Error> {
        if self.silent { Ok(()) } else { report::text(out, &(self.columns.header() + "\n")) }
    }

    /// One line for the app, and one for each problem.
    fn row(&mut self, out: &mut dyn Write, checked: &Checked) -> Result<(), Error> {
        if self.silent {
            return Ok(());
        }
        let outputs = &checked.outputs;
        let sum = |count: fn(&Output) -> usize| outputs.iter().map(count).sum::<usize>().to_string();
        let sizes: Vec<String> = outputs.iter().map(|output| show::extents(&output.region)).collect();
        let max_abs = outputs.iter().map(|output| output.max_abs_error).fold(0.0, f64::max);
        let cells = [
            checked.app.clone(),
            sizes.join(" "),
            sum(|output| output.samples),
            show::number(max_abs),
            sum(|output| output.differing),
            sum(|output| output.beyond_tolerance),
            format!("{:.3}", checked.seconds),
            if checked.passed { "ok" } else { "FAIL" }.to_owned(),
        ];
        let mut text = self.columns.line(&cells) + "\n";
        for output in outputs.iter().filter(|output| !output.passed) {
            text += &format!("  {}: {}\n", output.name, output.sentence);
        }
        if let Some(error) = &checked.error {
            text += &format!("  {error}\n");
        }
        report::text(out, &text)
    }
}
