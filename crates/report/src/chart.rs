//! Charts as SVG: bars, scatter plots and steps.
//!
//! Colours come from a style sheet, so that a chart is light or dark as the page around it. What belongs together differs
//! from the rest in filling and outline too, not in hue alone.

mod bars;
mod drawing;
mod scatter;
mod steps;

pub use bars::{Bar, Bars, Base, Group};
pub use drawing::Drawing;
pub use scatter::{Point, Scatter, Series};
pub use steps::{Mark, Step, Steps};
