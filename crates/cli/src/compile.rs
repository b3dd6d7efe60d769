//! `warploom compile`: finds a schedule for a pipeline and writes its kernels, with C code that
//! launches them.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Arg;
use warploom::app::{App, Subject};
use warploom::cost::CostModel;
use warploom::export::{ExportOptions, Package};
use warploom::plan::Problem;
use warploom::schedule::Schedule;
use warploom::schedule_file::problem;
use warploom::search::Options;
use warploom::target::Device;
use warploom_results::compiled::{Report, kernels};
use warploom_results::explained::{Ranges, described};
use warploom_results::search::Report as Searched;

use crate::any_size::AnySize;
use crate::backend::{Kernels, Obtained};
use crate::emit::{self, Emit, Scheduled};
use crate::error::Error;
use crate::names::written;
use crate::pipeline::Which;
use crate::report::{Declared as _, Format, json, text, verbatim};
use crate::table::PlainText as _;
use crate::writable::{self, Output};
use crate::{search, voice};

/// Search for a schedule; write the kernels as CUDA and machine code, with C code that launches them
///
/// Takes seconds and needs no GPU. Without -o, prints the schedule.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("schedule", |arg: Arg| arg.help(
        "Use this schedule instead of searching: a file, a folder with APP.schedule, `default`, `random:SEED` or `search:SEED`"
    ).long_help(None)),
    after_long_help = "Examples:
  warploom compile harris                                      search and print the schedule
  warploom compile harris -o out                               search and write all files
  warploom compile unsharp --size 640x480 --device a100 --seed 7 -o out
  warploom compile local_laplacian --set pyramid_levels=4 --param levels=4 --schedule my.schedule -o out
  warploom compile harris --fix gray.schedule -o out
  warploom compile blur --dynamic W=64..8192,H=64..8192 -o out  one package for all these sizes, with any pitch
  warploom compile mine.json --size 640x480 --emit nest,cuda
  warploom compile mine.json --size image=640x480x3,weights=9,output=638x478 -o out
  warploom compile harris --device h200,a100,rtx4090 -o out    one package for three GPUs
  gcc -std=c99 -I/usr/local/cuda/include -Iout my_program.c out/harris.c -lcuda

With -o, writes a package of these files for a pipeline named APP (docs/export.md):
  APP.cu                     the kernels in CUDA C++
  APP.sm_90.cubin, APP.ptx   the compiled kernels, if NVRTC is found: machine code for each device, and PTX for other GPUs
  APP.h, APP.c               C that loads and launches them through the CUDA driver, also C++17; APP.h explains its use
  APP.schedule               the schedule
  APP.json                   kernels, launches, buffers and Params, for programs in other languages
With --emit, writes the named ones of APP.schedule, APP.nest.txt, APP.cu and APP.features.json instead.

With several devices, separated by commas, the schedule is searched for the first and must be legal on all of them. The
package chooses its code when it is loaded.

A pipeline file is written by Pipeline::to_json, or is a case of `warploom fuzz`, which includes the sizes. Existing files
are overwritten. Exits with 3 if the pipeline cannot be scheduled for the device at these sizes."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    kernels: Kernels,
    /// The output folder; created if missing. Without it, the schedule is printed
    #[arg(short, long, alias = "out", value_name = "DIR")]
    output: Option<PathBuf>,
    /// What to write or print instead of the default, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KINDS")]
    emit: Vec<Emit>,
    /// The name of the files, C functions and kernels (default: the pipeline's)
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    any_size: AnySize,
    #[command(flatten)]
    search: search::Flags,
}

pub(crate) fn compile(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let asked = arguments.which.realise_to_compile(apps)?;
    let (device, also_for) = arguments.devices()?;
    let options = ExportOptions { name: arguments.name.clone(), also_for };
    options.check()?;
    let model = arguments.kernels.model.load(&device)?;
    let pipeline = &asked.pipeline;
    let problem = problem(pipeline, &asked.request, &device)?;
    let any_size = arguments.any_size.dynamic.problem(&asked, &device)?;
    let (obtained, search) = arguments.obtain(&problem, any_size.as_ref(), &*model)?;
    voice::warnings(pipeline, problem.regions());
    let scheduled = obtained.build(problem, any_size.clone(), arguments.any_size.pitch)?;
    let mut package = scheduled.package(&options)?;
    let (problem, schedule) = (scheduled.problem(), scheduled.schedule());
    let explanation = scheduled.explanation(&*model);
    // Machine code that is not written anywhere is not compiled.
    let mut files = Vec::new();
    if let (Some(folder), true) = (&arguments.output, arguments.emit.is_empty()) {
        files = write(&mut package, folder)?;
    }
    let of = Scheduled { problem, schedule, program: package.program(), explanation: &explanation };
    for name in &asked.unset {
        voice::note(&format!("the Param {name} has no value; a run that gives none has 0"));
    }
    let manifest = package.manifest();
    if let (Some(folder), false) = (&arguments.output, arguments.emit.is_empty()) {
        files = emit::write(folder, &manifest.name, &arguments.emit, &of)?;
    }
    let described = described(package.program(), any_size.as_ref());
    let ranges =
        any_size.as_ref().map(|any_size| Ranges::new(any_size, schedule, package.program(), &*model));
    let report = Report {
        app: asked.name,
        sizes: asked.sizes,
        device: device.name.clone(),
        also_for: manifest.also_for.clone(),
        arch: package.image().map(|image| image.arch.to_string()),
        code: manifest.code.clone(),
        notes: package.notes().to_vec(),
        launches: described.launches(),
        workspace_bytes: manifest.workspace_bytes_at(&described),
        ranges: ranges.transpose()?.flatten(),
        predicted_us: explanation.predicted_us,
        predicted_us_low: explanation.predicted_us_low,
        predicted_us_high: explanation.predicted_us_high,
        basis: explanation.basis.clone(),
        idle: explanation.idle.clone(),
        kernels: kernels(&described, &explanation, package.image()),
        search,
        schedule: schedule.to_text(problem.pipeline()),
        files,
        emitted: BTreeMap::new(),
    };
    arguments.say(report, &of, &manifest.target.arch, out)
}

/// Writes a package with the kernels of a schedule. Returns the paths of its files.
pub(crate) fn export(
    asked: &Subject,
    device: &Device,
    schedule: &Schedule,
    folder: &Path,
) -> Result<Vec<String>, Error> {
    let problem = problem(&asked.pipeline, &asked.request, device)?;
    let scheduled = Obtained::Given(schedule.clone()).build(problem, None, false)?;
    let mut package = scheduled.package(&ExportOptions::default())?;
    let files = write(&mut package, folder)?;
    package.notes().iter().for_each(|note| voice::note(note));
    Ok(files)
}

/// Compiles a package and writes its files. Returns their paths.
fn write(package: &mut Package, folder: &Path) -> Result<Vec<String>, Error> {
    package.compile()?;
    Ok(package.write(folder)?.iter().map(|path| path.display().to_string()).collect())
}

impl Arguments {
    pub(crate) fn outputs(&self) -> Vec<Output<'_>> {
        writable::folder(&self.output)
    }

    /// The device to search a schedule for, and others that a package can have code for.
    fn devices(&self) -> Result<(Device, Vec<Device>), Error> {
        if self.output.is_none() || !self.emit.is_empty() {
            return Ok((self.kernels.device(self.format)?, Vec::new()));
        }
        let mut devices = self.kernels.devices(self.format)?;
        Ok((devices.remove(0), devices))
    }

    /// The given schedule, or the best one of a search.
    fn obtain(
        &self,
        problem: &Problem,
        any_size: Option<&Problem>,
        model: &dyn CostModel,
    ) -> Result<(Obtained, Option<Searched>), Error> {
        let usual = Options { any_size: any_size.cloned(), ..self.search.options(problem)? };
        let Some(options) = self.kernels.search_options(usual) else {
            return Ok((self.kernels.obtain(problem, any_size)?, None));
        };
        let found = search::run(problem, model, &options)?;
        let report = Searched::new(&found, model.name(), &options);
        Ok((Obtained::Found(Box::new(found)), Some(report)))
    }

    /// What to print if there is no output folder.
    fn printed(&self) -> &[Emit] {
        match (&self.output, self.emit.as_slice()) {
            (Some(_), _) => &[],
            (None, []) => &[Emit::Schedule],
            (None, emit) => emit,
        }
    }

    fn say(
        &self,
        mut report: Report,
        of: &Scheduled<'_>,
        arch: &str,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        if self.format.json {
            let asked = if self.output.is_none() { self.emit.as_slice() } else { &[] };
            for emit in asked {
                report.emitted.insert(written(emit), emit.json(of)?);
            }
            return json(out, Report::NAME, &report);
        }
        if let Some(search) = &report.search {
            voice::line(&search.summary());
        }
        report.notes.iter().for_each(|note| voice::note(note));
        text(out, &report.text(arch, of.explanation, &|table| table.text()))?;
        for emit in self.printed() {
            let emitted = format!("\n{}", emit.text(of)?);
            match emit {
                Emit::Nest => text(out, &emitted)?,
                Emit::Schedule | Emit::Cuda | Emit::Features => verbatim(out, &emitted)?,
            }
        }
        match report.search.as_ref().filter(|_| self.search.statistics) {
            Some(search) => text(out, &format!("\n{}", search.table().text())),
            None => Ok(()),
        }
    }
}
