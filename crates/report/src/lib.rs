//! Results, explanations and traces as self-contained HTML pages: no network access, charts as inline SVG, scripts only where a
//! page can be watched or linked.
//!
//! A [`Page`] is plain data; [`Page::to_html`] renders it. All content is text and is escaped. [`explained`] has the page
//! of `warploom explain`.
//!
//! ```
//! use warploom_report::{Fact, Page, Section, Trial, Tuned};
//!
//! let trial = |number, predicted, measured| Trial {
//!     number,
//!     status: "ok".to_owned(),
//!     predicted_us: Some(predicted),
//!     measured_us: Some(measured),
//!     ..Trial::default()
//! };
//! let tuned = Tuned {
//!     title: "blur at 1536x2560".to_owned(),
//!     trials: vec![trial(1, 20.0, 31.5), trial(2, 22.0, 24.1)],
//!     winner: Some(2),
//!     ..Tuned::default()
//! };
//! let page = Page {
//!     title: "A night of tuning".to_owned(),
//!     facts: vec![Fact::new("device", "H200 & others")],
//!     sections: vec![Section::Tuned(Box::new(tuned))],
//!     ..Page::default()
//! };
//! let html = page.to_html();
//! assert!(html.contains("H200 &amp; others") && html.contains("trial 2: predicted 22.00 us"));
//! ```
//!
//! A [`Trace`] is a page of its own: an animation of the points that a program computes and reads, and the only one
//! with a script.
//! [`chart`] can be used on its own; [`chart::Drawing::document`] returns a standalone file.

pub mod chart;
mod diff;
pub mod explained;
mod farm;
mod html;
mod operators;
mod page;
pub mod scale;
mod strategies;
mod suite;
mod summary;
mod table;
mod trace;
mod tuned;
mod winner;

pub use farm::Farm;
pub use operators::{FamilyRatios, Operators, Ratio};
pub use page::{Fact, Listing, Page, Section};
pub use strategies::{Strategies, TriedSubject};
pub use suite::{AppTime, Baseline, Run, Suite, geometric_mean};
pub use table::{Column, Filling, Table, dash};
pub use trace::{Picture, PictureKind, Touch, TouchKind, Trace, TraceKernel, TraceStep};
pub use tuned::{Iteration, Trial, Tuned};
pub use winner::{Kernel, RunnerUp};
