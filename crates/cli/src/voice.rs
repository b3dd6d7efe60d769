//! Messages other than results: notes, progress lines and logs, all on standard error.

use std::io::{self, Write, stderr};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ArgAction;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::time::uptime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use warploom::lang::{Pipeline, Regions, visible_lines};

use crate::error::Error;
use crate::passes::Passes;

/// The environment variable with the log filter; overrides `--verbose`.
const VARIABLE: &str = "WARPLOOM_LOG";

static QUIET: AtomicBool = AtomicBool::new(false);
static LOGS: AtomicBool = AtomicBool::new(false);

/// The flags that every command has.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Voice {
    /// Print only results and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Log what the libraries do to standard error; give it twice for full detail
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
}

impl Voice {
    /// Applies the flags and the environment variable to this process.
    pub(crate) fn apply(self) -> Result<(), Error> {
        let usual = match (self.quiet, self.verbose) {
            (true, _) => "error",
            (false, 0) => "warn",
            (false, 1) => "warn,warploom=debug",
            (false, _) => "warn,warploom=trace",
        };
        let given = std::env::var(VARIABLE).ok().filter(|given| !given.trim().is_empty());
        QUIET.store(self.quiet, Ordering::Relaxed);
        LOGS.store(self.verbose > 0 || given.is_some(), Ordering::Relaxed);
        let filter = EnvFilter::builder().parse(given.as_deref().unwrap_or(usual)).map_err(|error| {
            let given = given.clone().unwrap_or_default();
            Error::LogFilter { variable: VARIABLE, given, error: error.to_string() }
        })?;
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(|| Visible(stderr()))
            // If standard error is closed, there is nowhere to report it.
            .log_internal_errors(false)
            .with_ansi(false)
            .with_timer(uptime())
            .finish()
            .with(Passes);
        // Fails if several commands run in one process, because a subscriber is set already.
        let _ = subscriber.try_init();
        Ok(())
    }
}

/// Whether only results and errors are printed.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Whether the libraries log to standard error, so that a progress bar would be torn apart.
pub(crate) fn logs() -> bool {
    LOGS.load(Ordering::Relaxed)
}

/// Prints a note for the user.
pub(crate) fn note(note: &str) {
    line(&format!("note: {note}"));
}

/// Prints warnings about likely mistakes in a pipeline at some sizes.
pub(crate) fn warnings(pipeline: &Pipeline, regions: &Regions) {
    for warning in warploom::lang::warnings(pipeline, regions) {
        line(&format!("warning: {warning}"));
    }
}

/// Prints a line to standard error, unless `--quiet` is given.
pub(crate) fn line(line: &str) {
    if !is_quiet() {
        // If standard error is closed, there is nowhere to report it.
        writeln!(stderr(), "{}", visible_lines(line)).unwrap_or_default();
    }
}

/// A writer of whole lines that escapes invisible characters.
struct Visible<W>(W);

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(visible_lines(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
