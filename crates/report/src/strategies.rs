//! Strategies, compared by the best time found after a number of trials.

use crate::chart::{Curve, CurvePoint, Curves};
use crate::html::{Escaped, count, figure};
use crate::page::{Fact, facts};
use crate::table::Table;

/// A comparison of strategies.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Strategies {
    /// The title of the section.
    pub title: String,
    /// Facts about the comparison, such as date, device and command.
    pub facts: Vec<Fact>,
    /// Number of trials of a run.
    pub trials: usize,
    /// A caption for the tables of subjects.
    pub caption: String,
    /// The subjects, in order.
    pub subjects: Vec<TriedSubject>,
    /// A caption for the table of speeds.
    pub about_speeds: String,
    /// The strategies relative to one of them; empty without a reference.
    pub speeds: Table,
}

/// All strategies on one pipeline.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TriedSubject {
    /// The pipeline and its sizes.
    pub name: String,
    /// The best time so far in microseconds over the trials: a curve for each strategy.
    pub curves: Vec<Curve>,
    /// The best possible time, if it is known.
    pub optimum: Option<f64>,
    /// Further remarks on the subject, a sentence each.
    pub notes: Vec<String>,
    /// The best times after some numbers of trials.
    pub table: Table,
}

impl Strategies {
    pub(crate) fn headline(&self) -> String {
        let strategies = self.subjects.iter().map(|subject| subject.curves.len()).max().unwrap_or(0);
        let strategies = match strategies {
            1 => "1 strategy".to_owned(),
            several => format!("{several} strategies"),
        };
        format!(
            "{strategies} on {}, {} each",
            count(self.subjects.len(), "subject"),
            count(self.trials, "trial")
        )
    }

    pub(crate) fn to_html(&self) -> String {
        let note = |text: &str| format!("<p class=\"note\">{}</p>\n", Escaped(text));
        let subjects: String = self.subjects.iter().map(|subject| subject.to_html(self.trials)).collect();
        let speeds = match self.speeds.rows.is_empty() {
            true => String::new(),
            false => {
                format!("<h3>All subjects</h3>\n{}{}", note(&self.about_speeds), self.speeds.to_html())
            }
        };
        format!("{}{speeds}{}{subjects}", facts(&self.facts), note(&self.caption))
    }
}

impl TriedSubject {
    fn to_html(&self, trials: usize) -> String {
        let about = format!("Best time so far of each strategy on {}, over the trials", self.name);
        let caption = format!(
            "{about}: lines are means over seeds, bands one standard deviation. Times \
             above four times the best are at the upper edge."
        );
        let (x, y) = ("trials".to_owned(), "best time so far, us".to_owned());
        let optimum = self.optimum.map(|value| Curve {
            name: "known optimum".to_owned(),
            places: vec![CurvePoint { at: 1, value, deviation: 0.0 }],
        });
        let curves = self.curves.iter().cloned().chain(optimum).collect();
        let drawing = Curves { about, x, y, count: trials, curves }.draw();
        let notes = self.notes.iter().map(|note| format!("<p class=\"note\">{}</p>\n", Escaped(note)));
        format!(
            "<h3>{}</h3>\n<div class=\"figures\">\n{}</div>\n{}{}",
            Escaped(&self.name),
            figure(&drawing, &caption),
            notes.collect::<String>(),
            self.table.to_html()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Column;

    #[test]
    fn subjects_have_a_chart_and_a_table_each() {
        let curve = |name: &str| Curve {
            name: name.to_owned(),
            places: vec![CurvePoint { at: 1, value: 9.0, deviation: 1.0 }],
        };
        let table = Table {
            columns: vec![Column::text("strategy"), Column::numbers("after 25")],
            rows: vec![vec!["<random>".to_owned(), "9.00 ± 1.00".to_owned()]],
        };
        let subject = |name: &str| TriedSubject {
            name: name.to_owned(),
            curves: vec![curve("<random>"), curve("opevo")],
            optimum: (name == "harris").then_some(7.5),
            notes: vec![format!("a <note> on {name}")],
            table: table.clone(),
        };
        let subjects = vec![subject("blur"), subject("harris")];
        let mut strategies = Strategies { trials: 25, subjects, ..Strategies::default() };
        let html = strategies.to_html();
        assert_eq!((html.matches("<svg").count(), html.matches("<table").count()), (2, 2), "{html}");
        assert!(!html.contains("<random>") && !html.contains("All subjects"), "{html}");
        assert_eq!(
            html.matches("known optimum").count(),
            2,
            "in the legend and at the line of one subject: {html}"
        );
        assert!(html.contains("<p class=\"note\">a &lt;note&gt; on blur</p>"), "{html}");
        assert_eq!(strategies.headline(), "2 strategies on 2 subjects, 25 trials each");
        strategies.speeds = table;
        assert_eq!(strategies.to_html().matches("<table").count(), 3);
    }
}
