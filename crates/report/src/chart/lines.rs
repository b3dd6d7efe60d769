//! Lines of amounts over time.

use super::drawing::{Drawing, Frame, LINE, line};
use crate::scale::Scale;

const WIDTH: f64 = 620.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 604.0;
const HEIGHT: f64 = 220.0;
/// The ratio of the upper edge to the highest amount.
const ROOM: f64 = 1.06;

/// A chart of lines with linear axes that begin at 0.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Lines {
    /// A text alternative for readers who cannot see the chart.
    pub about: String,
    /// The label of the horizontal axis.
    pub x: String,
    /// The label of the vertical axis.
    pub y: String,
    /// The lines, in drawing order.
    pub lines: Vec<Line>,
}

/// A line from point to point.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// The name in the legend.
    pub name: String,
    /// The points, from left to right. Those that are not finite are omitted.
    pub points: Vec<(f64, f64)>,
}

impl Lines {
    /// Renders the chart.
    pub fn draw(&self) -> Drawing {
        let names: Vec<&str> = self.lines.iter().map(|line| line.name.as_str()).collect();
        // The height of the legend is known once it is drawn.
        let top = Drawing::new(0.0, 0.0, "").line_legend((LEFT, RIGHT), 0.0, &names) + LINE + 10.0;
        let frame = Frame { left: LEFT, right: RIGHT, top, bottom: top + HEIGHT };
        let mut drawing = Drawing::new(WIDTH, frame.bottom + 40.0, &self.about);
        drawing.line_legend((LEFT, RIGHT), 0.0, &names);
        let most = |of: fn(&(f64, f64)) -> f64| {
            let all = self.lines.iter().flat_map(Line::drawn);
            all.map(|point| of(&point)).fold(0.0, f64::max)
        };
        let across = Scale::linear((0.0, most(|point| point.0)), (frame.left, frame.right));
        let up = Scale::linear((0.0, ROOM * most(|point| point.1)), (frame.bottom, frame.top));
        drawing.axis_x(&across, &frame, &self.x);
        drawing.axis_y(&up, &frame, &self.y);
        for (number, of) in self.lines.iter().enumerate() {
            let path: Vec<(f64, f64)> = of.drawn().map(|(x, y)| (across.place(x), up.place(y))).collect();
            if !path.is_empty() {
                drawing.curve(&line(number), &path, &of.name);
            }
        }
        drawing
    }
}

impl Line {
    fn drawn(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        // Larger numbers do not fit on a scale.
        let is_drawn = |number: f64| number.is_finite() && number.abs() < 1e12;
        self.points.iter().copied().filter(move |&(x, y)| is_drawn(x) && is_drawn(y))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn svg(lines: &[(&str, &[(f64, f64)])]) -> String {
        let of =
            |&(name, points): &(&str, &[(f64, f64)])| Line { name: name.to_owned(), points: points.to_vec() };
        Lines { lines: lines.iter().map(of).collect(), ..Lines::default() }.draw().in_page()
    }

    #[test]
    fn lines_are_as_high_as_their_amounts() {
        let svg = svg(&[("all", &[(0.0, 0.0), (5.0, 10.0), (10.0, 5.0)]), ("none", &[])]);
        let path = svg.split("<path class=\"line s0\" d=\"M").nth(1).expect("a line");
        let places: Vec<Vec<f64>> = path
            .split('"')
            .next()
            .expect("its places")
            .split('L')
            .map(|place| place.split(' ').map(|number| number.parse().expect("a number")).collect())
            .collect();
        assert_eq!(places.len(), 3, "{svg}");
        assert!(places[0][0] == LEFT && places[2][0] == RIGHT, "{places:?}");
        let bottom = places[0][1];
        assert!((bottom - places[1][1] - 2.0 * (bottom - places[2][1])).abs() < 0.3, "{places:?}");
        assert!(svg.contains(">none<") && svg.contains("<title>all</title>"), "{svg}");
    }

    #[test]
    fn odd_numbers_are_no_harm() {
        for points in [
            &[][..],
            &[(0.0, 0.0)],
            &[(f64::NAN, 1.0), (1.0, f64::INFINITY)],
            &[(1e300, 1e300)],
            &[(-1.0, -1.0)],
        ] {
            let svg = svg(&[("odd", points)]);
            assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{svg}");
        }
    }
}
