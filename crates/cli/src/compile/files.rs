//! The files of a compiled pipeline.

use std::fs;
use std::io;
use std::path::Path;

use warploom::codegen::cuda::{Build, print};
use warploom::codegen::export::{Compiled, Manifest, header, source};
use warploom::interp::files::FileError;
use warploom::runtime;
use warploom::runtime::nvrtc::{self, Arch, Image};
use warploom::target::Device;
use warploom::target::program::Program;

use crate::emit::Scheduled;
use crate::error::Error;
use crate::search::machine_code;
use crate::whole::write_whole;

/// The extension of a file, and its content; `None` for a file that must not exist.
pub(crate) type Content = (&'static str, Option<Vec<u8>>);

/// The compiled kernels. If this machine cannot compile to machine code, a note says why.
pub(crate) struct Code {
    pub(crate) image: Option<Image>,
    pub(crate) note: Option<String>,
}

impl Code {
    /// Compiles kernels for a device and records the compiler in the manifest.
    pub(crate) fn new(program: &Program, manifest: &mut Manifest, device: &Device) -> Result<Code, Error> {
        let code = compile(program, manifest, device)?;
        manifest.code = code.image.as_ref().map(compiled_by).transpose()?;
        Ok(code)
    }
}

fn compile(program: &Program, manifest: &Manifest, device: &Device) -> Result<Code, Error> {
    let Manifest { name, arch, options, .. } = manifest;
    let by_hand = || {
        let options = options.join(" ");
        format!("compile it yourself: nvcc -cubin -arch={arch} {options} -o {name}.cubin {name}.cu")
    };
    let without = |note: String| Ok(Code { image: None, note: Some(note) });
    let arch = match Arch::for_device(device) {
        Ok(arch) => arch,
        Err(runtime::Error::NoNvrtc { .. }) => {
            let missing = "NVRTC was not found, so there is no machine code";
            return without(format!("{missing}; `warploom devices` shows what is missing, or {}", by_hand()));
        }
        Err(error @ runtime::Error::OldDevice { .. }) => {
            return without(format!("there is no machine code: {error}, or {}", by_hand()));
        }
        Err(error) => return Err(Error::Cuda(error.to_string())),
    };
    let (_, image) = machine_code(program, arch).map_err(|error| Error::Cuda(error.to_string()))?;
    Ok(Code { image, note: arch.warning(device) })
}

/// The kind of the image and the compiler version, for the manifest.
fn compiled_by(image: &Image) -> Result<Compiled, Error> {
    let (major, minor) = nvrtc::version().map_err(|error| Error::Cuda(error.to_string()))?;
    Ok(Compiled { arch: image.arch.to_string(), compiler: format!("NVRTC {major}.{minor}") })
}

/// The content of all files that another program needs to run the kernels.
pub(crate) fn bundle(of: &Scheduled<'_>, manifest: &Manifest, code: &Code) -> Result<Vec<Content>, Error> {
    let json = serde_json::to_string_pretty(manifest).map_err(io::Error::from)? + "\n";
    let image = code.image.as_ref();
    let text = |text: String| Some(text.into_bytes());
    Ok(vec![
        ("cu", text(print(of.program, Build::Timing))),
        ("cubin", image.and_then(|image| image.cubin.clone())),
        ("ptx", image.and_then(|image| text(image.ptx.clone()))),
        ("schedule", text(of.schedule.to_text(of.problem.pipeline()))),
        ("json", text(json)),
        ("h", text(header(manifest))),
        ("c", text(source(manifest, image.map(Image::code).as_ref()))),
    ])
}

/// Writes the files that have content and returns their paths. A file without content that exists
/// is left over from an earlier run and belongs to other kernels, so it is removed.
pub(crate) fn write(folder: &Path, name: &str, contents: &[Content]) -> Result<Vec<String>, Error> {
    let failed = |path: &Path, error| FileError::Write { name: path.display().to_string(), error };
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let mut written = Vec::new();
    for (extension, content) in contents {
        let path = folder.join(format!("{name}.{extension}"));
        match content {
            Some(content) => {
                write_whole(&path, content).map_err(|error| failed(&path, error))?;
                written.push(path.display().to_string());
            }
            None if path.is_file() => fs::remove_file(&path).map_err(|error| failed(&path, error))?,
            None => {}
        }
    }
    Ok(written)
}
