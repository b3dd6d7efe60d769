//! Tuning by a strategy of one's choice.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use warploom::app::Subject;
use warploom::lang::Pipeline;
use warploom::schedule::Schedule;
use warploom::schedule_file::{problem, read_legal, read_written};
use warploom::search::points::Open;
use warploom::target::Device;
use warploom::tune::explore::{self, ExploreOptions};

use crate::error::{Error, Kind};

/// The strategy that chooses what is measured, and where it may look.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Strategy")]
pub(super) struct Exploring {
    /// Tune with this strategy
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(explore::names()), conflicts_with_all = ["iterations", "top"])]
    pub(super) strategy: Option<String>,
    /// Number of schedules that the strategy may try
    #[arg(long, value_name = "N", default_value_t = 1000)]
    trials: usize,
    /// Settings of the strategy, as q=0.3,parents=20; docs/strategies.md lists them (default: those of the papers)
    #[arg(long, value_name = "SETTINGS", default_value = "", hide_default_value = true)]
    set_strategy: String,
    #[command(flatten)]
    spaces: Spaces,
}

/// Where strategies may look.
#[derive(Debug, clap::Args)]
pub(crate) struct Spaces {
    /// Number of structures to explore: the default schedule's, then the best of a search
    #[arg(long, value_name = "N", default_value_t = 8)]
    templates: usize,
    /// A schedule whose structure is explored too; may be given several times
    #[arg(long, value_name = "FILE")]
    template: Vec<PathBuf>,
    /// What may change in a structure
    #[arg(long = "open", alias = "axes", value_name = "WHAT", value_enum, default_value_t = Axes::All)]
    axes: Axes,
    /// Measure schedules that spill registers too, instead of counting them as failed
    #[arg(long)]
    run_spilling: bool,
}

/// What the schedules of a structure may differ in.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Axes {
    /// Tiles of any size, orders of loops, copies of inputs, unrolling and everything else
    All,
    /// Tiles alone, whose sizes divide the extents
    Tiles,
}

impl Exploring {
    /// Checks the given schedules, so that what is wrong with one names the line of its file.
    pub(super) fn check(&self, asked: &Subject, device: &Device) -> Result<(), Error> {
        self.spaces.check(asked, device)
    }

    /// The options of the strategy; `None` if there is no strategy.
    pub(super) fn options(&self, pipeline: &Pipeline, seed: u64) -> Result<Option<ExploreOptions>, Error> {
        let Some(strategy) = &self.strategy else { return Ok(None) };
        let options = ExploreOptions {
            strategy: strategy.clone(),
            settings: self.set_strategy.clone(),
            seed,
            trials: self.trials.max(1),
            ..self.spaces.options(pipeline)?
        };
        let wrong = |text: String| Error::Tune(format!("--set-strategy: {text}"), Kind::Usage);
        explore::check(&options).map_err(|error| wrong(error.to_string()))?;
        Ok(Some(options))
    }
}

impl Spaces {
    /// Checks the given schedules, so that what is wrong with one names the line of its file.
    pub(crate) fn check(&self, asked: &Subject, device: &Device) -> Result<(), Error> {
        if self.template.is_empty() {
            return Ok(());
        }
        let problem = problem(&asked.pipeline, &asked.request, device)?;
        Ok(self.template.iter().try_for_each(|file| read_legal(file, &problem).map(drop))?)
    }

    /// The part of the options that says where to look.
    pub(crate) fn options(&self, pipeline: &Pipeline) -> Result<ExploreOptions, Error> {
        let read = |file: &PathBuf| read_written(file, pipeline).map(|written| written.schedule);
        let given: Vec<Schedule> = self.template.iter().map(read).collect::<Result<_, _>>()?;
        Ok(ExploreOptions {
            given,
            templates: self.templates.max(1),
            open: match self.axes {
                Axes::All => Open::ALL,
                Axes::Tiles => Open::TILES,
            },
            run_spilling: self.run_spilling,
            ..ExploreOptions::default()
        })
    }
}
