//! `warploom devices`: the GPUs of this machine.

use std::io::Write;

use serde::Serialize;
use warploom::runtime::{Gpu, driver_version, nvrtc};
use warploom::target::Device;

use crate::error::Error;
use crate::report::{self, Format};
use crate::table::{self, Align};

/// List the GPUs of this machine, and what compiles for them
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  warploom devices
  warploom devices --json

Exits with 4 if there is none; what was looked for and where is said on standard error.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct Report {
    devices: Vec<Device>,
    /// Version of CUDA that the driver speaks.
    driver: Option<String>,
    /// Version of the kernel compiler, or why there is none.
    nvrtc: Result<String, String>,
}

/// Lists the GPUs.
pub(crate) fn devices(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let compiler = nvrtc::version().map(|(major, minor)| format!("{major}.{minor}"));
    let nvrtc = compiler.map_err(|error| error.to_string());
    let devices = Gpu::devices().map_err(|error| Error::NoGpu(error.to_string()))?;
    let driver = driver_version().ok().map(|(major, minor)| format!("{major}.{minor}"));
    let report = Report { devices, driver, nvrtc };
    if arguments.format.json {
        return report::json(out, "warploom.devices/1", &report);
    }
    let titles = [
        ("#", Align::Right),
        ("device", Align::Left),
        ("arch", Align::Left),
        ("SMs", Align::Right),
        ("memory GB", Align::Right),
        ("shared KB a block", Align::Right),
        ("fingerprint", Align::Left),
    ];
    let rows = report.devices.iter().enumerate().map(|(number, device)| {
        vec![
            number.to_string(),
            device.name.clone(),
            device.arch(),
            device.sms.to_string(),
            format!("{:.1}", device.memory.dram_bytes as f64 / 1e9),
            (device.shared.per_block_opt_in / 1024).to_string(),
            device.fingerprint(),
        ]
    });
    let compiler = match &report.nvrtc {
        Ok(version) => format!("kernel compiler: NVRTC {version}\n"),
        Err(why) => format!("no kernel compiler: {why}\n"),
    };
    report::text(out, &(table::whole(&titles, &rows.collect::<Vec<_>>()) + "\n" + &compiler))
}
