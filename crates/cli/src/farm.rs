//! `warploom farm`: a database that many machines share.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Subcommand;
use serde::Serialize;
use warploom::farm::database::{self, DatabaseError};
use warploom::farm::server::{Listen, Server, StartOptions};

use crate::error::Error;
use crate::report::{self, Format};
use crate::voice;

/// How long a server may take to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Start and stop a database that processes and machines share while they tune
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom farm start --database farm                      for the processes of this machine
  warploom farm start --database farm --listen 10.0.0.5    for other machines too, encrypted
  warploom tune harris --iterations 20 --records farm/farm.json -o out
  warploom farm stop --database farm

A farm's database is a private PostgreSQL server in a folder of its own. Every process that tunes with --records
farm/farm.json takes part: none measures what another has measured or is measuring. Copy this file to other machines, and
keep it secret: it holds the address of the server and a password.

Those who have a PostgreSQL server need none of this: --records postgres://user@host/database makes the tables there.

The server needs PostgreSQL 13 or newer on this machine (Debian: postgresql). It never runs as root: started by root, it runs
as `postgres` or `nobody`.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Start the database, with an empty one in a new folder
    Start {
        /// The folder of the database; created if missing
        #[arg(long, value_name = "DIR")]
        database: PathBuf,
        /// Also listen for other machines, at this name or address of this machine, as 10.0.0.5 or gpu1.lan:5433
        #[arg(long, value_name = "ADDRESS", value_parser = address)]
        listen: Option<Listen>,
        /// The most connections (default: as before, at first 200)
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..=10_000))]
        connections: Option<u32>,
        #[command(flatten)]
        format: Format,
    },
    /// Stop the database; nothing that is recorded is lost
    Stop {
        /// The folder of the database
        #[arg(long, value_name = "DIR")]
        database: PathBuf,
        #[command(flatten)]
        format: Format,
    },
}

#[derive(Serialize)]
struct Report {
    /// The folder of the database.
    database: String,
    /// Whether it runs now.
    running: bool,
    /// Whether it ran before.
    was_running: bool,
    /// The file for workers; `null` if it has ended.
    farm_file: Option<String>,
    /// The address of the server without the password; `null` if it has ended.
    server: Option<String>,
}

fn address(text: &str) -> Result<Listen, String> {
    text.parse::<Listen>().map_err(|error| error.to_string())
}

pub(crate) fn farm(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    match &arguments.what {
        What::Start { database, listen, connections, format } => {
            let options = StartOptions {
                listen: listen.clone(),
                max_connections: *connections,
                ..StartOptions::default()
            };
            start(database, &options, *format, out)
        }
        What::Stop { database, format } => stop(database, *format, out),
    }
}

fn start(folder: &Path, options: &StartOptions, format: Format, out: &mut dyn Write) -> Result<(), Error> {
    let started = database::start(folder, options)?;
    if let Some(note) = &started.note {
        voice::note(note);
    }
    let server = started.worker.address().map_err(DatabaseError::Address)?;
    let report = Report {
        database: folder.display().to_string(),
        running: true,
        was_running: started.was_running,
        farm_file: Some(started.worker_path.display().to_string()),
        server: Some(server.to_string()),
    };
    if format.json {
        return report::json(out, "warploom.farm/1", &report);
    }
    let file = started.worker_path.display();
    let runs = if started.was_running { "runs already" } else { "runs" };
    report::text(
        out,
        &format!(
            "the database in {} {runs}: {server}\n\ntune with it, here or wherever this file is:\n  \
             warploom tune harris --iterations 20 --records {file} -o out\n",
            folder.display()
        ),
    )
}

fn stop(folder: &Path, format: Format, out: &mut dyn Write) -> Result<(), Error> {
    let was_running = Server::at(folder).stop(PATIENCE).map_err(DatabaseError::Server)?;
    let database = folder.display().to_string();
    if format.json {
        let report = Report { database, running: false, was_running, farm_file: None, server: None };
        return report::json(out, "warploom.farm/1", &report);
    }
    let ended = if was_running { "has ended" } else { "was not running" };
    report::text(out, &format!("the database in {database} {ended}\n"))
}
