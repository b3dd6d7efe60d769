//! What the program says beside its results: notes, lines and logs, all on standard error.

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

/// Says what is logged, in the place of `--verbose`.
const VARIABLE: &str = "WARPLOOM_LOG";

static QUIET: AtomicBool = AtomicBool::new(false);
static LOGS: AtomicBool = AtomicBool::new(false);

/// The flags that every command has.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Voice {
    /// Say nothing but results and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Say what the libraries do, on standard error; twice, in every detail
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
}

impl Voice {
    /// From here on the program speaks as the flags and the environment say.
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
            // Where standard error is closed, there is nowhere to say so.
            .log_internal_errors(false)
            .with_ansi(false)
            .with_timer(uptime())
            .finish()
            .with(Passes);
        // There is one already if several commands run in one process.
        let _ = subscriber.try_init();
        Ok(())
    }
}

/// Whether nothing is to be said but results and errors.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Whether the libraries' logs come between the lines, so that there is no place for a bar.
pub(crate) fn logs() -> bool {
    LOGS.load(Ordering::Relaxed)
}

/// Says something that a user should know.
pub(crate) fn note(note: &str) {
    line(&format!("note: {note}"));
}

/// Says what is most likely wrong with a pipeline at some sizes.
pub(crate) fn warnings(pipeline: &Pipeline, regions: &Regions) {
    for warning in warploom::lang::warnings(pipeline, regions) {
        line(&format!("warning: {warning}"));
    }
}

/// Says what was done.
pub(crate) fn line(line: &str) {
    if !is_quiet() {
        // If standard error is closed, nobody wants to know.
        writeln!(stderr(), "{}", visible_lines(line)).unwrap_or_default();
    }
}

/// A place for whole lines, in which everything is shown.
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
