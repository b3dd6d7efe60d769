//! Scatter plots with logarithmic axes.

use super::drawing::{Anchor, Drawing, Frame, LINE, Link, dot_radius, filling, text_width};
use crate::scale::{Scale, is_positive, padded, spread};

const SIDE: f64 = 350.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 40.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 40.0;
/// The axes span at least this factor, so that noise does not look like a difference.
const SPAN: f64 = 1.5;

/// A scatter plot with logarithmic axes of the same range, and the diagonal where both are equal.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Scatter {
    /// A text alternative for readers who cannot see the chart.
    pub about: String,
    /// The title above the plot; may be empty.
    pub title: String,
    /// The label of the horizontal axis.
    pub x: String,
    /// The label of the vertical axis.
    pub y: String,
    /// The series of points. Points with a coordinate that is not positive are omitted.
    pub series: Vec<Series>,
    /// A highlighted point with its label.
    pub marked: Option<(Point, String)>,
}

/// Points drawn in the same style.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The points, in drawing order.
    pub points: Vec<Point>,
}

/// One point of a series.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// The horizontal value.
    pub x: f64,
    /// The vertical value.
    pub y: f64,
    /// The tooltip.
    pub text: String,
    /// Its link.
    pub link: Option<Link>,
}

impl Scatter {
    /// Renders the chart.
    pub fn draw(&self) -> Drawing {
        let several = self.series.len() > 1;
        let title = if self.title.is_empty() { 0.0 } else { LINE + 4.0 };
        let top = TOP + title + if several { LINE + 2.0 } else { 0.0 };
        let frame = Frame { left: LEFT, right: LEFT + SIDE, top, bottom: top + SIDE };
        let mut drawing = Drawing::new(LEFT + SIDE + RIGHT, top + SIDE + BOTTOM, &self.about);
        drawing.text("name strong", (LEFT + SIDE / 2.0, 13.0), Anchor::Middle, &self.title);
        if several {
            let names: Vec<&str> = self.series.iter().map(|series| series.name.as_str()).collect();
            drawing.legend((LEFT, LEFT + SIDE), title, &names);
        }
        let all = self.series.iter().flat_map(|series| &series.points);
        let all = all.chain(self.marked.iter().map(|(point, _)| point)).filter(|point| point.is_drawn());
        let range = padded(all.flat_map(|point| [point.x, point.y])).unwrap_or((1.0, 10.0));
        let range = spread(range, SPAN);
        let across = Scale::logarithmic(range, (frame.left, frame.right));
        let up = Scale::logarithmic(range, (frame.bottom, frame.top));
        drawing.axis_x(&across, &frame, &self.x);
        drawing.axis_y(&up, &frame, &self.y);
        drawing.line("diagonal", (frame.left, frame.bottom), (frame.right, frame.top));
        let place = |point: &Point| (across.place(point.x), up.place(point.y));
        let radius = dot_radius(self.series.iter().map(|series| series.points.len()).sum());
        for (number, series) in self.series.iter().enumerate() {
            for point in series.points.iter().filter(|point| point.is_drawn()) {
                let class = format!("point {}", filling(number));
                drawing.dot(&class, place(point), radius, &point.text, point.link.as_ref());
            }
        }
        if let Some((point, name)) = self.marked.as_ref().filter(|(point, _)| point.is_drawn()) {
            let (x, y) = place(point);
            drawing.dot("marked", (x, y), radius + 3.4, &point.text, point.link.as_ref());
            let fits = x + 10.0 + text_width(name) < frame.right + RIGHT;
            let (beside, anchor) = if fits { (x + 10.0, Anchor::Start) } else { (x - 10.0, Anchor::End) };
            drawing.text("label strong halo", (beside, y + 4.0), anchor, name);
        }
        drawing
    }
}

impl Point {
    /// Whether the point can be drawn on logarithmic axes.
    pub(crate) fn is_drawn(&self) -> bool {
        is_positive(self.x) && is_positive(self.y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::drawing::numbers;

    fn point(x: f64, y: f64) -> Point {
        Point { x, y, text: format!("{x} & {y}"), link: None }
    }

    #[test]
    fn equal_numbers_lie_on_the_diagonal() {
        let points = vec![point(10.0, 10.0), point(100.0, 100.0), point(10.0, 100.0), point(-1.0, 5.0)];
        let series = vec![Series { name: String::new(), points }];
        let svg = Scatter { series, ..Scatter::default() }.draw().in_page();
        let (x, y) = (numbers(&svg, "circle", "cx"), numbers(&svg, "circle", "cy"));
        let places: Vec<(f64, f64)> = x.into_iter().zip(y).collect();
        let [low, high, above] = places[..] else { panic!("three points, not {}", places.len()) };
        for (x, y) in [low, high] {
            assert!((x - LEFT - (TOP + SIDE - y)).abs() < 0.2, "{x} {y}");
        }
        assert_eq!(above, (low.0, high.1));
        assert!(svg.contains("<title>10 &amp; 100</title>"));
    }

    #[test]
    fn a_plot_of_nothing_is_a_plot() {
        let drawn = Scatter { title: "a < b".to_owned(), ..Scatter::default() }.draw().document();
        assert!(drawn.ends_with("</svg>\n") && drawn.contains("a &lt; b"), "{drawn}");
    }
}
