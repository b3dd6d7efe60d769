//! Compares strategies: each of them tunes every subject with every seed, in one space.

mod served;

use std::io::Write;
use std::path::PathBuf;

use warploom::app::{App, Subject, Tunable};
use warploom::date;
use warploom::strategy::Error as StrategyError;
use warploom::tune::compare::Curve;
use warploom::tune::explore::{self, ExploreOptions, MODEL};
use warploom::tune::landscape::Contender;
use warploom::tune::records::Records;
use warploom::tune::tuning::{Ended, Event, Task};
use warploom::tune::worker::Bench;
use warploom_apps::operators::{Operator, operators};
use warploom_results::suite::operators::chosen;
use warploom_results::suite::strategies::Report;
use warploom_results::suite::{Runner, lost, subject};

use super::written::verdict;
use super::{Arguments, Set, Sizes};
use crate::error::{Error, Kind};
use crate::progress::{Progress, Unit};
use crate::show;
use crate::tune::Spaces;

/// What stands for all strategies.
const ALL: &str = "all";

/// One of the strategies to compare, or all of them.
#[derive(Clone, Debug)]
enum Wanted {
    All,
    One(Contender),
}

fn read(text: &str) -> Result<Wanted, String> {
    match text {
        ALL => Ok(Wanted::All),
        text => Contender::parse(text).map(Wanted::One).map_err(|error| match error {
            StrategyError::UnknownStrategy { .. } => format!("{error}; `{ALL}` stands for all of them"),
            error => error.to_string(),
        }),
    }
}

/// The strategies to compare, and where they may look.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Strategies")]
pub(super) struct Comparing {
    /// Compare these strategies of docs/strategies.md, separated by commas, or `all`, instead of running one mode
    ///
    /// Settings follow a colon, as anneal-q:method=p.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = read, conflicts_with = "mode")]
    strategies: Vec<Wanted>,
    /// Number of schedules that a strategy may try
    #[arg(long, value_name = "N", default_value_t = 200)]
    trials: usize,
    /// Number of runs of a strategy: with --seed, with the next integer, ...
    #[arg(long, value_name = "N", default_value_t = 5)]
    seeds: u64,
    /// Run them on these recorded landscapes, or folders of them, separated by commas, instead of on a GPU
    #[arg(
        long,
        value_name = "FILES",
        value_delimiter = ',',
        requires = "strategies",
        conflicts_with_all = ["apps", "rows", "set", "records", "templates", "template", "axes", "run_spilling"]
    )]
    landscapes: Vec<PathBuf>,
    #[command(flatten)]
    spaces: Spaces,
}

impl Comparing {
    /// Whether strategies are compared.
    pub fn is_on(&self) -> bool {
        !self.strategies.is_empty()
    }

    /// The seeds of the runs.
    fn seeds(&self, first: u64) -> Vec<u64> {
        (0..self.seeds.max(1)).map(|number| first.wrapping_add(number)).collect()
    }

    /// The strategies, each once.
    fn contenders(&self) -> Vec<Contender> {
        let all = || {
            let names = explore::names().into_iter().map(str::to_owned);
            names.map(|strategy| Contender { strategy, settings: String::new() }).collect()
        };
        let mut contenders: Vec<Contender> = Vec::new();
        for wanted in &self.strategies {
            let more = match wanted {
                Wanted::All => all(),
                Wanted::One(contender) => vec![contender.clone()],
            };
            for contender in more {
                if !contenders.contains(&contender) {
                    contenders.push(contender);
                }
            }
        }
        contenders
    }
}

/// A pipeline to tune, and what all strategies have in common.
struct Tried {
    name: String,
    asked: Subject,
    options: ExploreOptions,
}

/// Everything that the runs of a comparison share.
struct Contest<'a> {
    arguments: &'a Arguments,
    strategies: Vec<Contender>,
    seeds: Vec<u64>,
    progress: Progress,
    report: Report,
}

pub(super) fn suite(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let comparing = &arguments.comparing;
    if !comparing.landscapes.is_empty() {
        return served::suite(arguments, out);
    }
    let all = arguments.tried(apps)?;
    let mut runner = arguments.runner()?;
    let trials = comparing.trials.max(1);
    let mut contest = Contest {
        arguments,
        strategies: comparing.contenders(),
        seeds: comparing.seeds(arguments.seed),
        progress: Progress::new("strategies", Unit::Things("trials")),
        report: Report::new(runner.device(), runner.versions(), show::command(), date::today(), trials),
    };
    let runs = all.len() * contest.strategies.len() * contest.seeds.len();
    contest.progress.set_length((runs * trials) as u64);
    for tried in &all {
        if runner.is_stopped() {
            break;
        }
        contest.tune(tried, &mut runner)?;
    }
    let Contest { progress, report, .. } = contest;
    drop(progress);
    arguments.print(&report, out)?;
    verdict(&report, report.comparison.subjects.len())
}

impl Arguments {
    /// The apps or operators to tune.
    fn tried(&self, apps: &[App]) -> Result<Vec<Tried>, Error> {
        let apps = match self.set {
            Set::Apps => self.apps(apps)?,
            Set::Operators => chosen(operators(), &self.rows)?.iter().map(Operator::app).collect(),
        };
        let mut all: Vec<Tried> = Vec::new();
        for app in &apps {
            let asked = subject(app, self.sizes == Sizes::Small)?;
            let name = match self.set {
                Set::Apps => format!("{}{}", asked.name, asked.sizes),
                Set::Operators => asked.name.clone(),
            };
            if all.iter().any(|other| other.name == name) {
                let text =
                    format!("there are two subjects `{name}`; compare strategies on each of them apart");
                return Err(Error::Tune(text, Kind::Usage));
            }
            let options = self.comparing.spaces.options(&asked.pipeline)?;
            let options = ExploreOptions { trials: self.comparing.trials.max(1), finalists: 0, ..options };
            all.push(Tried { name, asked, options });
        }
        Ok(all)
    }
}

impl Contest<'_> {
    /// Lets all strategies tune one pipeline. Seed by seed, so that a comparison that is interrupted is fair as far as it got.
    fn tune(&mut self, tried: &Tried, runner: &mut Runner) -> Result<(), Error> {
        self.progress.set_message(tried.name.clone());
        let Runner { bench, records, model, search, stop, .. } = runner;
        bench.with(|bench| {
            self.arguments.comparing.spaces.check(&tried.asked, bench.device)?;
            let tunable = Tunable::new(&tried.asked, bench.device, self.arguments.seed)?;
            let task = tunable.task(&**model, search.clone(), None, stop);
            let space = match self.strategies.iter().any(|contender| contender.strategy != MODEL) {
                true => Some(explore::space(&task, &tried.options, bench, records, &mut |_| {})?),
                false => None,
            };
            for seed in self.seeds.clone() {
                for contender in self.strategies.clone() {
                    let Contender { strategy, settings } = contender;
                    let options = ExploreOptions { strategy, settings, seed, ..tried.options.clone() };
                    if !self.run(tried, &options, space.as_ref(), &task, bench, records)? {
                        return Ok(());
                    }
                }
            }
            Ok(())
        })
    }

    /// Runs one strategy with one seed. Returns whether it came to its end.
    fn run(
        &mut self,
        tried: &Tried,
        options: &ExploreOptions,
        space: Option<&warploom::search::points::Schedules>,
        task: &Task<'_>,
        bench: &mut Bench<'_>,
        records: &mut Records,
    ) -> Result<bool, Error> {
        let ExploreOptions { strategy, settings, seed, trials, .. } = options;
        let name = Contender { strategy: strategy.clone(), settings: settings.clone() }.to_string();
        let run = format!("{}: {name}, seed {seed}", tried.name);
        let done = (self.report.runs() * trials) as u64;
        let mut hear = |event: &Event<'_>| match event {
            Event::Stepped { tally, .. } => self.progress.set_position(done + tally.trials as u64),
            Event::Measured { .. } => self.progress.set_message(run.clone()),
            _ => {}
        };
        let explored = explore::explore_in(space, task, options, bench, records, &mut hear)?;
        let tuned = lost(explored.tuned)?;
        if !matches!(tuned.ended, Ended::Finished) {
            return Ok(false);
        }
        let best =
            explored.tally.best_us.map_or("nothing valid".to_owned(), |best| format!("best {best:.2} us"));
        self.progress.say(&format!("{run}: {best}"));
        self.report.add(&tried.name, &name, Curve::new(*seed, &explored.times));
        self.progress.set_position((self.report.runs() * trials) as u64);
        self.arguments.write(&self.report)?;
        Ok(true)
    }
}
