//! A farm: how many trials its workers recorded over time, and how the best times went down.

use crate::chart::{Curve, Curves, Line, Lines};
use crate::html::{Escaped, figure};
use crate::page::{Fact, facts};
use crate::table::Table;

/// The maximum number of problems in one chart.
const TOGETHER: usize = 8;

/// The history of a farm.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Farm {
    /// The title of the section.
    pub title: String,
    /// The main result, in a few words.
    pub headline: String,
    /// Facts about the farm, such as its server and when it worked.
    pub facts: Vec<Fact>,
    /// The unit of time, as in `hours`.
    pub unit: String,
    /// Trials a minute over time, in that unit since the first trial: of all workers, and of some.
    pub rates: Vec<Line>,
    /// The workers: trials and failures of each.
    pub workers: Table,
    /// The length of the time axis of the best times, in seconds.
    pub seconds: usize,
    /// The best time of each problem so far, relative to its final one, over the seconds since the first trial.
    pub bests: Vec<Curve>,
}

impl Farm {
    pub(crate) fn to_html(&self) -> String {
        let bests: String = self.bests.chunks(TOGETHER).map(|curves| self.bests(curves)).collect();
        format!(
            "{}{}<h3>Workers</h3>\n{}<h3>Best time so far</h3>\n\
             <p class=\"note\">{}</p>\n<div class=\"figures\">\n{bests}</div>\n",
            facts(&self.facts),
            self.rates(),
            self.workers.to_html(),
            Escaped(
                "Each line is the best time of a problem so far, divided by the best in the end. Above four times \
                 that, it is at the upper edge."
            )
        )
    }

    /// Empty for a farm whose trials all lie in one period.
    fn rates(&self) -> String {
        if self.rates.iter().all(|line| line.points.len() < 2) {
            return String::new();
        }
        let about = "Trials a minute over time".to_owned();
        let caption = format!("{about}: all workers together, and each where there are only a few.");
        let x = format!("{} since the first trial", self.unit);
        let drawing = Lines { about, x, y: "trials a minute".to_owned(), lines: self.rates.clone() }.draw();
        format!("<div class=\"figures\">\n{}</div>\n", figure(&drawing, &caption))
    }

    fn bests(&self, curves: &[Curve]) -> String {
        let names: Vec<&str> = curves.iter().map(|curve| curve.name.as_str()).collect();
        let about = format!("Best time so far of {}", names.join(", "));
        let (x, y) = ("seconds since the first trial".to_owned(), "best so far / best in the end".to_owned());
        let drawing =
            Curves { about: about.clone(), x, y, count: self.seconds, curves: curves.to_vec() }.draw();
        figure(&drawing, &about)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::CurvePoint;
    use crate::table::Column;

    #[test]
    fn problems_are_drawn_a_few_at_a_time() {
        let curve = |number: usize| Curve {
            name: format!("<problem {number}>"),
            places: vec![
                CurvePoint { at: 1, value: 2.0, deviation: 0.0 },
                CurvePoint { at: 50, value: 1.0, deviation: 0.0 },
            ],
        };
        let farm = Farm {
            unit: "hours".to_owned(),
            rates: vec![Line { name: "all".to_owned(), points: vec![(0.0, 3.0), (1.0, 4.0)] }],
            workers: Table { columns: vec![Column::text("host")], rows: vec![vec!["<gpu1>".to_owned()]] },
            seconds: 100,
            bests: (0..9).map(curve).collect(),
            ..Farm::default()
        };
        let html = farm.to_html();
        assert_eq!(html.matches("<svg").count(), 3, "rates, and two of best times: {html}");
        assert!(html.contains("hours since the first trial") && html.contains("&lt;gpu1&gt;"), "{html}");
        assert!(!html.contains("<problem") && !html.contains("<gpu1>"), "{html}");
    }

    #[test]
    fn a_line_needs_two_points() {
        let points = |count: usize| (0..count).map(|at| (at as f64, 3.0)).collect();
        let drawn = |count: usize| {
            let rates = vec![Line { name: "all".to_owned(), points: points(count) }];
            Farm { rates, ..Farm::default() }.to_html().contains("<svg")
        };
        assert_eq!((drawn(1), drawn(2)), (false, true));
    }
}
