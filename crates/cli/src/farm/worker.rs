//! `warploom farm worker`: a process that works for a farm.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::num::NonZero;
use std::path::PathBuf;
use std::thread::available_parallelism;

use warploom::app::App;
use warploom::farm::launch::gpus::given_gpus;
use warploom::farm::worker::{News, Options, Role, Roles, work};
use warploom::runtime::device_count;
use warploom::tune::worker::WorkerProgram;
use xxhash_rust::xxh3::Xxh3;

use super::server;
use super::tasks::Shop;
use crate::error::Error;
use crate::report::{self, Format};
use crate::tune::{Measuring, stop_working};
use crate::voice;

/// Work for a farm: propose schedules, compile them, or time them
///
/// A worker without a GPU proposes and compiles (--role propose,compile); it needs NVRTC, and no driver. One with a GPU runs
/// what others have compiled (--role run), or does everything. It works until it is interrupted, or until the farm is stopped.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The farm file that `warploom farm start` has written, or the URL of the server
    #[arg(value_name = "FARMFILE|URL")]
    farm: PathBuf,
    /// What it does: propose, compile and run, with commas between, or all
    #[arg(long, value_name = "ROLES", default_value = "all")]
    role: Roles,
    /// Number of runs that it proposes schedules for at the same time
    #[arg(long, value_name = "N", default_value = "4")]
    runs: NonZero<usize>,
    /// End when no run is left, instead of waiting for more
    #[arg(long)]
    until_done: bool,
    #[command(flatten)]
    measuring: Measuring,
    #[command(flatten)]
    format: Format,
}

report! {
    struct Report = "warploom.farm-worker/1" {
        compiled: u64, "the candidates that it compiled";
        recorded: u64, "the trials that it recorded";
    }
}

pub(super) fn worker(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let address = server::address(&arguments.farm)?;
    let roles = arguments.role.clone();
    let given = given_gpus(|name| std::env::var(name).ok())?;
    let mut bench = match (roles.contains(Role::Run), given) {
        (false, _) => None,
        (true, Some(given)) if arguments.measuring.fake.is_none() => {
            let gpus = given.indices(device_count().map_err(|error| Error::NoGpu(error.to_string()))?)?;
            Some(arguments.measuring.open_on(&gpus)?)
        }
        (true, _) => Some(arguments.measuring.open()?),
    };
    let cores = available_parallelism().map_or(2, NonZero::get);
    let program = std::env::current_exe()?;
    let options = Options {
        address,
        roles,
        program: WorkerProgram::new(&program, [OsString::from("worker")]),
        digest: digest(&program)?,
        fake: arguments.measuring.fake.clone(),
        patience: arguments.measuring.patience(),
        threads: arguments.measuring.threads().unwrap_or(cores.saturating_sub(1).max(1)),
        runs: arguments.runs.get(),
        until_done: arguments.until_done,
    };
    let shop = Shop { apps };
    let worked = work(&options, &shop, bench.as_mut(), stop_working(), &say);
    let summary = worked.map_err(Error::Worked)?;
    let report = Report { compiled: summary.compiled, recorded: summary.recorded };
    report::print(out, arguments.format, &report, || {
        let Report { compiled, recorded } = &report;
        format!("compiled {compiled} candidates, recorded {recorded} trials\n")
    })
}

fn say(news: &News) {
    match news {
        News::Joined(number) => voice::line(&format!("joined the farm as worker {number}")),
        News::Proposing { run, name, before: 0 } => voice::line(&format!("run {run}, {name}: begins")),
        News::Proposing { run, name, .. } => voice::line(&format!("run {run}, {name}: goes on here")),
        News::Ended { run, name, how } => voice::line(&format!("run {run}, {name}: {how}")),
        _ => {}
    }
}

/// The digest of this program, by which workers are known to be alike.
fn digest(program: &std::path::Path) -> Result<String, Error> {
    let file = program.display().to_string();
    let unreadable = |error| Error::Read { path: file.clone(), error };
    // The file may have been replaced since, so the one that runs is read where the system has it.
    let own = std::path::Path::new("/proc/self/exe");
    let opened = if own.exists() { File::open(own) } else { File::open(program) };
    let mut from = BufReader::new(opened.map_err(unreadable)?);
    let (mut hasher, mut bytes) = (Xxh3::new(), vec![0; 1 << 16]);
    loop {
        match from.read(&mut bytes).map_err(unreadable)? {
            0 => return Ok(format!("{:016x}", hasher.digest())),
            count => hasher.update(&bytes[..count]),
        }
    }
}
