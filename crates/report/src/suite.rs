//! Apps under one or more ways of scheduling, compared with times of others.

use crate::chart::{Bar, Bars, Base, Group};
use crate::html::{Escaped, count, figure};
use crate::page::{Fact, Listing, facts};
use crate::scale::is_positive;
use crate::table::{Column, Table};

/// Runs of the suite that are compared.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Suite {
    /// Its title.
    pub title: String,
    /// The runs.
    pub runs: Vec<Run>,
}

/// One run of the suite.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Run {
    /// What it is called beside others.
    pub name: String,
    /// What is to be known about it.
    pub facts: Vec<Fact>,
    /// Its apps.
    pub apps: Vec<AppTime>,
    /// All that is known about them.
    pub results: Table,
    /// What went wrong, a sentence each.
    pub notes: Vec<String>,
    /// Their schedules.
    pub listings: Vec<Listing>,
}

/// How long an app takes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AppTime {
    /// Its name.
    pub app: String,
    /// Its time, microseconds.
    pub us: Option<f64>,
    /// The least that the device could take, microseconds.
    pub floor_us: Option<f64>,
    /// What it is compared with.
    pub baselines: Vec<Baseline>,
}

/// The time of an app by another system.
#[derive(Clone, PartialEq, Debug)]
pub struct Baseline {
    /// Whose.
    pub name: String,
    /// How long it takes, microseconds.
    pub us: f64,
}

impl AppTime {
    fn time(&self) -> Option<f64> {
        self.us.filter(|time| is_positive(*time))
    }

    /// How many times as fast it is, as a bar.
    fn faster(&self, than: &str, run: &str) -> Option<Bar> {
        let (time, other) = (self.time()?, self.baselines.iter().find(|baseline| baseline.name == than)?.us);
        let value = is_positive(other).then_some(other / time)?;
        let text = format!("{value:.2}x");
        let hint = format!("{}, {run}: {text}, {time:.1} us against {other:.1} us", self.app);
        Some(Bar { value, text, hint })
    }

    /// Its share of the least possible time, as a bar.
    fn of_the_floor(&self, run: &str) -> Option<Bar> {
        let (time, floor) = (self.time()?, self.floor_us?);
        let value = 1e2 * floor / time;
        let text = format!("{value:.0} %");
        let hint = format!("{}, {run}: {text}, {time:.1} us, at least {floor:.1} us", self.app);
        Some(Bar { value, text, hint })
    }
}

impl Suite {
    pub(crate) fn headline(&self) -> String {
        let Some(baseline) = self.baselines().into_iter().next() else {
            let apps = count(self.apps().len(), "app");
            return format!("{apps}, {}", self.names().join(", "));
        };
        let means = self.runs.iter().filter_map(|run| {
            let all: Vec<f64> =
                run.apps.iter().filter_map(|app| Some(app.faster(&baseline, "")?.value)).collect();
            Some(format!(
                "{} {:.2}x over {}",
                run.name,
                geometric_mean(all.iter().copied())?,
                count(all.len(), "app")
            ))
        });
        let means = means.collect::<Vec<_>>().join(", ");
        format!("Geometric mean against {baseline}: {means}")
    }

    pub(crate) fn to_html(&self) -> String {
        let runs: String = self.runs.iter().map(Run::to_html).collect();
        format!("{}{}{runs}", self.charts(), self.side_by_side())
    }

    /// A chart for each that apps are compared with; shares of the floor if there is none.
    fn charts(&self) -> String {
        let baselines = self.baselines();
        let charts: String = match baselines.is_empty() {
            true => self.shares(),
            false => baselines.iter().map(|baseline| self.compared(baseline)).collect(),
        };
        format!("<div class=\"figures\">\n{charts}</div>\n")
    }

    fn compared(&self, baseline: &str) -> String {
        let groups = self.groups(|app, run| app.faster(baseline, run));
        let about = format!("How many times as fast as {baseline} each app is");
        let common = groups.iter().filter(|group| !group.summary && group.is_full()).count();
        let caption = match self.runs.len() > 1 && common > 1 {
            true => format!("{about}. The mean is over the {common} apps that all runs have."),
            false => format!("{about}; right of the line is faster."),
        };
        let axis = format!("times as fast as {baseline}");
        figure(&Bars { about, axis, base: Base::One, series: self.names(), groups }.draw(), &caption)
    }

    fn shares(&self) -> String {
        let mut groups = self.groups(|app, run| app.of_the_floor(run));
        // A mean of shares would say nothing.
        groups.retain(|group| !group.summary);
        if groups.is_empty() {
            return String::new();
        }
        let about = "The least time that the device could take, as a share of the time it took".to_owned();
        let (axis, caption) = ("% of the floor".to_owned(), format!("{about}."));
        figure(&Bars { about, axis, base: Base::Zero, series: self.names(), groups }.draw(), &caption)
    }

    /// A group for each app that has a bar in some run, and one for the mean of those that have one in each.
    fn groups(&self, bar: impl Fn(&AppTime, &str) -> Option<Bar>) -> Vec<Group> {
        let of = |app: &str| {
            let of_run = |run: &Run| bar(run.apps.iter().find(|found| found.app == app)?, &run.name);
            let bars = self.runs.iter().map(of_run).collect();
            Group { name: app.to_owned(), summary: false, bars }
        };
        let mut groups: Vec<Group> = self.apps().into_iter().map(of).collect();
        groups.retain(|group| group.bars.iter().any(Option::is_some));
        let common: Vec<&Group> = groups.iter().filter(|group| group.is_full()).collect();
        if common.len() < 2 {
            return groups;
        }
        let mean = |run: usize| {
            let values = common.iter().filter_map(|group| group.bars[run].as_ref());
            let value = geometric_mean(values.map(|bar| bar.value))?;
            let text = format!("{value:.2}x");
            let hint = format!("{}: {text} over {}", self.runs[run].name, count(common.len(), "app"));
            Some(Bar { value, text, hint })
        };
        let bars = (0..self.runs.len()).map(mean).collect();
        groups.push(Group { name: "geometric mean".to_owned(), summary: true, bars });
        groups
    }

    /// Times of all runs beside each other, if there are several.
    fn side_by_side(&self) -> String {
        if self.runs.len() < 2 {
            return String::new();
        }
        let mut columns = vec![Column::text("app")];
        columns.extend(self.runs.iter().map(|run| Column::numbers(&format!("{} us", run.name))));
        let row = |app: &&str| {
            let time = |run: &Run| run.apps.iter().find(|found| found.app == **app).and_then(AppTime::time);
            let times = self.runs.iter().map(|run| time(run).map_or("-".to_owned(), |us| format!("{us:.1}")));
            std::iter::once((*app).to_owned()).chain(times).collect()
        };
        let rows = self.apps().iter().map(row).collect();
        format!("<h3>Side by side</h3>\n{}", Table { columns, rows }.to_html())
    }

    fn names(&self) -> Vec<String> {
        self.runs.iter().map(|run| run.name.clone()).collect()
    }

    /// All apps, in the order they come first.
    fn apps(&self) -> Vec<&str> {
        distinct(self.runs.iter().flat_map(|run| &run.apps).map(|app| app.app.as_str()))
    }

    /// All that apps are compared with, in the order they come first.
    fn baselines(&self) -> Vec<String> {
        let apps = self.runs.iter().flat_map(|run| &run.apps).filter(|app| app.time().is_some());
        let names = apps.flat_map(|app| &app.baselines).filter(|baseline| is_positive(baseline.us));
        distinct(names.map(|baseline| baseline.name.clone()))
    }
}

impl Run {
    fn to_html(&self) -> String {
        let (name, facts, table) = (Escaped(&self.name), facts(&self.facts), self.results.to_html());
        let note = |note: &String| format!("<p class=\"note\">{}</p>\n", Escaped(note));
        let notes: String = self.notes.iter().map(note).collect();
        format!("<h3>{name}</h3>\n{facts}{table}{notes}{}", self.listings())
    }

    /// All schedules, folded once more, so that many take one line.
    fn listings(&self) -> String {
        let listings: String = self.listings.iter().map(Listing::to_html).collect();
        if self.listings.len() < 2 {
            return listings;
        }
        let apps = count(self.listings.len(), "app");
        format!("<details>\n<summary>Loop nests and schedules of {apps}</summary>\n{listings}</details>\n")
    }
}

fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for one in all {
        if !seen.contains(&one) {
            seen.push(one);
        }
    }
    seen
}

/// The number whose logarithm is the mean of theirs; `None` of no numbers.
///
/// ```
/// assert_eq!(warploom_report::geometric_mean([2.0, 8.0]).map(f64::round), Some(4.0));
/// assert_eq!(warploom_report::geometric_mean([]), None);
/// ```
pub fn geometric_mean(numbers: impl IntoIterator<Item = f64>) -> Option<f64> {
    let logarithms: Vec<f64> = numbers.into_iter().map(f64::ln).collect();
    let count = logarithms.len() as f64;
    (count > 0.0).then(|| (logarithms.iter().sum::<f64>() / count).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(name: &str, us: f64, other: Option<f64>) -> AppTime {
        let baselines = other.map(|us| Baseline { name: "Halide".to_owned(), us }).into_iter().collect();
        AppTime { app: name.to_owned(), us: Some(us), floor_us: Some(1.0), baselines }
    }

    fn run(name: &str, apps: Vec<AppTime>) -> Run {
        Run { name: name.to_owned(), apps, ..Run::default() }
    }

    #[test]
    fn means_are_of_what_all_runs_have() {
        let first =
            run("first", vec![app("a", 1.0, Some(4.0)), app("b", 1.0, Some(1.0)), app("c", 1.0, Some(64.0))]);
        let second =
            run("second", vec![app("b", 1.0, Some(9.0)), app("a", 1.0, Some(1.0)), app("d", 1.0, None)]);
        let suite = Suite { runs: vec![first, second], ..Suite::default() };
        let groups = suite.groups(|app, run| app.faster("Halide", run));
        let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "geometric mean"]);
        let means: Vec<f64> = groups[3].bars.iter().flatten().map(|bar| bar.value.round()).collect();
        assert_eq!(means, [2.0, 3.0]);
        assert_eq!(
            suite.headline(),
            "Geometric mean against Halide: first 6.35x over 3 apps, second 3.00x over 2 apps"
        );
    }

    #[test]
    fn without_other_times_shares_of_the_floor_are_drawn() {
        let suite = Suite { runs: vec![run("only", vec![app("a", 4.0, None)])], ..Suite::default() };
        let html = suite.to_html();
        assert!(
            html.contains("% of the floor") && html.contains("a, only: 25 %, 4.0 us, at least 1.0 us"),
            "{html}"
        );
    }

    #[test]
    fn runs_of_nothing_are_no_harm() {
        let nothing = Suite { runs: vec![run("empty", vec![]), run("none", vec![])], ..Suite::default() };
        assert!(!nothing.to_html().contains("<svg"));
    }
}
