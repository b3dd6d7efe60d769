//! Charts as SVG: bars, curves, lines, scatter plots and steps.
//!
//! Colours come from a style sheet, so a chart is light or dark like the page around it. Series
//! differ in fill and outline as well as in hue.

mod bars;
mod curves;
mod drawing;
mod lines;
mod scatter;
mod steps;

pub use bars::{Bar, Bars, Base, Dot, Group};
pub use curves::{Curve, CurvePoint, Curves};
pub use drawing::{Drawing, Link};
pub use lines::{Line, Lines};
pub use scatter::{Point, Scatter, Series};
pub use steps::{ChartStep, Mark, Steps};
