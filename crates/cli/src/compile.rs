//! `warploom compile`: finds a schedule for a pipeline and writes its kernels, with C code that
//! launches them.

mod files;
mod report;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Arg;
use warploom::app::App;
use warploom::codegen::cuda::{Build, describe};
use warploom::codegen::export::Manifest;
use warploom::codegen::ir::Program;
use warploom::cost::CostModel;
use warploom::schedule::schedule::{Problem, Schedule};
use warploom::target::Device;

use crate::backend::{Kernels, build_program, problem, rewritten};
use crate::emit::{Emit, Scheduled};
use crate::error::Error;
use crate::explain::explanation;
use crate::pipeline::{self, Which};
use crate::report::{Format, json, text};
use crate::search;
use crate::voice;
use files::{Code, bundle, write};
use report::{Report, kernels};

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
  warploom compile mine.json --size 640x480 --emit nest,cuda
  warploom compile mine.json --size image=640x480x3,weights=9,output=638x478 -o out
  gcc -std=c99 -I/usr/local/cuda/include -Iout my_program.c out/harris.c -lcuda

With -o, writes these files for a pipeline named APP:
  APP.cu               the kernels in CUDA C++
  APP.cubin, APP.ptx   the compiled kernels, if NVRTC is found
  APP.h, APP.c         C99 code that loads and launches them through the CUDA driver; APP.h explains its use
  APP.schedule         the schedule
  APP.json             kernels, launches, buffers and Params, for programs in other languages
With --emit, writes the named ones of APP.schedule, APP.nest.txt, APP.cu and APP.features.json instead.

A pipeline file is written by Pipeline::to_json, or is a case of `warploom fuzz`, which includes the sizes. Existing files
are overwritten. Exits with 3 if the pipeline cannot be scheduled for the device at these sizes."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    kernels: Kernels,
    /// The output folder; created if missing. Without it, the schedule is printed
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// What to write or print instead of the default, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KINDS")]
    emit: Vec<Emit>,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    search: search::Flags,
}

pub(crate) fn compile(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let asked = arguments.which.realise(apps)?;
    let device = arguments.kernels.device(arguments.format)?;
    let model = arguments.kernels.model.load(&device)?;
    let pipeline = &asked.pipeline;
    let problem = problem(pipeline, &asked.request, &device)?;
    let (schedule, program, search) = arguments.schedule(&problem, &*model)?;
    voice::warnings(pipeline, problem.regions());
    let problem = rewritten(&problem, &schedule)?;
    let explanation = explanation(&problem, &schedule, &*model)?;
    let of =
        Scheduled { problem: &problem, schedule: &schedule, program: &program, explanation: &explanation };

    let described = describe(&program, Build::Timing);
    let mut manifest = Manifest::new(pipeline, &asked.request, &device, &program);
    // Machine code that is not written anywhere is not compiled.
    let code = match (&arguments.output, arguments.emit.is_empty()) {
        (Some(_), true) => Code::new(&described, &mut manifest, &device)?,
        _ => Code { image: None, note: None },
    };
    let files = match &arguments.output {
        Some(folder) if arguments.emit.is_empty() => {
            write(folder, &manifest.name, &bundle(&of, &manifest, &code)?)?
        }
        Some(folder) => {
            let content = |emit: &Emit| Ok((emit.extension(), Some(emit.text(&of)?.into_bytes())));
            write(
                folder,
                &manifest.name,
                &arguments.emit.iter().map(content).collect::<Result<Vec<_>, Error>>()?,
            )?
        }
        None => Vec::new(),
    };
    let report = Report {
        app: asked.name,
        sizes: asked.sizes,
        device: device.name.clone(),
        arch: manifest.code.as_ref().map(|code| code.arch.clone()),
        note: code.note,
        launches: described.launches(),
        workspace_bytes: manifest.workspace_bytes,
        predicted_us: explanation.predicted_us,
        idle: explanation.idle.clone(),
        kernels: kernels(&described, &explanation, code.image.as_ref()),
        search,
        schedule: schedule.to_text(pipeline),
        files,
        emitted: BTreeMap::new(),
    };
    arguments.say(report, &of, &manifest.arch, out)
}

/// Writes all files that another program needs to run a schedule's kernels. Returns their paths.
pub(crate) fn export(
    asked: &pipeline::Subject,
    device: &Device,
    schedule: &Schedule,
    model: &dyn CostModel,
    folder: &Path,
) -> Result<Vec<String>, Error> {
    let pipeline = &asked.pipeline;
    let problem = problem(pipeline, &asked.request, device)?;
    let program = build_program(&problem, schedule)?;
    let problem = rewritten(&problem, schedule)?;
    let explanation = explanation(&problem, schedule, model)?;
    let of = Scheduled { problem: &problem, schedule, program: &program, explanation: &explanation };
    let mut manifest = Manifest::new(pipeline, &asked.request, device, &program);
    let code = Code::new(&describe(&program, Build::Timing), &mut manifest, device)?;
    if let Some(note) = &code.note {
        voice::note(note);
    }
    write(folder, &manifest.name, &bundle(&of, &manifest, &code)?)
}

impl Arguments {
    /// The given schedule, or the best one of a search, and its kernels.
    fn schedule(
        &self,
        problem: &Problem,
        model: &dyn CostModel,
    ) -> Result<(Schedule, Program, Option<search::Report>), Error> {
        let usual = self.search.options(problem)?;
        let Some(options) = self.kernels.search_options(usual) else {
            let schedule = self.kernels.schedule(problem)?;
            let program = build_program(problem, &schedule)?;
            return Ok((schedule, program, None));
        };
        let found = search::run(problem, model, &options)?;
        let report = search::Report::new(&found, model.name(), &options);
        Ok((found.schedule, found.program, Some(report)))
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
                report.emitted.insert(emit.name(), emit.json(of)?);
            }
            return json(out, "warploom.compile/1", &report);
        }
        if let Some(search) = &report.search {
            voice::line(&search.summary());
        }
        if let Some(note) = &report.note {
            voice::note(note);
        }
        let mut whole = report.text(arch);
        for emit in self.printed() {
            whole += &format!("\n{}", emit.text(of)?);
        }
        if let Some(search) = report.search.as_ref().filter(|_| self.search.statistics) {
            whole += &format!("\n{}", search.table());
        }
        text(out, &whole)
    }
}
