//! Suites: the results of apps, of operators and of strategies, and how they are measured.

pub mod anchors;
pub mod apps;
pub mod families;
pub mod networks;
pub mod operators;
mod runner;
pub mod strategies;
pub mod timed;

use warploom_report::Table;

use crate::report::Declared;

pub use runner::{Finding, Runner, lost, subject};

/// Results of several pipelines, as data, text, Markdown and schedules.
pub trait Outcome: Declared {
    /// What there are results of, in the plural.
    const WHAT: &'static str;

    /// The name of its files without their endings.
    fn stem(&self) -> String;

    /// The results for a terminal; `shown` lays out tables.
    fn text(&self, shown: &dyn Fn(&Table) -> String) -> String;

    /// The results as a page of Markdown.
    fn markdown(&self) -> String;

    /// The schedules by the name of their files; empty if there is none.
    fn schedules(&self) -> Vec<(String, &str)>;

    /// Those without a valid schedule.
    fn failed(&self) -> Vec<String>;
}
