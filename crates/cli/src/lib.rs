//! The `warploom` command-line program as a library, so that you can build it with your own
//! pipelines.
//!
//! Your program is a table of [`App`]s and one call:
//!
//! ```no_run
#![doc = include_str!("../examples/brighter.rs")]
//! ```
//!
//! Results go to standard output, everything else to standard error, without colours. With `--json`,
//! errors are results too: one object on standard output (`docs/json.md`). The exit
//! codes are: 0 success, 1 a bug in the program, 2 a wrong argument or file, 3 a pipeline that
//! cannot run as requested, 4 no GPU or a GPU error, 5 nothing was measured, 6 outputs that differ
//! from the reference, 130 interrupted, 141 standard output was closed.

#[macro_use]
extern crate warploom_results;

mod accuracy;
mod any_size;
mod apps;
mod backend;
mod bench;
mod cache;
mod choice;
#[cfg(feature = "train")]
mod collect;
mod compile;
mod completions;
mod device;
mod devices;
mod emit;
mod error;
#[cfg(feature = "train")]
mod evaluate;
mod explain;
mod failure;
#[cfg(all(feature = "farm", unix))]
mod farm;
mod features;
mod fold;
mod folder;
mod fuzz;
mod graph;
mod help;
mod ignored;
mod inputs;
mod landscape;
mod manual;
mod model;
mod names;
mod page;
mod passes;
mod pipeline;
mod progress;
mod records;
mod report;
mod run;
mod search;
mod settings;
mod show;
mod sim;
mod suite;
mod table;
#[cfg(feature = "train")]
mod train;
mod tune;
mod verify;
mod voice;
mod worker;
mod writable;

use std::ffi::OsString;
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use warploom::app::App;

use error::{Error, exit};
use failure::Failures;
use voice::Voice;
use writable::Output;

/// Compile image pipelines to fast CUDA kernels; show, run, check, time and tune them
///
/// A pipeline is a built-in app, a *.json file written by Pipeline::to_json or `warploom apps --export`, or a *.tc file in Tensor
/// Comprehensions.
#[derive(Debug, Parser)]
#[command(
    name = "warploom",
    version,
    color = ColorChoice::Never,
    arg_required_else_help = true,
    after_long_help = "Examples:
  warploom apps                                    the built-in pipelines
  warploom compile harris -o out                   find a schedule; write CUDA, and C code that launches it; needs no GPU
  warploom explain harris --schedule out           show the schedule's loop nests and predicted times
  warploom tune harris --top 5 -o out              measure the five schedules with the best predicted times on a GPU
  warploom run unsharp --input photo.png -o sharp.png
  warploom help compile                            the full help of a command; `warploom compile -h` is a summary

Results go to standard output, everything else to standard error. With --json, errors are results too: one JSON object on
standard output. Long tasks show a progress bar on a terminal, and print a line every ten seconds elsewhere. Output has no
colours.

Exit codes:
  0    success
  1    a bug in the program, or a failure found by `fuzz`
  2    a wrong argument, or a missing or invalid file
  3    a pipeline or schedule that cannot be built as requested
  4    no GPU, or a GPU error
  5    nothing could be measured
  6    outputs differ from the reference, or `suite` found no valid schedule for an app
  130  interrupted twice
  141  standard output was closed

Environment:
  WARPLOOM_LOG         the log filter, which overrides -v: debug, or warploom_search=trace,warploom_tune=debug
  WARPLOOM_CACHE_DIR   the folder for compiled kernels; if empty, nothing is cached. The default is $XDG_CACHE_HOME/warploom
                       or ~/.cache/warploom
  WARPLOOM_NVRTC_DIR   the first folder to search for NVRTC, CUDA's compiler
  WARPLOOM_POSTGRES    the only folder to search for PostgreSQL's programs, which `farm start` runs
  WARPLOOM_LAUNCH      plain: kernels never start before the previous one has ended; the default is early
  CUDA_HOME, CUDA_PATH, CUDA_ROOT, CUDA_TOOLKIT_ROOT_DIR
                       CUDA installations to search for NVRTC, after the system's libraries
  CUDA_VISIBLE_DEVICES the GPUs that the driver reports, and their order"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    voice: Voice,
}

#[derive(Debug, Subcommand)]
enum Command {
    Apps(apps::Arguments),
    Graph(graph::Arguments),
    Run(run::Arguments),
    Compile(compile::Arguments),
    Explain(explain::Arguments),
    Verify(verify::Arguments),
    Sim(sim::Arguments),
    Bench(bench::Arguments),
    Accuracy(accuracy::Arguments),
    Tune(Box<tune::Arguments>),
    Suite(Box<suite::Arguments>),
    Records(records::Arguments),
    #[cfg(all(feature = "farm", unix))]
    Farm(farm::Arguments),
    Landscape(landscape::Arguments),
    Report(page::Arguments),
    Cache(cache::Arguments),
    #[command(hide = true)]
    Worker(worker::Arguments),
    #[cfg(feature = "train")]
    Collect(collect::Arguments),
    #[cfg(feature = "train")]
    Train(train::Arguments),
    #[cfg(feature = "train")]
    Evaluate(evaluate::Arguments),
    Fuzz(fuzz::Arguments),
    Devices(devices::Arguments),
    Completions(completions::Arguments),
    Manual(manual::Arguments),
}

impl Command {
    /// Where the command will write files. `run` finds out from its pipeline.
    fn outputs(&self) -> Vec<Output<'_>> {
        match self {
            Command::Apps(arguments) => arguments.outputs(),
            Command::Run(arguments) => arguments.outputs(),
            Command::Compile(arguments) => arguments.outputs(),
            Command::Explain(arguments) => arguments.outputs(),
            Command::Tune(arguments) => arguments.outputs(),
            Command::Suite(arguments) => arguments.outputs(),
            Command::Records(arguments) => arguments.outputs(),
            Command::Landscape(arguments) => arguments.outputs(),
            Command::Report(arguments) => arguments.outputs(),
            Command::Fuzz(arguments) => arguments.outputs(),
            #[cfg(feature = "train")]
            Command::Collect(arguments) => arguments.outputs(),
            #[cfg(feature = "train")]
            Command::Train(arguments) => arguments.outputs(),
            #[cfg(feature = "train")]
            Command::Evaluate(arguments) => arguments.outputs(),
            _ => Vec::new(),
        }
    }
}

/// Runs the whole program with a table of apps and the arguments of this process.
///
/// Every error is reported as one sentence on standard error and an exit code; with `--json`, as one
/// object on standard output instead. Panics, including those in an app, are reported the same way.
pub fn main_with(apps: &[App]) -> ExitCode {
    // Not locked, because a worker writes its answers from another thread.
    ExitCode::from(answer(apps, std::env::args_os().collect(), &mut io::stdout()))
}

/// Runs one command, reports its errors and panics, and returns the exit code.
fn answer(apps: &[App], arguments: Vec<OsString>, out: &mut dyn Write) -> u8 {
    let failures = Failures::of(&arguments);
    panic::set_hook(Box::new(move |panic| failures.note_panic(panic)));
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| execute(apps, arguments, out)));
    match outcome {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            failures.report(&error, out);
            error.exit_code()
        }
        Err(_) => {
            failures.report_panic(out);
            exit::INTERNAL
        }
    }
}

/// Runs one command. `arguments` starts with the program's name.
fn execute(
    apps: &[App],
    arguments: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let parse = |command: clap::Command| -> Result<_, clap::Error> {
        let matches = command.try_get_matches_from(&arguments)?;
        Ok((Arguments::from_arg_matches(&matches)?, matches))
    };
    // Folding the help pages of all commands dominates start-up. Help and errors show them; a command that runs does not.
    let parsed = parse(Arguments::command()).or_else(|_| parse(help::fitted(Arguments::command())));
    let (Arguments { command, voice }, matches) =
        parsed.map_err(|error| features::explained(error, &arguments))?;
    ignored::check(&matches)?;
    names::check(apps)?;
    command.outputs().iter().try_for_each(Output::check)?;
    // The parent captures a worker's standard error as its last words, so a worker must not log
    // there.
    if !matches!(command, Command::Worker(_)) {
        voice.apply()?;
    }
    let outcome = run_command(command, apps, out);
    passes::show();
    outcome
}

fn run_command(command: Command, apps: &[App], out: &mut dyn Write) -> Result<(), Error> {
    match command {
        Command::Apps(arguments) => apps::apps(apps, &arguments, out),
        Command::Graph(arguments) => graph::graph(apps, &arguments, out),
        Command::Run(arguments) => run::run(apps, &arguments, out),
        Command::Compile(arguments) => compile::compile(apps, &arguments, out),
        Command::Explain(arguments) => explain::explain(apps, &arguments, out),
        Command::Verify(arguments) => verify::verify(apps, &arguments, out),
        Command::Sim(arguments) => sim::sim(apps, &arguments, out),
        Command::Bench(arguments) => bench::bench(apps, &arguments, out),
        Command::Accuracy(arguments) => accuracy::accuracy(apps, &arguments, out),
        Command::Tune(arguments) => tune::tune(apps, &arguments, out),
        Command::Suite(arguments) => suite::suite(apps, &arguments, out),
        Command::Records(arguments) => records::records(&arguments, out),
        #[cfg(all(feature = "farm", unix))]
        Command::Farm(arguments) => farm::farm(apps, &arguments, out),
        Command::Landscape(arguments) => landscape::landscape(apps, &arguments, out),
        Command::Report(arguments) => page::page(apps, &arguments, out),
        Command::Cache(arguments) => cache::cache(&arguments, out),
        Command::Worker(arguments) => worker::worker(&arguments),
        #[cfg(feature = "train")]
        Command::Collect(arguments) => collect::collect(apps, &arguments, out),
        #[cfg(feature = "train")]
        Command::Train(arguments) => train::train(&arguments, out),
        #[cfg(feature = "train")]
        Command::Evaluate(arguments) => evaluate::evaluate(&arguments, out),
        Command::Fuzz(arguments) => fuzz::fuzz(&arguments, out),
        Command::Devices(arguments) => devices::devices(&arguments, out),
        Command::Completions(arguments) => completions::completions(apps, &arguments, out),
        Command::Manual(arguments) => manual::manual(apps, &arguments, out),
    }
}

#[cfg(test)]
#[path = "../tests/program/documented.rs"]
#[allow(dead_code, reason = "the tests of the program use the rest")]
mod documented;
#[cfg(test)]
mod tests;
