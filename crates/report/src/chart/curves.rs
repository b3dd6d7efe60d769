//! Curves of values that only decrease, with bands around them.

use super::drawing::{Drawing, Frame, LINE, band, line};
use crate::scale::{Scale, is_positive, padded, spread};

const WIDTH: f64 = 620.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 604.0;
const HEIGHT: f64 = 300.0;
/// The vertical axis spans at least this factor, so that noise does not look like a difference.
const SPAN: f64 = 1.2;

/// The vertical axis ends at this multiple of the lowest value. Larger values lie on its edge: the first values of a
/// curve would otherwise leave little room for the rest.
const MOST: f64 = 4.0;
/// The axis begins no lower than the lowest value divided by this, however wide a band is.
const LEAST: f64 = 1.25;

/// A chart of curves with logarithmic axes: the interesting changes are early, and by factors.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Curves {
    /// A text alternative for readers who cannot see the chart.
    pub about: String,
    /// The label of the horizontal axis.
    pub x: String,
    /// The label of the vertical axis.
    pub y: String,
    /// The length of the horizontal axis, in counted items; it begins at 1.
    pub count: usize,
    /// The curves, in drawing order.
    pub curves: Vec<Curve>,
}

/// A curve, which stays at each value until the next place.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// The name in the legend.
    pub name: String,
    /// The points of change, in order. Those with a value that is not positive are omitted.
    pub places: Vec<CurvePoint>,
}

/// A place of a curve.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CurvePoint {
    /// The position on the horizontal axis.
    pub at: usize,
    /// The value.
    pub value: f64,
    /// Half the width of the band.
    pub deviation: f64,
}

impl Curves {
    /// Renders the chart.
    pub fn draw(&self) -> Drawing {
        let names: Vec<&str> = self.curves.iter().map(|curve| curve.name.as_str()).collect();
        // The height of the legend is known once it is drawn.
        let top = Drawing::new(0.0, 0.0, "").line_legend((LEFT, RIGHT), 0.0, &names) + LINE + 10.0;
        let frame = Frame { left: LEFT, right: RIGHT, top, bottom: top + HEIGHT };
        let mut drawing = Drawing::new(WIDTH, frame.bottom + 40.0, &self.about);
        drawing.line_legend((LEFT, RIGHT), 0.0, &names);
        let up = Scale::logarithmic(self.range(), (frame.bottom, frame.top));
        let across = Scale::logarithmic((1.0, self.count.max(2) as f64), (frame.left, frame.right));
        drawing.axis_x(&across, &frame, &self.x);
        drawing.axis_y(&up, &frame, &self.y);
        let staircases: Vec<Staircase<'_>> =
            self.curves.iter().map(|curve| curve.steps(self.count)).collect();
        // All bands are below all lines.
        for (number, steps) in staircases.iter().enumerate().filter(|(_, steps)| !steps.is_empty()) {
            let edge = |of: fn(&CurvePoint) -> f64| {
                steps.iter().map(move |(at, place)| (across.place(*at as f64), up.place(of(place))))
            };
            let outline: Vec<(f64, f64)> =
                edge(CurvePoint::high).chain(edge(CurvePoint::low).rev()).collect();
            drawing.area(&band(number), &outline);
        }
        for (number, (curve, steps)) in self.curves.iter().zip(&staircases).enumerate() {
            if let Some((_, last)) = steps.last() {
                let path: Vec<(f64, f64)> = steps
                    .iter()
                    .map(|(at, place)| (across.place(*at as f64), up.place(place.value)))
                    .collect();
                drawing.curve(&line(number), &path, &format!("{}: {:.2} in the end", curve.name, last.value));
            }
        }
        drawing
    }

    /// The ends of the vertical axis.
    fn range(&self) -> (f64, f64) {
        let all = || self.curves.iter().flat_map(|curve| &curve.places).filter(|place| place.is_drawn());
        let least = all().map(|place| place.value).fold(f64::INFINITY, f64::min);
        let ends = all().flat_map(|place| [place.low(), place.high()]);
        let range = padded(ends.map(|end| end.clamp(least / LEAST, least * MOST)));
        spread(range.unwrap_or((1.0, 10.0)), SPAN)
    }
}

/// The corners of a staircase: positions and the places whose values they have.
type Staircase<'a> = Vec<(usize, &'a CurvePoint)>;

impl Curve {
    fn steps(&self, count: usize) -> Staircase<'_> {
        let mut steps: Staircase<'_> = Vec::new();
        for place in self.places.iter().filter(|place| place.is_drawn()) {
            if let Some((_, before)) = steps.last().copied() {
                steps.push((place.at, before));
            }
            steps.push((place.at, place));
        }
        if let Some((_, last)) = steps.last().copied() {
            steps.push((count, last));
        }
        steps
    }
}

impl CurvePoint {
    /// Whether it can be drawn: the axis extends beyond it, so its ends must be finite too.
    fn is_drawn(&self) -> bool {
        is_positive(self.value) && is_positive(self.value * 2.0 * MOST) && self.deviation.is_finite()
    }

    fn high(&self) -> f64 {
        self.value + self.deviation
    }

    fn low(&self) -> f64 {
        self.value - self.deviation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, places: &[(usize, f64, f64)]) -> Curve {
        let place = |&(at, value, deviation): &(usize, f64, f64)| CurvePoint { at, value, deviation };
        Curve { name: name.to_owned(), places: places.iter().map(place).collect() }
    }

    /// The places of the paths with a class.
    fn paths(svg: &str, class: &str) -> Vec<Vec<(f64, f64)>> {
        let start = format!("<path class=\"{class}\" d=\"M");
        let of = svg.lines().filter_map(|line| line.strip_prefix(&start)).map(|rest| {
            let places = rest.split('"').next().unwrap_or_default().trim_end_matches('Z').split('L');
            let place = |place: &str| {
                let (x, y) = place.split_once(' ').expect("two numbers");
                (x.parse().expect("a number"), y.parse().expect("a number"))
            };
            places.map(place).collect()
        });
        of.collect()
    }

    #[test]
    fn a_curve_is_a_staircase_in_its_band() {
        let curves = vec![curve("one", &[(1, 8.0, 2.0), (10, 4.0, 0.0)]), curve("none", &[])];
        let svg = Curves { count: 100, curves, ..Curves::default() }.draw().in_page();
        let [path] = &paths(&svg, "line s0")[..] else { panic!("one line: {svg}") };
        assert_eq!(path.len(), 4, "across, down, across: {path:?}");
        assert!(path[0].0 == LEFT && path[3].0 == RIGHT && path[1].1 == path[0].1, "{path:?}");
        assert!((path[1].0 - (LEFT + RIGHT) / 2.0).abs() < 0.2, "10 is in the middle of 1 and 100: {path:?}");
        let [band] = &paths(&svg, "band s0")[..] else { panic!("one band: {svg}") };
        assert_eq!(band.len(), 8, "{band:?}");
        assert!(band[0].1 < path[0].1 && band[7].1 > path[0].1, "around the line: {band:?} {path:?}");
        assert!(band[3] == path[3] && band[4] == path[3], "without a deviation it is the line: {band:?}");
        assert!(svg.contains(">none<") && svg.contains("<title>one: 4.00 in the end</title>"), "{svg}");
    }

    #[test]
    fn bands_below_zero_end_at_the_axis() {
        let curves = vec![curve("one", &[(1, 8.0, 20.0), (2, f64::NAN, 0.0), (3, 0.0, 0.0)])];
        let svg = Curves { count: 4, curves, ..Curves::default() }.draw().in_page();
        let [band] = &paths(&svg, "band s0")[..] else { panic!("one band: {svg}") };
        assert!(band.iter().all(|(x, y)| x.is_finite() && y.is_finite()), "{band:?}");
    }

    #[test]
    fn values_far_above_the_lowest_are_at_the_edge() {
        let curves = vec![curve("one", &[(1, 900.0, 50.0), (2, 100.0, 0.0), (3, 10.0, 0.0), (4, 9.0, 0.0)])];
        let svg = Curves { count: 9, curves, ..Curves::default() }.draw().in_page();
        let [path] = &paths(&svg, "line s0")[..] else { panic!("one line: {svg}") };
        assert_eq!(path[0].1, path[2].1, "both are at the edge");
        assert!(path[6].1 - path[4].1 > 15.0, "what is near the lowest is apart: {path:?}");
    }

    #[test]
    fn many_lines_differ() {
        let classes: std::collections::BTreeSet<String> = (0..8).map(line).collect();
        assert_eq!(classes.len(), 8);
        assert!(!Curves::default().draw().in_page().contains("<path"));
    }
}
