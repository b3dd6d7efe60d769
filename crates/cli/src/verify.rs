//! `warploom verify`: checks pipelines against reference data.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use warploom::app::{App, Settings};
use warploom::tune::workload::Workload;
use warploom_results::golden::{Case, Checked, Folder, Output};

use crate::backend::{Check, Source, Target};
use crate::error::Error;
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
}

pub(crate) fn verify(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let start = Instant::now();
    let target = arguments.target.ready(arguments.format)?;
    let folders = select(apps, arguments)?;
    let mut lines = Lines::new(&folders, arguments.format.json);
    lines.header(out)?;
    let run = |workload: Workload, tolerance: Option<f64>| {
        let done = target.run(workload, Check::By(tolerance)).map_err(|error| error.to_string())?;
        done.fault.map_or(Ok((done.outputs, done.seconds)), Err)
    };
    let mut checked = Vec::new();
    for (app, folder) in &folders {
        let result = read(app, folder)?.check(&run);
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
    let found = Folder::find(&arguments.folder)?;
    let wanted =
        arguments.app.iter().map(|name| named(apps, name, &found)).collect::<Result<Vec<App>, _>>()?;
    let mut folders = Vec::new();
    for folder in found {
        let app = match wanted.iter().find(|app| app.name == folder.golden.app) {
            Some(app) => app.clone(),
            None => app_of(&folder, apps)?,
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

/// The app that `params.json` names, or the pipeline of a file in the same folder.
fn app_of(folder: &Folder, apps: &[App]) -> Result<App, Error> {
    let app = &folder.golden.app;
    match is_file(app) {
        true => app_with(&folder.path.join(app).display().to_string(), folder.inputs()),
        false => find_app(apps, app).cloned(),
    }
    .map_err(|error| says(folder, error))
}

/// An app with its reference data.
fn read<'a>(app: &'a App, folder: &'a Folder) -> Result<Case<'a>, Error> {
    let mut settings = Settings::defaults(app);
    // Sizes are derived from the arrays.
    let is_size = |name: &str| app.sizes.iter().any(|size| size.name == name);
    for (name, &value) in folder.golden.generator_params.iter().filter(|(name, _)| !is_size(name)) {
        let set = find_setting(app, Kind::Structure, name).and_then(|setting| {
            let text = show::exact(value);
            set_structure_value(app, &mut settings, setting, Some(value), &text)
        });
        set.map_err(|error| says(folder, error))?;
    }
    Ok(Case::read(app, folder, settings)?)
}

/// Wraps an error about the content of a `params.json`.
fn says(folder: &Folder, error: Error) -> Error {
    Error::In { file: folder.params().display().to_string(), error: Box::new(error) }
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
