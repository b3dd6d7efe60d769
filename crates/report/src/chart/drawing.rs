//! An SVG drawing of lines, shapes and text.

use crate::html::Escaped;
use crate::scale::{Scale, label};

/// The style sheet of charts.
const STYLE: &str = include_str!("../chart.css");

/// The number of fills in the style sheet. Further series reuse them from the start.
const FILLINGS: usize = 5;

/// The average width of a label's character, and the height of a line.
const CHARACTER: f64 = 7.2;
pub(super) const LINE: f64 = 16.0;

/// The alignment of text relative to its position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A rendered chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Drawing {
    width: f64,
    height: f64,
    /// A text alternative for readers who cannot see the chart.
    about: String,
    shapes: String,
}

/// A link from a shape to an element of the page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    /// The id of the element.
    pub to: String,
    /// Whether the tab key stops at it.
    pub stop: bool,
}

/// The rectangle inside the axes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Frame {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl Drawing {
    pub(super) fn new(width: f64, height: f64, about: &str) -> Drawing {
        Drawing { width, height, about: about.to_owned(), shapes: String::new() }
    }

    /// The SVG for a page that contains the style sheet.
    pub(crate) fn in_page(&self) -> String {
        self.svg("", "")
    }

    /// The SVG as a standalone file.
    ///
    /// ```
    /// use warploom_report::chart::{Point, Scatter, Series};
    /// let points = vec![Point { x: 10.0, y: 12.0, text: "the first".to_owned(), link: None }];
    /// let scatter = Scatter {
    ///     about: "predicted against measured".to_owned(),
    ///     series: vec![Series { name: "analytic".to_owned(), points }],
    ///     ..Scatter::default()
    /// };
    /// assert!(scatter.draw().document().starts_with("<svg xmlns="));
    /// ```
    pub fn document(&self) -> String {
        let Drawing { width, height, .. } = self;
        let size = format!("xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" ");
        let background = "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n";
        self.svg(&size, &format!("<style>\n{STYLE}</style>\n{background}")) + "\n"
    }

    fn svg(&self, more: &str, first: &str) -> String {
        let Drawing { width, height, about, shapes } = self;
        // The content of an image is hidden from screen readers, including its links.
        let role = if shapes.contains("<a ") { "group" } else { "img" };
        format!(
            "<svg {more}class=\"chart\" viewBox=\"0 0 {width} {height:.0}\" role=\"{role}\" aria-label=\"{}\">\n\
             {first}{shapes}</svg>",
            Escaped(about)
        )
    }

    /// Adds text. `class` selects its style.
    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, words: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.shapes += &format!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>\n",
            Escaped(words)
        );
    }

    /// Adds a straight line.
    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.shapes += &format!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>\n"
        );
    }

    /// Adds an open path.
    pub(super) fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        self.shapes += &format!("<path class=\"{class}\" d=\"M{}\"/>\n", joined(points));
    }

    /// Adds an open path with a tooltip.
    pub(super) fn curve(&mut self, class: &str, points: &[(f64, f64)], text: &str) {
        self.shapes += &format!("<path class=\"{class}\" d=\"M{}\">{}</path>\n", joined(points), hint(text));
    }

    /// Adds a filled area.
    pub(super) fn area(&mut self, class: &str, outline: &[(f64, f64)]) {
        self.shapes += &format!("<path class=\"{class}\" d=\"M{}Z\"/>\n", joined(outline));
    }

    /// Adds a rectangle with a tooltip.
    pub(super) fn bar(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), text: &str) {
        self.shapes += &format!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\">{}</rect>\n",
            hint(text)
        );
    }

    /// Adds a dot with a tooltip and an optional link.
    pub(super) fn dot(
        &mut self,
        class: &str,
        (x, y): (f64, f64),
        radius: f64,
        text: &str,
        link: Option<&Link>,
    ) {
        let (start, end) = match link {
            Some(Link { to, stop }) => {
                let (to, text) = (Escaped(to), Escaped(text));
                let skipped = if *stop { "" } else { " tabindex=\"-1\"" };
                (format!("<a href=\"#{to}\" aria-label=\"{text}\"{skipped}>\n"), "\n</a>")
            }
            None => (String::new(), ""),
        };
        self.shapes += &format!(
            "{start}<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\">{}</circle>{end}\n",
            hint(text)
        );
    }

    /// Adds a legend from `top` down, in as many lines as it needs. Returns its lower end.
    pub(super) fn legend(&mut self, across: (f64, f64), top: f64, names: &[&str]) -> f64 {
        self.keys(across, top, (18.0, names), |drawing, number, (x, y)| {
            drawing.bar(&filling(number), (x, y + 2.0), (12.0, 9.0), "");
        })
    }

    /// Adds a legend of lines.
    pub(super) fn line_legend(&mut self, across: (f64, f64), top: f64, names: &[&str]) -> f64 {
        self.keys(across, top, (30.0, names), |drawing, number, (x, y)| {
            drawing.line(&line(number), (x, y + 7.0), (x + 24.0, y + 7.0));
        })
    }

    /// Adds names, each after a mark of the given width.
    fn keys(
        &mut self,
        (left, right): (f64, f64),
        top: f64,
        (room, names): (f64, &[&str]),
        mark: impl Fn(&mut Drawing, usize, (f64, f64)),
    ) -> f64 {
        let (mut x, mut y) = (left, top);
        for (number, name) in names.iter().enumerate() {
            let width = room + text_width(name) + 14.0;
            if x > left && x + width > right {
                (x, y) = (left, y + LINE);
            }
            mark(self, number, (x, y));
            self.text("label", (x + room, y + 11.0), Anchor::Start, name);
            x += width;
        }
        y + LINE
    }

    /// Adds a horizontal axis at the bottom, with grid lines up from its ticks.
    pub(super) fn axis_x(&mut self, scale: &Scale, frame: &Frame, name: &str) {
        for tick in scale.ticks() {
            let x = scale.place(tick);
            self.line("grid", (x, frame.top), (x, frame.bottom));
            self.text("label", (x, frame.bottom + 14.0), Anchor::Middle, &label(tick));
        }
        let middle = (frame.left + frame.right) / 2.0;
        self.text("name", (middle, frame.bottom + 31.0), Anchor::Middle, name);
    }

    /// Adds a vertical axis on the left, with grid lines across from its ticks. Its name is above
    /// it.
    pub(super) fn axis_y(&mut self, scale: &Scale, frame: &Frame, name: &str) {
        for tick in scale.ticks() {
            let y = scale.place(tick);
            self.line("grid", (frame.left, y), (frame.right, y));
            self.text("label", (frame.left - 6.0, y + 4.0), Anchor::End, &label(tick));
        }
        self.text("name", (2.0, frame.top - 9.0), Anchor::Start, name);
    }
}

/// The places of a path.
fn joined(points: &[(f64, f64)]) -> String {
    let places: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
    places.join("L")
}

/// The CSS classes of a series that is a line. Lines that share a colour differ in their dashes.
pub(super) fn line(series: usize) -> String {
    let again = if series >= FILLINGS { " again" } else { "" };
    format!("line s{}{again}", series % FILLINGS)
}

/// The CSS classes of the band around a line.
pub(super) fn band(series: usize) -> String {
    format!("band s{}", series % FILLINGS)
}

/// The CSS classes of a series.
pub(super) fn filling(series: usize) -> String {
    format!("series s{}", series % FILLINGS)
}

/// The radius of the dots of a chart: few dots are large.
pub(super) fn dot_radius(count: usize) -> f64 {
    if count <= 20 { 4.6 } else { 2.6 }
}

/// The approximate width of a label.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}

/// The values of an attribute, over all shapes of a kind.
#[cfg(test)]
pub(super) fn numbers(svg: &str, shape: &str, attribute: &str) -> Vec<f64> {
    let of_kind = svg.lines().filter(|line| line.starts_with(&format!("<{shape} ")));
    let number = |line: &str| {
        let (_, rest) = line.split_once(&format!(" {attribute}=\""))?;
        rest.split('"').next()?.parse().ok()
    };
    of_kind.map(|line| number(line).expect("the shape has the number")).collect()
}

fn hint(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("<title>{}</title>", Escaped(text)) }
}
