//! Measures how much memoisation, sampling and freezing contribute to the search, and how search
//! time grows with the pipeline. Prints Markdown tables.
//!
//! `cargo run --release -p warploom-benches --bin ablation -- [APPS] [--time-limit SECONDS] [-o FILE]`
#![allow(clippy::print_stdout, reason = "a program whose output this is")]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use warploom::cost::Analytic;
use warploom::plan::Problem;
use warploom::search::{Options, StopReason, search};
use warploom::target::Device;
use warploom_apps::APPS;
use warploom_benches::problem::problem;

/// The lengths of the stencil chains that show how search time grows.
const CHAINS: [u32; 5] = [8, 16, 32, 64, 128];

/// Measures one beam search of each app for every combination of memoisation, sampling and freezing.
#[derive(Parser)]
struct Arguments {
    /// The apps; all if not given
    apps: Vec<String>,
    /// Time limit for one search, in seconds
    #[arg(long, default_value_t = 600.0)]
    time_limit: f64,
    /// The device to search for
    #[arg(long, default_value = "h200")]
    device: String,
    /// The file for the tables (default: standard output)
    #[arg(short, long)]
    output: Option<PathBuf>,
}

/// Which of the three optimisations are enabled.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Setup {
    memo: bool,
    sampling: bool,
    freezing: bool,
}

impl Setup {
    /// All eight combinations, from all off to all on.
    const ALL: [Setup; 8] = {
        let mut all = [Setup { memo: false, sampling: false, freezing: false }; 8];
        let mut number = 0;
        while number < 8 {
            all[number] = Setup { memo: number & 1 > 0, sampling: number & 2 > 0, freezing: number & 4 > 0 };
            number += 1;
        }
        all
    };

    fn name(self) -> String {
        let names = [(self.memo, "memo"), (self.sampling, "sampling"), (self.freezing, "freezing")];
        let on: Vec<&str> = names.into_iter().filter(|(on, _)| *on).map(|(_, name)| name).collect();
        if on.is_empty() { "none".to_owned() } else { on.join(" + ") }
    }
}

/// The result of one search.
#[derive(Clone, Copy)]
struct Measured {
    seconds: f64,
    states: u64,
    kernels: u64,
    cost: f64,
    cut: bool,
}

impl Measured {
    /// Marks a number if the search hit its time limit.
    fn mark(&self, figure: String) -> String {
        if self.cut { format!("{figure} (cut)") } else { figure }
    }
}

/// Runs one beam search on one thread.
fn measure(problem: &Problem, setup: Setup, limit: Duration) -> Measured {
    let mut options = Options { samples: 1, threads: 1, time_limit: Some(limit), ..Options::default() };
    (options.sampling, options.freezing) = (setup.sampling, setup.freezing);
    if !setup.memo {
        options.memo = 0;
    }
    let model = Analytic::new(problem.device());
    let outcome = search(problem, &model, &options, &|_| {});
    Measured {
        seconds: outcome.statistics.elapsed.as_secs_f64(),
        states: outcome.statistics.states,
        kernels: outcome.statistics.kernels,
        cost: outcome.candidates.first().map_or(f64::NAN, |best| best.cost),
        cut: outcome.stop == StopReason::TimeLimit,
    }
}

/// One row per app, with its measurements in the order of [`Setup::ALL`].
type Rows = Vec<(&'static str, Vec<Measured>)>;

/// Writes a table with one row per app and one column per selected setup.
fn table(
    text: &mut String,
    title: &str,
    rows: &Rows,
    setups: impl Fn(Setup) -> bool,
    cell: impl Fn(&Measured, &Measured) -> String,
) -> std::fmt::Result {
    let columns: Vec<usize> = (0..Setup::ALL.len()).filter(|i| setups(Setup::ALL[*i])).collect();
    let names: Vec<String> = columns.iter().map(|i| Setup::ALL[*i].name()).collect();
    writeln!(text, "\n## {title}\n\n| app | {} |", names.join(" | "))?;
    writeln!(text, "| --- |{}", " --- |".repeat(columns.len()))?;
    for (app, measured) in rows {
        let cells: Vec<String> =
            columns.iter().map(|i| measured[*i].mark(cell(&measured[*i], &measured[0]))).collect();
        writeln!(text, "| {app} | {} |", cells.join(" | "))?;
    }
    Ok(())
}

fn growth(text: &mut String, device: &Device, limit: Duration) -> std::fmt::Result {
    writeln!(text, "\n## Growth: chains of stencils, all on\n")?;
    writeln!(text, "| stages | seconds | exponent | states | kernels |\n| --- | --- | --- | --- | --- |")?;
    let all = Setup { memo: true, sampling: true, freezing: true };
    let mut before: Option<f64> = None;
    for stages in CHAINS {
        let app = &warploom_apps::stencil_chain::app();
        let problem = problem(app, &[("stencils", f64::from(stages))], device);
        let measured = measure(&problem, all, limit);
        let exponent =
            before.map_or("-".to_owned(), |before| format!("{:.2}", (measured.seconds / before).log2()));
        before = Some(measured.seconds);
        let seconds = measured.mark(format!("{:.3}", measured.seconds));
        writeln!(text, "| {stages} | {seconds} | {exponent} | {} | {} |", measured.states, measured.kernels)?;
    }
    Ok(())
}

fn report(arguments: &Arguments, device: &Device) -> Result<String, std::fmt::Error> {
    let limit = Duration::from_secs_f64(arguments.time_limit);
    let wanted = |name: &str| arguments.apps.is_empty() || arguments.apps.iter().any(|app| app == name);
    let measured = APPS.iter().filter(|app| wanted(&app.name)).map(|app| {
        let problem = problem(app, &[], device);
        (app.name.as_str(), Setup::ALL.map(|setup| measure(&problem, setup, limit)).to_vec())
    });
    let rows: Rows = measured.collect();
    let mut text = String::from("# What memoisation, sampling and freezing are worth\n\n");
    writeln!(
        text,
        "One beam search (beam 32, 5 passes) on one thread for the device `{}` with the analytic model; a search is cut \
         after {} s, and marked so. Percentages and speed-ups are against the search with all three off; where that one \
         was cut, they are not exact.",
        arguments.device, arguments.time_limit
    )?;
    let percent = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
    table(
        &mut text,
        "States evaluated",
        &rows,
        |setup| setup.memo,
        |of, off| format!("{} ({:.0} %)", of.states, percent(of.states, off.states)),
    )?;
    table(&mut text, "Kernels evaluated", &rows, |_| true, |of, _| of.kernels.to_string())?;
    table(&mut text, "Seconds", &rows, |_| true, |of, _| format!("{:.2}", of.seconds))?;
    table(&mut text, "Speed-up", &rows, |_| true, |of, off| format!("{:.1}", off.seconds / of.seconds))?;
    table(
        &mut text,
        "Predicted time of the result over that with all off",
        &rows,
        |_| true,
        |of, off| format!("{:.3}", of.cost / off.cost),
    )?;
    growth(&mut text, device, limit)?;
    Ok(text)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    if let Some(unknown) = arguments.apps.iter().find(|name| warploom_apps::find(name).is_none()) {
        return Err(format!("there is no app {unknown}").into());
    }
    let text = report(&arguments, &Device::preset(&arguments.device)?)?;
    match &arguments.output {
        Some(path) => std::fs::write(path, text)?,
        None => print!("{text}"),
    }
    Ok(())
}
