//! Packages: exported kernels, for programs that do not use Warploom.
//!
//! A package is a folder of files that belong together: the kernels in CUDA C++, compiled, and
//! embedded in a C source that launches them; the schedule; a manifest. `docs/export.md` describes
//! them for those who use one. `warploom compile` and [`Autoscheduled::export`] write them.
//!
//! [`Autoscheduled::export`]: crate::Autoscheduled::export

use std::path::{Path, PathBuf};
use std::{fs, io};

use thiserror::Error;
use warploom_codegen::build::{BuildError, build_with};
use warploom_codegen::export::{
    CodeKind, Compiled, LONGEST_STEM, Manifest, ManifestError, header, named, source,
};
use warploom_codegen::ir::Program;
use warploom_codegen::lower;
use warploom_codegen::printer::{Build, PRINTER};
use warploom_lang::files::write_whole;
use warploom_plan::{Problem, RewrittenError};
use warploom_runtime::compiler::{self, Arch, Image};
use warploom_schedule::Schedule;
use warploom_target::{ComputeCapability, Device};
use warploom_tune::cache::compile_program;

/// Options of a package.
#[derive(Clone, Default, Debug)]
pub struct ExportOptions {
    /// The name of the package, which its files, C functions and kernels begin with; the pipeline's
    /// name if `None`, shortened if it is too long for the name of a file. Two packages of one pipeline, such as for two sizes, can be linked together
    /// if they have different names.
    pub name: Option<String>,
    /// Devices to compile for besides the one that the schedule was made for. The package chooses
    /// its code when it is loaded. The schedule must be legal on all of them.
    pub also_for: Vec<Device>,
}

impl ExportOptions {
    /// Checks the options that do not depend on the kernels, so that mistakes are known before a search.
    ///
    /// # Errors
    /// If the name is too long.
    pub fn check(&self) -> Result<(), ExportError> {
        match self.name.as_ref().map_or(0, String::len) {
            bytes if bytes > LONGEST_STEM => Err(ExportError::LongName { bytes }),
            _ => Ok(()),
        }
    }
}

/// Why a package could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The name of the package is too long for the names of its files.
    #[error(
        "the name of a package has {bytes} bytes, but its files and functions are named so, and a name may have at most \
         {LONGEST_STEM}; choose a shorter one"
    )]
    LongName {
        /// The length of the name.
        bytes: usize,
    },
    /// The schedule is not legal on a further device.
    #[error(
        "the schedule, which was made for {made_for}, does not fit {device}; list {device} first, or export a package for \
         it alone: {error}"
    )]
    Unfit {
        /// The device that the schedule was made for.
        made_for: String,
        /// The device that it does not fit.
        device: String,
        /// The broken rules.
        error: Box<BuildError>,
    },
    /// The schedule needs other kernels on a further device.
    #[error("{device} needs other kernels than {made_for}; export a package for it alone")]
    Differs {
        /// The device that the schedule was made for.
        made_for: String,
        /// The device that needs other kernels.
        device: String,
    },
    /// The rewrites of the schedule do not apply to the pipeline.
    #[error(transparent)]
    Rewritten(#[from] RewrittenError),
    /// The kernels could not be compiled.
    #[error(transparent)]
    Compile(#[from] warploom_runtime::Error),
    /// The manifest could not be written as text.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A file could not be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
}

/// A package in memory.
#[derive(Debug)]
pub struct Package {
    program: Program,
    manifest: Manifest,
    schedule: String,
    /// The device that the schedule was made for, and further ones.
    devices: Vec<Device>,
    /// The compiled kernels, in the order of the devices that they were compiled for.
    images: Vec<Image>,
    notes: Vec<String>,
}

impl Package {
    /// A package without compiled code. `program` is the lowered schedule of the problem.
    ///
    /// # Errors
    /// If the kernels do not suit all devices.
    pub fn new(
        problem: &Problem,
        schedule: &Schedule,
        program: &Program,
        options: &ExportOptions,
    ) -> Result<Package, ExportError> {
        let (pipeline, made_for, also_for) = (problem.pipeline(), problem.device(), &options.also_for);
        options.check()?;
        check_devices(problem, schedule, program, also_for)?;
        let rewritten = problem.rewritten(&schedule.rewrites)?;
        let program = named(program, options.name.as_deref().unwrap_or(pipeline.name()));
        Ok(Package {
            manifest: Manifest::new(pipeline, problem.request(), made_for, also_for, &program),
            program,
            schedule: schedule.to_text(rewritten.pipeline()),
            devices: [std::slice::from_ref(made_for), also_for].concat(),
            images: Vec::new(),
            notes: Vec::new(),
        })
    }

    /// Compiles the kernels with NVRTC for all devices, or takes the code from the user's cache. If
    /// NVRTC is missing or does not support a device, a [note](Package::notes) says so.
    ///
    /// # Errors
    /// If NVRTC reports an error.
    pub fn compile(&mut self) -> Result<(), ExportError> {
        let source = PRINTER.describe(&self.program, Build::Timing);
        for device in &self.devices {
            match Arch::for_device(device) {
                Ok(arch) => {
                    self.notes.extend(arch.warning(device));
                    if self.images.iter().all(|image| image.arch != arch) {
                        self.images.extend(compile_program(&source, arch)?.1);
                    }
                }
                Err(warploom_runtime::Error::NoNvrtc { .. }) => {
                    let missing = "NVRTC was not found, so there is no machine code; `warploom devices` shows what is missing";
                    self.notes = vec![format!("{missing}, or {}", self.by_hand(device))];
                    return Ok(());
                }
                Err(error @ warploom_runtime::Error::OldDevice { .. }) => {
                    self.notes
                        .push(format!("there is no machine code: {error}, or {}", self.by_hand(device)));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let (major, minor) = compiler::version()?;
        let compiler = format!("NVRTC {major}.{minor}");
        let code = self.code().into_iter().map(|(kind, image, _)| self.described(kind, image, &compiler));
        self.manifest.code = code.collect();
        Ok(())
    }

    /// A piece of code in the manifest.
    fn described(&self, kind: CodeKind, image: &Image, compiler: &str) -> Compiled {
        let (name, number) = (&self.manifest.name, image.arch.number());
        let file = match kind {
            CodeKind::Cubin => format!("{name}.sm_{number}.cubin"),
            CodeKind::Ptx => format!("{name}.ptx"),
        };
        let compute = ComputeCapability { major: number / 10, minor: number % 10 };
        Compiled { kind, compute, file, compiler: compiler.to_owned() }
    }

    /// The pieces of compiled code, in the order of [`Manifest::code`]. The PTX is the oldest, because
    /// newer devices can use it too.
    fn code(&self) -> Vec<(CodeKind, &Image, &[u8])> {
        let mut images: Vec<&Image> = self.images.iter().collect();
        images.sort_by_key(|image| std::cmp::Reverse(image.arch.number()));
        let oldest = images.last().copied();
        let cubins =
            images.into_iter().filter_map(|image| Some((CodeKind::Cubin, image, image.cubin.as_deref()?)));
        let ptx = oldest.map(|image| (CodeKind::Ptx, image, image.ptx.as_bytes()));
        cubins.chain(ptx).collect()
    }

    /// The command that compiles the kernels without NVRTC.
    fn by_hand(&self, device: &Device) -> String {
        let (Manifest { name, options, .. }, arch) = (&self.manifest, device.arch());
        let options = options.join(" ");
        format!("compile it yourself: nvcc -cubin -arch={arch} {options} -o {name}.{arch}.cubin {name}.cu")
    }

    /// Writes all files and returns their paths. Creates the folder if it is missing. Compiled code
    /// that an earlier export left there is removed, because it belongs to other kernels.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>, ExportError> {
        let failed = |path: &Path, error| ExportError::Write { path: path.to_owned(), error };
        let manifest = &self.manifest;
        let code: Vec<&[u8]> = self.code().into_iter().map(|(.., bytes)| bytes).collect();
        let texts = [
            (PRINTER.extension(), PRINTER.print(&self.program, Build::Timing)),
            ("schedule", self.schedule.clone()),
            ("json", manifest.to_json()?),
            ("h", header(manifest)),
            ("c", source(manifest, &code)),
        ];
        let texts =
            texts.iter().map(|(extension, text)| (format!("{}.{extension}", manifest.name), text.as_bytes()));
        let code = manifest.code.iter().zip(code).map(|(compiled, code)| (compiled.file.clone(), code));
        let files: Vec<(String, &[u8])> = texts.chain(code).collect();

        fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        for path in self.left_over(folder).map_err(|error| failed(folder, error))? {
            fs::remove_file(&path).map_err(|error| failed(&path, error))?;
        }
        let write = |(file, content): (String, &[u8])| {
            let path = folder.join(file);
            write_whole(&path, content).map_err(|error| failed(&path, error))?;
            Ok(path)
        };
        files.into_iter().map(write).collect()
    }

    /// Files in the folder that an earlier export of this name compiled.
    fn left_over(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let is_compiled = |file: &str| {
            let Some(rest) = file.strip_prefix(&format!("{}.", self.manifest.name)) else { return false };
            let digits = rest.strip_prefix("sm_").and_then(|rest| rest.strip_suffix(".cubin"));
            matches!(rest, "cubin" | "ptx")
                || digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let mut found = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if is_compiled(&entry.file_name().to_string_lossy()) && entry.file_type()?.is_file() {
                found.push(entry.path());
            }
        }
        Ok(found)
    }

    /// The kernels, under their exported names.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The description of the package.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The code for the device that the schedule was made for; `None` if there is none.
    pub fn image(&self) -> Option<&Image> {
        self.images.first()
    }

    /// Notes for users, such as why there is no machine code for a device.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// Checks that the kernels of a schedule suit further devices.
fn check_devices(
    problem: &Problem,
    schedule: &Schedule,
    program: &Program,
    also_for: &[Device],
) -> Result<(), ExportError> {
    let made_for = || problem.device().name.clone();
    for device in also_for {
        let name = || device.name.clone();
        let options = lower::Options { pitched: program.sizes.is_some(), ..lower::Options::default() };
        let other = problem.on(device).map_err(BuildError::from);
        let other = other.and_then(|other| build_with(&other, schedule, options));
        let other = other.map_err(|error| ExportError::Unfit {
            made_for: made_for(),
            device: name(),
            error: Box::new(error),
        })?;
        if PRINTER.describe(&other, Build::Timing) != PRINTER.describe(program, Build::Timing) {
            return Err(ExportError::Differs { made_for: made_for(), device: name() });
        }
    }
    Ok(())
}
