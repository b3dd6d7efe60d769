//! `warploom farm`: many machines tune together.

#[cfg(feature = "train")]
mod collect;
mod launching;
mod server;
mod start;
mod status;
mod stop;
mod tasks;
mod worker;

use std::io::Write;

use clap::Subcommand;
use warploom::app::App;

use crate::error::Error;

/// Tune on many machines, which share a database
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom farm start harris unsharp --database farm --local 2 -- --iterations 20
  warploom farm start --suite operators --database farm --listen 10.0.0.5 --slurm gpu:8,cpu:4 -- --top 5
  warploom farm start --database farm --listen 10.0.0.5     the database alone
  warploom farm worker farm.json --role run                 a worker on another machine
  warploom farm status farm/farm.json --watch
  warploom farm stop --database farm

Whoever proposes schedules, compiles them and times them meets in a PostgreSQL database. `farm start --database` starts a
private one in a folder, and writes farm.json into it: the address, with a password. Copy this file to other machines, and
keep it secret. Those who have a PostgreSQL server give its address, as postgres://user@host/database, instead.

Workers propose candidates (by searching), compile them (no GPU needed), or run them on their GPUs; with --role, each does
what it is asked to. Any of them may end at any moment: nothing that is finished is lost, and others do the rest.

A private server needs PostgreSQL 13 or newer on this machine (Debian: postgresql). It never runs as root: started by root,
it runs as `postgres` or `nobody`.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Start(Box<start::Arguments>),
    #[cfg(feature = "train")]
    Collect(Box<collect::Arguments>),
    Worker(Box<worker::Arguments>),
    Status(status::Arguments),
    Stop(stop::Arguments),
}

pub(crate) fn farm(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    match &arguments.what {
        What::Start(arguments) => start::start(apps, arguments, out),
        #[cfg(feature = "train")]
        What::Collect(arguments) => collect::collect(apps, arguments, out),
        What::Worker(arguments) => worker::worker(apps, arguments, out),
        What::Status(arguments) => status::status(arguments, out),
        What::Stop(arguments) => stop::stop(arguments, out),
    }
}
