//! Finds the GPU to build kernels for, which need not be present.

use std::error::Error as _;
use std::path::Path;

use serde::Deserialize;
use warploom::known_device;
use warploom::lang::files;
use warploom::runtime::{self, Gpu};
use warploom::target::Device;

use crate::error::Error;
use crate::report::Format;
use crate::voice;

/// The value of `--device` if it is not given.
pub(crate) const AUTO: &str = "auto";

/// The preset that replaces `auto` on a machine without a GPU.
const FALLBACK: &str = "h200";

/// The device that one name selects. `auto` is the first GPU of this machine, or [`FALLBACK`] if there is none, with a note
/// unless the result is JSON. A name that ends in `.json` is a file, and any other name is a preset.
pub(crate) fn find(name: &str, format: Format) -> Result<Device, Error> {
    match name {
        AUTO => match first() {
            Ok(Some(device)) => Ok(device),
            Ok(None) | Err(runtime::Error::NoDriver { .. }) => fallback("this machine has no GPU", format),
            Err(error) => fallback(&format!("the GPU of this machine cannot be used ({error})"), format),
        },
        file if file.ends_with(".json") => read(file),
        name => preset(name),
    }
}

/// The first GPU of this machine, or an error if there is none.
pub(crate) fn present() -> Result<Device, Error> {
    match first() {
        Ok(Some(device)) => Ok(device),
        Ok(None) => Err(Error::NoDevice { why: "the driver reports none".to_owned() }),
        Err(error) => Err(Error::NoDevice { why: error.to_string() }),
    }
}

fn first() -> Result<Option<Device>, runtime::Error> {
    Ok(Gpu::devices()?.into_iter().next())
}

fn fallback(why: &str, format: Format) -> Result<Device, Error> {
    note(
        format,
        &format!(
            "{why}, so kernels are generated for {FALLBACK}; choose another with --device NAME \
             (`warploom devices --presets` lists them)"
        ),
    );
    preset(FALLBACK)
}

fn note(format: Format, text: &str) {
    if !format.json {
        voice::note(text);
    }
}

fn preset(name: &str) -> Result<Device, Error> {
    Device::preset(name).map_err(|error| Error::Device(error.to_string()))
}

fn read(file: &str) -> Result<Device, Error> {
    let text = files::read_text(file)?;
    Device::from_json(&text).map_err(|error| {
        let detail = error.source().map_or(String::new(), |source| format!(" ({source})"));
        Error::DeviceFile { file: file.to_owned(), problem: format!("{error}{detail}") }
    })
}

/// The device in the manifest that `compile` writes beside a schedule.
pub(crate) struct Beside {
    /// The manifest.
    file: String,
    /// The device's name.
    device: String,
}

/// The part of a manifest that is read here.
#[derive(Deserialize)]
struct Manifest {
    schema: String,
    device: String,
}

impl Beside {
    /// Reads the manifest beside a schedule; `None` if there is none.
    pub(crate) fn of(schedule: &Path) -> Option<Beside> {
        let file = schedule.with_extension("json");
        let device = Beside::parse(&files::read_text(&file).ok()?)?;
        Some(Beside { file: file.display().to_string(), device })
    }

    /// The device in a manifest; `None` for other JSON, such as a pipeline's.
    pub(crate) fn parse(text: &str) -> Option<String> {
        let manifest: Manifest = serde_json::from_str(text).ok()?;
        manifest.schema.starts_with("warploom.manifest/").then_some(manifest.device)
    }

    /// The device that the schedule was made for, unless another one was `given`.
    pub(crate) fn device(self, given: Option<&str>, format: Format) -> Result<Device, Error> {
        let Beside { file, device: name } = self;
        let Some(given) = given else {
            return known_device(&name, "").ok_or(Error::ManifestDevice { file, name });
        };
        let device = find(given, format)?;
        if device.name != name {
            note(format, &format!("{file} was made for {name}, but --device selects {}", device.name));
        }
        Ok(device)
    }
}
