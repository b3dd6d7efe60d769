//! Results of suites, comparisons and tuning: as data with documented JSON, as tables and as pages.
//!
//! | module | |
//! | --- | --- |
//! | [`accuracy`] | the tolerances of apps, and how much of them is used |
//! | [`suite`] | measures apps and operators one after another; results of these, and of comparisons of strategies |
//! | [`trials`] | trials as reports show them |
//! | [`explained`] | explanations of schedules: as text, as pages, compared, across ranges of sizes |
//! | [`fuzzing`] | random pipelines under schedules of the search, with a compiler, or on a GPU |
//! | [`golden`] | reference data, and apps compared with it |
//! | [`landscape`] | what a recorded landscape is of |
//! | [`search`] | what a search did |
//! | [`compiled`] | compiled kernels with what is predicted of them |
//! | [`benched`] | times of a pipeline on a GPU |
//! | [`tuned`] | the result of tuning |
//! | [`page`] | the page of `warploom_report` that results and databases of records make |
//! | [`trace`] | what a run computes and reads, and when, as a page |
//! | [`report`](mod@report) | declares JSON objects, from which the tables of `docs/json.md` follow |
//! | `error` | why results cannot be measured, read or shown |

#[macro_use]
pub mod report;

pub mod accuracy;
pub mod benched;
pub mod compiled;
mod error;
pub mod explained;
pub mod fuzzing;
pub mod golden;
pub mod landscape;
pub mod page;
pub mod search;
pub mod suite;
pub mod trace;
pub mod trials;
pub mod tuned;

pub use error::ResultsError;

#[cfg(test)]
#[path = "../../cli/tests/program/documented.rs"]
#[allow(dead_code, reason = "the tests of the program use the rest")]
mod tests;
