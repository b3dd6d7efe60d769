//! Step charts of a value that only decreases.

use super::drawing::{Anchor, Drawing, Frame, Link, dot_radius};
use crate::scale::{Scale, is_positive, padded, spread};

const WIDTH: f64 = 440.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 424.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 376.0;
/// The minimum distance between marks; closer marks have no room for their names.
const MARK: f64 = 20.0;
/// The vertical axis spans at least this factor, so that noise does not look like a difference.
const SPAN: f64 = 1.2;

/// A step chart with a logarithmic vertical axis.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Steps {
    /// A text alternative for readers who cannot see the chart.
    pub about: String,
    /// The label of the horizontal axis.
    pub x: String,
    /// The label of the vertical axis.
    pub y: String,
    /// The length of the horizontal axis, in counted items.
    pub count: usize,
    /// The changes of the value, in order.
    pub steps: Vec<ChartStep>,
    /// Vertical lines at events in between.
    pub marks: Vec<Mark>,
}

/// A change of the value.
#[derive(Clone, PartialEq, Debug)]
pub struct ChartStep {
    /// The position on the horizontal axis.
    pub at: usize,
    /// The new value.
    pub value: f64,
    /// The tooltip.
    pub text: String,
    /// Its link.
    pub link: Option<Link>,
}

/// A labelled vertical line.
#[derive(Clone, PartialEq, Debug)]
pub struct Mark {
    /// The position on the horizontal axis.
    pub at: usize,
    /// The label of the line.
    pub name: String,
}

impl Steps {
    /// Renders the chart.
    pub fn draw(&self) -> Drawing {
        let frame = Frame { left: LEFT, right: RIGHT, top: TOP, bottom: BOTTOM };
        let mut drawing = Drawing::new(WIDTH, BOTTOM + 40.0, &self.about);
        let steps: Vec<&ChartStep> = self.steps.iter().filter(|step| is_positive(step.value)).collect();
        let range = padded(steps.iter().map(|step| step.value)).unwrap_or((1.0, 10.0));
        let range = spread(range, SPAN);
        let across = Scale::whole((0.0, self.count.max(1) as f64), (frame.left, frame.right));
        let up = Scale::logarithmic(range, (frame.bottom, frame.top));
        drawing.axis_x(&across, &frame, &self.x);
        drawing.axis_y(&up, &frame, &self.y);
        self.draw_marks(&mut drawing, &across, &frame);
        let place = |step: &ChartStep| (across.place(step.at as f64), up.place(step.value));
        let mut path: Vec<(f64, f64)> = Vec::new();
        for (x, y) in steps.iter().map(|step| place(step)) {
            if let Some((_, before)) = path.last().copied() {
                path.push((x, before));
            }
            path.push((x, y));
        }
        if let Some((_, last)) = path.last().copied() {
            path.push((frame.right, last));
            drawing.path("steps", &path);
        }
        let radius = dot_radius(steps.len());
        for step in steps {
            drawing.dot("step", place(step), radius, &step.text, step.link.as_ref());
        }
        drawing
    }

    fn draw_marks(&self, drawing: &mut Drawing, across: &Scale, frame: &Frame) {
        let mut named = f64::NEG_INFINITY;
        for mark in &self.marks {
            let x = across.place(mark.at as f64);
            drawing.line("mark", (x, frame.top), (x, frame.bottom));
            if x - named >= MARK {
                drawing.text("label", (x, frame.top - 5.0), Anchor::Middle, &mark.name);
                named = x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_staircase_goes_down_and_on_to_the_end() {
        let step = |at, value| ChartStep { at, value, text: format!("{at}"), link: None };
        let steps = Steps {
            count: 10,
            steps: vec![step(1, 40.0), step(5, 10.0)],
            marks: vec![Mark { at: 4, name: "first".to_owned() }, Mark { at: 4, name: "other".to_owned() }],
            ..Steps::default()
        };
        let svg = steps.draw().in_page();
        let path = svg.lines().find(|line| line.starts_with("<path")).expect("a path");
        let places: Vec<&str> =
            path.split('"').nth(3).expect("its places").trim_matches('M').split('L').collect();
        assert_eq!(places.len(), 4, "across, down, across: {path}");
        assert!(places[3].starts_with(&format!("{RIGHT:.1} ")), "{path}");
        assert_eq!((svg.matches("<circle").count(), svg.matches("class=\"mark\"").count()), (2, 2));
        assert!(svg.contains(">first<") && !svg.contains(">other<"), "names do not cover each other: {svg}");
    }

    #[test]
    fn nothing_measured_is_drawn_as_nothing() {
        assert!(!Steps::default().draw().in_page().contains("<path"));
    }
}
