//! Grouped horizontal bar charts.

use super::drawing::{Anchor, Drawing, Frame, LINE, filling, text_width};
use crate::scale::{Scale, is_positive, padded};

const WIDTH: f64 = 460.0;
/// The space between groups, and the space for values beside bars.
const GAP: f64 = 9.0;
const VALUE: f64 = 46.0;
const DOT: f64 = 3.0;

/// Groups of horizontal bars, one below the other.
#[derive(Clone, PartialEq, Debug)]
pub struct Bars {
    /// A text alternative for readers who cannot see the chart.
    pub about: String,
    /// The label of the value axis.
    pub axis: String,
    /// The value at which bars start.
    pub base: Base,
    /// The names of the series, one per bar of a group.
    pub series: Vec<String>,
    /// The groups, from top to bottom.
    pub groups: Vec<Group>,
}

/// The value at which bars start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// 0, on a linear axis.
    Zero,
    /// 1, on a logarithmic axis. For ratios: bars below 1 extend to the left.
    One,
}

/// The bars of one category, one per series.
#[derive(Clone, PartialEq, Debug)]
pub struct Group {
    /// The label of the group.
    pub name: String,
    /// Whether the group summarises all others; it is emphasised.
    pub summary: bool,
    /// One bar per series; `None` if the series has no value here.
    pub bars: Vec<Option<Bar>>,
    /// The values that the bars summarise, if any.
    pub dots: Vec<Dot>,
}

/// A value that a bar summarises.
#[derive(Clone, PartialEq, Debug)]
pub struct Dot {
    /// The value.
    pub value: f64,
    /// The tooltip.
    pub hint: String,
}

/// One bar of a group.
#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    /// The value at which the bar ends.
    pub value: f64,
    /// The label beside the bar.
    pub text: String,
    /// The tooltip.
    pub hint: String,
}

impl Bars {
    /// Renders the chart.
    pub fn draw(&self) -> Drawing {
        let names = self.groups.iter().map(|group| text_width(&group.name));
        let left = names.fold(40.0f64, f64::max) + 10.0;
        let thickness = match self.series.len() {
            0 | 1 => 15.0,
            2 => 13.0,
            _ => 12.0,
        };
        let several = self.series.len() > 1;
        let group_height = thickness * self.series.len() as f64 + GAP;
        let legend = if several { self.legend_lines(left) as f64 * LINE + 6.0 } else { 4.0 };
        let bottom = legend + group_height * self.groups.len() as f64 + GAP / 2.0;
        let frame = Frame { left, right: WIDTH - VALUE, top: legend, bottom };
        let mut drawing = Drawing::new(WIDTH, bottom + 38.0, &self.about);
        if several {
            let names: Vec<&str> = self.series.iter().map(String::as_str).collect();
            drawing.legend((left, WIDTH), 0.0, &names);
        }
        let scale = self.scale(&frame);
        drawing.axis_x(&scale, &frame, &self.axis);
        for (number, group) in self.groups.iter().enumerate() {
            let top = frame.top + GAP / 2.0 + group_height * number as f64;
            group.draw(&mut drawing, &scale, self.base, (left, top), thickness);
        }
        let base = scale.place(self.base.number());
        drawing.line("base", (base, frame.top), (base, frame.bottom));
        drawing
    }

    fn legend_lines(&self, left: f64) -> usize {
        let width: f64 = self.series.iter().map(|name| text_width(name) + 32.0).sum();
        (width / (WIDTH - left)).ceil().max(1.0) as usize
    }

    fn scale(&self, frame: &Frame) -> Scale {
        let range = (frame.left, frame.right);
        let values = self.groups.iter().flat_map(|group| {
            let bars = group.bars.iter().flatten().map(|bar| bar.value);
            bars.chain(group.dots.iter().map(|dot| dot.value))
        });
        match self.base {
            Base::Zero => {
                let most = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
                Scale::linear((0.0, most), range)
            }
            Base::One => {
                let around = values.filter(|value| is_positive(*value)).chain([0.8, 1.6]);
                Scale::logarithmic(padded(around).unwrap_or((0.8, 1.6)), range)
            }
        }
    }
}

impl Base {
    fn number(self) -> f64 {
        match self {
            Base::Zero => 0.0,
            Base::One => 1.0,
        }
    }
}

impl Group {
    /// Whether no bar is missing.
    pub(crate) fn is_full(&self) -> bool {
        self.bars.iter().all(Option::is_some)
    }

    fn draw(
        &self,
        drawing: &mut Drawing,
        scale: &Scale,
        base: Base,
        (left, top): (f64, f64),
        thickness: f64,
    ) {
        let middle = top + thickness * self.bars.len() as f64 / 2.0;
        let class = if self.summary { "label strong" } else { "label" };
        drawing.text(class, (left - 8.0, middle + 4.0), Anchor::End, &self.name);
        let base = scale.place(base.number());
        for (number, bar) in self.bars.iter().enumerate() {
            let Some(bar) = bar.as_ref().filter(|bar| bar.value.is_finite()) else { continue };
            let (y, end) = (top + thickness * number as f64, scale.place(bar.value));
            let (from, to) = (base.min(end), base.max(end));
            drawing.bar(
                &filling(number),
                (from, y + 0.75),
                ((to - from).max(0.5), thickness - 1.5),
                &bar.hint,
            );
            // Always label on the right: left of a bar below 1 there may be the name of its group.
            let class = if self.summary { "value strong" } else { "value" };
            drawing.text(class, (to + 5.0, y + thickness / 2.0 + 3.6), Anchor::Start, &bar.text);
        }
        for dot in self.dots.iter().filter(|dot| is_positive(dot.value)) {
            drawing.dot("point s1", (scale.place(dot.value), middle), DOT, &dot.hint, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::drawing::numbers;

    fn bars(base: Base, values: &[f64]) -> String {
        let group = |value: &f64| Group {
            name: "a < b".to_owned(),
            summary: false,
            bars: vec![Some(Bar { value: *value, text: format!("{value}x"), hint: String::new() })],
            dots: Vec::new(),
        };
        let groups = values.iter().map(group).collect();
        Bars { about: String::new(), axis: String::new(), base, series: vec!["only".to_owned()], groups }
            .draw()
            .in_page()
    }

    #[test]
    fn ratios_go_both_ways_from_one() {
        let svg = bars(Base::One, &[2.0, 0.5, 1.0]);
        let (x, width) = (numbers(&svg, "rect", "x"), numbers(&svg, "rect", "width"));
        assert!((x[1] + width[1] - x[0]).abs() < 0.2, "the one ends where the other begins: {x:?} {width:?}");
        assert!((width[0] - width[1]).abs() < 0.2, "twice and half are as long: {width:?}");
        assert!(width[2] < 1.0);
        assert!(svg.contains("a &lt; b"));
    }

    #[test]
    fn dots_widen_the_axis_and_lie_on_it() {
        let dot = |value| Dot { value, hint: format!("{value}") };
        let bars = vec![Some(Bar { value: 2.0, text: String::new(), hint: String::new() })];
        let dots = vec![dot(0.5), dot(2.0), dot(8.0), dot(f64::NAN)];
        let groups = vec![Group { name: String::new(), summary: false, bars, dots }];
        let svg = Bars {
            about: String::new(),
            axis: String::new(),
            base: Base::One,
            series: vec![String::new()],
            groups,
        }
        .draw()
        .in_page();
        let places = numbers(&svg, "circle", "cx");
        assert_eq!(places.len(), 3, "{svg}");
        assert!((places[2] - 2.0 * places[1] + places[0]).abs() < 0.2, "factors of 4 are as far: {places:?}");
        let (x, width) = (numbers(&svg, "rect", "x"), numbers(&svg, "rect", "width"));
        assert!((x[0] + width[0] - places[1]).abs() < 0.2, "a bar ends at its value: {svg}");
    }

    #[test]
    fn amounts_are_as_long_as_they_are_large() {
        let width = numbers(&bars(Base::Zero, &[10.0, 20.0]), "rect", "width");
        assert!((width[1] - 2.0 * width[0]).abs() < 0.2, "{width:?}");
    }

    #[test]
    fn odd_numbers_are_no_harm() {
        for base in [Base::Zero, Base::One] {
            for values in [&[][..], &[0.0], &[f64::NAN, f64::INFINITY], &[-1.0, 1e300]] {
                let svg = bars(base, values);
                assert!(!svg.contains("NaN\"") && !svg.contains("inf\""), "{svg}");
            }
        }
    }
}
