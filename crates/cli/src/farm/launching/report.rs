//! What was started, as JSON or in words.

use warploom::farm::address::Address;
use warploom::farm::launch::start::{Report as Launched, Started};

use super::{Database, Words};
use crate::show;

report! {
    pub(super) struct Report = "warploom.farm/1" {
        database: Option<String>, "the folder of the private database; `null` for another server";
        running: bool, "whether it runs now";
        was_running: bool, "whether it ran before";
        farm_file: Option<String>, "the file for workers, which holds a password; `null` for the URL of a server";
        server: String, "the address of the server, without the password";
        runs: Vec<Run>, "the runs that were added";
        started: Vec<String>, "the workers that were started";
        failed: Vec<String>, "the workers that could not be started, with the reason";
    }

    pub(super) struct Run = "added run" {
        pub(super) id: i64, "its number in the farm";
        pub(super) name: String, "the app, operator or file; in a collection, `random 17` or `harris round 2`";
    }
}

impl Report {
    pub(super) fn new(database: &Database, address: &Address, runs: Vec<Run>, launched: &Launched) -> Report {
        let Database { folder, was_running, place } = database;
        let failed = launched.failed.iter();
        Report {
            database: folder.as_ref().map(|folder| folder.display().to_string()),
            running: true,
            was_running: *was_running,
            farm_file: place.is_file().then(|| place.display().to_string()),
            server: address.to_string(),
            runs,
            started: launched.started.iter().map(shown).collect(),
            failed: failed.map(|failed| format!("{}: {}", failed.what, failed.reason)).collect(),
        }
    }

    pub(super) fn text(&self, words: &Words<'_>) -> String {
        let Report { database, was_running, farm_file, server, runs, started, failed, .. } = self;
        let mut text = String::new();
        if let Some(database) = database {
            let runs = if *was_running { "runs already" } else { "runs" };
            text += &format!("the database in {database} {runs}: {server}\n");
        }
        if !runs.is_empty() {
            text += &format!("{}: {}\n", show::count(runs.len(), "run"), words.runs);
        }
        for worker in started {
            text += &format!("started {worker}\n");
        }
        for worker in failed {
            text += &format!("not started: {worker}\n");
        }
        let place = farm_file.as_deref().unwrap_or("URL");
        if started.is_empty() && !runs.is_empty() {
            text +=
                &format!("\nstart workers, here or wherever this file is:\n  warploom farm worker {place}\n");
        }
        text += &match started.is_empty() && runs.is_empty() {
            false => format!("\nsee how far it is:\n  warploom farm status {place} --watch\n"),
            true => format!(
                "\ntune with it, here or wherever this file is:\n  \
                 warploom farm start harris --farm {place} --local 2 -- --iterations 20\n  \
                 warploom tune harris --iterations 20 --records {place} -o out\n"
            ),
        };
        if !runs.is_empty() {
            text += &(words.afterwards)(place);
        }
        text
    }
}

fn shown(started: &Started) -> String {
    match started {
        Started::Job { id, name, tasks, .. } => {
            format!("job {id} ({name}), {}", show::count(*tasks as usize, "task"))
        }
        Started::Remote { host, pid } => format!("{host}, process {pid}"),
        Started::Process { pid, log } => format!("process {pid}, log {}", log.display()),
    }
}
