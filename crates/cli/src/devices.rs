//! `warploom devices`: lists the GPUs of this machine.

use std::io::Write;

use serde::Serialize;
use warploom::runtime::{Gpu, compiler, driver_version};
use warploom::target::Device;

use crate::device::{AUTO, find, present};
use crate::error::Error;
use crate::report::{self, Format};
use crate::table::{self, Align};

/// List the GPUs of this machine, and the kernel compiler
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom devices
  warploom devices --json
  warploom devices --presets                     GPUs that need not be present
  warploom devices --describe a100 > mine.json   a description to edit and pass to --device

Exits with 4 if there is no GPU; standard error then lists what was looked for, and where. --presets and --describe need no
GPU.")]
pub(crate) struct Arguments {
    /// List the presets of `--device` instead
    #[arg(long)]
    presets: bool,
    /// Print the description of a device, for `--device FILE.json`: a preset, or `auto` for this machine's GPU
    #[arg(long, value_name = "NAME", conflicts_with_all = ["presets", "json"])]
    describe: Option<String>,
    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct Presets {
    devices: Vec<Device>,
}

#[derive(Serialize)]
struct Report {
    devices: Vec<Device>,
    /// The CUDA version that the driver supports.
    driver: Option<String>,
    /// The version of NVRTC; `null` if it is not available.
    nvrtc: Option<String>,
    /// Why NVRTC is not available.
    nvrtc_error: Option<String>,
}

pub(crate) fn devices(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    if let Some(name) = &arguments.describe {
        let device = if name == AUTO { present()? } else { find(name, arguments.format)? };
        let described = device.to_json().map_err(|error| Error::Device(error.to_string()))?;
        return report::verbatim(out, &(described + "\n"));
    }
    if arguments.presets {
        return presets(arguments.format, out);
    }
    let compiler = compiler::version().map(|(major, minor)| format!("{major}.{minor}"));
    let nvrtc = compiler.map_err(|error| error.to_string());
    // Without a GPU the user may still want to compile, so the error also describes NVRTC.
    let devices = Gpu::devices().map_err(|error| Error::NoGpu(format!("{error}\n{}", sentence(&nvrtc))))?;
    let driver = driver_version().ok().map(|(major, minor)| format!("{major}.{minor}"));
    if arguments.format.json {
        let (nvrtc, nvrtc_error) = (nvrtc.clone().ok(), nvrtc.err());
        let report = Report { devices, driver, nvrtc, nvrtc_error };
        return report::json(out, "warploom.devices/2", &report);
    }
    let numbers = devices.iter().enumerate().map(|(number, device)| (number.to_string(), device));
    report::text(out, &format!("{}\n{}\n", listing("#", numbers), sentence(&nvrtc)))
}

/// One sentence about NVRTC.
fn sentence(nvrtc: &Result<String, String>) -> String {
    match nvrtc {
        Ok(version) => format!("kernel compiler: NVRTC {version}"),
        Err(why) => format!("no kernel compiler: {why}"),
    }
}

/// Lists the presets; these devices need not be present.
fn presets(format: Format, out: &mut dyn Write) -> Result<(), Error> {
    let devices = Device::presets();
    if format.json {
        return report::json(out, "warploom.devices.presets/1", &Presets { devices });
    }
    let weights = |device: &Device| {
        let own = warploom::model_for(device).warning.is_none();
        if own { "its own" } else { "of another GPU" }.to_owned()
    };
    report::text(out, &listing("weights", devices.iter().map(|device| (weights(device), device))))
}

/// A table of devices, with `first` as the title of the first column.
fn listing<'a>(first: &'static str, devices: impl Iterator<Item = (String, &'a Device)>) -> String {
    let titles = [
        (first, Align::Right),
        ("device", Align::Left),
        ("arch", Align::Left),
        ("SMs", Align::Right),
        ("memory GB", Align::Right),
        ("shared KB per block", Align::Right),
        ("fingerprint", Align::Left),
    ];
    let rows = devices.map(|(first, device)| {
        vec![
            first,
            device.name.clone(),
            device.arch(),
            device.sms.to_string(),
            format!("{:.1}", device.memory.dram_bytes as f64 / 1e9),
            (device.shared.per_block_opt_in / 1024).to_string(),
            device.fingerprint(),
        ]
    });
    table::whole(&titles, &rows.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documented::Documented;

    #[test]
    fn the_report_is_as_its_page_says() {
        let page = Documented::read();
        for (nvrtc, nvrtc_error) in [(Some("13.0".to_owned()), None), (None, Some("not found".to_owned()))] {
            let (devices, driver) = (Device::presets(), Some("13.0".to_owned()));
            let mut out = Vec::new();
            let report = Report { devices, driver, nvrtc, nvrtc_error };
            report::json(&mut out, "warploom.devices/2", &report).unwrap();
            page.check(&serde_json::from_slice(&out).unwrap());
        }
    }
}
