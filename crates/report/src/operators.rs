//! Operators, compared with libraries family by family.

use crate::chart::{Bar, Bars, Base, Dot, Group};
use crate::html::{Escaped, count, figure};
use crate::page::{Fact, Listing, facts};
use crate::scale::is_positive;
use crate::table::Table;

/// One run of the set of operators.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Operators {
    /// The title of the section.
    pub title: String,
    /// Facts about the run, such as date, device and command.
    pub facts: Vec<Fact>,
    /// The families, in order.
    pub families: Vec<FamilyRatios>,
    /// The mean over families.
    pub mean: Option<f64>,
    /// The families as a table, with the claims of others.
    pub means: Table,
    /// Sums over the layers of whole networks.
    pub networks: Table,
    /// The detailed results, row by row.
    pub results: Table,
    /// Further remarks, one sentence each.
    pub notes: Vec<String>,
    /// The schedules of the rows.
    pub listings: Vec<Listing>,
}

/// The ratios of one family.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FamilyRatios {
    /// Its name.
    pub name: String,
    /// The mean of its rows; `None` if no row is compared.
    pub mean: Option<f64>,
    /// The rows that are compared.
    pub rows: Vec<Ratio>,
}

/// The speedup of a row over a library.
#[derive(Clone, PartialEq, Debug)]
pub struct Ratio {
    /// The name of the row.
    pub row: String,
    /// The library's time divided by the measured one.
    pub ratio: f64,
    /// Whether it is excluded from the mean.
    pub apart: bool,
}

impl Operators {
    pub(crate) fn headline(&self) -> String {
        let families = match self.families.iter().filter(|family| family.mean.is_some()).count() {
            1 => "1 family".to_owned(),
            several => format!("{several} families"),
        };
        match self.mean {
            Some(mean) => format!("{mean:.2}x the speed of libraries, geometric mean over {families}"),
            None => format!("{}, not compared with libraries", count(self.results.rows.len(), "row")),
        }
    }

    pub(crate) fn to_html(&self) -> String {
        let note = |note: &String| format!("<p class=\"note\">{}</p>\n", Escaped(note));
        let notes: String = self.notes.iter().map(note).collect();
        let listings: String = self.listings.iter().map(Listing::to_html).collect();
        let listings = match self.listings.len() {
            0 | 1 => listings,
            several => {
                let rows = count(several, "row");
                format!(
                    "<details>\n<summary>Loop nests and schedules of {rows}</summary>\n{listings}</details>\n"
                )
            }
        };
        format!(
            "{}{}<h3>Families</h3>\n{}<h3>Networks</h3>\n{}{notes}<h3>Rows</h3>\n{}{listings}",
            facts(&self.facts),
            self.chart(),
            self.means.to_html(),
            self.networks.to_html(),
            self.results.to_html()
        )
    }

    /// One bar per family, and a dot per row.
    fn chart(&self) -> String {
        let mut groups: Vec<Group> =
            self.families.iter().filter(|family| !family.rows.is_empty()).map(FamilyRatios::group).collect();
        if groups.is_empty() {
            return String::new();
        }
        if let Some(mean) = self.mean {
            let hint = format!("all families: {mean:.2}x");
            let bars = vec![Some(Bar { value: mean, text: format!("{mean:.2}x"), hint })];
            groups.push(Group { name: "mean".to_owned(), summary: true, bars, dots: Vec::new() });
        }
        let about = "Speed of each family of operators relative to libraries".to_owned();
        let caption = format!("{about}: bars are means, dots are rows; right of the line is faster.");
        let axis = "times the speed of libraries".to_owned();
        let drawing = Bars { about, axis, base: Base::One, series: vec![String::new()], groups }.draw();
        format!("<div class=\"figures\">\n{}</div>\n", figure(&drawing, &caption))
    }
}

impl FamilyRatios {
    fn group(&self) -> Group {
        let mean = self.mean.filter(|mean| is_positive(*mean));
        let bar = mean.map(|value| {
            let text = format!("{value:.2}x");
            let hint = format!("{}: {text}, mean of {}", self.name, count(self.rows.len(), "row"));
            Bar { value, text, hint }
        });
        let dot = |Ratio { row, ratio, apart }: &Ratio| {
            let apart = if *apart { ", in no mean" } else { "" };
            Dot { value: *ratio, hint: format!("{row}: {ratio:.2}x{apart}") }
        };
        Group {
            name: self.name.clone(),
            summary: false,
            bars: vec![bar],
            dots: self.rows.iter().map(dot).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(name: &str, mean: Option<f64>, ratios: &[f64]) -> FamilyRatios {
        let row = |ratio: &f64| Ratio { row: format!("{name} <1>"), ratio: *ratio, apart: mean.is_none() };
        FamilyRatios { name: name.to_owned(), mean, rows: ratios.iter().map(row).collect() }
    }

    #[test]
    fn families_are_bars_and_rows_are_dots() {
        let families = vec![
            family("GMM", Some(2.0), &[1.0, 4.0]),
            family("apart", None, &[0.2]),
            family("BCM", None, &[]),
        ];
        let operators = Operators { families, mean: Some(2.0), ..Operators::default() };
        let html = operators.to_html();
        assert_eq!((html.matches("<circle").count(), html.matches("<rect").count()), (3, 2), "{html}");
        assert!(
            html.contains("GMM: 2.00x, mean of 2 rows")
                && html.contains("apart &lt;1&gt;: 0.20x, in no mean")
        );
        assert!(!html.contains(">BCM<"), "it has nothing to draw");
        assert_eq!(operators.headline(), "2.00x the speed of libraries, geometric mean over 1 family");
    }

    #[test]
    fn without_a_comparison_there_is_no_chart() {
        let operators = Operators { families: vec![family("BCM", None, &[])], ..Operators::default() };
        assert!(!operators.to_html().contains("<svg"));
        assert_eq!(operators.headline(), "0 rows, not compared with libraries");
    }
}
