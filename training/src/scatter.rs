//! Scatter plots of predicted against measured times, as SVG.

use std::fmt::Write;

/// Side of the plot, and the room around it for labels.
const SIDE: f64 = 360.0;
const MARGIN: f64 = 56.0;

/// One model's predictions.
#[derive(Clone, Debug)]
pub struct Series<'a> {
    /// Its name.
    pub name: &'a str,
    /// Colour of its points.
    pub colour: &'a str,
    /// Measured and predicted times, microseconds.
    pub points: Vec<(f64, f64)>,
}

/// A plot with logarithmic axes; on the diagonal predictions are right.
pub fn scatter(title: &str, series: &[Series<'_>]) -> String {
    let points = || series.iter().flat_map(|series| &series.points);
    let all = points().flat_map(|(measured, predicted)| [*measured, *predicted]).filter(|time| *time > 0.0);
    let (least, most) =
        all.fold((f64::INFINITY, 0.0f64), |(least, most), time| (least.min(time), most.max(time)));
    let (least, most) = if least < most { (least * 0.9, most * 1.1) } else { (1.0, 10.0) };
    let along = |time: f64| (time.max(least) / least).ln() / (most / least).ln() * SIDE;
    let (across, up) = (|time| MARGIN + along(time), |time| MARGIN + SIDE - along(time));
    let size = SIDE + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{size}\" height=\"{size}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <rect x=\"{MARGIN}\" y=\"{MARGIN}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"none\" stroke=\"#888\"/>\n\
         <line x1=\"{MARGIN}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{MARGIN}\" stroke=\"#ccc\"/>\n",
        MARGIN + SIDE,
        MARGIN + SIDE
    );
    let mut text = |x: f64, y: f64, anchor: &str, words: &str| {
        // Writing to a string does not fail.
        writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escaped(words))
            .unwrap_or_default();
    };
    text(size / 2.0, 20.0, "middle", title);
    text(size / 2.0, size - 12.0, "middle", "measured, us");
    text(MARGIN, MARGIN - 8.0, "start", "predicted, us");
    for tick in ticks(least, most) {
        text(across(tick), MARGIN + SIDE + 14.0, "middle", &format!("{tick}"));
        text(MARGIN - 5.0, up(tick) + 4.0, "end", &format!("{tick}"));
    }
    for (number, Series { name, colour, points }) in series.iter().enumerate() {
        let at = 36.0 + 12.0 * number as f64;
        writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{at}\" text-anchor=\"end\" fill=\"{colour}\">{}</text>",
            MARGIN + SIDE,
            escaped(name)
        )
        .unwrap_or_default();
        for (measured, predicted) in points {
            let (x, y) = (across(*measured), up(*predicted));
            writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2\" fill=\"{colour}\" fill-opacity=\"0.6\"/>"
            )
            .unwrap_or_default();
        }
    }
    svg + "</svg>\n"
}

/// Round numbers between two: 1, 2 and 5 times powers of ten.
fn ticks(least: f64, most: f64) -> Vec<f64> {
    let first = least.log10().floor() as i32;
    let last = most.log10().ceil() as i32;
    let round = (first..=last).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)));
    let inside: Vec<f64> = round.filter(|tick| (least..=most).contains(tick)).collect();
    // Over many orders of magnitude, powers of ten are enough.
    if inside.len() > 9 {
        inside.into_iter().filter(|tick| tick.log10().fract().abs() < 1e-9).collect()
    } else {
        inside
    }
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_on_the_diagonal_are_where_it_is() {
        let points = vec![(10.0, 10.0), (100.0, 100.0), (10.0, 100.0)];
        let svg = scatter("a < b", &[Series { name: "analytic", colour: "#888", points }]);
        assert!(svg.contains("a &lt; b"));
        let places: Vec<(f64, f64)> = svg
            .lines()
            .filter(|line| line.starts_with("<circle"))
            .map(|line| {
                let number = |name: &str| {
                    let rest = &line[line.find(name).unwrap() + name.len()..];
                    rest[..rest.find('"').unwrap()].parse::<f64>().unwrap()
                };
                (number("cx=\""), number("cy=\""))
            })
            .collect();
        let [low, high, above] = places[..] else { panic!("three points, not {}", places.len()) };
        assert!((low.0 - MARGIN + low.1 - MARGIN - SIDE).abs() < 0.2);
        assert!((high.0 - MARGIN + high.1 - MARGIN - SIDE).abs() < 0.2);
        assert_eq!((above.0, above.1), (low.0, high.1));
    }

    #[test]
    fn a_plot_of_nothing_is_a_plot() {
        assert!(scatter("nothing", &[]).ends_with("</svg>\n"));
        assert_eq!(ticks(0.9, 60.0), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0]);
    }
}
