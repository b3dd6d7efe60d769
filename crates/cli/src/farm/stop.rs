//! `warploom farm stop`: ends runs, workers and the database.

use std::io::Write;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use warploom::farm::address::Address;
use warploom::farm::database::DatabaseError;
use warploom::farm::queue::Queue;
use warploom::farm::server::Server;

use super::server;
use crate::error::Error;
use crate::report::{self, Format};
use crate::show;

/// How long a server may take to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long workers may take to finish what they do at the moment.
const LAST: Duration = Duration::from_secs(30);

/// Stop all runs and workers, and the private database; nothing that is recorded is lost
///
/// With a farm file or a URL, stops runs and workers and leaves the database as it is.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The farm file, or the URL of the server
    #[arg(value_name = "FARMFILE|URL", conflicts_with = "database", required_unless_present = "database")]
    farm: Option<PathBuf>,
    /// The folder of the private database, which is stopped too
    #[arg(long, value_name = "DIR")]
    database: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

report! {
    struct Report = "warploom.farm-stop/1" {
        database: Option<String>, "the folder of the private database; `null` if it was left running";
        running: bool, "whether it runs now";
        was_running: bool, "whether it ran before";
        stopped_runs: usize, "the runs that were stopped";
        dismissed_workers: u64, "the workers that were asked to leave";
    }
}

pub(super) fn stop(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let report = match (&arguments.farm, &arguments.database) {
        (Some(farm), _) => {
            let (stopped_runs, dismissed_workers) = dismiss(&server::address(farm)?)?;
            Report { database: None, running: true, was_running: true, stopped_runs, dismissed_workers }
        }
        (None, folder) => {
            let folder = folder.clone().unwrap_or_default();
            let database = Server::at(&folder);
            let (stopped_runs, dismissed_workers) =
                match database.is_running().map_err(DatabaseError::Server)? {
                    true => dismiss(&server::address(&server::farm_file(&folder))?)?,
                    false => (0, 0),
                };
            let was_running = database.stop(PATIENCE).map_err(DatabaseError::Server)?;
            let database = Some(folder.display().to_string());
            Report { database, running: false, was_running, stopped_runs, dismissed_workers }
        }
    };
    report::print(out, arguments.format, &report, || report.text())
}

impl Report {
    fn text(&self) -> String {
        let mut text = String::new();
        if self.was_running {
            let runs = show::count(self.stopped_runs, "run");
            let workers = show::count(self.dismissed_workers as usize, "worker");
            text += &format!("stopped {runs} and {workers}\n");
        }
        if let Some(database) = &self.database {
            let ended = if self.was_running { "has ended" } else { "was not running" };
            text += &format!("the database in {database} {ended}\n");
        }
        text
    }
}

/// Stops all runs and asks all workers to leave; waits until they have.
fn dismiss(address: &Address) -> Result<(usize, u64), Error> {
    let mut queue = Queue::open(address)?;
    let runs = queue.stop_runs()?;
    let workers = queue.dismiss()?;
    let until = Instant::now() + LAST;
    while workers > 0 && queue.working()? > 0 && Instant::now() < until {
        thread::sleep(Duration::from_millis(100));
    }
    Ok((runs, workers))
}
