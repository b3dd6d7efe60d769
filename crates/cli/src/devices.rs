//! `warploom devices`: lists the GPUs of this machine.

use std::io::Write;

use warploom::runtime::{Gpu, compiler, driver_version};
use warploom::target::Device;

use crate::device::{AUTO, find, present};
use crate::error::Error;
use crate::report::{self, Format};
use crate::table::{PlainText as _, Table, dash};

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

report! {
    struct Presets = "warploom.devices.presets/1" {
        devices: Vec<Device>, "the GPUs that `--device` knows by name";
    }

    struct Report = "warploom.devices/2" {
        devices: Vec<Device>, "the GPUs of this machine, in the driver's order";
        driver: Option<String>, "the CUDA version that the driver supports";
        nvrtc: Option<String>, "the version of NVRTC; `null` if it was not found";
        nvrtc_error: Option<String>, "why it was not found";
    }
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
    let compiler = sentence(&nvrtc);
    let (nvrtc, nvrtc_error) = (nvrtc.clone().ok(), nvrtc.err());
    let report = Report { devices, driver, nvrtc, nvrtc_error };
    report::print(out, arguments.format, &report, || {
        let devices = &report.devices;
        let number = |device: &Device| dash(devices.iter().position(|other| std::ptr::eq(other, device)));
        format!("{}\n{compiler}\n", listing(devices, ("#", number)))
    })
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
    let presets = Presets { devices: Device::presets() };
    let weights = |device: &Device| {
        let own = warploom::model_for(device).warning.is_none();
        if own { "its own" } else { "of another GPU" }.to_owned()
    };
    report::print(out, format, &presets, || listing(&presets.devices, ("weights", weights)))
}

/// A table of devices, with a first column.
fn listing(devices: &[Device], (title, cell): (&str, impl Fn(&Device) -> String)) -> String {
    Table::of(devices)
        .right(title, cell)
        .left("device", |device| device.name.clone())
        .left("arch", Device::arch)
        .right("SMs", |device| device.sms.to_string())
        .right("memory GB", |device| format!("{:.1}", device.memory.dram_bytes as f64 / 1e9))
        .right("shared KB per block", |device| (device.shared.per_block_opt_in / 1024).to_string())
        .left("fingerprint", Device::fingerprint)
        .text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documented::Documented;
    use crate::report::Declared as _;

    #[test]
    fn the_report_is_as_its_page_says() {
        let page = Documented::read();
        for (nvrtc, nvrtc_error) in [(Some("13.0".to_owned()), None), (None, Some("not found".to_owned()))] {
            let (devices, driver) = (Device::presets(), Some("13.0".to_owned()));
            let mut out = Vec::new();
            let report = Report { devices, driver, nvrtc, nvrtc_error };
            report::json(&mut out, Report::NAME, &report).unwrap();
            page.check(&serde_json::from_slice(&out).unwrap());
        }
    }
}
