//! `warploom compile`: an app's kernels as files, with C that launches them.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Arg;
use serde::Serialize;
use warploom::app::{App, Settings};
use warploom::codegen::cuda::{Build, describe, print};
use warploom::codegen::export::{Compiled, Manifest, header, source};
use warploom::interp::files::FileError;
use warploom::lang::{Pipeline, Realisation};
use warploom::runtime;
use warploom::runtime::nvrtc::{self, Arch, Image};
use warploom::target::Device;
use warploom::target::program::{self, Program};
use warploom::tune::build::build as build_kernels;

use crate::backend::Kernels;
use crate::error::Error;
use crate::names::find_app;
use crate::report::{self, Format};
use crate::settings::{build, param_values, set_params, set_sizes, set_structure};
use crate::show;
use crate::table::{self, Align};

/// Write an app's kernels as CUDA, machine code and C that launches them
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("schedule", |arg: Arg| arg.required(true)),
    mut_arg("device", |arg: Arg| arg.help("The GPU that kernels are made for")),
    after_help = "Examples:
  warploom compile harris --schedule default -o out
  warploom compile unsharp --size 640x480 --schedule apps/schedules -o out
  warploom compile local_laplacian --set pyramid_levels=4 --param levels=4 --schedule my.schedule -o out
  gcc -std=c99 -I/usr/local/cuda/include -Iout my_program.c out/harris.c -lcuda

Writes, for an app called APP:
  APP.cu               the kernels in CUDA C++
  APP.cubin, APP.ptx   the same compiled, if NVRTC is found
  APP.h, APP.c         C99 that loads and launches them through CUDA's driver; APP.h says how to use it
  APP.schedule         the schedule
  APP.json             kernels, launches, buffers and Params, for programs in other languages

Needs no GPU. Files of these names are overwritten."
)]
pub(crate) struct Arguments {
    /// The app; `warploom apps` lists them
    app: String,
    /// Sizes, as W=1536,H=2560 or 1536x2560; those not given are the defaults
    #[arg(long, value_name = "SIZES", allow_hyphen_values = true)]
    size: Vec<String>,
    /// A Param's value
    #[arg(long, value_name = "NAME=VALUE")]
    param: Vec<String>,
    /// A structure parameter's value
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    kernels: Kernels,
    /// The folder for the files; made if it is not there
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct Report {
    app: &'static str,
    sizes: String,
    device: String,
    /// What the code was compiled for; `null` if it was not.
    arch: Option<String>,
    /// What stands between this and machine code of the device's own.
    note: Option<String>,
    launches: u64,
    workspace_bytes: u64,
    kernels: Vec<Kernel>,
    files: Vec<String>,
}

#[derive(Serialize)]
struct Kernel {
    name: String,
    grid: [u32; 3],
    threads: u32,
    shared_bytes: u32,
    /// Known for machine code only, as is what is spilled.
    registers: Option<u32>,
    spilled_bytes: Option<u32>,
}

/// Compiles an app.
pub(crate) fn compile(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let app = find_app(apps, &arguments.app)?;
    let (settings, pipeline, request) = arguments.realise(app)?;
    let device = arguments.kernels.device()?;
    let schedule = arguments.kernels.schedule(&pipeline, &request, &device)?;
    let program = build_kernels(&pipeline, &schedule, &request, &device);
    let program =
        program.map_err(|error| Error::Build { app: pipeline.name().to_owned(), error: Box::new(error) })?;

    let described = describe(&program, Build::Timing);
    let mut manifest = Manifest::new(&pipeline, &request, &device, &program);
    let (image, note) = compile_kernels(&described, &manifest, &device)?;
    manifest.code = image.as_ref().map(compiled_by).transpose()?;
    let json = serde_json::to_string_pretty(&manifest).map_err(io::Error::from)? + "\n";
    let code = image.as_ref().map(Image::code);
    let text = |text: String| Some(text.into_bytes());
    let contents = [
        ("cu", text(print(&program, Build::Timing))),
        ("cubin", image.as_ref().and_then(|image| image.cubin.clone())),
        ("ptx", image.as_ref().and_then(|image| text(image.ptx.clone()))),
        ("schedule", text(schedule.to_text(&pipeline))),
        ("json", text(json)),
        ("h", text(header(&manifest))),
        ("c", text(source(&manifest, code.as_ref()))),
    ];
    let files = write_files(&arguments.output, &manifest.name, &contents)?;

    let report = Report {
        app: app.name,
        sizes: show::at_sizes(app, &settings),
        device: device.name,
        arch: manifest.code.as_ref().map(|code| code.arch.clone()),
        note,
        launches: described.launches(),
        workspace_bytes: manifest.workspace_bytes,
        kernels: described.kernels.iter().map(|kernel| Kernel::new(kernel, image.as_ref())).collect(),
        files,
    };
    if arguments.format.json {
        return report::json(out, "warploom.compile/1", &report);
    }
    if let Some(note) = &report.note {
        // If standard error is closed, nobody wants to know.
        writeln!(io::stderr(), "note: {note}").unwrap_or_default();
    }
    report::text(out, &report.text(&manifest.arch))
}

impl Arguments {
    /// The app's pipeline at the sizes asked for.
    fn realise(&self, app: &App) -> Result<(Settings, Pipeline, Realisation), Error> {
        let mut settings = Settings::defaults(app);
        set_structure(app, &mut settings, &self.set)?;
        set_params(app, &mut settings, &self.param)?;
        set_sizes(app, &mut settings, &self.size)?;
        let pipeline = build(app, &settings)?;
        let mut request = (app.shapes)(&settings).realisation(&pipeline);
        for (name, value) in param_values(app, &pipeline, &settings)? {
            request = request.param(&name, value);
        }
        Ok((settings, pipeline, request))
    }
}

/// Compiles the kernels, as far as this machine can; what it cannot is said in a note.
fn compile_kernels(
    program: &Program,
    manifest: &Manifest,
    device: &Device,
) -> Result<(Option<Image>, Option<String>), Error> {
    let Manifest { name, arch, options, .. } = manifest;
    let by_hand = || {
        let options = options.join(" ");
        format!("compile it yourself: nvcc -cubin -arch={arch} {options} -o {name}.cubin {name}.cu")
    };
    let arch = match Arch::for_device(device) {
        Ok(arch) => arch,
        Err(runtime::Error::NoNvrtc { .. }) => {
            let missing = "NVRTC was not found, so there is no machine code";
            return Ok((
                None,
                Some(format!("{missing}; `warploom devices` says what is missing, or {}", by_hand())),
            ));
        }
        Err(error @ runtime::Error::OldDevice { .. }) => {
            return Ok((None, Some(format!("there is no machine code: {error}, or {}", by_hand()))));
        }
        Err(error) => return Err(Error::Cuda(error.to_string())),
    };
    let (_, image) = nvrtc::compile_program(program, arch).map_err(|error| Error::Cuda(error.to_string()))?;
    Ok((image, arch.warning(device)))
}

/// What an image is, and which compiler made it.
fn compiled_by(image: &Image) -> Result<Compiled, Error> {
    let (major, minor) = nvrtc::version().map_err(|error| Error::Cuda(error.to_string()))?;
    Ok(Compiled { arch: image.arch.to_string(), compiler: format!("NVRTC {major}.{minor}") })
}

/// Writes the files that have contents and gives their paths. One of ours that has none is from an earlier
/// run, belongs to other kernels, and goes.
fn write_files(
    folder: &Path,
    name: &str,
    contents: &[(&str, Option<Vec<u8>>)],
) -> Result<Vec<String>, Error> {
    let failed = |path: &Path, error| FileError::Write { name: path.display().to_string(), error };
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let mut written = Vec::new();
    for (extension, content) in contents {
        let path = folder.join(format!("{name}.{extension}"));
        match content {
            Some(content) => {
                fs::write(&path, content).map_err(|error| failed(&path, error))?;
                written.push(path.display().to_string());
            }
            None if path.is_file() => fs::remove_file(&path).map_err(|error| failed(&path, error))?,
            None => {}
        }
    }
    Ok(written)
}

impl Kernel {
    fn new(kernel: &program::Kernel, image: Option<&Image>) -> Kernel {
        let used = image.and_then(|image| image.kernels.get(&kernel.entry));
        Kernel {
            name: kernel.entry.clone(),
            grid: kernel.grid,
            threads: kernel.threads,
            shared_bytes: kernel.shared_bytes,
            registers: used.map(|used| used.registers),
            spilled_bytes: used.map(|used| used.spill_stores + used.spill_loads),
        }
    }
}

impl Report {
    fn text(&self, arch: &str) -> String {
        let titles = [
            ("kernel", Align::Left),
            ("grid", Align::Right),
            ("threads", Align::Right),
            ("shared bytes", Align::Right),
            ("registers", Align::Right),
            ("spilled bytes", Align::Right),
        ];
        let known = |number: Option<u32>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        let rows = self.kernels.iter().map(|kernel| {
            let [x, y, z] = kernel.grid;
            vec![
                kernel.name.clone(),
                format!("{x}x{y}x{z}"),
                kernel.threads.to_string(),
                kernel.shared_bytes.to_string(),
                known(kernel.registers),
                known(kernel.spilled_bytes),
            ]
        });
        let launches =
            if self.launches == 1 { "1 launch".to_owned() } else { format!("{} launches", self.launches) };
        let head = format!(
            "{}{} for {} ({arch}): {}, {} a run, {} of workspace\n\n",
            self.app,
            self.sizes,
            self.device,
            show::count(self.kernels.len(), "kernel"),
            launches,
            show::bytes(self.workspace_bytes)
        );
        head + &table::whole(&titles, &rows.collect::<Vec<_>>()) + "\n" + &self.files.join("\n") + "\n"
    }
}
