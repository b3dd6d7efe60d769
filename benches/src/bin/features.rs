//! Prints a hash of the features of every kernel, under default, hand-written and random schedules of the apps, operators and
//! random pipelines: what must not change when only the structure of the compiler does.
//!
//! `cargo run --release -p warploom-benches --bin features -- > before.txt`, and later `| diff before.txt -`. With `--full`, the
//! features themselves.
#![allow(clippy::print_stdout, reason = "a program whose output this is")]

use clap::Parser;
use warploom::app::{App, Settings};
use warploom::cost::Featurizer;
use warploom::plan::Problem;
use warploom::prelude::*;
use warploom::randpipe::{self, random_pipeline};
use warploom::schedule::Schedule;
use warploom_apps::{APPS, operators};
use warploom_benches::problem::problem;

/// Prints a hash of the features of each kernel of many schedules.
#[derive(Parser)]
struct Arguments {
    /// Only problems whose name contains this
    filter: Option<String>,
    /// Print the features, not a hash
    #[arg(long)]
    full: bool,
    /// The number of random pipelines
    #[arg(long, default_value_t = 200)]
    pipelines: u64,
    /// The number of random schedules of each problem
    #[arg(long, default_value_t = 10)]
    schedules: u64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let device = Device::preset("h200")?;
    let takes = |name: &str| arguments.filter.as_ref().is_none_or(|filter| name.contains(filter.as_str()));
    let rows: Vec<App> = operators::operators().iter().map(operators::Operator::app).collect();
    for app in APPS.iter().chain(&rows).filter(|app| takes(&app.name)) {
        let problem = problem(app, &[], &device);
        let file = format!("{}/../apps/schedules/{}.schedule", env!("CARGO_MANIFEST_DIR"), app.name);
        if let Ok(text) = std::fs::read_to_string(file)
            && let Ok(schedule) = Schedule::parse(&text, &app.pipeline(&Settings::defaults(app))?)
        {
            arguments.print(&app.name, "manual", &problem, &schedule);
        }
        arguments.print_random(&app.name, &problem);
    }
    for seed in 0..arguments.pipelines {
        let random = random_pipeline(seed, &randpipe::Options::default());
        let name = random.pipeline.name().to_string();
        if takes(&name) {
            arguments.print_random(&name, &Problem::new(&random.pipeline, &random.request, &device)?);
        }
    }
    Ok(())
}

impl Arguments {
    /// The kernels of the default schedule, and of random ones.
    fn print_random(&self, name: &str, problem: &Problem) {
        self.print(name, "default", problem, &problem.default_schedule());
        for seed in 0..self.schedules {
            self.print(name, &format!("random:{seed}"), problem, &problem.random_schedule(seed));
        }
    }

    fn print(&self, name: &str, what: &str, problem: &Problem, schedule: &Schedule) {
        for (number, kernel) in Featurizer::new(problem).of_schedule(schedule).iter().enumerate() {
            match self.full {
                true => println!("{name} {what} {number} {kernel:#?}"),
                false => println!("{name} {what} {number} {:016x}", fnv(&format!("{kernel:?}"))),
            }
        }
    }
}

/// The hash of a text, the same on every machine.
fn fnv(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
