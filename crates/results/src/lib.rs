//! Results of suites, comparisons and tuning: as data with documented JSON, as tables and as pages.
//!
//! | module | |
//! | --- | --- |
//! | [`suite`] | measures apps and operators one after another; results of these, and of comparisons of strategies |
//! | [`trials`] | trials as reports show them |
//! | [`explained`] | explanations of schedules as text |
//! | [`page`] | the page of `warploom_report` that results and databases of records make |
//! | [`mod@report`] | declares JSON objects, from which the tables of `docs/json.md` follow |

#[macro_use]
pub mod report;

mod error;
pub mod explained;
pub mod page;
pub mod suite;
pub mod trials;

pub use error::ResultsError;
