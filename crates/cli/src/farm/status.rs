//! `warploom farm status`: what a farm does at the moment.

mod screen;
mod text;
mod watch;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use warploom::farm::status;
use warploom::farm::store::Postgres;
use warploom::records;

use super::server;
use crate::error::Error;
use crate::report::{self, Format};
use crate::search::duration;

const SCHEMA: &str = "warploom.farm-status/1";

/// Show the workers, the runs and the queue of a farm
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom farm status farm/farm.json
  warploom farm status farm/farm.json --watch
  warploom farm status postgres://user@host/database --watch --every 30s --json

With --watch on a terminal, the whole screen is used: q leaves it, the arrow keys and page keys scroll. Elsewhere, a line is
printed for everything that has changed. With --json too, each time gives one object on one line.

A worker is alive while it is connected to the server, and lost if it ended without saying so. What it had taken, others take.

The share of a run is its part of the GPUs. It follows from how much faster its next trial may make it; none is left out.

The end is estimated from the trials of the last ten minutes; it is unknown while a run has not said how many it will take.")]
pub(super) struct Arguments {
    /// The farm file, or the URL of the server
    #[arg(value_name = "FARMFILE|URL")]
    farm: PathBuf,
    /// Go on until the interrupt key is pressed
    #[arg(long)]
    watch: bool,
    /// How often to look, with --watch
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "2s", requires = "watch")]
    every: Duration,
    #[command(flatten)]
    format: Format,
}

pub(super) fn status(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let store = Postgres::open_existing(&server::address(&arguments.farm)?)?;
    let place = records::shown(&arguments.farm);
    match (arguments.watch, arguments.format.json) {
        (true, json) => watch::watch(store, &place, arguments.every, json, out),
        (false, true) => report::json(out, SCHEMA, &status::read(&store)?),
        (false, false) => report::text(out, &text::whole(&status::read(&store)?, &place)),
    }
}
